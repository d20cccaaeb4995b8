// The table of the loops of one instruction set. Compiled once per instruction set, with ONEPASS_ISA naming it.
#include "loops/finish.hpp"
#include "loops/pairs.hpp"
#include "loops/paths.hpp"
#include "loops/readers.hpp"
#include "loops/scores.hpp"

namespace onepass::ONEPASS_ISA {

// Calls run(path) with the path that fits the model best.
template <class Run>
inline auto by_path(const Model& M, const Run& run) {
    switch (kind_of(M)) {
        case Kind::plain: return run(Path<Kind::plain>());
        case Kind::lazy: return run(Path<Kind::lazy>());
        case Kind::diagonal: return run(Path<Kind::diagonal>());
        case Kind::coordinates: return run(Path<Kind::coordinates>());
        case Kind::general: return run(Path<Kind::general>());
        default: return run(Path<Kind::classes>());
    }
}

template <class Batch>
Outcome learn(Model& M, const Batch& X, const Answers& in) {
    return by_path(M, [&](auto path) { return learn_rows<decltype(path)>(M, X, in); });
}

// Named features in the order of their columns, with none left out, are a dense row with the same sums. It is faster
// only with a full Sigma, whose rounds compute with dense vectors anyway.
inline bool dense_enough(const Model& M, const int64_t* index, size_t n) {
    return M.w.sigma.full && n > 0 && index[n - 1] == int64_t(n) - 1 && rising(index, n);
}

// A row of names has 64-bit indices. Plain models and predictions read them directly; other models get 32-bit indices.
Status learn_one(Model& M, const double* x, const int64_t* index, size_t n, double y, double importance, double target,
                 const uint8_t* set, double base) {
    auto learn = [&](const auto& row) {
        return by_path(
            M, [&](auto path) { return learn_row<decltype(path)>(M, row, y, importance, target, set, nullptr, base); });
    };
    if (dense_enough(M, index, n)) return learn(DenseRow<double>{x, n});
    if (kind_of(M) == Kind::plain)
        return learn_row<Path<Kind::plain>>(M, SparseRow<double, int64_t>{x, index, n}, y, importance, target, set,
                                            nullptr, base);
    const NarrowIndices at(index, n);
    return learn(SparseRow<double, int32_t>{x, at, n});
}

void score_one(const Model& M, const double* x, const int64_t* index, size_t n, double base, double* scores) {
    if (dense_enough(M, index, n)) return predict_row(M, DenseRow<double>{x, n}, scores, M.scratch(), base);
    predict_row(M, SparseRow<double, int64_t>{x, index, n}, scores, M.scratch(), base);
}

}  // namespace onepass::ONEPASS_ISA

#define ONEPASS_NAME_(isa) loops_##isa
#define ONEPASS_NAME(isa) ONEPASS_NAME_(isa)
#define ONEPASS_TEXT_(isa) #isa
#define ONEPASS_TEXT(isa) ONEPASS_TEXT_(isa)

namespace onepass {

const Loops* ONEPASS_NAME(ONEPASS_ISA)() {
    using namespace ONEPASS_ISA;
    static const Loops loops = {
        ONEPASS_TEXT(ONEPASS_ISA),
        learn<Table>,
        learn<Csr>,
        score<Table>,
        score<Csr>,
        check<Table>,
        check<Csr>,
        errors<Table>,
        errors<Csr>,
        variance<Table>,
        variance<Csr>,
        learn_one,
        finish,
        derive,
        score_one,
        variance_one,
        learn_pairs<Table>,
        learn_pairs<Csr>,
    };
    return &loops;
}

}  // namespace onepass
