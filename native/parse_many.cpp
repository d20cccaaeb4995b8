#include "parse_many.hpp"

#include <algorithm>
#include <bit>

#include "clones.hpp"
#ifdef __SSE2__
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // GCC 12's own header: registers that start undefined
#include <immintrin.h>
#endif

namespace onepass {

namespace {

constexpr uint64_t ones = 0x0101010101010101u;
constexpr size_t longest_name = 60;  // many names at a time take as long as the longest

// Where a namespace's text has blanks and colons, and where it ends.
struct Marks {
    uint32_t *blanks, *colons;
    size_t end;
    bool odd = false;  // control characters, or names with namespaces of their own
};

// 64 characters of it.
struct Masks {
    uint64_t blank, colon, bar, odd;
};

// Writes the places of a mask's bits, from `from` on, and returns the end of what was written. May write eight more.
inline uint32_t* write_places(uint64_t mask, size_t from, uint32_t* out) {
    uint32_t* const end = out + std::popcount(mask);
    for (; out < end; out += 8)
        for (int i = 0; i < 8; ++i) {
            out[i] = uint32_t(from) + uint32_t(std::countr_zero(mask | uint64_t(1) << 63));
            mask &= mask - 1;
        }
    return end;
}

template <class MasksOf, class Write>
__attribute__((always_inline)) inline void find_marks(const char* text, size_t length, const MasksOf& masks_of,
                                                      const Write& write, Marks& marks) {
    marks.end = length;
    for (size_t from = 0; from < marks.end; from += 64) {
        Masks masks = masks_of(text + from);
        uint64_t inside = length - from < 64 ? (uint64_t(1) << (length - from)) - 1 : ~uint64_t(0);
        if (masks.bar & inside) {
            const int at = std::countr_zero(masks.bar);
            inside = (uint64_t(1) << at) - 1;
            marks.end = from + size_t(at);
        }
        marks.odd |= (masks.odd & inside) != 0;
        marks.blanks = write(masks.blank & inside, from, marks.blanks);
        marks.colons = write(masks.colon & inside, from, marks.colons);
    }
}

#ifdef __SSE2__
inline uint64_t bits(__m128i bytes) { return uint64_t(unsigned(_mm_movemask_epi8(bytes))); }
inline Masks masks_of_64(const char* p) {
    Masks masks{};
    for (int i = 0; i < 64; i += 16) {
        const __m128i c = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p + i));
        const __m128i blank = _mm_cmpeq_epi8(c, _mm_set1_epi8(' '));
        const __m128i low = _mm_cmpeq_epi8(_mm_min_epu8(c, _mm_set1_epi8(' ' - 1)), c);
        masks.blank |= bits(blank) << i;
        masks.colon |= bits(_mm_cmpeq_epi8(c, _mm_set1_epi8(':'))) << i;
        masks.bar |= bits(_mm_cmpeq_epi8(c, _mm_set1_epi8('|'))) << i;
        masks.odd |= bits(_mm_or_si128(low, _mm_cmpeq_epi8(c, _mm_set1_epi8('^')))) << i;
    }
    return masks;
}
#else
inline Masks masks_of_64(const char* p) {
    Masks masks{};
    for (int i = 0; i < 64; ++i) {
        masks.blank |= uint64_t(p[i] == ' ') << i;
        masks.colon |= uint64_t(p[i] == ':') << i;
        masks.bar |= uint64_t(p[i] == '|') << i;
        masks.odd |= uint64_t(uint8_t(p[i]) < ' ' || p[i] == '^') << i;
    }
    return masks;
}
#endif

void find_marks_anywhere(const char* text, size_t length, Marks& marks) {
    find_marks(text, length, masks_of_64, write_places, marks);
}

#ifdef ONEPASS_CLONED
#define ONEPASS_COMPRESS __attribute__((target("arch=x86-64-v4,avx512vbmi2")))
// The same with registers of 64 characters, whose places are packed by one instruction.
ONEPASS_COMPRESS void find_marks_packed(const char* text, size_t length, Marks& marks) {
    alignas(64) char places[64];
    for (int i = 0; i < 64; ++i) places[i] = char(i);
    const __m512i each = _mm512_load_si512(places);
    auto masks_of = [](const char* p) ONEPASS_COMPRESS {
        const __m512i c = _mm512_loadu_si512(p);
        return Masks{
            _mm512_cmpeq_epi8_mask(c, _mm512_set1_epi8(' ')), _mm512_cmpeq_epi8_mask(c, _mm512_set1_epi8(':')),
            _mm512_cmpeq_epi8_mask(c, _mm512_set1_epi8('|')),
            _mm512_cmplt_epu8_mask(c, _mm512_set1_epi8(' ')) | _mm512_cmpeq_epi8_mask(c, _mm512_set1_epi8('^'))};
    };
    auto write = [&](uint64_t mask, size_t from, uint32_t* out) ONEPASS_COMPRESS {
        __m512i packed = _mm512_maskz_compress_epi8(mask, each);
        uint32_t* const end = out + std::popcount(mask);
        for (; out < end; out += 16) {
            const __m512i wide = _mm512_cvtepu8_epi32(_mm512_castsi512_si128(packed));
            _mm512_storeu_si512(out, _mm512_add_epi32(wide, _mm512_set1_epi32(int(from))));
            packed = _mm512_shuffle_i64x2(packed, packed, 0x39);  // the next 16 characters
        }
        return end;
    };
    find_marks(text, length, masks_of, write, marks);
}
const auto find_all_marks = __builtin_cpu_supports("avx512vbmi2") ? find_marks_packed : find_marks_anywhere;
#else
const auto find_all_marks = find_marks_anywhere;
#endif

