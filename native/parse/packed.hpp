// The loops of parse/namespace_reader.cpp in registers of 64 characters, 16 names or 8 numbers, for processors with
// AVX-512 VBMI2. The same hashes and the same bits.
#pragma once
#include "core/clones.hpp"
#ifdef ONEPASS_CLONED
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // GCC 12's own header: registers that start undefined
#include <immintrin.h>

#include <bit>
#include <cstddef>
#include <cstdint>

#include "parse/hash.hpp"

#define ONEPASS_PACKED __attribute__((target("arch=x86-64-v4,avx512vbmi2")))

namespace onepass::packed {

inline bool supported() { return __builtin_cpu_supports("avx512vbmi2"); }

// -- characters -------------------------------------------------------------------------------------------------------

// Writes the places of a mask's bits, plus `from`, and returns the end of what it wrote. May write 16 more.
ONEPASS_PACKED inline uint32_t* write_places(uint64_t mask, size_t from, uint32_t* out) {
    if (!mask) return out;
    alignas(64) static constexpr auto each = [] {
        struct {
            char at[64];
        } places{};
        for (int i = 0; i < 64; ++i) places.at[i] = char(i);
        return places;
    }();
    __m512i places = _mm512_maskz_compress_epi8(mask, _mm512_load_si512(each.at));
    uint32_t* const end = out + std::popcount(mask);
    for (; out < end; out += 16) {
        const __m512i wide = _mm512_cvtepu8_epi32(_mm512_castsi512_si128(places));
        _mm512_storeu_si512(out, _mm512_add_epi32(wide, _mm512_set1_epi32(int(from))));
        places = _mm512_shuffle_i64x2(places, places, 0x39);  // the next 16 characters
    }
    return end;
}

// The end of the line at p, which has one, and whether all of the line is ASCII. Reads up to 63 characters beyond.
ONEPASS_PACKED inline const char* find_newline(const char* p, bool& ascii) {
    uint64_t high = 0;
    for (;; p += 64) {
        const __m512i c = _mm512_loadu_si512(p);
        const uint64_t end = _mm512_cmpeq_epi8_mask(c, _mm512_set1_epi8('\n')), beyond = _mm512_movepi8_mask(c);
        if (end) {
            ascii = (high | (beyond & ((end & -end) - 1))) == 0;
            return p + std::countr_zero(end);
        }
        high |= beyond;
    }
}

// -- names ------------------------------------------------------------------------------------------------------------

constexpr size_t lanes = 16;
constexpr uint32_t longest = 48;

// Four bytes of each of sixteen names, four times: bytes 0 to 3, 4 to 7, ...
ONEPASS_PACKED inline void load_names(const char* from, const uint32_t* at, __m512i (&fours)[4]) {
    __m512i rows[4];
    for (int i = 0; i < 4; ++i) {
        const auto name = [&](int k) ONEPASS_PACKED {
            return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + at[i + k]));
        };
        rows[i] = _mm512_inserti32x4(_mm512_castsi128_si512(name(0)), name(4), 1);
        rows[i] = _mm512_inserti32x4(_mm512_inserti32x4(rows[i], name(8), 2), name(12), 3);
    }
    const __m512i low = _mm512_unpacklo_epi32(rows[0], rows[1]), low2 = _mm512_unpacklo_epi32(rows[2], rows[3]);
    const __m512i high = _mm512_unpackhi_epi32(rows[0], rows[1]), high2 = _mm512_unpackhi_epi32(rows[2], rows[3]);
    fours[0] = _mm512_unpacklo_epi64(low, low2);
    fours[1] = _mm512_unpackhi_epi64(low, low2);
    fours[2] = _mm512_unpacklo_epi64(high, high2);
    fours[3] = _mm512_unpackhi_epi64(high, high2);
}

