// How weights move: one step checked, then written; scales folded, averages covered, norms followed, mini-batches kept.
// Included once per instruction set.
// Nothing here may call an out-of-line function of the standard library: the linker could pick another
// instruction set's copy.
#pragma once
#include "loops/paths.hpp"
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
        for (size_t r = 0; r < w.outputs; ++r) {
            const size_t j = row.column(i);
            const double delta = move.of<many>(r) * over * value_of(row, i, r), v = w.v_of(j)[r];
            const double moved = kept * (w.l1.on ? w.l1.decode(v) : v) + delta;
            if (!finite(moved) || !finite(a * moved)) return true;
            if (w.average.on() && !finite(w.average.z.data()[j * w.stride + r] + A * delta)) return true;
        }
    return false;
}

template <bool many, class Row>
inline void write(Weights& w, const ClassRows<Row>& row, const Move& move, double over) {
    for (size_t r = 0; r < w.outputs; ++r) {
        const double c = move.of<many>(r) * over;
        if (c == 0.0) continue;
        for (size_t i = 0; i < row.n; ++i) {
            const double delta = c * row.value(i, r);
            w.v_of(row.column(i))[r] += delta;
            if (w.average.A != 0.0) w.average.z.data()[row.column(i) * w.stride + r] += w.average.A * delta;
        }
    }
}

