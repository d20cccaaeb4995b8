// How weights move: a move is checked, then written. Scales are folded in, averages and norms updated, the rounds of
// mini-batches recorded. Included once per instruction set.
// Nothing here may call an out-of-line function of the standard library: the linker could pick another
// instruction set's copy.
#pragma once
#include "loops/paths.hpp"
#include "loops/scores.hpp"

namespace onepass::ONEPASS_ISA {

// While the upper bounds on weights stay below this, no weight can overflow. Beyond it every weight of the example is
// checked.
constexpr double safe = 1e290;
constexpr double smallest_scale = 1e-9, largest_scale = 1e9;
// The averaged sum is a difference A * v - z with v = w/a, which loses as many digits as the scale a has zeros.
constexpr double smallest_averaged_scale = 1e-3, largest_averaged_scale = 1e3;
constexpr double recompute_every = 1e4;
// A round whose mini-batch could together move a weight further than this is refused, so that its step cannot overflow.
constexpr double largest_batch = 1e250;

// The move of one round, computed before anything is written. A model of one output (`many` is false) moves by
// coefficient * x. Of several outputs, either two move by +-coefficient * x, or each by its own coefficient.
struct Move {
    double scale, decay;
    double coefficient;
    double largest;              // |coefficient|, or the largest of coefficients
    double soft, shrink;         // the proximal step that follows
    const double* coefficients;  // one per output; null if only a pair of outputs moves
    size_t up, down;             // this pair
    double norm;                 // |x|^2, features alone
    double inner, phi_norm;      // <w, phi> and |phi|^2 over the features (p-norm geometry: |phi|_p), to update |w|^2
    double add;                  // multiplier of phi
    const double* constants = nullptr;  // Gaussian weights: the part of z that moves the intercept of each output

