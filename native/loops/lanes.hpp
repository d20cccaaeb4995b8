// Sums in 16 fixed lanes: element i goes to lane i mod 16, and the lanes are added as a tree. Every instruction set
// adds the same numbers in the same order, so all give the same bits. Included once per instruction set, inside
// namespace ONEPASS_ISA.
#pragma once
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#ifdef __AVX__
#include <immintrin.h>
#endif

namespace onepass::ONEPASS_ISA {

constexpr size_t lanes = 16;
typedef double Eight __attribute__((vector_size(64)));
typedef double Four __attribute__((vector_size(32)));
typedef double Two __attribute__((vector_size(16)));

inline Eight load(const double* p) {
    Eight out;
    std::memcpy(&out, p, sizeof out);
    return out;
}

inline Four load_four(const double* p) {
    Four out;
    std::memcpy(&out, p, sizeof out);
    return out;
}

inline void store(double* to, Eight values) { std::memcpy(to, &values, sizeof values); }
inline void store(double* to, Four values) { std::memcpy(to, &values, sizeof values); }
inline void store(double* to, Two values) { std::memcpy(to, &values, sizeof values); }

inline Two load_two(const double* p) {
    Two out;
    std::memcpy(&out, p, sizeof out);
    return out;
}

// The tree: lanes l and l + 8 are added, then l and l + 4, l and l + 2, and the last two.
inline double add_up(Four all) {
    const double even = all[0] + all[2], odd = all[1] + all[3];
    return even + odd;
}

inline Four halves_of(Eight all) {
    Four halves[2];
    std::memcpy(halves, &all, sizeof halves);
    return halves[0] + halves[1];
}
inline double add_up(Eight all) { return add_up(halves_of(all)); }

// Comparisons, choices and shuffles, for one number and for vectors, so that one formula serves both.
template <class T>
inline auto above(T x, T y) {
    return x > y;
}
template <class T>
inline auto at_most(T x, T y) {
    return x <= y;
}
template <class T>
inline auto equal(T x, T y) {
    return x == y;
}
template <class T>
inline auto unequal(T x, T y) {
    return x != y;
}
template <class Which, class T>
inline T choose(Which which, T one, T other) {
    return which ? one : other;
}
#ifdef __AVX__
inline Four firsts(Four a, Four b) { return __builtin_shufflevector(a, b, 0, 4, 2, 6); }
inline Four seconds(Four a, Four b) { return __builtin_shufflevector(a, b, 1, 5, 3, 7); }
inline Four low_halves(Four a, Four b) { return __builtin_shufflevector(a, b, 0, 1, 4, 5); }
inline Four high_halves(Four a, Four b) { return __builtin_shufflevector(a, b, 2, 3, 6, 7); }
#else
// If a register holds fewer than four numbers, GCC would do this number by number. So it is done by halves and by bits.
typedef decltype(Four{} > Four{}) FourBits;
struct Halves {
    Two low, high;
};
struct HalvesBits {
    decltype(Two{} > Two{}) low, high;
};
template <class Compare>
inline FourBits by_halves(Four x, Four y, const Compare& compare) {
    const Halves a = std::bit_cast<Halves>(x), b = std::bit_cast<Halves>(y);
    return std::bit_cast<FourBits>(HalvesBits{compare(a.low, b.low), compare(a.high, b.high)});
}
inline FourBits above(Four x, Four y) {
    return by_halves(x, y, [](Two a, Two b) { return a > b; });
}
inline FourBits at_most(Four x, Four y) {
    return by_halves(x, y, [](Two a, Two b) { return a <= b; });
}
inline FourBits equal(Four x, Four y) {
    return by_halves(x, y, [](Two a, Two b) { return a == b; });
}
inline FourBits unequal(Four x, Four y) {
    return by_halves(x, y, [](Two a, Two b) { return a != b; });
}
inline Four choose(FourBits which, Four one, Four other) {
    return Four((which & FourBits(one)) | (~which & FourBits(other)));
}
inline Four joined(Two low, Two high) { return std::bit_cast<Four>(Halves{low, high}); }
inline Four firsts(Four x, Four y) {
    const Halves a = std::bit_cast<Halves>(x), b = std::bit_cast<Halves>(y);
    return joined(__builtin_shufflevector(a.low, b.low, 0, 2), __builtin_shufflevector(a.high, b.high, 0, 2));
}
inline Four seconds(Four x, Four y) {
    const Halves a = std::bit_cast<Halves>(x), b = std::bit_cast<Halves>(y);
    return joined(__builtin_shufflevector(a.low, b.low, 1, 3), __builtin_shufflevector(a.high, b.high, 1, 3));
}
inline Four low_halves(Four x, Four y) { return joined(std::bit_cast<Halves>(x).low, std::bit_cast<Halves>(y).low); }
inline Four high_halves(Four x, Four y) { return joined(std::bit_cast<Halves>(x).high, std::bit_cast<Halves>(y).high); }
#endif

// The larger and the smaller of two; the second if one is NaN. Register by register: if eight numbers are more than one
// register, GCC compares them number by number.
#if defined(__AVX__) && !defined(__AVX512F__)
template <class Pick>
inline Eight by_halves(Eight a, Eight b, const Pick& pick) {
    Four x[2], y[2];
    std::memcpy(x, &a, sizeof x);
    std::memcpy(y, &b, sizeof y);
    for (int i = 0; i < 2; ++i) x[i] = Four(pick(__m256d(x[i]), __m256d(y[i])));
    std::memcpy(&a, x, sizeof a);
    return a;
}
inline Eight larger(Eight a, Eight b) {
    return by_halves(a, b, [](__m256d x, __m256d y) { return _mm256_max_pd(x, y); });
}
inline Eight smaller(Eight a, Eight b) {
    return by_halves(a, b, [](__m256d x, __m256d y) { return _mm256_min_pd(x, y); });
}
#else
inline Eight larger(Eight a, Eight b) { return a > b ? a : b; }
inline Eight smaller(Eight a, Eight b) { return a < b ? a : b; }
#endif

struct Sum {
    Eight low{}, high{};
    double total() const { return add_up(low + high); }
};

#ifdef __AVX512F__
// The last elements of a row, fewer than 16, followed by zeros: one masked load instead of a loop whose length would
// often be mispredicted.
struct Rest {
    __mmask8 low, high;
    explicit Rest(size_t count) {
        const uint32_t mask = (1u << count) - 1u;
        low = __mmask8(mask);
        high = __mmask8(mask >> 8);
    }
};

inline Eight load(const double* p, __mmask8 mask) { return Eight(_mm512_maskz_loadu_pd(mask, p)); }
#endif

// The difference p - q of two arrays. It is read like an array, but never stored.
struct Minus {
    const double *p, *q;
    double operator[](size_t i) const { return p[i] - q[i]; }
    Minus operator+(size_t i) const { return {p + i, q + i}; }
};

inline Eight load(Minus x) { return load(x.p) - load(x.q); }
inline Four load_four(Minus x) { return load_four(x.p) - load_four(x.q); }

// One to three numbers, followed by zeros.
template <class X>
inline Four load_four(X x, size_t count) {
    return Four{double(x[0]), count > 1 ? double(x[1]) : 0.0, count > 2 ? double(x[2]) : 0.0, 0.0};
}
#ifdef __AVX512F__
inline Four load_four(const double* p, size_t count) { return Four(_mm256_maskz_loadu_pd(Rest(count).low, p)); }
inline Eight load(Minus x, __mmask8 mask) { return load(x.p, mask) - load(x.q, mask); }
#endif

// Do the elements rise strictly, and is the first at least 0? Are all at least 0 and below a limit?
#ifdef __AVX512F__
struct Narrow {
    static constexpr size_t width = 16;
    static __m512i load(const int32_t* index, unsigned mask) {
        return _mm512_maskz_loadu_epi32(__mmask16(mask), index);
    }
    static unsigned falls(__m512i here, __m512i before) {
        return _mm512_cmple_epi32_mask(here, _mm512_alignr_epi32(here, before, 15));
    }
    static unsigned beyond(__m512i here, uint32_t limit) {
        return _mm512_cmpge_epu32_mask(here, _mm512_set1_epi32(int32_t(limit)));
    }
};
struct Wide {
    static constexpr size_t width = 8;
    static __m512i load(const int64_t* index, unsigned mask) { return _mm512_maskz_loadu_epi64(__mmask8(mask), index); }
    static unsigned falls(__m512i here, __m512i before) {
        return _mm512_cmple_epi64_mask(here, _mm512_alignr_epi64(here, before, 7));
    }
    static unsigned beyond(__m512i here, uint64_t limit) {
        return _mm512_cmpge_epu64_mask(here, _mm512_set1_epi64(int64_t(limit)));
    }
};
template <class I>
using Register = std::conditional_t<sizeof(I) == 4, Narrow, Wide>;
template <class I>
inline bool rising(const I* index, size_t n) {
    using Register = Register<I>;
    constexpr size_t width = Register::width;
    unsigned falls = 0;
    __m512i before = _mm512_set1_epi32(-1);
    for (; n >= width; n -= width, index += width) {
        const __m512i here = _mm512_loadu_si512(index);
        falls |= Register::falls(here, before);
        before = here;
    }
    const unsigned rest = (1u << n) - 1u;
    return (falls | (rest & Register::falls(Register::load(index, rest), before))) == 0;
}
template <class I>
inline bool all_below(const I* index, size_t n, std::make_unsigned_t<I> limit) {
    using Register = Register<I>;
    constexpr size_t width = Register::width;
    unsigned beyond = 0;
    for (; n >= width; n -= width, index += width) beyond |= Register::beyond(_mm512_loadu_si512(index), limit);
    const unsigned rest = (1u << n) - 1u;
    return (beyond | (rest & Register::beyond(Register::load(index, rest), limit))) == 0;
}
#else
template <class I>
inline bool rising(const I* index, size_t n) {
    bool all = n == 0 || index[0] >= 0;
    for (size_t i = 1; i < n; ++i) all &= index[i - 1] < index[i];
    return all;
}
template <class I>
inline bool all_below(const I* index, size_t n, std::make_unsigned_t<I> limit) {
    bool all = true;  // as an unsigned number, a negative index is large
    for (size_t i = 0; i < n; ++i) all &= std::make_unsigned_t<I>(index[i]) < limit;
    return all;
}
#endif

struct DotNorm {
    double dot, norm;  // x.v and x.x
};

// For the values x of a row (an array, or Minus) and weights that lie next to each other.
template <class X>
inline DotNorm dot_norm(X x, size_t n, const double* v) {
    Sum dot, norm;
    size_t i = 0;
    for (; i + lanes <= n; i += lanes) {
        const Eight x0 = load(x + i), x1 = load(x + i + 8);
        dot.low += x0 * load(v + i);
        dot.high += x1 * load(v + i + 8);
        norm.low += x0 * x0;
        norm.high += x1 * x1;
    }
#ifdef __AVX512F__
    if (i < n) {
        const Rest rest(n - i);
        const Eight x0 = load(x + i, rest.low), x1 = load(x + i + 8, rest.high);
        dot.low += x0 * load(v + i, rest.low);
        dot.high += x1 * load(v + i + 8, rest.high);
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
            dots[l] += value * v[i + l];
            norms[l] += value * value;
        }
        std::memcpy(&dot, dots, sizeof dots);
        std::memcpy(&norm, norms, sizeof norms);
    }
#endif
    return {dot.total(), norm.total()};
}

