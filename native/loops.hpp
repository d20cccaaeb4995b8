// The update loop: score, margin, rule, step. Templates over the kind of row; included once per instruction set.
// Nothing here may call an out-of-line function of the standard library: the linker could pick another
// instruction set's copy.
#pragma once
#include <cfloat>
#include <cmath>

#include "lanes.hpp"
#include "model.hpp"

namespace onepass::ONEPASS_ISA {

// Beyond this the exact check of every touched coordinate replaces the running upper bound.
constexpr double safe = 1e290;
constexpr double smallest_scale = 1e-9, largest_scale = 1e9;
// The averaged sum is a difference A*v - z with v = w/a: a small scale would cost it that many digits.
constexpr double smallest_averaged_scale = 1e-3, largest_averaged_scale = 1e3;
constexpr double recompute_every = 1e4;

inline bool finite(double x) { return std::abs(x) <= DBL_MAX; }  // false for NaN

template <class V>
struct DenseRow {
    const V* x;
    size_t n;
    size_t column(size_t i) const { return i; }
    DotNorm dot_norm(const double* v) const { return ONEPASS_ISA::dot_norm(x, v, n); }
};

template <class V, class I>
struct SparseRow {
    const V* x;
    const I* index;
    size_t n;
    size_t column(size_t i) const { return size_t(index[i]); }
    DotNorm dot_norm(const double* v) const { return ONEPASS_ISA::dot_norm(x, index, v, n); }
};

template <class V>
inline double norm(const V* x, size_t n) {
    Sum sum;
    size_t i = 0;
    for (; i + lanes <= n; i += lanes) {
        const Eight x0 = load(x + i), x1 = load(x + i + 8);
        sum.low += x0 * x0;
        sum.high += x1 * x1;
    }
    double rest[lanes] = {};
    for (size_t l = 0; i + l < n; ++l) rest[l] = double(x[i + l]);
    sum.low += load(rest) * load(rest);
    sum.high += load(rest + 8) * load(rest + 8);
    return sum.total();
}

// v += c * x
template <class V>
inline void add(const DenseRow<V>& row, double c, double* v) {
    for (size_t i = 0; i < row.n; ++i) v[i] += c * double(row.x[i]);
}
template <class V, class I>
inline void add(const SparseRow<V, I>& row, double c, double* v) {
    for (size_t i = 0; i < row.n; ++i) v[row.index[i]] += c * double(row.x[i]);
}

// Scores of all class rows: lanes run over classes, features are added one after the other.
template <int blocks, class Row>
inline void class_scores_block(const Row& row, const double* v, size_t stride, double* out) {
    Eight sum[blocks] = {};
    for (size_t i = 0; i < row.n; ++i) {
        const double* weights = v + row.column(i) * stride;
        const double x = double(row.x[i]);
        for (int b = 0; b < blocks; ++b) sum[b] += x * load(weights + 8 * b);
    }
    std::memcpy(out, sum, sizeof sum);
}

template <class Row>
inline void class_scores(const Row& row, const double* v, size_t stride, double* out) {
    size_t r = 0;
    for (; r + 32 <= stride; r += 32) class_scores_block<4>(row, v + r, stride, out + r);
    for (; r + 8 <= stride; r += 8) class_scores_block<1>(row, v + r, stride, out + r);
}

template <class Row>
inline void class_scores_wide(const Row& row, const double* v, size_t stride, double* out) {
    switch (stride) {
        case 8: return class_scores_block<1>(row, v, stride, out);
        case 16: return class_scores_block<2>(row, v, stride, out);
        case 24: return class_scores_block<3>(row, v, stride, out);
        default: return class_scores(row, v, stride, out);
    }
}

// The readout's scores of one row, into out[rows].
template <class Row>
inline void score_row(const Model& M, const Row& row, double* out, double* scratch) {
    const Weights& w = M.w;
    const bool average = w.averaging != Averaging::none && w.averaged > 0;
    if (w.rows == 1) {
        const double dot = row.dot_norm(w.v.data()).dot;
        out[0] = average ? (w.A * dot - row.dot_norm(w.z.data()).dot) / w.averaged +
                               w.bias_sum[0] / w.averaged * M.constant
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

// One round's move, worked out before anything is written: feature rows `first..` get coefficient * x.
struct Move {
    double scale, decay;
    double largest;      // largest |coefficient|
    double norm;         // |x|^2 of the features alone
    double coefficient;  // one-row models
    const double* coefficients;  // class models: all rows, or null with the pair below
    size_t up, down;             // +coefficient and -coefficient
};

template <class Row>
inline bool any_overflow(const Weights& w, const Row& row, const Move& move, double a, double c_over, double A) {
    // Exact but slow: every touched coordinate as it would become. `c_over` divides coefficients by the scale.
    const double kept = move.scale * move.decay == 0.0 ? 0.0 : w.a * move.scale * move.decay / a;
    for (size_t i = 0; i < row.n; ++i)
        for (size_t r = 0; r < w.rows; ++r) {
            double c = 0.0;
            if (w.rows == 1) c = move.coefficient;
            else if (move.coefficients) c = move.coefficients[r];
            else c = r == move.up ? move.coefficient : (r == move.down ? -move.coefficient : 0.0);
            const size_t at = row.column(i) * w.stride + r;
            const double delta = c * c_over * double(row.x[i]);
            const double moved = kept * w.v.data()[at] + delta;
            if (!finite(moved) || !finite(a * moved)) return true;
            if (w.averaging != Averaging::none && !finite(w.z.data()[at] + A * delta)) return true;
        }
    return false;
}

template <class Row>
inline void write(Weights& w, const Row& row, const Move& move, double over, double A) {
    double* v = w.v.data();
    double* z = A != 0.0 ? w.z.data() : nullptr;  // A stays 0 where nothing is averaged
    if (w.rows == 1) {
        const double c = move.coefficient * over;
        if (c == 0.0) return;
        add(row, c, v);
        if (z) add(row, A * c, z);
        return;
    }
    if (!move.coefficients) {
        const double c = move.coefficient * over;
        for (size_t i = 0; i < row.n; ++i) {
            const double delta = c * double(row.x[i]);
            double* weights = v + row.column(i) * w.stride;
            weights[move.up] += delta;
            weights[move.down] -= delta;
            if (z) {
                double* sums = z + row.column(i) * w.stride;
                sums[move.up] += A * delta;
                sums[move.down] -= A * delta;
            }
        }
        return;
    }
    for (size_t i = 0; i < row.n; ++i) {
        const double x = over * double(row.x[i]);
        double* weights = v + row.column(i) * w.stride;
        for (size_t r = 0; r < w.rows; ++r) weights[r] += move.coefficients[r] * x;
        if (z) {
            double* sums = z + row.column(i) * w.stride;
            for (size_t r = 0; r < w.rows; ++r) sums[r] += A * (move.coefficients[r] * x);
        }
    }
}

// Applies a move, or refuses it whole. `inner` is <w, phi> over the features, phi the direction of the move.
template <class Row>
inline Status apply(Model& M, const Row& row, const Move& move, double inner, double phi_norm, double add) {
    Weights& w = M.w;
    const double kappa = move.scale * move.decay;
    double a = kappa == 0.0 ? 1.0 : w.a * kappa;
    const bool averages = w.averaging != Averaging::none;
    const bool fold = !(std::abs(a) >= (averages ? smallest_averaged_scale : smallest_scale) &&
                        std::abs(a) <= (averages ? largest_averaged_scale : largest_scale));
    if (fold && !finite(a)) return Status::overflow;
    const double shrunk = fold ? std::abs(a) : 1.0;  // what folding does to v
    const double over = 1.0 / (fold ? 1.0 : a);

    const bool covered = averages && M.t + 1.0 >= w.average_from;
    const bool predictor = w.averaging == Averaging::predictor;
    const double A = covered && predictor ? w.A + w.a : w.A;

    const double reach = move.largest * std::abs(over) * std::sqrt(move.norm);
    if (!(w.peak * shrunk + reach < safe && w.z_peak + std::abs(A) * (reach + w.peak) < safe)) {
        if (any_overflow(w, row, move, fold ? 1.0 : a, over, A)) return Status::overflow;
    }
    for (size_t r = 0; r < w.rows; ++r) {
        double c = move.coefficient;
        if (w.rows > 1) c = move.coefficients ? move.coefficients[r] : (r == move.up ? c : (r == move.down ? -c : 0.0));
        if (!finite(move.scale * w.bias[r] + c * M.constant)) return Status::overflow;
    }

    // From here on nothing fails.
    if (covered && predictor) {
        w.A += w.a;
        w.averaged += 1.0;
        for (size_t r = 0; r < w.rows; ++r) w.bias_sum[r] += w.bias[r];
    }
    if (kappa == 0.0) {
        w.clear();
    } else {
        w.a = a;
        if (fold) w.fold();
    }
    write(w, row, move, over, w.A);
    if (M.constant != 0.0 || move.scale != 1.0)
        for (size_t r = 0; r < w.rows; ++r) {
            double c = move.coefficient;
            if (w.rows > 1)
                c = move.coefficients ? move.coefficients[r] : (r == move.up ? c : (r == move.down ? -c : 0.0));
            w.bias[r] = move.scale * w.bias[r] + c * M.constant;
        }
    if (covered && !predictor) {
        w.A += w.a;
        w.averaged += 1.0;
        for (size_t r = 0; r < w.rows; ++r) w.bias_sum[r] += w.bias[r];
    }
    w.peak += reach;
    if (w.averaging != Averaging::none) w.z_peak += std::abs(w.A) * reach;
    if (w.peak >= safe || w.z_peak >= safe) w.recompute_peaks();
    if (M.uses_ww) {
        w.ww = kappa * kappa * w.ww + 2.0 * kappa * add * inner + add * add * phi_norm;
        if (w.ww < 0.0) w.ww = 0.0;
        w.since_recomputed += 1.0;
        if (w.since_recomputed >= (double(w.features) > recompute_every ? double(w.features) : recompute_every))
            w.recompute_norm();
    }
    return Status::ok;
}

inline double bias_norm(const Weights& w) {
    double sum = 0.0;
    for (size_t r = 0; r < w.rows; ++r) sum += w.bias[r] * w.bias[r];
    return sum;
}

// A round in which the weights stand still.
inline void rest(Model& M) {
    Weights& w = M.w;
    if (w.averaging == Averaging::none || M.t + 1.0 < w.average_from) return;
    w.A += w.a;
    w.averaged += 1.0;
    for (size_t r = 0; r < w.rows; ++r) w.bias_sum[r] += w.bias[r];
}

template <class Row>
inline Status learn_row(Model& M, const Row& row, double y, double importance, double target, double* out) {
    Weights& w = M.w;
    const bool one = w.rows == 1;
    double xx, score = 0.0;  // of the features alone
    if (one) {
        const DotNorm d = row.dot_norm(w.v.data());
        xx = d.norm;
        score = w.a * d.dot;
    } else {
        xx = norm(row.x, row.n);
    }
    if (!finite(xx)) return Status::not_finite;
    if (out) score_row(M, row, out, M.scores.data());

    Scalars s;
    Move move;
    move.norm = xx;
    s.importance = importance;
    s.t = M.t + 1.0;
    s.k = M.k;
    s.side = 1.0;
    s.target = target;
    double sign = 1.0, inner;
    size_t truth = 0, rival = 0;
    if (one) {
        const double full = score + w.bias[0] * M.constant;
        if (!finite(full)) return Status::overflow;
        if (M.task == Task::regress) {
            sign = s.side = y < full ? -1.0 : 1.0;
            s.target = sign * y - M.tube;
        } else if (M.task == Task::classify) {
            sign = y == 0.0 ? -1.0 : 1.0;
        }
        s.m = sign * full;
        s.xx = xx + M.constant_norm();
        inner = sign * score;
    } else {
        double* scores = M.scores.data();
        class_scores_wide(row, w.v.data(), w.stride, scores);
        for (size_t r = 0; r < w.rows; ++r) {
            scores[r] = w.a * scores[r] + w.bias[r] * M.constant;
            if (!finite(scores[r])) return Status::overflow;
        }
        truth = size_t(y);
        rival = truth == 0 ? 1 : 0;
        for (size_t r = rival + 1; r < w.rows; ++r)
            if (r != truth && scores[r] > scores[rival]) rival = r;
        s.m = scores[truth] - scores[rival];
        inner = s.m - (w.bias[truth] - w.bias[rival]) * M.constant;
        s.xx = (M.solve ? 1.0 : 2.0) * (xx + M.constant_norm());
    }
    if (!finite(s.xx) || !finite(s.m)) return Status::overflow;
    s.ww = M.uses_ww ? w.ww + bias_norm(w) : 0.0;

    const bool zero = s.xx < DBL_MIN;
    if (importance == 0.0 || zero) {
        rest(M);
        M.t += 1.0;
        M.skipped_zero += zero;
        return Status::ok;
    }

    Step step{0.0, 1.0, 1.0, 0.0, 1.0};
    double state[max_slots];
    for (int i = 0; i < M.slots; ++i) state[i] = M.state[i];
    const bool all_scores = !one && M.solve;
    if (all_scores)
        M.solve(&s, M.scores.data(), int64_t(w.rows), int64_t(truth), M.params, state, M.coefficients.data(), &step);
    else
        M.step(&s, M.params, state, &step);
    if (!finite(step.add) || !finite(step.scale) || !finite(step.decay)) return Status::overflow;
    for (int i = 0; i < M.slots; ++i)
        if (!finite(state[i])) return Status::overflow;

    if (step.add == 0.0 && step.scale == 1.0 && step.decay == 1.0) {
        rest(M);
    } else {
        double phi_norm = one ? xx : 2.0 * xx, add = step.add;
        move.scale = step.scale;
        move.decay = step.decay;
        move.coefficient = add * sign;
        move.coefficients = nullptr;
        move.up = truth;
        move.down = rival;
        move.largest = std::abs(add);
        if (all_scores) {
            move.coefficients = M.coefficients.data();
            move.largest = 0.0;
            inner = phi_norm = 0.0;
            for (size_t r = 0; r < w.rows; ++r) {
                const double c = M.coefficients[r];
                if (!finite(c)) return Status::overflow;
                if (std::abs(c) > move.largest) move.largest = std::abs(c);
                inner += c * (M.scores[r] - w.bias[r] * M.constant);
                phi_norm += c * c * xx;
            }
            add = 1.0;
        }
        const Status status = apply(M, row, move, inner, phi_norm, add);
        if (status != Status::ok) return status;
        M.k += step.add != 0.0;
    }
    for (int i = 0; i < M.slots; ++i) M.state[i] = state[i];
    M.t += 1.0;
    return Status::ok;
}

}  // namespace onepass::ONEPASS_ISA