// The next sixteen bytes of murmur3, of which each name has `left`. Four whole bytes rotate the hash, fewer do not.
ONEPASS_PACKED inline __m512i mix(__m512i h, const __m512i (&fours)[4], __m512i left) {
    // `left` in each byte, to be compared with the places of the bytes; negative where none is left.
    const __m512i in_bytes = _mm512_shuffle_epi8(left, _mm512_set4_epi32(0x0C0C0C0C, 0x08080808, 0x04040404, 0));
    for (int k = 0; k < 4; ++k) {
        if (k == 3 && !_mm512_cmpgt_epi32_mask(left, _mm512_set1_epi32(12))) break;
        const __m512i places = _mm512_set1_epi32(0x03020100 + 0x04040404 * k);
        const __m512i four = _mm512_maskz_mov_epi8(_mm512_cmpgt_epi8_mask(in_bytes, places), fours[k]);
        const __m512i m = _mm512_mullo_epi32(four, _mm512_set1_epi32(int(0xcc9e2d51)));
        h = _mm512_xor_si512(h, _mm512_mullo_epi32(_mm512_rol_epi32(m, 15), _mm512_set1_epi32(0x1b873593)));
        const __m512i turned = _mm512_rol_epi32(h, 13);
        const __m512i by_five = _mm512_add_epi32(turned, _mm512_slli_epi32(turned, 2));
        h = _mm512_mask_add_epi32(h, _mm512_cmpgt_epi32_mask(left, _mm512_set1_epi32(4 * k + 3)), by_five,
                                  _mm512_set1_epi32(int(0xe6546b64)));
    }
    return h;
}

ONEPASS_PACKED inline __m512i mix_last(__m512i h) {
    h = _mm512_mullo_epi32(_mm512_xor_si512(h, _mm512_srli_epi32(h, 16)), _mm512_set1_epi32(int(0x85ebca6b)));
    h = _mm512_mullo_epi32(_mm512_xor_si512(h, _mm512_srli_epi32(h, 13)), _mm512_set1_epi32(int(0xc2b2ae35)));
    return _mm512_xor_si512(h, _mm512_srli_epi32(h, 16));
}

// Names beyond their first sixteen bytes. Few are so long, and the loop over the others is faster without this code.
ONEPASS_PACKED __attribute__((noinline)) inline __m512i mix_long(__m512i h, const char* from, const uint32_t* at,
                                                                 __m512i size) {
    for (int done = 16; _mm512_cmpgt_epi32_mask(size, _mm512_set1_epi32(done)); done += 16) {
        __m512i fours[4];
        load_names(from + done, at, fours);
        h = mix(h, fours, _mm512_sub_epi32(size, _mm512_set1_epi32(done)));
    }
    return h;
}

// murmur3 of prefix + name for the n names that begin after blanks[i] and end at ends[i]; both arrays have sixteen more
// entries. False where a name is empty or too long. `digits`: does any name begin with a digit?
ONEPASS_PACKED inline bool hash_names(const char* text, const uint32_t* blanks, const uint32_t* ends, size_t n,
                                      const PrefixHash::Begun& prefix, int32_t* out, bool& digits) {
    const uint32_t rest = prefix.rest;  // bytes of the prefix that are hashed together with a name's first
    const char* const from = text + 1 - rest;
    const __m512i begun = _mm512_set1_epi32(int(prefix.hash)), carry = _mm512_set1_epi32(int(prefix.carry));
    const __m512i own = _mm512_set1_epi32(int(~uint32_t(0) << 8 * rest));
    const __m512i before = _mm512_set1_epi32(int(prefix.length - rest));
    const __m128i shift = _mm_cvtsi32_si128(int(8 * rest));
    __mmask16 beginning = 0;
    for (size_t i = 0; i < n; i += lanes) {
        const __mmask16 here = n - i < lanes ? __mmask16((1u << (n - i)) - 1) : __mmask16(0xFFFF);
        const __m512i length = _mm512_sub_epi32(_mm512_loadu_si512(ends + i), _mm512_loadu_si512(blanks + i));
        const __m512i size = _mm512_maskz_add_epi32(here, length, _mm512_set1_epi32(int(rest) - 1));
        if (_mm512_mask_cmple_epi32_mask(here, length, _mm512_set1_epi32(1)) |
            _mm512_cmpgt_epi32_mask(size, _mm512_set1_epi32(longest)))
            return false;
        __m512i fours[4];
        load_names(from, blanks + i, fours);
        const __m512i first = _mm512_srl_epi32(fours[0], shift);
        const __m512i digit =
            _mm512_and_si512(_mm512_sub_epi32(first, _mm512_set1_epi32('0')), _mm512_set1_epi32(0xFF));
        beginning |= _mm512_mask_cmplt_epu32_mask(here, digit, _mm512_set1_epi32(10));
        fours[0] = _mm512_or_si512(_mm512_and_si512(fours[0], own), carry);
        __m512i h = mix(begun, fours, size);
        if (_mm512_cmpgt_epi32_mask(size, _mm512_set1_epi32(16))) [[unlikely]]
            h = mix_long(h, from, blanks + i, size);
        h = _mm512_xor_si512(h, _mm512_add_epi32(size, before));
        _mm512_mask_storeu_epi32(out + i, here, mix_last(h));
    }
    digits = beginning != 0;
    return true;
}

