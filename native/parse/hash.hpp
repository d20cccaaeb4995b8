// The stable hash of feature names: MurmurHash3 (x86, 32 bit; Austin Appleby, public domain), and as in VW a name of
// digits is its number, so that neighbours stay neighbours. With a namespace, as in space^17, it is counted from the
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

// The digits that a name ends with, where they are all of it, or all after a '^'; otherwise 0.
inline size_t place_digits(const char* text, size_t length, bool opened = true) {
    size_t digits = 0;
    while (digits < length && is_digit(text[length - digits - 1])) ++digits;
    const bool place = digits < length ? text[length - digits - 1] == '^' : opened;
    return place ? digits : 0;
}

// Of digits, cut to 32 bits.
inline uint32_t place_of(const char* digits, size_t count) {
    uint32_t place = 0;
    for (size_t i = 0; i < count; ++i) place = 10 * place + uint32_t(digits[i] - '0');
    return place;
}

// Which hash of names this is: files of hashed models hold it, since under another one their names have other places.
// 1, of which files say nothing, was murmur3 of every name. Raised whenever a name's hash changes.
constexpr int hash_version = 2;

// murmur3 of nothing is 0: a number without a namespace is counted from there.
inline uint32_t hash_name(const char* text, size_t length) {
    const size_t digits = place_digits(text, length);
    return murmur3(text, length - digits) + place_of(text + length - digits, digits);
}

// hash_name(prefix + text) for many texts: the prefix is hashed once, and nothing branches on the lengths' remainders,
// which no processor can guess. Reads up to 3 bytes past the text.
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
    // Is text of digits a place, and counted from where?
    bool opens() const { return opens_; }
    uint32_t origin() const { return mixed(unmixed("\0\0\0", 0)); }

    // The prefix's hash so far, and its last bytes, which are hashed together with a text's first.
    struct Begun {
        uint32_t hash, rest, carry, length;
    };
    Begun begun() const { return {h_, uint32_t(rest_), uint32_t(carry_), uint32_t(length_)}; }

    // All but the last step of murmur3, which many can take together.
    uint32_t unmixed(const char* text, size_t length) const {
        uint32_t h = h_, k;
        uint64_t bytes = carry_;  // what is not mixed in yet, the first in the lowest byte
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
