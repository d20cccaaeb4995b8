#pragma once
#include <cmath>
#include <cstddef>

namespace onepass {

// Zeroed numbers, from the beginning of a cache line on. calloc leaves untouched pages of a large hash table to the
// operating system.
template <class T>
class Zeroed {
 public:
    Zeroed() = default;
    Zeroed(const Zeroed& other);
    Zeroed& operator=(const Zeroed& other);
    Zeroed(Zeroed&& other) noexcept;
    Zeroed& operator=(Zeroed&& other) noexcept;
    ~Zeroed();

    void grow(size_t size);  // keeps what is there, zeroes what is new
    void shrink(size_t size);
    void clear();
    void scatter();  // what will be touched lies far apart: the system should give small pages, not huge ones
    T* data() { return data_; }
    const T* data() const { return data_; }
    size_t size() const { return size_; }

 private:
    // Of an empty one, at the beginning of a cache line; the first `written` will be copied, the others are zero.
    void allocate(size_t capacity, size_t written);
    void copy(const Zeroed& other);
    void* block_ = nullptr;  // as it was allocated
    T* data_ = nullptr;
    size_t size_ = 0, capacity_ = 0;
};
using Buffer = Zeroed<double>;

}  // namespace onepass