// -- numbers ----------------------------------------------------------------------------------------------------------

// Eight characters at each of eight places.
ONEPASS_PACKED inline __m512i load_eights(const char* from, const uint32_t* at) {
    const auto two = [&](int k) ONEPASS_PACKED {
        const __m128i low = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from + at[k]));
        return _mm_castpd_si128(_mm_loadh_pd(_mm_castsi128_pd(low), reinterpret_cast<const double*>(from + at[k + 1])));
    };
    const __m256i low = _mm256_inserti128_si256(_mm256_castsi128_si256(two(0)), two(2), 1);
    const __m256i high = _mm256_inserti128_si256(_mm256_castsi128_si256(two(4)), two(6), 1);
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}
ONEPASS_PACKED inline __m512i unused_bits(__m512i size) {
    return _mm512_sub_epi64(_mm512_set1_epi64(64), _mm512_slli_epi64(size, 3));
}

// The lanes from i on that are below n; and the lengths of the texts between two arrays of places.
ONEPASS_PACKED inline __mmask8 lanes_of(size_t n, size_t i) {
    return n - i < 8 ? __mmask8((1u << (n - i)) - 1) : __mmask8(0xFF);
}
ONEPASS_PACKED inline __m512i sizes(const uint32_t* from, const uint32_t* to) {
    const __m256i begin = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
    const __m256i end = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(to));
    return _mm512_cvtepi32_epi64(_mm256_sub_epi32(_mm256_sub_epi32(end, begin), _mm256_set1_epi32(1)));
}
ONEPASS_PACKED inline __mmask8 not_1_to_8(__m512i size) {
    return _mm512_cmpgt_epu64_mask(_mm512_sub_epi64(size, _mm512_set1_epi64(1)), _mm512_set1_epi64(7));
}

// Lanes where some of eight bytes is not a digit 0 to 9; and the number that eight digits make, the first in the lowest
// byte.
ONEPASS_PACKED inline __mmask8 not_all_digits(__m512i t) {
    const __m512i beyond = _mm512_subs_epu8(t, _mm512_set1_epi8(9));
    return _mm512_test_epi64_mask(beyond, beyond);
}
ONEPASS_PACKED inline __m512i number_of(__m512i t) {
    const __m512i twos = _mm512_maddubs_epi16(t, _mm512_set1_epi16(10 | 1 << 8));
    const __m512i fours = _mm512_madd_epi16(twos, _mm512_set1_epi32(100 | 1 << 16));
    return _mm512_add_epi64(_mm512_mul_epu32(fours, _mm512_set1_epi64(10000)), _mm512_srli_epi64(fours, 32));
}

