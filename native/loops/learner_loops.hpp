// The loops that clusterers, nearest neighbours, naive Bayes, dictionaries and mixtures share, one table per
// instruction set. Sums over features run in the features' order for every point, so that all sets give the same bits.
#pragma once
#include <cstddef>
#include <cstdint>

namespace onepass {

// The components of a mixture: joint_k(x) = constant_k + f_k(x - shift), with f the inner product with point_k, or
// -1/2 the squared distance to it: each column's square times its scale, or |A_k(x - point)|^2 with A_k lower
// triangular.
struct Components {
    enum class Form { linear, diagonal, triangular };
    Form form;
    size_t K, d;
    const double *shift, *points, *scales, *constants;  // d, K x d, K x d or K x d x d, K
};
enum class Second { none, diagonal, full };  // which sums of products a mixture wants

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
    // ln sum_k exp(joint_k) of n rows, and each component's part of the sum. `room`: 16 (2 d + K).
    void (*responsibilities)(const Components& c, const double* X, size_t n, double* room, double* likelihood,
                             double* R);
    // Adds sum_i R_ik z_i and the squares or products of z = x - shift, R-weighted too, to K x wide, and K x wide or
    // the lower triangles of K x d x wide numbers; wide is d rounded up to 8. `room`: 16 wide + 16.
    void (*statistics)(const double* X, size_t n, size_t d, const double* shift, const double* R, size_t K,
                       Second second, double* room, double* s1, double* s2);
};

const LearnerLoops* learner_loops_scalar();
const LearnerLoops* learner_loops_avx2();
const LearnerLoops* learner_loops_avx512();
extern const LearnerLoops* learner_loops;  // the instruction set in use

}  // namespace onepass
