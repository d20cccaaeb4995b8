// Vowpal Wabbit's update (rules/vowpal.py). Steps are adapted to the gradients of each feature (Duchi, Hazan and Singer
// 2011), normalised by its largest value (Ross, Mineiro and Langford 2013), and as long as many small steps on the same
// example would be (Karampatziakis and Langford 2011). With several classes, each output learns its own class against
// the rest. Included once per instruction set. Nothing here may call an out-of-line function of the standard library:
// the linker could pick the copy of another instruction set.
#pragma once
#include "core/losses.hpp"
#include "loops/coordinates.hpp"

namespace onepass::ONEPASS_ISA {

struct Vowpal {
    Loss loss;
    double parameter, eta, power, row_power;
    bool adaptive, normalized, invariant, clip, compat;
    using At = VWParams;
    explicit Vowpal(const double* p)
        : loss(Loss(int(p[At::loss]))),
          parameter(p[At::loss_parameter]),
          eta(p[At::eta]),
          power(p[At::power]),
          row_power(p[At::kappa_power]),
          adaptive(p[At::adaptive] != 0.0),
          normalized(p[At::normalized] != 0.0),
          invariant(p[At::invariant] != 0.0),
          clip(p[At::clip] != 0.0),
          compat(p[At::vw_compat] != 0.0) {}

    // VW's default options. They are compiled on their own; other options are read in every round.
    bool usual() const { return adaptive && normalized && power == 0.5; }
    // Does the rule use the exponents of the adaptive case? For P other than 1/2, VW uses them even if it does not
    // adapt.
    bool shared_power() const { return adaptive || (compat && power != 0.5); }
};

// The pull of the loss at the score p. VW's squared loss has no factor 1/2.
inline double vowpal_pull(const Vowpal& rule, double p, double y) {
    const double twice = rule.loss == Loss::squared ? 2.0 : 1.0;
    return of_margin(rule.loss) ? y * pull(rule.loss, rule.parameter, y * p)
                                : twice * pull(rule.loss, rule.parameter, y - p);
}

// How far logistic loss moves the margin m in the time hq: ln(omega) - m, where omega + ln(omega) = m + e^m + hq.
// Computed by the iteration of Fritsch, Shafer and Crowley (1973) for Lambert's W, whose error is about the fourth
// power of the error before. For a short time it starts at omega = e^m, where the error is hq.
inline double logistic_way(double m, double hq) {
    const double from = std::exp(m), Z = hq + m + from;
    if (m > 40.0) return std::log1p(hq / (1.0 + from));  // omega is e^m, but for hq
    if (Z < -40.0) return hq;                            // the loss is a straight line there
    if (Z > 1e150) return std::log(Z - std::log(Z)) - m;
    double risen = 0.0, way = 0.0, error = hq;  // omega - e^m, ln(omega) - m, Z - omega - ln(omega)
    if (hq > 1.0 + from) {
        const double e = Z > 1.0 ? std::log(Z) : std::exp(Z), omega = Z > 1.0 ? Z - e + e / Z : e / (1.0 + e);
        risen = omega - from;
        way = std::log(omega) - m;
        error = hq - risen - way;
    }
    for (int i = 0; i < 5; ++i) {
        const double omega = from + risen, t = 1.0 + omega, u = 2.0 * t * (t + error * (2.0 / 3.0));
        const double grown = error / t * (u - error) / (u - 2.0 * error);
        if (std::abs(error) <= 1e-4) return way + grown * (1.0 - grown * (0.5 - grown * (1.0 / 3.0 - grown * 0.25)));
        way += std::log1p(grown);
        risen += omega * grown;
        error = hq - risen - way;
    }
    return way;
}

// How far infinitely many infinitely small steps move the score, divided by q: the solution of dp/dh = q * pull(p).
struct Invariant {
    double h, q, hq = h * q;

    double decay(double way, double rate) const {  // p approaches a point at distance `way`
        return hq * rate < small ? way * rate * h : way * (1.0 - std::exp(-rate * hq)) / q;
    }
    double up_to(double step, double way) const { return step * q > way ? way / q : step; }

