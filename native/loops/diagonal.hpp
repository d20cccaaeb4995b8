// Gaussian weights with a diagonal Sigma: every weight has a variance. With one output both are read together and
// written together. Included once per instruction set. Nothing here may call an out-of-line function of the standard
// library: the linker could pick another instruction set's copy.
#pragma once
#include "loops/moves.hpp"

namespace onepass::ONEPASS_ISA {

// The variances of the features of an example, for one output.
template <class Row>
inline void read_variances(const Weights& w, const Row& row, size_t r, double* __restrict now) {
    const double* __restrict sigma = w.planes_of(0) + r;
    const size_t pitch = w.pitch;
    for (size_t i = 0; i < row.n; ++i) now[i] = sigma[row.column(i) * pitch];
}

// z = Sigma x over the features, whose variances are `now`, and over the intercept. Returns x' Sigma x.
template <class Row>
inline double through_diagonal(const Model& M, const Row& row, size_t r, const double* __restrict now,
                               double* __restrict z, double* constant) {
    for (size_t i = 0; i < row.n; ++i) z[i] = now[i] * double(row.x[i]);
    *constant = M.w.planes.bias[r] * M.constant;
    return dot_norm(row.x, row.n, z).dot + M.constant * *constant;
}

// The weights and the variances of four features.
struct Pairs {
    Four v, variance;
};

// Two pairs in one register. GCC alone would load the four numbers one by one.
inline Four two_pairs(const double* first, const double* second) {
#ifdef __AVX__
    return Four(_mm256_insertf128_pd(_mm256_castpd128_pd256(_mm_loadu_pd(first)), _mm_loadu_pd(second), 1));
#else
    return joined(load_two(first), load_two(second));
#endif
}
inline void put_pair(double* at, Four pairs) {
#ifdef __AVX__
    _mm_storeu_pd(at, _mm256_castpd256_pd128(__m256d(pairs)));
#else
    store(at, std::bit_cast<Halves>(pairs).low);
#endif
}
inline void put_second_pair(double* at, Four pairs) {
#ifdef __AVX__
    _mm_storeu_pd(at, _mm256_extractf128_pd(__m256d(pairs), 1));
#else
    store(at, std::bit_cast<Halves>(pairs).high);
#endif
}

// Loads four pairs from place i of the row on, or so many.
template <class Row, class... Count>
inline Pairs load_pairs(const double* cells, const Row& row, size_t i, Count... count) {
    auto at = [&](size_t l) ONEPASS_INLINE_LAMBDA { return cells + column_of(row, i, l, count...) * 2; };
    const Four ac = two_pairs(at(0), at(2)), bd = two_pairs(at(1), at(3));
    return {firsts(ac, bd), seconds(ac, bd)};
}

// Stores them at their places. If there are fewer than four, the last feature fills the empty lanes too; storing in
// falling order makes its own lane the last one that is written.
template <class Row, class... Count>
inline void store_pairs(double* cells, const Row& row, size_t i, const Pairs& pairs, Count... count) {
    auto at = [&](size_t l) ONEPASS_INLINE_LAMBDA { return cells + column_of(row, i, l, count...) * 2; };
    const Four ac = firsts(pairs.v, pairs.variance);
    const Four bd = seconds(pairs.v, pairs.variance);
    put_second_pair(at(3), bd);
    put_second_pair(at(2), ac);
    put_pair(at(1), bd);
    put_pair(at(0), ac);
}

// Sums over the features of an example: x.v, x.x, x' Sigma x and |z|^2, where z = Sigma x.
struct SpreadSums {
    Four dot{}, norm{}, variance{}, length{};

