// The rows of a batch, learned one after the other. Included by the unit of every kind (loops/paths.hpp), once per
// instruction set.
#pragma once
#include <bit>
#include <cstdint>

#include "loops/batches.hpp"
#include "loops/round.hpp"

namespace onepass::ONEPASS_ISA {

// Rows are prefetched some rounds before they are learned: the processor's own prefetching is too late for the short
// rows of a long matrix.
constexpr size_t rows_ahead = 12, most_features_ahead = 256;

inline void prefetch_row(const Table& X, size_t i) {
    if (i + rows_ahead >= X.rows) return;
    const char* values = reinterpret_cast<const char*>(X.values + (i + rows_ahead) * X.columns);
    for (size_t at = 0; at < X.columns * sizeof(double); at += 64) __builtin_prefetch(values + at, 0, 2);
}
inline void prefetch_row(const Csr& X, size_t i) {
    if (i + rows_ahead >= X.rows) return;
    // The starts are not validated yet. To prefetch any address is harmless, but the loop must end.
    constexpr size_t value_line = 64 / sizeof(double), index_line = 64 / sizeof(int32_t),
                     step = value_line > index_line ? value_line : index_line;
    const size_t begin = size_t(X.starts[i + rows_ahead]), all = size_t(X.starts[i + rows_ahead + 1]) - begin;
    const size_t n = all < most_features_ahead ? all : most_features_ahead;
    for (size_t at = begin; at < begin + n; at += step) {  // one loop for both, since its end is often mispredicted
        for (size_t k = 0; k < step; k += value_line) prefetch(uintptr_t(X.values) + (at + k) * sizeof(double));
        for (size_t k = 0; k < step; k += index_line) prefetch(uintptr_t(X.indices) + (at + k) * sizeof(int32_t));
    }
}

// An example of importance -0.0 is predicted but not learned; with +0.0 its round counts.
inline bool held_out(double importance) { return std::bit_cast<uint64_t>(importance) == uint64_t(1) << 63; }

// Predicts an example without learning it. A malformed row is refused as if it were learned. Not inlined, so that the
// loop that learns stays short.
template <class Row>
__attribute__((noinline)) Status only_predict(Model& M, const Row& row, double* out, double base) {
    if (!finite(norm(row.x, row.n))) return Status::not_finite;
    if (out) predict_row(M, row, out, M.scores.data(), base);
    return Status::ok;
}

template <class Path, class Batch>
Outcome learn_rows(Model& M, const Batch& X, const Answers& in) {
    const size_t outputs = M.w.outputs;
    RowOf<Batch> row{};
    for (size_t i = 0; i < X.rows; ++i) {
        prefetch_row(X, i);
        const double y = in.y ? in.y[i] : 1.0;
        const double importance = in.importance ? in.importance[i] : 1.0;
        const double target = in.target ? in.target[i] : 1.0;
        const uint8_t* set = in.sets ? in.sets + i * outputs : nullptr;
        double* out = in.scores ? in.scores + i * outputs : nullptr;
        Status status = read_row(X, i, row);
        const double base = in.base ? in.base[i] : 0.0;
        if (status == Status::ok)
            status = held_out(importance) ? only_predict(M, row, out, base)
                                          : learn_row<Path>(M, row, y, importance, target, set, out, base);
        if (status != Status::ok) return explain(X, i, status);
    }
    return {};
}

}  // namespace onepass::ONEPASS_ISA

// The functions that the unit of a kind exports.
#define ONEPASS_LEARN(kind)                                                                                        \
    template Status learn_row<Path<kind>>(Model&, const DenseRow<double>&, double, double, double, const uint8_t*, \
                                          double*, double);                                                        \
    template Status learn_row<Path<kind>>(Model&, const SparseRow<double, int32_t>&, double, double, double,       \
                                          const uint8_t*, double*, double);                                        \
    template Outcome learn_rows<Path<kind>>(Model&, const Table&, const Answers&);                                 \
    template Outcome learn_rows<Path<kind>>(Model&, const Csr&, const Answers&);
