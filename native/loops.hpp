// The update loop: score, margin, rule, step. Templates over the kind of row; included once per instruction set.
// Nothing here may call an out-of-line function of the standard library: the linker could pick another
// instruction set's copy.
#pragma once
#include <cfloat>
#include <cmath>
#include <type_traits>

#include "classes.hpp"
#include "lanes.hpp"
#include "lazy.hpp"
#include "model.hpp"

namespace onepass::ONEPASS_ISA {

// Beyond this the exact check of every touched coordinate replaces the running upper bound.
constexpr double safe = 1e290;
constexpr double smallest_scale = 1e-9, largest_scale = 1e9;
// The averaged sum is a difference A*v - z with v = w/a: a small scale would cost it that many digits.
constexpr double smallest_averaged_scale = 1e-3, largest_averaged_scale = 1e3;
constexpr double recompute_every = 1e4;
// Updates of a mini-batch that together may lead further are refused as they come: its step can then not overflow.
constexpr double largest_batch = 1e250;

inline bool finite(double x) { return std::abs(x) <= DBL_MAX; }  // false for NaN

template <class V>
struct DenseRow {
    const V* x;
    size_t n;
    size_t column(size_t i) const { return i; }
    Dense where(const double* v) const { return {v}; }
    DotNorm dot_norm(const double* v) const { return ONEPASS_ISA::dot_norm(x, n, v); }
};

template <class V, class I>
struct SparseRow {
    const V* x;
    const I* index;
    size_t n;
    size_t column(size_t i) const { return size_t(index[i]); }
    Indexed<I> where(const double* v) const { return {v, index}; }
    DotNorm dot_norm(const double* v) const { return dot_norm_of(x, n, where(v)); }
};

// v += c * x
template <class V>
inline void add(const DenseRow<V>& row, double c, double* __restrict v) {
    const V* __restrict x = row.x;
    for (size_t i = 0; i < row.n; ++i) v[i] += c * double(x[i]);
}
template <class V, class I>
inline void add(const SparseRow<V, I>& row, double c, double* __restrict v) {
    const V* __restrict x = row.x;
    const I* __restrict index = row.index;
#pragma GCC unroll 8
    for (size_t i = 0; i < row.n; ++i) v[index[i]] += c * double(x[i]);
}

template <class V>
inline DenseRow<V> side_by_side(const DenseRow<V>& row) {
    return row;
}
template <class V, class I>
inline DenseRow<V> side_by_side(const SparseRow<V, I>& row) {
    return {row.x, row.n};
}

// The current weights of a row's features side by side as scores read them in the p-norm geometry, theta being of the
// given norm. Added in the same lanes as stored ones would be.
template <class Row>
inline double* gather_linked(const Model& M, const Row& row, double norm) {
    const Weights& w = M.w;
    double* gathered = M.gathered(row.n * w.stride);
    for (size_t i = 0; i < row.n; ++i) {
        const double* v = w.v.data() + row.column(i) * w.stride;
        for (size_t r = 0; r < w.stride; ++r) gathered[i * w.stride + r] = r < w.rows ? w.link(w.a * v[r], norm) : 0.0;
    }
    return gathered;
}

// Where the current weights of a row are, under which scale, with which bias. `keep` is where paid weights may stay.
struct Reading {
    const double* weights;
    bool gathered;  // side by side, not at the row's columns
    double a;
    const double* bias;
};

template <class Row>
inline Reading read_current(const Model& M, const Row& row, double* keep) {
    const Weights& w = M.w;
    if (w.lazy) return {paid_side_by_side(w, row, keep), true, w.a, w.bias.data()};
    if (!w.linked()) return {w.v.data(), false, w.a, w.bias.data()};
    const double norm = w.theta_norm();
    double* bias = M.linked_bias();
    for (size_t r = 0; r < w.rows; ++r) bias[r] = w.link(w.bias[r], norm);
    return {gather_linked(M, row, norm), true, 1.0, bias};
}

// All scores of a row by what was read.
template <class Row>
inline void scores_of(const Model& M, const Row& row, const Reading& read, double* out, double* scratch) {
    const Weights& w = M.w;
    if (w.stride == 1) {
        const double* v = read.weights;
        scratch[0] = (read.gathered ? side_by_side(row).dot_norm(v) : row.dot_norm(v)).dot;
    } else if (read.gathered) {
        class_scores_wide(side_by_side(row), read.weights, w.stride, scratch);
    } else {
        class_scores_wide(row, read.weights, w.stride, scratch);
    }
    for (size_t r = 0; r < w.rows; ++r) out[r] = read.a * scratch[r] + read.bias[r] * M.constant;
}

// Scores from the pocket, from weights that still owe soft-thresholding, or through the link.
template <class Row>
inline void score_otherwise(const Model& M, const Row& row, double* out, double* scratch) {
    const Weights& w = M.w;
    const bool pocket = w.pocketing && w.best_run > 0.0;
    double* keep = w.lazy && !pocket ? M.gathered(row.n * w.stride) : nullptr;
    const Reading read =
        pocket ? Reading{w.pocket.data(), false, w.pocket_a, w.pocket_bias.data()} : read_current(M, row, keep);
    scores_of(M, row, read, out, scratch);
}

// Any row as doubles and 64-bit indices, for the readout that keeps rows.
template <class Row, class Use>
inline void with_numbers(const Row& row, Use use) {
    RowCopy& copy = row_copy(row.n);
    for (size_t i = 0; i < row.n; ++i) {
        copy.x[i] = double(row.x[i]);
        copy.index[i] = int64_t(row.column(i));
    }
    use(copy.x, copy.index);
}

// The readout's scores of one row, into out[rows].
template <class Row>
inline void score_row(const Model& M, const Row& row, double* out, double* scratch) {
    const Weights& w = M.w;
    if (w.votes.on)
        return with_numbers(row, [&](const double* x, const int64_t* at) { M.count_votes(x, at, row.n, out); });
    if (w.lazy || w.linked() || (w.pocketing && w.best_run > 0.0)) return score_otherwise(M, row, out, scratch);
    const bool average = w.averaging != Averaging::none && w.averaged > 0;
    if (w.stride == 1) {
        const double dot = row.dot_norm(w.v.data()).dot;
        out[0] = average
                     ? (w.A * dot - row.dot_norm(w.z.data()).dot) / w.averaged + w.bias_sum[0] / w.averaged * M.constant
                     : w.a * dot + w.bias[0] * M.constant;
        return;
    }
    class_scores_wide(row, w.v.data(), w.stride, scratch);
    if (!average) {
        for (size_t r = 0; r < w.rows; ++r) out[r] = w.a * scratch[r] + w.bias[r] * M.constant;
        return;
    }
    for (size_t r = 0; r < w.rows; ++r) out[r] = w.A * scratch[r] + w.bias_sum[r] * M.constant;
    class_scores_wide(row, w.z.data(), w.stride, scratch);
    for (size_t r = 0; r < w.rows; ++r) out[r] = (out[r] - scratch[r]) / w.averaged;
}

// One round's move, worked out before anything is written. A model of one row (`many` false) moves by coefficient * x;
// of class rows, either two move by +-coefficient * x, or each by its own.
struct Move {
    double scale, decay;
    double coefficient;
    double largest;              // |coefficient|, or the largest of coefficients
    double soft, shrink;         // the proximal step that follows
    const double* coefficients;  // of every class row; null where the pair moves
    size_t up, down;             // the pair
    double norm;                 // |x|^2, features alone
    double inner, phi_norm;      // <w, phi> and |phi|^2 (p-norm geometry: |phi|_p) over the features, for |w|^2
    double add;                  // multiplier of phi

