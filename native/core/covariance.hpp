// How sure a second-order rule is of its weights (spread.py): full, a lower triangle of Sigma for each class row, row
// after row, so that a new feature appends to it; the constant feature comes first. Rows begin where a cache line does:
// writing across two lines costs half as much again. Files have them without the gaps. The diagonal is a plane beside
// the weights. In Cholesky's form the triangle is a factor of the inverse, U U' = Sigma^-1 with U upper: its columns
// lie where the rows of Sigma would, and a new feature appends to it, too.
#pragma once
#include <cstddef>
#include <vector>

#include "core/buffer.hpp"
#include "core/name_lists.hpp"

namespace onepass {

// How a full Sigma is kept and changed; the same numbers but for rounding (loops/forms.hpp).
ONEPASS_ENUM(Form, gain, joseph, chol)

struct Covariance {
    bool on = false;          // is there one?
    bool full = false;        // the matrix, or its diagonal
    Form form = Form::gain;   // of the matrix
    bool precisions = false;  // diagonal: add to 1/sigma
    bool forgets = false;     // does a round change it even where phi = 0?
    bool vaw = false;         // predict s/(1 + v)
    bool shared = false;      // one for all class rows
    double start = 1.0;       // the variance of a weight that was never met
    double drift = 0.0;       // added to every variance before a round
    double largest = HUGE_VAL;
    size_t max_dim = 0;
    size_t constants = 0;  // coordinates before the features: 1 for the intercept, or 0

    size_t size = 0;  // of each triangle
    // Of its coordinates, those that learning goes by. The features of a batch come in together, but each has its first
    // row: until then it must not matter, neither to the order of sums nor by what is forgotten, however rows are cut.
    size_t registered = 0;
    std::vector<Buffer> triangle;  // of each class row, or one that is shared
    double waited = 0.0;           // rounds that did not forget, lest a variance pass `largest`

    // Variances are not at hand in a factor. None of the first `covered` coordinates' is beyond `reach`, so that they
    // need not be worked out before it comes to `largest`.
    double reach = 0.0;
    size_t covered = 0;
    size_t widest = 0;  // the coordinate that was last found beyond; not part of the state
    double reach_now() const { return registered > covered && !(reach > start) ? start : reach; }

    const double* of(size_t row) const { return triangle[shared ? 0 : row].data(); }
    double* of(size_t row) { return triangle[shared ? 0 : row].data(); }
    static constexpr size_t line = 8;                                // numbers of a cache line
    static size_t width(size_t i) { return (i / line + 1) * line; }  // of row i, whose i + 1 entries come first
    static size_t row_at(size_t i) { return (i + i % line) * width(i) / 2; }  // the widths of all rows before
    static size_t entry(size_t i) { return row_at(i) + i; }                   // of the diagonal

    bool admits(size_t features) const { return !full || features + constants <= max_dim; }
    void begin();
    void set_features(size_t features);
    void drop_features(size_t features);
    void set_outputs(size_t rows);
    void drop_outputs(size_t rows);
    bool positive_definite() const;  // by Cholesky, in O(size^3)
    size_t numbers() const { return triangle.size() * row_at(size); }
    size_t entries() const { return size * (size + 1) / 2; }  // of a triangle without gaps
    void pack(size_t row, double* entries) const;
    void unpack(size_t row, const double* entries);
};

// Room for readers and writers of this thread.
double* covariance_room(size_t size);

}  // namespace onepass
