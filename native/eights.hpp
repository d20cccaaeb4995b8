// Features of a model of one row, eight at a time: what vectors are made of. In the model all that a feature has lies
// together (weights.hpp); here the weights of eight are one vector, and every plane of them is. Included once per
// instruction set.
#pragma once
#include <cmath>

#include "lanes.hpp"
#include "weights.hpp"

namespace onepass::ONEPASS_ISA {

// The same formula for one number and for eight.
inline double root_of(double x) { return std::sqrt(x); }
inline double size_of(double x) { return std::abs(x); }
inline double with_sign_of(double x, double size) { return std::copysign(size, x); }
inline double choose(bool which, double one, double other) { return which ? one : other; }

typedef int64_t EightBits __attribute__((vector_size(64)));
inline Eight root_of(Eight x) {
#ifdef __AVX512F__
    return Eight(_mm512_maskz_sqrt_pd(0xff, __m512d(x)));
#else
    double all[8];
    std::memcpy(all, &x, sizeof all);
    for (double& one : all) one = std::sqrt(one);
    return load(all);
#endif
}
inline Eight size_of(Eight x) { return Eight(EightBits(x) & INT64_MAX); }
inline Eight with_sign_of(Eight x, double size) {
    return Eight((EightBits(x) & INT64_MIN) | EightBits(size_of(Eight{} + size)));
}
inline bool any(EightBits which) {
#ifdef __AVX512F__
    return _mm512_test_epi64_mask(__m512i(which), __m512i(which)) != 0;
#else
    int64_t some = 0;
    for (int l = 0; l < 8; ++l) some |= which[l];
    return some != 0;
#endif
}
inline Eight choose(EightBits which, Eight one, Eight other) { return which ? one : other; }

template <class X>
inline Eight load_eight(X x) {
    return load(x);
}
// Fewer than eight, zeros after them.
template <class X>
inline Eight load_eight(X x, size_t count) {
#ifdef __AVX512F__
    return load(x, Rest(count).low);
#else
    double all[8] = {};
    for (size_t l = 0; l < count; ++l) all[l] = double(x[l]);
    return load(all);
#endif
}

inline Eight both(Four low, Four high) { return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7); }

// Rows into columns, and back.
inline void transpose(Four (&m)[4]) {
    const Four a = __builtin_shufflevector(m[0], m[1], 0, 4, 2, 6), b = __builtin_shufflevector(m[0], m[1], 1, 5, 3, 7);
    const Four c = __builtin_shufflevector(m[2], m[3], 0, 4, 2, 6), d = __builtin_shufflevector(m[2], m[3], 1, 5, 3, 7);
    m[0] = __builtin_shufflevector(a, c, 0, 1, 4, 5);
    m[1] = __builtin_shufflevector(b, d, 0, 1, 4, 5);
    m[2] = __builtin_shufflevector(a, c, 2, 3, 6, 7);
    m[3] = __builtin_shufflevector(b, d, 2, 3, 6, 7);
}

template <size_t planes>
struct Eights {
    static constexpr size_t width = 8, numbers = (1 + planes) * width, pitch = Weights::pitch_of(planes, 1);
    static_assert(pitch <= 4);

    // Features from the row's place i on, all eight or so many.
    template <class Row, class... Count>
    static void load(const double* cells, const Row& row, size_t i, Eight* out, Count... count) {
        Four low[4], high[4];
        for (size_t l = 0; l < 4; ++l) {
            low[l] = cell(cells + column_of(row, i, l, count...) * pitch);
            high[l] = cell(cells + column_of(row, i, 4 + l, count...) * pitch);
        }
        transpose(low);
        transpose(high);
        for (size_t p = 0; p <= planes; ++p) out[p] = both(low[p], high[p]);
    }

    // Back to where they came from, the first one last: it has the last word about its place.
    template <class Row, class... Count>
    static void store(double* __restrict cells, const Row& row, size_t i, const double* in, Count... count) {
        for (size_t half = 8; half > 0;) {
            half -= 4;
            Four four[4] = {};
            for (size_t p = 0; p <= planes; ++p) four[p] = load_four(in + p * width + half);
            transpose(four);
            for (size_t l = 4; l-- > 0;)
                std::memcpy(cells + column_of(row, i, half + l, count...) * pitch, &four[l], pitch * sizeof(double));
        }
    }

 private:
    static Four cell(const double* at) {
        if constexpr (pitch == 4) return load_four(at);
        else if constexpr (pitch == 1) return Four{at[0]};
        else return __builtin_shufflevector(load_two(at), Two{}, 0, 1, 2, 3);
    }
};

}  // namespace onepass::ONEPASS_ISA