    void add(Four x, const Pairs& pairs) {
        const Four z = pairs.variance * x;
        dot += x * pairs.v;
        norm += x * x;
        variance += x * z;
        length += z * z;
    }
    SpreadSums operator+(const SpreadSums& other) const {
        return {dot + other.dot, norm + other.norm, variance + other.variance, length + other.length};
    }
};

// x.v and x.x of a model of one output, with the same bits as dot_norm. x' Sigma x and |z|^2, without the intercept,
// are saved in M.along.
template <class Row>
inline DotNorm score_pairs(Model& M, const Row& row) {
    const double* const cells = M.w.cells.data();
    const SpreadSums sums =
        in_lanes<SpreadSums>(row.n, [&](SpreadSums& some, size_t i, auto... count) ONEPASS_INLINE_LAMBDA {
            some.add(load_four(row.x + i, count...), load_pairs(cells, row, i, count...));
        });
    M.along.variance = add_up(sums.variance);
    M.along.length = add_up(sums.length);
    return {add_up(sums.dot), add_up(sums.norm)};
}

// The variance after a round, in a form that no rounding makes 0: sigma - kappa z^2 is
// sigma * (forget + gain * others)/whole, where `others` is the part of phi' Sigma phi that comes from the other
// coordinates. For one number and for four.
struct Shrinking {
    double forget, gain, xx, over;  // over: 1/(whole * forget)
    bool precisions;                // are gains added to 1/sigma?
    double pp = 1.0;                // the square of the part of the output in phi

    bool from(const Scalars& s, const Step& step) {
        const double whole = step.forget + step.gain * s.xx;
        forget = step.forget;
        gain = step.gain;
        xx = s.xx;
        over = 1.0 / (whole * step.forget);
        return finite(whole) && finite(over);
    }
    template <class T>
    T dropped(T variance, T x, T z) const {
        const T others = xx - pp * x * z, none{};
        return variance * ((forget + gain * choose(above(others, none), others, none)) * over);
    }
    template <class T>
    T added(T variance, T x) const {
        return 1.0 / (forget / variance + gain * pp * x * x);
    }
    template <class T>
    T made(T variance, T x, T z) const {
        const T none{}, least = none + DBL_MIN, made = precisions ? added(variance, x) : dropped(variance, x, z);
        return choose(equal(x, none), variance, choose(above(made, least), made, least));
    }
};

// Computes the new variances of the features and of the intercept into M.along.made.
template <class Row>
inline void plan_diagonal(Model& M, const Row& row, Shrinking shrinking, size_t rows) {
    for (size_t r = 0; r < rows; ++r) {
        const double part = M.along.parts[r];
        if (part == 0.0) continue;
        shrinking.pp = part * part;
        const double* __restrict z = M.along.z.data() + r * row.n;
        double* __restrict made = M.along.made.data() + r * (row.n + 1);  // holds the current variances
        for (size_t i = 0; i < row.n; ++i) made[i] = shrinking.made(made[i], double(row.x[i]), z[i]);
        made[row.n] = shrinking.made(M.w.planes.bias[r], M.constant, M.along.constants[r]);
    }
}

// A row whose features move along z and get new variances at the same time.
template <class Row>
struct Renewed : Row {
    const double* cells;
    Shrinking shrinking;
};
template <class Row>
inline double value_of(const Renewed<Row>& row, size_t i, size_t) {
    return row.cells[row.column(i) * 2 + 1] * double(row.x[i]);
}

template <bool many, class Row>
inline void write(Weights& w, const Renewed<Row>& row, const Move& move, double over) {
    const double c = move.coefficient * over;
    double* const cells = w.cells.data();
    const Renewed<Row> of = row;  // not a reference: the compiler would assume that writing `cells` changes it
    auto renew = [&](size_t i, auto... count) ONEPASS_INLINE_LAMBDA {
        const Four x = load_four(of.x + i, count...);
        const Pairs now = load_pairs(cells, of, i, count...);
        const Four z = now.variance * x;
        store_pairs(cells, of, i, {now.v + c * z, of.shrinking.made(now.variance, x, z)}, count...);
    };
    size_t i = 0;
    for (; i + 4 <= of.n; i += 4) renew(i);
    if (i < of.n) renew(i, of.n - i);
}

}  // namespace onepass::ONEPASS_ISA
