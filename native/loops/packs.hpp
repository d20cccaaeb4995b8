// Packs: as many features at a time as a register holds. In the model all numbers of one feature lie together
// (core/weights.hpp); in a pack the weights of its features are one vector, and so is each plane. For models of one
// output. Included once per instruction set.
#pragma once
#include <cmath>

#include "core/weights.hpp"
#include "loops/lanes.hpp"

namespace onepass::ONEPASS_ISA {

// Always inlined, but not in sanitised builds, whose code is several times as long: they would take too much time.
#ifdef __SANITIZE_ADDRESS__
#define ONEPASS_HOT inline
#else
#define ONEPASS_HOT ONEPASS_INLINE
#endif

// One register, or four numbers if a register holds fewer: the numbers of features are transposed in fours.
#ifdef __AVX512F__
typedef Eight Pack;
#else
typedef Four Pack;
#endif
constexpr size_t packed = sizeof(Pack) / sizeof(double);
typedef decltype(Pack{} > Pack{}) PackBits;

// Overloads for one number and for a pack, so that one formula serves both.
inline double root_of(double x) { return std::sqrt(x); }
inline double size_of(double x) { return std::abs(x); }
inline double with_sign_of(double x, double size) { return std::copysign(size, x); }
inline bool any(bool which) { return which; }
inline Pack root_of(Pack x) {
#ifdef __AVX512F__
    return Pack(_mm512_maskz_sqrt_pd(0xff, __m512d(x)));
#elif defined(__AVX__)
    return Pack(_mm256_sqrt_pd(__m256d(x)));
#else
    return Pack{std::sqrt(x[0]), std::sqrt(x[1]), std::sqrt(x[2]), std::sqrt(x[3])};
#endif
}

inline Pack size_of(Pack x) { return Pack(PackBits(x) & INT64_MAX); }
inline Pack with_sign_of(Pack x, double size) {
    return Pack((PackBits(x) & INT64_MIN) | PackBits(size_of(Pack{} + size)));
}
inline bool any(PackBits which) {
#ifdef __AVX512F__
    return _mm512_test_epi64_mask(__m512i(which), __m512i(which)) != 0;
#elif defined(__AVX__)
    return !_mm256_testz_si256(__m256i(which), __m256i(which));
#else
    return (which[0] | which[1] | which[2] | which[3]) != 0;
#endif
}

// Loads a pack, or so many numbers followed by zeros.
#ifdef __AVX512F__
template <class X>
inline Pack load_pack(X x) {
    return load(x);
}
template <class X>
inline Pack load_pack(X x, size_t count) {
    return load(x, Rest(count).low);
}
#else
template <class X, class... Count>
inline Pack load_pack(X x, Count... count) {
    return load_four(x, count...);
}
#endif

// Visits the features of a row pack by pack: visit(i), and visit(i, count) if the last pack is not full.
template <class Visit>
ONEPASS_INLINE void in_packs(size_t n, const Visit& visit) {
    size_t i = 0;
    for (; i + packed <= n; i += packed) visit(i);
    if (i < n) visit(i, n - i);
}

// The same with sums in the lanes of loops/lanes.hpp: visit(sums, i) and visit(sums, i, count).
template <class Sums, class Visit>
ONEPASS_INLINE Sums sum_packs(size_t n, const Visit& visit) {
#ifdef __AVX512F__
    Sums low, high;
    size_t i = 0;
    for (; i + lanes <= n; i += lanes) {
        visit(low, i);
        visit(high, i + packed);
    }
    const size_t left = n - i;
    if (left >= packed) visit(low, i);
    else if (left > 0) visit(low, i, left);
    if (left > packed) visit(high, i + packed, left - packed);
    return low + high;
#else
    return in_lanes<Sums>(n, visit);
#endif
}

// Exchanges rows and columns.
inline void transpose(Four (&m)[4]) {
    const Four a = firsts(m[0], m[1]), b = seconds(m[0], m[1]), c = firsts(m[2], m[3]), d = seconds(m[2], m[3]);
    m[0] = low_halves(a, c);
    m[1] = low_halves(b, d);
    m[2] = high_halves(a, c);
    m[3] = high_halves(b, d);
}

// The first four numbers of a pack (k = 0), or the last four.
inline Four four_of(Pack x, [[maybe_unused]] size_t k) {
#ifdef __AVX512F__
    return Four(k == 0 ? _mm512_castpd512_pd256(__m512d(x)) : _mm512_maskz_extractf64x4_pd(0xf, __m512d(x), 1));
#else
    return x;
#endif
}

// Packs of features that have so many numbers each: 1, 2 or 4.
template <size_t pitch>
struct Packs {
    static_assert(pitch <= 4);
    static constexpr size_t numbers = pitch * packed;
    static constexpr size_t room(size_t features) { return (features / packed + 1) * numbers; }

