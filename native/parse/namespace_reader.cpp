#include "parse/namespace_reader.hpp"

#include <algorithm>
#include <atomic>
#include <bit>

#include "parse/packed.hpp"
#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace onepass {

namespace {

constexpr uint64_t ones = 0x0101010101010101u;
constexpr uint32_t longest_name = 60;  // several names are hashed together: all take as long as the longest
constexpr size_t piece = 64;           // features read together

// Where a namespace's text has blanks and colons, and where it ends.
struct Marks {
    uint32_t *blanks, *colons;
    size_t end;
    bool unusual = false;  // control characters, or names with namespaces of their own
};

// Where 64 characters have them: a bit for each.
struct Masks {
    uint64_t blank, colon, other;  // other: bars, and unusual characters
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
        const Masks masks = masks_of(text + from);
        uint64_t inside = length - from < 64 ? (uint64_t(1) << (length - from)) - 1 : ~uint64_t(0);
        if (const uint64_t others = masks.other & inside) {  // the first of them decides
            const int at = std::countr_zero(others);
            marks.unusual = text[from + size_t(at)] != '|';
            if (marks.unusual) return;
            inside = (uint64_t(1) << at) - 1;
            marks.end = from + size_t(at);
        }
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
        const __m128i marked =
            _mm_or_si128(_mm_cmpeq_epi8(c, _mm_set1_epi8('|')), _mm_cmpeq_epi8(c, _mm_set1_epi8('^')));
        masks.other |= bits(_mm_or_si128(low, marked)) << i;
    }
    return masks;
}
#else
inline Masks masks_of_64(const char* p) {
    Masks masks{};
    for (int i = 0; i < 64; ++i) {
        masks.blank |= uint64_t(p[i] == ' ') << i;
        masks.colon |= uint64_t(p[i] == ':') << i;
        masks.other |= uint64_t(uint8_t(p[i]) < ' ' || p[i] == '|' || p[i] == '^') << i;
    }
    return masks;
}
#endif

void find_marks_in_text(const char* text, size_t length, Marks& marks) {
    find_marks(text, length, masks_of_64, write_places, marks);
}

#ifdef ONEPASS_CLONED
// The same in registers of 64 characters.
ONEPASS_PACKED void find_marks_packed(const char* text, size_t length, Marks& marks) {
    auto masks_of = [](const char* p) ONEPASS_PACKED {
        const __m512i c = _mm512_loadu_si512(p);
        const __m512i marked =
            _mm512_min_epu8(_mm512_xor_si512(c, _mm512_set1_epi8('|')), _mm512_xor_si512(c, _mm512_set1_epi8('^')));
        return Masks{_mm512_cmpeq_epi8_mask(c, _mm512_set1_epi8(' ')), _mm512_cmpeq_epi8_mask(c, _mm512_set1_epi8(':')),
                     _mm512_cmplt_epu8_mask(c, _mm512_set1_epi8(' ')) | _mm512_testn_epi8_mask(marked, marked)};
    };
    find_marks(text, length, masks_of, packed::write_places, marks);
}
#endif

// The loops below have no branches, so that the compiler makes vector instructions of them. Each takes at most `piece`
// features.

void load_eights(const char* from, const uint32_t* at, uint64_t* eights, size_t n) {
    for (size_t i = 0; i < n; ++i) std::memcpy(&eights[i], from + at[i], 8);
}

inline uint64_t number_of(uint64_t t) {  // pairs of digits, then fours, then all eight; no sum carries over
    t = (t * 10 + (t >> 8)) & 0x00FF00FF00FF00FFu;
    t = (t * 100 + (t >> 16)) & 0x0000FFFF0000FFFFu;
    return (t & 0xFFFFFFFFu) * 10000 + (t >> 32);
}

