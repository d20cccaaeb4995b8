#include "bind/signal_watch.hpp"

#include "bind/lock.hpp"

namespace onepass {

namespace nb = nanobind;

static bool in_main_thread() {
    thread_local int known = -1;
    thread_local uint64_t asked = 0;
    if (known < 0 || asked != forks()) {  // whoever forks is the main thread of the child
        nb::object threading = nb::module_::import_("threading");
        known = threading.attr("current_thread")().is(threading.attr("main_thread")());
        asked = forks();
    }
    return known == 1;
}

SignalWatch::SignalWatch() : main_(in_main_thread()), last_(std::chrono::steady_clock::now()) {}

bool SignalWatch::look() {
    work_ = 0;
    const auto now = std::chrono::steady_clock::now();
    if (!main_ || now - last_ < pause) return false;
    last_ = now;
    nb::gil_scoped_acquire acquire;
    return !PyErr_Occurred() && PyErr_CheckSignals() != 0;
}

}  // namespace onepass
