// Updates that are recorded instead of applied at once, and what uses them: the voted readout and mini-batches.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace onepass {

// Update k adds coefficient[output] * x_k to the weights of every output; the rows x_k are sparse.
struct Updates {
    std::vector<int64_t> index;
    std::vector<double> value;
    std::vector<int64_t> ends;              // where the row of each update ends
    std::vector<double> coefficients;       // of the outputs that existed then, update after update
    std::vector<int64_t> coefficient_ends;  // where the coefficients of each update end

    size_t count() const { return ends.size(); }
    size_t begin(size_t k) const { return k ? size_t(ends[k - 1]) : 0; }
    void push(const double* x, const int64_t* at, size_t n, const double* of_outputs, size_t outputs);
    void coefficients_of(size_t k, size_t outputs, double* out) const;  // for the outputs that exist now
    void negate();
};

// The voted readout: every update ever made, and how many rounds the weights after it survived. The score of x after k
// updates is the sum of coefficient * <x_k, x> over the first k, so no weight vector is stored.
struct Votes {
    bool on = false;
    double max_vectors = 0.0;
    std::vector<double> counts = {0.0};  // rounds survived by the start weights, then by those after each update
    Updates updates;

    bool full() const { return double(counts.size()) > max_vectors; }
};

// A mini-batch: rounds that share one step. All of them see the weights from before it.
struct MiniBatch {
    double size = 1.0;    // rounds per step
    bool mean = true;     // does the step take the mean of the updates, or their sum?
    double rounds = 0.0;  // of the current batch
    double steps = 0.0;   // taken so far
    bool moves = false;   // was any round of the batch not skipped? Then the next four hold:
    double scale = 1.0, decay = 1.0, soft = 0.0, shrink = 1.0;
    Updates updates;
    double reach = 0.0;  // how far all updates together can move a weight; not part of the saved state

    bool on() const { return size > 1.0; }
    void clear();
};

// When the third class comes, the weights of a binary model become two outputs: -w/2 and +w/2. A weight of zero stays
// +0.0 in both, as in outputs that start at zero.
inline double half_of(double w, size_t output, double half = 0.5) { return output == 0 ? 0.0 - half * w : half * w; }

}  // namespace onepass