// The pitch, numbers from the weight of one feature to the next: a constant 1, or a variable.
using Adjacent = std::integral_constant<size_t, 1>;

// The weights of a row: in order, or at its indices. four_of() reads four of them, or one to three followed by zeros.
template <class Pitch>
struct InOrder {
    const double* v;
    Pitch pitch;
    double one(size_t i) const { return v[i * pitch]; }
};
template <class I, class Pitch = Adjacent>
struct Indexed {
    const double* v;
    const I* index;
    Pitch pitch = {};
    double one(size_t i) const { return v[size_t(index[i]) * pitch]; }
};

template <class Where>
inline Four four_of(const Where& at, size_t i) {
    return Four{at.one(i), at.one(i + 1), at.one(i + 2), at.one(i + 3)};
}
inline Four four_of(const InOrder<Adjacent>& at, size_t i) { return load_four(at.v + i); }
template <class Where>
inline Four four_of(const Where& at, size_t i, size_t count) {
    return Four{at.one(i), count > 1 ? at.one(i + 1) : 0.0, count > 2 ? at.one(i + 2) : 0.0, 0.0};
}

struct FourSums {
    Four dot{}, norm{};

    template <class X, class Weights, class... Count>
    void add(X x, const Weights& weights, size_t i, Count... count) {
        add(load_four(x + i, count...), four_of(weights, i, count...));
    }
    void add(Four values, Four weights) {
        dot += values * weights;
        norm += values * values;
    }
    FourSums operator+(const FourSums& other) const { return {dot + other.dot, norm + other.norm}; }
};

