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
    if (pocketing) pocket.grow(d * stride);
    if (lazy) owed_then.grow(d);  // a weight of zero pays nothing, whatever it owes
    features = d;
}

void Weights::drop_features(size_t d) {
    if (d >= features) return;
    v.shrink(d * stride);
    z.shrink(d * stride);
    pocket.shrink(d * stride);
    owed_then.shrink(d);
    features = d;
}

// Row 0 gets -w/2, row 1 +w/2; a weight of zero stays +0.0 in both, as in rows that start at zero.
static double half_of(double w, size_t row) { return row == 0 ? 0.0 - 0.5 * w : 0.5 * w; }

static Buffer widened(const Buffer& old, size_t features, size_t rows, size_t stride, size_t new_stride) {
    Buffer wide;
    wide.grow(features * new_stride);
    for (size_t j = 0; j < features; ++j)
        for (size_t r = 0; r < std::max<size_t>(rows, 2); ++r)
            wide.data()[j * new_stride + r] = stride == 1 ? half_of(old.data()[j], r) : old.data()[j * stride + r];
    return wide;
}

static void widen(std::vector<double>& values, size_t classes) {
    if (values.size() == 1 && classes > 1) values = {half_of(values[0], 0), half_of(values[0], 1)};
    values.resize(classes, 0.0);
}

void Weights::set_rows(size_t classes) {
    if (classes <= (row_each ? rows * (stride > 1) : std::max<size_t>(rows, 2))) return;
    // Rows are padded to whole vectors of eight; a class that fits the padding is already there, as zeros.
    const size_t wanted = (classes + 7) / 8 * 8;
    if (stride == 1 || wanted > stride) {
        v = widened(v, features, rows, stride, wanted);
        if (averaging != Averaging::none) z = widened(z, features, rows, stride, wanted);
        if (pocketing) pocket = widened(pocket, features, rows, stride, wanted);
        if (stride == 1) ww *= 0.5;
        stride = wanted;
    }
    widen(bias, classes);
    widen(bias_sum, classes);
    widen(pocket_bias, classes);
    rows = classes;
}

void Weights::negate() {
    for (Buffer* buffer : {&v, &z, &pocket})
        for (size_t i = 0; i < buffer->size(); ++i) buffer->data()[i] = 0.0 - buffer->data()[i];
    for (double& b : bias) b = 0.0 - b;
    for (double& b : bias_sum) b = 0.0 - b;
    for (double& b : pocket_bias) b = 0.0 - b;
    for (double& c : votes.coefficients) c = 0.0 - c;
}

void Weights::anchor() {
    for (size_t i = 0; i < z.size(); ++i) z.data()[i] -= A * v.data()[i];
    z_peak += A * peak;
    A = 0.0;
}

void Weights::pay() {
    for (size_t j = 0; j < owed_then.size(); ++j) {
        const double gap = owed_now - owed_then.data()[j];
        owed_then.data()[j] = 0.0;
        if (gap == 0.0) continue;
        for (size_t r = 0; r < rows; ++r) {
            double& value = v.data()[j * stride + r];
            value = paid(value, gap);
        }
    }
    owed_now = 0.0;
}

void Weights::keep() {
    pocket = v;
    pocket_bias = bias;
    pocket_a = a;
}

void Weights::fold() {
    anchor();
    pay();
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

void Model::record_vote(const double* x, const int64_t* index, size_t n, const double* coefficients) {
    Votes& votes = w.votes;
    votes.value.insert(votes.value.end(), x, x + n);
    votes.index.insert(votes.index.end(), index, index + n);
    votes.ends.push_back(int64_t(votes.index.size()));
    votes.coefficients.insert(votes.coefficients.end(), coefficients, coefficients + w.rows);
    votes.coefficient_ends.push_back(int64_t(votes.coefficients.size()));
    votes.counts.push_back(1.0);
}

void Model::count_votes(const double* x, const int64_t* index, size_t n, double* out) const {
    thread_local std::vector<double> spread, scores;
    const Votes& votes = w.votes;
    if (spread.size() < w.features) spread.resize(w.features);
    for (size_t i = 0; i < n; ++i) spread[size_t(index[i])] = x[i];
    scores.assign(w.rows, 0.0);
    for (size_t r = 0; r < w.rows; ++r) out[r] = 0.0;
    for (size_t k = 0;; ++k) {
        if (w.rows == 1) {
            out[0] += scores[0] > 0.0 ? votes.counts[k] : -votes.counts[k];
        } else {
            size_t best = 0;
            for (size_t r = 1; r < w.rows; ++r)
                if (scores[r] > scores[best]) best = r;
            out[best] += votes.counts[k];
        }
        if (k == votes.ends.size()) break;
        double dot = constant * constant;
        for (size_t i = k ? size_t(votes.ends[k - 1]) : 0; i < size_t(votes.ends[k]); ++i)
            dot += votes.value[i] * spread[size_t(votes.index[i])];
        const size_t begin = k ? size_t(votes.coefficient_ends[k - 1]) : 0, end = size_t(votes.coefficient_ends[k]);
        if (end - begin == 1 && w.rows > 1) {  // an update from before the third class
            for (size_t r = 0; r < 2; ++r) scores[r] += half_of(votes.coefficients[begin], r) * dot;
        } else {
            for (size_t r = begin; r < end; ++r) scores[r - begin] += votes.coefficients[r] * dot;
        }
    }
    for (size_t i = 0; i < n; ++i) spread[size_t(index[i])] = 0.0;
}

double* Model::gathered(size_t size) const {
    thread_local std::vector<double> numbers;
    if (numbers.size() < size) numbers.resize(size);
    return numbers.data();
}

double* Model::scratch() const {
    thread_local std::vector<double> numbers;
    if (numbers.size() < w.stride) numbers.resize(w.stride);
    return numbers.data();
}

}  // namespace onepass
