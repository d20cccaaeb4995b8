// A batch for a kernel learner: the rows of a dense matrix or of a CSR matrix.
#pragma once
#include <algorithm>

#include "bind/engine.hpp"

namespace onepass {

// The number of features of a row that are not 0.
inline size_t count_features(const double* x, size_t n) {
    return size_t(std::count_if(x, x + n, [](double value) { return value != 0.0; }));
}

struct KernelTable {
    const double* x;
    const int64_t *index = nullptr, *starts = nullptr;
    size_t rows, columns, nonzeros;
    bool streamed = false;  // rows of a stream: the number of columns says nothing about the number of features
    bool named = false;     // the columns are the engine's named features

    explicit KernelTable(Matrix<double> X) : x(X.data()), rows(X.shape(0)), columns(X.shape(1)), nonzeros(X.size()) {}
    KernelTable(Vector<double> data, Vector<int64_t> indices, Vector<int64_t> from, size_t columns)
        : x(data.data()), index(indices.data()), starts(from.data()), columns(columns), nonzeros(data.shape(0)) {
        if (from.shape(0) == 0 || data.shape(0) != indices.shape(0))
            raise("InputError", "X is not a CSR matrix: its arrays do not fit together");
        rows = from.shape(0) - 1;
    }

    struct Row {
        const double* x;
        const int64_t* index;
        size_t n;
    };
    bool sparse() const { return starts != nullptr; }
    // Row i as it is stored.
    Row stored(size_t i) const {
        if (!sparse()) return {x + i * columns, nullptr, columns};
        return {x + starts[i], index + starts[i], size_t(starts[i + 1] - starts[i])};
    }
    // Row i with rising indices; values with the same index are added up.
    Row row(size_t i) const {
        const Row given = stored(i);
        const int64_t* const end = given.index + given.n;
        if (!sparse() || std::adjacent_find(given.index, end, [](int64_t a, int64_t b) { return a >= b; }) == end)
            return given;
        const MergedRow<int64_t> merged = merge_row(given.x, given.index, given.n);
        return {merged.x, merged.index, merged.n};
    }
    // The d of gamma = 1/d: the number of columns, or of features in the first row of a stream.
    size_t features() const {
        return !streamed || rows == 0 ? columns : count_features(x + starts[0], size_t(starts[1] - starts[0]));
    }
    // The number of columns that the model has after the first `count` rows. The rows of a stream only count up to the
    // last column in them.
    size_t columns_of(size_t count) const {
        if (!streamed || named) return columns;
        const int64_t *begin = index, *end = index + starts[count];
        return begin == end ? 0 : size_t(*std::max_element(begin, end)) + 1;
    }
};

}  // namespace onepass