// GCC takes a function that only prefetches for one that does nothing, and removes the calls. The empty assembler
// statement, which it may not remove, prevents that.
inline void prefetch(uintptr_t address) {
    __builtin_prefetch(reinterpret_cast<const void*>(address));
    asm volatile("" : : "r"(address));
}

// The column of the l-th feature from place i of the row on. If `count` features are left, the last of them also fills
// the lanes beyond, since vectors are read and written as a whole. It is a minimum, because a choice would be compiled
// to a branch that is often mispredicted.
template <class Row, class... Count>
inline size_t column_of(const Row& row, size_t i, size_t l, Count... count) {
    if constexpr (sizeof...(count) > 0) return row.column(i + std::min((count + ...) - 1, l));
    else return row.column(i + l);
}

// Adds up n elements four at a time in the lanes above: add(sums, i) adds elements i to i + 3, add(sums, i, count) the
// last one to three.
template <class Sums, class Add>
__attribute__((always_inline)) inline Sums in_lanes(size_t n, const Add& add) {
    Sums a, b, c, d;  // not an array: they should stay in registers
    size_t i = 0;
    for (; i + lanes <= n; i += lanes) {
        add(a, i);
        add(b, i + 4);
        add(c, i + 8);
        add(d, i + 12);
    }
    const size_t left = n - i, rest = left % 4;
    if (left >= 4) add(a, i);
    if (left >= 8) add(b, i + 4);
    if (left >= 12) add(c, i + 8);
    if (rest > 0) switch (left - rest) {
            case 0: add(a, i, rest); break;
            case 4: add(b, i + 4, rest); break;
            case 8: add(c, i + 8, rest); break;
            default: add(d, i + 12, rest);
        }
    return (a + c) + (b + d);
}

