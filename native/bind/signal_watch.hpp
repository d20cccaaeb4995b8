// Ctrl-C while rows are learned or scored without the interpreter: looked for between rows, some ten times a second.
#pragma once
#include <nanobind/nanobind.h>

#include <chrono>

namespace onepass {

class SignalWatch {
 public:
    SignalWatch();  // with the interpreter's lock

    // After so many more multiplications, roughly: has a handler of a signal raised? Its exception is then set. The
    // rows so far stay learned.
    bool interrupted(size_t work) {
        work_ += work;
        return work_ >= enough && look();
    }
    // The same, without counting.
    bool look();

 private:
    static constexpr size_t enough = 1 << 18;  // a tenth of a millisecond, or a few where memory is slow
    static constexpr std::chrono::milliseconds pause{100};

    bool main_;  // signals are for the main thread
    size_t work_ = 0;
    std::chrono::steady_clock::time_point last_;
};

}  // namespace onepass
