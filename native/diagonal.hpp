// Gaussian weights whose Sigma is a diagonal: a variance beside every weight. With one row of weights both are read in
// one go, and written in one go. Included once per instruction set. Nothing here may call an out-of-line function of
// the standard library: the linker could pick another instruction set's copy.
#pragma once
#include "moves.hpp"

namespace onepass::ONEPASS_ISA {

// The variances of a row's features, in one row of weights.
template <class Row>
inline void read_variances(const Weights& w, const Row& row, size_t r, double* __restrict now) {
    const double* __restrict sigma = w.planes_of(0) + r;
    const size_t pitch = w.pitch;
    for (size_t i = 0; i < row.n; ++i) now[i] = sigma[row.column(i) * pitch];
}

// z = Sigma x over the row's features, whose variances are `now`, and its intercept; x' Sigma x.
template <class Row>
inline double through_diagonal(const Model& M, const Row& row, size_t r, const double* __restrict now,
                               double* __restrict z, double* constant) {
    for (size_t i = 0; i < row.n; ++i) z[i] = now[i] * double(row.x[i]);
    *constant = M.w.bias_planes[r] * M.constant;
    return dot_norm(row.x, row.n, z).dot + M.constant * *constant;
}

// Sums over a row's features: x.v, x.x, x' Sigma x and |z|^2.
struct SpreadSums {
    Four dot{}, norm{}, variance{}, length{};

    void add(Four x, Four v, Four variances, double* now, double* z) {
        const Four along = variances * x;
        dot += x * v;
        norm += x * x;
        variance += x * along;
        length += along * along;
        std::memcpy(now, &variances, sizeof variances);
        std::memcpy(z, &along, sizeof along);
    }
    SpreadSums operator+(const SpreadSums& other) const {
        return {dot + other.dot, norm + other.norm, variance + other.variance, length + other.length};
    }
};

// What a round begins with where there is one row of weights, each next to its variance: x.v and x.x, as dot_norm gives
// them; the variances, z, x' Sigma x and |z|^2 (the intercept apart) wait in M.along.
template <class Row>
inline DotNorm face_diagonal(Model& M, const Row& row) {
    double* const now = M.along.made.data();
    double* const z = M.along.z.data();
    const double* const cells = M.w.cells.data();
    const Row of = row;  // as what is written could be part of `row` itself, for all that is known
    auto pair = [=](size_t i) { return load_two(cells + of.column(i) * 2); };
    auto add = [=](SpreadSums& sums, size_t i, auto... count) ONEPASS_INLINE_LAMBDA {
        const size_t last = (size_t(0) + ... + count);  // 0: all four are there
        const Two a = pair(i), b = last == 1 ? Two{} : pair(i + 1);
        const Two c = last && last < 3 ? Two{} : pair(i + 2), d = last ? Two{} : pair(i + 3);
        const Four ac{a[0], a[1], c[0], c[1]}, bd{b[0], b[1], d[0], d[1]};
        sums.add(load_four(of.x + i, count...), __builtin_shufflevector(ac, bd, 0, 4, 2, 6),
                 __builtin_shufflevector(ac, bd, 1, 5, 3, 7), now + i, z + i);
    };
    const SpreadSums sums = in_lanes<SpreadSums>(row.n, add);
    M.along.variance = add_up(sums.variance);
    M.along.length = add_up(sums.length);
    return {add_up(sums.dot), add_up(sums.norm)};
}

// A variance after a round, which no rounding makes 0: sigma - kappa z^2 is sigma * (forget + gain * others)/whole,
// where `others` is what the other coordinates have of phi' Sigma phi.
struct Shrinking {
    double forget, gain, xx, pp, over;  // pp: the square of the class row's part; over: 1/(whole * forget)
    double dropped(double variance, double x, double z) const {
        const double others = xx - pp * x * z;
        const double made = variance * ((forget + gain * (others > 0.0 ? others : 0.0)) * over);
        return x == 0.0 ? variance : (made > DBL_MIN ? made : DBL_MIN);
    }
    double added(double variance, double x) const {
        const double made = 1.0 / (forget / variance + gain * pp * x * x);
        return x == 0.0 ? variance : (made > DBL_MIN ? made : DBL_MIN);
    }
};

// The new variances of a row's features and of its intercepts wait in M.along.made.
template <class Row>
inline Status plan_diagonal(Model& M, const Row& row, const Scalars& s, const Step& step, size_t rows) {
    const Weights& w = M.w;
    const double whole = step.forget + step.gain * s.xx, over = 1.0 / (whole * step.forget);
    if (!finite(whole) || !finite(over)) return Status::overflow;
    for (size_t r = 0; r < rows; ++r) {
        const double part = M.along.parts[r];
        if (part == 0.0) continue;
        const Shrinking shrinking{step.forget, step.gain, s.xx, part * part, over};
        const double* __restrict z = M.along.z.data() + r * row.n;
        double* __restrict made = M.along.made.data() + r * (row.n + 1);  // holds what they are now
        double& constant = made[row.n] = w.bias_planes[r];
        if (w.sigma.precisions) {
            for (size_t i = 0; i < row.n; ++i) made[i] = shrinking.added(made[i], double(row.x[i]));
            constant = shrinking.added(constant, M.constant);
        } else {
            for (size_t i = 0; i < row.n; ++i) made[i] = shrinking.dropped(made[i], double(row.x[i]), z[i]);
            constant = shrinking.dropped(constant, M.constant, M.along.constants[r]);
        }
    }
    return Status::ok;
}

// z of a row, and the variances that its features get as they move along it.
template <class Row>
struct Renewed : Row {
    const double* made;
};

template <bool many, class Row>
inline void write(Weights& w, const Renewed<Row>& row, const Move& move, double over) {
    const double c = move.coefficient * over;
    double* __restrict const cells = w.cells.data();
    const Renewed<Row> of = row;
    if (c == 0.0) {
        for (size_t i = 0; i < of.n; ++i) cells[of.column(i) * 2 + 1] = of.made[i];
        return;
    }
    for (size_t i = 0; i < of.n; ++i) {
        double* const cell = cells + of.column(i) * 2;
        const Two moved{cell[0] + c * of.x[i], of.made[i]};
        std::memcpy(cell, &moved, sizeof moved);
    }
    if (w.A != 0.0) add(static_cast<const Row&>(row), w.A * c, w.z.data());
}

}  // namespace onepass::ONEPASS_ISA
