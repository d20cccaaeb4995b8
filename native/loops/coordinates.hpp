// Rules that move every weight by its own history: AdaGrad, AdaDelta, RMSProp, Adam, FTRL-Proximal. A round's gradient
// is -coefficient * x; each rule is one function of a weight, its gradient and the planes beside it, compiled into the
// loop. Included once per instruction set.
// Nothing here may call an out-of-line function of the standard library: the linker could pick another
// instruction set's copy.
#pragma once
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
// are those beside the weight. Parameters come after the loss's two; `rounds` is the rule's own count, this one
// included.

struct AdaGrad {
    static constexpr size_t count = 1;
    double eta, delta;
    bool inside;
    AdaGrad(const double* p, double) : eta(p[0]), delta(p[1]), inside(p[2] != 0.0) {}
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
    AdaDelta(const double* p, double rounds) : rho(p[0]), eps(p[1]), lr(p[2]), rounds(rounds) {}
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
    RMSProp(const double* p, double rounds) : eta(p[0]), rho(p[1]), eps(p[2]), rounds(rounds) {}
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
    Adam(const double* p, double rounds)
        : eta(p[0]),
          beta1(p[1]),
          beta2(p[2]),
          eps(p[3]),
          unbias1(1.0 - std::pow(p[1], rounds)),
          unbias2(1.0 - std::pow(p[2], rounds)) {}
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
    FTRL(const double* p, double) : beta(p[1]), lam1(p[2]), lam2(p[3]), over_alpha(1.0 / p[0]) {}
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

// Keeps what a round overwrites, so that a round that turns out to overflow can be taken back.
struct Undo {
    double* at;
    bool sound = true;
    void keep(double value) { *at++ = value; }
};

// Moves the weights of one feature (or the intercepts): those of the rows that have a gradient.
template <class Rule, bool many>
inline void move_feature(const Rule& rule, const Weights& w, const Move& move, double x, double* v, double* planes,
                         double* z, Undo* undo) {
    for (size_t r = 0; r < (many ? w.rows : 1); ++r) {
        const double g = -(move.of<many>(r) * x);
        if (g == 0.0) continue;
        const size_t stride = many ? w.stride : 1;
        const double before = v[r];
        undo->keep(before);
        double own[Rule::count];
        for (size_t p = 0; p < Rule::count; ++p) undo->keep(own[p] = planes[p * stride + r]);
        v[r] = rule(before, g, own);
        bool sound = finite(v[r]);
        for (size_t p = 0; p < Rule::count; ++p) sound &= finite(planes[p * stride + r] = own[p]);
        if (z) {
            undo->keep(z[r]);
            z[r] += w.A * (v[r] - before);
            sound &= finite(z[r]);
        }
        undo->sound &= sound;
    }
}

template <class Rule, bool many>
inline void put_back(const Weights& w, const Move& move, double x, double* v, double* planes, double* z, Undo* undo) {
    for (size_t r = 0; r < (many ? w.rows : 1); ++r) {
        if (-(move.of<many>(r) * x) == 0.0) continue;
        const size_t stride = many ? w.stride : 1;
        v[r] = *undo->at++;
        for (size_t p = 0; p < Rule::count; ++p) planes[p * stride + r] = *undo->at++;
        if (z) z[r] = *undo->at++;
    }
}

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
    for (size_t p = 0; p < Rule::count; ++p) bias[1 + p] = w.bias_planes[p];
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
    for (size_t p = 0; p < Rule::count; ++p) w.bias_planes[p] = bias[1 + p];
    return Status::ok;
}

// The round's move of all weights that have a gradient, or none of them.
template <class Rule, class Path, class Row>
Status move_support(Model& M, const Row& row, const Move& move, const Rule& rule) {
    if constexpr (Path::packs) return move_kept(M, row, move, rule);
    constexpr bool many = Path::many;
    Weights& w = M.w;
    const size_t numbers = (Rule::count + 2) * (many ? w.rows : 1);
    Undo undo{M.room_to_keep((row.n + 1) * numbers)};
    double* const start = undo.at;
    const bool averages = w.averaging != Averaging::none;
    auto z_of = [&](size_t j) { return averages ? w.z.data() + j * w.stride : nullptr; };
    for (size_t i = 0; i < row.n; ++i) {
        const size_t j = row.column(i);
        move_feature<Rule, many>(rule, w, move, double(row.x[i]), w.v_of(j), w.planes_of(j), z_of(j), &undo);
    }
    move_feature<Rule, many>(rule.for_intercept(), w, move, M.constant, w.bias.data(), w.bias_planes.data(), nullptr,
                             &undo);
    if (undo.sound) return Status::ok;
    undo.at = start;
    for (size_t i = 0; i < row.n; ++i) {
        const size_t j = row.column(i);
        put_back<Rule, many>(w, move, double(row.x[i]), w.v_of(j), w.planes_of(j), z_of(j), &undo);
    }
    put_back<Rule, many>(w, move, M.constant, w.bias.data(), w.bias_planes.data(), nullptr, &undo);
    return Status::overflow;
}

