// Rows as lines of points (see `Points`), a row in each lane; and scans of arrays. Included once per instruction set,
// inside namespace ONEPASS_ISA.
#pragma once
#include <algorithm>
#include <cmath>

#include "loops/exponential.hpp"
#include "loops/lanes.hpp"

namespace onepass::ONEPASS_ISA {

using EightChoices = decltype(Eight{} < Eight{});

inline Eight absolute(Eight x) {
    EightWords bits;
    std::memcpy(&bits, &x, sizeof bits);
    bits &= ~uint64_t(0) >> 1;
    std::memcpy(&x, &bits, sizeof x);
    return x;
}

inline bool any_below(Eight x, Eight limit) {
#ifdef __AVX512F__
    return _mm512_cmp_pd_mask(__m512d(x), __m512d(limit), _CMP_LT_OQ) != 0;
#else
    const EightChoices below = x < limit;
    int64_t any = 0;
    for (size_t l = 0; l < 8; ++l) any |= below[l];
    return any != 0;
#endif
}

// Rows of an 8 x 8 square as its columns.
inline void transpose(Eight (&r)[8]) {
    for (size_t i = 0; i < 8; i += 2) {
        const Eight a = r[i], b = r[i + 1];
        r[i] = __builtin_shufflevector(a, b, 0, 8, 2, 10, 4, 12, 6, 14);
        r[i + 1] = __builtin_shufflevector(a, b, 1, 9, 3, 11, 5, 13, 7, 15);
    }
    for (size_t i : {0, 1, 4, 5}) {
        const Eight a = r[i], b = r[i + 2];
        r[i] = __builtin_shufflevector(a, b, 0, 1, 8, 9, 4, 5, 12, 13);
        r[i + 2] = __builtin_shufflevector(a, b, 2, 3, 10, 11, 6, 7, 14, 15);
    }
    for (size_t i = 0; i < 4; ++i) {
        const Eight a = r[i], b = r[i + 4];
        r[i] = __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11);
        r[i + 4] = __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15);
    }
}

// Up to eight rows; null where there is none, though not everywhere.
class EightRows {
 public:
    explicit EightRows(const double* const* given) {
        const double* some = nullptr;
        for (size_t q = 0; q < 8; ++q) {
            rows_[q] = given[q];
            there_[q] = given[q] ? -1 : 0;
            if (given[q]) some = given[q];
        }
        for (const double*& row : rows_)
            if (!row) row = some;  // read, not taken
    }

    // take(j, the rows' numbers) for each feature j.
    template <class Take>
    void by_feature(size_t n, const Take& take) const {
        size_t j = 0;
        for (; j + 8 <= n; j += 8) {
            Eight square[8];
            for (size_t q = 0; q < 8; ++q) square[q] = load(rows_[q] + j);
            transpose(square);
            for (size_t l = 0; l < 8; ++l) take(j + l, square[l]);
        }
        for (; j < n; ++j) {
            Eight values;
            for (size_t q = 0; q < 8; ++q) values[q] = rows_[q][j];
            take(j, values);
        }
    }
    Eight or_else(Eight values, Eight others) const { return there_ ? values : others; }

 private:
    const double* rows_[8];
    EightChoices there_;
};

// `combine` of the first n / 8 * 8 numbers, lane by lane: four registers side by side, so that none waits for another.
template <class Combine>
inline Eight scan(const double* x, size_t n, const Combine& combine) {
    Eight a{}, b{}, c{}, d{};
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        a = combine(a, load(x + i));
        b = combine(b, load(x + i + 8));
        c = combine(c, load(x + i + 16));
        d = combine(d, load(x + i + 24));
    }
    for (; i + 8 <= n; i += 8) a = combine(a, load(x + i));
    return combine(combine(a, b), combine(c, d));
}

// A number that is not finite, times 0, is none.
inline bool finite(const double* x, size_t n) {
    const Eight zeros = scan(x, n, [](Eight so_far, Eight here) { return so_far + here * all(0.0); });
    double rest = 0.0;
    for (size_t i = n / 8 * 8; i < n; ++i) rest += x[i] * 0.0;
    for (size_t l = 0; l < 8; ++l) rest += zeros[l];
    return rest == 0.0;
}

inline double largest(const double* x, size_t n) {
    const Eight most = scan(x, n, [](Eight so_far, Eight here) {
        const Eight size = absolute(here);
        return larger(size, so_far);
    });
    double out = 0.0;
    for (size_t i = n / 8 * 8; i < n; ++i) out = std::max(out, std::abs(x[i]));
    for (size_t l = 0; l < 8; ++l) out = std::max(out, most[l]);
    return out;
}

// In blocks: the number is looked for in the block that has it.
inline size_t first_least(const double* x, size_t n) {
    constexpr size_t block = 64;
    double least = x[0];
    size_t at = 0, from = 0;
    while (from + 8 <= n) {
        const size_t end = std::min(from + block, n / 8 * 8);
        Eight lows = load(x + from);
        for (size_t i = from + 8; i < end; i += 8) {
            const Eight here = load(x + i);
            lows = here < lows ? here : lows;
        }
        if (any_below(lows, all(least))) {
            at = from;
            for (size_t l = 0; l < 8; ++l) least = lows[l] < least ? lows[l] : least;
        }
        from = end;
    }
    for (; from < n; ++from)
        if (x[from] < least) {
            least = x[from];
            at = from;
        }
    while (x[at] != least) ++at;
    return at;
}

}  // namespace onepass::ONEPASS_ISA
