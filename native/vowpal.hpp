// Vowpal Wabbit's update (spec 02, section 9; rules/vowpal.py): steps adapted to each feature's gradients, normalised
// by its largest value, and as long as many small steps on the same example would be. Every row of weights learns for
// itself: with several classes, its own against the rest. Included once per instruction set.
// Nothing here may call an out-of-line function of the standard library: the linker could pick another
// instruction set's copy.
#pragma once
#include "coordinates.hpp"
#include "losses.hpp"

namespace onepass::ONEPASS_ISA {

struct Vowpal {
    Loss loss;
    double parameter, eta, power;
    bool adaptive, normalized, invariant, clip, compat;
    explicit Vowpal(const double* p)
        : loss(Loss(int(p[0]))),
          parameter(p[1]),
          eta(p[2]),
          power(p[3]),
          adaptive(p[4] != 0.0),
          normalized(p[5] != 0.0),
          invariant(p[6] != 0.0),
          clip(p[7] != 0.0),
          compat(p[8] != 0.0) {}

    // The exponents as in the adaptive case? Away from P = 1/2, VW takes them so also where it does not adapt.
    bool shared_power() const { return adaptive || (compat && power != 0.5); }
};

// How far the score should move per unit of its own change, by the pull at p: VW's squared loss has no half.
inline double vowpal_pull(const Vowpal& rule, double p, double y) {
    const double twice = rule.loss == Loss::squared ? 2.0 : 1.0;
    return of_margin(rule.loss) ? y * pull(rule.loss, rule.parameter, y * p)
                                : twice * pull(rule.loss, rule.parameter, y - p);
}

// Lambert's W(e^Z): the omega with omega + ln(omega) = Z, without e^Z.
inline double wright_omega(double Z) {
    double omega = Z > 1.0 ? Z - std::log(Z) : std::exp(Z) / (1.0 + std::exp(Z));
    for (int i = 0; i < 6 && omega > 0.0; ++i) {
        const double next = omega - (omega + std::log(omega) - Z) / (1.0 + 1.0 / omega);
        omega = next > 0.0 ? next : omega / 2.0;
    }
    return omega;
}

// The score's way, over q, of infinitely many steps h/infinity each: the solution of dp/dh = q * pull(p).
inline double invariant_step(const Vowpal& rule, double p, double y, double h, double q) {
    const double hq = h * q, small = 1e-6;
    auto decay = [&](double way, double rate) {  // p approaches a place at distance `way`
        return hq * rate < small ? way * rate * h : way * (1.0 - std::exp(-rate * hq)) / q;
    };
    auto up_to = [&](double step, double way) { return step * q > way ? way / q : step; };
    const double side = y < p ? -1.0 : 1.0, r = std::abs(y - p), m = y * p, beyond = r - rule.parameter;
    switch (rule.loss) {
        case Loss::hinge:
        case Loss::ramp: return y * up_to(h, 1.0 - m);
        case Loss::squared_hinge: return y * decay(1.0 - m, 1.0);
        case Loss::logistic: {
            if (hq < small) return y * h * sigmoid(-m);
            const double e = std::exp(m), Z = hq + m + e;
            return -(y * (wright_omega(Z) - Z) + p) / q;
        }
        case Loss::squared: return side * decay(r, 2.0);
        case Loss::absolute: return side * up_to(h, r);
        case Loss::eps_insensitive: return side * up_to(h, beyond);
        case Loss::squared_eps_insensitive: return side * decay(beyond, 1.0);
        case Loss::quantile: return side * up_to((side > 0.0 ? rule.parameter : 1.0 - rule.parameter) * h, r);
        case Loss::huber: {
            if (beyond <= 0.0) return side * decay(r, 1.0);
            const double straight = beyond / (rule.parameter * q);  // the h that leads to the curved part
            if (!(h > straight)) return side * rule.parameter * h;
            return side * (beyond + rule.parameter * (1.0 - std::exp(-(h - straight) * q))) / q;
        }
        default: return h * vowpal_pull(rule, p, y);  // no closed form: refused when the rule is made
    }
}

// Of one weight: takes in its gradient, and leaves r_j * x_j in `way`. Planes: G where adaptive, N where normalised.
template <bool adaptive, bool normalized, bool half>
struct Metric {
    const Vowpal& rule;
    double gradient;                  // of the score, squared and weighted
    double norms = 0.0, reach = 0.0;  // sums over features: x^2/N^2 and x^2 * r

