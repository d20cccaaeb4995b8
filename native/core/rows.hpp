// The inputs that the loops are templates over: dense and CSR batches of either float width and index width.
#pragma once
#include <cstddef>
#include <cstdint>

namespace onepass {

template <class V>
struct DenseBatch {
    const V* values;
    size_t rows, columns;
};

template <class V, class I>
struct CsrBatch {
    const V* values;
    const I* indices;
    const I* starts;  // rows + 1
    size_t rows, columns, nonzeros;
    // No column stands twice in a row: its elements are taken in the order given, as those of a mapping are.
    bool distinct = false;
    bool named = false;  // columns are the model's own features by name or hash, not places in a table
    bool sound = false;  // somebody has seen that all rows are well formed and distinct: nothing is left to look for
};

// Every batch type that has compiled loops.
#define ONEPASS_FOR_EACH_BATCH(X)                  \
    X(DenseBatch<double>, dense_f64)               \
    X(DenseBatch<float>, dense_f32)                \
    X(CsrBatch<double COMMA int32_t>, csr_f64_i32) \
    X(CsrBatch<double COMMA int64_t>, csr_f64_i64) \
    X(CsrBatch<float COMMA int32_t>, csr_f32_i32)  \
    X(CsrBatch<float COMMA int64_t>, csr_f32_i64)
#define COMMA ,

// A sparse row with its indices in order and equal ones summed; valid until the next merge on this thread.
struct MergedRow {
    const double* x;
    const int64_t* index;
    size_t n;
};

// Room for a copy of a row, one per thread.
struct RowCopy {
    double* x;
    int64_t* index;
};
RowCopy& row_copy(size_t n);

template <class V, class I>
MergedRow merge_row(const V* x, const I* index, size_t n);

}  // namespace onepass
