// Compiled once per instruction set; ONEPASS_ISA is its name.
#include "loops/learner_loops.hpp"

#include "loops/lanes.hpp"
#include "loops/mixture.hpp"

namespace onepass::ONEPASS_ISA {
namespace {

// Squared distances of R rows from 16 points at a time, given to take(row, first point, low eight, high eight). The
// numbers of a point are loaded once for all R rows.
template <size_t R, class Take>
inline void distances_of_rows(const double* X, size_t d, const double* points, size_t stride, const Take& take) {
    for (size_t k = 0; k < stride; k += 16) {
        Eight low[R] = {}, high[R] = {};
        for (size_t j = 0; j < d; ++j) {
            const Eight p0 = load(points + j * stride + k), p1 = load(points + j * stride + k + 8);
            for (size_t r = 0; r < R; ++r) {
                const Eight x = all(X[r * d + j]), a = x - p0, b = x - p1;
                low[r] += a * a;
                high[r] += b * b;
            }
        }
        for (size_t r = 0; r < R; ++r) take(r, k, low[r], high[r]);
    }
}

template <class Take>
inline void distances_of_table(const double* X, size_t n, size_t d, const double* points, size_t stride,
                               const Take& take) {
    size_t i = 0;
    for (; i + 4 <= n; i += 4)
        distances_of_rows<4>(X + i * d, d, points, stride,
                             [&](size_t r, size_t k, Eight low, Eight high) { take(i + r, k, low, high); });
    for (; i < n; ++i)
        distances_of_rows<1>(X + i * d, d, points, stride,
                             [&](size_t, size_t k, Eight low, Eight high) { take(i, k, low, high); });
}

void distances(const double* X, size_t n, size_t d, const double* points, size_t stride, double* out) {
    distances_of_table(X, n, d, points, stride, [=](size_t i, size_t k, Eight low, Eight high) {
        put(out + i * stride + k, low);
        put(out + i * stride + k + 8, high);
    });
}

void nearest(const double* X, size_t n, size_t d, const double* points, size_t K, size_t stride, int64_t* at,
             double* distance) {
    distances_of_table(X, n, d, points, stride, [=](size_t i, size_t k, Eight low, Eight high) {
        double here[16];
        put(here, low);
        put(here + 8, high);
        if (k == 0) at[i] = 0, distance[i] = here[0];
        for (size_t l = 0; l < 16 && k + l < K; ++l)
            if (here[l] < distance[i]) at[i] = int64_t(k + l), distance[i] = here[l];
    });
}

void towards(double* to, const double* x, const double* from, double scale, size_t d) {
    for (size_t j = 0; j < d; ++j) to[j] += scale * (x[j] - from[j]);
}

void add(double* to, const double* x, double scale, size_t d) {
    for (size_t j = 0; j < d; ++j) to[j] += scale * x[j];
}

double dot(const double* x, const double* v, size_t d) { return dot_norm(x, d, v).dot; }

void moments(const double* x, double w, double* mass, double* mean, double* square, size_t d) {
    size_t j = 0;
    for (; j + 8 <= d; j += 8) {
        const Eight here = load(x + j), zero{}, before = load(mean + j);
        const Eight m = load(mass + j) + (here != zero ? all(w) : zero), delta = here - before;
        const Eight after = before + (here != zero ? w * delta / m : zero);
        put(square + j, load(square + j) + (here != zero ? w * delta * (here - after) : zero));
        put(mean + j, after);
        put(mass + j, m);
    }
    for (; j < d; ++j) {
        if (x[j] == 0.0) continue;
        const double delta = x[j] - mean[j];
        mass[j] += w;
        mean[j] += w * delta / mass[j];
        square[j] += w * delta * (x[j] - mean[j]);
    }
}

}  // namespace
}  // namespace onepass::ONEPASS_ISA

#define ONEPASS_JOIN(a, b) a##b
#define ONEPASS_NAME(a, b) ONEPASS_JOIN(a, b)
#define ONEPASS_TEXT(a) #a
#define ONEPASS_STRING(a) ONEPASS_TEXT(a)

namespace onepass {

const LearnerLoops* ONEPASS_NAME(learner_loops_, ONEPASS_ISA)() {
    static const LearnerLoops loops = {
        ONEPASS_STRING(ONEPASS_ISA), ONEPASS_ISA::distances, ONEPASS_ISA::nearest, ONEPASS_ISA::towards,
        ONEPASS_ISA::moments,        ONEPASS_ISA::add,       ONEPASS_ISA::dot,     ONEPASS_ISA::responsibilities,
        ONEPASS_ISA::statistics};
    return &loops;
}

}  // namespace onepass
