// Compiled once per instruction set, with ONEPASS_ISA naming it.
#include "loops.hpp"

#include <type_traits>

namespace onepass::ONEPASS_ISA {

enum class Order { sorted, unsorted, outside };

// Strictly rising indices from >= 0 to < columns are inside, and no two are equal: one pass settles all three.
template <class I>
inline Order order(const I* index, size_t n, size_t columns) {
    if (n == 0) return Order::sorted;
    bool rising = true;
    for (size_t i = 1; i < n; ++i) rising &= index[i - 1] < index[i];
    if (rising) return index[0] >= 0 && size_t(index[n - 1]) < columns ? Order::sorted : Order::outside;
    for (size_t i = 0; i < n; ++i)
        if (index[i] < 0 || size_t(index[i]) >= columns) return Order::outside;
    return Order::unsorted;
}

template <class Row>
inline Outcome first_bad_value(const Row& row, size_t at) {
    for (size_t i = 0; i < row.n; ++i)
        if (!finite(double(row.x[i]))) return {Status::not_finite, at, int64_t(row.column(i)), double(row.x[i])};
    return {Status::overflow, at, 0, 0.0};  // finite numbers whose squares overflow
}

// Calls visit(row) with row i of the batch, or says what is wrong with its indices.
template <class V, class Visit>
inline Status with_row(const DenseBatch<V>& X, size_t i, Visit visit) {
    return visit(DenseRow<V>{X.values + i * X.columns, X.columns});
}

template <class V, class I, class Visit>
inline Status with_row(const CsrBatch<V, I>& X, size_t i, Visit visit) {
    const I begin = X.starts[i], end = X.starts[i + 1];
    if (begin < 0 || end < begin || size_t(end) > X.nonzeros) return Status::bad_starts;
    const SparseRow<V, I> row{X.values + begin, X.indices + begin, size_t(end - begin)};
    switch (order(row.index, row.n, X.columns)) {
        case Order::sorted: return visit(row);
        case Order::outside: return Status::bad_index;
        case Order::unsorted:
            if (X.distinct) return visit(row);
            break;
    }
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

// Do rows first..last-1 all have starts in order and strictly rising indices inside the table? One long pass over many
// rows costs far less than a short one over each: every fall in the indices must be at the end of a row.
template <class V>
inline bool clean(const DenseBatch<V>&, size_t, size_t) {
    return true;
}
template <class V, class I>
inline bool clean(const CsrBatch<V, I>& X, size_t first, size_t last) {
    const I begin = X.starts[first], end = X.starts[last];
    if (begin < 0 || end < begin || size_t(end) > X.nonzeros) return false;
    size_t falls_between = 0;
    for (size_t i = first; i < last; ++i) {
        const I low = X.starts[i], high = X.starts[i + 1];
        if (low < begin || high < low || high > end) return false;
        // The fall into row i + 1, unless that row is empty or the last: counted where its first element is.
        if (low > begin && high > low) falls_between += X.indices[low - 1] >= X.indices[low];
    }
    using Unsigned = std::make_unsigned_t<I>;
    Unsigned falls = 0, largest = 0;
    for (I at = begin; at < end; ++at) {
        const Unsigned index = Unsigned(X.indices[at]);
        largest = index > largest ? index : largest;
    }
    if (X.distinct) return begin == end || size_t(largest) < X.columns;
    for (I at = begin + 1; at < end; ++at) falls += X.indices[at - 1] >= X.indices[at];
    return size_t(falls) == falls_between && (begin == end || size_t(largest) < X.columns);
}

template <class V>
inline DenseRow<V> plain_row(const DenseBatch<V>& X, size_t i) {
    return {X.values + i * X.columns, X.columns};
}
template <class V, class I>
inline SparseRow<V, I> plain_row(const CsrBatch<V, I>& X, size_t i) {
    return {X.values + X.starts[i], X.indices + X.starts[i], size_t(X.starts[i + 1] - X.starts[i])};
}

// Asks for a row some rounds before it is needed: short rows of a long matrix outrun the processor's own guessing.
constexpr size_t ahead = 12, most_lines = 16;
template <class V>
inline void fetch(const DenseBatch<V>&, size_t) {}
template <class V, class I>
inline void fetch(const CsrBatch<V, I>& X, size_t i) {
    // Starts are not checked yet here: a prefetch of any address is harmless, but it must end.
    const char* values = reinterpret_cast<const char*>(X.values + X.starts[i]);
    const char* end = reinterpret_cast<const char*>(X.values + X.starts[i + 1]);
    for (size_t line = 0; values + 64 * line < end && line < most_lines; ++line) __builtin_prefetch(values + 64 * line);
}

template <bool many, class Batch>
inline Outcome learn_rows(Model& M, const Batch& X, const Answers& in) {
    constexpr size_t together = 32;  // rows whose indices are looked over at once: they stay in the nearest cache
    const size_t outputs = M.w.rows;
    for (size_t first = 0; first < X.rows; first += together) {
        const size_t last = first + together < X.rows ? first + together : X.rows;
        const bool fine = clean(X, first, last);
        for (size_t i = first; i < last; ++i) {
            if (i + ahead < X.rows) fetch(X, i + ahead);
            const double y = in.y ? in.y[i] : 1.0;
            const double importance = in.importance ? in.importance[i] : 1.0;
            const double target = in.target ? in.target[i] : 1.0;
            const uint8_t* set = in.sets ? in.sets + i * outputs : nullptr;
            double* out = in.scores ? in.scores + i * outputs : nullptr;
            auto visit = [&](const auto& row) { return learn_row<many>(M, row, y, importance, target, set, out); };
            const Status status = fine ? visit(plain_row(X, i)) : with_row(X, i, visit);
            if (status != Status::ok) return explain(X, i, status);
        }
    }
    return {};
}

template <class Batch>
Outcome learn(Model& M, const Batch& X, const Answers& in) {
    return M.w.stride > 1 ? learn_rows<true>(M, X, in) : learn_rows<false>(M, X, in);
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

Status learn_one(Model& M, const double* x, const int64_t* index, size_t n, double y, double importance, double target,
                 const uint8_t* set) {
    const SparseRow<double, int64_t> row{x, index, n};
    return M.w.stride > 1 ? learn_row<true>(M, row, y, importance, target, set, nullptr)
                          : learn_row<false>(M, row, y, importance, target, nullptr, nullptr);
}

void score_one(const Model& M, const double* x, const int64_t* index, size_t n, double* scores) {
    score_row(M, SparseRow<double, int64_t>{x, index, n}, scores, M.scratch());
}

template <class Batch>
void score(const Model& M, const Batch& X, double* scores) {
    double* scratch = M.scratch();
    for (size_t i = 0; i < X.rows; ++i)
        with_row(X, i, [&](const auto& row) {
            score_row(M, row, scores + i * M.w.rows, scratch);
            return Status::ok;
        });
}

}  // namespace onepass::ONEPASS_ISA

#define ONEPASS_NAME_(isa) loops_##isa
#define ONEPASS_NAME(isa) ONEPASS_NAME_(isa)
#define ONEPASS_TEXT_(isa) #isa
#define ONEPASS_TEXT(isa) ONEPASS_TEXT_(isa)

namespace onepass {

const Loops* ONEPASS_NAME(ONEPASS_ISA)() {
    static const Loops loops = {
        ONEPASS_TEXT(ONEPASS_ISA),
#define ONEPASS_FILL(Batch, suffix) ONEPASS_ISA::learn<Batch>, ONEPASS_ISA::score<Batch>, ONEPASS_ISA::check<Batch>,
        ONEPASS_FOR_EACH_BATCH(ONEPASS_FILL)
#undef ONEPASS_FILL
            ONEPASS_ISA::learn_one,
        ONEPASS_ISA::score_one,
    };
    return &loops;
}

}  // namespace onepass
