// The covariance Sigma of Gaussian weights (scheme/spread.py). A full Sigma is stored as its lower triangle, one for
// each output, row after row, so that a new feature appends a row; the constant feature comes first. Each row begins at
// a cache line: writing across two lines costs half as much again. Files have the rows without gaps. A diagonal Sigma
// is a plane of the weights. In Cholesky's form the triangle is a factor of the inverse, U U' = Sigma^-1 with U upper:
// its columns are stored in place of the rows of Sigma, and a new feature appends a column.
#pragma once
#include <cstddef>
#include <vector>

#include "core/buffer.hpp"
#include "core/name_lists.hpp"

namespace onepass {

// How a full Sigma is stored and changed; the results are the same but for rounding (loops/forms.hpp).
ONEPASS_ENUM(Form, gain, joseph, chol)

struct Covariance {
    bool on = false;
    bool full = false;          // the whole matrix, not only its diagonal
    Form form = Form::gain;     // of a full Sigma
    bool precisions = false;    // diagonal: are gains added to 1/sigma?
    bool forgets = false;       // does a round with phi = 0 change it?
    bool vaw = false;           // does the model predict s/(1 + v)? (Vovk, Azoury and Warmuth)
    bool shared = false;        // one Sigma for all outputs
    double start = 1.0;         // the variance of a weight that was never learned
    double drift = 0.0;         // added to every variance before a round
    double largest = HUGE_VAL;  // forgetting pauses rather than let a variance exceed this
    size_t max_dim = 0;
    size_t constants = 0;  // coordinates before the features: 1 for the intercept, or 0

    size_t size = 0;  // coordinates of each triangle
    // How many of them learning uses. A batch brings all its features at once, but each is registered with the first
    // example that has it. Before that it must influence neither the order of sums nor what is forgotten, so that the
    // results do not depend on how a stream is cut into batches.
    size_t registered = 0;
    std::vector<Buffer> triangle;  // one for each output, or one that is shared
    double paused = 0.0;           // rounds in which forgetting paused

    // A factor does not show its variances. `bound` is an upper bound on those of the first `bounded` coordinates: they
    // are computed only when it reaches `largest`.
    double bound = 0.0;
    size_t bounded = 0;
    size_t widest = 0;  // the coordinate that was last found to exceed `largest`; not part of the state
    double bound_now() const { return registered > bounded && !(bound > start) ? start : bound; }

    const double* of(size_t output) const { return triangle[shared ? 0 : output].data(); }
    double* of(size_t output) { return triangle[shared ? 0 : output].data(); }
    static constexpr size_t line = 8;                                         // numbers of a cache line
    static size_t width(size_t i) { return (i / line + 1) * line; }           // of row i: its i + 1 entries, then a gap
    static size_t row_at(size_t i) { return (i + i % line) * width(i) / 2; }  // where row i begins
    static size_t entry(size_t i) { return row_at(i) + i; }                   // where entry i of the diagonal is

    bool admits(size_t features) const { return !full || features + constants <= max_dim; }
    void begin();
    void set_features(size_t features);
    void drop_features(size_t features);
    void set_outputs(size_t outputs);
    void drop_outputs(size_t outputs);
    bool positive_definite() const;  // by Cholesky, in O(size^3)
    size_t numbers() const { return triangle.size() * row_at(size); }
    size_t entries() const { return size * (size + 1) / 2; }  // of a triangle without gaps
    void pack(size_t output, double* entries) const;          // without the gaps
    void unpack(size_t output, const double* entries);
};

// Working space of this thread.
double* covariance_room(size_t size);

}  // namespace onepass