    double of_margin(Loss loss, double y, double m) const {
        switch (loss) {
            case Loss::squared_hinge: return y * decay(1.0 - m, 1.0);
            case Loss::logistic: return hq < small ? y * h * sigmoid(-m) : y * logistic_way(m, hq) / q;
            default: return y * up_to(h, 1.0 - m);  // hinge, ramp
        }
    }
    // r is the absolute residual; `under` is true if the score is below y.
    double of_residual(Loss loss, double parameter, double r, bool under) const {
        switch (loss) {
            case Loss::squared: return decay(r, 2.0);
            case Loss::absolute: return up_to(h, r);
            case Loss::eps_insensitive: return up_to(h, r - parameter);
            case Loss::squared_eps_insensitive: return decay(r - parameter, 1.0);
            case Loss::quantile: return up_to((under ? parameter : 1.0 - parameter) * h, r);
            default: return huber(parameter, r);
        }
    }
    double huber(double parameter, double r) const {
        const double beyond = r - parameter;
        if (beyond <= 0.0) return decay(r, 1.0);
        const double straight = beyond / (parameter * q);  // the h that leads to the curved part
        if (!(h > straight)) return parameter * h;
        return (beyond + parameter * (1.0 - std::exp(-(h - straight) * q))) / q;
    }

    static constexpr double small = 1e-6;
};

inline double invariant_step(const Vowpal& rule, double p, double y, double h, double q) {
    // These losses have no closed form, so the rule refuses them with `invariant`.
    if (rule.loss == Loss::perceptron || rule.loss == Loss::tukey) return h * vowpal_pull(rule, p, y);
    const Invariant way{h, q};
    if (of_margin(rule.loss)) return way.of_margin(rule.loss, y, y * p);
    return (y < p ? -1.0 : 1.0) * way.of_residual(rule.loss, rule.parameter, std::abs(y - p), !(y < p));
}

// What one output learns from an example: its score, clipped to the labels; its label; the pull of the loss.
struct Target {
    double p, y, pulled;
};

// Applies a function to one number, or to each number of a pack.
template <class Function>
inline double each(double x, const Function& f) {
    return f(x);
}
template <class Function>
inline Pack each(Pack x, const Function& f) {
    for (size_t l = 0; l < packed; ++l) x[l] = f(x[l]);
    return x;
}

// Sums over the features of an example; T is a number or a Pack.
template <class T>
struct VowpalSums {
    T norms{}, reach{};       // x^2/N^2 and x^2 * r
    T sizes{}, directions{};  // of |w|, G and N; of |direction|. Upper bounds on each of them

    VowpalSums operator+(const VowpalSums& other) const {
        return {norms + other.norms, reach + other.reach, sizes + other.sizes, directions + other.directions};
    }
};
inline VowpalSums<double> total(const VowpalSums<Pack>& all) {
    return {add_up(all.norms), add_up(all.reach), add_up(all.sizes), add_up(all.directions)};
}

// The weights of one output at the features of an example and at the constant. Pack by pack, the gradients are added to
// their planes (G if adaptive, N if normalised). The results stay in the working space `room` until the step is known
// and all outputs are sure to stay finite. If the example was `scored` by score_packs() (loops/coordinates.hpp), its
// numbers are there already.
template <bool usual, bool scored>
class VowpalRow {
 public:
    static_assert(usual || !scored);
    static constexpr size_t pitch = Weights::pitch_of(2, 1);  // for the largest number of planes()
    // For the numbers of the features, their directions, and the plan.
    static size_t room(size_t features) {
        return Packs<pitch>::room(features) + Packs<1>::room(features) + plan_numbers;
    }

    VowpalRow(Model& model, const Vowpal& rule, size_t row, double* room) : M(model), rule(rule), r(row), room_(room) {}

    // Computes how the score p moves towards y. False if a number would not be finite.
    template <class Row>
    bool learn(const Row& row, Target of, double importance, double t) {
        double* const plan = plan_of(row);
        plan[moves] = of.pulled != 0.0;
        if (of.pulled == 0.0) return true;
        const double gradient = importance * (of.pulled * of.pulled);
        const auto sum = [&](VowpalSums<Pack>& some, size_t i, auto... count) ONEPASS_INLINE_LAMBDA {
            Pack own[pitch]{};
            read(row, i, own, count...);
            store(directions_of(row) + i, add_gradient(gradient, load_pack(row.x + i, count...), own, some));
            Packs<pitch>::save(room_, i, own);
        };
        VowpalSums<double> sums = total(sum_packs<VowpalSums<Pack>>(row.n, sum));
        double* const constant = plan + plan_constant;
        for (size_t k = 0; k <= planes(); ++k) constant[k] = of_constant(k);
        plan[constant_direction] = add_gradient(gradient, M.constant, constant, sums);
        const double kappa = normalized() ? scale_of_row(plan, sums.norms, importance) : 1.0;
        if (normalized() && !(finite(plan[norms]) && finite(plan[importances]) && finite(kappa))) return false;
        double h = rule.eta * importance;
        if (!adaptive()) h *= std::pow(t + (normalized() ? 0.0 : 1.0), -rule.power);
        plan[step] = kappa * (rule.invariant ? invariant_step(rule, of.p, of.y, h, kappa * sums.reach) : h * of.pulled);
        return finite(sums.sizes + std::abs(plan[step]) * sums.directions) && average_stays_finite(row);
    }

