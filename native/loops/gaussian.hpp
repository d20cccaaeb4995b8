// Gaussian weights in a round: the weights move along z = Sigma * phi, the rule sees phi' Sigma phi, and then Sigma
// changes. The change is computed before anything is written. Included once per instruction set. Nothing here may call
// an out-of-line function of the standard library: the linker could pick another instruction set's copy.
#pragma once
#include "loops/forms.hpp"

namespace onepass::ONEPASS_ISA {

constexpr int64_t verify_every = 100000;  // rounds between checks that a full Sigma is positive definite

// add_up of four vectors at once.
inline Four add_up(Four a, Four b, Four c, Four d) {
    const Four ab = __builtin_shufflevector(a, b, 0, 1, 4, 5) + __builtin_shufflevector(a, b, 2, 3, 6, 7);
    const Four cd = __builtin_shufflevector(c, d, 0, 1, 4, 5) + __builtin_shufflevector(c, d, 2, 3, 6, 7);
    return __builtin_shufflevector(ab, cd, 0, 2, 4, 6) + __builtin_shufflevector(ab, cd, 1, 3, 5, 7);
}

// Loads numbers that are used twice. Without this GCC reads them from memory twice.
inline Eight load_once(const double* p) {
    Eight values = load(p);
#ifdef __AVX512F__
    asm("" : "+v"(values));
#endif
    return values;
}

// z = S x for a symmetric S, whose lower triangle is stored row after row. Each number is read once and used for both
// its places. Four rows at a time, so that z is written a quarter as often.
inline void symmetric_product(const double* row, const double* x, size_t n, double* z) {
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        const size_t width = Covariance::width(i);
        const double *r0 = row, *r1 = r0 + width, *r2 = r1 + width, *r3 = r2 + width;
        const double x0 = x[i], x1 = x[i + 1], x2 = x[i + 2], x3 = x[i + 3];
        Eight d0{}, d1{}, d2{}, d3{};
        size_t j = 0;
        for (; j + 8 <= i; j += 8) {
            const Eight a0 = load_once(r0 + j), a1 = load_once(r1 + j), a2 = load_once(r2 + j), a3 = load_once(r3 + j);
            const Eight at = load(x + j);
            d0 += a0 * at;
            d1 += a1 * at;
            d2 += a2 * at;
            d3 += a3 * at;
            store(z + j, (((load(z + j) + a0 * x0) + a1 * x1) + a2 * x2) + a3 * x3);
        }
        Four sums = add_up(halves_of(d0), halves_of(d1), halves_of(d2), halves_of(d3));
        if (j < i) {  // four are left, as i is a multiple of four
            const Four a0 = load_four(r0 + j), a1 = load_four(r1 + j), a2 = load_four(r2 + j), a3 = load_four(r3 + j);
            const Four at = load_four(x + j);
            sums += add_up(a0 * at, a1 * at, a2 * at, a3 * at);
            store(z + j, (((load_four(z + j) + a0 * x0) + a1 * x1) + a2 * x2) + a3 * x3);
        }
        sums += Four{r0[i], r1[i], r2[i], r3[i]} * x0;
        sums += Four{r1[i], r1[i + 1], r2[i + 1], r3[i + 1]} * x1;
        sums += Four{r2[i], r2[i + 1], r2[i + 2], r3[i + 2]} * x2;
        sums += load_four(r3 + i) * x3;
        store(z + i, sums);
        row = r3 + width;
    }
    for (; i < n; row += Covariance::width(i++)) {
        double sum = 0.0;
        for (size_t j = 0; j < i; ++j) {
            sum += row[j] * x[j];
            z[j] += row[j] * x[i];
        }
        z[i] = sum + row[i] * x[i];
    }
}

// z += S x for one coordinate c of x; faster if few coordinates of x are not 0.
inline void add_column(const double* triangle, size_t n, size_t c, double x, double* __restrict z) {
    const double* __restrict row = triangle + Covariance::row_at(c);
    for (size_t j = 0; j < c; ++j) z[j] += row[j] * x;
    for (size_t j = c; j < n; row += Covariance::width(j++)) z[j] += row[c] * x;
}

inline bool all_zero(const double (&c)[4]) { return c[0] == 0.0 && c[1] == 0.0 && c[2] == 0.0 && c[3] == 0.0; }

