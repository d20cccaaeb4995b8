// Rows as loops read them: dense rows of doubles, and CSR rows of doubles at 32-bit indices. Other widths are converted
// block by block before they come to a loop (core/blocks.hpp).
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
    // No column occurs twice in a row. Its elements are learned in the given order, like those of a mapping.
    bool distinct = false;
    bool named = false;      // columns are features of the model by name or hash, not columns of a table
    bool validated = false;  // every row was validated by the parser that made it, and no column occurs twice in a row
};

using Table = DenseBatch<double>;
using Csr = CsrBatch<double, int32_t>;

// The largest number of columns that 32-bit indices allow.
constexpr size_t most_columns = INT32_MAX;

// A sparse row whose indices were sorted and whose repeated indices were added up. Valid until the next merge on this
// thread.
template <class I>
struct MergedRow {
    const double* x;
    const I* index;
    size_t n;
};
template <class I>
MergedRow<I> merge_row(const double* x, const I* index, size_t n);

// Working space for a copy of a row, one per thread.
struct RowCopy {
    double* x;
    int64_t* index;
};
RowCopy& row_copy(size_t n);

// 64-bit indices converted to 32 bits, on the stack if they are few. Those of a long row are valid until the next one
// on this thread.
class NarrowIndices {
 public:
    // Always inlined: see core/inline.hpp.
    __attribute__((always_inline)) NarrowIndices(const int64_t* index, size_t n) : at_(n <= few ? few_ : room(n)) {
        int32_t* __restrict at = at_;
        for (size_t i = 0; i < n; ++i) at[i] = int32_t(index[i]);
    }
    NarrowIndices(const NarrowIndices&) = delete;
    operator const int32_t*() const { return at_; }

 private:
    static constexpr size_t few = 128;
    static int32_t* room(size_t n);
    int32_t few_[few];
    int32_t* at_;
};

}  // namespace onepass
