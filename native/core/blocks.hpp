// Rows of float32 values or 64-bit indices, converted block by block to those that loops are compiled for: the numbers
// stay exactly the same, and a block takes little memory however large the batch is.
#pragma once
#include <algorithm>
#include <type_traits>
#include <vector>

#include "core/model.hpp"
#include "core/rows.hpp"

namespace onepass {

constexpr size_t block_numbers = 1 << 14;  // numbers of a block: it stays in the cache until it is learned

// The index in 32 bits; -1, which every loop refuses, if it does not fit.
inline int32_t narrow_index(int64_t index) { return index < 0 || index > INT32_MAX ? -1 : int32_t(index); }

// The first index of row i that is outside the table, or beyond what a linear model can have.
template <class V, class I>
int64_t outside_index(const CsrBatch<V, I>& X, size_t i) {
    for (I at = X.starts[i]; at < X.starts[i + 1]; ++at)
        if (X.indices[at] < 0 || size_t(X.indices[at]) >= X.columns || narrow_index(int64_t(X.indices[at])) < 0)
            return int64_t(X.indices[at]);
    return 0;
}

// Calls run(block, row) for block after block, where `row` is the first row of the block, until one is refused. The row
// of the outcome is counted from the beginning of the batch.
template <class V, class Run>
Outcome by_blocks(const DenseBatch<V>& X, const Run& run) {
    if constexpr (std::is_same_v<V, double>) {
        return run(X, 0);
    } else {
        const size_t rows = std::max<size_t>(block_numbers / std::max<size_t>(X.columns, 1), 1);
        std::vector<double> values;
        for (size_t from = 0; from < X.rows; from += rows) {
            const size_t some = std::min(rows, X.rows - from);
            values.assign(X.values + from * X.columns, X.values + (from + some) * X.columns);
            Outcome outcome = run(Table{values.data(), some, X.columns}, from);
            outcome.row += from;
            if (outcome.status != Status::ok) return outcome;
        }
        return {};
    }
}

// Rows of a CSR batch, converted to a block.
class CsrBlock {
 public:
    // Converts rows from `from` on, until the block is full or a row has damaged starts.
    template <class V, class I>
    void fill(const CsrBatch<V, I>& X, size_t from) {
        values_.clear();
        indices_.clear();
        starts_.assign(1, 0);
        damaged_ = false;
        for (size_t i = from; i < X.rows && values_.size() < block_numbers; ++i) {
            const I begin = X.starts[i], end = X.starts[i + 1];
            damaged_ = begin < 0 || end < begin || size_t(end) > X.nonzeros || size_t(end - begin) > most_columns;
            if (damaged_) break;
            values_.insert(values_.end(), X.values + begin, X.values + end);
            for (I at = begin; at < end; ++at) indices_.push_back(narrow_index(int64_t(X.indices[at])));
            starts_.push_back(int32_t(values_.size()));
        }
        block_ = {values_.data(), indices_.data(), starts_.data(), starts_.size() - 1, X.columns,
                  values_.size(), X.distinct,      X.named,        X.validated};
    }
    const Csr& rows() const { return block_; }
    bool damaged() const { return damaged_; }  // are the starts of the row after these damaged?

 private:
    std::vector<double> values_;
    std::vector<int32_t> indices_, starts_;
    Csr block_{};
    bool damaged_ = false;
};

template <class V, class I, class Run>
Outcome by_blocks(const CsrBatch<V, I>& X, const Run& run) {
    if constexpr (std::is_same_v<CsrBatch<V, I>, Csr>) {
        return run(X, 0);
    } else {
        CsrBlock block;
        for (size_t from = 0; from < X.rows; from += block.rows().rows) {
            block.fill(X, from);
            Outcome outcome = run(block.rows(), from);
            outcome.row += from;
            if (outcome.status == Status::bad_index) outcome.column = outside_index(X, outcome.row);
            if (outcome.status != Status::ok) return outcome;
            if (block.damaged()) return {Status::bad_starts, from + block.rows().rows, 0, 0.0};
        }
        return {};
    }
}

}  // namespace onepass
