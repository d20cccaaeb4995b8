// The weights of several outputs, feature after feature: their scores, and updates of up to eight. Included once per
// instruction set.
#pragma once
#include "loops/lanes.hpp"

namespace onepass::ONEPASS_ISA {

// v += A * c * x for up to eight outputs, each with its coefficient c. Features are `pitch` numbers apart.
template <class Row>
inline void add_classes(const Row& row, Eight c, double A, double* v, size_t pitch) {
    for (size_t i = 0; i < row.n; ++i) {
        double* at = v + row.column(i) * pitch;
        const Eight moved = load(at) + A * (c * double(row.x[i]));
        std::memcpy(at, &moved, sizeof moved);
    }
}

// The scores of all outputs: each lane is an output, and features are added one after the other.
template <int blocks, class Row>
inline void class_scores_block(const Row& row, const double* v, size_t pitch, double* out) {
    Eight sum[blocks] = {};
    for (size_t i = 0; i < row.n; ++i) {
        const double* weights = v + row.column(i) * pitch;
        const double x = double(row.x[i]);
        for (int b = 0; b < blocks; ++b) sum[b] += x * load(weights + 8 * b);
    }
    std::memcpy(out, sum, sizeof sum);
}

template <class Row>
inline void class_scores(const Row& row, const double* v, size_t pitch, size_t lanes, double* out) {
    size_t r = 0;
    for (; r + 32 <= lanes; r += 32) class_scores_block<4>(row, v + r, pitch, out + r);
    for (; r + 8 <= lanes; r += 8) class_scores_block<1>(row, v + r, pitch, out + r);
}

// Up to eight outputs are one vector. Feature i goes to sum i mod 4, so that no addition waits for the one before it.
template <class Row>
inline void class_scores_few(const Row& row, const double* v, size_t pitch, double* out) {
    Eight sum0{}, sum1{}, sum2{}, sum3{};
    auto term = [&](size_t i) { return double(row.x[i]) * load(v + row.column(i) * pitch); };
    size_t i = 0;
    for (; i + 4 <= row.n; i += 4) {
        sum0 += term(i);
        sum1 += term(i + 1);
        sum2 += term(i + 2);
        sum3 += term(i + 3);
    }
    if (i < row.n) sum0 += term(i);
    if (i + 1 < row.n) sum1 += term(i + 1);
    if (i + 2 < row.n) sum2 += term(i + 2);
    sum0 = (sum0 + sum2) + (sum1 + sum3);
    std::memcpy(out, &sum0, sizeof sum0);
}

template <class Row>
inline void class_scores_wide(const Row& row, const double* v, size_t pitch, size_t lanes, double* out) {
    switch (lanes) {
        case 8: return class_scores_few(row, v, pitch, out);
        case 16: return class_scores_block<2>(row, v, pitch, out);
        case 24: return class_scores_block<3>(row, v, pitch, out);
        default: return class_scores(row, v, pitch, lanes, out);
    }
}

}  // namespace onepass::ONEPASS_ISA
