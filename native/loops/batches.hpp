// The rows of a batch, and their validation. Included once per instruction set.
#pragma once
#include <type_traits>

#include "core/model.hpp"
#include "loops/paths.hpp"
#include "loops/scores.hpp"

namespace onepass::ONEPASS_ISA {

enum class Order { sorted, unsorted, outside };

inline bool all_inside(const int32_t* index, size_t n, size_t columns) {
    constexpr uint32_t most = uint32_t(1) << 31;  // as unsigned numbers, negative indices begin here
    return all_below(index, n, columns < most ? uint32_t(columns) : most);
}

// If indices rise strictly, the first is at least 0 and the last is less than `columns`, all are inside and distinct.
inline Order order(const int32_t* index, size_t n, size_t columns) {
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

// Reads row i of the batch, or says what is wrong with its indices.
ONEPASS_INLINE Status read_row(const Table& X, size_t i, DenseRow<double>& row) {
    row = {X.values + i * X.columns, X.columns};
    return Status::ok;
}

ONEPASS_INLINE Status read_row(const Csr& X, size_t i, SparseRow<double, int32_t>& row) {
    const int32_t begin = X.starts[i], end = X.starts[i + 1];
    if (begin < 0 || end < begin || size_t(end) > X.nonzeros) return Status::bad_starts;
    row = {X.values + begin, X.indices + begin, size_t(end - begin),
           std::min(X.nonzeros - size_t(end), size_t(end - begin))};
    if (X.validated)  // only the indices are checked again: another program may have changed the file of a cache
        return all_inside(row.index, row.n, X.columns) ? Status::ok : Status::bad_index;
    const Order found = order(row.index, row.n, X.columns);
    if (found == Order::outside) return Status::bad_index;
    if (found == Order::sorted || X.distinct) return Status::ok;
    const MergedRow<int32_t> merged = merge_row(row.x, row.index, row.n);
    row = {merged.x, merged.index, merged.n};
    return Status::ok;
}

// The type of the rows of a batch.
template <class Batch>
using RowOf = std::conditional_t<std::is_same_v<Batch, Table>, DenseRow<double>, SparseRow<double, int32_t>>;

// The first index of row i that is outside the table.
inline int64_t outside_index(const Table&, size_t) { return 0; }
inline int64_t outside_index(const Csr& X, size_t i) {
    for (int32_t at = X.starts[i]; at < X.starts[i + 1]; ++at)
        if (X.indices[at] < 0 || size_t(X.indices[at]) >= X.columns) return X.indices[at];
    return 0;
}

template <class Batch>
Outcome explain(const Batch& X, size_t i, Status status) {
    if (status == Status::bad_index) return {status, i, outside_index(X, i), 0.0};
    if (status != Status::not_finite) return {status, i, 0, 0.0};
    RowOf<Batch> row{};
    read_row(X, i, row);
    for (size_t e = 0; e < row.n; ++e)
        if (!finite(row.x[e])) return {status, i, int64_t(row.column(e)), row.x[e]};
    return {Status::overflow, i, 0, 0.0};  // finite numbers whose squares overflow
}

}  // namespace onepass::ONEPASS_ISA
