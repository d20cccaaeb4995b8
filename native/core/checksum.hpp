// CRC-32C (Castagnoli), which joins: that of a text follows from those of its parts, so that threads may see to parts
// of it in any order, however it is cut. It tells that a text has changed by chance, not that nobody meant it.
#pragma once
#include <cstddef>
#include <cstdint>

namespace onepass {

// Of `size` bytes more after those whose checksum is `before`; 0 is that of nothing.
uint32_t crc32c(const char* bytes, size_t size, uint32_t before = 0);

// Of a text of which the first part has the checksum `first`, the second, of so many bytes, `second`.
uint32_t join_crc32c(uint32_t first, uint32_t second, uint64_t size_of_second);

}  // namespace onepass
