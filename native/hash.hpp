// MurmurHash3 (x86, 32 bit; Austin Appleby, public domain): the stable hash of feature names.
#pragma once
#include <cstdint>
#include <cstring>

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

}  // namespace onepass
