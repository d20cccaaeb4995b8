#pragma once
#include <cmath>
#include <cstddef>

namespace onepass {

// An array of numbers that starts as zeros and begins at a cache line. calloc leaves the untouched pages of a large
// hash table to the operating system.
template <class T>
class Zeroed {
 public:
    Zeroed() = default;
    Zeroed(const Zeroed& other);
    Zeroed& operator=(const Zeroed& other);
    Zeroed(Zeroed&& other) noexcept;
    Zeroed& operator=(Zeroed&& other) noexcept;
    ~Zeroed();

    void grow(size_t size);  // new numbers are 0
    void shrink(size_t size);
    void clear();
    void scatter();  // advises the system to use small pages: few numbers will be written, far from each other
    T* data() { return data_; }
    const T* data() const { return data_; }
    size_t size() const { return size_; }

 private:
    // Memory for an empty array; the caller will write the first `written` numbers, the others are 0.
    void allocate(size_t capacity, size_t written);
    void copy(const Zeroed& other);
    void* block_ = nullptr;  // as it was allocated
    T* data_ = nullptr;
    size_t size_ = 0, capacity_ = 0;
};
using Buffer = Zeroed<double>;

}  // namespace onepass
