// CRC-32C (Castagnoli). The checksum of a text can be computed from those of its parts, so that threads can work on
// parts in any order. It detects accidental changes of a text, not deliberate ones.
#pragma once
#include <cstddef>
#include <cstdint>

namespace onepass {

// The checksum of a text after `size` more bytes; `before` is the checksum before them, 0 for an empty text.
uint32_t crc32c(const char* bytes, size_t size, uint32_t before = 0);

// The checksum of two parts together; the second has the checksum `second` and so many bytes.
uint32_t join_crc32c(uint32_t first, uint32_t second, uint64_t size_of_second);

}  // namespace onepass