    // Loads the features of the row from place i on: a full pack, or so many.
    template <class Row, class... Count>
    ONEPASS_HOT static void load(const double* cells, const Row& row, size_t i, Pack* out, Count... count) {
        Four four[parts][4];
        for (size_t k = 0; k < parts; ++k) {
            for (size_t l = 0; l < 4; ++l) four[k][l] = cell(cells + column_of(row, i, 4 * k + l, count...) * pitch);
            transpose(four[k]);
        }
        for (size_t p = 0; p < pitch; ++p) {
#ifdef __AVX512F__
            out[p] = Pack(
                _mm512_maskz_insertf64x4(0xff, _mm512_castpd256_pd512(__m256d(four[0][p])), __m256d(four[1][p]), 1));
#else
            out[p] = four[0][p];
#endif
        }
    }

    // Stores them at their places in the model. If the pack is not full, its last feature fills the empty lanes too;
    // storing in falling order makes its own lane the last one that is written.
    template <class Row, class... Count>
    ONEPASS_HOT static void store(double* __restrict cells, const Row& row, size_t i, const Pack* in, Count... count) {
        for (size_t k = parts; k-- > 0;) {
            Four four[4] = {};
            for (size_t p = 0; p < pitch; ++p) four[p] = four_of(in[p], k);
            transpose(four);
            for (size_t l = 4; l-- > 0;)
                std::memcpy(cells + column_of(row, i, 4 * k + l, count...) * pitch, &four[l], pitch * sizeof(double));
        }
        prefetch_next(cells, row, i);
    }

    // Saves packs in working space until the round is decided, and reads them again.
    ONEPASS_HOT static void save(double* room, size_t i, const Pack* in) {
        for (size_t p = 0; p < pitch; ++p) onepass::ONEPASS_ISA::store(room + i * pitch + p * packed, in[p]);
    }
    ONEPASS_HOT static void read_saved(const double* room, size_t i, Pack* out) {
        for (size_t p = 0; p < pitch; ++p) out[p] = load_pack(room + i * pitch + p * packed);
    }

 private:
    static constexpr size_t parts = packed / 4;

    // If the next row of a batch lies right behind this one, its features are prefetched while these are written: the
    // roots and divisions of a pack leave time for it. The indices are not validated yet, but to prefetch any address
    // is harmless.
    template <class Row>
    ONEPASS_HOT static void prefetch_next(const double* cells, const Row& row, size_t i) {
        if constexpr (requires { row.ahead; })
            if (i + packed <= row.ahead)
                for (size_t l = 0; l < packed; ++l)
                    prefetch(uintptr_t(cells) + size_t(row.index[row.n + i + l]) * pitch * sizeof(double));
    }

    static Four cell(const double* at) {
        if constexpr (pitch == 4) return load_four(at);
        else if constexpr (pitch == 1) return Four{at[0]};
        else return __builtin_shufflevector(load_two(at), Two{}, 0, 1, 2, 3);
    }
};

}  // namespace onepass::ONEPASS_ISA
