#include "core/updates.hpp"

namespace onepass {

void Updates::push(const double* x, const int64_t* at, size_t n, const double* of_outputs, size_t outputs) {
    value.insert(value.end(), x, x + n);
    index.insert(index.end(), at, at + n);
    ends.push_back(int64_t(index.size()));
    coefficients.insert(coefficients.end(), of_outputs, of_outputs + outputs);
    coefficient_ends.push_back(int64_t(coefficients.size()));
}

void Updates::coefficients_of(size_t k, size_t outputs, double* out) const {
    const size_t begin = k ? size_t(coefficient_ends[k - 1]) : 0, end = size_t(coefficient_ends[k]);
    for (size_t r = 0; r < outputs; ++r) {
        if (end - begin == 1 && outputs > 1) out[r] = r < 2 ? half_of(coefficients[begin], r) : 0.0;
        else out[r] = r < end - begin ? coefficients[begin + r] : 0.0;
    }
}

void Updates::negate() {
    for (double& c : coefficients) c = 0.0 - c;
}

void MiniBatch::clear() {
    rounds = reach = 0.0;
    moves = false;
    scale = decay = shrink = 1.0;
    soft = 0.0;
    updates = Updates();
}

}  // namespace onepass
