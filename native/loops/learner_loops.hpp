// Loops of clustering, nearest neighbours, naive Bayes, dictionaries and mixtures, one table for each instruction set.
// Sums over features are added in the order of the features, so that all instruction sets give the same bits.
#pragma once
#include <cstddef>
#include <cstdint>

namespace onepass {

// The components of a mixture: ln p(k, x) = constant_k + f_k(x - shift). f_k depends on the form:
//   linear      <point_k, z>
//   diagonal    -1/2 sum_j scale_kj (z_j - point_kj)^2
//   triangular  -1/2 |A_k (z - point_k)|^2 with A_k lower triangular, stored as scales
struct Components {
    enum class Form { linear, diagonal, triangular };
    Form form;
    size_t K, d;
    const double *shift, *points, *scales, *constants;  // of d, K x d, K x d (or K x d x d), and K numbers
};
enum class Second { none, diagonal, full };  // the second moments that a mixture needs: none, squares, all products

struct LearnerLoops {
    const char* name;
    // out[i * stride + k] = |x_i - p_k|^2. The points are the columns of a d x stride table; stride % 16 == 0.
    void (*distances)(const double* X, size_t n, size_t d, const double* points, size_t stride, double* out);
    // The nearest of the first K points, the lowest index of equals, and its squared distance.
    void (*nearest)(const double* X, size_t n, size_t d, const double* points, size_t K, size_t stride, int64_t* at,
                    double* distance);
    // to += scale * (x - from)
    void (*towards)(double* to, const double* x, const double* from, double scale, size_t d);
    // Welford's update of weighted moments. Zeros are not counted.
    void (*moments)(const double* x, double w, double* mass, double* mean, double* square, size_t d);
    // to += scale * x
    void (*add)(double* to, const double* x, double scale, size_t d);
    double (*dot)(const double* x, const double* v, size_t d);
    // likelihood = ln p(x) of n rows, and R = p(k | x). `workspace` has 16 (2 d + K) numbers.
    void (*responsibilities)(const Components& c, const double* X, size_t n, double* workspace, double* likelihood,
                             double* R);
    // With z = x - shift: adds sum_i R_ik z_i to s1 (K x wide), and the sum of R_ik times the squares of z (K x wide)
    // or the lower triangle of z z' (K x d x wide) to s2. wide is d rounded up to 8; `workspace` has 16 wide + 16
    // numbers.
    void (*statistics)(const double* X, size_t n, size_t d, const double* shift, const double* R, size_t K,
                       Second second, double* workspace, double* s1, double* s2);
};

const LearnerLoops* learner_loops_scalar();
const LearnerLoops* learner_loops_avx2();
const LearnerLoops* learner_loops_avx512();
extern const LearnerLoops* learner_loops;  // the instruction set in use

}  // namespace onepass