// The same with scattered weights. Four at a time: collecting eight scattered numbers in one register costs more than
// it saves, and so does the gather instruction.
template <class X, class Weights>
inline DotNorm dot_norm_of(X x, size_t n, const Weights& weights) {
    const FourSums sums =
        in_lanes<FourSums>(n, [&](FourSums& some, size_t i, auto... count)
                                  __attribute__((always_inline)) { some.add(x, weights, i, count...); });
    return {add_up(sums.dot), add_up(sums.norm)};
}

template <class X>
inline double norm(X x, size_t n) {
    Sum sum;
    size_t i = 0;
    for (; i + lanes <= n; i += lanes) {
        const Eight x0 = load(x + i), x1 = load(x + i + 8);
        sum.low += x0 * x0;
        sum.high += x1 * x1;
    }
#ifdef __AVX512F__
    if (i < n) {
        const Rest rest(n - i);
        const Eight x0 = load(x + i, rest.low), x1 = load(x + i + 8, rest.high);
        sum.low += x0 * x0;
        sum.high += x1 * x1;
    }
#else
    if (i < n) {
        double sums[lanes];
        std::memcpy(sums, &sum, sizeof sums);
        for (size_t l = 0; i + l < n; ++l) sums[l] += double(x[i + l]) * double(x[i + l]);
        std::memcpy(&sum, sums, sizeof sums);
    }
#endif
    return sum.total();
}

}  // namespace onepass::ONEPASS_ISA
