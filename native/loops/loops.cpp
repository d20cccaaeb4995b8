// Compiled once per instruction set, with ONEPASS_ISA naming it.
#include "loops/loops.hpp"

#include <type_traits>

namespace onepass::ONEPASS_ISA {

enum class Order { sorted, unsorted, outside };

template <class I>
inline bool all_inside(const I* index, size_t n, size_t columns) {
    using Unsigned = std::make_unsigned_t<I>;
    constexpr Unsigned most = Unsigned(1) << (8 * sizeof(I) - 1);  // where negative ones begin
    return all_below(index, n, columns < most ? Unsigned(columns) : most);
}

// Indices that rise strictly from 0 or more to less than columns are inside, and no two are equal.
template <class I>
inline Order order(const I* index, size_t n, size_t columns) {
    if (n == 0) return Order::sorted;
    if (rising(index, n)) return size_t(index[n - 1]) < columns ? Order::sorted : Order::outside;
    return all_inside(index, n, columns) ? Order::unsorted : Order::outside;
}

template <class Row>
inline Outcome first_bad_value(const Row& row, size_t at) {
    for (size_t i = 0; i < row.n; ++i)
        if (!finite(double(row.x[i]))) return {Status::not_finite, at, int64_t(row.column(i)), double(row.x[i])};
    return {Status::overflow, at, 0, 0.0};  // finite numbers whose squares overflow
}

// Calls visit(row) with row i of the batch, or says what is wrong with its indices.
template <class V, class Visit>
ONEPASS_INLINE Status with_row(const DenseBatch<V>& X, size_t i, const Visit& visit) {
    return visit(DenseRow<V>{X.values + i * X.columns, X.columns});
}

template <class V, class I, class Visit>
ONEPASS_INLINE Status with_row(const CsrBatch<V, I>& X, size_t i, const Visit& visit) {
    const I begin = X.starts[i], end = X.starts[i + 1];
    if (begin < 0 || end < begin || size_t(end) > X.nonzeros) return Status::bad_starts;
    const SparseRow<V, I> row{X.values + begin, X.indices + begin, size_t(end - begin),
                              std::min(X.nonzeros - size_t(end), size_t(end - begin))};
    if (X.sound)  // but a cache lies in a file, which somebody may write to after it was looked at
        return all_inside(row.index, row.n, X.columns) ? visit(row) : Status::bad_index;
    const Order found = order(row.index, row.n, X.columns);
    if (found == Order::outside) return Status::bad_index;
    if (found == Order::sorted || X.distinct) return visit(row);
    const MergedRow merged = merge_row(row.x, row.index, row.n);
    return visit(SparseRow<double, int64_t>{merged.x, merged.index, merged.n});
}

template <class V, class I>
inline int64_t outside_index(const CsrBatch<V, I>& X, size_t i) {
    for (I at = X.starts[i]; at < X.starts[i + 1]; ++at)
        if (X.indices[at] < 0 || size_t(X.indices[at]) >= X.columns) return int64_t(X.indices[at]);
    return 0;
}
template <class V>
inline int64_t outside_index(const DenseBatch<V>&, size_t) {
    return 0;
}

template <class Batch>
inline Outcome explain(const Batch& X, size_t i, Status status) {
    if (status == Status::bad_index) return {status, i, outside_index(X, i), 0.0};
    if (status != Status::not_finite) return {status, i, 0, 0.0};
    Outcome outcome;
    with_row(X, i, [&](const auto& row) {
        outcome = first_bad_value(row, i);
        return Status::ok;
    });
    return outcome;
}

// Asks for a row some rounds before it is needed: short rows of a long matrix outrun the processor's own guessing.
constexpr size_t rows_ahead = 12, most_features_ahead = 256;

template <class V>
inline void fetch(const DenseBatch<V>& X, size_t i) {
    if (i + rows_ahead >= X.rows) return;
    const char* values = reinterpret_cast<const char*>(X.values + (i + rows_ahead) * X.columns);
    for (size_t at = 0; at < X.columns * sizeof(V); at += 64) __builtin_prefetch(values + at, 0, 2);
}
template <class V, class I>
inline void fetch(const CsrBatch<V, I>& X, size_t i) {
    if (i + rows_ahead >= X.rows) return;
    // Starts are not checked yet here: a prefetch of any address is harmless, but it must end.
    constexpr size_t value_line = 64 / sizeof(V), index_line = 64 / sizeof(I),
                     step = value_line > index_line ? value_line : index_line;
    const size_t begin = size_t(X.starts[i + rows_ahead]), all = size_t(X.starts[i + rows_ahead + 1]) - begin;
    const size_t n = all < most_features_ahead ? all : most_features_ahead;
    for (size_t at = begin; at < begin + n; at += step) {  // one loop for both: its end is a guess that often fails
        for (size_t k = 0; k < step; k += value_line) ask_for(uintptr_t(X.values) + (at + k) * sizeof(V));
        for (size_t k = 0; k < step; k += index_line) ask_for(uintptr_t(X.indices) + (at + k) * sizeof(I));
    }
}

template <class Path, class Batch>
inline Outcome learn_rows(Model& M, const Batch& X, const Answers& in) {
    const size_t outputs = M.w.rows;
    for (size_t i = 0; i < X.rows; ++i) {
        fetch(X, i);
        const double y = in.y ? in.y[i] : 1.0;
        const double importance = in.importance ? in.importance[i] : 1.0;
        const double target = in.target ? in.target[i] : 1.0;
        const uint8_t* set = in.sets ? in.sets + i * outputs : nullptr;
        double* out = in.scores ? in.scores + i * outputs : nullptr;
        const double base = in.base ? in.base[i] : 0.0;
        const Status status = with_row(
            X, i, [&](const auto& row) { return learn_row<Path>(M, row, y, importance, target, set, out, base); });
        if (status != Status::ok) return explain(X, i, status);
    }
    return {};
}

// Calls run(path) with the path that fits the model best.
template <class Run>
inline auto by_path(const Model& M, const Run& run) {
    switch (kind_of(M)) {
        case Kind::plain: return run(Path<false, Kind::plain>());
        case Kind::lazy: return run(Path<false, Kind::lazy>());
        case Kind::diagonal: return run(Path<false, Kind::diagonal>());
        case Kind::coordinates: return run(Path<false, Kind::coordinates>());
        case Kind::any: break;
    }
    return M.w.stride > 1 ? run(Path<true>()) : run(Path<false>());
}

template <class Batch>
Outcome learn(Model& M, const Batch& X, const Answers& in) {
    return by_path(M, [&](auto path) { return learn_rows<decltype(path)>(M, X, in); });
}

// Looks for malformed rows without learning. Rows whose norm overflows are well formed.
template <class Batch>
Outcome check(const Model&, const Batch& X, size_t from_row) {
    for (size_t i = from_row; i < X.rows; ++i) {
        const Status status = with_row(
            X, i, [&](const auto& row) { return finite(norm(row.x, row.n)) ? Status::ok : Status::not_finite; });
        if (status == Status::ok) continue;
        const Outcome outcome = explain(X, i, status);
        if (outcome.status != Status::overflow) return outcome;
    }
    return {};
}

// The importance of the rows that the current weights put into the wrong class.
template <bool many, class Batch>
double count_errors(const Model& M, const Batch& X, const double* y, const double* importance) {
    double* scores = M.scratch();
    double sum = 0.0;
    for (size_t i = 0; i < X.rows; ++i)
        with_row(X, i, [&](const auto& row) {
            scores_of(M, row, read_current(M, row, M.w.lazy ? M.gathered(row.n * M.w.stride) : nullptr), scores,
                      scores);
            size_t best = !many && scores[0] > 0.0 ? 1 : 0;
            for (size_t r = 1; many && r < M.w.rows; ++r)
                if (scores[r] > scores[best]) best = r;
            if (double(best) != y[i]) sum += importance ? importance[i] : 1.0;
            return Status::ok;
        });
    return sum;
}

template <class Batch>
double errors(const Model& M, const Batch& X, const double* y, const double* importance) {
    return M.w.stride > 1 ? count_errors<true>(M, X, y, importance) : count_errors<false>(M, X, y, importance);
}

// Named features in the order of their columns, with none left out, are a dense row: the same sums without looking
// places up. Worth it beside a covariance, whose rounds are over dense vectors anyway.
inline bool dense_enough(const Model& M, const int64_t* index, size_t n) {
    return M.w.sigma.full && n > 0 && index[n - 1] == int64_t(n) - 1 && rising(index, n);
}

Status learn_one(Model& M, const double* x, const int64_t* index, size_t n, double y, double importance, double target,
                 const uint8_t* set, double base) {
    auto learn = [&](const auto& row) {
        return by_path(
            M, [&](auto path) { return learn_row<decltype(path)>(M, row, y, importance, target, set, nullptr, base); });
    };
    if (dense_enough(M, index, n)) return learn(DenseRow<double>{x, n});
    return learn(SparseRow<double, int64_t>{x, index, n});
}

void variance_one(const Model& M, const double* x, const int64_t* index, size_t n, double* variances) {
    variance_row(M, SparseRow<double, int64_t>{x, index, n}, variances);
}

void finish(Model& M) { M.w.stride > 1 ? finish_batch<true>(M) : finish_batch<false>(M); }

void score_one(const Model& M, const double* x, const int64_t* index, size_t n, double base, double* scores) {
    if (dense_enough(M, index, n)) predict_row(M, DenseRow<double>{x, n}, scores, M.scratch(), base);
    else predict_row(M, SparseRow<double, int64_t>{x, index, n}, scores, M.scratch(), base);
}

template <class Batch>
void score(const Model& M, const Batch& X, const double* base, double* scores) {
    double* scratch = M.scratch();
    for (size_t i = 0; i < X.rows; ++i)
        with_row(X, i, [&](const auto& row) {
            predict_row(M, row, scores + i * M.w.rows, scratch, base ? base[i] : 0.0);
            return Status::ok;
        });
}

template <class Batch>
void variance(const Model& M, const Batch& X, double* variances) {
    const size_t own = M.w.sigma.shared ? 1 : M.w.rows;
    for (size_t i = 0; i < X.rows; ++i)
        with_row(X, i, [&](const auto& row) {
            variance_row(M, row, variances + i * own);
            return Status::ok;
        });
}

}  // namespace onepass::ONEPASS_ISA

