#include "kernels/kernel_round.hpp"

#include <algorithm>
#include <cfloat>
#include <cmath>

#include "core/directions.hpp"

namespace onepass {

namespace {

constexpr double safe = 1e100;  // a few products and quotients of numbers from 1/safe to safe do not overflow

bool finite(double x) { return std::isfinite(x); }

bool within(double x) { return std::abs(x) < safe; }

// f(x) of every output.
Status score(Model& M, const Expansion& f, const double* k, double* out) {
    double* scores = M.scores.data();
    f.score(k, scores);
    for (size_t r = 0; r < f.outputs(); ++r)
        if (!finite(scores[r])) return Status::overflow;
    if (out) std::copy_n(scores, f.outputs(), out);
    return Status::ok;
}

// The direction of a round, phi = parts K(x, .): one part for each output.
struct Direction {
    double m = 0.0, target = 1.0, side = 1.0, parts_squared = 1.0;
    size_t true_class = 0;
};

Direction direction_of_one(const Model& M, double score, double y, double* parts) {
    Direction phi;
    double sign;
    if (M.task == Task::regress) {
        sign = phi.side = y < score ? -1.0 : 1.0;
        phi.target = sign * y - M.tube;
    } else {
        sign = y == 0.0 ? -1.0 : 1.0;
    }
    phi.m = sign * score;
    parts[0] = sign;
    return phi;
}

Direction direction_of_classes(const Model& M, size_t classes, double y, double* parts) {
    Direction phi;
    phi.true_class = size_t(y);
    const double* scores = M.scores.data();
    const double* roots = M.roots.empty() ? nullptr : M.roots.data() + phi.true_class * classes;
    const size_t rival =
        rival_of(phi.true_class, classes, [&](size_t r) { return scores[r] + (roots ? roots[r] : 0.0); });
    if (roots) phi.target = roots[rival];
    phi.m = scores[phi.true_class] - scores[rival];
    for (size_t r = 0; r < classes; ++r) parts[r] = r == phi.true_class ? 1.0 : (r == rival ? -1.0 : 0.0);
    phi.parts_squared = M.solve ? 1.0 : 2.0;
    if (M.against != Against::rival && phi.m <= 0.0) {
        const Shares shares = share_among_errors(M.against, scores, phi.true_class, classes, parts);
        phi.m = shares.m;
        phi.parts_squared = shares.squares;
    }
    return phi;
}

Direction direction(Model& M, size_t outputs, double y) {
    double* parts = M.coefficients.data();
    return outputs > 1 ? direction_of_classes(M, outputs, y, parts) : direction_of_one(M, M.scores[0], y, parts);
}

// What the rule sees of the round.
Scalars scalars(const Model& M, const Expansion& f, const Direction& phi, double xx, double importance) {
    const double ww = M.uses_ww ? f.ww : 0.0, regression = M.task == Task::regress ? 1.0 : 0.0;
    return {phi.m, phi.target, xx, ww, importance, M.t + 1.0, M.k, phi.side, regression};
}

// The rule's answer. Its state becomes the model's when the round is committed.
struct Answer {
    double add = 0.0, scale = 1.0;
    double state[max_slots];
};

// Rules that see all scores answer with the parts of the direction themselves; `add` is then 1, or 0 for no change.
Status answer_for_all(const double* parts, size_t outputs, Answer& answer) {
    bool changes = false;
    for (size_t r = 0; r < outputs; ++r) {
        if (!finite(parts[r])) return Status::overflow;
        changes |= parts[r] != 0.0;
    }
    answer.add = changes ? 1.0 : 0.0;
    return Status::ok;
}

Status rule_step(Model& M, const Scalars& s, size_t outputs, size_t true_class, Answer& answer) {
    Step step = passive;
    double* parts = M.coefficients.data();
    const bool all_scores = outputs > 1 && M.solve;
    for (int i = 0; i < M.slots; ++i) answer.state[i] = M.state[i];
    if (all_scores)
        M.solve(&s, M.scores.data(), int64_t(outputs), int64_t(true_class), M.params, answer.state, parts, &step);
    else M.step(&s, M.params, answer.state, &step);
    for (int i = 0; i < M.slots; ++i)
        if (!finite(answer.state[i])) return Status::overflow;
    if (!finite(step.add) || !finite(step.scale) || !finite(step.decay)) return Status::overflow;
    answer.add = step.add;
    answer.scale = step.scale * step.decay;
    return all_scores ? answer_for_all(parts, outputs, answer) : Status::ok;
}

bool norm_overflows(const Expansion& f, const KernelRound& round) {
    double ww = f.ww * round.scale * round.scale;
    for (size_t r = 0; r < f.outputs(); ++r) {
        const double add = round.add * round.parts[r];
        ww += 2.0 * add * (round.scale * round.scores[r]) + add * add * round.ktt;
    }
    return !finite(ww);
}

// Whether f <- scale*f + add*parts*K(x, .) overflows. largest: the largest |add*parts|.
bool step_overflows(const Expansion& f, const KernelRound& round, double largest) {
    const double scale = round.scale == 0.0 ? 1.0 : f.scale * round.scale;
    if (!finite(largest / scale) || !finite(round.scale)) return true;
    if (std::abs(round.scale) > 1.0 && !finite(f.largest_coefficient() * round.scale)) return true;
    return f.tracks_norm && norm_overflows(f, round);
}

// Budgets compute new coefficients from all of these numbers, so they must be far from overflow and underflow.
bool budget_may_overflow(const Expansion& f, const KernelRound& round, double largest) {
    // Least squares divide by the importance, and square the quotient.
    if (f.stores_covariance && !(within(round.importance) && round.importance > 1.0 / safe)) return true;
    if (!within(largest) || !within(round.ktt) || !(round.ktt > 1.0 / safe)) return true;
    return !(within(f.largest_coefficient()) && within(round.m));
}

// Refuses a step before it changes anything: a budget cannot fail afterwards.
Status validate(Expansion& f, const Budget& budget, const KernelRound& round, bool adds) {
    double largest = 0.0;
    for (size_t r = 0; r < f.outputs(); ++r) largest = std::max(largest, std::abs(round.add * round.parts[r]));
    if (step_overflows(f, round, largest)) return Status::overflow;
    if (budget.admit != take_step && budget_may_overflow(f, round, largest)) return Status::overflow;
    return adds && !f.has_room(round.x) ? Status::full : Status::ok;
}

// The budget applies the step, or replaces it by one that keeps the budget.
Status apply(Model& M, Expansion& f, Budget& budget, const KernelRound& round) {
    const bool adds = round.add != 0.0 || budget.every_round;
    if (!adds && round.scale == 1.0) return Status::ok;
    if (const Status status = validate(f, budget, round, adds); status != Status::ok) return status;
    const bool changed = budget.admit(budget, f, round);
    M.k += changed && adds;
    return Status::ok;
}

// Ends the round. state: the rule's new state; null where the rule was not asked.
Status commit(Model& M, const double* state, bool zero) {
    if (state)
        for (int i = 0; i < M.slots; ++i) M.state[i] = state[i];
    M.t += 1.0;
    M.skipped_zero += zero;
    return Status::ok;
}

}  // namespace

Status learn_kernel_round(Model& M, Expansion& f, Budget& budget, const Query& x, double y, double importance,
                          double* out, const double* ready) {
    const double ktt = diagonal(*f.kernel, x);
    if (!finite(ktt) || !finite(x.norm)) return Status::overflow;
    if (ktt < 0.0) return Status::indefinite;
    const double* k = ready ? ready : f.kernel_values(x);
    if (const Status status = score(M, f, k, out); status != Status::ok) return status;

    const Direction phi = direction(M, f.outputs(), y);
    const double xx = ktt * phi.parts_squared;
    if (!finite(xx)) return Status::overflow;
    const bool zero = xx < DBL_MIN;
    if (zero || importance == 0.0) return commit(M, nullptr, zero);

    const Scalars s = scalars(M, f, phi, xx, importance);
    Answer answer;
    if (const Status status = rule_step(M, s, f.outputs(), phi.true_class, answer); status != Status::ok) return status;

    const KernelRound round{x,          k,          ktt,          M.scores.data(),       s.m, s.target, xx,
                            importance, answer.add, answer.scale, M.coefficients.data(), s.t};
    if (const Status status = apply(M, f, budget, round); status != Status::ok) return status;
    return commit(M, answer.state, zero);
}

}  // namespace onepass
