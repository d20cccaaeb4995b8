// Kernel rows of a group of dense rows that are about to be learned or scored, computed in one pass over the stored
// vectors.
//
// While the rows are learned one after the other, vectors are added, moved and removed. K(x, z) is a pure function, so
// a value that is moved or computed again has the bits that it would have had row by row.
#pragma once
#include <array>
#include <vector>

#include "kernels/expansion.hpp"

namespace onepass {

class RowsAhead {
 public:
    static constexpr size_t most = 2 * Points::line;  // rows of a group

    // Computes the kernel rows of the rows at `x`, `columns` numbers each. `next`: the group after this one if it is
    // as large, to be prefetched; or null.
    void compute(Expansion& f, size_t slots, const double* x, size_t columns, size_t count, const double* next);

    const Query& query(size_t q) const { return queries_[q]; }
    // The kernel row of row q with the vectors that were stored when the group was computed.
    const double* as_computed(size_t q) const { return values_.data() + q * stride_; }
    // The same with the vectors that are stored now, after the rows before q were learned.
    const double* up_to_date(const Expansion& f, size_t q);

 private:
    double among_themselves(const Kernel& kernel, size_t q, size_t earlier);

    std::vector<Query> queries_;
    std::vector<double> values_;
    size_t stride_ = 0;
    std::vector<size_t> unknown_;  // slots whose values have to be computed
    // K of the rows among themselves, computed for a line of eight rows when it is needed.
    Points points_;
    double among_[most * most];
    std::array<bool, most / Points::line> computed_{};
    const double* next_ = nullptr;
};

}  // namespace onepass
