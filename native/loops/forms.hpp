// The other two forms of a full Sigma (scheme/spread.py). Cholesky's form stores a factor of the inverse, U U' =
// Sigma^-1, which no rounding makes indefinite: Sigma x means solving two triangular systems, and forget U U' + gain x
// x' is a rotation for each column. Joseph's form stores Sigma and applies the gain from both sides. Included once per
// instruction set.
//
// Columns of U are read as whole vectors. The gaps between columns hold zeros, so that coordinates of x beyond the end
// of a column do not change.
#pragma once
#include "loops/diagonal.hpp"

namespace onepass::ONEPASS_ISA {

// x as a dense vector of so many numbers, of which the constant is the first.
template <class Row>
inline void lay_out(const Model& M, const Row& row, size_t size, double* x) {
    const size_t first = M.w.sigma.constants;
    for (size_t i = 0; i < size; ++i) x[i] = 0.0;
    if (first) x[0] = M.constant;
    for (size_t i = 0; i < row.n; ++i) x[row.column(i) + first] = double(row.x[i]);
}

// q = U^-1 x, from the last coordinate to the first; overwrites x. Returns |q|^2 = x' Sigma x.
inline double solve_factor(const double* factor, size_t n, double* x, double* q) {
    for (size_t j = n; j-- > 0;) {
        const double* column = factor + Covariance::row_at(j);
        const double solved = q[j] = x[j] / column[j];
        if (solved == 0.0) continue;
        for (size_t i = 0; i < j; i += 8) store(x + i, load(x + i) - solved * load(column + i));
    }
    return norm(q, n);
}

// z = U'^-1 q, from the first coordinate to the last. The last eight stay in a register: to load them as a vector, the
// processor would have to wait until each was stored.
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

// sqrt(a^2 + b^2) for a > 0; never 0, also if the squares would overflow or underflow.
inline double length_of(double a, double b) {
    const double square = a * a + b * b;
    if (square > 1e-280 && square < 1e280) return std::sqrt(square);
    b = std::abs(b);
    const double large = a > b ? a : b, ratio = (a > b ? b : a) / large;
    return large * std::sqrt(1.0 + ratio * ratio);
}

// U U' <- scale^2 U U' + x x'. A Givens rotation of each column with x turns one coordinate of x to 0, beginning with
// the last. Overwrites x.
inline void rotate_into(double* factor, size_t n, double* x, double scale) {
    const Eight places = {0, 1, 2, 3, 4, 5, 6, 7};
    for (size_t j = n; j-- > 0;) {
        if (x[j] == 0.0 && scale == 1.0) continue;
        double* column = factor + Covariance::row_at(j);
        const double entry = scale * column[j], length = length_of(entry, x[j]);
        const double cosine = entry / length, sine = x[j] / length;
        const double scaled_cosine = cosine * scale, scaled_sine = sine * scale;
        column[j] = length;
        size_t i = 0;
        for (; i + 8 <= j; i += 8) {
            const Eight u = load(column + i), v = load(x + i);
            store(column + i, scaled_cosine * u + sine * v);
            store(x + i, cosine * v - scaled_sine * u);
        }
        if (i == j) continue;
        const Eight u = load(column + i), v = load(x + i), end = Eight{} + double(j - i);
        store(column + i, places < end ? scaled_cosine * u + sine * v : u);
        store(x + i, cosine * v - scaled_sine * u);
    }
}

// x' Sigma x of a row, and q = U^-1 x.
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

// Joseph's form: (I - k x') Sigma (I - k x')' + noise k k' with k = kappa z and z = Sigma x, computed entry by entry as
// it stands here: the second factor removes along x what rounding left in Sigma - k z'. Each entry is the mean of the
// two that are across the diagonal from each other.
struct Joseph {
    double kappa, noise;

    // An entry of Sigma - k z', and the one across the diagonal.
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

// The change of Sigma in a round.
struct Change {
    double kappa = 0.0;   // full: Sigma - kappa z z'
    double over = 1.0;    // then multiplied by this
    bool pauses = false;  // does forgetting pause, because a variance would exceed `largest`?
    double forget = 1.0;  // as the rule answered
    double bound = 0.0;   // Cholesky's form: no variance will exceed it
    Shrinking diagonal;
};

// The gain of the round for output r with a Sigma of its own. What the variances of the other outputs add to
// phi' Sigma phi counts as noise.
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

// Could sqrt(gain) * x, which is rotated into the factor, overflow?
inline bool factor_overflows(const Model& M, size_t rows, double forget) {
    double largest = 0.0;
    for (size_t i = 0; i < M.w.sigma.registered; ++i)
        largest = std::abs(M.along.x[i]) > largest ? std::abs(M.along.x[i]) : largest;
    for (size_t r = 0; r < rows; ++r)
        if (!(std::sqrt(M.along.gains[r] / forget) * largest < safe)) return true;
    return false;
}

// Coordinate j of Sigma * phi for output r. An output without a part in phi has no z.
inline double part_of_z(const Model& M, size_t r, size_t j) {
    const double part = M.along.parts[r];
    return part == 0.0 ? 0.0 : part * M.along.z[r * M.w.sigma.registered + j];
}

// The factor does not show the variances. Forgetting multiplies them by at most a known factor, and everything else
// makes them smaller. So they are computed, in O(size^3), only when that factor could have led beyond `largest` since
// the last time. If forgetting paused because of one variance, that one is computed first.
inline Status plan_factor(Model& M, size_t rows, Change& change) {
    Covariance& S = M.w.sigma;
    const size_t n = S.registered;
    if (factor_overflows(M, rows, change.forget)) return Status::overflow;
    const bool bounded = S.largest < safe;  // otherwise forgetting never pauses: what would be infinite is refused
    const double bound = std::min(S.largest, safe);
    auto beyond = [&](double variance) { return variance / change.forget > bound; };
    double most = 0.0;
    auto include = [&](size_t r, size_t j) {
        const double variance = variance_of(S.of(r), j);
        const double z = part_of_z(M, r, j);
        if (variance > most) most = variance;
        if (!beyond(variance - change.kappa * z * z)) return;
        change.pauses = true;
        S.widest = j;
    };
    change.bound = S.bound_now();
    if (change.forget < 1.0 && beyond(change.bound)) {
        for (size_t r = 0; r < rows && S.widest < n; ++r) include(r, S.widest);
        for (size_t r = 0; r < rows; ++r)
            for (size_t j = 0; j < n && !change.pauses; ++j) include(r, j);
        if (!change.pauses) change.bound = most;
    }
    if (change.pauses && !bounded) return Status::overflow;
    if (!change.pauses) change.bound /= change.forget;
    return Status::ok;
}

// U U' <- forget U U' + gain x x'; divided by `forget` if forgetting pauses.
inline void change_factor(Model& M, size_t r, const Change& change) {
    Covariance& S = M.w.sigma;
    const double gain = M.along.gains[r], root = std::sqrt(change.pauses ? gain / change.forget : gain);
    double* x = M.along.made.data();
    for (size_t i = 0; i < S.registered + 8; ++i) x[i] = root * M.along.x[i];
    rotate_into(S.of(r), S.registered, x, change.pauses ? 1.0 : std::sqrt(change.forget));
}

}  // namespace onepass::ONEPASS_ISA