    static constexpr size_t count = adaptive + normalized;

    void meet(double x, double& w, double* planes, size_t stride, double* way) {
        const bool shared = rule.shared_power();
        double G = 1.0, N = 1.0, rate = 1.0;
        if (adaptive) planes[0] = G = planes[0] + gradient * (x * x);
        if (normalized) {
            double& largest = planes[(adaptive ? 1 : 0) * stride];
            const double size = std::abs(x);
            if (size > largest) {
                const double down = largest / size;
                if (largest > 0.0)
                    w *= !shared ? down * down : (half ? down : std::pow(down, 2.0 * (1.0 - rule.power)));
                largest = size;
            }
            N = largest;
            norms += x / N * (x / N);
        }
        if (adaptive && half) rate = 1.0 / (std::sqrt(G) * N);
        else {
            if (adaptive) rate = std::pow(G, -rule.power);
            if (normalized) rate *= shared ? std::pow(N * N, rule.power - 1.0) : 1.0 / (N * N);
        }
        if (adaptive) rate = G > 0.0 ? rate : 0.0;
        reach += x * x * rate;
        *way = rate * x;
    }
};

// One row of weights learns y from its score p, or puts back what it overwrote. `ways` has room for n + 1 numbers.
template <bool adaptive, bool normalized, bool half>
struct VowpalRow {
    using Of = Metric<adaptive, normalized, half>;
    Model& M;
    size_t r;

    // Calls visit with the place in the row, x, the weight, its planes and its part of the average.
    template <class Row, class Visit>
    void each(const Row& row, const Visit& visit) {
        Weights& w = M.w;
        const bool averages = w.averaging != Averaging::none;
        for (size_t i = 0; i < row.n; ++i) {
            const size_t j = row.column(i), at = j * w.stride + r;
            if (row.x[i] != 0)
                visit(i, double(row.x[i]), w.v.data()[at], w.planes.data() + j * Of::count * w.stride + r,
                      averages ? w.z.data() + at : nullptr);
        }
        if (M.constant != 0.0) visit(row.n, M.constant, w.bias[r], w.bias_planes.data() + r, nullptr);
    }
    double* of_row() {
        return M.w.bias_planes.data() + Of::count * M.w.stride + r;
    }  // the sum of norms; of importances

    template <class Row>
    void learn(const Row& row, const Vowpal& rule, double p, double y, double importance, double t, Undo* undo,
               double* ways) {
        const size_t stride = M.w.stride;
        const double pulled = vowpal_pull(rule, p, y);
        Of metric{rule, importance * (pulled * pulled)};
        const double* log = undo->at;
        each(row, [&](size_t i, double x, double& v, double* planes, double* z) {
            undo->keep(v);
            for (size_t k = 0; k < Of::count; ++k) undo->keep(planes[k * stride]);
            if (z) undo->keep(*z);
            metric.meet(x, v, planes, stride, ways + i);
        });
        double kappa = 1.0;
        if (normalized) {
            double *norms = of_row(), *total = norms + stride;
            undo->keep(*norms);
            undo->keep(*total);
            *norms += importance * metric.norms;
            *total += importance;
            const double ratio = *total / *norms;
            kappa = !rule.shared_power() ? ratio : (half ? std::sqrt(ratio) : std::pow(ratio, 1.0 - rule.power));
            undo->sound &= finite(*norms) && finite(*total) && finite(kappa);
        }
        double h = rule.eta * importance;
        if (!adaptive) h *= std::pow(t + (normalized ? 0.0 : 1.0), -rule.power);
        const double q = kappa * metric.reach;
        const double b = kappa * (rule.invariant ? invariant_step(rule, p, y, h, q) : h * pulled);
        each(row, [&](size_t i, double, double& v, double* planes, double* z) {
            v += b * ways[i];
            bool sound = finite(v);
            for (size_t k = 0; k < Of::count; ++k) sound &= finite(planes[k * stride]);
            if (z) {
                *z += M.w.A * (v - log[0]);
                sound &= finite(*z);
            }
            log += 1 + Of::count + (z != nullptr);
            undo->sound &= sound;
        });
    }

