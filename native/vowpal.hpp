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

// Lambert's W(e^Z): the omega with omega + ln(omega) = Z, without e^Z. Steps of Fritsch, Shafer and Crowley (1973),
// whose error is about the fourth power of the one before.
inline double wright_omega(double Z) {
    const double e = Z > 1.0 ? std::log(Z) : std::exp(Z);
    double omega = Z > 1.0 ? Z - e + e / Z : e / (1.0 + e), error = 1.0;
    for (int i = 0; i < 5 && std::abs(error) > 1e-4 && omega > 0.0; ++i) {
        const double t = 1.0 + omega;
        error = Z - omega - std::log(omega);
        const double u = 2.0 * t * (t + error * (2.0 / 3.0));
        omega *= 1.0 + error / t * (u - error) / (u - 2.0 * error);
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
            return y * (std::log(wright_omega(Z)) - m) / q;  // ln(omega) is Z - omega without the cancellation
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

// What each row of weights is to learn: the score it gave, as far as labels go, and its label.
struct Lesson {
    double p, y;
};

// One row of weights at the features of an example, the constant being the last: copied out, eight side by side, they
// learn there, and are written back once all are known to be finite. Planes: G where adaptive, N where normalised.
template <bool adaptive, bool normalized, bool half>
class VowpalRow {
 public:
    static constexpr size_t count = adaptive + normalized, width = 8, numbers = (2 + count) * width;
    static size_t blocks(size_t features) { return features / width + 1; }
    static size_t room(size_t features) { return blocks(features) * numbers + 2; }  // and what the row has of its own

    VowpalRow(Model& model, size_t row, double* room) : M(model), r(row), at_(room) {}

    // The score p should go to y. `x` are the features' values and zeros up to a whole block, `ways` room for as many.
    template <class Row>
    bool learn(const Row& row, const Vowpal& rule, Lesson of, double importance, double t, const double* x,
               double* ways) {
        read(row);
        const double pulled = vowpal_pull(rule, of.p, of.y);
        Sums sums;
        for (size_t i = 0; i < blocks(row.n); ++i)
            store(ways + i * width,
                  meet(rule, importance * (pulled * pulled), load(x + i * width), at_ + i * numbers, sums));
        double kappa = 1.0;
        bool sound = true;
        if (normalized) {
            double* const own = own_copy(row);
            own[0] = of_row()[0] + importance * add_up(sums.norms);
            own[1] = of_row()[M.w.stride] + importance;
            const double ratio = own[1] / own[0];
            kappa = !rule.shared_power() ? ratio : (half ? std::sqrt(ratio) : std::pow(ratio, 1.0 - rule.power));
            sound = finite(own[0]) && finite(own[1]) && finite(kappa);
        }
        double h = rule.eta * importance;
        if (!adaptive) h *= std::pow(t + (normalized ? 0.0 : 1.0), -rule.power);
        const double q = kappa * add_up(sums.reach);
        const double b = kappa * (rule.invariant ? invariant_step(rule, of.p, of.y, h, q) : h * pulled);
        Eight nothing{};  // NaN as soon as a number is not finite
        for (size_t i = 0; i < blocks(row.n); ++i) nothing += walk(b, load(ways + i * width), at_ + i * numbers);
        for (int l = 0; l < 8; ++l) sound &= nothing[l] == 0.0;
        return (M.w.averaging == Averaging::none || average(row)) && sound;
    }

    template <class Row>
    void write(const Row& row) {
        size_t i = 0;
        if (alone())
            for (double* const cells = M.w.cells.data(); i + width <= row.n; i += width)
                Cells::store(cells, row, i, at_ + i / width * numbers);
        each(row, i, [](double& weight, double& own) { weight = own; });
        if (!normalized) return;
        of_row()[0] = own_copy(row)[0];
        of_row()[M.w.stride] = own_copy(row)[1];
    }

 private:
    using Cells = Eights<count>;
    struct Sums {  // over features, x^2/N^2 and x^2 * r: feature i in lane i mod 8
        Eight norms{}, reach{};
    };

    // Is this the only row of weights, and has it no average? Then eights of features are copied at once.
    bool alone() const { return M.w.stride == 1 && M.w.averaging == Averaging::none; }

    // Calls visit with every number of the row of weights and its copy, from the row's place i on.
    template <class Row, class Visit>
    void each(const Row& row, size_t i, const Visit& visit) {
        Weights& w = M.w;
        double* const z = w.averaging != Averaging::none ? w.z.data() + r : nullptr;
        double* copy;
        for (; i < row.n; ++i) {
            double* const cell = w.v_of(row.column(i)) + r;
            copy = at_ + i / width * numbers + i % width;
            for (size_t k = 0; k <= count; ++k) visit(cell[k * w.stride], copy[k * width]);
            if (z) visit(z[row.column(i) * w.stride], copy[(1 + count) * width]);
        }
        if (M.constant == 0.0) return;
        copy = at_ + row.n / width * numbers + row.n % width;
        visit(w.bias[r], copy[0]);
        for (size_t k = 0; k < count; ++k) visit(w.bias_planes[k * w.stride + r], copy[(1 + k) * width]);
    }
    template <class Row>
    void read(const Row& row) {
        double* const last = at_ + row.n / width * numbers;
        for (size_t k = 0; k < numbers; ++k) last[k] = 0.0;
        size_t i = 0;
        if (alone())
            for (const double* const cells = M.w.cells.data(); i + width <= row.n; i += width) {
                Eight eights[1 + count];
                Cells::load(cells, row, i, eights);
                std::memcpy(at_ + i / width * numbers, eights, sizeof eights);
            }
        each(row, i, [](double& weight, double& own) { own = weight; });
    }
    double* of_row() {  // the sum of norms; of importances
        return M.w.bias_planes.data() + count * M.w.stride + r;
    }
    template <class Row>
    double* own_copy(const Row& row) {
        return at_ + blocks(row.n) * numbers;
    }

    // Eight features take in their gradient; gives r_j * x_j.
    static Eight meet(const Vowpal& rule, double gradient, Eight x, double* at, Sums& sums) {
        const bool shared = rule.shared_power();
        const Eight squares = x * x, one = Eight{} + 1.0;
        Eight g = one, n = one, rate = one;
        if (adaptive) {
            g = load(at + width) + gradient * squares;
            store(at + width, g);
        }
        if (normalized) {
            double* const N = at + (1 + adaptive) * width;
            const Eight size = size_of(x), largest = load(N);
            n = size > largest ? size : largest;
            if (any(n != largest)) {
                Eight down = largest > 0.0 ? largest / n : one;
                if (!shared) down *= down;
                for (int l = 0; shared && !half && l < 8; ++l)
                    if (down[l] != 1.0) down[l] = std::pow(down[l], 2.0 * (1.0 - rule.power));
                store(at, load(at) * down);
                store(N, n);
            }
            const Eight part = n > 0.0 ? x / n : Eight{};
            sums.norms += part * part;
        }
        if (adaptive && half) {
            rate = 1.0 / (root_of(g) * n);
        } else {
            for (int l = 0; adaptive && l < 8; ++l) rate[l] = std::pow(g[l], -rule.power);
            for (int l = 0; normalized && l < 8; ++l)
                rate[l] *= shared ? std::pow(n[l] * n[l], rule.power - 1.0) : 1.0 / (n[l] * n[l]);
        }
        const Eight r = (x != 0.0) & (g > 0.0) ? rate : Eight{};
        sums.reach += squares * r;
        return r * x;
    }

    // Eight weights go b times their way. NaN where a number is not finite, else 0.
    static Eight walk(double b, Eight way, double* at) {
        const Eight moved = load(at) + b * way;
        store(at, moved);
        Eight nothing = moved * 0.0;
        for (size_t k = 1; k <= count; ++k) nothing += load(at + k * width) * 0.0;
        return nothing;
    }

    template <class Row>
    bool average(const Row& row) {
        bool sound = true;
        for (size_t i = 0; i < row.n; ++i) {
            double* const copy = at_ + i / width * numbers + i % width;
            copy[(1 + count) * width] += M.w.A * (copy[0] - M.w.v_of(row.column(i))[r]);
            sound &= finite(copy[(1 + count) * width]);
        }
        return sound;
    }

    Model& M;
    const size_t r;
    double* const at_;
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
    using Learner = VowpalRow<adaptive, normalized, half>;
    const Vowpal rule(M.params);
    const size_t rows = many ? M.w.rows : 1, places = Learner::blocks(row.n) * Learner::width;
    double* const x = M.room_to_keep(2 * places + rows * Learner::room(row.n));
    double *const ways = x + places, *const room = ways + places;
    for (size_t i = 0; i < row.n; ++i) x[i] = double(row.x[i]);
    for (size_t i = row.n; i < places; ++i) x[i] = 0.0;
    x[row.n] = M.constant;
    auto each = [&](auto visit) {  // row of weights that has something to learn
        for (size_t r = 0; r < rows; ++r) {
            const Lesson of = lesson<many>(M, rule, y, set, s, move, state, r);
            if (vowpal_pull(rule, of.p, of.y) != 0.0) visit(Learner(M, r, room + r * Learner::room(row.n)), of);
        }
    };
    bool sound = true;
    each([&](Learner one, Lesson of) {
        sound &= one.learn(row, rule, of, importance, state[0], x, ways);
        *moves = true;
    });
    if (!sound) return Status::overflow;
    each([&](Learner one, Lesson) { one.write(row); });
    return Status::ok;
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