// The loops below have no branches: they are compiled to vectors.

inline uint64_t number_of(uint64_t t) {  // pairs of digits, then fours, then all eight; no sum carries over
    t = (t * 10 + (t >> 8)) & 0x00FF00FF00FF00FFu;
    t = (t * 100 + (t >> 16)) & 0x0000FFFF0000FFFFu;
    return (t & 0xFFFFFFFFu) * 10000 + (t >> 32);
}

// The n eights from text on as whole numbers of so many digits; false where one is anything else.
ONEPASS_CLONES bool whole_numbers(const uint64_t* eights, const uint32_t* blanks, const uint32_t* ends, uint32_t origin,
                                  int32_t* out, size_t n) {
    uint64_t bad = 0;
    for (size_t i = 0; i < n; ++i) {
        const uint64_t size = uint64_t(ends[i] - blanks[i] - 1);
        const uint64_t t = (eights[i] ^ 0x30 * ones) << ((64 - 8 * size) & 63);
        bad |= not_digits(t) | (size - 1) >> 3;
        out[i] = int32_t(origin + uint32_t(number_of(t)));
    }
    return bad == 0;
}

// All bits or none: is a number below 2^63 zero?
inline uint64_t if_zero(uint64_t x) { return -((x - 1) >> 63); }
inline double exactly(uint64_t x) { return std::bit_cast<double>(x | 0x4330000000000000u) - 0x1p52; }  // below 2^52

// Numbers of at most eight characters: [-] digits [. digits], correctly rounded as in parse_number.hpp.
ONEPASS_CLONES bool short_numbers(const uint64_t* eights, const uint32_t* colons, const uint32_t* ends, double* out,
                                  size_t n) {
    uint64_t bad = 0;
    for (size_t i = 0; i < n; ++i) {
        const uint64_t size = uint64_t(ends[i] - colons[i] - 1), unused = (64 - 8 * size) & 63;
        const uint64_t negative = if_zero((eights[i] & 0xFF) ^ '-');
        uint64_t t = ((eights[i] ^ 0x30 * ones) & ~(negative & 0xFF)) << unused;
        const uint64_t other = t ^ ('.' ^ '0') * ones, points = (other - ones) & ~other & 0x80 * ones;
        const uint64_t point = (points & -points) >> 7, none = if_zero(point >> 1 | (point & 1));
        const uint64_t before = point - 1;
        t = (t & none) | (((t & ~before & ~(before << 8)) | (t & before) << 8) & ~none);
        const uint64_t places = (7 - ((before & ones) * ones >> 56)) & ~none;
        const uint64_t divisor = (1 + 9 * (places & 1)) * (1 + 99 * (places >> 1 & 1)) * (1 + 9999 * (places >> 2));
        bad |= not_digits(t) | (size - 1) >> 3 | if_zero(size - (negative & 1) - (~none & 1));
        const double quotient = exactly(number_of(t)) / exactly(divisor);
        out[i] = std::bit_cast<double>(std::bit_cast<uint64_t>(quotient) | (negative & uint64_t(1) << 63));
    }
    return bad == 0;
}

// Two steps of murmur3 for n names of so many bytes: the next eight after those `done`, or what is left of them.
ONEPASS_CLONES void mix_eights(const uint64_t* eights, const uint32_t* sizes, uint32_t done, uint32_t* hashes,
                               size_t n) {
    for (size_t i = 0; i < n; ++i) {
        const uint32_t size = sizes[i];
        uint32_t h = hashes[i];
        for (uint32_t step = 0; step < 2; ++step) {
            const uint32_t before = done + 4 * step, left = size > before ? size - before : 0;
            const bool whole = left >= 4;
            const uint32_t kept = whole ? ~uint32_t(0) : (uint32_t(1) << (8 * left & 31)) - 1;
            const uint32_t four = uint32_t(eights[i] >> 32 * step) & kept;
            h ^= rotate_left(four * 0xcc9e2d51, 15) * 0x1b873593;
            h = whole ? rotate_left(h, 13) * 5 + 0xe6546b64 : h;
        }
        hashes[i] = h;
    }
}

ONEPASS_CLONES void replace_first(uint64_t* eights, uint32_t bytes, uint64_t by, size_t n) {
    const uint64_t kept = ~uint64_t(0) << 8 * bytes;
    for (size_t i = 0; i < n; ++i) eights[i] = (eights[i] & kept) | by;
}

