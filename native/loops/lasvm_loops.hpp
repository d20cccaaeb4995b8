// The passes of LASVM over its set S, one table per instruction set.
#pragma once
#include <cstddef>

namespace onepass {

// The slot that may rise with the largest gradient, and the one that may fall with the smallest; the lowest of several.
struct Extremes {
    static constexpr size_t none = size_t(-1);
    size_t rise = none, fall = none;
};

struct LasvmLoops {
    const char* name;
    Extremes (*extremes)(const double* alpha, const double* gradient, const double* lower, const double* upper,
                         size_t n);
    // gradient[s] -= step * (k_i[s] - k_j[s])
    void (*descend)(double* gradient, const double* k_i, const double* k_j, double step, size_t n);
    // Slots with alpha = 0 that can violate nothing: y = -1 and gradient >= top, y = +1 and gradient <= bottom.
    size_t (*useless)(const double* alpha, const double* gradient, const double* lower, const double* upper, size_t n,
                      double top, double bottom, size_t* out);
};

const LasvmLoops* lasvm_loops_scalar();
const LasvmLoops* lasvm_loops_avx2();
const LasvmLoops* lasvm_loops_avx512();
extern const LasvmLoops* lasvm_loops;  // the instruction set in use

}  // namespace onepass