// Names of at most eight digits, as their numbers plus `origin`. False where any name is something else.
ONEPASS_PACKED inline bool whole_numbers(const char* text, const uint32_t* blanks, const uint32_t* ends,
                                         uint32_t origin, int32_t* out, size_t n) {
    uint32_t bad = 0;
    for (size_t i = 0; i < n; i += 8) {
        const __mmask8 here = lanes_of(n, i);
        const __m512i size = sizes(blanks + i, ends + i);
        const __m512i digits = _mm512_xor_si512(load_eights(text + 1, blanks + i), _mm512_set1_epi8('0'));
        const __m512i t = _mm512_sllv_epi64(digits, unused_bits(size));
        bad |= here & (not_all_digits(t) | not_1_to_8(size));
        const __m256i number = _mm512_cvtepi64_epi32(number_of(t));
        _mm256_mask_storeu_epi32(out + i, here, _mm256_add_epi32(number, _mm256_set1_epi32(int(origin))));
    }
    return bad == 0;
}

// Numbers of at most eight characters, [-] digits [. digits], correctly rounded as in parse/number.hpp. False where any
// is something else. `zeros`: is any of them 0?
ONEPASS_PACKED inline bool short_numbers(const char* text, const uint32_t* colons, const uint32_t* ends, double* out,
                                         size_t n, bool& zeros) {
    const __m512d tens = _mm512_setr_pd(1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7);
    const __m512i none = _mm512_setzero_si512(), ones = _mm512_set1_epi8(1);
    uint32_t bad = 0, zero = 0;
    for (size_t i = 0; i < n; i += 8) {
        const __mmask8 here = lanes_of(n, i);
        const __m512i size = sizes(colons + i, ends + i), eights = load_eights(text + 1, colons + i);
        const __m512i first = _mm512_and_si512(eights, _mm512_set1_epi64(0xFF));
        const __mmask8 negative = _mm512_cmpeq_epi64_mask(first, _mm512_set1_epi64('-'));
        __m512i t = _mm512_xor_si512(eights, _mm512_set1_epi8('0'));
        t = _mm512_mask_and_epi64(t, negative, t, _mm512_set1_epi64(~int64_t(0xFF)));  // the sign is a leading 0
        t = _mm512_sllv_epi64(t, unused_bits(size));
        // The digits before the first point move up by one place, over the point.
        const __m512i points = _mm512_maskz_mov_epi8(_mm512_cmpeq_epi8_mask(t, _mm512_set1_epi8('.' ^ '0')), ones);
        const __m512i point = _mm512_and_si512(points, _mm512_sub_epi64(none, points));
        const __mmask8 pointed = _mm512_test_epi64_mask(point, point);
        const __m512i before = _mm512_sub_epi64(point, _mm512_set1_epi64(1));
        const __m512i up_to = _mm512_sub_epi64(_mm512_slli_epi64(point, 8), _mm512_set1_epi64(1));
        t = _mm512_mask_or_epi64(t, pointed, _mm512_andnot_si512(up_to, t),
                                 _mm512_slli_epi64(_mm512_and_si512(before, t), 8));
        const __m512i places = _mm512_srli_epi64(_mm512_lzcnt_epi64(point), 3);  // after it; 8, that is 0, without
        const __m512i marks =
            _mm512_add_epi64(_mm512_maskz_set1_epi64(negative, 1), _mm512_maskz_set1_epi64(pointed, 1));
        bad |= here & (not_all_digits(t) | not_1_to_8(size) | _mm512_cmpeq_epi64_mask(size, marks));
        const __m512i digits = number_of(t);
        zero |= here & _mm512_testn_epi64_mask(digits, digits);
        const __m512d size_of = _mm512_div_pd(_mm512_cvtepi64_pd(digits), _mm512_permutexvar_pd(places, tens));
        const __m512d signs = _mm512_castsi512_pd(_mm512_maskz_set1_epi64(negative, int64_t(uint64_t(1) << 63)));
        _mm512_mask_storeu_pd(out + i, here, _mm512_or_pd(size_of, signs));
    }
    zeros = zero != 0;
    return bad == 0;
}

}  // namespace onepass::packed
#endif
