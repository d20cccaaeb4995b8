// The kinds of models that have a loop of their own. Each kind is compiled in the source file of its name, once per
// instruction set.
#pragma once
#include "core/model.hpp"

namespace onepass::ONEPASS_ISA {

// The kind of a model is decided before the loop, so that a round need not ask about features that its model does not
// have: those questions are compiled away. The most common models have one output, predict by the last weights, and
// need neither |w| nor mini-batches. Their weights are `plain`, or `lazy` with L1, or Gaussian with a `diagonal` Sigma,
// or belong to a rule with its own step for each of its `coordinates`. All other models are `general` if they have one
// output, and `classes` if they have one per class.
enum class Kind { plain, lazy, diagonal, coordinates, general, classes };

template <Kind kind>
struct Path {
    static constexpr bool many = kind == Kind::classes, any = many || kind == Kind::general;
    static constexpr bool may_be_lazy = any || kind == Kind::lazy;
    static constexpr bool may_be_gaussian = any || kind == Kind::diagonal;
    static bool lazy(const Model& M) { return any ? M.w.l1.on : kind == Kind::lazy; }
    static bool averages(const Model& M) { return any && M.w.average.on(); }
    static bool covered(const Model& M) { return averages(M) && M.t + 1.0 >= M.w.average.from; }
    static bool votes(const Model& M) { return any && M.w.votes.on; }
    static bool pockets(const Model& M) { return any && M.w.pocket.on; }
    static bool uses_ww(const Model& M) { return any && M.uses_ww; }
    static bool linked(const Model& M) { return any && M.w.p_norm.on(); }
    static bool batched(const Model& M) { return any && M.w.batch.on(); }
    static bool gaussian(const Model& M) { return any ? M.w.sigma.on : kind == Kind::diagonal; }
    static bool full(const Model& M) { return any && M.w.sigma.full; }
    static bool oneclass(const Model& M) { return !many && any && M.task == Task::oneclass; }
    static bool coordinates(const Model& M) {
        return any ? M.coordinates != Coordinates::none : kind == Kind::coordinates;
    }
    // Are weights and their planes read together?
    static constexpr bool pairs = kind == Kind::diagonal, packs = kind == Kind::coordinates;
};

// Does a model of one output need anything that only the general path asks about?
inline bool is_general(const Model& M) {
    using General = Path<Kind::general>;
    return M.coordinates == Coordinates::adam || General::averages(M) || General::votes(M) || General::pockets(M) ||
           General::uses_ww(M) || General::linked(M) || General::batched(M) || General::oneclass(M) || M.w.sigma.vaw ||
           M.clips;
}

inline Kind kind_of(const Model& M) {
    if (M.w.stride != 1) return Kind::classes;
    if (is_general(M)) return Kind::general;
    if (M.coordinates != Coordinates::none) return M.w.l1.on ? Kind::general : Kind::coordinates;
    if (!M.w.sigma.on) return M.w.l1.on ? Kind::lazy : Kind::plain;
    return M.w.sigma.full || M.w.l1.on ? Kind::general : Kind::diagonal;
}

// Learns one row; compiled in the unit of its kind: loops/plain.cpp, lazy.cpp, diagonal.cpp, coordinates.cpp,
// general.cpp, classes.cpp. A row that is refused leaves the model unchanged.
template <class Path, class Row>
Status learn_row(Model& M, const Row& row, double y, double importance, double target, const uint8_t* set, double* out,
                 double base);

// Learns the rows of a batch one after the other.
template <class Path, class Batch>
Outcome learn_rows(Model& M, const Batch& X, const Answers& in);

// Predictions of one row, in loops/scores.cpp.
template <class Row>
void predict_row(const Model& M, const Row& row, double* out, double* scratch, double base);
template <class Row>
void score_row(const Model& M, const Row& row, double* out, double* scratch, double base);

}  // namespace onepass::ONEPASS_ISA
