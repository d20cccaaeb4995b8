// Which features of a large table were ever written. With very many classes the numbers of one feature fill a page of
// memory or more, and most features of a hash table never occur: a bit marks each that may have been written. Loops
// over all features skip the others, and the operating system never allocates their pages. Not part of the saved state.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace onepass {

struct Touched {
    bool on = false;
    std::vector<uint64_t> bits;  // empty unless on

    void mark(size_t feature) { bits[feature / 64] |= uint64_t(1) << feature % 64; }
    void resize(size_t features);

    // Calls visit(feature) for all marked features, or for all features if none are marked.
    template <class Visit>
    void each(size_t features, const Visit& visit) const {
        for (size_t j = 0; j < features && !on; ++j) visit(j);
        for (size_t word = 0; word < bits.size() && on; ++word)
            for (uint64_t left = bits[word]; left; left &= left - 1) visit(word * 64 + size_t(std::countr_zero(left)));
    }
};

}  // namespace onepass
