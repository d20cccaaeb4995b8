// Handles Ctrl-C and other signals while a loop runs without the interpreter lock: between two rows, about ten times a
// second.
#pragma once
#include <nanobind/nanobind.h>

#include <chrono>

namespace onepass {

class SignalWatch {
 public:
    SignalWatch();  // needs the interpreter lock

    // True if the handler of a signal has raised an exception, which is then Python's current one. `work`: how many
    // multiplications the loop has done since the last call, roughly. The rows before stay learned.
    bool interrupted(size_t work) {
        work_ += work;
        return work_ >= work_between_checks && check();
    }
    // The same whatever the work.
    bool check();

 private:
    static constexpr size_t work_between_checks = 1 << 18;  // 0.1 ms; a few ms if memory is slow
    static constexpr std::chrono::milliseconds pause{100};  // between two calls of Python's handlers

    bool main_;  // Python handles signals in its main thread only
    size_t work_ = 0;
    std::chrono::steady_clock::time_point last_;
};

}  // namespace onepass
