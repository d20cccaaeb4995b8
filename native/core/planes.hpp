// Planes: numbers that a rule keeps for every weight, such as a sum of squared gradients or a variance.
#pragma once
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

namespace onepass {

// One such number. When the third class turns a binary model into one output per class, weights and odd planes are
// halved: output 0 gets minus the half, output 1 the half. Even planes are copied to both.
struct Plane {
    double start = 0.0;  // its value for a weight that was never learned
    bool odd = false;    // does it change sign with the weight?
    double dead = 0.0;   // odd planes: only what exceeds this is halved
};

// Features have the first count() planes, which lie next to their weights in Weights::cells. The intercepts have all.
struct Planes {
    std::vector<Plane> kinds;
    size_t of_output = 0;      // the last so many kinds belong to an output as a whole, not to each weight
    std::vector<double> bias;  // [kind * stride + output]

    size_t count() const { return kinds.size() - of_output; }
    bool any() const { return !kinds.empty(); }
    bool start_at_zero() const;  // do all planes of features start at 0?
    // Gives the first `count` planes of a feature, or of the intercepts, their start values.
    void start(size_t count, size_t stride, double* planes) const;
};

}  // namespace onepass