// S <- (S - kappa z z') * over. Four rows at a time, so that z is read once for all of them.
template <bool scaled>
inline void subtract_rank_one(double* row, const double* z, size_t n, double kappa, double over) {
    auto less = [over](auto now, auto change) {
        const auto made = now - change;
        return scaled ? made * over : made;
    };
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        const size_t width = Covariance::width(i);
        double* const rows[4] = {row, row + width, row + 2 * width, row + 3 * width};
        row += 4 * width;
        const double c[4] = {kappa * z[i], kappa * z[i + 1], kappa * z[i + 2], kappa * z[i + 3]};
        if (!scaled && all_zero(c)) continue;  // most of a hash table
        size_t j = 0;
        for (; j + 8 <= i; j += 8) {
            const Eight at = load(z + j);
            for (int k = 0; k < 4; ++k) store(rows[k] + j, less(load(rows[k] + j), c[k] * at));
        }
        if (j < i) {  // four are left, as i is a multiple of four
            const Four at = load_four(z + j);
            for (int k = 0; k < 4; ++k) store(rows[k] + j, less(load_four(rows[k] + j), c[k] * at));
        }
#pragma GCC unroll 3
        for (size_t k = 0; k < 3; ++k)
#pragma GCC unroll 3
            for (size_t l = 0; l <= k; ++l) rows[k][i + l] = less(rows[k][i + l], c[k] * z[i + l]);
        store(rows[3] + i, less(load_four(rows[3] + i), c[3] * load_four(z + i)));
    }
    for (; i < n; row += Covariance::width(i++))
        for (size_t j = 0; j <= i; ++j) row[j] = less(row[j], kappa * z[i] * z[j]);
}

// z = Sigma x of output r over the first n coordinates, of which the constant is the first. Returns x' Sigma x. `x` is
// working space for n numbers.
template <class Row>
inline double through_full(const Model& M, const Row& row, size_t r, size_t n, double* x, double* z) {
    const Covariance& S = M.w.sigma;
    const double* triangle = S.of(r);
    const size_t first = S.constants;
    for (size_t i = 0; i < n; ++i) z[i] = 0.0;
    if (row.n * 8 < n) {
        if (first) add_column(triangle, n, 0, M.constant, z);
        for (size_t i = 0; i < row.n; ++i) add_column(triangle, n, row.column(i) + first, double(row.x[i]), z);
        if (first) z[0] += S.drift * M.constant;
        double v = first ? M.constant * z[0] : 0.0;
        for (size_t i = 0; i < row.n; ++i) {
            double& at = z[row.column(i) + first];
            at += S.drift * double(row.x[i]);
            v += double(row.x[i]) * at;
        }
        return v;
    }
    lay_out(M, row, n, x);
    symmetric_product(triangle, x, n, z);
    if (S.drift != 0.0)
        for (size_t i = 0; i < n; ++i) z[i] += S.drift * x[i];
    return dot_norm(x, n, z).dot;
}

// The part of every output in phi, into M.along.parts; one number if the outputs share Sigma. Returns their count.
template <bool many>
inline size_t parts_of(Model& M, const Move& move) {
    const size_t rows = many && !M.w.sigma.shared ? M.w.outputs : 1;
    for (size_t r = 0; r < rows; ++r) M.along.parts[r] = rows > 1 ? move.template of<many>(r) : 1.0;
    return rows;
}

// Registers the features of an example that is learned.
template <class Row>
inline void register_features(Covariance& S, const Row& row) {
    for (size_t i = 0; i < row.n && S.registered < S.size; ++i)
        if (row.column(i) + S.constants >= S.registered) S.registered = row.column(i) + S.constants + 1;
}

// z and phi' Sigma phi after score_pairs().
inline Status multiply_pairs_by_sigma(Model& M, Scalars& s, Move& move) {
    M.along.constants[0] = M.w.planes.bias[0] * M.constant;
    move.constants = M.along.constants.data();
    move.norm = M.along.length;
    s.xx = M.along.variance + M.constant * M.along.constants[0];
    return finite(move.norm) && finite(s.xx) && finite(M.along.constants[0]) ? Status::ok : Status::overflow;
}

// z = Sigma x of output r over n coordinates, and the part of the constant in it. Returns x' Sigma x.
template <class Row>
inline double through_sigma(Model& M, const Row& row, size_t r, size_t n, double* z, double* constant) {
    const Covariance& S = M.w.sigma;
    if (!S.full) {
        double* now = M.along.made.data() + r * (n + 1);  // the current variances; later the new ones
        read_variances(M.w, row, r, now);
        return through_diagonal(M, row, r, now, z, constant);
    }
    const double v =
        S.form == Form::chol ? through_factor(M, row, r, n, z) : through_full(M, row, r, n, M.along.x.data(), z);
    if (S.constants) *constant = z[0];
    return v;
}

