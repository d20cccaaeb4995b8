#include "parse/growing_array.hpp"

#include <pthread.h>

#include <cstdlib>
#include <mutex>
#include <new>
#include <vector>

#include "parse/names.hpp"

namespace onepass {

namespace {

constexpr size_t sizes = 40, most_spare = size_t(64) << 20;  // bytes
std::mutex spare_lock;
// By the exponent of their size. Never destroyed: arrays may live longer than static objects.
std::vector<void*>* const spare = new std::vector<void*>[sizes];
size_t spare_bytes = 0;

// A forked child has none of the parsing threads: a lock that one of them holds would never be released there.
[[maybe_unused]] const int at_fork =
    pthread_atfork([] { spare_lock.lock(), names_lock.lock(); }, [] { names_lock.unlock(), spare_lock.unlock(); },
                   [] { names_lock.unlock(), spare_lock.unlock(); });

}  // namespace

void* acquire_memory(size_t bytes) {
    const size_t exponent = size_t(__builtin_ctzll(bytes));
    {
        std::lock_guard guard(spare_lock);
        if (exponent < sizes && !spare[exponent].empty()) {
            void* memory = spare[exponent].back();
            spare[exponent].pop_back();
            spare_bytes -= bytes;
            return memory;
        }
    }
    void* memory = std::malloc(bytes);
    if (!memory) throw std::bad_alloc();
    return memory;
}

void release_memory(void* memory, size_t bytes) noexcept {
    if (!memory) return;
    const size_t exponent = size_t(__builtin_ctzll(bytes));
    {
        std::lock_guard guard(spare_lock);
        if (exponent < sizes && spare_bytes + bytes <= most_spare) {
            try {
                spare[exponent].push_back(memory);
                spare_bytes += bytes;
                return;
            } catch (const std::bad_alloc&) {
            }
        }
    }
    std::free(memory);
}

}  // namespace onepass
