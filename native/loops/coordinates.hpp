// Rules with their own step for each coordinate: AdaGrad, AdaDelta, RMSProp, Adam, FTRL-Proximal. The gradient of a
// round is -coefficient * x. Each rule is one function of a weight, its gradient and its planes, compiled into the
// loop. Included once per instruction set. Nothing here may call an out-of-line function of the standard library: the
// linker could pick another instruction set's copy.
#pragma once
#include "core/rules.hpp"
#include "loops/moves.hpp"
#include "loops/packs.hpp"

namespace onepass::ONEPASS_ISA {

// For rules whose averages fade also in rounds without a feature: rho^(rounds since it last occurred). `last` is that
// round, and becomes the current one.
inline double faded(double rho, double rounds, double& last) {
    const double absent = rounds - last - 1.0;
    last = rounds;
    return absent > 0.0 ? std::pow(rho, absent) : 1.0;
}
inline Pack faded(double rho, double rounds, Pack& last) {
    Pack fade{}, before = last;
    for (size_t l = 0; l < packed; ++l) {
        double one = before[l];
        fade[l] = faded(rho, rounds, one);
    }
    last = Pack{} + rounds;
    return fade;
}

// The formulas of rules/adaptive.py and rules/ftrl.py for one weight or for a pack: T is a number or a Pack, `planes`
// are the planes of the weight, p the parameters of the rule; `rounds` counts its rounds, this one included.

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
        T moves = planes[1], squares = planes[0];
        if constexpr (exact) {
            const T fade = faded(rho, rounds, planes[2]);
            moves = fade * moves;
            squares = fade * squares;
        }
        const T E = rho * squares + (1.0 - rho) * (g * g);
        const T move = -(root_of(moves + eps) / root_of(E + eps)) * g;
        planes[0] = E;
        planes[1] = rho * moves + (1.0 - rho) * (move * move);
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
        T squares = planes[0];
        if constexpr (exact) squares = faded(rho, rounds, planes[1]) * squares;
        const T E = rho * squares + (1.0 - rho) * (g * g);
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
    FTRL for_intercept() const {  // without penalties
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

// Without L1, z is always -w * curvature, so it needs no plane.
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

// x.v and x.x on the path of packs, with the same bits as dot_norm. Weights and planes are read together, and saved in
// the working space of the round.
struct PackSums {
    Pack dot{}, norm{};
    PackSums operator+(const PackSums& other) const { return {dot + other.dot, norm + other.norm}; }
};
template <size_t pitch, class Row>
inline DotNorm score_packs_of(Model& M, const Row& row) {
    const double* const cells = M.w.cells.data();
    double* const saved = M.transaction.workspace(Packs<pitch>::room(row.n));
    const Row of = row;  // not a reference: the compiler would assume that writing `saved` changes it
    const PackSums sums = sum_packs<PackSums>(of.n, [&](PackSums& some, size_t i, auto... count) ONEPASS_INLINE_LAMBDA {
        Pack own[pitch];
        Packs<pitch>::load(cells, of, i, own, count...);
        Packs<pitch>::save(saved, i, own);
        const Pack x = load_pack(of.x + i, count...);
        some.dot += x * own[0];
        some.norm += x * x;
    });
    return {add_up(sums.dot), add_up(sums.norm)};
}
template <class Row>
inline DotNorm score_packs(Model& M, const Row& row) {
    switch (M.w.pitch) {
        case 1: return score_packs_of<1>(M, row);
        case 2: return score_packs_of<2>(M, row);
        default: return score_packs_of<4>(M, row);
    }
}

// Moves the weights. If a number is not finite, all are restored from the working space.
template <class Rule, class Row>
Status move_packs(Model& M, const Row& row, const Move& move, const Rule& rule) {
    constexpr size_t pitch = Weights::pitch_of(Rule::count, 1);
    Weights& w = M.w;
    double* const cells = w.cells.data();
    const double* const saved = M.transaction.workspace();
    const Row of = row;
    const double c = move.coefficient, of_bias = -(c * M.constant);
    double bias[1 + Rule::count] = {w.bias[0]};
    for (size_t p = 0; p < Rule::count; ++p) bias[1 + p] = w.planes.bias[p];
    if (of_bias != 0.0) bias[0] = rule.for_intercept()(bias[0], of_bias, bias + 1);

    Pack nothing{};  // 0, or NaN if a number is not finite
    in_packs(of.n, [&](size_t i, auto... count) ONEPASS_INLINE_LAMBDA {
        Pack before[pitch], now[pitch];
        Packs<pitch>::read_saved(saved, i, before);
        Packs<pitch>::read_saved(saved, i, now);
        const Pack g = -(c * load_pack(of.x + i, count...));
        const PackBits still = equal(g, Pack{});
        now[0] = rule(before[0], g, now + 1);
        for (size_t p = 0; p <= Rule::count; ++p) {
            now[p] = choose(still, before[p], now[p]);
            nothing += now[p] * 0.0;
        }
        Packs<pitch>::store(cells, of, i, now, count...);
    });
    bool all_finite = add_up(nothing) == 0.0;
    for (size_t p = 0; p <= Rule::count; ++p) all_finite &= finite(bias[p]);
    if (!all_finite) {
        in_packs(of.n, [&](size_t i, auto... count) {
            Pack before[pitch];
            Packs<pitch>::read_saved(saved, i, before);
            Packs<pitch>::store(cells, of, i, before, count...);
        });
        return Status::overflow;
    }
    w.bias[0] = bias[0];
    for (size_t p = 0; p < Rule::count; ++p) w.planes.bias[p] = bias[1 + p];
    return Status::ok;
}

// Calls run(rule) with the rule.
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

// A row of any kind as doubles at 64-bit indices. Models of the kinds `general` and `classes` have one loop for all
// rows.
using NumberedRow = SparseRow<double, int64_t>;

// Moves the weights of models of these kinds: loops/adaptive.cpp.
template <bool many>
Status move_planes(Model& M, const NumberedRow& row, const Move& move, const double* state);

// What VW's update reads: the example and its scores.
struct Example {
    double y, importance;
    const uint8_t* set;
    const Scalars& s;
    const Move& move;
};

// VW's update for models of these kinds: loops/vowpal.cpp.
template <bool many>
Status learn_vowpal_rows(Model& M, const NumberedRow& row, const Example& of, const double* state, bool* moves);

// Moves the weights by learn(), and lets the average cover them before or after; or changes nothing. If learn() is
// refused, it has restored the weights itself. On the path of packs there is no average.
template <class Path, class Row, class Learn>
inline Status move_and_average(Model& M, const Row& row, const Learn& learn) {
    constexpr bool many = Path::many;
    Weights& w = M.w;
    if (!many && M.transaction.recording())  // inside an example, whose later rounds may be refused
        M.coordinates == Coordinates::adam ? save_all(M) : save(M, row);
    if constexpr (Path::packs) return learn();
    const bool covered = Path::covered(M), predictor = w.average.kind == Averaging::predictor;
    M.transaction.save_average(w.average);
    if (covered && predictor) add_to_average<many>(w);
    const Status status = learn();
    if (status != Status::ok) M.transaction.restore_average(w.average);
    else if (covered && !predictor) add_to_average<many>(w);
    return status;
}

template <class Path, class Row>
Status move_coordinates(Model& M, const Row& row, const Move& move, const double* state) {
    constexpr bool many = Path::many;
    for (size_t r = 0; r < (many ? M.w.outputs : 1); ++r)
        if (!finite(move.of<many>(r))) return Status::overflow;
    if constexpr (Path::packs) {
        return move_and_average<Path>(M, row, [&] {
            return with_rule(M, state, [&](const auto& rule) { return move_packs(M, row, move, rule); });
        });
    } else {
        Status status = Status::ok;
        with_numbers(row, [&](const double* x, const int64_t* at) {
            status = move_and_average<Path>(
                M, row, [&] { return move_planes<many>(M, NumberedRow{x, at, row.n}, move, state); });
        });
        return status;
    }
}

}  // namespace onepass::ONEPASS_ISA