ONEPASS_CLONES void finish_hashes(const uint32_t* sizes, uint32_t more, const uint32_t* hashes, int32_t* out,
                                  size_t n) {
    for (size_t i = 0; i < n; ++i) out[i] = int32_t(PrefixHash::mixed(hashes[i] ^ (sizes[i] + more)));
}

// The sizes of names with `more` bytes before each; the longest.
ONEPASS_CLONES uint32_t measure(const uint32_t* blanks, const uint32_t* ends, uint32_t more, uint32_t* sizes,
                                size_t n) {
    uint32_t longest = 0;
    for (size_t i = 0; i < n; ++i) {
        sizes[i] = ends[i] - blanks[i] - 1 + more;
        longest = std::max(longest, sizes[i]);
    }
    return longest;
}

// Names that come one after another, none of them empty, and where each ends?
ONEPASS_CLONES bool in_turn(const uint32_t* blanks, const uint32_t* ends, size_t n) {
    uint32_t wrong = 0;
    for (size_t i = 0; i < n; ++i)
        wrong |= uint32_t(ends[i] - blanks[i] - 2 > 0xFFFF) | uint32_t(ends[i] > blanks[i + 1]);
    return wrong == 0;
}

}  // namespace

void ManyFeatures::load_eights(const char* from, const uint32_t* at) {
    for (size_t i = 0; i < n_; ++i) std::memcpy(&eights_[i], from + at[i], 8);
}

bool ManyFeatures::read_names(const char* text, const PrefixHash& prefix, const uint32_t* ends, int32_t* index) {
    const uint32_t* const blanks = blanks_.data();
    size_t digits = 0;
    for (size_t i = 0; i < n_; ++i) digits += is_digit(text[blanks[i] + 1]);
    if (digits == n_) {
        load_eights(text + 1, blanks);
        if (whole_numbers(eights_.data(), blanks, ends, prefix.origin(), index, n_)) return true;
    }
    // The prefix's last bytes are hashed together with a name's first.
    const uint32_t rest = uint32_t(prefix.rest_), longest = measure(blanks, ends, rest, sizes_.data(), n_);
    if (longest > longest_name) return false;
    std::fill_n(hashes_.data(), n_, prefix.h_);
    for (uint32_t done = 0; done < longest; done += 8) {
        load_eights(text + 1 - rest + done, blanks);
        if (done == 0 && rest > 0) replace_first(eights_.data(), rest, prefix.carry_, n_);
        mix_eights(eights_.data(), sizes_.data(), done, hashes_.data(), n_);
    }
    finish_hashes(sizes_.data(), uint32_t(prefix.length_) - rest, hashes_.data(), index, n_);
    for (size_t i = 0; digits > 0 && i < n_; ++i) {
        const char* const name = text + blanks[i] + 1;
        if (is_digit(*name)) index[i] = int32_t(prefix(name, ends[i] - blanks[i] - 1));
    }
    return true;
}

const char* ManyFeatures::read(const char* at, const char* end, const PrefixHash& prefix, int32_t* index, double* value,
                               size_t& count) {
    const size_t length = size_t(end - at);
    if (length > 0 && *at != ' ' && *at != '|') return nullptr;
    if (blanks_.size() < length + 128) {
        blanks_.resize(2 * length + 128);
        colons_.resize(2 * length + 128);
    }
    Marks marks{blanks_.data(), colons_.data(), 0};
    find_all_marks(at, length, marks);
    size_t blanks = size_t(marks.blanks - blanks_.data()), last = marks.end;
    const size_t colons = size_t(marks.colons - colons_.data());
    if (marks.odd) return nullptr;
    while (blanks > 0 && blanks_[blanks - 1] == last - 1) last = blanks_[--blanks];  // at the end of the text
    count = n_ = blanks;
    blanks_[blanks] = uint32_t(last);
    if (blanks == 0) return at + marks.end;
    if (colons != 0 && colons != blanks) return nullptr;
    if (eights_.size() < blanks + 16) {
        eights_.resize(2 * blanks + 16);
        sizes_.resize(2 * blanks + 16);
        hashes_.resize(2 * blanks + 16);
    }
    const uint32_t* const ends = colons ? colons_.data() : blanks_.data() + 1;
    if (!in_turn(blanks_.data(), ends, n_) || !read_names(at, prefix, ends, index)) return nullptr;
    if (colons == 0) {
        std::fill_n(value, n_, 1.0);
        return at + marks.end;
    }
    load_eights(at + 1, colons_.data());
    if (!short_numbers(eights_.data(), colons_.data(), blanks_.data() + 1, value, n_)) return nullptr;
    if (std::find(value, value + n_, 0.0) == value + n_) return at + marks.end;
    count = 0;
    for (size_t i = 0; i < n_; ++i) {
        index[count] = index[i];
        value[count] = value[i];
        count += value[i] != 0.0;
    }
    return at + marks.end;
}

}  // namespace onepass
