// The round, in the steps of src/onepass/models/reference.py: observe the example, call the rule, update the weights,
// commit. Included by the unit of every kind (loops/paths.hpp), once per instruction set. Nothing here may call an
// out-of-line function of the standard library: the linker could pick another instruction set's copy.
#pragma once
#include "core/directions.hpp"
#include "loops/coordinates.hpp"
#include "loops/gaussian.hpp"
#include "loops/vowpal.hpp"

namespace onepass::ONEPASS_ISA {

inline double bias_norm(const Weights& w) {
    double sum = 0.0;
    for (size_t r = 0; r < w.outputs; ++r) sum += w.bias[r] * w.bias[r];
    return sum;
}

// |phi|_p, where phi has x in one or more outputs; `parts` is the p-norm of its parts.
inline void set_p_norms(const Model& M, Scalars& s, Move& move, double x_norm, double parts = 1.0) {
    const double whole = M.w.p_norm.with_constant(x_norm, M.bias_in_norm ? M.constant : 0.0) * parts;
    s.xx = whole * whole;
    move.phi_norm = x_norm * parts;
}

// <w, x> and |x|^2 by the current weights, whose scale is `read.a`.
template <class Path, class Row>
ONEPASS_INLINE DotNorm score_current(Model& M, const Row& row, const Reading& read) {
    // Decoding is fused into the sum: the decoded weights are saved on the way.
    [[maybe_unused]] auto dot_norm_by = [&](const auto& weights) { return dot_norm_of(row.x, row.n, weights); };
    if constexpr (Path::pairs) return score_pairs(M, row);
    if constexpr (Path::packs) return score_packs(M, row);
    if constexpr (Path::may_be_lazy)
        if (Path::lazy(M)) return with_decoded(M.w, row, M.transaction.workspace(row.n), dot_norm_by);
    return Path::linked(M) ? side_by_side(row).dot_norm(read.weights) : row.dot_norm(read.weights, read.pitch);
}

// The scalars that the rule will see, and the direction phi of the move, for a model of one output.
template <class Path, class Row>
inline Status observe_row(Model& M, const Row& row, double y, double base, Scalars& s, Move& move) {
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
    if (Path::linked(M)) set_p_norms(M, s, move, row_p_norm(row, w.p_norm.p));
    return finite(s.xx) && finite(s.m) ? Status::ok : Status::overflow;
}

// The uniform and proportional families: all outputs with an error share the step against the true class.
inline void share_step(Model& M, Scalars& s, Move& move, double norm) {
    const Weights& w = M.w;
    double* parts = M.coefficients.data();
    const Shares shares = share_among_errors(M.against, M.scores.data(), move.up, w.outputs, parts);
    double bias = 0.0;
    for (size_t r = 0; r < w.outputs; ++r) bias += parts[r] * w.bias[r] * M.constant;
    move.coefficients = parts;
    move.phi_norm = shares.squares * norm;
    move.inner = shares.m - bias;
    s.m = shares.m;
    s.xx = shares.squares * (norm + M.constant_norm());
}

// The next three choose the pair of outputs that phi is for and against, one for each kind of task.

// Multilabel: the lowest-scoring label of the set against the highest-scoring one outside.
inline void choose_in_set(const Model& M, const uint8_t* set, Scalars& s, Move& move) {
    const size_t rows = M.w.outputs;
    const double* scores = M.scores.data();
    move.up = move.down = rows;
    for (size_t r = 0; r < rows; ++r) {
        size_t& chosen = set[r] ? move.up : move.down;
        if (chosen == rows || (set[r] ? scores[r] < scores[chosen] : scores[r] > scores[chosen])) chosen = r;
    }
    if (M.calibrated || (move.up != rows && move.down != rows)) return;
    move.up = move.down = 0;  // all labels are in the set, or none: there is nothing to order
    s.importance = 0.0;
}

// The true class against its best-scoring rival.
inline void choose_rival(const Model& M, double y, Move& move) {
    const double* scores = M.scores.data();
    move.up = size_t(y);
    move.down = rival_of(move.up, M.w.outputs, [scores](size_t r) ONEPASS_INLINE_LAMBDA { return scores[r]; });
}

// With costs of classes: the rival with the largest score plus root of its cost.
inline void choose_costliest(const Model& M, double y, Scalars& s, Move& move) {
    const double* scores = M.scores.data();
    move.up = size_t(y);
    const double* roots = M.roots.data() + move.up * M.w.outputs;
    move.down = rival_of(move.up, M.w.outputs, [=](size_t r) ONEPASS_INLINE_LAMBDA { return scores[r] + roots[r]; });
    s.target = roots[move.down];
}

// |phi|_p where phi has x in several outputs.
template <class Row>
inline void set_p_norms_of_classes(const Model& M, const Row& row, Scalars& s, Move& move) {
    const Weights& w = M.w;
    double sum = 0.0;  // of the powers of the parts: two parts of 1, or the shares
    for (size_t r = 0; r < w.outputs && move.coefficients; ++r)
        sum += std::pow(std::abs(move.coefficients[r]), w.p_norm.p);
    set_p_norms(M, s, move, row_p_norm(row, w.p_norm.p), std::pow(move.coefficients ? sum : 2.0, 1.0 / w.p_norm.p));
}

inline bool all_finite(const double* scores, size_t rows) {
    for (size_t r = 0; r < rows; ++r)
        if (!finite(scores[r])) return false;
    return true;
}

// The same for a model with several outputs.
template <class Row>
inline Status observe_classes(Model& M, const Row& row, double y, const uint8_t* set, Scalars& s, Move& move) {
    Weights& w = M.w;
    const double norm = ONEPASS_ISA::norm(row.x, row.n);
    if (!finite(norm)) return Status::not_finite;
    double* scores = M.scores.data();
    scores_of(M, row, read_current(M, row, w.l1.on ? M.transaction.workspace(row.n * w.stride) : nullptr), scores,
              scores);
    if (!all_finite(scores, w.outputs)) return Status::overflow;
    move.coefficient = 1.0;
    move.coefficients = nullptr;
    move.norm = norm;
    if (M.task == Task::multilabel) choose_in_set(M, set, s, move);
    else if (M.roots.empty()) choose_rival(M, y, move);
    else choose_costliest(M, y, s, move);
    if (M.task == Task::multilabel && M.calibrated) {
        s.xx = norm + M.constant_norm();
        return finite(s.xx) ? Status::ok : Status::overflow;
    }
    s.m = scores[move.up] - scores[move.down];
    s.xx = (M.solve ? 1.0 : 2.0) * (norm + M.constant_norm());
    move.phi_norm = 2.0 * norm;
    move.inner = s.m - (w.bias[move.up] - w.bias[move.down]) * M.constant;
    if (M.against != Against::rival && s.m <= 0.0) share_step(M, s, move, norm);
    if (w.p_norm.on()) set_p_norms_of_classes(M, row, s, move);
    return finite(s.xx) && finite(s.m) ? Status::ok : Status::overflow;
}

// Multilabel, calibrated: the lowest score in the set should reach +1, the highest outside -1, with a step for each.
inline void calibrate(Model& M, Scalars s, const Move& move, double* state, Step* step) {
    double* coefficients = M.coefficients.data();
    for (size_t r = 0; r < M.w.outputs; ++r) coefficients[r] = 0.0;
    bool moves = false;
    for (size_t chosen : {move.up, move.down}) {
        if (chosen == M.w.outputs) continue;  // the set is empty, or has all labels
        const double sign = chosen == move.up ? 1.0 : -1.0;
        s.m = sign * M.scores[chosen];
        *step = passive;
        M.step(&s, M.params, state, step);
        coefficients[chosen] = sign * step->add;
        moves |= step->add != 0.0;
    }
    step->add = moves ? 1.0 : 0.0;
}

// The move of a rule that gave every output its coefficient.
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

// A round without an update. The weights with the longest run of such rounds go into the pocket.
inline void extend_run(Model& M) {
    Weights& w = M.w;
    w.pocket.run += 1.0;
    if (w.pocket.run <= w.pocket.best_run || w.pocket.rejected) return;
    if (!w.pocket.holds_current && w.pocket.ratchet) {
        const double errors = M.errors(M, M.set);
        w.pocket.rejected = !(errors < w.pocket.errors);
        if (w.pocket.rejected) return;  // the longest run so far stays the same
        w.pocket.errors = errors;
    }
    w.pocket.best_run = w.pocket.run;
    if (w.pocket.holds_current) return;
    w.store_in_pocket();
    w.pocket.holds_current = true;
}

// Are the scores by the current weights, with which a round begins, also the prediction? Then they are computed once.
template <class Path>
inline bool predicts_current(const Model& M) {
    const Weights& w = M.w;
    if (!Path::any) return !Path::lazy(M);
    return !w.average.on() && !w.votes.on && !w.pocket.on && !w.l1.on && !w.p_norm.on() && !w.sigma.vaw && !M.clips;
}

// The prediction, if it is wanted, then phi and the scalars.
template <class Path, class Row>
ONEPASS_INLINE Status observe(Model& M, const Row& row, double y, double base, const uint8_t* set, double* out,
                              Scalars& s, Move& move) {
    if (Path::full(M)) register_features(M.w.sigma, row);
    const bool current = out && predicts_current<Path>(M);
    if constexpr (!is_difference<Row>)
        if (out && !current) predict_row(M, row, out, M.scores.data(), base);
    Status status;
    if constexpr (Path::many) status = observe_classes(M, row, y, set, s, move);
    else status = observe_row<Path>(M, row, y, base, s, move);
    if (current && status == Status::ok) {
        if (!Path::many) out[0] = move.coefficient * s.m;  // a sign, twice
        for (size_t r = 0; Path::many && r < M.w.outputs; ++r) out[r] = M.scores[r];
    }
    if constexpr (Path::may_be_gaussian)
        if (Path::gaussian(M) && status == Status::ok) status = multiply_by_sigma<Path>(M, row, s, move);
    return status;
}

// One-class: phi is the unit vector from w to x, the target a distance. Returns the distance of x.
inline double observe_distance(const Model& M, Scalars& s, double* out) {
    const double squared = s.ww - 2.0 * s.m + s.xx, distance = squared > 0.0 ? std::sqrt(squared) : 0.0;
    s.m = -distance;
    s.target = -M.tube;
    s.xx = 1.0;
    if (out) out[0] = distance - M.tube;  // above 0 is an anomaly
    if (distance == 0.0) s.importance = 0.0;
    return distance;
}

// Does the rule answer with a coefficient for every output, instead of a step along phi?
template <class Path>
inline bool sees_all_scores(const Model& M) {
    return Path::many && (M.solve || M.calibrated);
}

// Calls the rule: its step, and a coefficient for every output if it sees all scores.
template <class Path>
ONEPASS_INLINE void call_rule(Model& M, const Scalars& s, const Move& move, double* state, Step& step) {
    if (Path::many && M.calibrated) calibrate(M, s, move, state, &step);
    else if (sees_all_scores<Path>(M))
        M.solve(&s, M.scores.data(), int64_t(M.w.outputs), int64_t(move.up), M.params, state, M.coefficients.data(),
                &step);
    else M.step(&s, M.params, state, &step);
}

// The round was not refused: the slots of the rule and the counters are updated.
ONEPASS_INLINE Status commit(Model& M, const double* state, bool skip, bool zero) {
    if (!skip)
        for (int i = 0; i < M.slots; ++i) M.state[i] = state[i];
    M.t += 1.0;
    M.skipped_zero += zero;
    return Status::ok;
}

// The direction times the step: +-add * phi, its shares, or the coefficients that the rule gave every output.
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

// Calls a rule with its own step for each coordinate, and moves the weights.
template <class Path, class Row>
Status call_and_move_coordinates(Model& M, const Row& row, const Scalars& s, bool always, double* state, Move& move,
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
    const bool always = Path::any && M.coordinates == Coordinates::adam;  // moves also where the gradient is 0
    // A set of all labels or of none has importance 0, but momentum continues.
    const bool zero = s.xx < DBL_MIN && !always;
    const bool skip = zero || (vowpal || always ? importance : s.importance) == 0.0;
    Status status = Status::ok;
    double state[max_slots];
    bool moves = false;
    for (int i = 0; i < M.slots; ++i) state[i] = M.state[i];
    if (!skip && vowpal) {
        const Example of{y, importance, set, s, move};
        status = move_and_average<Path>(M, row, [&] { return learn_vowpal<Path>(M, row, of, state, &moves); });
    } else if (!skip) {
        status = call_and_move_coordinates<Path>(M, row, s, always, state, move, &moves);
    }
    if (status != Status::ok) return status;
    if ((skip || !(moves || vowpal)) && Path::covered(M)) add_to_average<Path::many>(M.w);
    M.k += moves;
    return commit(M, state, false, zero);
}

// Calls the rule with a copy of its slots.
template <class Path>
ONEPASS_INLINE Status call_on_copy(Model& M, const Scalars& s, const Move& move, double* state, Step& step) {
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

// A round that does not change the weights still counts for the readouts.
template <class Path>
ONEPASS_INLINE void count_unchanged(Model& M, bool skip) {
    if (Path::covered(M)) add_to_average<Path::many>(M.w);
    if (Path::pockets(M) && !skip) extend_run(M);
    if (Path::votes(M) && !skip) M.w.votes.counts.back() += 1.0;
}

// The move that the rule's step makes along phi.
template <class Path>
ONEPASS_INLINE Status make_move(Model& M, Step& step, double distance, bool skip, Move& move) {
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
    const size_t own = Path::many && !M.w.sigma.shared ? M.w.outputs : 1;  // outputs with a Sigma of their own
    Status status = plan_change<Path>(M, row, s, step, own, change);
    if (status == Status::ok) status = apply_along<Path>(M, row, move, change);
    if (status == Status::ok) change_sigma<Path>(M, row, own, change);
    return status;
}

template <class Path, class Row>
ONEPASS_INLINE Status apply_or_record(Model& M, const Row& row, const Scalars& s, const Step& step, bool skip,
                                      const Move& move) {
    if constexpr (Path::may_be_gaussian)
        if (Path::gaussian(M)) return update_gaussian<Path>(M, row, s, step, move);
    if constexpr (Path::any)
        if (Path::batched(M)) return record_in_batch<Path>(M, row, move, skip);
    return apply<Path>(M, row, move);
}

// w <- scale * w + add * phi, at once or when the mini-batch is full; then Sigma.
template <class Path, class Row>
ONEPASS_INLINE Status update(Model& M, const Row& row, const Scalars& s, const Step& step, bool skip,
                             const Move& move) {
    const Status status = apply_or_record<Path>(M, row, s, step, skip, move);
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

// Is phi zero? For a rule that forgets, such a round counts too.
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
    Status status = observe<Path>(M, row, y, base, set, out, s, move);
    if (status != Status::ok) return status;
    if constexpr (Path::any || Path::packs)
        if (Path::coordinates(M)) return learn_coordinates<Path>(M, row, y, importance, set, s, move);
    if (Path::linked(M) || Path::uses_ww(M)) s.ww = square_of_weights<Path>(M);
    const double distance = Path::oneclass(M) ? observe_distance(M, s, out) : 0.0;

    const bool zero = is_zero<Path>(M, s), skip = zero || s.importance == 0.0;
    Step step = passive;
    double state[max_slots];
    if (!skip) status = call_on_copy<Path>(M, s, move, state, step);
    if (status != Status::ok) return status;
    if (is_passive(step, Path::gaussian(M)) && !Path::batched(M)) {
        count_unchanged<Path>(M, skip);
    } else {
        status = make_move<Path>(M, step, distance, skip, move);
        if (status == Status::ok) status = update<Path>(M, row, s, step, skip, move);
        if (status != Status::ok) return status;
    }
    return commit(M, state, skip, zero);
}

}  // namespace onepass::ONEPASS_ISA