    template <bool many>
    double of(size_t row) const {
        if (!many) return coefficient;
        if (coefficients) return coefficients[row];
        return row == up ? coefficient : (row == down ? -coefficient : 0.0);
    }
};

// Exact but slow: is any touched coordinate, as it would become, too large? a is the new scale, over its inverse.
template <bool many, class Row>
bool overflows(const Weights& w, const Row& row, const Move& move, double a, double over, double A) {
    const double kappa = move.scale * move.decay;
    const double kept = kappa == 0.0 ? 0.0 : w.a * kappa / a;
    for (size_t i = 0; i < row.n; ++i)
        for (size_t r = 0; r < w.rows; ++r) {
            const size_t at = row.column(i) * w.stride + r;
            const double delta = move.of<many>(r) * over * double(row.x[i]);
            const double moved = kept * w.v.data()[at] + delta;
            if (!finite(moved) || !finite(a * moved)) return true;
            if (w.averaging != Averaging::none && !finite(w.z.data()[at] + A * delta)) return true;
        }
    return false;
}

template <bool many, class Row>
inline void write(Weights& w, const Row& row, const Move& move, double over) {
    const double A = w.A;  // stays 0 where nothing is averaged
    double* v = w.v.data();
    double* z = A != 0.0 ? w.z.data() : nullptr;
    const double c = move.coefficient * over;
    if constexpr (!many) {
        if (c == 0.0) return;
        add(row, c, v);
        if (z) add(row, A * c, z);
    } else if (w.stride == 8) {
        // A whole vector of classes: the next score reads it so, and would have to wait for parts of it to be written.
        double of[8] = {};
        for (size_t r = 0; r < w.rows; ++r) of[r] = move.of<many>(r) * over;
        add_classes(row, load(of), 1.0, v);
        if (z) add_classes(row, load(of), A, z);
    } else if (!move.coefficients) {
        for (size_t i = 0; i < row.n; ++i) {
            const double delta = c * double(row.x[i]);
            const size_t at = row.column(i) * w.stride;
            v[at + move.up] += delta;
            v[at + move.down] -= delta;
            if (z) {
                z[at + move.up] += A * delta;
                z[at + move.down] -= A * delta;
            }
        }
    } else {
        for (size_t i = 0; i < row.n; ++i) {
            const double x = over * double(row.x[i]);
            const size_t at = row.column(i) * w.stride;
            for (size_t r = 0; r < w.rows; ++r) v[at + r] += move.coefficients[r] * x;
            if (z)
                for (size_t r = 0; r < w.rows; ++r) z[at + r] += A * (move.coefficients[r] * x);
        }
    }
}

// |x|_p of a row, by way of its largest: no power overflows.
template <class Row>
inline double row_p_norm(const Row& row, double p) {
    double largest = 0.0, sum = 0.0;
    for (size_t i = 0; i < row.n; ++i)
        if (std::abs(double(row.x[i])) > largest) largest = std::abs(double(row.x[i]));
    if (largest == 0.0) return 0.0;
    for (size_t i = 0; i < row.n; ++i) sum += std::pow(std::abs(double(row.x[i])) / largest, p);
    return largest * std::pow(sum, 1.0 / p);
}

// The sum of |theta_j / unit|^p over the coordinates that a move touches.
template <bool many, class Row>
inline double powers(const Weights& w, const Row& row, const Move& move, double unit) {
    double sum = 0.0;
    for (size_t i = 0; i < row.n; ++i)
        for (size_t r = 0; r < (many ? w.rows : 1); ++r)
            if (move.of<many>(r) != 0.0)
                sum += std::pow(std::abs(w.a * w.v.data()[row.column(i) * w.stride + r]) / unit, w.p);
    return sum;
}

// Follows |theta|_p over a move: `left` was the touched coordinates' part before it, in powers of unit. A difference of
// powers can lose all its digits, so its error is followed too, and the norm taken anew where that grows.
template <bool many, class Row>
inline void follow_norm(Weights& w, const Row& row, const Move& move, double unit, double kept, double left) {
    if (unit == 0.0) return;
    const double come = powers<many>(w, row, move, unit), old = std::pow(kept / unit, w.p), now = old + (come - left);
    const double most = double(w.features) > recompute_every ? double(w.features) : recompute_every;
    w.since_recomputed = now > 0.0 ? std::ceil((old * (w.since_recomputed + 1.0) + left + come) / now) : HUGE_VAL;
    if (!(w.since_recomputed <= most)) return w.recompute_norm();
    const double norm = unit * std::pow(now, 1.0 / w.p);
    w.ww = norm * norm;
}

// The weights as they stand enter the average.
template <bool many>
inline void cover(Weights& w) {
    w.A += w.a;
    w.averaged += 1.0;
    for (size_t r = 0; r < (many ? w.rows : 1); ++r) w.bias_sum[r] += w.bias[r];
}

// What a round has to ask about, settled before the loop. `plain` is the commonest: one row of weights, the last ones
// predict, no L1, no |w|, no mini-batch. There the questions about all else are compiled away.
template <bool many_, bool plain_>
struct Path {
    static constexpr bool many = many_, plain = plain_;
    static bool lazy(const Model& M) { return !plain && M.w.lazy; }
    static bool averages(const Model& M) { return !plain && M.w.averaging != Averaging::none; }
    static bool covered(const Model& M) { return averages(M) && M.t + 1.0 >= M.w.average_from; }
    static bool votes(const Model& M) { return !plain && M.w.votes.on; }
    static bool pockets(const Model& M) { return !plain && M.w.pocketing; }
    static bool uses_ww(const Model& M) { return !plain && M.uses_ww; }
    static bool linked(const Model& M) { return !plain && M.w.linked(); }
    static bool batched(const Model& M) { return !plain && M.w.batch.on(); }
    static bool oneclass(const Model& M) { return !many && !plain && M.task == Task::oneclass; }
};

inline bool is_plain(const Model& M) {
    using Any = Path<false, false>;
    return M.w.stride == 1 && !Any::lazy(M) && !Any::averages(M) && !Any::votes(M) && !Any::pockets(M) &&
           !Any::uses_ww(M) && !Any::linked(M) && !Any::batched(M) && !Any::oneclass(M);
}

// Is a scale too far from 1 to divide by?
inline bool outside(const Weights& w, double a) {
    const bool narrow = w.averaging != Averaging::none || w.lazy;
    return !(std::abs(a) >= (narrow ? smallest_averaged_scale : smallest_scale) &&
             std::abs(a) <= (narrow ? largest_averaged_scale : largest_scale));
}

// w <- kappa * w, the intercept apart.
inline void rescale(Weights& w, double kappa) {
    if (kappa == 0.0) return w.clear();
    w.a *= kappa;
    if (outside(w, w.a)) w.fold();
}

// The proximal step that ends an update.
inline void soften(Weights& w, double soft, double shrink) {
    if (!w.lazy) return;
    w.owed_now += soft / w.a;
    w.a *= shrink;
}

// Applies a move, or refuses it whole.
template <class Path, class Row>
inline Status apply(Model& M, const Row& row, const Move& move) {
    constexpr bool many = Path::many;
    Weights& w = M.w;
    const size_t rows = many ? w.rows : 1;
    const double kappa = move.scale * move.decay;
    const double a = kappa == 0.0 ? 1.0 : w.a * kappa;
    const bool averages = Path::averages(M), covered = Path::covered(M), lazy = Path::lazy(M);
    const bool predictor = w.averaging == Averaging::predictor;
    const bool fold = outside(w, a);
    if (fold && !finite(a)) return Status::overflow;
    const double over = fold || a == 1.0 ? 1.0 : 1.0 / a;
    const double A = covered && predictor ? w.A + w.a : w.A;

    // No coordinate of x is larger than 1 + |x|^2, so far from overflow none needs a look.
    const double reach = move.largest * std::abs(over) * (1.0 + move.norm);
    const double peak = fold ? w.peak * std::abs(a) : w.peak;
    if (!(peak + reach < safe && (!averages || w.z_peak + std::abs(A) * (reach + w.peak) < safe)))
        if (overflows<many>(w, row, move, fold ? 1.0 : a, over, A)) return Status::overflow;
    for (size_t r = 0; r < rows; ++r)
        if (!finite(move.scale * w.bias[r] + move.of<many>(r) * M.constant)) return Status::overflow;
    if (Path::votes(M) && w.votes.full()) return Status::full;

    // From here on nothing fails.
    if (covered && predictor) cover<many>(w);
    rescale(w, kappa);
    // The triangle inequality: no coordinate can be longer than this.
    const bool linked = Path::linked(M);
    const double kept = linked ? std::abs(kappa) * std::sqrt(w.ww) : 0.0;
    const double unit = linked ? kept + std::abs(move.add) * move.phi_norm : 0.0;
    const double left = unit > 0.0 ? powers<many>(w, row, move, unit) : 0.0;
    if (!lazy) {
        write<many>(w, row, move, over);
    } else if (move.largest != 0.0) {  // a row that does not move goes on owing
        if (fold || kappa == 0.0) {    // all has been paid, and what was kept is of another scale
            for (size_t i = 0; i < row.n; ++i) w.owed_then.data()[row.column(i)] = w.owed_now;
            write<many>(w, row, move, over);
        } else if constexpr (many) {
            settle_rows(w, row, M.kept.data());
            write<many>(w, row, move, over);
        } else {
            settle_and_add(w, row, M.kept.data(), move.coefficient * over);
        }
    }
    for (size_t r = 0; r < rows; ++r) w.bias[r] = move.scale * w.bias[r] + move.of<many>(r) * M.constant;
    if (lazy) soften(w, move.soft, move.shrink);
    if (covered && !predictor) cover<many>(w);
    if (Path::votes(M)) {
        double* coefficients = M.scratch();
        for (size_t r = 0; r < rows; ++r) coefficients[r] = move.of<many>(r);
        with_numbers(row, [&](const double* x, const int64_t* at) { M.record_vote(x, at, row.n, coefficients); });
    }
    w.peak += reach;
    if (averages) w.z_peak += std::abs(w.A) * reach;
    if (w.peak >= safe || w.z_peak >= safe) w.recompute_peaks();
    if (linked) {
        follow_norm<many>(w, row, move, unit, kept, left);
        w.into_ball();
        if (w.a < smallest_scale) w.fold();
    } else if (Path::uses_ww(M)) {
        w.ww = kappa * kappa * w.ww + 2.0 * kappa * move.add * move.inner + move.add * move.add * move.phi_norm;
        if (w.ww < 0.0) w.ww = 0.0;
        w.since_recomputed += 1.0;
        if (w.since_recomputed >= (double(w.features) > recompute_every ? double(w.features) : recompute_every))
            w.recompute_norm();
    }
    return Status::ok;
}

// The one step of a mini-batch: its updates in the order they came, shared or summed.
template <bool many>
inline void finish_batch(Model& M) {
    Weights& w = M.w;
    MiniBatch& batch = w.batch;
    if (batch.rounds == 0.0) return;
    if (batch.moves) {
        const size_t rows = many ? w.rows : 1;
        const double share = batch.mean ? 1.0 / batch.rounds : 1.0;
        rescale(w, batch.scale * batch.decay);
        for (size_t r = 0; r < rows; ++r) w.bias[r] *= batch.scale;
        const double over = w.a == 1.0 ? 1.0 : 1.0 / w.a;
        double* coefficients = M.scratch();
        const Updates& updates = batch.updates;
        for (size_t k = 0; k < updates.count(); ++k) {
            const size_t begin = updates.begin(k);
            const SparseRow<double, int64_t> row{updates.value.data() + begin, updates.index.data() + begin,
                                                 size_t(updates.ends[k]) - begin};
            updates.coefficients_of(k, rows, coefficients);
            for (size_t r = 0; r < rows; ++r) coefficients[r] *= share;
            Move move{};
            move.coefficient = coefficients[0];
            move.coefficients = coefficients;
            if (w.lazy) settle(w, row);
            write<many>(w, row, move, over);
            for (size_t r = 0; r < rows; ++r) w.bias[r] += coefficients[r] * M.constant;
        }
        soften(w, batch.soft, batch.shrink);
        w.peak += batch.reach * std::abs(over);
        if (w.averaging != Averaging::none) w.z_peak += std::abs(w.A * over) * batch.reach;
        if (w.peak >= safe || w.z_peak >= safe) w.recompute_peaks();
        M.k += updates.count() > 0;
    }
    batch.clear();
    batch.steps += 1.0;
}

// A round of a mini-batch: its update waits for the others. The last one takes the step.
template <class Path, class Row>
inline Status join_batch(Model& M, const Row& row, const Move& move, bool skip) {
    constexpr bool many = Path::many;
    Weights& w = M.w;
    MiniBatch& batch = w.batch;
    const size_t rows = many ? w.rows : 1;
    if (!skip) {
        const double reach = batch.reach + move.largest * (1.0 + move.norm + std::abs(M.constant));
        if (!(reach < largest_batch)) return Status::overflow;
        if (move.largest > 0.0) {
            double* coefficients = M.scratch();
            for (size_t r = 0; r < rows; ++r) coefficients[r] = move.of<many>(r);
            with_numbers(
                row, [&](const double* x, const int64_t* at) { batch.updates.push(x, at, row.n, coefficients, rows); });
        }
        batch.reach = reach;
        batch.moves = true;
        batch.scale = move.scale;
        batch.decay = move.decay;
        batch.soft = move.soft;
        batch.shrink = move.shrink;
    }
    batch.rounds += 1.0;
    const bool covered = Path::covered(M), predictor = w.averaging == Averaging::predictor;
    if (covered && predictor) cover<many>(w);
    if (batch.rounds >= batch.size) finish_batch<many>(M);
    if (covered && !predictor) cover<many>(w);
    return Status::ok;
}

inline double bias_norm(const Weights& w) {
    double sum = 0.0;
    for (size_t r = 0; r < w.rows; ++r) sum += w.bias[r] * w.bias[r];
    return sum;
}

// The p-norms of phi, where phi has x in one or more rows, each times its part.
inline void measure(const Model& M, Scalars& s, Move& move, double x_norm, double parts = 1.0) {
    const double whole = M.w.beside(x_norm, M.bias_in_norm ? M.constant : 0.0) * parts;
    s.xx = whole * whole;
    move.phi_norm = x_norm * parts;
}

// What a task makes of a row: the scalars of the round and the direction of its move.
template <class Path, class Row>
inline Status face(Model& M, const Row& row, double y, Scalars& s, Move& move) {
    const Weights& w = M.w;
    const bool lazy = Path::lazy(M), straight = !lazy && !Path::linked(M);
    // Paying is fused into the sum: the paid weights are kept on the way.
    const Reading read =
        straight || lazy ? Reading{w.v.data(), false, w.a, w.bias.data()} : read_current(M, row, nullptr);
    const DotNorm d = lazy       ? dot_norm_of(row.x, row.n, paid_weights(w, row, M.room_to_keep(row.n)))
                      : straight ? row.dot_norm(read.weights)
                                 : side_by_side(row).dot_norm(read.weights);
    if (!finite(d.norm)) return Status::not_finite;
    const double score = read.a * d.dot, full = score + read.bias[0] * M.constant;
    double sign = 1.0;
    if (M.task == Task::regress) {
        sign = s.side = y < full ? -1.0 : 1.0;
        s.target = sign * y - M.tube;
    } else if (M.task == Task::classify) {
        sign = y == 0.0 ? -1.0 : 1.0;
    }
    s.m = sign * full;
    s.xx = d.norm + M.constant_norm();
    move.coefficient = sign;
    move.coefficients = nullptr;
    move.norm = move.phi_norm = d.norm;
    move.inner = sign * score;
    if (w.linked()) measure(M, s, move, row_p_norm(row, w.p));
    return finite(s.xx) && finite(s.m) ? Status::ok : Status::overflow;
}

// The uniform and proportional families: -x is shared among all classes that score at least as much as the true one.
inline void share(Model& M, Scalars& s, Move& move, double norm) {
    const Weights& w = M.w;
    const double *scores = M.scores.data(), truth = scores[move.up];
    double errors = 0.0, over = 0.0;
    for (size_t r = 0; r < w.rows; ++r)
        if (r != move.up && scores[r] >= truth) {
            errors += 1.0;
            over += scores[r] - truth;
        }
    const bool proportional = M.against == Against::proportional && over > 0.0;
    double* parts = M.coefficients.data();
    double squares = 0.0, mixed = 0.0, bias = 0.0;
    for (size_t r = 0; r < w.rows; ++r) {
        const bool error = r != move.up && scores[r] >= truth;
        parts[r] = r == move.up ? 1.0 : (error ? -(proportional ? (scores[r] - truth) / over : 1.0 / errors) : 0.0);
        squares += parts[r] * parts[r];
        mixed += parts[r] * (scores[r] - truth);  // a tie is exactly 0
        bias += parts[r] * w.bias[r] * M.constant;
    }
    move.coefficients = parts;
    move.phi_norm = squares * norm;
    move.inner = mixed - bias;
    s.m = mixed;
    s.xx = squares * (norm + M.constant_norm());
}

// The same for class rows: the true class against its best-scoring rival, the lowest index among equals.
template <class Row>
inline Status face_classes(Model& M, const Row& row, double y, const uint8_t* set, Scalars& s, Move& move) {
    Weights& w = M.w;
    const double norm = ONEPASS_ISA::norm(row.x, row.n);
    if (!finite(norm)) return Status::not_finite;
    double* scores = M.scores.data();
    scores_of(M, row, read_current(M, row, w.lazy ? M.room_to_keep(row.n * w.stride) : nullptr), scores, scores);
    for (size_t r = 0; r < w.rows; ++r)
        if (!finite(scores[r])) return Status::overflow;
    if (M.task == Task::multilabel) {  // the lowest of those in against the highest of those out
        move.up = move.down = w.rows;
        for (size_t r = 0; r < w.rows; ++r) {
            size_t& chosen = set[r] ? move.up : move.down;
            if (chosen == w.rows || (set[r] ? scores[r] < scores[chosen] : scores[r] > scores[chosen])) chosen = r;
        }
        if (M.calibrated) {
            s.xx = norm + M.constant_norm();
            move.norm = norm;
            move.coefficient = 1.0;
            move.coefficients = nullptr;
            return finite(s.xx) ? Status::ok : Status::overflow;
        }
        if (move.up == w.rows || move.down == w.rows) {  // all in, or all out: nothing to order
            move.up = move.down = 0;
            s.importance = 0.0;
        }
    } else if (M.roots.empty()) {
        move.up = size_t(y);
        move.down = move.up == 0 ? 1 : 0;
        for (size_t r = move.down + 1; r < w.rows; ++r)
            if (r != move.up && scores[r] > scores[move.down]) move.down = r;
    } else {  // the rival that costs most, score included
        move.up = size_t(y);
        move.down = move.up == 0 ? 1 : 0;
        const double* roots = M.roots.data() + move.up * w.rows;
        for (size_t r = move.down + 1; r < w.rows; ++r)
            if (r != move.up && scores[r] + roots[r] > scores[move.down] + roots[move.down]) move.down = r;
        s.target = roots[move.down];
    }
    s.m = scores[move.up] - scores[move.down];
    s.xx = (M.solve ? 1.0 : 2.0) * (norm + M.constant_norm());
    move.coefficient = 1.0;
    move.coefficients = nullptr;
    move.norm = norm;
    move.phi_norm = 2.0 * norm;
    move.inner = s.m - (w.bias[move.up] - w.bias[move.down]) * M.constant;
    if (M.against != Against::rival && s.m <= 0.0) share(M, s, move, norm);
    if (w.linked()) {
        double sum = 0.0;  // of the parts' powers: two of 1, or those shared
        for (size_t r = 0; r < w.rows && move.coefficients; ++r) sum += std::pow(std::abs(move.coefficients[r]), w.p);
        measure(M, s, move, row_p_norm(row, w.p), std::pow(move.coefficients ? sum : 2.0, 1.0 / w.p));
    }
    return finite(s.xx) && finite(s.m) ? Status::ok : Status::overflow;
}

// Multilabel, calibrated: the lowest of those in should reach +1, the highest of those out -1, with a step each.
inline void calibrate(Model& M, Scalars s, const Move& move, double* state, Step* step) {
    double* coefficients = M.coefficients.data();
    for (size_t r = 0; r < M.w.rows; ++r) coefficients[r] = 0.0;
    bool moves = false;
    for (size_t chosen : {move.up, move.down}) {
        if (chosen == M.w.rows) continue;  // none is in, or all are
        const double sign = chosen == move.up ? 1.0 : -1.0;
        s.m = sign * M.scores[chosen];
        *step = passive;
        M.step(&s, M.params, state, step);
        coefficients[chosen] = sign * step->add;
        moves |= step->add != 0.0;
    }
    step->add = moves ? 1.0 : 0.0;
}

// The move of a rule that gave every class row its coefficient.
inline Status take_coefficients(const Model& M, Move& move) {
    move.coefficients = M.coefficients.data();
    move.largest = move.inner = 0.0;
    const double norm = move.norm;
    move.phi_norm = 0.0;
    for (size_t r = 0; r < M.w.rows; ++r) {
        const double c = move.coefficients[r];
        if (!finite(c)) return Status::overflow;
        if (std::abs(c) > move.largest) move.largest = std::abs(c);
        move.inner += c * (M.scores[r] - M.w.bias[r] * M.constant);
        move.phi_norm += c * c * norm;
    }
    move.add = 1.0;
    return Status::ok;
}

// A round that the weights passed unchanged: the longest run of them goes into the pocket.
inline void survive(Model& M) {
    Weights& w = M.w;
    w.run += 1.0;
    if (w.run <= w.best_run || w.rejected) return;
    if (!w.in_pocket && w.ratchet) {
        const double errors = M.errors(M, M.set);
        w.rejected = !(errors < w.pocket_errors);
        if (w.rejected) return;  // and the record to beat stays
        w.pocket_errors = errors;
    }
    w.best_run = w.run;
    if (w.in_pocket) return;
    w.keep();
    w.in_pocket = true;
}

// One round: score, rule, step, counters. Refused rounds leave the model as it was.
template <class Path, class Row>
inline Status learn_row(Model& M, const Row& row, double y, double importance, double target, const uint8_t* set,
                        double* out) {
    constexpr bool many = Path::many;
    const bool batched = Path::batched(M);
    Scalars s{0.0, target, 0.0, 0.0, importance, (batched ? M.w.batch.steps : M.t) + 1.0, M.k, 1.0};
    Move move;
    if (out) score_row(M, row, out, M.scores.data());
    Status status;
    if constexpr (many) status = face_classes(M, row, y, set, s, move);
    else status = face<Path>(M, row, y, s, move);
    if (status != Status::ok) return status;
    if (Path::linked(M)) s.ww = M.w.theta_norm() * M.w.theta_norm();
    else if (Path::uses_ww(M)) s.ww = M.w.ww + bias_norm(M.w);

    Step step = passive;
    double state[max_slots];
    double distance = 0.0;
    if (Path::oneclass(M)) {  // phi is the unit vector from w to x, the target a distance
        const double squared = s.ww - 2.0 * s.m + s.xx;
        distance = squared > 0.0 ? std::sqrt(squared) : 0.0;
        s.m = -distance;
        s.target = -M.tube;
        s.xx = 1.0;
        if (distance == 0.0) s.importance = 0.0;
    }
    const bool zero = s.xx < DBL_MIN, skip = zero || s.importance == 0.0;
    const bool all_scores = many && (M.solve || M.calibrated);
    if (!skip) {
        for (int i = 0; i < M.slots; ++i) state[i] = M.state[i];
        if (many && M.calibrated) calibrate(M, s, move, state, &step);
        else if (all_scores)
            M.solve(&s, M.scores.data(), int64_t(M.w.rows), int64_t(move.up), M.params, state, M.coefficients.data(),
                    &step);
        else M.step(&s, M.params, state, &step);
        for (int i = 0; i < M.slots; ++i)
            if (!finite(state[i])) return Status::overflow;
    }

    const bool still =
        step.add == 0.0 && step.scale == 1.0 && step.decay == 1.0 && step.soft == 0.0 && step.shrink == 1.0;
    if (still && !batched) {
        if (Path::covered(M)) cover<many>(M.w);
        if (Path::pockets(M) && !skip) survive(M);
        if (Path::votes(M) && !skip) M.w.votes.counts.back() += 1.0;
    } else {
        if (!finite(step.add) || !finite(step.scale) || !finite(step.decay) || !finite(step.soft) ||
            !(step.shrink > 0.0 && step.shrink <= 1.0))
            return Status::overflow;
        if (Path::oneclass(M)) {
            step.add /= distance;
            step.scale = 1.0 - step.add;
        }
        move.scale = step.scale;
        move.decay = step.decay;
        move.add = step.add;
        move.soft = step.soft;
        move.shrink = step.shrink;
        move.largest = std::abs(step.add);
        move.coefficient *= step.add;
        if (all_scores && !skip && take_coefficients(M, move) != Status::ok) return Status::overflow;
        if (!all_scores && move.coefficients)  // shares of one step
            for (size_t r = 0; r < M.w.rows; ++r) M.coefficients[r] *= step.add;
        status = batched ? join_batch<Path>(M, row, move, skip) : apply<Path>(M, row, move);
        if (status != Status::ok) return status;
        if (!batched) M.k += move.largest > 0.0;
        if (Path::pockets(M)) {
            M.w.run = 0.0;
            M.w.in_pocket = M.w.rejected = false;
        }
    }
    if (!skip)
        for (int i = 0; i < M.slots; ++i) M.state[i] = state[i];
    M.t += 1.0;
    M.skipped_zero += zero;
    return Status::ok;
}

}  // namespace onepass::ONEPASS_ISA
