#include "kernels/kernel_round.hpp"

#include <algorithm>
#include <cfloat>
#include <cmath>

namespace onepass {

namespace {

constexpr double safe = 1e100;  // numbers within 1/safe..safe multiply and divide a few times without overflow

// The direction of a round: phi = parts K(x, .), one number per output.
struct Facing {
    double m = 0.0, target = 1.0, side = 1.0, parts_squared = 1.0;
    size_t up = 0;
};

Facing face_one(const Model& M, double score, double y, double* parts) {
    Facing out;
    double sign;
    if (M.task == Task::regress) {
        sign = out.side = y < score ? -1.0 : 1.0;
        out.target = sign * y - M.tube;
    } else {
        sign = y == 0.0 ? -1.0 : 1.0;
    }
    out.m = sign * score;
    parts[0] = sign;
    return out;
}

// The uniform and proportional families: -x is shared among all classes that score at least as much as the true one.
void share(const Model& M, const double* scores, size_t classes, Facing& facing, double* parts) {
    const double truth = scores[facing.up];
    double errors = 0.0, over = 0.0;
    for (size_t r = 0; r < classes; ++r)
        if (r != facing.up && scores[r] >= truth) {
            errors += 1.0;
            over += scores[r] - truth;
        }
    const bool proportional = M.against == Against::proportional && over > 0.0;
    facing.m = facing.parts_squared = 0.0;
    for (size_t r = 0; r < classes; ++r) {
        const bool error = r != facing.up && scores[r] >= truth;
        parts[r] = r == facing.up ? 1.0 : (error ? -(proportional ? (scores[r] - truth) / over : 1.0 / errors) : 0.0);
        facing.parts_squared += parts[r] * parts[r];
        facing.m += parts[r] * (scores[r] - truth);  // a tie is exactly 0
    }
}

// The true class against its rival: the best-scoring, or with costs the one that costs most; the lowest among equals.
Facing face_classes(const Model& M, const double* scores, size_t classes, double y, double* parts) {
    Facing out;
    out.up = size_t(y);
    const double* roots = M.roots.empty() ? nullptr : M.roots.data() + out.up * classes;
    const auto pull = [&](size_t r) { return scores[r] + (roots ? roots[r] : 0.0); };
    size_t down = out.up == 0 ? 1 : 0;
    for (size_t r = down + 1; r < classes; ++r)
        if (r != out.up && pull(r) > pull(down)) down = r;
    if (roots) out.target = roots[down];
    out.m = scores[out.up] - scores[down];
    for (size_t r = 0; r < classes; ++r) parts[r] = r == out.up ? 1.0 : (r == down ? -1.0 : 0.0);
    out.parts_squared = M.solve ? 1.0 : 2.0;
    if (M.against != Against::rival && out.m <= 0.0) share(M, scores, classes, out, parts);
    return out;
}

bool finite(double x) { return std::isfinite(x); }

bool within(double x) { return std::abs(x) < safe; }

// Would the step overflow? Budgets mix coefficients, so they get a wide berth.
bool overflows(const Expansion& f, const Budget& budget, const KernelRound& round) {
    double largest = 0.0;
    for (size_t r = 0; r < f.outputs(); ++r) largest = std::max(largest, std::abs(round.add * round.parts[r]));
    const double scale = round.scale == 0.0 ? 1.0 : f.scale * round.scale;
    if (!finite(largest / scale) || !finite(round.scale)) return true;
    if (std::abs(round.scale) > 1.0 && !finite(f.largest() * round.scale)) return true;
    if (f.follows_norm) {
        double ww = f.ww * round.scale * round.scale;
        for (size_t r = 0; r < f.outputs(); ++r) {
            const double add = round.add * round.parts[r];
            ww += 2.0 * add * (round.scale * round.scores[r]) + add * add * round.ktt;
        }
        if (!finite(ww)) return true;
    }
    if (budget.admit == take_step) return false;
    // Least squares divide by the importance, and square the quotient.
    if (f.keeps_covariance && !(within(round.importance) && round.importance > 1.0 / safe)) return true;
    return !(within(largest) && within(round.ktt) && round.ktt > 1.0 / safe && within(f.largest()) && within(round.m));
}

}  // namespace

Status learn_kernel_round(Model& M, Expansion& f, Budget& budget, const Query& x, double y, double importance,
                          double* out, const double* ready) {
    const double ktt = diagonal(*f.kernel, x);
    if (!finite(ktt) || !finite(x.norm)) return Status::overflow;
    if (ktt < 0.0) return Status::indefinite;
    const size_t outputs = f.outputs();
    const double* k = ready ? ready : f.row(x);
    double *scores = M.scores.data(), *parts = M.coefficients.data();
    f.score(k, scores);
    for (size_t r = 0; r < outputs; ++r)
        if (!finite(scores[r])) return Status::overflow;
    if (out) std::copy_n(scores, outputs, out);

    const bool many = outputs > 1, all_scores = many && M.solve;
    const Facing facing = many ? face_classes(M, scores, outputs, y, parts) : face_one(M, scores[0], y, parts);
    const double xx = ktt * facing.parts_squared;
    if (!finite(xx)) return Status::overflow;
    const Scalars s{facing.m,
                    facing.target,
                    xx,
                    M.uses_ww ? f.ww : 0.0,
                    importance,
                    M.t + 1.0,
                    M.k,
                    facing.side,
                    M.task == Task::regress ? 1.0 : 0.0};
    const bool zero = xx < DBL_MIN, skip = zero || importance == 0.0;
    Step step = passive;
    double state[max_slots];
    if (!skip) {
        for (int i = 0; i < M.slots; ++i) state[i] = M.state[i];
        if (all_scores) M.solve(&s, scores, int64_t(outputs), int64_t(facing.up), M.params, state, parts, &step);
        else M.step(&s, M.params, state, &step);
        for (int i = 0; i < M.slots; ++i)
            if (!finite(state[i])) return Status::overflow;
    }
    if (!finite(step.add) || !finite(step.scale) || !finite(step.decay)) return Status::overflow;
    double add = step.add;
    if (all_scores && !skip) {
        bool moves = false;
        for (size_t r = 0; r < outputs; ++r) {
            if (!finite(parts[r])) return Status::overflow;
            moves |= parts[r] != 0.0;
        }
        add = moves ? 1.0 : 0.0;
    }
    const KernelRound round{x,     k,        ktt, scores, s.m, s.target, xx, importance, add, step.scale * step.decay,
                            parts, M.t + 1.0};
    if (!skip && (add != 0.0 || round.scale != 1.0 || budget.every_round)) {
        if (overflows(f, budget, round)) return Status::overflow;
        if ((add != 0.0 || budget.every_round) && !f.has_room(x)) return Status::full;
        const bool changed = budget.admit(budget, f, round);
        M.k += changed && (add != 0.0 || budget.every_round);
    }
    if (!skip)
        for (int i = 0; i < M.slots; ++i) M.state[i] = state[i];
    M.t += 1.0;
    M.skipped_zero += zero;
    return Status::ok;
}

}  // namespace onepass
