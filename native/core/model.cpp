#include "core/model.hpp"

#include <algorithm>
#include <cmath>

namespace onepass {

// Is there more to a weight than v and z?
static bool keeps_more(const Weights& w) { return w.pocket.on || w.votes.on || !w.planes.kinds.empty() || w.sigma.on; }

void Undo::begin(const Model& model) {
    const Weights& w = model.w;
    all = false;
    index_.clear();
    v_.clear();
    z_.clear();
    const double numbers[] = {
        w.a,       w.average.A, w.bias[0], w.average.rounds, w.l1.pending, w.norm.ww, w.norm.since_recomputed,
        w.peaks.v, w.peaks.z};
    std::copy(std::begin(numbers), std::end(numbers), weights_);
    std::copy(model.state, model.state + model.slots, state_);
    counters_[0] = model.t, counters_[1] = model.k, counters_[2] = model.skipped_zero;
    if (w.average.on()) bias_sum_ = w.average.bias_sum[0];
    if (w.batch.on()) batch_ = w.batch;
    if (keeps_more(w)) readout_ = w;
}

void Undo::restore(Model& model) {
    Weights& w = model.w;
    if (all) {
        std::copy(all_cells_.data(), all_cells_.data() + all_cells_.size(), w.cells.data());
        std::copy(all_z_.data(), all_z_.data() + all_z_.size(), w.average.z.data());
    }
    for (size_t i = index_.size(); i-- > 0;) {  // a weight written twice was put aside twice
        w.v_of(size_t(index_[i]))[0] = v_[i];
        if (w.average.z.size()) w.average.z.data()[index_[i]] = z_[i];
    }
    const double* from = weights_;
    for (double* number : {&w.a, &w.average.A, &w.bias[0], &w.average.rounds, &w.l1.pending, &w.norm.ww,
                           &w.norm.since_recomputed, &w.peaks.v, &w.peaks.z})
        *number = *from++;
    std::copy(state_, state_ + model.slots, model.state);
    model.t = counters_[0], model.k = counters_[1], model.skipped_zero = counters_[2];
    if (w.average.on()) w.average.bias_sum[0] = bias_sum_;
    if (w.batch.on()) w.batch = batch_;
    if (keeps_more(w)) w = readout_;
}

Undo::Room Undo::room_for(size_t n, bool averaging) {
    const size_t from = index_.size();
    index_.resize(from + n);
    v_.resize(from + n);
    if (averaging) z_.resize(from + n);
    return {index_.data() + from, v_.data() + from, averaging ? z_.data() + from : nullptr};
}

void Undo::put_aside(const Weights& w) {
    if (all) return;
    all = true;
    all_cells_.shrink(w.cells.size());
    all_cells_.grow(w.cells.size());
    std::copy(w.cells.data(), w.cells.data() + w.cells.size(), all_cells_.data());
    all_z_.shrink(w.average.z.size());
    all_z_.grow(w.average.z.size());
    std::copy(w.average.z.data(), w.average.z.data() + w.average.z.size(), all_z_.data());
}

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
    const bool nobody = updates.count() == 0 && votes.counts[0] == 0.0;  // has voted yet: w = 0 stands alone
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
