// The round, in the steps of src/onepass/models/reference.py: face the example, let the rule answer, update the
// weights, commit. Included by the unit of every kind (loops/paths.hpp), once per instruction set. Nothing here may
// call an out-of-line function of the standard library: the linker could pick another instruction set's copy.
#pragma once
#include "loops/coordinates.hpp"
#include "loops/gaussian.hpp"
#include "loops/vowpal.hpp"

namespace onepass::ONEPASS_ISA {

inline double bias_norm(const Weights& w) {
    double sum = 0.0;
    for (size_t r = 0; r < w.outputs; ++r) sum += w.bias[r] * w.bias[r];
    return sum;
}

// The p-norms of phi, where phi has x in one or more rows, each times its part.
inline void measure(const Model& M, Scalars& s, Move& move, double x_norm, double parts = 1.0) {
    const double whole = M.w.p_norm.with_constant(x_norm, M.bias_in_norm ? M.constant : 0.0) * parts;
    s.xx = whole * whole;
    move.phi_norm = x_norm * parts;
}

// <w, x> and |x|^2 by the current weights, whose scale is `read.a`.
template <class Path, class Row>
ONEPASS_INLINE DotNorm score_current(Model& M, const Row& row, const Reading& read) {
    // Paying is fused into the sum: the paid weights are kept on the way.
    [[maybe_unused]] auto dot_norm_by = [&](const auto& weights) { return dot_norm_of(row.x, row.n, weights); };
    if constexpr (Path::pairs) return face_diagonal(M, row);
    if constexpr (Path::packs) return face_packs(M, row);
    if constexpr (Path::may_be_lazy)
        if (Path::lazy(M)) return with_decoded(M.w, row, M.room_to_keep(row.n), dot_norm_by);
    return Path::linked(M) ? side_by_side(row).dot_norm(read.weights) : row.dot_norm(read.weights, read.pitch);
}

// What a task makes of a row: the scalars that the rule will see, and the direction phi of the move.
template <class Path, class Row>
inline Status face_row(Model& M, const Row& row, double y, double base, Scalars& s, Move& move) {
    const Weights& w = M.w;
    const Reading read = Path::linked(M) && !Path::lazy(M) ? read_current(M, row, nullptr) : Reading::straight(w);
    const DotNorm d = score_current<Path>(M, row, read);
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
    if (Path::linked(M)) measure(M, s, move, row_p_norm(row, w.p_norm.p));
    return finite(s.xx) && finite(s.m) ? Status::ok : Status::overflow;
}

// The uniform and proportional families: -x is shared among all classes that score at least as much as the true one.
inline void share(Model& M, Scalars& s, Move& move, double norm) {
    const Weights& w = M.w;
    const double *scores = M.scores.data(), truth = scores[move.up];
    double errors = 0.0, over = 0.0;
    for (size_t r = 0; r < w.outputs; ++r)
        if (r != move.up && scores[r] >= truth) {
            errors += 1.0;
            over += scores[r] - truth;
        }
    const bool proportional = M.against == Against::proportional && over > 0.0;
    double* parts = M.coefficients.data();
    double squares = 0.0, mixed = 0.0, bias = 0.0;
    for (size_t r = 0; r < w.outputs; ++r) {
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

// Class rows: which row phi is for, and which against it. One against the other, by the task.

// Multilabel: the lowest-scoring label of the set against the highest-scoring one outside.
inline void face_set(const Model& M, const uint8_t* set, Scalars& s, Move& move) {
    const size_t rows = M.w.outputs;
    const double* scores = M.scores.data();
    move.up = move.down = rows;
    for (size_t r = 0; r < rows; ++r) {
        size_t& chosen = set[r] ? move.up : move.down;
        if (chosen == rows || (set[r] ? scores[r] < scores[chosen] : scores[r] > scores[chosen])) chosen = r;
    }
    if (M.calibrated || (move.up != rows && move.down != rows)) return;
    move.up = move.down = 0;  // all in, or all out: nothing to order
    s.importance = 0.0;
}

// The true class against its best-scoring rival, the lowest index among equals.
inline void face_rival(const Model& M, double y, Move& move) {
    const double* scores = M.scores.data();
    move.up = size_t(y);
    move.down = move.up == 0 ? 1 : 0;
    for (size_t r = move.down + 1; r < M.w.outputs; ++r)
        if (r != move.up && scores[r] > scores[move.down]) move.down = r;
}

// With costs of classes: the rival that costs most, score included.
inline void face_costs(const Model& M, double y, Scalars& s, Move& move) {
    const double* scores = M.scores.data();
    move.up = size_t(y);
    move.down = move.up == 0 ? 1 : 0;
    const double* roots = M.roots.data() + move.up * M.w.outputs;
    for (size_t r = move.down + 1; r < M.w.outputs; ++r)
        if (r != move.up && scores[r] + roots[r] > scores[move.down] + roots[move.down]) move.down = r;
    s.target = roots[move.down];
}

// |phi|_p where phi has x in several class rows.
template <class Row>
inline void measure_classes(const Model& M, const Row& row, Scalars& s, Move& move) {
    const Weights& w = M.w;
    double sum = 0.0;  // of the parts' powers: two of 1, or those shared
    for (size_t r = 0; r < w.outputs && move.coefficients; ++r)
        sum += std::pow(std::abs(move.coefficients[r]), w.p_norm.p);
    measure(M, s, move, row_p_norm(row, w.p_norm.p), std::pow(move.coefficients ? sum : 2.0, 1.0 / w.p_norm.p));
}

inline bool all_finite(const double* scores, size_t rows) {
    for (size_t r = 0; r < rows; ++r)
        if (!finite(scores[r])) return false;
    return true;
}

// The scores of all class rows, and phi.
template <class Row>
inline Status face_classes(Model& M, const Row& row, double y, const uint8_t* set, Scalars& s, Move& move) {
    Weights& w = M.w;
    const double norm = ONEPASS_ISA::norm(row.x, row.n);
    if (!finite(norm)) return Status::not_finite;
    double* scores = M.scores.data();
    scores_of(M, row, read_current(M, row, w.l1.on ? M.room_to_keep(row.n * w.stride) : nullptr), scores, scores);
    if (!all_finite(scores, w.outputs)) return Status::overflow;
    move.coefficient = 1.0;
    move.coefficients = nullptr;
    move.norm = norm;
    if (M.task == Task::multilabel) face_set(M, set, s, move);
    else if (M.roots.empty()) face_rival(M, y, move);
    else face_costs(M, y, s, move);
    if (M.task == Task::multilabel && M.calibrated) {
        s.xx = norm + M.constant_norm();
        return finite(s.xx) ? Status::ok : Status::overflow;
    }
    s.m = scores[move.up] - scores[move.down];
    s.xx = (M.solve ? 1.0 : 2.0) * (norm + M.constant_norm());
    move.phi_norm = 2.0 * norm;
    move.inner = s.m - (w.bias[move.up] - w.bias[move.down]) * M.constant;
    if (M.against != Against::rival && s.m <= 0.0) share(M, s, move, norm);
    if (w.p_norm.on()) measure_classes(M, row, s, move);
    return finite(s.xx) && finite(s.m) ? Status::ok : Status::overflow;
}

// Multilabel, calibrated: the lowest of those in should reach +1, the highest of those out -1, with a step each.
inline void calibrate(Model& M, Scalars s, const Move& move, double* state, Step* step) {
    double* coefficients = M.coefficients.data();
    for (size_t r = 0; r < M.w.outputs; ++r) coefficients[r] = 0.0;
    bool moves = false;
    for (size_t chosen : {move.up, move.down}) {
        if (chosen == M.w.outputs) continue;  // none is in, or all are
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
    for (size_t r = 0; r < M.w.outputs; ++r) {
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
    w.pocket.run += 1.0;
    if (w.pocket.run <= w.pocket.best_run || w.pocket.rejected) return;
    if (!w.pocket.holds_current && w.pocket.ratchet) {
        const double errors = M.errors(M, M.set);
        w.pocket.rejected = !(errors < w.pocket.errors);
        if (w.pocket.rejected) return;  // and the record to beat stays
        w.pocket.errors = errors;
    }
    w.pocket.best_run = w.pocket.run;
    if (w.pocket.holds_current) return;
    w.store_in_pocket();
    w.pocket.holds_current = true;
}

// Is what a round begins with, the scores by the current weights, also the prediction? Then it is added up once.
template <class Path>
inline bool predicts_current(const Model& M) {
    const Weights& w = M.w;
    if (!Path::any) return !Path::lazy(M);
    return !w.average.on() && !w.votes.on && !w.pocket.on && !w.l1.on && !w.p_norm.on() && !w.sigma.vaw && !M.clips;
}

// Predict and reveal: the prediction, if it is asked for, then phi and the scalars.
template <class Path, class Row>
ONEPASS_INLINE Status face(Model& M, const Row& row, double y, double base, const uint8_t* set, double* out, Scalars& s,
                           Move& move) {
    if (Path::full(M)) register_features(M.w.sigma, row);
    const bool current = out && predicts_current<Path>(M);
    if constexpr (!is_difference<Row>)
        if (out && !current) predict_row(M, row, out, M.scores.data(), base);
    Status status;
    if constexpr (Path::many) status = face_classes(M, row, y, set, s, move);
    else status = face_row<Path>(M, row, y, base, s, move);
    if (current && status == Status::ok) {
        if (!Path::many) out[0] = move.coefficient * s.m;  // a sign, twice
        for (size_t r = 0; Path::many && r < M.w.outputs; ++r) out[r] = M.scores[r];
    }
    if constexpr (Path::may_be_gaussian)
        if (Path::gaussian(M) && status == Status::ok) status = spread_out<Path>(M, row, s, move);
    return status;
}

// One-class: phi is the unit vector from w to x, the target a distance. Returns how far x is.
inline double face_centre(const Model& M, Scalars& s, double* out) {
    const double squared = s.ww - 2.0 * s.m + s.xx, distance = squared > 0.0 ? std::sqrt(squared) : 0.0;
    s.m = -distance;
    s.target = -M.tube;
    s.xx = 1.0;
    if (out) out[0] = distance - M.tube;  // above 0 is an anomaly
    if (distance == 0.0) s.importance = 0.0;
    return distance;
}

// Does the rule answer for every class row, rather than for phi?
template <class Path>
inline bool sees_all_scores(const Model& M) {
    return Path::many && (M.solve || M.calibrated);
}

// The rule's step; for every class row its coefficient where it sees all scores.
template <class Path>
ONEPASS_INLINE void call_rule(Model& M, const Scalars& s, const Move& move, double* state, Step& step) {
    if (Path::many && M.calibrated) calibrate(M, s, move, state, &step);
    else if (sees_all_scores<Path>(M))
        M.solve(&s, M.scores.data(), int64_t(M.w.outputs), int64_t(move.up), M.params, state, M.coefficients.data(),
                &step);
    else M.step(&s, M.params, state, &step);
}

// Nothing was refused: the round becomes part of the model.
ONEPASS_INLINE Status commit(Model& M, const double* state, bool skip, bool zero) {
    if (!skip)
        for (int i = 0; i < M.slots; ++i) M.state[i] = state[i];
    M.t += 1.0;
    M.skipped_zero += zero;
    return Status::ok;
}

// The direction times the step: +-add * phi, its shares, or the coefficients that the rule gave every class row.
template <class Path>
ONEPASS_INLINE Status multiply_direction(Model& M, const Step& step, bool skip, Move& move) {
    move.largest = std::abs(step.add);
    move.coefficient *= step.add;
    const bool all_scores = sees_all_scores<Path>(M);
    if (all_scores && !skip && take_coefficients(M, move) != Status::ok) return Status::overflow;
    if (!all_scores && move.coefficients)  // shares of one step
        for (size_t r = 0; r < M.w.outputs; ++r) M.coefficients[r] *= step.add;
    return Status::ok;
}

// A round of a rule by coordinates: what its loss pulls, or what VW makes of it; then the weights, each in its own way.
template <class Path, class Row>
Status answer_coordinates(Model& M, const Row& row, const Scalars& s, bool always, double* state, Move& move,
                          bool* moves) {
    Step step = passive;
    state[CoordinateSlots::rounds] += 1.0;
    call_rule<Path>(M, s, move, state, step);
    if (multiply_direction<Path>(M, step, false, move) != Status::ok) return Status::overflow;
    *moves = always || move.largest != 0.0;
    return *moves ? move_coordinates<Path>(M, row, move, state) : Status::ok;
}

template <class Path, class Row>
Status learn_coordinates(Model& M, const Row& row, double y, double importance, const uint8_t* set, Scalars& s,
                         Move& move) {
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
        const Example of{y, importance, set, s, move};
        status = covering<Path>(M, [&] { return learn_vowpal<Path>(M, row, of, state, &moves); });
    } else if (!skip) {
        status = answer_coordinates<Path>(M, row, s, always, state, move, &moves);
    }
    if (status != Status::ok) return status;
    if ((skip || !(moves || vowpal)) && Path::covered(M)) add_to_average<Path::many>(M.w);
    M.k += moves;
    return commit(M, state, false, zero);
}

// Let the rule answer, on a copy of its slots.
template <class Path>
ONEPASS_INLINE Status answer(Model& M, const Scalars& s, const Move& move, double* state, Step& step) {
    for (int i = 0; i < M.slots; ++i) state[i] = M.state[i];
    call_rule<Path>(M, s, move, state, step);
    for (int i = 0; i < M.slots; ++i)
        if (!finite(state[i])) return Status::overflow;
    return Status::ok;
}

// Does the step leave everything as it is?
inline bool is_passive(const Step& step, bool gaussian) {
    return step.add == 0.0 && step.scale == 1.0 && step.decay == 1.0 && step.soft == 0.0 && step.shrink == 1.0 &&
           (!gaussian || (step.gain == 0.0 && step.forget == 1.0));
}

// A round that leaves the weights alone still counts for the readouts.
template <class Path>
ONEPASS_INLINE void keep_weights(Model& M, bool skip) {
    if (Path::covered(M)) add_to_average<Path::many>(M.w);
    if (Path::pockets(M) && !skip) survive(M);
    if (Path::votes(M) && !skip) M.w.votes.counts.back() += 1.0;
}

// The move that the rule's step makes along phi.
template <class Path>
ONEPASS_INLINE Status take_step(Model& M, Step& step, double distance, bool skip, Move& move) {
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
    return multiply_direction<Path>(M, step, skip, move);
}

// Gaussian weights move along Sigma * phi, and Sigma changes.
template <class Path, class Row>
ONEPASS_INLINE Status update_gaussian(Model& M, const Row& row, const Scalars& s, const Step& step, const Move& move) {
    Change change;
    const size_t own = Path::many && !M.w.sigma.shared ? M.w.outputs : 1;  // class rows with a Sigma of their own
    Status status = plan_change<Path>(M, row, s, step, own, change);
    if (status == Status::ok) status = apply_along<Path>(M, row, move, change);
    if (status == Status::ok) change_sigma<Path>(M, row, own, change);
    return status;
}

template <class Path, class Row>
ONEPASS_INLINE Status move_or_wait(Model& M, const Row& row, const Scalars& s, const Step& step, bool skip,
                                   const Move& move) {
    if constexpr (Path::may_be_gaussian)
        if (Path::gaussian(M)) return update_gaussian<Path>(M, row, s, step, move);
    if constexpr (Path::any)
        if (Path::batched(M)) return join_batch<Path>(M, row, move, skip);
    return apply<Path>(M, row, move);
}

// Update: w <- scale * w + add * phi, at once or when the mini-batch is full; and Sigma.
template <class Path, class Row>
ONEPASS_INLINE Status update(Model& M, const Row& row, const Scalars& s, const Step& step, bool skip,
                             const Move& move) {
    const Status status = move_or_wait<Path>(M, row, s, step, skip, move);
    if (status != Status::ok) return status;
    if (!Path::batched(M)) M.k += move.largest > 0.0 && !(Path::gaussian(M) && s.xx < DBL_MIN);
    if (Path::pockets(M)) {
        M.w.pocket.run = 0.0;
        M.w.pocket.holds_current = M.w.pocket.rejected = false;
    }
    return Status::ok;
}

template <class Path>
ONEPASS_INLINE Scalars begin_round(const Model& M, double importance, double target) {
    return {0.0, target,     0.0,
            0.0, importance, (Path::batched(M) ? M.w.batch.steps : M.t) + 1.0,
            M.k, 1.0,        M.task == Task::regress ? 1.0 : 0.0};
}

// Is phi zero? To a rule that forgets, such a round counts too.
template <class Path>
inline bool is_zero(const Model& M, const Scalars& s) {
    return s.xx < DBL_MIN && !(Path::gaussian(M) && M.w.sigma.forgets);
}

// |w|^2, intercepts included; in the p-norm geometry |theta|_p^2.
template <class Path>
inline double square_of_weights(const Model& M) {
    return Path::linked(M) ? M.w.theta_norm() * M.w.theta_norm() : M.w.norm.ww + bias_norm(M.w);
}

template <class Path, class Row>
Status learn_row(Model& M, const Row& row, double y, double importance, double target, const uint8_t* set, double* out,
                 double base) {
    Scalars s = begin_round<Path>(M, importance, target);
    Move move;
    Status status = face<Path>(M, row, y, base, set, out, s, move);
    if (status != Status::ok) return status;
    if constexpr (Path::any || Path::packs)
        if (Path::coordinates(M)) return learn_coordinates<Path>(M, row, y, importance, set, s, move);
    if (Path::linked(M) || Path::uses_ww(M)) s.ww = square_of_weights<Path>(M);
    const double distance = Path::oneclass(M) ? face_centre(M, s, out) : 0.0;

    const bool zero = is_zero<Path>(M, s), skip = zero || s.importance == 0.0;
    Step step = passive;
    double state[max_slots];
    if (!skip) status = answer<Path>(M, s, move, state, step);
    if (status != Status::ok) return status;
    if (is_passive(step, Path::gaussian(M)) && !Path::batched(M)) {
        keep_weights<Path>(M, skip);
    } else {
        status = take_step<Path>(M, step, distance, skip, move);
        if (status == Status::ok) status = update<Path>(M, row, s, step, skip, move);
        if (status != Status::ok) return status;
    }
    return commit(M, state, skip, zero);
}

}  // namespace onepass::ONEPASS_ISA
