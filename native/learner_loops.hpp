// The loops that clusterers, nearest neighbours, naive Bayes and dictionaries share, one table per instruction set.
// Sums over features run in the features' order for every point, so that all sets give the same bits.
#pragma once
#include <cstddef>
#include <cstdint>

namespace onepass {

struct LearnerLoops {
    const char* name;
    // out[i * stride + k] = |x_i - p_k|^2, the points being the columns of a d x stride table; stride % 16 == 0.
    void (*distances)(const double* X, size_t n, size_t d, const double* points, size_t stride, double* out);
    // The nearest of the first K points, the lowest of equals, and its squared distance.
    void (*nearest)(const double* X, size_t n, size_t d, const double* points, size_t K, size_t stride, int64_t* at,
                    double* distance);
    // to += scale * (x - from)
    void (*towards)(double* to, const double* x, const double* from, double scale, size_t d);
    // Welford's update of weighted moments of the numbers that are not zero.
    void (*moments)(const double* x, double w, double* mass, double* mean, double* square, size_t d);
    // to += scale * x
    void (*add)(double* to, const double* x, double scale, size_t d);
    double (*dot)(const double* x, const double* v, size_t d);
};

const LearnerLoops* learner_loops_scalar();
const LearnerLoops* learner_loops_avx2();
const LearnerLoops* learner_loops_avx512();
extern const LearnerLoops* learner_loops;  // the instruction set in use

}  // namespace onepass