// Adam with momentum for absent features too: every weight moves in every round. Tried first, then done.
template <class Rule, bool many, class Row>
Status move_all(Model& M, const Row& row, const Move& move, const Rule& rule) {
    Weights& w = M.w;
    const size_t rows = many ? w.rows : 1;
    double* x = M.room_to_keep(w.features);
    for (size_t j = 0; j < w.features; ++j) x[j] = 0.0;
    for (size_t i = 0; i < row.n; ++i) x[row.column(i)] = double(row.x[i]);
    const bool averages = w.averaging != Averaging::none;
    auto visit = [&](bool write) {
        for (size_t j = 0; j < w.features + (M.constant != 0.0); ++j) {
            const bool bias = j == w.features;
            double* v = bias ? w.bias.data() : w.v_of(j);
            double* planes = bias ? w.bias_planes.data() : w.planes_of(j);
            for (size_t r = 0; r < rows; ++r) {
                const double g = -(move.of<many>(r) * (bias ? M.constant : x[j]));
                double tried[Rule::count];
                for (size_t p = 0; p < Rule::count; ++p) tried[p] = planes[p * w.stride + r];
                const double moved = rule(v[r], g, tried);
                double* z = averages && !bias ? w.z.data() + j * w.stride + r : nullptr;
                const double summed = z ? *z + w.A * (moved - v[r]) : 0.0;
                if (!write) {
                    bool sound = finite(moved) && finite(summed);
                    for (size_t p = 0; p < Rule::count; ++p) sound &= finite(tried[p]);
                    if (!sound) return false;
                    continue;
                }
                v[r] = moved;
                if (z) *z = summed;
                for (size_t p = 0; p < Rule::count; ++p) planes[p * w.stride + r] = tried[p];
            }
        }
        return true;
    };
    if (!visit(false)) return Status::overflow;
    visit(true);
    return Status::ok;
}

template <class Path, class Row>
Status dispatch(Model& M, const Row& row, const Move& move, const double* state) {
    const double *p = M.params + 2, rounds = state[0];
    switch (M.coordinates) {
        case Coordinates::adagrad: return move_support<AdaGrad, Path>(M, row, move, AdaGrad(p, rounds));
        case Coordinates::adadelta: return move_support<AdaDelta<false>, Path>(M, row, move, {p, rounds});
        case Coordinates::adadelta_exact: return move_support<AdaDelta<true>, Path>(M, row, move, {p, rounds});
        case Coordinates::rmsprop: return move_support<RMSProp<false>, Path>(M, row, move, {p, rounds});
        case Coordinates::rmsprop_exact: return move_support<RMSProp<true>, Path>(M, row, move, {p, rounds});
        case Coordinates::adam: return move_all<Adam, Path::many>(M, row, move, {p, rounds});
        case Coordinates::adam_lazy: return move_support<Adam, Path>(M, row, move, {p, rounds});
        case Coordinates::ftrl: return move_support<FTRL, Path>(M, row, move, {p, rounds});
        case Coordinates::ftrl_without_l1: return move_support<FTRLWithoutL1, Path>(M, row, move, {p, rounds});
        default: return Status::ok;
    }
}

// Whatever moves the weights: the average covers them before or after, or nothing happens at all.
template <class Path, class Move>
inline Status covering(Model& M, const Move& move_weights) {
    if constexpr (Path::packs) return move_weights();
    constexpr bool many = Path::many;
    Weights& w = M.w;
    const bool covered = Path::covered(M), predictor = w.averaging == Averaging::predictor;
    const double A = w.A, averaged = w.averaged;
    double* sums = M.scratch();
    for (size_t r = 0; r < (many ? w.rows : 1); ++r) sums[r] = w.bias_sum[r];
    if (covered && predictor) cover<many>(w);
    const Status status = move_weights();
    if (status == Status::ok) {
        if (covered && !predictor) cover<many>(w);
        return status;
    }
    w.A = A;
    w.averaged = averaged;
    for (size_t r = 0; r < (many ? w.rows : 1); ++r) w.bias_sum[r] = sums[r];
    return status;
}

template <class Path, class Row>
Status move_coordinates(Model& M, const Row& row, const Move& move, const double* state) {
    for (size_t r = 0; r < (Path::many ? M.w.rows : 1); ++r)
        if (!finite(move.of<Path::many>(r))) return Status::overflow;
    return covering<Path>(M, [&] { return dispatch<Path>(M, row, move, state); });
}

// FTRL's weights follow from its planes, if it has z: after these were halved, swapped or read from a file.
inline void derive(Model& M) {
    if (M.coordinates != Coordinates::ftrl) return;
    Weights& w = M.w;
    const FTRL rule(M.params + 2, 0.0), of_bias = rule.for_intercept();
    for (size_t j = 0; j < w.features; ++j)
        for (size_t r = 0; r < w.rows; ++r) {
            const double* planes = w.planes_of(j) + r;
            const double weight = rule.weight(planes[0], std::sqrt(planes[w.stride]));
            double& v = w.v_of(j)[r];
            if (v != weight) v = weight;  // untouched pages stay untouched
        }
    for (size_t r = 0; r < w.rows; ++r)
        w.bias[r] = of_bias.weight(w.bias_planes[r], std::sqrt(w.bias_planes[w.stride + r]));
}

}  // namespace onepass::ONEPASS_ISA
