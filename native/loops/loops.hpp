// The round: score, margin, rule, step. What tasks make of a row, and what becomes of the rule's answer. Included once
// per instruction set.
// Nothing here may call an out-of-line function of the standard library: the linker could pick another
// instruction set's copy.
#pragma once
#include "loops/coordinates.hpp"
#include "loops/gaussian.hpp"
#include "loops/vowpal.hpp"

namespace onepass::ONEPASS_ISA {

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
inline Status face(Model& M, const Row& row, double y, double base, Scalars& s, Move& move) {
    const Weights& w = M.w;
    const bool lazy = Path::lazy(M), straight = !lazy && !Path::linked(M);
    // Paying is fused into the sum: the paid weights are kept on the way.
    const Reading read = straight || lazy ? Reading::straight(w) : read_current(M, row, nullptr);
    auto dot_norm_by = [&](const auto& weights) { return dot_norm_of(row.x, row.n, weights); };
    const DotNorm d = Path::pairs   ? face_diagonal(M, row)
                      : Path::packs ? face_packs(M, row)
                      : lazy        ? with_paid(w, row, M.room_to_keep(row.n), dot_norm_by)
                      : straight    ? row.dot_norm(read.weights, read.pitch)
                                    : side_by_side(row).dot_norm(read.weights);
    if (!finite(d.norm)) return Status::not_finite;
    const double score = read.a * d.dot;
    double full = score + read.bias[0] * M.constant, sign = 1.0;
    if (base != 0.0) full += base;
    if (M.task == Task::regress) {
        sign = s.side = y < full ? -1.0 : 1.0;
        s.target = sign * y - M.tube;
    } else if (M.task == Task::classify) {
        sign = y == 0.0 ? -1.0 : 1.0;
    }
    s.m = sign * full;
    s.base = sign * base;
    s.xx = d.norm + M.constant_norm();
    move.coefficient = sign;
    move.coefficients = nullptr;
    move.norm = move.phi_norm = d.norm;
    move.inner = sign * score;
    if (Path::linked(M)) measure(M, s, move, row_p_norm(row, w.p));
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

// A round of a rule by coordinates: what its loss pulls, or what VW makes of it; then the weights, each in its own way.
template <class Path, class Row>
Status learn_coordinates(Model& M, const Row& row, double y, double importance, const uint8_t* set, Scalars& s,
                         Move& move) {
    constexpr bool many = Path::many;
    const bool vowpal = M.coordinates == Coordinates::vowpal;
    const bool always = Path::any && M.coordinates == Coordinates::adam;  // moves where nothing pulls, too
    // A label set without order has nothing to say (importance 0), but momentum goes on.
    const bool zero = s.xx < DBL_MIN && !always;
    const bool skip = zero || (vowpal || always ? importance : s.importance) == 0.0;
    Status status = Status::ok;
    double state[max_slots];
    bool moves = false;
    for (int i = 0; i < M.slots; ++i) state[i] = M.state[i];
    if (!skip && vowpal) {
        status =
            covering<Path>(M, [&] { return learn_vowpal<Path>(M, row, y, set, s, move, importance, state, &moves); });
    } else if (!skip) {
        Step step = passive;
        state[0] += 1.0;
        const bool all_scores = many && (M.solve || M.calibrated);
        if (many && M.calibrated) calibrate(M, s, move, state, &step);
        else if (all_scores)
            M.solve(&s, M.scores.data(), int64_t(M.w.rows), int64_t(move.up), M.params, state, M.coefficients.data(),
                    &step);
        else M.step(&s, M.params, state, &step);
        move.largest = std::abs(step.add);
        move.coefficient *= step.add;
        if (all_scores && take_coefficients(M, move) != Status::ok) return Status::overflow;
        if (!all_scores && move.coefficients)  // shares of one pull
            for (size_t r = 0; r < M.w.rows; ++r) M.coefficients[r] *= step.add;
        moves = always || move.largest != 0.0;
        if (moves) status = move_coordinates<Path>(M, row, move, state);
    }
    if (status != Status::ok) return status;
    if ((skip || !(moves || vowpal)) && Path::covered(M)) cover<many>(M.w);
    for (int i = 0; i < M.slots; ++i) M.state[i] = state[i];
    M.k += moves;
    M.t += 1.0;
    M.skipped_zero += zero;
    return Status::ok;
}

// Is what a round begins with, the scores by the current weights, also the prediction? Then it is added up once.
template <class Path>
inline bool predicts_current(const Model& M) {
    const Weights& w = M.w;
    if (!Path::any) return !Path::lazy(M);
    return w.averaging == Averaging::none && !w.votes.on && !w.pocketing && !w.lazy && !w.linked() && !w.sigma.vaw &&
           !M.clips;
}

// One round: score, rule, step, counters. Refused rounds leave the model as it was.
template <class Path, class Row>
inline Status learn_row(Model& M, const Row& row, double y, double importance, double target, const uint8_t* set,
                        double* out, double base = 0.0) {
    constexpr bool many = Path::many;
    const bool batched = Path::batched(M);
    Scalars s{0.0, target,     0.0,
              0.0, importance, (batched ? M.w.batch.steps : M.t) + 1.0,
              M.k, 1.0,        M.task == Task::regress ? 1.0 : 0.0};
    Move move;
    if (Path::full(M)) meet(M.w.sigma, row);
    const bool current = out && predicts_current<Path>(M);
    if (out && !current) predict_row(M, row, out, M.scores.data(), base);
    Status status;
    if constexpr (many) status = face_classes(M, row, y, set, s, move);
    else status = face<Path>(M, row, y, base, s, move);
    if (current && status == Status::ok) {
        if (!many) out[0] = move.coefficient * s.m;  // a sign, twice
        for (size_t r = 0; many && r < M.w.rows; ++r) out[r] = M.scores[r];
    }
    const bool gaussian = Path::gaussian(M);
    if (gaussian && status == Status::ok) status = spread_out<Path>(M, row, s, move);
    if (status != Status::ok) return status;
    if constexpr (Path::any || Path::packs)
        if (Path::coordinates(M)) return learn_coordinates<Path>(M, row, y, importance, set, s, move);
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
        if (out) out[0] = distance - M.tube;  // above 0 is an anomaly
        if (distance == 0.0) s.importance = 0.0;
    }
    const bool zero = s.xx < DBL_MIN && !(gaussian && M.w.sigma.forgets), skip = zero || s.importance == 0.0;
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

    const bool still = step.add == 0.0 && step.scale == 1.0 && step.decay == 1.0 && step.soft == 0.0 &&
                       step.shrink == 1.0 && (!gaussian || (step.gain == 0.0 && step.forget == 1.0));
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
        if (gaussian) {
            Change change;
            const size_t own = many && !M.w.sigma.shared ? M.w.rows : 1;  // class rows with a Sigma of their own
            status = plan_change<Path>(M, row, s, step, own, change);
            if (status == Status::ok) status = apply_along<Path>(M, row, move, change);
            if (status == Status::ok) change_sigma<Path>(M, row, own, change);
        } else {
            status = batched ? join_batch<Path>(M, row, move, skip) : apply<Path>(M, row, move);
        }
        if (status != Status::ok) return status;
        if (!batched) M.k += move.largest > 0.0 && !(gaussian && s.xx < DBL_MIN);
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
