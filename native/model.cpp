#include "model.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "weights.hpp"

namespace onepass {

Buffer::Buffer(const Buffer& other) { *this = other; }

Buffer& Buffer::operator=(const Buffer& other) {
    if (this == &other) return *this;
    Buffer copy;
    copy.grow(other.size_);
    if (other.size_) std::memcpy(copy.data_, other.data_, other.size_ * sizeof(double));
    *this = std::move(copy);
    return *this;
}

Buffer::Buffer(Buffer&& other) noexcept { *this = std::move(other); }

Buffer& Buffer::operator=(Buffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
    return *this;
}

Buffer::~Buffer() { std::free(data_); }

void Buffer::grow(size_t size) {
    if (size <= size_) return;
    if (size > capacity_) {
        // The first allocation is exact (a table of fixed size stays so); growth is geometric.
        const size_t capacity = capacity_ ? std::max(size, capacity_ + capacity_ / 2) : size;
        double* bigger = static_cast<double*>(std::calloc(capacity, sizeof(double)));
        if (!bigger) throw std::bad_alloc();
        if (size_) std::memcpy(bigger, data_, size_ * sizeof(double));
        std::free(data_);
        data_ = bigger;
        capacity_ = capacity;
    }
    size_ = size;
}

void Buffer::shrink(size_t size) {
    if (size >= size_) return;
    std::memset(data_ + size, 0, (size_ - size) * sizeof(double));
    size_ = size;
}

void Buffer::clear() {
    if (size_) std::memset(data_, 0, size_ * sizeof(double));
}

void Weights::set_features(size_t d) {
    if (d <= features) return;
    v.grow(d * stride);
    if (averaging != Averaging::none) z.grow(d * stride);
    features = d;
}

void Weights::drop_features(size_t d) {
    if (d >= features) return;
    v.shrink(d * stride);
    z.shrink(d * stride);
    features = d;
}

// Row 0 gets -w/2, row 1 +w/2; a weight of zero stays +0.0 in both, as in rows that start at zero.
static double half_of(double w, size_t row) { return row == 0 ? 0.0 - 0.5 * w : 0.5 * w; }

static Buffer widened(const Buffer& old, size_t features, size_t rows, size_t stride, size_t new_stride) {
    Buffer wide;
    wide.grow(features * new_stride);
    for (size_t j = 0; j < features; ++j)
        for (size_t r = 0; r < std::max<size_t>(rows, 2); ++r)
            wide.data()[j * new_stride + r] = rows == 1 ? half_of(old.data()[j], r) : old.data()[j * stride + r];
    return wide;
}

static void widen(std::vector<double>& values, size_t classes) {
    if (values.size() == 1) values = {half_of(values[0], 0), half_of(values[0], 1)};
    values.resize(classes, 0.0);
}

void Weights::set_rows(size_t classes) {
    if (classes <= std::max<size_t>(rows, 2)) return;
    // Rows are padded to whole vectors of eight; a class that fits the padding is already there, as zeros.
    const size_t wanted = (classes + 7) / 8 * 8;
    if (rows == 1 || wanted > stride) {
        v = widened(v, features, rows, stride, wanted);
        if (averaging != Averaging::none) z = widened(z, features, rows, stride, wanted);
        if (rows == 1) ww *= 0.5;
        stride = wanted;
    }
    widen(bias, classes);
    widen(bias_sum, classes);
    rows = classes;
}

void Weights::negate() {
    for (Buffer* buffer : {&v, &z})
        for (size_t i = 0; i < buffer->size(); ++i) buffer->data()[i] = 0.0 - buffer->data()[i];
    for (double& b : bias) b = 0.0 - b;
    for (double& b : bias_sum) b = 0.0 - b;
}

void Weights::anchor() {
    for (size_t i = 0; i < z.size(); ++i) z.data()[i] -= A * v.data()[i];
    z_peak += A * peak;
    A = 0.0;
}

void Weights::fold() {
    anchor();
    for (size_t i = 0; i < v.size(); ++i) v.data()[i] *= a;
    peak *= std::abs(a);
    a = 1.0;
}

void Weights::clear() {
    anchor();
    v.clear();
    a = 1.0;
    ww = peak = 0.0;
}

void Weights::recompute_norm() {
    double sum = 0.0;
    for (size_t i = 0; i < v.size(); ++i) sum += v.data()[i] * v.data()[i];
    ww = a * a * sum;
    since_recomputed = 0.0;
}

void Weights::recompute_peaks() {
    peak = z_peak = 0.0;
    for (size_t i = 0; i < v.size(); ++i) peak = std::max(peak, std::abs(v.data()[i]));
    for (size_t i = 0; i < z.size(); ++i) z_peak = std::max(z_peak, std::abs(z.data()[i]));
}

double* Model::scratch() const {
    thread_local std::vector<double> numbers;
    if (numbers.size() < w.stride) numbers.resize(w.stride);
    return numbers.data();
}

}  // namespace onepass