// Is a full Sigma to be verified in this round?
inline bool is_due(const Model& M) { return M.w.sigma.full && M.t > 0.0 && int64_t(M.t) % verify_every == 0; }

// z, along which the weights will move, and phi' Sigma phi, which the rule sees.
template <class Path, class Row>
inline Status multiply_by_sigma(Model& M, const Row& row, Scalars& s, Move& move) {
    if constexpr (Path::pairs) return multiply_pairs_by_sigma(M, s, move);
    const Covariance& S = M.w.sigma;
    if (is_due(M) && !S.positive_definite()) return Status::indefinite;
    const size_t n = S.full ? S.registered : row.n, skipped = S.full ? S.constants : 0;
    M.room_along(n);
    const size_t rows = parts_of<Path::many>(M, move);
    s.xx = move.norm = 0.0;
    for (size_t r = 0; r < rows; ++r) {
        const double part = M.along.parts[r];
        double *z = M.along.z.data() + r * n, *constant = &M.along.constants[r];
        *constant = 0.0;
        if (part == 0.0) continue;
        const double v = through_sigma(M, row, r, n, z, constant);
        if (S.form != Form::gain) M.along.variances[r] = v;
        s.xx += part * part * v;
        const double length = norm(z + skipped, n - skipped);
        if (!(finite(length) & finite(v) & finite(*constant))) return Status::overflow;
        if (v < 0.0) return Status::indefinite;
        if (length > move.norm) move.norm = length;
    }
    for (size_t r = 1; r < M.w.outputs && rows == 1; ++r) M.along.constants[r] = M.along.constants[0];
    move.constants = M.along.constants.data();
    return finite(s.xx) ? Status::ok : Status::overflow;
}

// Checks the diagonal of the new Sigma, four entries at a time: are all finite and above 0, and which is the largest?
struct Diagonal {
    Four least = Four{} + DBL_MAX, most{};
    Four nothing{};  // 0, or NaN if an entry is not finite

    void include(Four made) {
        nothing += made * 0.0;
        least = made < least ? made : least;
        most = made > most ? made : most;
    }
    // Output r of Sigma; z is null if it does not change.
    void include(const Covariance& S, size_t r, const double* z, double kappa) {
        const double* row = S.of(r);
        size_t i = 0;
        for (; i + 4 <= S.registered; i += 4) {
            const size_t w = Covariance::width(i);
            const Four now = Four{row[i], row[w + i + 1], row[2 * w + i + 2], row[3 * w + i + 3]} + S.drift;
            include(z ? now - kappa * load_four(z + i) * load_four(z + i) : now);
            row += 4 * w;
        }
        for (; i < S.registered; row += Covariance::width(i++)) {
            const double now = row[i] + S.drift;
            include(Four{} + (z ? now - kappa * z[i] * z[i] : now));
        }
    }
    bool all_finite() const { return add_up(nothing) == 0.0; }
    bool all_positive() const { return least[0] > 0.0 && least[1] > 0.0 && least[2] > 0.0 && least[3] > 0.0; }
    bool all_at_most(double bound, double forget) const {
        bool all = true;
        for (int k = 0; k < 4; ++k) all &= most[k] / forget <= bound;
        return all;
    }
};

// Decides whether Sigma forgets, or pauses because a variance would exceed `largest`.
inline Status plan_forgetting(const Diagonal& made, double largest, double forget, Change& change) {
    if (!made.all_finite()) return Status::overflow;
    if (!made.all_positive()) return Status::indefinite;
    change.pauses = forget < 1.0 && !made.all_at_most(largest, forget);
    if (!change.pauses && !made.all_at_most(DBL_MAX, forget)) return Status::overflow;
    if (!change.pauses) change.over = 1.0 / forget;
    return Status::ok;
}

