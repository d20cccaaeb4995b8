// exp of eight numbers at once, from additions and multiplications alone, so that every instruction set gives the same
// bits. The method of fdlibm: x = k*ln 2 + r, a rational function of r, then the exponent; below 1 ulp of error.
// Included once per instruction set, inside namespace ONEPASS_ISA.
#pragma once
#include <cstdint>

#include "lanes.hpp"

namespace onepass::ONEPASS_ISA {

typedef uint64_t EightWords __attribute__((vector_size(64)));

inline Eight all(double x) { return Eight{x, x, x, x, x, x, x, x}; }

// 2^k for k in -1022..1023, as words.
inline Eight power_of_two(EightWords k) {
    const EightWords bits = (k + 1023) << 52;
    Eight out;
    std::memcpy(&out, &bits, sizeof out);
    return out;
}

// Are all lanes within 2^k of normal numbers? Only asked where the answer is cheap.
inline bool within_normal([[maybe_unused]] Eight x) {
#ifdef __AVX512F__
    return _mm512_cmp_pd_mask(_mm512_abs_pd(__m512d(x)), _mm512_set1_pd(708.0), _CMP_LT_OQ) == 0xff;
#else
    return false;
#endif
}

inline Eight exponential(Eight x) {
    const bool normal = within_normal(x);
    if (!normal) {
        x = x < all(-746.0) ? all(-746.0) : x;  // 0 from here down,
        x = x > all(710.0) ? all(710.0) : x;    // infinity from here up
    }
    // Adding 1.5*2^52 rounds to a whole number and leaves it in the low bits.
    const Eight shift = all(0x1.8p52);
    const Eight shifted = x * 1.44269504088896338700e+00 + shift;
    const Eight k = shifted - shift;
    EightWords word, start;
    std::memcpy(&word, &shifted, sizeof word);
    std::memcpy(&start, &shift, sizeof start);
    word -= start;
    const Eight high = x - k * 6.93147180369123816490e-01;  // exact: the constant ends in zeros
    const Eight low = k * 1.90821492927058770002e-10;
    const Eight r = high - low, t = r * r;
    const Eight c = r - t * (1.66666666666666019037e-01 +
                             t * (-2.77777777770155933842e-03 +
                                  t * (6.61375632143793436117e-05 +
                                       t * (-1.65339022054652515390e-06 + t * 4.13813679705723846039e-08))));
    const Eight y = 1.0 - ((low - (r * c) / (2.0 - c)) - high);
    if (normal) return y * power_of_two(word);
    // In two factors: 2^k alone may be outside the range of doubles. An arithmetic shift by way of a logical one.
    const EightWords half = ((word + 2048) >> 1) - 1024;
    return y * power_of_two(half) * power_of_two(word - half);
}

}  // namespace onepass::ONEPASS_ISA
