#include "bind/signal_watch.hpp"

#include "bind/lock.hpp"

namespace onepass {

namespace nb = nanobind;

// Remembered for each thread. After a fork, the thread that forked is the main thread of the child, so Python is asked
// again.
static bool in_main_thread() {
    thread_local int is_main = -1;  // -1: unknown
    thread_local uint64_t forks_then = 0;
    if (is_main < 0 || forks_then != forks()) {
        nb::object threading = nb::module_::import_("threading");
        is_main = threading.attr("current_thread")().is(threading.attr("main_thread")());
        forks_then = forks();
    }
    return is_main == 1;
}

SignalWatch::SignalWatch() : main_(in_main_thread()), last_(std::chrono::steady_clock::now()) {}

bool SignalWatch::check() {
    work_ = 0;
    const auto now = std::chrono::steady_clock::now();
    if (!main_ || now - last_ < pause) return false;
    last_ = now;
    nb::gil_scoped_acquire acquire;
    return !PyErr_Occurred() && PyErr_CheckSignals() != 0;
}

}  // namespace onepass