template <class Row>
inline Status plan_full(Model& M, const Row& row, const Scalars& s, const Step& step, size_t rows, Change& change) {
    const Covariance& S = M.w.sigma;
    const double whole = step.forget + step.gain * s.xx;
    if (!finite(whole)) return Status::overflow;
    change.kappa = step.gain / whole;
    change.forget = step.forget;
    if (S.form != Form::gain) {
        lay_out(M, row, S.registered + 8, M.along.x.data());
        for (size_t r = 0; r < rows; ++r) M.along.gains[r] = gain_of_row(M, s, step, r);
    }
    if (S.form == Form::chol) return plan_factor(M, rows, change);
    Diagonal made;
    for (size_t r = 0; r < rows; ++r) {
        const double part = M.along.parts[r];  // if it is 0, z was not computed
        const double* z = M.along.z.data() + r * S.registered;
        if (part == 0.0 || S.form == Form::gain) {
            made.include(S, r, part == 0.0 ? nullptr : z, change.kappa * part * part);
            continue;
        }
        const Joseph joseph = joseph_of(M, change, r);
        double* h = M.along.made.data() + r * S.registered;
        joseph.multiply(S.of(r), M.along.x.data(), z, S.registered, h);
        for (size_t i = 0; i < S.registered; ++i)
            made.include(Four{} + joseph.made(S.of(r)[Covariance::entry(i)], z[i], h[i], z[i], h[i]));
    }
    return plan_forgetting(made, S.largest, step.forget, change);
}

template <class Path, class Row>
inline Status plan_change(Model& M, const Row& row, const Scalars& s, const Step& step, size_t rows, Change& change) {
    if (!(step.gain >= 0.0 && finite(step.gain) && step.forget > 0.0 && step.forget <= 1.0)) return Status::overflow;
    if (Path::full(M)) return plan_full(M, row, s, step, rows, change);
    change.diagonal.precisions = M.w.sigma.precisions;
    if (!change.diagonal.from(s, step)) return Status::overflow;
    if (!Path::pairs) plan_diagonal(M, row, change.diagonal, rows);
    return Status::ok;
}

// Writes the new Sigma. Nothing fails from here on.
template <class Path, class Row>
inline void change_sigma(Model& M, const Row& row, size_t rows, const Change& change) {
    Weights& w = M.w;
    Covariance& S = w.sigma;
    if (Path::pairs) {  // the variances of features were written with their weights
        w.planes.bias[0] = change.diagonal.made(w.planes.bias[0], M.constant, M.along.constants[0]);
        return;
    }
    for (size_t r = 0; r < rows; ++r) {
        const double part = M.along.parts[r];
        if (!Path::full(M)) {
            if (part == 0.0) continue;
            const double* made = M.along.made.data() + r * (row.n + 1);
            for (size_t i = 0; i < row.n; ++i) w.planes_of(row.column(i))[r] = made[i];
            w.planes.bias[r] = made[row.n];
            continue;
        }
        double* triangle = S.of(r);
        if (S.form == Form::chol) {
            change_factor(M, r, change);
            continue;
        }
        if (S.drift != 0.0)
            for (size_t i = 0; i < S.registered; ++i) triangle[Covariance::entry(i)] += S.drift;
        if (part == 0.0) {
            if (change.over != 1.0)
                for (size_t i = 0; i < Covariance::row_at(S.registered); ++i) triangle[i] *= change.over;
            continue;
        }
        const double kappa = change.kappa * part * part;
        const double* z = M.along.z.data() + r * S.registered;
        if (S.form == Form::joseph)
            joseph_of(M, change, r)
                .change(triangle, z, M.along.made.data() + r * S.registered, S.registered, change.over);
        else if (change.over == 1.0) subtract_rank_one<false>(triangle, z, S.registered, kappa, 1.0);
        else subtract_rank_one<true>(triangle, z, S.registered, kappa, change.over);
    }
    S.paused += change.pauses;
    if (S.form != Form::chol) return;
    S.bound = change.bound;
    S.bounded = S.registered;
}

// The row with the values z instead of x.
template <class X>
inline DenseRow<double> with_values(const DenseValues<X>& row, const double* z) {
    return {z, row.n};
}
template <class I>
inline SparseRow<double, I> with_values(const SparseRow<double, I>& row, const double* z) {
    return {z, row.index, row.n};
}

// Moves the weights along z.
template <class Path, class Row>
inline Status apply_along(Model& M, const Row& row, const Move& move, const Change& change) {
    const Covariance& S = M.w.sigma;
    const double* z = M.along.z.data();
    auto moved = [&](const auto& values, size_t between) {
        if constexpr (!Path::many) return apply<Path>(M, values, move);
        else return apply<Path>(M, ClassRows{values, S.shared ? nullptr : M.along.parts.data(), between}, move);
    };
    if (Path::full(M))
        return moved(DenseRow<double>{z + S.constants, S.registered - S.constants}, S.shared ? 0 : S.registered);
    if (Path::pairs) return apply_inlined<Path>(M, Renewed<Row>{row, M.w.cells.data(), change.diagonal}, move);
    return moved(with_values(row, z), row.n);
}

}  // namespace onepass::ONEPASS_ISA
