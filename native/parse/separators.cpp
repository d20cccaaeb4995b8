#include "parse/separators.hpp"
#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace onepass {

#ifdef __SSE2__
using Carets = __m128i;
static bool any(Carets carets) { return _mm_movemask_epi8(carets) != 0; }
static uint64_t separators_in_16(const char* p, Carets& carets) {
    const __m128i c = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    carets = _mm_or_si128(carets, _mm_cmpeq_epi8(c, _mm_set1_epi8('^')));
    const __m128i low = _mm_cmpeq_epi8(_mm_min_epu8(c, _mm_set1_epi8(' ')), c);
    const __m128i marks = _mm_or_si128(_mm_cmpeq_epi8(c, _mm_set1_epi8(':')), _mm_cmpeq_epi8(c, _mm_set1_epi8('|')));
    return uint64_t(_mm_movemask_epi8(_mm_or_si128(low, marks)));
}
static uint64_t separators_in_64(const char* p, Carets& carets) {
    return separators_in_16(p, carets) | separators_in_16(p + 16, carets) << 16 |
           separators_in_16(p + 32, carets) << 32 | separators_in_16(p + 48, carets) << 48;
}
#else
using Carets = bool;
static bool any(Carets carets) { return carets; }
static uint64_t separators_in_64(const char* p, Carets& carets) {
    uint64_t found = 0;
    for (int i = 0; i < 64; ++i) {
        found |= uint64_t(uint8_t(p[i]) <= ' ' || p[i] == ':' || p[i] == '|') << i;
        carets |= p[i] == '^';
    }
    return found;
}
#endif

// Not every x86-64 processor has an instruction for this.
static int count_bits(uint64_t x) {
    x -= x >> 1 & 0x5555555555555555u;
    x = (x & 0x3333333333333333u) + (x >> 2 & 0x3333333333333333u);
    return int(((x + (x >> 4)) & 0x0F0F0F0F0F0F0F0Fu) * 0x0101010101010101u >> 56);
}

const uint32_t* Separators::find(const char* line, size_t length) {
    if (at_.size() < length + 80) at_.resize(2 * length + 80);
    uint32_t* out = at_.data();
    Carets carets{};
    for (size_t from = 0; from < length; from += 64) {
        uint64_t found = separators_in_64(line + from, carets);
        if (length - from < 64) found &= (uint64_t(1) << (length - from)) - 1;
        const int count = count_bits(found);
        // Eight at a time, even if there are fewer: a branch on their number would be mispredicted.
        for (int done = 0; done < count; done += 8)
            for (int i = 0; i < 8; ++i) {
                out[done + i] = uint32_t(from) + uint32_t(__builtin_ctzll(found | uint64_t(1) << 63));
                found &= found - 1;
            }
        out += count;
    }
    *out = uint32_t(length);
    carets_ = any(carets);
    return at_.data();
}

}  // namespace onepass
