// L1 by laziness: a feature pays what it owes when it is met. Paying is worked out as the row is scored, and kept, so
// that a move of the row adds to what was paid. Included once per instruction set.
#pragma once
#include "lanes.hpp"
#include "weights.hpp"

namespace onepass::ONEPASS_ISA {

// Weights::paid, several at a time.
template <class Wide>
inline Wide paid(Wide value, Wide gap, double threshold) {
    using Bits = decltype(value > value);
    const Bits sign = Bits(value) & INT64_MIN;
    const Wide size = Wide(Bits(value) ^ sign), less = size - gap;
    const Wide kept = Wide(Bits(less > 0.0 ? less : Wide{}) | sign);
    return size > threshold ? value : kept;
}

// Weights as they are after paying, in place of the stored ones, and kept side by side.
template <class Where>
struct Paid {
    Where v, then;
    double now, threshold;
    double* kept;

    template <class... Count>
    Four four(size_t i, Count... count) const {
        const Four value = paid(v.four(i, count...), now - then.four(i, count...), threshold);
        std::memcpy(kept + i, &value, sizeof value);
        return value;
    }
};

template <class Row>
inline auto paid_weights(const Weights& w, const Row& row, double* kept) {
    const auto v = row.where(w.v.data());
    return Paid<decltype(v)>{v, row.where(w.owed_then.data()), w.owed_now, w.threshold, kept};
}

// The same for class rows, feature after feature.
template <class Row>
inline const double* paid_side_by_side(const Weights& w, const Row& row, double* kept) {
    if (w.stride == 1) {
        const auto weights = paid_weights(w, row, kept);
        for (size_t i = 0; i + 4 <= row.n; i += 4) weights.four(i);
        if (row.n % 4) weights.four(row.n - row.n % 4, row.n % 4);
        return kept;
    }
    for (size_t i = 0; i < row.n; ++i) {
        const size_t j = row.column(i);
        const Eight gap = Eight{} + (w.owed_now - w.owed_then.data()[j]);
        for (size_t r = 0; r < w.stride; r += 8) {
            const Eight value = paid(load(w.v.data() + j * w.stride + r), gap, w.threshold);
            std::memcpy(kept + i * w.stride + r, &value, sizeof value);
        }
    }
    return kept;
}

// Settles what the features of a row owe, before they are moved.
template <class Row>
inline void settle(Weights& w, const Row& row) {
    double *v = w.v.data(), *then = w.owed_then.data();
    for (size_t i = 0; i < row.n; ++i) {
        const size_t j = row.column(i);
        const double gap = w.owed_now - then[j];
        if (gap == 0.0) continue;
        then[j] = w.owed_now;
        for (size_t r = 0; r < w.rows; ++r) v[j * w.stride + r] = w.paid(v[j * w.stride + r], gap);
    }
}

// The features of a row have paid: v = kept, and v = kept + c * x for one row of weights.
template <class Row>
inline void settle_and_add(Weights& w, const Row& row, const double* __restrict kept, double c) {
    double* __restrict v = w.v.data(), * __restrict then = w.owed_then.data();
    const double now = w.owed_now;
#pragma GCC unroll 8
    for (size_t i = 0; i < row.n; ++i) {
        const size_t j = row.column(i);
        v[j] = kept[i] + c * double(row.x[i]);
        then[j] = now;
    }
}
template <class Row>
inline void settle_rows(Weights& w, const Row& row, const double* kept) {
    for (size_t i = 0; i < row.n; ++i) {
        const size_t j = row.column(i);
        std::memcpy(w.v.data() + j * w.stride, kept + i * w.stride, w.stride * sizeof(double));
        w.owed_then.data()[j] = w.owed_now;
    }
}

}  // namespace onepass::ONEPASS_ISA
