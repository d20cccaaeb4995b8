// L1 that is applied lazily (core/lazy_l1.hpp): the pending L1 of a weight is applied while the scores of an example
// are computed. The results are saved, so that an update of the same example can add to them. Included once per
// instruction set.
#pragma once
#include "core/weights.hpp"
#include "loops/lanes.hpp"

namespace onepass::ONEPASS_ISA {

// LazyL1::decode and LazyL1::encode for several weights at a time, with the same bits.
struct PendingL1 {
    double pending, threshold;
    int64_t exempt_bit;
    explicit PendingL1(const Weights& w)
        : pending(w.l1.pending), threshold(w.l1.threshold), exempt_bit(w.l1.exempt_bit()) {}

    template <class Wide>
    Wide decode(Wide stored) const {
        using Bits = decltype(stored > stored);
        const Bits sign = Bits(stored) & INT64_MIN;
        const Wide rest = Wide(Bits(stored) ^ sign) - pending;
        const Wide left = Wide(Bits(rest > 0.0 ? rest : Wide{}) | sign);
        return (Bits(stored) & exempt_bit) != 0 ? stored : left;
    }
    template <class Wide>
    Wide encode(Wide value) const {
        using Bits = decltype(value > value);
        const Bits sign = Bits(value) & INT64_MIN;
        const Wide size = Wide(Bits(value) ^ sign);
        const Wide higher = Wide((Bits(size + pending) & ~exempt_bit) | sign);
        return size > threshold ? Wide(Bits(value) | 1) : higher;
    }
};

// Reads the stored weights of a row, decodes them, and saves them one after the other.
template <class Where>
struct DecodedWeights {
    Where stored;
    PendingL1 l1;
    double* decoded;

    Four save(size_t i, Four stored_ones) const {
        const Four value = l1.decode(stored_ones);
        std::memcpy(decoded + i, &value, sizeof value);
        return value;
    }
    friend Four four_of(const DecodedWeights& at, size_t i) { return at.save(i, four_of(at.stored, i)); }
    friend Four four_of(const DecodedWeights& at, size_t i, size_t count) {
        return at.save(i, four_of(at.stored, i, count));
    }
};

// Calls use() with the decoded weights of a row, which are also saved in `decoded`.
template <class Row, class Use>
inline auto with_decoded(const Weights& w, const Row& row, double* decoded, const Use& use) {
    auto decode = [&](auto stored) { return use(DecodedWeights<decltype(stored)>{stored, PendingL1(w), decoded}); };
    return w.pitch == 1 ? decode(row.where(w.cells.data(), Adjacent())) : decode(row.where(w.cells.data(), w.pitch));
}

// The decoded weights of all outputs, feature after feature.
template <class Row>
inline const double* decoded_side_by_side(const Weights& w, const Row& row, double* decoded) {
    if (w.stride == 1) {
        with_decoded(w, row, decoded, [&](const auto& weights) {
            for (size_t i = 0; i + 4 <= row.n; i += 4) four_of(weights, i);
            if (row.n % 4) four_of(weights, row.n - row.n % 4, row.n % 4);
        });
        return decoded;
    }
    const PendingL1 l1(w);
    for (size_t i = 0; i < row.n; ++i)
        for (size_t r = 0; r < w.stride; r += 8) {
            const Eight value = l1.decode(load(w.v_of(row.column(i)) + r));
            std::memcpy(decoded + i * w.stride + r, &value, sizeof value);
        }
    return decoded;
}

// v = decoded + c * x, encoded again, where `decoded` are the weights of the row with their pending L1 applied.
template <class Row>
inline void add_to_decoded(Weights& w, const Row& row, const double* __restrict decoded, double c) {
    const PendingL1 l1(w);
    double* __restrict v = w.cells.data();
    const size_t pitch = w.pitch;
    size_t i = 0;
    for (; i + 4 <= row.n; i += 4) {
        const Four moved = l1.encode(load_four(decoded + i) + c * load_four(row.x + i));
        for (size_t l = 0; l < 4; ++l) v[row.column(i + l) * pitch] = moved[l];
    }
    for (; i < row.n; ++i) v[row.column(i) * pitch] = w.l1.encode(decoded[i] + c * double(row.x[i]));
}

// The same for any number of outputs, from the stored weights. Weights that do not move stay encoded as they are.
template <class Row>
inline void decode_and_add(Weights& w, const Row& row, const double* coefficients, double over) {
    for (size_t i = 0; i < row.n; ++i) {
        double* v = w.v_of(row.column(i));
        const double x = over * double(row.x[i]);
        for (size_t r = 0; r < w.outputs; ++r)
            if (coefficients[r] != 0.0) v[r] = w.l1.encode(w.l1.decode(v[r]) + coefficients[r] * x);
    }
}

}  // namespace onepass::ONEPASS_ISA
