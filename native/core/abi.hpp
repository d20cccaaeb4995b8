// The contract between a loop and a rule: plain doubles, so that a C function pointer (numba.cfunc, ctypes, your own
// library) is a rule like ours. Every struct is an array of doubles in the order written here.
#pragma once
#include <cstdint>

namespace onepass {

// What a rule sees of a round: see Scalars in scheme.py.
struct Scalars {
    double m;           // the margin: <w, phi>, and `base` where the example begins at one
    double target;      // what m should reach
    double xx;          // |phi|^2; of Gaussian weights phi' Sigma phi
    double ww;          // |w|^2
    double importance;  // > 0
    double t;           // this round, from 1
    double k;           // updates so far
    double side;        // regression: sign of the residual; otherwise +1
    double regression;  // 1 where y itself is to be met, 0 where a margin is to be reached
    double base = 0.0;  // what of m is the example's initial prediction, so that <w, phi> = m - base
};

// What it answers: w <- scale*w + add*phi. decay is scale without the intercept. Then, the intercept spared,
// |w_j| <- shrink * max(0, |w_j| - soft). Gaussian weights move by add * Sigma * phi, and then
// Sigma^-1 <- forget * Sigma^-1 + gain * phi phi'. Arrives as {0, 1, 1, 0, 1, 0, 1}.
struct Step {
    double add;
    double scale;
    double decay;
    double gain;
    double forget;
    double soft;
    double shrink;
};

constexpr Step passive{0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 1.0};

constexpr int max_params = 16;
constexpr int max_slots = 8;

using StepFn = void (*)(const Scalars* s, const double* params, double* state, Step* step);

// For rules that look at all class scores at once: row r moves by coefficients[r] * x.
using SolveFn = void (*)(const Scalars* s, const double* scores, int64_t classes, int64_t y, const double* params,
                         double* state, double* coefficients, Step* step);

}  // namespace onepass
