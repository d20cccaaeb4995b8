// Rules with their own step for each coordinate (loops/coordinates.hpp) in models of the kinds `general` and `classes`:
// weight after weight, for one type of rows. Compiled once per instruction set.
#include "loops/coordinates.hpp"
#include "loops/finish.hpp"

namespace onepass::ONEPASS_ISA {

// The numbers that a round overwrites, saved in the working space of the transaction in the order of writing.
struct SavedRound {
    double* next;
    bool all_finite = true;  // are all numbers that were written finite?
    void save(double value) { *next++ = value; }
};

// Moves the weights of one feature, or the intercepts, of those outputs that have a gradient.
template <class Rule, bool many>
inline void move_feature(const Rule& rule, const Weights& w, const Move& move, double x, double* v, double* planes,
                         double* z, SavedRound* saved) {
    for (size_t r = 0; r < (many ? w.outputs : 1); ++r) {
        const double g = -(move.of<many>(r) * x);
        if (g == 0.0) continue;
        const size_t stride = many ? w.stride : 1;
        const double before = v[r];
        saved->save(before);
        double own[Rule::count];
        for (size_t p = 0; p < Rule::count; ++p) saved->save(own[p] = planes[p * stride + r]);
        v[r] = rule(before, g, own);
        bool all_finite = finite(v[r]);
        for (size_t p = 0; p < Rule::count; ++p) all_finite &= finite(planes[p * stride + r] = own[p]);
        if (z) {
            saved->save(z[r]);
            z[r] += w.average.A * (v[r] - before);
            all_finite &= finite(z[r]);
        }
        saved->all_finite &= all_finite;
    }
}

// Restores what move_feature() wrote.
template <class Rule, bool many>
inline void roll_back_feature(const Weights& w, const Move& move, double x, double* v, double* planes, double* z,
                              const double** saved) {
    for (size_t r = 0; r < (many ? w.outputs : 1); ++r) {
        if (-(move.of<many>(r) * x) == 0.0) continue;
        const size_t stride = many ? w.stride : 1;
        v[r] = *(*saved)++;
        for (size_t p = 0; p < Rule::count; ++p) planes[p * stride + r] = *(*saved)++;
        if (z) z[r] = *(*saved)++;
    }
}

// Moves all weights that have a gradient, or none if a number overflows.
template <class Rule, bool many>
Status move_support(Model& M, const NumberedRow& row, const Move& move, const Rule& rule) {
    Weights& w = M.w;
    const size_t numbers = (Rule::count + 2) * (many ? w.outputs : 1);
    SavedRound saved{M.transaction.workspace((row.n + 1) * numbers)};
    const bool averages = w.average.on();
    auto z_of = [&](size_t j) { return averages ? w.average.z.data() + j * w.stride : nullptr; };
    for (size_t i = 0; i < row.n; ++i) {
        const size_t j = row.column(i);
        move_feature<Rule, many>(rule, w, move, double(row.x[i]), w.v_of(j), w.planes_of(j), z_of(j), &saved);
    }
    move_feature<Rule, many>(rule.for_intercept(), w, move, M.constant, w.bias.data(), w.planes.bias.data(), nullptr,
                             &saved);
    if (saved.all_finite) return Status::ok;
    const double* from = M.transaction.workspace();
    for (size_t i = 0; i < row.n; ++i) {
        const size_t j = row.column(i);
        roll_back_feature<Rule, many>(w, move, double(row.x[i]), w.v_of(j), w.planes_of(j), z_of(j), &from);
    }
    roll_back_feature<Rule, many>(w, move, M.constant, w.bias.data(), w.planes.bias.data(), nullptr, &from);
    return Status::overflow;
}

// Adam with momentum for absent features too: every weight moves in every round.
template <class Rule, bool many>
class AllWeights {
 public:
    AllWeights(Model& model, const NumberedRow& row, const Move& move, const Rule& rule)
        : M(model), move_(move), rule_(rule), x_(M.transaction.workspace(M.w.features)) {
        for (size_t j = 0; j < M.w.features; ++j) x_[j] = 0.0;
        for (size_t i = 0; i < row.n; ++i) x_[row.column(i)] = row.x[i];
    }

    // Moves every weight, or only tries to if `write` is false. False if a number would not be finite.
    bool move(bool write) {
        const size_t last = M.w.features + (M.constant != 0.0);
        for (size_t j = 0; j < last; ++j)
            for (size_t r = 0; r < (many ? M.w.outputs : 1); ++r)
                if (!move_weight(j, r, write)) return false;
        return true;
    }

 private:
    bool move_weight(size_t j, size_t r, bool write) {
        Weights& w = M.w;
        const bool bias = j == w.features;
        double* v = (bias ? w.bias.data() : w.v_of(j)) + r;
        double* planes = (bias ? w.planes.bias.data() : w.planes_of(j)) + r;
        double* z = w.average.on() && !bias ? w.average.z.data() + j * w.stride + r : nullptr;
        double tried[Rule::count];
        for (size_t p = 0; p < Rule::count; ++p) tried[p] = planes[p * w.stride];
        const double moved = rule_(*v, -(move_.template of<many>(r) * (bias ? M.constant : x_[j])), tried);
        const double summed = z ? *z + w.average.A * (moved - *v) : 0.0;
        if (!write) {
            bool all_finite = finite(moved) && finite(summed);
            for (size_t p = 0; p < Rule::count; ++p) all_finite &= finite(tried[p]);
            return all_finite;
        }
        *v = moved;
        if (z) *z = summed;
        for (size_t p = 0; p < Rule::count; ++p) planes[p * w.stride] = tried[p];
        return true;
    }

    Model& M;
    const Move& move_;
    const Rule& rule_;
    double* x_;
};

// First tries to move every weight, then moves it.
template <class Rule, bool many>
Status move_all(Model& M, const NumberedRow& row, const Move& move, const Rule& rule) {
    AllWeights<Rule, many> all(M, row, move, rule);
    if (!all.move(false)) return Status::overflow;
    all.move(true);
    return Status::ok;
}

template <bool many>
Status move_planes(Model& M, const NumberedRow& row, const Move& move, const double* state) {
    if (M.coordinates == Coordinates::adam)
        return move_all<Adam, many>(M, row, move, {M.params, state[CoordinateSlots::rounds]});
    return with_rule(M, state, [&](const auto& rule) {
        return move_support<std::remove_cvref_t<decltype(rule)>, many>(M, row, move, rule);
    });
}
template Status move_planes<false>(Model&, const NumberedRow&, const Move&, const double*);
template Status move_planes<true>(Model&, const NumberedRow&, const Move&, const double*);

// The weights of FTRL with a z follow from its planes. Called after these were halved, negated or read from a file.
void derive(Model& M) {
    if (M.coordinates != Coordinates::ftrl) return;
    Weights& w = M.w;
    const FTRL rule(M.params, 0.0), of_bias = rule.for_intercept();
    for (size_t j = 0; j < w.features; ++j)
        for (size_t r = 0; r < w.outputs; ++r) {
            const double* planes = w.planes_of(j) + r;
            const double weight = rule.weight(planes[0], std::sqrt(planes[w.stride]));
            double& v = w.v_of(j)[r];
            if (v != weight) v = weight;  // untouched pages stay untouched
        }
    for (size_t r = 0; r < w.outputs; ++r)
        w.bias[r] = of_bias.weight(w.planes.bias[r], std::sqrt(w.planes.bias[w.stride + r]));
}

void finish(Model& M) { M.w.stride > 1 ? finish_batch<true>(M) : finish_batch<false>(M); }

}  // namespace onepass::ONEPASS_ISA
