// Reductions in 16 fixed lanes: element i goes to lane i mod 16, the lanes are added as a tree. Every instruction set
// adds the same numbers in the same order, so scalar, AVX2 and AVX-512 builds give the same bits.
// Included once per instruction set, inside namespace ONEPASS_ISA.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#ifdef __AVX512F__
#include <immintrin.h>
#endif

namespace onepass::ONEPASS_ISA {

constexpr size_t lanes = 16;
typedef double Eight __attribute__((vector_size(64)));
typedef float EightFloats __attribute__((vector_size(32)));

inline Eight load(const double* p) {
    Eight out;
    std::memcpy(&out, p, sizeof out);
    return out;
}

inline Eight load(const float* p) {
    EightFloats out;
    std::memcpy(&out, p, sizeof out);
    return __builtin_convertvector(out, Eight);
}

template <class I>
inline Eight gather(const double* v, const I* index) {
    return Eight{v[index[0]], v[index[1]], v[index[2]], v[index[3]],
                 v[index[4]], v[index[5]], v[index[6]], v[index[7]]};
}

struct Sum {
    Eight low{}, high{};

    double total() const {
        const Eight all = low + high;
        double lane[8];
        std::memcpy(lane, &all, sizeof lane);
        return ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
    }
};

#ifdef __AVX512F__
// The last elements of a row, fewer than 16 of them, zeros after it: one masked load instead of a loop whose length the
// processor would have to guess.
struct Rest {
    __mmask8 low, high;
    explicit Rest(size_t count) {
        const uint32_t mask = (1u << count) - 1u;
        low = __mmask8(mask);
        high = __mmask8(mask >> 8);
    }
};

inline Eight load(const double* p, __mmask8 mask) { return Eight(_mm512_maskz_loadu_pd(mask, p)); }
inline Eight load(const float* p, __mmask8 mask) { return Eight(_mm512_cvtps_pd(_mm256_maskz_loadu_ps(mask, p))); }
inline Eight gather(const double* v, const int32_t* index, __mmask8 mask) {
    return Eight(_mm512_mask_i32gather_pd(_mm512_setzero_pd(), mask, _mm256_maskz_loadu_epi32(mask, index), v, 8));
}
inline Eight gather(const double* v, const int64_t* index, __mmask8 mask) {
    return Eight(_mm512_mask_i64gather_pd(_mm512_setzero_pd(), mask, _mm512_maskz_loadu_epi64(mask, index), v, 8));
}
#endif

struct DotNorm {
    double dot, norm;  // x.v and x.x
};

// Where a row's weights are: next to each other, or at its indices.
struct Dense {
    const double* v;
    double at(size_t i) const { return v[i]; }
    Eight eight(size_t i) const { return load(v + i); }
#ifdef __AVX512F__
    Eight eight(size_t i, __mmask8 mask) const { return load(v + i, mask); }
#endif
};

template <class I>
struct Indexed {
    const double* v;
    const I* index;
    double at(size_t i) const { return v[index[i]]; }
    Eight eight(size_t i) const { return gather(v, index + i); }
#ifdef __AVX512F__
    Eight eight(size_t i, __mmask8 mask) const { return gather(v, index + i, mask); }
#endif
};

template <class V, class Weights>
inline DotNorm dot_norm(const V* x, size_t n, const Weights& weights) {
    Sum dot, norm;
    size_t i = 0;
    for (; i + lanes <= n; i += lanes) {
        const Eight x0 = load(x + i), x1 = load(x + i + 8);
        dot.low += x0 * weights.eight(i);
        dot.high += x1 * weights.eight(i + 8);
        norm.low += x0 * x0;
        norm.high += x1 * x1;
    }
#ifdef __AVX512F__
    if (i < n) {
        const Rest rest(n - i);
        const Eight x0 = load(x + i, rest.low), x1 = load(x + i + 8, rest.high);
        dot.low += x0 * weights.eight(i, rest.low);
        dot.high += x1 * weights.eight(i + 8, rest.high);
        norm.low += x0 * x0;
        norm.high += x1 * x1;
    }
#else
    if (i < n) {
        double dots[lanes], norms[lanes];
        std::memcpy(dots, &dot, sizeof dots);
        std::memcpy(norms, &norm, sizeof norms);
        for (size_t l = 0; i + l < n; ++l) {
            const double value = double(x[i + l]);
            dots[l] += value * weights.at(i + l);
            norms[l] += value * value;
        }
        std::memcpy(&dot, dots, sizeof dots);
        std::memcpy(&norm, norms, sizeof norms);
    }
#endif
    return {dot.total(), norm.total()};
}

template <class V>
inline double norm(const V* x, size_t n) {
    Sum sum;
    size_t i = 0;
    for (; i + lanes <= n; i += lanes) {
        const Eight x0 = load(x + i), x1 = load(x + i + 8);
        sum.low += x0 * x0;
        sum.high += x1 * x1;
    }
    if (i < n) {
        double sums[lanes];
        std::memcpy(sums, &sum, sizeof sums);
        for (size_t l = 0; i + l < n; ++l) sums[l] += double(x[i + l]) * double(x[i + l]);
        std::memcpy(&sum, sums, sizeof sums);
    }
    return sum.total();
}

}  // namespace onepass::ONEPASS_ISA
