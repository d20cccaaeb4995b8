// exp of eight numbers at once, or of several eights, from additions and multiplications alone, so that every
// instruction set gives the same bits. The method of fdlibm: x = k*ln 2 + r, a rational function of r, then the
// exponent; below 1 ulp of error. Included once per instruction set, inside namespace ONEPASS_ISA.
#pragma once
#include <cstdint>

#include "loops/lanes.hpp"

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

// As many registers as this go side by side: a step of one need not wait for the last step of the same one.
#ifdef __AVX512F__
constexpr size_t abreast = 4;
#else
constexpr size_t abreast = 1;  // eight numbers are several registers here
#endif

template <size_t count>
inline void exponentials(Eight (&x)[count]) {
    const auto each = [](const auto& step) {
        for (size_t i = 0; i < count; ++i) step(i);
    };
    bool normal = true;
    each([&](size_t i) { normal &= within_normal(x[i]); });
    if (!normal)
        each([&](size_t i) {
            x[i] = larger(all(-746.0), x[i]);  // 0 from here down,
            x[i] = smaller(all(710.0), x[i]);  // infinity from here up
        });
    // Adding 1.5*2^52 rounds to a whole number and leaves it in the low bits.
    const Eight shift = all(0x1.8p52);
    Eight shifted[count], high[count], low[count], r[count], t[count], c[count];
    each([&](size_t i) { shifted[i] = x[i] * 1.44269504088896338700e+00 + shift; });
    each([&](size_t i) {
        const Eight k = shifted[i] - shift;
        high[i] = x[i] - k * 6.93147180369123816490e-01;  // exact: the constant ends in zeros
        low[i] = k * 1.90821492927058770002e-10;
    });
    each([&](size_t i) { r[i] = high[i] - low[i]; });
    each([&](size_t i) { t[i] = r[i] * r[i]; });
    each([&](size_t i) { c[i] = -1.65339022054652515390e-06 + t[i] * 4.13813679705723846039e-08; });
    each([&](size_t i) { c[i] = 6.61375632143793436117e-05 + t[i] * c[i]; });
    each([&](size_t i) { c[i] = -2.77777777770155933842e-03 + t[i] * c[i]; });
    each([&](size_t i) { c[i] = 1.66666666666666019037e-01 + t[i] * c[i]; });
    each([&](size_t i) { c[i] = r[i] - t[i] * c[i]; });
    each([&](size_t i) { x[i] = 1.0 - ((low[i] - (r[i] * c[i]) / (2.0 - c[i])) - high[i]); });
    each([&](size_t i) {
        EightWords word, start;
        std::memcpy(&word, &shifted[i], sizeof word);
        std::memcpy(&start, &shift, sizeof start);
        word -= start;
        if (normal) {
            x[i] *= power_of_two(word);
        } else {
            // In two factors: 2^k alone may be outside the range of doubles. An arithmetic shift by way of a logical
            // one.
            const EightWords half = ((word + 2048) >> 1) - 1024;
            x[i] = x[i] * power_of_two(half) * power_of_two(word - half);
        }
    });
}

inline Eight exponential(Eight x) {
    Eight one[1] = {x};
    exponentials(one);
    return one[0];
}

}  // namespace onepass::ONEPASS_ISA
