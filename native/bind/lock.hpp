// One lock for each learner: whoever uses it holds it, again and again if need be, until the outermost use is done.
//
// It is short to take where nobody else holds it (one exchange), waits in the order of arrival without the
// interpreter's lock, lets Ctrl-C through, and knows in a forked process when its holder is gone.
#pragma once
#include <nanobind/nanobind.h>

#include <atomic>
#include <cstdint>

namespace onepass {

inline constinit thread_local uint64_t thread_number = 0;
uint64_t number_thread();
// Of this thread alone, in this process and in those forked from it; the one that forks keeps its number.
inline uint64_t this_thread() { return thread_number != 0 ? thread_number : number_thread(); }

// How many forks lie between this process and the first one.
uint64_t forks();

class Lock {
 public:
    Lock();
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

    // With the interpreter's lock. Raises what a handler of a signal raises while waiting, and ForkedError where the
    // holder is a thread that this process does not have.
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
    uint32_t depth_ = 0;  // how often the holder has taken it again
};

void bind_lock(nanobind::module_& module);

}  // namespace onepass
