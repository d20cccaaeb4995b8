// L1 by laziness: a weight pays what it owes when its feature is met. Paying is worked out as the row is scored, and
// kept, so that a move of the row adds to what is left. Included once per instruction set.
#pragma once
#include "core/weights.hpp"
#include "loops/lanes.hpp"

namespace onepass::ONEPASS_ISA {

// Weights::paid and Weights::raised, several at a time and with the same bits.
struct Debt {
    double owed, threshold;
    int64_t flag;
    explicit Debt(const Weights& w) : owed(w.owed), threshold(w.threshold), flag(w.flag()) {}

    template <class Wide>
    Wide paid(Wide stored) const {
        using Bits = decltype(stored > stored);
        const Bits sign = Bits(stored) & INT64_MIN;
        const Wide less = Wide(Bits(stored) ^ sign) - owed;
        const Wide left = Wide(Bits(less > 0.0 ? less : Wide{}) | sign);
        return (Bits(stored) & flag) != 0 ? stored : left;
    }
    template <class Wide>
    Wide raised(Wide value) const {
        using Bits = decltype(value > value);
        const Bits sign = Bits(value) & INT64_MIN;
        const Wide size = Wide(Bits(value) ^ sign);
        const Wide higher = Wide((Bits(size + owed) & ~flag) | sign);
        return size > threshold ? Wide(Bits(value) | 1) : higher;
    }
};

// Weights as they are after paying, in place of the stored ones, and kept side by side.
template <class Where>
struct Paid {
    Where stored;
    Debt debt;
    double* kept;

    Four keep(size_t i, Four stored_ones) const {
        const Four value = debt.paid(stored_ones);
        std::memcpy(kept + i, &value, sizeof value);
        return value;
    }
    friend Four four_of(const Paid& at, size_t i) { return at.keep(i, four_of(at.stored, i)); }
    friend Four four_of(const Paid& at, size_t i, size_t count) { return at.keep(i, four_of(at.stored, i, count)); }
};

// Calls use with the paid weights of a row; `kept` is where they stay.
template <class Row, class Use>
inline auto with_paid(const Weights& w, const Row& row, double* kept, const Use& use) {
    auto paid = [&](auto stored) { return use(Paid<decltype(stored)>{stored, Debt(w), kept}); };
    return w.pitch == 1 ? paid(row.where(w.cells.data(), Adjacent())) : paid(row.where(w.cells.data(), w.pitch));
}

// The same for class rows, feature after feature.
template <class Row>
inline const double* paid_side_by_side(const Weights& w, const Row& row, double* kept) {
    if (w.stride == 1) {
        with_paid(w, row, kept, [&](const auto& weights) {
            for (size_t i = 0; i + 4 <= row.n; i += 4) four_of(weights, i);
            if (row.n % 4) four_of(weights, row.n - row.n % 4, row.n % 4);
        });
        return kept;
    }
    const Debt debt(w);
    for (size_t i = 0; i < row.n; ++i)
        for (size_t r = 0; r < w.stride; r += 8) {
            const Eight value = debt.paid(load(w.v_of(row.column(i)) + r));
            std::memcpy(kept + i * w.stride + r, &value, sizeof value);
        }
    return kept;
}

// v = kept + c * x, where `kept` is what a row's weights are after paying.
template <class Row>
inline void add_to_paid(Weights& w, const Row& row, const double* __restrict kept, double c) {
    const Debt debt(w);
    double* __restrict v = w.cells.data();
    const size_t pitch = w.pitch;
    size_t i = 0;
    for (; i + 4 <= row.n; i += 4) {
        const Four moved = debt.raised(load_four(kept + i) + c * load_four(row.x + i));
        for (size_t l = 0; l < 4; ++l) v[row.column(i + l) * pitch] = moved[l];
    }
    for (; i < row.n; ++i) v[row.column(i) * pitch] = w.raised(kept[i] + c * double(row.x[i]));
}

// The same for any number of class rows, from the stored weights. Those that do not move are left as they are.
template <class Row>
inline void pay_and_add(Weights& w, const Row& row, const double* coefficients, double over) {
    for (size_t i = 0; i < row.n; ++i) {
        double* v = w.v_of(row.column(i));
        const double x = over * double(row.x[i]);
        for (size_t r = 0; r < w.rows; ++r)
            if (coefficients[r] != 0.0) v[r] = w.raised(w.paid(v[r]) + coefficients[r] * x);
    }
}

}  // namespace onepass::ONEPASS_ISA
