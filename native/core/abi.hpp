// The contract between a loop and a rule: plain doubles, so that a C function pointer (numba.cfunc, ctypes, your own
// library) is a rule like ours. Every struct is an array of doubles in the order written here.
#pragma once
#include <cstdint>

namespace onepass {

// What a rule sees of a round: Scalars in scheme/rounds.py.
struct Scalars {
    double m;           // the margin: <w, phi> + base
    double target;      // what m should reach
    double xx;          // |phi|^2; of Gaussian weights phi' Sigma phi
    double ww;          // |w|^2
    double importance;  // > 0
    double t;           // this round, from 1
    double k;           // updates so far
    double side;        // regression: sign of the residual; otherwise +1
    double regression;  // 1 in regression, else 0
    double base = 0.0;  // the part of m that comes from the initial prediction: <w, phi> = m - base
};

// What it answers: w <- scale*w + add*phi. decay scales the weights but not the intercept. Then, also without the
// intercept, |w_j| <- shrink * max(0, |w_j| - soft). Gaussian weights move by add * Sigma * phi, and then
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

// For rules that see the scores of all classes at once: output r moves by coefficients[r] * x.
using SolveFn = void (*)(const Scalars* s, const double* scores, int64_t classes, int64_t y, const double* params,
                         double* state, double* coefficients, Step* step);

}  // namespace onepass
