#include "core/checksum.hpp"

#include <array>
#include <cstring>

#if defined(__x86_64__) && defined(__GNUC__)
#include <nmmintrin.h>
#define ONEPASS_CRC __attribute__((target("sse4.2")))
#elif defined(__ARM_FEATURE_CRC32)
#include <arm_acle.h>
#define ONEPASS_CRC
#endif

namespace onepass {

static constexpr uint32_t polynomial = 0x82F63B78u;  // bits reversed: the highest is the constant term

// tables[k][b]: what the byte b becomes when k more bytes follow it.
static constexpr auto tables = [] {
    std::array<std::array<uint32_t, 256>, 8> made{};
    for (uint32_t byte = 0; byte < 256; ++byte) {
        uint32_t left = byte;
        for (int bit = 0; bit < 8; ++bit) left = left & 1 ? left >> 1 ^ polynomial : left >> 1;
        made[0][byte] = left;
    }
    for (size_t k = 1; k < 8; ++k)
        for (size_t byte = 0; byte < 256; ++byte)
            made[k][byte] = made[k - 1][byte] >> 8 ^ made[0][made[k - 1][byte] & 255];
    return made;
}();

static uint32_t by_tables(const char* bytes, size_t size, uint32_t crc) {
    const auto* p = reinterpret_cast<const unsigned char*>(bytes);
    for (; size >= 8; p += 8, size -= 8) {
        crc ^= uint32_t(p[0]) | uint32_t(p[1]) << 8 | uint32_t(p[2]) << 16 | uint32_t(p[3]) << 24;
        crc = tables[7][crc & 255] ^ tables[6][crc >> 8 & 255] ^ tables[5][crc >> 16 & 255] ^ tables[4][crc >> 24] ^
              tables[3][p[4]] ^ tables[2][p[5]] ^ tables[1][p[6]] ^ tables[0][p[7]];
    }
    for (; size > 0; ++p, --size) crc = crc >> 8 ^ tables[0][(crc ^ *p) & 255];
    return crc;
}

// a · b modulo the polynomial.
static uint32_t times(uint32_t a, uint32_t b) {
    uint32_t product = 0;
    for (uint32_t bit = 1u << 31; bit != 0; bit >>= 1) {
        if (a & bit) product ^= b;
        b = b & 1 ? b >> 1 ^ polynomial : b >> 1;
    }
    return product;
}

uint32_t join_crc32c(uint32_t first, uint32_t second, uint64_t size_of_second) {
    uint32_t power = 1u << 23;  // x⁸, which a byte more multiplies by
    for (; size_of_second != 0; size_of_second >>= 1) {
        if (size_of_second & 1) first = times(power, first);
        power = times(power, power);
    }
    return first ^ second;
}

#ifdef ONEPASS_CRC

static inline ONEPASS_CRC uint32_t eight_more(uint32_t crc, const char* bytes) {
    uint64_t word;
    std::memcpy(&word, bytes, 8);
#ifdef __x86_64__
    return uint32_t(_mm_crc32_u64(crc, word));
#else
    return __crc32cd(crc, word);
#endif
}

// The instruction takes three cycles, and one can begin in each: three parts of a long text at once.
static ONEPASS_CRC uint32_t by_instruction(const char* bytes, size_t size, uint32_t crc) {
    constexpr size_t worth_it = size_t(1) << 15;
    if (size >= worth_it) {
        const size_t part = size / 24 * 8;
        const char *one = bytes, *two = one + part, *three = two + part;
        uint32_t second = 0, third = 0;
        for (const char* const end = two; one < end; one += 8, two += 8, three += 8) {
            crc = eight_more(crc, one);
            second = eight_more(second, two);
            third = eight_more(third, three);
        }
        crc = join_crc32c(join_crc32c(crc, second, part), third, part);
        bytes += 3 * part;
        size -= 3 * part;
    }
    for (; size >= 8; bytes += 8, size -= 8) crc = eight_more(crc, bytes);
    return by_tables(bytes, size, crc);
}

static bool has_instruction() {
#ifdef __x86_64__
    return __builtin_cpu_supports("sse4.2");
#else
    return true;
#endif
}

uint32_t crc32c(const char* bytes, size_t size, uint32_t before) {
    static const bool fast = has_instruction();
    return ~(fast ? by_instruction(bytes, size, ~before) : by_tables(bytes, size, ~before));
}

#else

uint32_t crc32c(const char* bytes, size_t size, uint32_t before) { return ~by_tables(bytes, size, ~before); }

#endif

}  // namespace onepass