template <bool many, class Row>
inline void write(Weights& w, const Row& row, const Move& move, double over) {
    const double A = w.average.A;  // stays 0 where nothing is averaged
    double* v = w.cells.data();
    double* z = A != 0.0 ? w.average.z.data() : nullptr;
    const double c = move.coefficient * over;
    if constexpr (!many) {
        if (c == 0.0) return;
        add(row, c, v, w.pitch);
        if (z) add(row, A * c, z);
    } else if (w.stride == 8) {
        // A whole vector of classes: the next score reads it so, and would have to wait for parts of it to be written.
        double of[8] = {};
        for (size_t r = 0; r < w.outputs; ++r) of[r] = move.of<many>(r) * over;
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
            for (size_t r = 0; r < w.outputs; ++r) at[r] += move.coefficients[r] * x;
            if (z)
                for (size_t r = 0; r < w.outputs; ++r)
                    z[row.column(i) * w.stride + r] += A * (move.coefficients[r] * x);
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
        for (size_t r = 0; r < (many ? w.outputs : 1); ++r)
            if (move.of<many>(r) != 0.0) sum += std::pow(std::abs(w.a * w.v_of(row.column(i))[r]) / unit, w.p_norm.p);
    return sum;
}

// Follows |theta|_p over a move: `left` was the touched coordinates' part before it, in powers of unit. A difference of
// powers can lose all its digits, so its error is followed too, and the norm taken anew where that grows.
template <bool many, class Row>
inline void follow_norm(Weights& w, const Row& row, const Move& move, double unit, double kept, double left) {
    if (unit == 0.0) return;
    const double come = powers<many>(w, row, move, unit), old = std::pow(kept / unit, w.p_norm.p),
                 now = old + (come - left);
    const double most = double(w.features) > recompute_every ? double(w.features) : recompute_every;
    w.norm.since_recomputed =
        now > 0.0 ? std::ceil((old * (w.norm.since_recomputed + 1.0) + left + come) / now) : HUGE_VAL;
    if (!(w.norm.since_recomputed <= most)) return w.recompute_norm();
    const double norm = unit * std::pow(now, 1.0 / w.p_norm.p);
    w.norm.ww = norm * norm;
}

// The weights as they stand enter the average.
template <bool many>
inline void add_to_average(Weights& w) {
    w.average.A += w.a;
    w.average.rounds += 1.0;
    for (size_t r = 0; r < (many ? w.outputs : 1); ++r) w.average.bias_sum[r] += w.bias[r];
}

// Is a scale too far from 1 to divide by?
inline bool outside(const Weights& w, double a) {
    const bool narrow = w.average.on() || w.l1.on;
    return !(std::abs(a) >= (narrow ? smallest_averaged_scale : smallest_scale) &&
             std::abs(a) <= (narrow ? largest_averaged_scale : largest_scale));
}

// w <- kappa * w, the intercept apart.
inline void rescale(Weights& w, double kappa) {
    if (kappa == 0.0) return w.set_to_zero();
    w.a *= kappa;
    if (outside(w, w.a)) w.fold_scale();
}

// The proximal step that ends an update.
inline void proximal_step(Weights& w, double soft, double shrink) {
    if (!w.l1.on) return;
    w.l1.pending += soft / w.a;
    w.a *= shrink;
    if (!(w.l1.pending < safe)) {  // no sum of weight and l1 may overflow
        w.apply_pending();
        w.encode_weights();
    }
}

// Before the weights of a row's features are written.
template <class Row>
inline void put_aside(const Weights& w, const Row& row) {
    if (w.undo->all) return;
    const Undo::Room room = w.undo->room_for(row.n, w.average.z.size() > 0);
    for (size_t i = 0; i < row.n; ++i) {
        const size_t j = row.column(i);
        room.index[i] = int64_t(j);
        room.v[i] = w.v_of(j)[0];
        if (room.z) room.z[i] = w.average.z.data()[j];
    }
}
template <class X>
inline void put_aside(const Weights& w, const DenseValues<X>&) {
    w.undo->put_aside(w);
}

// Where a move leads: w <- kappa * w, under the scale a from then on.
struct MovePlan {
    double kappa, a;
    bool fold;                         // is a too far from 1, so that the weights are multiplied out?
    double over;                       // 1/a: what is added to v for each unit of w
    double A;                          // the sum of the averaged scales while the weights move
    double reach;                      // how far any coordinate of v may move: none of x is larger than 1 + |x|^2
    bool covers_before, covers_after;  // do the averages take in the weights before the move, or after it?
};

template <class Path>
ONEPASS_INLINE MovePlan plan_move(const Model& M, const Move& move) {
    const Weights& w = M.w;
    MovePlan to;
    to.kappa = move.scale * move.decay;
    to.a = to.kappa == 0.0 ? 1.0 : w.a * to.kappa;
    to.fold = outside(w, to.a);
    to.over = to.fold || to.a == 1.0 ? 1.0 : 1.0 / to.a;
    to.reach = move.largest * std::abs(to.over) * (1.0 + move.norm);
    const bool covered = Path::covered(M), predictor = w.average.kind == Averaging::predictor;
    to.covers_before = covered && predictor;
    to.covers_after = covered && !predictor;
    to.A = to.covers_before ? w.average.A + w.a : w.average.A;
    return to;
}

template <class Path>
ONEPASS_INLINE double constant_of(const Model& M, const Move& move, size_t r) {
    return Path::gaussian(M) ? move.constants[r] : M.constant;
}

// Will every weight stay finite? So far from overflow that no coordinate can reach it, none needs a look.
template <class Path, class Row>
ONEPASS_INLINE Status check_move(const Model& M, const Row& row, const Move& move, const MovePlan& to) {
    constexpr bool many = Path::many;
    const Weights& w = M.w;
    const double peak = to.fold ? w.peaks.v * std::abs(to.a) : w.peaks.v;
    if (!(peak + to.reach < safe && (!Path::averages(M) || w.peaks.z + std::abs(to.A) * (to.reach + w.peaks.v) < safe)))
        if (overflows<many>(w, row, move, to.fold ? 1.0 : to.a, to.over, to.A)) return Status::overflow;
    for (size_t r = 0; r < (many ? w.outputs : 1); ++r)
        if (!finite(move.scale * w.bias[r] + move.of<many>(r) * constant_of<Path>(M, move, r))) return Status::overflow;
    if (Path::votes(M) && w.votes.full()) return Status::full;
    return Status::ok;
}

// What the move adds to every class row, for those who take it as an array.
template <bool many>
inline const double* coefficients_of(const Model& M, const Move& move) {
    double* coefficients = M.scratch();
    for (size_t r = 0; r < (many ? M.w.outputs : 1); ++r) coefficients[r] = move.of<many>(r);
    return coefficients;
}

// w <- w + add * phi, the intercepts included, and the proximal step that follows.
template <class Path, class Row>
ONEPASS_INLINE void move_weights(Model& M, const Row& row, const Move& move, const MovePlan& to) {
    constexpr bool many = Path::many;
    Weights& w = M.w;
    const bool lazy = Path::lazy(M);
    if (!lazy) {
        write<many>(w, row, move, to.over);
    } else if (move.largest != 0.0) {              // a row that does not move goes on owing
        if (many || to.fold || to.kappa == 0.0) {  // folded or cleared, the paid weights are of another scale
            decode_and_add(w, row, coefficients_of<many>(M, move), to.over);
        } else {
            add_to_decoded(w, row, M.kept.data(), move.coefficient * to.over);
        }
    }
    for (size_t r = 0; r < (many ? w.outputs : 1); ++r)
        w.bias[r] = move.scale * w.bias[r] + move.of<many>(r) * constant_of<Path>(M, move, r);
    if (lazy) proximal_step(w, move.soft, move.shrink);
}

// Follows the upper bounds on |v| and |z|.
template <class Path>
ONEPASS_INLINE void follow_peaks(Model& M, double reach) {
    Weights& w = M.w;
    w.peaks.v += reach;
    if (Path::averages(M)) w.peaks.z += std::abs(w.average.A) * reach;
    if (w.peaks.v >= safe || w.peaks.z >= safe) w.recompute_peaks();
}

// Follows |w|^2, for the rules that read it.
template <class Path>
inline void follow_square(Model& M, const Move& move, double kappa) {
    Weights& w = M.w;
    if (Path::gaussian(M)) return w.recompute_norm();
    w.norm.ww = kappa * kappa * w.norm.ww + 2.0 * kappa * move.add * move.inner + move.add * move.add * move.phi_norm;
    if (w.norm.ww < 0.0) w.norm.ww = 0.0;
    w.norm.since_recomputed += 1.0;
    if (w.norm.since_recomputed >= (double(w.features) > recompute_every ? double(w.features) : recompute_every))
        w.recompute_norm();
}

// Applies a move, or refuses it whole.
template <class Path, class Row>
inline Status apply(Model& M, const Row& row, const Move& move) {
    constexpr bool many = Path::many;
    Weights& w = M.w;
    const MovePlan to = plan_move<Path>(M, move);
    if (to.fold && !finite(to.a)) return Status::overflow;
    if (const Status status = check_move<Path>(M, row, move, to); status != Status::ok) return status;

    // From here on nothing fails.
    const bool linked = Path::linked(M);
    if (!many && w.undo) put_aside(w, row);
    if (to.covers_before) add_to_average<many>(w);
    rescale(w, to.kappa);
    // The triangle inequality: no coordinate can be longer than this.
    double kept = 0.0, unit = 0.0, left = 0.0;
    if (linked) {
        kept = std::abs(to.kappa) * std::sqrt(w.norm.ww);
        unit = kept + std::abs(move.add) * move.phi_norm;
        if (unit > 0.0) left = powers<many>(w, row, move, unit);
    }
    move_weights<Path>(M, row, move, to);
    if (to.covers_after) add_to_average<many>(w);
    if (Path::votes(M))
        with_numbers(row, [&](const double* x, const int64_t* at) {
            M.record_vote(x, at, row.n, coefficients_of<many>(M, move));
        });
    follow_peaks<Path>(M, to.reach);
    if (linked) {
        follow_norm<many>(w, row, move, unit, kept, left);
        w.project_into_ball();
        if (w.a < smallest_scale) w.fold_scale();
    }
    if (!linked && Path::uses_ww(M)) follow_square<Path>(M, move, to.kappa);
    return Status::ok;
}

// Update k of a mini-batch, times `share`.
template <bool many>
inline void add_update(Model& M, size_t k, double share, double over) {
    Weights& w = M.w;
    const Updates& updates = w.batch.updates;
    const size_t begin = updates.begin(k), rows = many ? w.outputs : 1;
    const SparseRow<double, int64_t> row{updates.value.data() + begin, updates.index.data() + begin,
                                         size_t(updates.ends[k]) - begin};
    double* coefficients = M.scratch();
    updates.coefficients_of(k, rows, coefficients);
    for (size_t r = 0; r < rows; ++r) coefficients[r] *= share;
    Move move{};
    move.coefficient = coefficients[0];
    move.coefficients = coefficients;
    if (!many && w.undo) put_aside(w, row);
    if (w.l1.on) decode_and_add(w, row, coefficients, over);
    else write<many>(w, row, move, over);
    for (size_t r = 0; r < rows; ++r) w.bias[r] += coefficients[r] * M.constant;
}

// The one step of a mini-batch: its updates in the order they came, shared or summed.
template <bool many>
inline void finish_batch(Model& M) {
    Weights& w = M.w;
    MiniBatch& batch = w.batch;
    if (batch.rounds == 0.0) return;
    if (batch.moves) {
        const double share = batch.mean ? 1.0 / batch.rounds : 1.0;
        rescale(w, batch.scale * batch.decay);
        for (size_t r = 0; r < (many ? w.outputs : 1); ++r) w.bias[r] *= batch.scale;
        const double over = w.a == 1.0 ? 1.0 : 1.0 / w.a;
        for (size_t k = 0; k < batch.updates.count(); ++k) add_update<many>(M, k, share, over);
        proximal_step(w, batch.soft, batch.shrink);
        w.peaks.v += batch.reach * std::abs(over);
        if (w.average.on()) w.peaks.z += std::abs(w.average.A * over) * batch.reach;
        if (w.peaks.v >= safe || w.peaks.z >= safe) w.recompute_peaks();
        M.k += batch.updates.count() > 0;
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
    const size_t rows = many ? w.outputs : 1;
    if (!skip) {
        const double reach = batch.reach + move.largest * (1.0 + move.norm + std::abs(M.constant));
        if (!(reach < largest_batch)) return Status::overflow;
        if (move.largest > 0.0)
            with_numbers(row, [&](const double* x, const int64_t* at) {
                batch.updates.push(x, at, row.n, coefficients_of<many>(M, move), rows);
            });
        batch.reach = reach;
        batch.moves = true;
        batch.scale = move.scale;
        batch.decay = move.decay;
        batch.soft = move.soft;
        batch.shrink = move.shrink;
    }
    batch.rounds += 1.0;
    const bool covered = Path::covered(M), predictor = w.average.kind == Averaging::predictor;
    if (covered && predictor) add_to_average<many>(w);
    if (batch.rounds >= batch.size) finish_batch<many>(M);
    if (covered && !predictor) add_to_average<many>(w);
    return Status::ok;
}

}  // namespace onepass::ONEPASS_ISA
