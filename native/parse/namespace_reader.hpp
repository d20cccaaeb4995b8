// The features of one namespace, read together: where all of them are name:number, or all are name. Most lines of most
// files are so; other features are read one by one, which gives the same row.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "parse/hash.hpp"

namespace onepass {

class NamespaceReader {
 public:
    // Reads from `at`, a blank, up to the next bar or the end of the line, which is padded. Returns where that is, or
    // null where anything is unusual. Features without a value have the value 1; zeros are left out. Writes hashes and
    // values to `index` and `value`, their number to `count`, and to `valued` whether the text has values.
    const char* read(const char* at, const char* end, const PrefixHash& prefix, int32_t* index, double* value,
                     size_t& count, bool& valued);

 private:
    bool read_pairs(const char* text, size_t n, const PrefixHash& prefix, int32_t* index, double* value,
                    size_t& count) const;
    std::vector<uint32_t> blanks_, colons_;
};

// Are features read in packs (parse/packed.hpp), where the processor can do so? The rows are the same.
void use_packs(bool wanted);
bool uses_packs();

}  // namespace onepass