    template <class Row>
    void write(const Row& row) {
        const double* const plan = plan_of(row);
        if (plan[moves] == 0.0) return;
        in_packs(row.n, [&](size_t i, auto... count) ONEPASS_INLINE_LAMBDA {
            Pack own[pitch];
            Packs<pitch>::read_saved(room_, i, own);
            own[0] += plan[step] * load_pack(directions_of(row) + i);
            put(row, i, own, count...);
        });
        if (M.constant != 0.0) {
            const double* const constant = plan + plan_constant;
            of_constant(0) = constant[0] + plan[step] * plan[constant_direction];
            for (size_t k = 1; k <= planes(); ++k) of_constant(k) = constant[k];
        }
        if (!normalized()) return;
        of_row()[0] = plan[norms];
        of_row()[M.w.stride] = plan[importances];
    }

 private:
    bool adaptive() const { return usual || rule.adaptive; }
    bool normalized() const { return usual || rule.normalized; }
    bool by_roots() const { return usual || (rule.adaptive && rule.power == 0.5); }  // is 1/sqrt(G) the rate?
    size_t planes() const { return size_t(adaptive()) + size_t(normalized()); }

    // The plan follows the features in the working space: the new sums of norms and of importances, the step along all
    // directions, whether there is a step, the direction of the constant and its new numbers.
    enum Plan { norms, importances, step, moves, constant_direction, plan_constant, plan_numbers = plan_constant + 3 };

    // The factor by which normalising scales the rate: a power of importances over norms, this example included.
    double scale_of_row(double* plan, double of_example, double importance) {
        plan[norms] = of_row()[0] + importance * of_example;
        plan[importances] = of_row()[M.w.stride] + importance;
        const double ratio = plan[importances] / plan[norms], root = std::sqrt(ratio);
        if (rule.row_power == 0.5) return root;
        return rule.row_power == 0.75 ? root * std::sqrt(root) : std::pow(ratio, rule.row_power);
    }
    double* of_row() {  // the sums of norms and of importances, which belong to the whole output
        return M.w.planes.bias.data() + planes() * M.w.stride + r;
    }
    template <class Row>
    double* directions_of(const Row& row) {
        return room_ + Packs<pitch>::room(row.n);
    }
    template <class Row>
    double* plan_of(const Row& row) {
        return directions_of(row) + Packs<1>::room(row.n);
    }
    double& of_constant(size_t k) { return k == 0 ? M.w.bias[r] : M.w.planes.bias[(k - 1) * M.w.stride + r]; }

    template <class Row, class... Count>
    void read(const Row& row, size_t i, Pack* own, Count... count) {
        if (scored) return Packs<pitch>::read_saved(room_, i, own);
        const size_t n = (packed - ... - (packed - count));
        double every[pitch][packed] = {};
        for (size_t l = 0; l < n; ++l)
            for (size_t k = 0; k <= planes(); ++k) every[k][l] = M.w.v_of(row.column(i + l))[k * M.w.stride + r];
        std::memcpy(own, every, sizeof every);
    }
    template <class Row, class... Count>
    void put(const Row& row, size_t i, const Pack* own, Count... count) {
        if (scored) return Packs<pitch>::store(M.w.cells.data(), row, i, own, count...);
        const size_t n = (packed - ... - (packed - count));
        for (size_t l = 0; l < n; ++l) {
            double* const cell = M.w.v_of(row.column(i + l)) + r;
            if (double* const z = average_of(row.column(i + l))) *z += M.w.average.A * (own[0][l] - cell[0]);
            for (size_t k = 0; k <= planes(); ++k) cell[k * M.w.stride] = own[k][l];
        }
    }

    double* average_of(size_t feature) {
        return !M.w.average.on() ? nullptr : M.w.average.z.data() + feature * M.w.stride + r;
    }
    template <class Row>
    bool average_stays_finite(const Row& row) {
        if (scored || !M.w.average.on()) return true;
        bool all_finite = true;
        for (size_t i = 0; i < row.n; ++i) {
            const double before = room_[i / packed * Packs<pitch>::numbers + i % packed];
            const double moved = before + plan_of(row)[step] * directions_of(row)[i];
            const size_t j = row.column(i);
            all_finite &= finite(*average_of(j) + M.w.average.A * (moved - M.w.v_of(j)[r]));
        }
        return all_finite;
    }

