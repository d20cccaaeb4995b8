// Rules that move every weight by its own history: AdaGrad, AdaDelta, RMSProp, Adam, FTRL-Proximal. A round's gradient
// is -coefficient * x; each rule is one function of a weight, its gradient and the planes beside it, compiled into the
// loop. Included once per instruction set.
// Nothing here may call an out-of-line function of the standard library: the linker could pick another
// instruction set's copy.
#pragma once
#include "core/rules.hpp"
#include "loops/moves.hpp"
#include "loops/packs.hpp"

namespace onepass::ONEPASS_ISA {

// What has gone by since a weight was last met, for rules whose absent weights fade: rho^(rounds without it).
inline double faded(double rho, double rounds, double& met) {
    const double absent = rounds - met - 1.0;
    met = rounds;
    return absent > 0.0 ? std::pow(rho, absent) : 1.0;
}
inline Pack faded(double rho, double rounds, Pack& met) {
    Pack fade{}, last = met;
    for (size_t l = 0; l < packed; ++l) {
        double one = last[l];
        fade[l] = faded(rho, rounds, one);
    }
    met = Pack{} + rounds;
    return fade;
}

// The formulas of rules/adaptive.py and rules/ftrl.py, for one weight or for a pack: T is a number or a Pack. `planes`
// are those beside the weight; p the rule's parameters; `rounds` its own count, this one included.

struct AdaGrad {
    static constexpr size_t count = 1;
    double eta, delta;
    bool inside;
    using At = AdaGradParams;
    AdaGrad(const double* p, double) : eta(p[At::eta]), delta(p[At::delta]), inside(p[At::eps_inside] != 0.0) {}
    AdaGrad for_intercept() const { return *this; }
    template <class T>
    T operator()(T w, T g, T* planes) const {
        const T G = planes[0] + g * g;
        planes[0] = G;
        const T root = inside ? root_of(G + delta) : delta + root_of(G);
        return choose(above(root, T{}), w - eta * g / root, w);
    }
};

template <bool exact>
struct AdaDelta {
    static constexpr size_t count = exact ? 3 : 2;
    double rho, eps, lr, rounds;
    using At = AdaDeltaParams;
    AdaDelta(const double* p, double rounds) : rho(p[At::rho]), eps(p[At::eps]), lr(p[At::lr]), rounds(rounds) {}
    AdaDelta for_intercept() const { return *this; }
    template <class T>
    T operator()(T w, T g, T* planes) const {
        T before = planes[1], kept = planes[0];
        if constexpr (exact) {
            const T fade = faded(rho, rounds, planes[2]);
            before = fade * before;
            kept = fade * kept;
        }
        const T E = rho * kept + (1.0 - rho) * (g * g);
        const T move = -(root_of(before + eps) / root_of(E + eps)) * g;
        planes[0] = E;
        planes[1] = rho * before + (1.0 - rho) * (move * move);
        return w + lr * move;
    }
};

template <bool exact>
struct RMSProp {
    static constexpr size_t count = exact ? 2 : 1;
    double eta, rho, eps, rounds;
    using At = RMSPropParams;
    RMSProp(const double* p, double rounds) : eta(p[At::eta]), rho(p[At::rho]), eps(p[At::eps]), rounds(rounds) {}
    RMSProp for_intercept() const { return *this; }
    template <class T>
    T operator()(T w, T g, T* planes) const {
        T kept = planes[0];
        if constexpr (exact) kept = faded(rho, rounds, planes[1]) * kept;
        const T E = rho * kept + (1.0 - rho) * (g * g);
        planes[0] = E;
        return w - eta * g / root_of(E + eps);
    }
};

struct Adam {
    static constexpr size_t count = 2;
    double eta, beta1, beta2, eps, unbias1, unbias2;
    using At = AdamParams;
    Adam(const double* p, double rounds)
        : eta(p[At::eta]),
          beta1(p[At::beta1]),
          beta2(p[At::beta2]),
          eps(p[At::eps]),
          unbias1(1.0 - std::pow(beta1, rounds)),
          unbias2(1.0 - std::pow(beta2, rounds)) {}
    Adam for_intercept() const { return *this; }
    template <class T>
    T operator()(T w, T g, T* planes) const {
        const T mean = beta1 * planes[0] + (1.0 - beta1) * g;
        const T square = beta2 * planes[1] + (1.0 - beta2) * (g * g);
        planes[0] = mean;
        planes[1] = square;
        return w - eta * (mean / unbias1) / (root_of(square / unbias2) + eps);
    }
};

struct FTRL {
    static constexpr size_t count = 2;
    double beta, lam1, lam2, over_alpha;
    using At = FTRLParams;
    FTRL(const double* p, double)
        : beta(p[At::beta]), lam1(p[At::lam1]), lam2(p[At::lam2]), over_alpha(1.0 / p[At::alpha]) {}
    FTRL for_intercept() const {  // penalties spare it
        FTRL free = *this;
        free.lam1 = free.lam2 = 0.0;
        return free;
    }
    template <class T>
    T curvature_at(T root) const {
        return (beta + root) * over_alpha + lam2;
    }
    template <class T>
    T operator()(T w, T g, T* planes) const {
        const T n = planes[1] + g * g, root = root_of(n);
        const T sigma = (root - root_of(planes[1])) * over_alpha;
        const T z = planes[0] + g - sigma * w;
        planes[0] = z;
        planes[1] = n;
        return weight(z, root);
    }
    template <class T>
    T weight(T z, T root) const {
        const T curvature = curvature_at(root);
        const T free = -(z - with_sign_of(z, lam1)) / curvature;
        return choose(at_most(size_of(z), T{} + lam1) | equal(curvature, T{}), T{}, free);
    }
};

// Without L1 no z is needed: it is -w * curvature, always.
struct FTRLWithoutL1 : FTRL {
    static constexpr size_t count = 1;
    using FTRL::FTRL;
    FTRLWithoutL1(const FTRL& whole) : FTRL(whole) {}
    FTRLWithoutL1 for_intercept() const { return FTRL::for_intercept(); }
    template <class T>
    T operator()(T w, T g, T* planes) const {
        const T n = planes[0] + g * g;
        planes[0] = n;
        const T curvature = curvature_at(root_of(n));
        return choose(above(curvature, T{}), w - g / curvature, w);
    }
};

// What a round begins with on the path of `packs`: x.v and x.x, as dot_norm gives them. Weights and planes are read in
// one go, and wait in the room to keep.
struct PackSums {
    Pack dot{}, norm{};
    PackSums operator+(const PackSums& other) const { return {dot + other.dot, norm + other.norm}; }
};
template <size_t pitch, class Row>
inline DotNorm face_packs_of(Model& M, const Row& row) {
    const double* const cells = M.w.cells.data();
    double* const kept = M.room_to_keep(Packs<pitch>::room(row.n));
    const Row of = row;  // not a reference: what is written could be part of it, for all that is known
    const PackSums sums = sum_packs<PackSums>(of.n, [&](PackSums& some, size_t i, auto... count) ONEPASS_INLINE_LAMBDA {
        Pack own[pitch];
        Packs<pitch>::load(cells, of, i, own, count...);
        Packs<pitch>::set_aside(kept, i, own);
        const Pack x = load_pack(of.x + i, count...);
        some.dot += x * own[0];
        some.norm += x * x;
    });
    return {add_up(sums.dot), add_up(sums.norm)};
}
template <class Row>
inline DotNorm face_packs(Model& M, const Row& row) {
    switch (M.w.pitch) {
        case 1: return face_packs_of<1>(M, row);
        case 2: return face_packs_of<2>(M, row);
        default: return face_packs_of<4>(M, row);
    }
}

// What was kept is put back if a number turns out not to be finite.
template <class Rule, class Row>
Status move_kept(Model& M, const Row& row, const Move& move, const Rule& rule) {
    constexpr size_t pitch = Weights::pitch_of(Rule::count, 1);
    Weights& w = M.w;
    double* const cells = w.cells.data();
    const double* const kept = M.kept.data();
    const Row of = row;
    const double c = move.coefficient, of_bias = -(c * M.constant);
    double bias[1 + Rule::count] = {w.bias[0]};
    for (size_t p = 0; p < Rule::count; ++p) bias[1 + p] = w.planes.bias[p];
    if (of_bias != 0.0) bias[0] = rule.for_intercept()(bias[0], of_bias, bias + 1);

    Pack nothing{};  // NaN where a number is not finite, else 0
    in_packs(of.n, [&](size_t i, auto... count) ONEPASS_INLINE_LAMBDA {
        Pack before[pitch], now[pitch];
        Packs<pitch>::take_back(kept, i, before);
        Packs<pitch>::take_back(kept, i, now);
        const Pack g = -(c * load_pack(of.x + i, count...));
        const PackBits still = equal(g, Pack{});
        now[0] = rule(before[0], g, now + 1);
        for (size_t p = 0; p <= Rule::count; ++p) {
            now[p] = choose(still, before[p], now[p]);
            nothing += now[p] * 0.0;
        }
        Packs<pitch>::store(cells, of, i, now, count...);
    });
    bool sound = add_up(nothing) == 0.0;
    for (size_t p = 0; p <= Rule::count; ++p) sound &= finite(bias[p]);
    if (!sound) {
        in_packs(of.n, [&](size_t i, auto... count) {
            Pack before[pitch];
            Packs<pitch>::take_back(kept, i, before);
            Packs<pitch>::store(cells, of, i, before, count...);
        });
        return Status::overflow;
    }
    w.bias[0] = bias[0];
    for (size_t p = 0; p < Rule::count; ++p) w.planes.bias[p] = bias[1 + p];
    return Status::ok;
}

// Calls run(rule) with the rule by coordinates.
template <class Run>
inline Status with_rule(const Model& M, const double* state, const Run& run) {
    const double *p = M.params, rounds = state[CoordinateSlots::rounds];
    switch (M.coordinates) {
        case Coordinates::adagrad: return run(AdaGrad(p, rounds));
        case Coordinates::adadelta: return run(AdaDelta<false>(p, rounds));
        case Coordinates::adadelta_exact: return run(AdaDelta<true>(p, rounds));
        case Coordinates::rmsprop: return run(RMSProp<false>(p, rounds));
        case Coordinates::rmsprop_exact: return run(RMSProp<true>(p, rounds));
        case Coordinates::adam:
        case Coordinates::adam_lazy: return run(Adam(p, rounds));
        case Coordinates::ftrl: return run(FTRL(p, rounds));
        case Coordinates::ftrl_without_l1: return run(FTRLWithoutL1(p, rounds));
        default: return Status::ok;
    }
}

// A row of any kind, as doubles at 64-bit indices: general models and class rows by coordinates have one loop for all.
using NumberedRow = SparseRow<double, int64_t>;

// Moves the weights of general models and of class rows, or none of them: loops/adaptive.cpp.
template <bool many>
Status move_planes(Model& M, const NumberedRow& row, const Move& move, const double* state);

// What VW's update reads of a round: the example, and its scores.
struct Example {
    double y, importance;
    const uint8_t* set;
    const Scalars& s;
    const Move& move;
};

// The same for VW's update: loops/vowpal.cpp.
template <bool many>
Status learn_vowpal_rows(Model& M, const NumberedRow& row, const Example& of, const double* state, bool* moves);

// Whatever moves the weights: the average covers them before or after, or nothing happens at all.
template <class Path, class Move>
inline Status covering(Model& M, const Move& move_weights) {
    if constexpr (Path::packs) return move_weights();
    constexpr bool many = Path::many;
    Weights& w = M.w;
    const bool covered = Path::covered(M), predictor = w.average.kind == Averaging::predictor;
    const double A = w.average.A, averaged = w.average.rounds;
    double* sums = M.scratch();
    for (size_t r = 0; r < w.average.bias_sum.size(); ++r) sums[r] = w.average.bias_sum[r];
    if (covered && predictor) add_to_average<many>(w);
    const Status status = move_weights();
    if (status == Status::ok) {
        if (covered && !predictor) add_to_average<many>(w);
        return status;
    }
    w.average.A = A;
    w.average.rounds = averaged;
    for (size_t r = 0; r < w.average.bias_sum.size(); ++r) w.average.bias_sum[r] = sums[r];
    return status;
}

template <class Path, class Row>
Status move_coordinates(Model& M, const Row& row, const Move& move, const double* state) {
    constexpr bool many = Path::many;
    for (size_t r = 0; r < (many ? M.w.outputs : 1); ++r)
        if (!finite(move.of<many>(r))) return Status::overflow;
    if constexpr (Path::packs) {
        return with_rule(M, state, [&](const auto& rule) { return move_kept(M, row, move, rule); });
    } else {
        Status status = Status::ok;
        with_numbers(row, [&](const double* x, const int64_t* at) {
            status = covering<Path>(M, [&] { return move_planes<many>(M, NumberedRow{x, at, row.n}, move, state); });
        });
        return status;
    }
}

}  // namespace onepass::ONEPASS_ISA
