// The other forms of a full Sigma (spread.py). Cholesky's keeps a factor of its inverse, U U' = Sigma^-1, which no
// rounding makes indefinite: Sigma x is two triangular systems, and forget U U' + gain x x' a rotation for each column.
// Joseph's keeps Sigma and takes the gain out of it from both sides. Included once per instruction set.
//
// Columns of U are read as whole vectors: the gaps between them hold zeros, and what lies in x beyond a column's end
// comes out as it went in.
#pragma once
#include "loops/diagonal.hpp"

namespace onepass::ONEPASS_ISA {

// x as a dense vector of so many numbers, the constant before all.
template <class Row>
inline void lay_out(const Model& M, const Row& row, size_t size, double* x) {
    const size_t first = M.w.sigma.constants;
    for (size_t i = 0; i < size; ++i) x[i] = 0.0;
    if (first) x[0] = M.constant;
    for (size_t i = 0; i < row.n; ++i) x[row.column(i) + first] = double(row.x[i]);
}

// q = U^-1 x, from the last coordinate on, which uses x up; |q|^2 = x' Sigma x.
inline double solve_factor(const double* factor, size_t n, double* x, double* q) {
    for (size_t j = n; j-- > 0;) {
        const double* column = factor + Covariance::row_at(j);
        const double solved = q[j] = x[j] / column[j];
        if (solved == 0.0) continue;
        for (size_t i = 0; i < j; i += 8) store(x + i, load(x + i) - solved * load(column + i));
    }
    return norm(q, n);
}

// z = U'^-1 q, from the first coordinate on. The last eight stay in a register: reading them back as a vector would
// have to wait until each was written.
inline void solve_transposed(const double* factor, size_t n, const double* q, double* z) {
    const Eight places = {0, 1, 2, 3, 4, 5, 6, 7};
    for (size_t block = 0; block < n; block += 8) {
        Eight recent{};
        for (size_t j = block; j < n && j < block + 8; ++j) {
            const double* column = factor + Covariance::row_at(j);
            Eight sums{};
            for (size_t i = 0; i < block; i += 8) sums += load(column + i) * load(z + i);
            const double rest = q[j] - add_up(sums) - add_up(load(column + block) * recent);
            recent = places == double(j - block) ? Eight{} + rest / column[j] : recent;
        }
        store(z + block, recent);
    }
}

// sqrt(a^2 + b^2), above 0 where a is: also where the squares would overflow or vanish.
inline double length_of(double a, double b) {
    const double square = a * a + b * b;
    if (square > 1e-280 && square < 1e280) return std::sqrt(square);
    b = std::abs(b);
    const double large = a > b ? a : b, ratio = (a > b ? b : a) / large;
    return large * std::sqrt(1.0 + ratio * ratio);
}

// U U' <- kept^2 U U' + x x': a Givens rotation of each column and x makes a 0 of x, the last first. Uses x up.
inline void rotate_into(double* factor, size_t n, double* x, double kept) {
    const Eight places = {0, 1, 2, 3, 4, 5, 6, 7};
    for (size_t j = n; j-- > 0;) {
        if (x[j] == 0.0 && kept == 1.0) continue;
        double* column = factor + Covariance::row_at(j);
        const double entry = kept * column[j], length = length_of(entry, x[j]);
        const double cosine = entry / length, sine = x[j] / length;
        const double cosine_kept = cosine * kept, sine_kept = sine * kept;
        column[j] = length;
        size_t i = 0;
        for (; i + 8 <= j; i += 8) {
            const Eight u = load(column + i), v = load(x + i);
            store(column + i, cosine_kept * u + sine * v);
            store(x + i, cosine * v - sine_kept * u);
        }
        if (i == j) continue;
        const Eight u = load(column + i), v = load(x + i), end = Eight{} + double(j - i);
        store(column + i, places < end ? cosine_kept * u + sine * v : u);
        store(x + i, cosine * v - sine_kept * u);
    }
}

// x' Sigma x of a row; q is half of the way to Sigma x.
template <class Row>
inline double variance_by_factor(const Model& M, const Row& row, size_t r, size_t n, double* x, double* q) {
    lay_out(M, row, n + 8, x);
    return solve_factor(M.w.sigma.of(r), n, x, q);
}

// z = Sigma x as well.
template <class Row>
inline double through_factor(Model& M, const Row& row, size_t r, size_t n, double* z) {
    double* q = M.along.made.data();
    const double v = variance_by_factor(M, row, r, n, M.along.x.data(), q);
    solve_transposed(M.w.sigma.of(r), n, q, z);
    return v;
}

// The variance of coordinate j: |U^-1 e_j|^2.
inline double variance_of(const double* factor, size_t j) {
    double *x = covariance_room(2 * j + 32), *q = x + j + 16;
    for (size_t i = 0; i < j + 8; ++i) x[i] = 0.0;
    x[j] = 1.0;
    return solve_factor(factor, j + 1, x, q);
}

// Joseph: (I - k x') Sigma (I - k x')' + noise k k', where k = kappa z and z = Sigma x, entry by entry as it is
// written: what rounding leaves in Sigma - k z' is taken out again along x. Of both halves the mean.
struct Joseph {
    double kappa, noise;

    // Of Sigma - k z', an entry and the one across the diagonal.
    template <class T>
    T lower(T now, double z, T across) const {
        return now - (kappa * z) * across;
    }
    template <class T>
    T upper(T now, double z, T across) const {
        return now - (kappa * across) * z;
    }
    // h is (Sigma - k z') x.
    template <class T>
    T made(T now, double z, double h, T z_across, T h_across) const {
        const double k = kappa * z;
        const T k_across = kappa * z_across;
        const T one = lower(now, z, z_across) - h * k_across, other = upper(now, z, z_across) - h_across * k;
        return 0.5 * (one + other) + (noise * k) * k_across;
    }

