// How weights move: one step checked, then written; scales folded, averages covered, norms followed, mini-batches kept.
// Included once per instruction set.
// Nothing here may call an out-of-line function of the standard library: the linker could pick another
// instruction set's copy.
#pragma once
#include "loops/scores.hpp"

namespace onepass::ONEPASS_ISA {

// Beyond this the exact check of every touched coordinate replaces the running upper bound.
constexpr double safe = 1e290;
constexpr double smallest_scale = 1e-9, largest_scale = 1e9;
// The averaged sum is a difference A*v - z with v = w/a: a small scale would cost it that many digits.
constexpr double smallest_averaged_scale = 1e-3, largest_averaged_scale = 1e3;
constexpr double recompute_every = 1e4;
// Updates of a mini-batch that together may lead further are refused as they come: its step can then not overflow.
constexpr double largest_batch = 1e250;

// One round's move, worked out before anything is written. A model of one row (`many` false) moves by coefficient * x;
// of class rows, either two move by +-coefficient * x, or each by its own.
struct Move {
    double scale, decay;
    double coefficient;
    double largest;                     // |coefficient|, or the largest of coefficients
    double soft, shrink;                // the proximal step that follows
    const double* coefficients;         // of every class row; null where the pair moves
    size_t up, down;                    // the pair
    double norm;                        // |x|^2, features alone
    double inner, phi_norm;             // <w, phi> and |phi|^2 (p-norm geometry: |phi|_p) over the features, for |w|^2
    double add;                         // multiplier of phi
    const double* constants = nullptr;  // of Gaussian weights: what the intercept of each class row moves along