    template <class Row>
    void put_back(const Row& row, const double*& log) {
        each(row, [&](size_t, double, double& v, double* planes, double* z) {
            v = *log++;
            for (size_t k = 0; k < Of::count; ++k) planes[k * M.w.stride] = *log++;
            if (z) *z = *log++;
        });
        if (!normalized) return;
        of_row()[0] = *log++;
        of_row()[M.w.stride] = *log++;
    }
};

// What each row of weights is to learn: the score it gave, as far as labels go, and its label.
struct Lesson {
    double p, y;
};

// state: the importance so far, the least and the greatest label.
template <bool many>
inline Lesson lesson(const Model& M, const Vowpal& rule, double y, const uint8_t* set, const Scalars& s,
                     const Move& move, const double* state, size_t r) {
    double score, label;
    if (many) {
        score = M.scores[r];
        label = (M.task == Task::multilabel ? set[r] != 0 : r == move.up) ? 1.0 : -1.0;
    } else {
        const bool regress = M.task == Task::regress;
        score = (regress ? s.side : move.coefficient) * s.m;
        label = regress ? y : move.coefficient;
    }
    if (!rule.clip) return {score, label};
    const bool wide = rule.loss == Loss::logistic;
    const double low = wide ? -50.0 : state[1], high = wide ? 50.0 : state[2];
    return {score < low ? low : (score > high ? high : score), label};
}

template <bool adaptive, bool normalized, bool half, bool many, class Row>
Status learn_vowpal_by(Model& M, const Row& row, double y, const uint8_t* set, const Scalars& s, const Move& move,
                       double importance, const double* state, bool* moves) {
    Weights& w = M.w;
    using Learner = VowpalRow<adaptive, normalized, half>;
    const Vowpal rule(M.params);
    const size_t rows = many ? w.rows : 1, numbers = (Learner::Of::count + 2) * (row.n + 1) + 2;
    double* const ways = M.room_to_keep(rows * numbers + row.n + 1);
    double* const start = ways + row.n + 1;
    Undo undo{start};
    for (size_t r = 0; r < rows; ++r) {
        const Lesson of = lesson<many>(M, rule, y, set, s, move, state, r);
        if (vowpal_pull(rule, of.p, of.y) == 0.0) continue;
        Learner{M, r}.learn(row, rule, of.p, of.y, importance, state[0], &undo, ways);
        *moves = true;
    }
    if (undo.sound) return Status::ok;
    const double* log = start;
    for (size_t r = 0; r < rows; ++r) {
        const Lesson of = lesson<many>(M, rule, y, set, s, move, state, r);
        if (vowpal_pull(rule, of.p, of.y) != 0.0) Learner{M, r}.put_back(row, log);
    }
    return Status::overflow;
}

template <bool many, class Row>
Status learn_vowpal(Model& M, const Row& row, double y, const uint8_t* set, const Scalars& s, const Move& move,
                    double importance, double* state, bool* moves) {
    const Vowpal rule(M.params);
    const double label = many || M.task == Task::regress ? y : move.coefficient;
    state[0] += importance;
    if (many || label < state[1]) state[1] = many ? -1.0 : label;
    if (many || label > state[2]) state[2] = many ? 1.0 : label;
    const bool half = rule.power == 0.5;
#define ONEPASS_VOWPAL(a, n, h) return learn_vowpal_by<a, n, h, many>(M, row, y, set, s, move, importance, state, moves)
    if (rule.adaptive && rule.normalized) {
        if (half) ONEPASS_VOWPAL(true, true, true);
        ONEPASS_VOWPAL(true, true, false);
    }
    if (rule.adaptive) {
        if (half) ONEPASS_VOWPAL(true, false, true);
        ONEPASS_VOWPAL(true, false, false);
    }
    if (rule.normalized) ONEPASS_VOWPAL(false, true, false);
    ONEPASS_VOWPAL(false, false, false);
#undef ONEPASS_VOWPAL
}

}  // namespace onepass::ONEPASS_ISA