ONEPASS_CLONES bool make_whole(const uint64_t* eights, const uint32_t* blanks, const uint32_t* ends, uint32_t origin,
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

// All bits where a number below 2^63 is zero, otherwise none.
inline uint64_t if_zero(uint64_t x) { return -((x - 1) >> 63); }
inline double exactly(uint64_t x) { return std::bit_cast<double>(x | 0x4330000000000000u) - 0x1p52; }  // below 2^52

ONEPASS_CLONES bool make_short(const uint64_t* eights, const uint32_t* colons, const uint32_t* ends, double* out,
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

// Two steps of murmur3 for n names of the given sizes: the eight bytes after those `done`, or what is left of them.
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

// The sizes of names with `more` bytes before each. Returns the longest, or more than `longest_name` where a name is
// empty.
ONEPASS_CLONES uint32_t measure(const uint32_t* blanks, const uint32_t* ends, uint32_t more, uint32_t* sizes,
                                size_t n) {
    uint32_t longest = 0;
    for (size_t i = 0; i < n; ++i) {
        const uint32_t after_first = ends[i] - blanks[i] - 2;  // huge for an empty name
        sizes[i] = after_first + 1 + more;
        longest = std::max(longest, after_first);
    }
    return std::min(longest, longest_name) + 1 + more;
}

// As packed::whole_numbers, short_numbers and hash_names, for any processor.
bool whole_numbers(const char* text, const uint32_t* blanks, const uint32_t* ends, uint32_t origin, int32_t* out,
                   size_t n) {
    uint64_t eights[piece];
    for (size_t i = 0; i < n; i += piece) {
        const size_t count = std::min(n - i, piece);
        load_eights(text + 1, blanks + i, eights, count);
        if (!make_whole(eights, blanks + i, ends + i, origin, out + i, count)) return false;
    }
    return true;
}

bool short_numbers(const char* text, const uint32_t* colons, const uint32_t* ends, double* out, size_t n, bool& zeros) {
    uint64_t eights[piece];
    for (size_t i = 0; i < n; i += piece) {
        const size_t count = std::min(n - i, piece);
        load_eights(text + 1, colons + i, eights, count);
        if (!make_short(eights, colons + i, ends + i, out + i, count)) return false;
    }
    zeros = std::find(out, out + n, 0.0) != out + n;
    return true;
}

bool hash_names(const char* text, const uint32_t* blanks, const uint32_t* ends, size_t n,
                const PrefixHash::Begun& prefix, int32_t* out, bool& digits) {
    uint64_t eights[piece];
    uint32_t sizes[piece], hashes[piece];
    for (size_t i = 0; i < n; i += piece) {
        const size_t count = std::min(n - i, piece);
        const uint32_t longest = measure(blanks + i, ends + i, prefix.rest, sizes, count);
        if (longest > longest_name) return false;
        std::fill_n(hashes, count, prefix.hash);
        for (uint32_t done = 0; done < longest; done += 8) {
            load_eights(text + 1 - prefix.rest + done, blanks + i, eights, count);
            if (done == 0 && prefix.rest > 0) replace_first(eights, prefix.rest, prefix.carry, count);
            mix_eights(eights, sizes, done, hashes, count);
        }
        finish_hashes(sizes, prefix.length - prefix.rest, hashes, out + i, count);
    }
    digits = std::any_of(blanks, blanks + n, [&](uint32_t blank) { return is_digit(text[blank + 1]); });
    return true;
}

// Is there one colon between each blank and the next?
ONEPASS_CLONES bool alternate(const uint32_t* blanks, const uint32_t* colons, size_t n) {
    uint32_t wrong = 0;
    for (size_t i = 0; i < n; ++i) wrong |= uint32_t(colons[i] < blanks[i]) | uint32_t(colons[i] > blanks[i + 1]);
    return wrong == 0;
}

// The loops of one kind of processor.
struct NamespaceLoops {
    decltype(&find_marks_in_text) find_marks = find_marks_in_text;
    decltype(&whole_numbers) read_whole = whole_numbers;
    decltype(&short_numbers) read_short = short_numbers;
    decltype(&hash_names) hash = hash_names;
};
constexpr NamespaceLoops any_processor;
#ifdef ONEPASS_CLONED
constexpr NamespaceLoops in_packs{find_marks_packed, packed::whole_numbers, packed::short_numbers, packed::hash_names};
std::atomic<const NamespaceLoops*> chosen_loops = packed::supported() ? &in_packs : &any_processor;
#else
std::atomic<const NamespaceLoops*> chosen_loops = &any_processor;
#endif

// The names of features: as numbers if all are numbers, otherwise as hashes. False where one is empty or unusual.
__attribute__((always_inline)) inline bool read_names(const NamespaceLoops& loops, const char* text,
                                                      const uint32_t* blanks, const uint32_t* ends, size_t n,
                                                      const PrefixHash& prefix, int32_t* index) {
    if (is_digit(text[blanks[0] + 1]) && loops.read_whole(text, blanks, ends, prefix.origin(), index, n)) return true;
    bool digits = false;
    if (!loops.hash(text, blanks, ends, n, prefix.begun(), index, digits)) return false;
    for (size_t i = 0; digits && i < n; ++i) {
        const char* const name = text + blanks[i] + 1;
        if (is_digit(*name)) index[i] = int32_t(prefix(name, ends[i] - blanks[i] - 1));
    }
    return true;
}

}  // namespace

void use_packs([[maybe_unused]] bool wanted) {
#ifdef ONEPASS_CLONED
    chosen_loops = wanted && packed::supported() ? &in_packs : &any_processor;
#endif
}

bool uses_packs() { return chosen_loops.load(std::memory_order_relaxed) != &any_processor; }

// The values of names with values, and the names. False where one is unusual.
__attribute__((always_inline)) inline bool NamespaceReader::read_pairs(const char* text, size_t n,
                                                                       const PrefixHash& prefix, int32_t* index,
                                                                       double* value, size_t& count) const {
    const NamespaceLoops& loops = *chosen_loops.load(std::memory_order_relaxed);
    const uint32_t *const blanks = blanks_.data(), *const colons = colons_.data();
    bool zeros = false;
    if (!alternate(blanks, colons, n) || !read_names(loops, text, blanks, colons, n, prefix, index) ||
        !loops.read_short(text, colons, blanks + 1, value, n, zeros))
        return false;
    if (!zeros) return true;
    count = 0;
    for (size_t i = 0; i < n; ++i) {
        index[count] = index[i];
        value[count] = value[i];
        count += value[i] != 0.0;
    }
    return true;
}

const char* NamespaceReader::read(const char* at, const char* end, const PrefixHash& prefix, int32_t* index,
                                  double* value, size_t& count, bool& valued) {
    const NamespaceLoops& loops = *chosen_loops.load(std::memory_order_relaxed);
    const size_t length = size_t(end - at);
    if (length > 0 && *at != ' ' && *at != '|') return nullptr;
    if (blanks_.size() < length + 128) {
        blanks_.resize(2 * length + 128);
        colons_.resize(2 * length + 128);
    }
    Marks marks{blanks_.data(), colons_.data(), 0};
    loops.find_marks(at, length, marks);
    if (marks.unusual) return nullptr;
    size_t n = size_t(marks.blanks - blanks_.data()), last = marks.end;
    const size_t colons = size_t(marks.colons - colons_.data());
    while (n > 0 && blanks_[n - 1] == last - 1) last = blanks_[--n];  // blanks at the end of the text
    count = n;
    valued = colons != 0;
    if (n == 0) return at + marks.end;
    if (valued && colons != n) return nullptr;
    std::fill_n(blanks_.data() + n, 17, uint32_t(last));  // packs read beyond the last one
    std::fill_n(colons_.data() + n, 16, uint32_t(last));
    if (valued) return read_pairs(at, n, prefix, index, value, count) ? at + marks.end : nullptr;
    if (!read_names(loops, at, blanks_.data(), blanks_.data() + 1, n, prefix, index)) return nullptr;
    std::fill_n(value, n, 1.0);
    return at + marks.end;
}

}  // namespace onepass