    template <bool many>
    double of(size_t row) const {
        if (!many) return coefficient;
        if (coefficients) return coefficients[row];
        return row == up ? coefficient : (row == down ? -coefficient : 0.0);
    }
};

// Values of every class row, one after the other, at the places of a row: z of Gaussian weights. Rows that have no part
// in phi are left alone.
template <class Row>
struct ClassRows {
    Row row;
    const double* parts;  // of the class rows; null where all share the same values
    size_t between;       // values from one class row to the next
    const double* x = row.x;
    size_t n = row.n;
    size_t column(size_t i) const { return row.column(i); }
    double value(size_t i, size_t r) const { return parts && parts[r] == 0.0 ? 0.0 : row.x[r * between + i]; }
};
template <class Row>
ClassRows(Row, const double*, size_t) -> ClassRows<Row>;

template <class Row>
inline double value_of(const Row& row, size_t i, size_t) {
    return double(row.x[i]);
}
template <class Row>
inline double value_of(const ClassRows<Row>& row, size_t i, size_t r) {
    return row.value(i, r);
}

// Exact but slow: is any touched coordinate, as it would become, too large? a is the new scale, over its inverse.
template <bool many, class Row>
bool overflows(const Weights& w, const Row& row, const Move& move, double a, double over, double A) {
    const double kappa = move.scale * move.decay;
    const double kept = kappa == 0.0 ? 0.0 : w.a * kappa / a;
    for (size_t i = 0; i < row.n; ++i)
        for (size_t r = 0; r < w.rows; ++r) {
            const size_t j = row.column(i);
            const double delta = move.of<many>(r) * over * value_of(row, i, r), v = w.v_of(j)[r];
            const double moved = kept * (w.lazy ? w.paid(v) : v) + delta;
            if (!finite(moved) || !finite(a * moved)) return true;
            if (w.averaging != Averaging::none && !finite(w.z.data()[j * w.stride + r] + A * delta)) return true;
        }
    return false;
}

template <bool many, class Row>
inline void write(Weights& w, const ClassRows<Row>& row, const Move& move, double over) {
    for (size_t r = 0; r < w.rows; ++r) {
        const double c = move.of<many>(r) * over;
        if (c == 0.0) continue;
        for (size_t i = 0; i < row.n; ++i) {
            const double delta = c * row.value(i, r);
            w.v_of(row.column(i))[r] += delta;
            if (w.A != 0.0) w.z.data()[row.column(i) * w.stride + r] += w.A * delta;
        }
    }
}

template <bool many, class Row>
inline void write(Weights& w, const Row& row, const Move& move, double over) {
    const double A = w.A;  // stays 0 where nothing is averaged
    double* v = w.cells.data();
    double* z = A != 0.0 ? w.z.data() : nullptr;
    const double c = move.coefficient * over;
    if constexpr (!many) {
        if (c == 0.0) return;
        add(row, c, v, w.pitch);
        if (z) add(row, A * c, z);
    } else if (w.stride == 8) {
        // A whole vector of classes: the next score reads it so, and would have to wait for parts of it to be written.
        double of[8] = {};
        for (size_t r = 0; r < w.rows; ++r) of[r] = move.of<many>(r) * over;
        add_classes(row, load(of), 1.0, v, w.pitch);
        if (z) add_classes(row, load(of), A, z, w.stride);
    } else if (!move.coefficients) {
        for (size_t i = 0; i < row.n; ++i) {
            const double delta = c * double(row.x[i]);
            double* const at = w.v_of(row.column(i));
            at[move.up] += delta;
            at[move.down] -= delta;
            if (z) {
                double* const sum = z + row.column(i) * w.stride;
                sum[move.up] += A * delta;
                sum[move.down] -= A * delta;
            }
        }
    } else {
        for (size_t i = 0; i < row.n; ++i) {
            const double x = over * double(row.x[i]);
            double* const at = w.v_of(row.column(i));
            for (size_t r = 0; r < w.rows; ++r) at[r] += move.coefficients[r] * x;
            if (z)
                for (size_t r = 0; r < w.rows; ++r) z[row.column(i) * w.stride + r] += A * (move.coefficients[r] * x);
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
            if (move.of<many>(r) != 0.0) sum += std::pow(std::abs(w.a * w.v_of(row.column(i))[r]) / unit, w.p);
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

// What a round has to ask about, settled before the loop. The commonest models have one row of weights, the last ones
// predict, no |w|, no mini-batch; then `plain` weights are all there is, or L1 makes them `lazy`, or each lies beside
// its variance in a `diagonal`, or beside what a rule by `coordinates` keeps of its gradients. There the questions
// about all else are compiled away.
enum class Kind { any, plain, lazy, diagonal, coordinates };

template <bool many_, Kind kind = Kind::any>
struct Path {
    static constexpr bool many = many_, any = kind == Kind::any;
    static bool lazy(const Model& M) { return any ? M.w.lazy : kind == Kind::lazy; }
    static bool averages(const Model& M) { return any && M.w.averaging != Averaging::none; }
    static bool covered(const Model& M) { return averages(M) && M.t + 1.0 >= M.w.average_from; }
    static bool votes(const Model& M) { return any && M.w.votes.on; }
    static bool pockets(const Model& M) { return any && M.w.pocketing; }
    static bool uses_ww(const Model& M) { return any && M.uses_ww; }
    static bool linked(const Model& M) { return any && M.w.linked(); }
    static bool batched(const Model& M) { return any && M.w.batch.on(); }
    static bool gaussian(const Model& M) { return any ? M.w.sigma.on : kind == Kind::diagonal; }
    static bool full(const Model& M) { return any && M.w.sigma.full; }
    static bool oneclass(const Model& M) { return !many && any && M.task == Task::oneclass; }
    static bool coordinates(const Model& M) {
        return any ? M.coordinates != Coordinates::none : kind == Kind::coordinates;
    }
    // Are weights and what lies beside them read in one go?
    static constexpr bool pairs = kind == Kind::diagonal, packs = kind == Kind::coordinates;
};

inline Kind kind_of(const Model& M) {
    using Any = Path<false>;
    if (M.w.stride != 1 || M.coordinates == Coordinates::adam || Any::averages(M) || Any::votes(M) || Any::pockets(M) ||
        Any::uses_ww(M) || Any::linked(M) || Any::batched(M) || Any::oneclass(M) || M.w.sigma.vaw || M.clips)
        return Kind::any;
    if (M.coordinates != Coordinates::none) return Any::lazy(M) ? Kind::any : Kind::coordinates;
    if (!Any::gaussian(M)) return Any::lazy(M) ? Kind::lazy : Kind::plain;
    return Any::full(M) || Any::lazy(M) ? Kind::any : Kind::diagonal;
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
    w.owed += soft / w.a;
    w.a *= shrink;
    if (!(w.owed < safe)) {  // no sum of weight and debt may overflow
        w.pay();
        w.raise();
    }
}

// Before the weights of a row's features are written.
template <class Row>
inline void put_aside(const Weights& w, const Row& row) {
    if (w.undo->all) return;
    const Undo::Room room = w.undo->room_for(row.n, w.z.size() > 0);
    for (size_t i = 0; i < row.n; ++i) {
        const size_t j = row.column(i);
        room.index[i] = int64_t(j);
        room.v[i] = w.v_of(j)[0];
        if (room.z) room.z[i] = w.z.data()[j];
    }
}
template <class X>
inline void put_aside(const Weights& w, const DenseValues<X>&) {
    w.undo->put_aside(w);
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
    auto constant = [&](size_t r) { return Path::gaussian(M) ? move.constants[r] : M.constant; };
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
        if (!finite(move.scale * w.bias[r] + move.of<many>(r) * constant(r))) return Status::overflow;
    if (Path::votes(M) && w.votes.full()) return Status::full;

    // From here on nothing fails.
    if (!many && w.undo) put_aside(w, row);
    if (covered && predictor) cover<many>(w);
    rescale(w, kappa);
    // The triangle inequality: no coordinate can be longer than this.
    const bool linked = Path::linked(M);
    const double kept = linked ? std::abs(kappa) * std::sqrt(w.ww) : 0.0;
    const double unit = linked ? kept + std::abs(move.add) * move.phi_norm : 0.0;
    const double left = unit > 0.0 ? powers<many>(w, row, move, unit) : 0.0;
    if (!lazy) {
        write<many>(w, row, move, over);
    } else if (move.largest != 0.0) {        // a row that does not move goes on owing
        if (many || fold || kappa == 0.0) {  // folded or cleared, what was kept is of another scale
            double* coefficients = M.scratch();
            for (size_t r = 0; r < rows; ++r) coefficients[r] = move.of<many>(r);
            pay_and_add(w, row, coefficients, over);
        } else {
            add_to_paid(w, row, M.kept.data(), move.coefficient * over);
        }
    }
    for (size_t r = 0; r < rows; ++r) w.bias[r] = move.scale * w.bias[r] + move.of<many>(r) * constant(r);
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
    } else if (Path::uses_ww(M) && Path::gaussian(M)) {
        w.recompute_norm();
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
            if (!many && w.undo) put_aside(w, row);
            if (w.lazy) pay_and_add(w, row, coefficients, over);
            else write<many>(w, row, move, over);
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

}  // namespace onepass::ONEPASS_ISA
