// Decimal text to double, correctly rounded. Reads up to 8 bytes past the number: the text must be padded.
#pragma once
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace onepass {

constexpr uint64_t ten_to[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};

inline bool is_digit(char c) { return uint8_t(c - '0') < 10; }

// Eight characters, each as its number 0 to 9 if it is a digit; `not_digits` sets the high bit of the first byte that
// is none, and perhaps of bytes after it.
inline uint64_t load_digits(const char* p) {
    uint64_t t;
    std::memcpy(&t, p, 8);
    return t ^ 0x3030303030303030u;
}
inline uint64_t not_digits(uint64_t t) { return (t | (t + 0x7676767676767676u)) & 0x8080808080808080u; }

// The number that eight digits make, the first in the lowest byte (SIMD within a register, after Lemire).
inline uint32_t eight_digits(uint64_t t) {
    t = t * 10 + (t >> 8);
    return uint32_t(((t & 0x000000FF000000FFu) * (100 + (1000000ull << 32)) +
                     ((t >> 16) & 0x000000FF000000FFu) * (1 + (10000ull << 32))) >>
                    32);
}

// Up to eight digits at p, all at once; returns how many there are.
inline int read_digits(const char* p, uint64_t& value) {
    const uint64_t t = load_digits(p), others = not_digits(t);
    if (others & 0x80) return 0;
    const int count = others ? __builtin_ctzll(others) / 8 : 8;
    value = value * ten_to[count] + eight_digits(t << (64 - 8 * count));
    return count;
}

// A whole number of 1 to 8 digits; false for anything else.
inline bool read_short_whole(const char* p, size_t length, uint32_t& out) {
    if (length - 1 > 7) return false;
    const uint64_t t = load_digits(p) << (64 - 8 * length);
    out = eight_digits(t);
    return not_digits(t) == 0;
}

constexpr double powers_of_ten[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

// A number that is not computed yet: eight digits, the first in the lowest byte, over a power of ten that has the
// number's sign.
// Both parts are exact doubles, so the quotient is correctly rounded (Clinger 1990).
struct Decimal {
    uint64_t digits;
    double divisor;
};

// A number of at most 8 characters after its sign: digits, with or without a point. Most numbers are such, and no
// branch depends on their digits. False for any other text, which may still be a number.
inline bool read_short_number(const char* p, size_t length, Decimal& out) {
    const bool negative = *p == '-';
    p += negative;
    length -= negative;
    if (length - 1 > 7) return false;
    constexpr uint64_t ones = 0x0101010101010101u;
    uint64_t t = load_digits(p) << (64 - 8 * length);
    const uint64_t point = t ^ ('.' ^ '0') * ones;
    const uint64_t found = (point - ones) & ~point & 0x80 * ones;
    const unsigned at = found ? unsigned(__builtin_ctzll(found)) & ~7u : 0;  // 8 times the point's place
    const uint64_t before = (uint64_t(1) << at) - 1;
    if (found) t = (t & ~before << 8 & ~before) | (t & before) << 8;
    if (not_digits(t) || length == size_t(found != 0)) return false;
    const double divisor = powers_of_ten[found ? 7 - at / 8 : 0];
    out = {t, negative ? -divisor : divisor};
    return true;
}

enum class Number { good, none, overflow };

// The exponent at an 'e', which is added to `exponent`. Moves p behind it; false where no digit follows.
inline bool read_exponent(const char*& p, int& exponent) {
    const char* at = p + 1;
    const bool negative = *at == '-';
    at += negative || *at == '+';
    if (!is_digit(*at)) return false;
    int written = 0;
    for (; is_digit(*at); ++at)
        if (written < 100000) written = 10 * written + (*at - '0');
    exponent += negative ? -written : written;
    p = at;
    return true;
}

// Of a number whose nearest double is infinite or 0: is it too large? The place of its first digit that is not 0 tells.
inline bool is_too_large(const char* digits, const char* end, int exponent) {
    const char* first = digits;
    while (*first == '0' || *first == '.') ++first;
    if (first == end || (*first | 0x20) == 'e') return false;  // all digits are 0
    const char* point = digits;
    while (is_digit(*point)) ++point;
    const char* fraction_end = point;
    if (*point == '.')
        while (is_digit(*++fraction_end)) {
        }
    const int64_t fraction = *point == '.' ? fraction_end - point - 1 : 0;
    const int64_t place = point - first;  // digits before the point, or less than 0: zeros after it
    return exponent + fraction + place > 0;
}

// A number of many digits, or with a large exponent. `exponent`: of its last digit.
inline Number read_long_number(const char* digits, const char* end, int exponent, double& out) {
    if (std::from_chars(digits, end, out).ec != std::errc::result_out_of_range) return Number::good;
    if (is_too_large(digits, end, exponent)) return Number::overflow;
    out = 0.0;
    return Number::good;
}

// A number at p: [+-] digits [. digits] [e [+-] digits]. Moves p behind it. `none` where there is no number.
inline Number read_number(const char*& p, double& out) {
    const bool negative = *p == '-';
    const char* const digits = p + (negative || *p == '+');
    const char* q = digits;
    uint64_t mantissa = 0;  // wraps where there are more than 19 digits, and is then not used
    int step = 0, exponent = 0;
    do q += step = read_digits(q, mantissa);
    while (step == 8);
    int count = int(q - digits);
    if (*q == '.') {
        const char* const fraction = ++q;
        do q += step = read_digits(q, mantissa);
        while (step == 8);
        exponent = -int(q - fraction);
        count -= exponent;
    }
    if (count == 0) return Number::none;
    if ((*q | 0x20) == 'e' && !read_exponent(q, exponent)) return Number::none;
    p = q;
    // Both the digits and the power of ten are exact doubles: one rounding (Clinger 1990).
    if (count <= 19 && mantissa <= uint64_t(1) << 53 && exponent >= -22 && exponent <= 22) {
        const double value = double(mantissa);
        out = exponent < 0 ? value / powers_of_ten[-exponent] : value * powers_of_ten[exponent];
    } else if (read_long_number(digits, q, exponent, out) == Number::overflow) {
        return Number::overflow;
    }
    if (negative) out = -out;
    return Number::good;
}

}  // namespace onepass
