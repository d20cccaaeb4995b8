// Arrays that grow without being zeroed, in memory that is used again.
#pragma once
#include <cstddef>
#include <cstring>

namespace onepass {

// Memory of so many bytes, a power of two. Released memory is stored for the next caller, up to a limit: new pages cost
// the system more time than parsing into them.
void* acquire_memory(size_t bytes);
void release_memory(void* memory, size_t bytes) noexcept;

template <class T>
class GrowingArray {
 public:
    GrowingArray() = default;
    GrowingArray(const GrowingArray&) = delete;
    GrowingArray& operator=(const GrowingArray&) = delete;
    ~GrowingArray() { release_memory(data_, capacity_ * sizeof(T)); }
    size_t size() const { return size_; }
    T* data() const { return data_; }
    // Space for `more` elements behind the last one; `commit` makes some of them part of the array.
    T* reserve(size_t more) {
        if (size_ + more > capacity_) grow(size_ + more);
        return data_ + size_;
    }
    void commit(size_t more) { size_ += more; }
    void release_if_empty() {
        if (size_ > 0) return;
        release_memory(data_, capacity_ * sizeof(T));
        data_ = nullptr;
        capacity_ = 0;
    }
    void clear() { size_ = 0; }
    void remove_front(size_t count) {
        size_ -= count;
        if (count > 0 && size_ > 0) std::memmove(data_, data_ + count, size_ * sizeof(T));
    }
    void push(T value) {
        *reserve(1) = value;
        ++size_;
    }

 private:
    void grow(size_t least) {
        size_t capacity = 512 / sizeof(T);
        while (capacity < least) capacity *= 2;
        T* larger = static_cast<T*>(acquire_memory(capacity * sizeof(T)));
        if (size_) std::memcpy(larger, data_, size_ * sizeof(T));
        release_memory(data_, capacity_ * sizeof(T));
        data_ = larger;
        capacity_ = capacity;
    }
    T* data_ = nullptr;
    size_t size_ = 0, capacity_ = 0;
};

}  // namespace onepass
