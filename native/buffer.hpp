#pragma once
#include <cmath>
#include <cstddef>

namespace onepass {

// Zeroed doubles. calloc leaves untouched pages of a large hash table to the operating system.
class Buffer {
 public:
    Buffer() = default;
    Buffer(const Buffer& other);
    Buffer& operator=(const Buffer& other);
    Buffer(Buffer&& other) noexcept;
    Buffer& operator=(Buffer&& other) noexcept;
    ~Buffer();

    void grow(size_t size);  // keeps what is there, zeroes what is new
    void shrink(size_t size);
    void clear();
    double* data() { return data_; }
    const double* data() const { return data_; }
    size_t size() const { return size_; }

 private:
    double* data_ = nullptr;
    size_t size_ = 0, capacity_ = 0;
};

}  // namespace onepass
