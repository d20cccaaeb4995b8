// The passes of LASVM over all slots, one table for each instruction set.
#pragma once
#include <cstddef>

namespace onepass {

// The pair of slots that violates most: of those with alpha < upper the one with the largest gradient, and of those
// with alpha > lower the one with the smallest. The lowest slot of equals.
struct Pair {
    static constexpr size_t none = size_t(-1);
    size_t rise = none, fall = none;
    bool exists() const { return rise != none && fall != none; }
};

struct LasvmLoops {
    const char* name;
    Pair (*find_pair)(const double* alpha, const double* gradient, const double* lower, const double* upper, size_t n);
    // gradient[s] -= step * (k_i[s] - k_j[s])
    void (*update_gradient)(double* gradient, const double* k_i, const double* k_j, double step, size_t n);
    // Writes the slots with alpha = 0 that no pair can violate: y = -1 and gradient >= top, y = +1 and gradient <=
    // bottom. Returns how many there are.
    size_t (*find_removable)(const double* alpha, const double* gradient, const double* lower, const double* upper,
                             size_t n, double top, double bottom, size_t* out);
};

const LasvmLoops* lasvm_loops_scalar();
const LasvmLoops* lasvm_loops_avx2();
const LasvmLoops* lasvm_loops_avx512();
extern const LasvmLoops* lasvm_loops;  // the instruction set in use

}  // namespace onepass