    void multiply(const double* row, const double* x, const double* z, size_t n, double* h) const {
        for (size_t i = 0; i < n; ++i) h[i] = 0.0;
        for (size_t i = 0; i < n; row += Covariance::width(i++)) {
            Eight sums{};
            size_t j = 0;
            for (; j + 8 <= i; j += 8) {
                const Eight now = load(row + j), across = load(z + j);
                sums += lower(now, z[i], across) * load(x + j);
                store(h + j, load(h + j) + upper(now, z[i], across) * x[i]);
            }
            double sum = add_up(sums);
            for (; j < i; ++j) {
                sum += lower(row[j], z[i], z[j]) * x[j];
                h[j] += upper(row[j], z[i], z[j]) * x[i];
            }
            h[i] = sum + lower(row[i], z[i], z[i]) * x[i];
        }
    }
    void change(double* row, const double* z, const double* h, size_t n, double over) const {
        for (size_t i = 0; i < n; row += Covariance::width(i++)) {
            size_t j = 0;
            for (; j + 8 <= i; j += 8) store(row + j, made(load(row + j), z[i], h[i], load(z + j), load(h + j)) * over);
            for (; j <= i; ++j) row[j] = made(row[j], z[i], h[i], z[j], h[j]) * over;
        }
    }
};

// What becomes of Sigma after a round.
struct Change {
    double kappa = 0.0;   // full: Sigma - kappa z z'
    double over = 1.0;    // then times this
    bool waits = false;   // it would have forgotten, but for `largest`
    double forget = 1.0;  // what the rule asked for
    double reach = 0.0;   // of the factor: no variance will be beyond it
    Shrinking diagonal;
};

// To a class row's own Sigma the round is one with this gain: what the other rows' variances add to phi' Sigma phi is
// noise to it.
inline double gain_of_row(const Model& M, const Scalars& s, const Step& step, size_t r) {
    const double pp = M.along.parts[r] * M.along.parts[r];
    if (pp == 0.0) return 0.0;
    const double others = step.gain * (s.xx - pp * M.along.variances[r]);
    return step.gain * pp * (step.forget / (step.forget + (others > 0.0 ? others : 0.0)));
}

inline Joseph joseph_of(const Model& M, const Change& change, size_t r) {
    const double part = M.along.parts[r], gain = M.along.gains[r];
    return {change.kappa * part * part, gain > 0.0 ? change.forget / gain : 0.0};
}

// May sqrt(gain) * x, which is rotated into the factor, be too large?
inline bool factor_overflows(const Model& M, size_t rows, double forget) {
    double largest = 0.0;
    for (size_t i = 0; i < M.w.sigma.registered; ++i)
        largest = std::abs(M.along.x[i]) > largest ? std::abs(M.along.x[i]) : largest;
    for (size_t r = 0; r < rows; ++r)
        if (!(std::sqrt(M.along.gains[r] / forget) * largest < safe)) return true;
    return false;
}

// Coordinate j of the class row's part of phi, times Sigma; a row without a part has no z.
inline double part_of_z(const Model& M, size_t r, size_t j) {
    const double part = M.along.parts[r];
    return part == 0.0 ? 0.0 : part * M.along.z[r * M.w.sigma.registered + j];
}

// Of the factor no diagonal is at hand. Forgetting makes variances larger by a known factor at most, everything else
// smaller: they are worked out, in O(size^3), where that factor would have led beyond `largest` since the last time;
// and where forgetting waits for one of them, that one is looked at first.
inline Status plan_factor(Model& M, size_t rows, Change& change) {
    Covariance& S = M.w.sigma;
    const size_t n = S.registered;
    if (factor_overflows(M, rows, change.forget)) return Status::overflow;
    const bool bounded = S.largest < safe;  // without a bound nothing waits: what would be infinite is refused
    const double bound = std::min(S.largest, safe);
    auto beyond = [&](double variance) { return variance / change.forget > bound; };
    double most = 0.0;
    auto look_at = [&](size_t r, size_t j) {
        const double variance = variance_of(S.of(r), j);
        const double z = part_of_z(M, r, j);
        if (variance > most) most = variance;
        if (!beyond(variance - change.kappa * z * z)) return;
        change.waits = true;
        S.widest = j;
    };
    change.reach = S.reach_now();
    if (change.forget < 1.0 && beyond(change.reach)) {
        for (size_t r = 0; r < rows && S.widest < n; ++r) look_at(r, S.widest);
        for (size_t r = 0; r < rows; ++r)
            for (size_t j = 0; j < n && !change.waits; ++j) look_at(r, j);
        if (!change.waits) change.reach = most;
    }
    if (change.waits && !bounded) return Status::overflow;
    if (!change.waits) change.reach /= change.forget;
    return Status::ok;
}

// U U' <- forget U U' + gain x x', or, where forgetting waits, that over `forget`.
inline void change_factor(Model& M, size_t r, const Change& change) {
    Covariance& S = M.w.sigma;
    const double gain = M.along.gains[r], root = std::sqrt(change.waits ? gain / change.forget : gain);
    double* x = M.along.made.data();
    for (size_t i = 0; i < S.registered + 8; ++i) x[i] = root * M.along.x[i];
    rotate_into(S.of(r), S.registered, x, change.waits ? 1.0 : std::sqrt(change.forget));
}

}  // namespace onepass::ONEPASS_ISA