#include "loops/pairs.hpp"  // on top of the rows above

#define ONEPASS_NAME_(isa) loops_##isa
#define ONEPASS_NAME(isa) ONEPASS_NAME_(isa)
#define ONEPASS_TEXT_(isa) #isa
#define ONEPASS_TEXT(isa) ONEPASS_TEXT_(isa)

namespace onepass {

const Loops* ONEPASS_NAME(ONEPASS_ISA)() {
    static const Loops loops = {
        ONEPASS_TEXT(ONEPASS_ISA),
#define ONEPASS_FILL(Batch, suffix)                                                                              \
    ONEPASS_ISA::learn<Batch>, ONEPASS_ISA::score<Batch>, ONEPASS_ISA::check<Batch>, ONEPASS_ISA::errors<Batch>, \
        ONEPASS_ISA::variance<Batch>,
        ONEPASS_FOR_EACH_BATCH(ONEPASS_FILL)
#undef ONEPASS_FILL
            ONEPASS_ISA::learn_one,
        ONEPASS_ISA::finish,
        ONEPASS_ISA::derive,
        ONEPASS_ISA::score_one,
        ONEPASS_ISA::variance_one,
        ONEPASS_ISA::learn_pairs<DenseBatch<double>>,
        ONEPASS_ISA::learn_pairs<CsrBatch<double, int32_t>>,
        ONEPASS_ISA::learn_pairs<CsrBatch<double, int64_t>>,
    };
    return &loops;
}

}  // namespace onepass
