// L1 by laziness: a feature pays what it owes when it is met. Paying is worked out as the row is scored, and kept, so
// that a move of the row adds to what was paid. Included once per instruction set.
#pragma once
#include "lanes.hpp"
#include "weights.hpp"

namespace onepass::ONEPASS_ISA {

typedef uint64_t EightBits __attribute__((vector_size(64)));

// Weights::paid, eight at a time.
inline Eight paid(Eight value, Eight gap, double threshold) {
    const EightBits sign = EightBits(value) & (uint64_t(1) << 63);
    const Eight size = Eight(EightBits(value) ^ sign), less = size - gap;
    const Eight kept = Eight(EightBits(less > 0.0 ? less : Eight{}) | sign);
    return size > threshold ? value : kept;
}

// Weights as they are after paying, in place of the stored ones; where they are to be kept, `kept` gets them side by
// side.
template <bool keeps, class Where>
struct Paid {
    Where v, then;
    double now, threshold;
    double* kept;

    Eight keep(size_t i, Eight value) const {
        if constexpr (keeps) std::memcpy(kept + i, &value, sizeof value);
        return value;
    }
    Eight eight(size_t i) const { return keep(i, paid(v.eight(i), now - then.eight(i), threshold)); }
#ifdef __AVX512F__
    Eight eight(size_t i, __mmask8 mask) const {
        return keep(i, paid(v.eight(i, mask), now - then.eight(i, mask), threshold));
    }
#endif
    double at(size_t i) const {
        const double size = std::abs(v.at(i)), less = size - (now - then.at(i));
        const double value = size > threshold ? v.at(i) : std::copysign(less > 0.0 ? less : 0.0, v.at(i));
        if constexpr (keeps) kept[i] = value;
        return value;
    }
};

template <bool keeps, class Row>
inline auto paid_weights(const Weights& w, const Row& row, double* kept) {
    const auto v = row.where(w.v.data());
    return Paid<keeps, decltype(v)>{v, row.where(w.owed_then.data()), w.owed_now, w.threshold, kept};
}

// The same for class rows, feature after feature.
template <class Row>
inline const double* paid_rows(const Weights& w, const Row& row, double* kept) {
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
