#include "core/buffer.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <utility>
#ifdef __linux__
#include <sys/mman.h>
#endif

namespace onepass {

// Larger tables are mostly zeros on pages that were never written; these pages should stay untouched.
constexpr size_t large = 1 << 20;

template <class T>
Zeroed<T>::Zeroed(const Zeroed& other) {
    *this = other;
}

template <class T>
Zeroed<T>& Zeroed<T>::operator=(const Zeroed& other) {
    if (this == &other) return *this;
    if (other.size_ > capacity_) {
        Zeroed larger;
        larger.allocate(other.size_, other.size_);
        *this = std::move(larger);
    }
    copy(other);
    if (other.size_ < size_) std::memset(data_ + other.size_, 0, (size_ - other.size_) * sizeof(T));
    size_ = other.size_;
    return *this;
}

// Copies the numbers of `other` into memory that is already allocated.
template <class T>
void Zeroed<T>::copy(const Zeroed& other) {
    constexpr size_t page = 4096;
    const size_t bytes = other.size_ * sizeof(T), step = bytes < large ? std::max<size_t>(bytes, 1) : page;
    char* to = reinterpret_cast<char*>(data_);
    const char* from = reinterpret_cast<const char*>(other.data_);
    for (size_t at = 0; at < bytes; at += step) {
        const size_t some = std::min(step, bytes - at);
        if (bytes < large || std::memcmp(to + at, from + at, some) != 0) std::memcpy(to + at, from + at, some);
    }
}

template <class T>
Zeroed<T>::Zeroed(Zeroed&& other) noexcept {
    *this = std::move(other);
}

template <class T>
Zeroed<T>& Zeroed<T>::operator=(Zeroed&& other) noexcept {
    std::swap(block_, other.block_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
    return *this;
}

template <class T>
Zeroed<T>::~Zeroed() {
    std::free(block_);
}

template <class T>
void Zeroed<T>::grow(size_t size) {
    if (size <= size_) return;
    if (size > capacity_) {
        // The first allocation is exact (a table of fixed size stays so); growth is geometric.
        const size_t capacity = capacity_ ? std::max(size, capacity_ + capacity_ / 2) : size;
        Zeroed bigger;
        bigger.allocate(capacity, size_);
        bigger.copy(*this);
        *this = std::move(bigger);
    }
    size_ = size;
}

template <class T>
void Zeroed<T>::allocate(size_t capacity, size_t written) {
    constexpr size_t line = 64;
    const size_t wanted = capacity * sizeof(T);
    size_t bytes = wanted + line;
    block_ = bytes < large ? std::malloc(bytes) : std::calloc(bytes, 1);
    if (!block_) throw std::bad_alloc();
    void* begin = block_;
    data_ = static_cast<T*>(std::align(line, wanted, begin, bytes));
    capacity_ = capacity;
    if (wanted + line < large) std::memset(data_ + written, 0, (capacity - written) * sizeof(T));
}

template <class T>
void Zeroed<T>::shrink(size_t size) {
    if (size >= size_) return;
    std::memset(data_ + size, 0, (size_ - size) * sizeof(T));
    size_ = size;
}

template <class T>
void Zeroed<T>::clear() {
    if (size_) std::memset(data_, 0, size_ * sizeof(T));
}

template <class T>
void Zeroed<T>::scatter() {
#if defined(__linux__) && defined(MADV_NOHUGEPAGE)
    constexpr uintptr_t page = 4096;
    const uintptr_t begin = (reinterpret_cast<uintptr_t>(data_) + page - 1) / page * page;
    const uintptr_t end = reinterpret_cast<uintptr_t>(data_ + capacity_) / page * page;
    if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_NOHUGEPAGE);  // advice: it may fail
#endif
}

template class Zeroed<double>;
template class Zeroed<uint32_t>;

}  // namespace onepass