    // Adds its gradient to the planes of a feature, or of a pack. Returns its direction, r_j * x_j.
    template <class T>
    ONEPASS_HOT T add_gradient(double gradient, T x, T* own, VowpalSums<T>& sums) const {
        const T squares = x * x, none{}, one = none + 1.0;
        T g = one, n = one;
        if (adaptive()) g = own[1] += gradient * squares;
        if (normalized()) {
            n = add_size(x, own);
            const T part = choose(above(n, none), x / n, none);
            sums.norms += part * part;
        }
        const T r = choose(unequal(x, none) & above(g, none), rate_of(g, n), none), direction = r * x;
        sums.reach += squares * r;
        T size = size_of(own[0]);
        for (size_t k = 1; k <= planes(); ++k) size += own[k];
        sums.sizes += choose(unequal(x, none), size, none);  // other features do not change
        sums.directions += size_of(direction);
        return direction;
    }

    // Updates the largest absolute value of a feature. If it grows, the weight shrinks as if the new value had been
    // known from the start.
    template <class T>
    ONEPASS_HOT T add_size(T x, T* own) const {
        const T size = size_of(x), largest = own[1 + adaptive()], none{};
        const T n = own[1 + adaptive()] = choose(above(size, largest), size, largest);
        if (any(unequal(n, largest))) {
            T down = choose(above(largest, none), largest / n, none + 1.0);
            if (!usual && !rule.shared_power()) down *= down;
            else if (!by_roots())
                down = each(down, [&](double d) { return d == 1.0 ? d : std::pow(d, 2.0 * (1.0 - rule.power)); });
            own[0] *= down;
        }
        return n;
    }

    // The rate of a feature with the squared gradients g and the largest absolute value n.
    template <class T>
    ONEPASS_HOT T rate_of(T g, T n) const {
        if (by_roots()) return 1.0 / (root_of(g) * n);
        T rate = T{} + 1.0;
        if (adaptive()) rate = each(g, [&](double G) { return std::pow(G, -rule.power); });
        if (normalized())
            rate *= each(
                n, [&](double N) { return rule.shared_power() ? std::pow(N * N, rule.power - 1.0) : 1.0 / (N * N); });
        return rate;
    }

    Model& M;
    const Vowpal& rule;
    const size_t r;
    double* const room_;
};

template <bool many>
inline Target target_of_output(const Model& M, const Vowpal& rule, const Example& of, const double* state, size_t r) {
    double score, label;
    if (many) {
        score = M.scores[r];
        label = (M.task == Task::multilabel ? of.set[r] != 0 : r == of.move.up) ? 1.0 : -1.0;
    } else {
        const bool regress = M.task == Task::regress;
        score = (regress ? of.s.side : of.move.coefficient) * of.s.m;
        label = regress ? of.y : of.move.coefficient;
    }
    if (rule.clip) {
        const bool wide = rule.loss == Loss::logistic;
        const double low = wide ? -50.0 : state[VWSlots::low], high = wide ? 50.0 : state[VWSlots::high];
        score = score < low ? low : (score > high ? high : score);
    }
    return {score, label, vowpal_pull(rule, score, label)};
}

// Every output learns its target, or none does if a number of one of them would not be finite.
template <bool many, bool usual, bool scored, class Row>
Status learn_targets(Model& M, const Vowpal& rule, const Row& row, const Example& of, const double* state,
                     bool* moves) {
    using Learner = VowpalRow<usual, scored>;
    const size_t rows = many ? M.w.outputs : 1;
    double* const room = M.transaction.workspace(rows * Learner::room(row.n));
    auto learner = [&](size_t r) { return Learner(M, rule, r, room + r * Learner::room(row.n)); };
    for (size_t r = 0; r < rows; ++r) {
        const Target its = target_of_output<many>(M, rule, of, state, r);
        if (!learner(r).learn(row, its, of.importance, state[VWSlots::t])) return Status::overflow;
        *moves |= its.pulled != 0.0;
    }
    for (size_t r = 0; r < rows; ++r) learner(r).write(row);
    return Status::ok;
}

template <class Path, class Row>
Status learn_vowpal(Model& M, const Row& row, const Example& of, double* state, bool* moves) {
    constexpr bool many = Path::many;
    const Vowpal rule(M.params);
    const double label = many || M.task == Task::regress ? of.y : of.move.coefficient;
    double &low = state[VWSlots::low], &high = state[VWSlots::high];
    state[VWSlots::t] += of.importance;
    if (many || label < low) low = many ? -1.0 : label;
    if (many || label > high) high = many ? 1.0 : label;
    if constexpr (Path::packs)
        if (rule.usual()) return learn_targets<false, true, true>(M, rule, row, of, state, moves);
    Status status = Status::ok;
    with_numbers(row, [&](const double* x, const int64_t* at) {
        status = learn_vowpal_rows<many>(M, NumberedRow{x, at, row.n}, of, state, moves);
    });
    return status;
}

}  // namespace onepass::ONEPASS_ISA