    template <bool many>
    double of(size_t row) const {
        if (!many) return coefficient;
        if (coefficients) return coefficients[row];
        return row == up ? coefficient : (row == down ? -coefficient : 0.0);
    }
};

// A row with other values for each output: z of Gaussian weights. Outputs that have no part in phi do not move.
template <class Row>
struct ClassRows {
    Row row;
    const double* parts;  // of phi, one per output; null if all outputs share the same values
    size_t between;       // numbers from the values of one output to those of the next
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

// The exact but slow check: would any weight of the example overflow? a is the new scale, `over` its inverse.
template <bool many, class Row>
bool overflows(const Weights& w, const Row& row, const Move& move, double a, double over, double A) {
    const double kappa = move.scale * move.decay;
    const double scaled = kappa == 0.0 ? 0.0 : w.a * kappa / a;
    for (size_t i = 0; i < row.n; ++i)
        for (size_t r = 0; r < w.outputs; ++r) {
            const size_t j = row.column(i);
            const double delta = move.of<many>(r) * over * value_of(row, i, r), v = w.v_of(j)[r];
            const double moved = scaled * (w.l1.on ? w.l1.decode(v) : v) + delta;
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
        // The outputs are written as a whole vector: the next score reads such a vector, and would have to wait for its
        // parts.
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

// |x|_p of a row. Dividing by the largest value first keeps the powers from overflowing.
template <class Row>
inline double row_p_norm(const Row& row, double p) {
    double largest = 0.0, sum = 0.0;
    for (size_t i = 0; i < row.n; ++i)
        if (std::abs(double(row.x[i])) > largest) largest = std::abs(double(row.x[i]));
    if (largest == 0.0) return 0.0;
    for (size_t i = 0; i < row.n; ++i) sum += std::pow(std::abs(double(row.x[i])) / largest, p);
    return largest * std::pow(sum, 1.0 / p);
}

// The sum of |theta_j / unit|^p over the coordinates that a move changes.
template <bool many, class Row>
inline double powers(const Weights& w, const Row& row, const Move& move, double unit) {
    double sum = 0.0;
    for (size_t i = 0; i < row.n; ++i)
        for (size_t r = 0; r < (many ? w.outputs : 1); ++r)
            if (move.of<many>(r) != 0.0) sum += std::pow(std::abs(w.a * w.v_of(row.column(i))[r]) / unit, w.p_norm.p);
    return sum;
}

// Updates |theta|_p after a move. `before` is the sum of powers() of the changed coordinates before the move. The
// difference of two sums of powers can lose all its digits, so its error is tracked too, and the norm is recomputed
// when it has grown too large.
template <bool many, class Row>
inline void update_p_norm(Weights& w, const Row& row, const Move& move, double unit, double scaled, double before) {
    if (unit == 0.0) return;
    const double after = powers<many>(w, row, move, unit), old = std::pow(scaled / unit, w.p_norm.p),
                 now = old + (after - before);
    const double most = double(w.features) > recompute_every ? double(w.features) : recompute_every;
    w.norm.since_recomputed =
        now > 0.0 ? std::ceil((old * (w.norm.since_recomputed + 1.0) + before + after) / now) : HUGE_VAL;
    if (!(w.norm.since_recomputed <= most)) return w.recompute_norm();
    const double norm = unit * std::pow(now, 1.0 / w.p_norm.p);
    w.norm.ww = norm * norm;
}

// Adds the current weights to the average.
template <bool many>
inline void add_to_average(Weights& w) {
    w.average.A += w.a;
    w.average.rounds += 1.0;
    for (size_t r = 0; r < (many ? w.outputs : 1); ++r) w.average.bias_sum[r] += w.bias[r];
}

// Is a scale so far from 1 that it has to be folded into the weights?
inline bool outside(const Weights& w, double a) {
    const bool narrow = w.average.on() || w.l1.on;
    return !(std::abs(a) >= (narrow ? smallest_averaged_scale : smallest_scale) &&
             std::abs(a) <= (narrow ? largest_averaged_scale : largest_scale));
}

// Saves the weights of the features of an example, before they are written.
template <class Row>
inline void save(Model& M, const Row& row) {
    const Weights& w = M.w;
    const double* const z = w.average.z.data();
    const size_t planes = w.planes.count();
    SavedNumbers saved = M.transaction.begin_save(w, row.n);
    for (size_t i = 0; i < row.n; ++i) {
        const size_t j = row.column(i);
        saved.save(j * w.pitch, w.v_of(j), planes, 1, w.average.on() ? z + j : nullptr);
    }
    M.transaction.end_save(saved);
}
template <class X>
inline void save(Model& M, const DenseValues<X>&) {
    M.transaction.save_all(M.w);
}

// Before all weights are written.
inline void save_all(Model& M) {
    if (M.transaction.recording()) M.transaction.save_all(M.w);
}

// w <- kappa * w without the intercepts.
inline void rescale(Model& M, double kappa) {
    Weights& w = M.w;
    w.a *= kappa;
    if (kappa != 0.0 && !outside(w, w.a)) return;
    save_all(M);
    kappa == 0.0 ? w.set_to_zero() : w.fold_scale();
}

// The proximal step that ends an update: soft thresholding, then shrinking.
inline void proximal_step(Model& M, double soft, double shrink) {
    Weights& w = M.w;
    if (!w.l1.on) return;
    w.l1.pending += soft / w.a;
    w.a *= shrink;
    if (w.l1.pending < safe) return;
    save_all(M);  // no sum of a weight and the pending L1 may overflow
    w.apply_pending();
    w.encode_weights();
}

// What a move does to the weights as a whole: w <- kappa * w, with the scale a from then on.
struct MovePlan {
    double kappa, a;
    bool fold;                         // is a so far from 1 that it is folded into the weights?
    double over;                       // 1/a: what is added to v for each unit of w
    double A;                          // the sum of the averaged scales at the moment when the weights move
    double reach;                      // no v moves further than this, since no |x_j| is larger than 1 + |x|^2
    bool covers_before, covers_after;  // does the average cover the weights before the move, or after it?
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

// Will every weight stay finite? While the upper bounds are far from overflow, no weight has to be checked.
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

// The coefficients of all outputs as an array.
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
    } else if (move.largest != 0.0) {              // if the example does not move, its pending L1 stays pending
        if (many || to.fold || to.kappa == 0.0) {  // after folding the decoded weights have another scale
            decode_and_add(w, row, coefficients_of<many>(M, move), to.over);
        } else {
            add_to_decoded(w, row, M.transaction.workspace(), move.coefficient * to.over);
        }
    }
    for (size_t r = 0; r < (many ? w.outputs : 1); ++r)
        w.bias[r] = move.scale * w.bias[r] + move.of<many>(r) * constant_of<Path>(M, move, r);
    if (lazy) proximal_step(M, move.soft, move.shrink);
}

// Updates the upper bounds on |v| and |z|.
template <class Path>
ONEPASS_INLINE void update_peaks(Model& M, double reach) {
    Weights& w = M.w;
    w.peaks.v += reach;
    if (Path::averages(M)) w.peaks.z += std::abs(w.average.A) * reach;
    if (w.peaks.v >= safe || w.peaks.z >= safe) w.recompute_peaks();
}

// Updates |w|^2, for the rules that read it.
template <class Path>
inline void update_square(Model& M, const Move& move, double kappa) {
    Weights& w = M.w;
    if (Path::gaussian(M)) return w.recompute_norm();
    w.norm.ww = kappa * kappa * w.norm.ww + 2.0 * kappa * move.add * move.inner + move.add * move.add * move.phi_norm;
    if (w.norm.ww < 0.0) w.norm.ww = 0.0;
    w.norm.since_recomputed += 1.0;
    if (w.norm.since_recomputed >= (double(w.features) > recompute_every ? double(w.features) : recompute_every))
        w.recompute_norm();
}

// Applies a move, or refuses it without changing anything. Inlined where a call per round would be felt.
template <class Path, class Row>
ONEPASS_INLINE Status apply_inlined(Model& M, const Row& row, const Move& move) {
    constexpr bool many = Path::many;
    Weights& w = M.w;
    const MovePlan to = plan_move<Path>(M, move);
    if (to.fold && !finite(to.a)) return Status::overflow;
    if (const Status status = check_move<Path>(M, row, move, to); status != Status::ok) return status;

    // From here on nothing fails.
    const bool linked = Path::linked(M);
    if (!many && M.transaction.recording()) save(M, row);
    if (to.covers_before) add_to_average<many>(w);
    rescale(M, to.kappa);
    // p-norm geometry: `unit` is at least |theta|_p after the move, by the triangle inequality.
    double scaled = 0.0, unit = 0.0, before = 0.0;
    if (linked) {
        scaled = std::abs(to.kappa) * std::sqrt(w.norm.ww);
        unit = scaled + std::abs(move.add) * move.phi_norm;
        if (unit > 0.0) before = powers<many>(w, row, move, unit);
    }
    move_weights<Path>(M, row, move, to);
    if (to.covers_after) add_to_average<many>(w);
    if (Path::votes(M))
        with_numbers(row, [&](const double* x, const int64_t* at) {
            M.record_vote(x, at, row.n, coefficients_of<many>(M, move));
        });
    update_peaks<Path>(M, to.reach);
    if (linked) {
        update_p_norm<many>(w, row, move, unit, scaled, before);
        w.project_into_ball();
        if (w.a < smallest_scale) {
            save_all(M);
            w.fold_scale();
        }
    }
    if (!linked && Path::uses_ww(M)) update_square<Path>(M, move, to.kappa);
    return Status::ok;
}

// The same as a function of its own.
template <class Path, class Row>
inline Status apply(Model& M, const Row& row, const Move& move) {
    return apply_inlined<Path>(M, row, move);
}

// Applies update k of a mini-batch, times `share`.
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
    if (!many && M.transaction.recording()) save(M, row);
    if (w.l1.on) decode_and_add(w, row, coefficients, over);
    else write<many>(w, row, move, over);
    for (size_t r = 0; r < rows; ++r) w.bias[r] += coefficients[r] * M.constant;
}

// The step of a mini-batch: the mean or the sum of its updates, applied in their order.
template <bool many>
inline void finish_batch(Model& M) {
    Weights& w = M.w;
    MiniBatch& batch = w.batch;
    if (batch.rounds == 0.0) return;
    if (batch.moves) {
        const double share = batch.mean ? 1.0 / batch.rounds : 1.0;
        rescale(M, batch.scale * batch.decay);
        for (size_t r = 0; r < (many ? w.outputs : 1); ++r) w.bias[r] *= batch.scale;
        const double over = w.a == 1.0 ? 1.0 : 1.0 / w.a;
        for (size_t k = 0; k < batch.updates.count(); ++k) add_update<many>(M, k, share, over);
        proximal_step(M, batch.soft, batch.shrink);
        w.peaks.v += batch.reach * std::abs(over);
        if (w.average.on()) w.peaks.z += std::abs(w.average.A * over) * batch.reach;
        if (w.peaks.v >= safe || w.peaks.z >= safe) w.recompute_peaks();
        M.k += batch.updates.count() > 0;
    }
    batch.clear();
    batch.steps += 1.0;
}

// A round of a mini-batch: its update is recorded. The last round takes the step.
template <class Path, class Row>
inline Status record_in_batch(Model& M, const Row& row, const Move& move, bool skip) {
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
