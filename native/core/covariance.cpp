#include "core/covariance.hpp"

#include <algorithm>

namespace onepass {

static void pad(Buffer& triangle, size_t from, size_t to, double start) {
    triangle.grow(Covariance::row_at(to));
    for (size_t i = from; i < to; ++i) triangle.data()[Covariance::entry(i)] = start;
}

// The entry of the diagonal for a weight that was never learned.
static double entry_at_start(const Covariance& sigma) {
    return sigma.form == Form::chol ? 1.0 / std::sqrt(sigma.start) : sigma.start;
}

void Covariance::begin() {
    if (!full) return;
    triangle.resize(1);
    size = 0;
    set_features(0);
}

void Covariance::set_features(size_t features) {
    if (!full || features + constants <= size) return;
    for (Buffer& each : triangle) pad(each, size, features + constants, entry_at_start(*this));
    registered = size = features + constants;
}

void Covariance::drop_features(size_t features) {
    if (!full || features + constants >= size) return;
    size = features + constants;
    registered = std::min(registered, size);
    for (Buffer& each : triangle) each.shrink(row_at(size));
}

// Both outputs of the first two classes get the covariance of the one output; a new one starts anew.
void Covariance::set_outputs(size_t outputs) {
    if (!full || shared || outputs < 2) return;
    if (triangle.size() == 1) triangle.push_back(triangle[0]);
    bounded = 0;
    while (triangle.size() < outputs) {
        triangle.emplace_back();
        pad(triangle.back(), 0, size, entry_at_start(*this));
    }
}

void Covariance::drop_outputs(size_t outputs) {
    if (full && !shared && triangle.size() > outputs) triangle.resize(outputs);
}

void Covariance::pack(size_t output, double* entries) const {
    const double* from = of(output);
    for (size_t i = 0; i < size; from += width(i++)) entries = std::copy(from, from + i + 1, entries);
}

void Covariance::unpack(size_t output, const double* entries) {
    double* to = of(output);
    for (size_t i = 0; i < size; to += width(i++), entries += i) std::copy(entries, entries + i + 1, to);
}

bool Covariance::positive_definite() const {
    if (form == Form::chol) return true;  // for any factor
    std::vector<double> factor(row_at(size));
    for (const Buffer& each : triangle) {
        std::copy(each.data(), each.data() + row_at(size), factor.begin());
        for (size_t i = 0; i < size; ++i) {
            double* row = factor.data() + row_at(i);
            for (size_t j = 0; j <= i; ++j) {
                const double* above = factor.data() + row_at(j);
                double sum = row[j];
                for (size_t k = 0; k < j; ++k) sum -= row[k] * above[k];
                if (j < i) row[j] = sum / above[j];
                else if (!(sum > 0.0)) return false;
                else row[j] = std::sqrt(sum);
            }
        }
    }
    return true;
}

double* covariance_room(size_t size) {
    thread_local std::vector<double> numbers;
    if (numbers.size() < size) numbers.resize(size);
    return numbers.data();
}

}  // namespace onepass
