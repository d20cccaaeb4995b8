// The lock of a learner. A thread that holds it may acquire it again; it is free after the last release.
//
// A free lock costs one atomic exchange. Threads wait in the order of their arrival, without the interpreter lock, and
// can be interrupted by Ctrl-C. In a forked process, a lock whose holder was another thread is refused.
#pragma once
#include <nanobind/nanobind.h>

#include <atomic>
#include <cstdint>

namespace onepass {

inline constinit thread_local uint64_t thread_number = 0;
uint64_t number_thread();
// The number of this thread, which no other thread has, neither in this process nor in its forks. The thread that
// forks keeps its number in the child.
inline uint64_t this_thread() { return thread_number != 0 ? thread_number : number_thread(); }

// How many times this process and its ancestors were forked.
uint64_t forks();

class Lock {
 public:
    Lock();
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

    // Needs the interpreter lock. Raises the exception of a signal handler that runs while it waits, and ForkedError if
    // the holder is a thread that this process does not have.
    void acquire() {
        const uint64_t me = this_thread();
        uint64_t nobody = 0;
        if (owner_.load(std::memory_order_relaxed) == me) ++depth_;
        else if (waiting_.load(std::memory_order_relaxed) != 0 || !owner_.compare_exchange_strong(nobody, me)) wait(me);
    }
    void release() {
        if (depth_ > 0) {
            --depth_;
            return;
        }
        owner_.store(0);
        if (waiting_.load() != 0) wake();
    }
    bool mine() const { return owner_.load(std::memory_order_relaxed) == this_thread(); }

    struct Held {
        Lock& lock;
        explicit Held(Lock& lock) : lock(lock) { lock.acquire(); }
        Held(const Held&) = delete;
        ~Held() { lock.release(); }
    };

 private:
    void wait(uint64_t me);
    void wake();

    std::atomic<uint64_t> owner_{0};
    std::atomic<uint32_t> waiting_{0};
    uint32_t depth_ = 0;  // how many times the holder has acquired it again
};

// One call of a learner: holds the lock, and refuses a call from inside another one by an error with this message. A
// rule or kernel in Python could make such a call, and it would see a learner that is half updated.
class OneCall {
 public:
    OneCall(Lock& lock, bool& running, const char* message) : lock_(lock), running_(running) {
        lock_.acquire();
        if (running_) refuse(message);
        running_ = true;
    }
    OneCall(const OneCall&) = delete;
    ~OneCall() {
        running_ = false;
        lock_.release();
    }

 private:
    [[noreturn]] void refuse(const char* message);

    Lock& lock_;
    bool& running_;
};

// Runs `work` without the interpreter lock, unless it calls Python.
template <class Work>
void run_unlocked(bool calls_python, const Work& work) {
    if (calls_python) return work();
    nanobind::gil_scoped_release release;
    work();
}

void bind_lock(nanobind::module_& module);

}  // namespace onepass
