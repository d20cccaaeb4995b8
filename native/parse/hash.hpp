// The stable hash of feature names: MurmurHash3 (x86, 32 bit; Austin Appleby, public domain). As in VW, the hash of a
// name of digits is its number, so that neighbours stay neighbours; in a namespace, as in space^17, the number plus the
// hash of "space^".
#pragma once
#include <cstdint>
#include <cstring>

#include "parse/number.hpp"

namespace onepass {

inline uint32_t rotate_left(uint32_t x, int by) { return (x << by) | (x >> (32 - by)); }

inline uint32_t murmur3(const char* text, size_t length, uint32_t seed = 0) {
    constexpr uint32_t c1 = 0xcc9e2d51, c2 = 0x1b873593;
    uint32_t h = seed;
    const size_t blocks = length / 4;
    for (size_t i = 0; i < blocks; ++i) {
        uint32_t k;
        std::memcpy(&k, text + 4 * i, 4);
        h = rotate_left(h ^ (rotate_left(k * c1, 15) * c2), 13) * 5 + 0xe6546b64;
    }
    uint32_t k = 0;
    const unsigned char* tail = reinterpret_cast<const unsigned char*>(text) + 4 * blocks;
    switch (length & 3) {
        case 3: k ^= uint32_t(tail[2]) << 16; [[fallthrough]];
        case 2: k ^= uint32_t(tail[1]) << 8; [[fallthrough]];
        case 1: k ^= tail[0]; h ^= rotate_left(k * c1, 15) * c2;
    }
    h ^= uint32_t(length);
    h = (h ^ (h >> 16)) * 0x85ebca6b;
    h = (h ^ (h >> 13)) * 0xc2b2ae35;
    return h ^ (h >> 16);
}

inline uint32_t murmur3_mix(uint32_t h, uint32_t k) {
    return rotate_left(h ^ (rotate_left(k * 0xcc9e2d51, 15) * 0x1b873593), 13) * 5 + 0xe6546b64;
}

// How many digits a name has, if it is digits alone, or digits alone after its last '^'; otherwise 0.
inline size_t place_digits(const char* text, size_t length, bool opened = true) {
    size_t digits = 0;
    while (digits < length && is_digit(text[length - digits - 1])) ++digits;
    const bool place = digits < length ? text[length - digits - 1] == '^' : opened;
    return place ? digits : 0;
}

// The number of digits, modulo 2^32.
inline uint32_t place_of(const char* digits, size_t count) {
    uint32_t place = 0;
    for (size_t i = 0; i < count; ++i) place = 10 * place + uint32_t(digits[i] - '0');
    return place;
}

// The version of this hash. Files of hashed models hold it, since another hash gives their names other places. Version
// 1, which files do not mention, was murmur3 of every name. To be raised whenever the hash of any name changes.
constexpr int hash_version = 2;

// murmur3 of the empty text is 0, so that a number without a namespace is its own hash.
inline uint32_t hash_name(const char* text, size_t length) {
    const size_t digits = place_digits(text, length);
    return murmur3(text, length - digits) + place_of(text + length - digits, digits);
}

// hash_name(prefix + text) for many texts. The prefix is hashed once, and no branch depends on the length of the text
// modulo 4, which would be mispredicted. Reads up to 3 bytes past the text.
class PrefixHash {
 public:
    void set(const char* prefix, size_t length) {
        length_ = length;
        opens_ = length == 0 || prefix[length - 1] == '^';
        h_ = 0;
        for (; length >= 4; prefix += 4, length -= 4) {
            uint32_t k;
            std::memcpy(&k, prefix, 4);
            h_ = murmur3_mix(h_, k);
        }
        rest_ = int(length);
        carry_ = 0;
        for (size_t i = 0; i < length; ++i) carry_ |= uint64_t(uint8_t(prefix[i])) << 8 * i;
    }

    uint32_t operator()(const char* text, size_t length) const {
        const size_t digits = place_digits(text, length, opens_);
        return mixed(unmixed(text, length - digits)) + place_of(text + length - digits, digits);
    }
    // Is a text of digits a number? And the hash that it is added to.
    bool opens() const { return opens_; }
    uint32_t origin() const { return mixed(unmixed("\0\0\0", 0)); }

    // The hash of the prefix but for its last bytes (length modulo 4), which are hashed together with the text's first.
    struct Begun {
        uint32_t hash, rest, carry, length;
    };
    Begun begun() const { return {h_, uint32_t(rest_), uint32_t(carry_), uint32_t(length_)}; }

    // The hash but for the last step of murmur3, `mixed`, which can be done for many texts together.
    uint32_t unmixed(const char* text, size_t length) const {
        uint32_t h = h_, k;
        uint64_t bytes = carry_;  // not mixed in yet, the first in the lowest byte
        const char* const tail = text + (length & ~size_t(3));
        for (; text < tail; text += 4) {
            std::memcpy(&k, text, 4);
            bytes |= uint64_t(k) << 8 * rest_;
            h = murmur3_mix(h, uint32_t(bytes));
            bytes >>= 32;
        }
        std::memcpy(&k, tail, 4);
        k &= (uint32_t(1) << 8 * (length & 3)) - 1;
        bytes |= uint64_t(k) << 8 * rest_;
        const bool more = rest_ + int(length & 3) >= 4;
        const uint32_t mixed = murmur3_mix(h, uint32_t(bytes));
        h = more ? mixed : h;
        bytes = more ? bytes >> 32 : bytes;
        return h ^ rotate_left(uint32_t(bytes) * 0xcc9e2d51, 15) * 0x1b873593 ^ uint32_t(length_ + length);
    }
    static uint32_t mixed(uint32_t h) {
        h = (h ^ (h >> 16)) * 0x85ebca6b;
        h = (h ^ (h >> 13)) * 0xc2b2ae35;
        return h ^ (h >> 16);
    }

 private:
    bool opens_ = true;
    uint32_t h_ = 0;
    int rest_ = 0;
    uint64_t carry_ = 0;
    size_t length_ = 0;
};

}  // namespace onepass
