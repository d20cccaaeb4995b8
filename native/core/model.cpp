#include "core/model.hpp"

#include <algorithm>
#include <cmath>

namespace onepass {

void Model::record_vote(const double* x, const int64_t* index, size_t n, const double* coefficients) {
    w.votes.updates.push(x, index, n, coefficients, w.outputs);
    w.votes.counts.push_back(1.0);
}

void Model::count_votes(const double* x, const int64_t* index, size_t n, double base, double* out) const {
    thread_local std::vector<double> spread, scores, coefficients;
    const Votes& votes = w.votes;
    const Updates& updates = votes.updates;
    if (spread.size() < w.features) spread.resize(w.features);
    for (size_t i = 0; i < n; ++i) spread[size_t(index[i])] = x[i];
    scores.assign(w.outputs, base);
    coefficients.resize(w.outputs);
    const bool nobody = updates.count() == 0 && votes.counts[0] == 0.0;  // no voter survived a round yet
    for (size_t r = 0; r < w.outputs; ++r) out[r] = nobody ? base : 0.0;
    for (size_t k = 0; !nobody; ++k) {
        if (w.outputs == 1) {
            out[0] += scores[0] > 0.0 ? votes.counts[k] : -votes.counts[k];
        } else {
            size_t best = 0;
            for (size_t r = 1; r < w.outputs; ++r)
                if (scores[r] > scores[best]) best = r;
            out[best] += votes.counts[k];
        }
        if (k == updates.count()) break;
        double dot = constant * constant;
        for (size_t i = updates.begin(k); i < size_t(updates.ends[k]); ++i)
            dot += updates.value[i] * spread[size_t(updates.index[i])];
        updates.coefficients_of(k, w.outputs, coefficients.data());
        for (size_t r = 0; r < w.outputs; ++r) scores[r] += coefficients[r] * dot;
    }
    for (size_t i = 0; i < n; ++i) spread[size_t(index[i])] = 0.0;
}

void Model::room_along(size_t size) {
    const size_t own = w.sigma.shared ? 1 : w.outputs, all = own * (size + 1) + 16;
    if (along.z.size() < all) {
        along.z.resize(all);
        along.made.resize(all);
    }
    if (along.x.size() < size + 16) along.x.resize(size + 16);
}

double* Model::gathered(size_t size) const {
    thread_local std::vector<double> numbers;
    if (numbers.size() < size + 16)
        numbers.resize(size + 16);  // the last elements of a row are written as whole vectors
    return numbers.data();
}

double* Model::linked_bias() const {
    thread_local std::vector<double> numbers;
    if (numbers.size() < w.outputs) numbers.resize(w.outputs);
    return numbers.data();
}

double* Model::scratch() const {
    thread_local std::vector<double> numbers;
    if (numbers.size() < w.stride) numbers.resize(w.stride);
    return numbers.data();
}

}  // namespace onepass
