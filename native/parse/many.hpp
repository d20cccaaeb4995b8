// The features of one namespace, many at a time: where all of them are name:number, or all are name. Most lines of most
// files are so; whatever is not is left to the reader of single features, which gives the same row.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "parse/hash.hpp"

namespace onepass {

class ManyFeatures {
 public:
    // Reads from `at`, a blank, up to the next bar or the end of the line, which is padded: returns where that is. Null
    // where anything is unusual. Features without a value have the value 1; zeros are none. Hashes and values go to
    // `index` and `value`, `count` says how many there are, and `valued` whether values were given.
    const char* read(const char* at, const char* end, const PrefixHash& prefix, int32_t* index, double* value,
                     size_t& count, bool& valued);

 private:
    std::vector<uint32_t> blanks_, colons_;
};

// Whether processors that can take features in packs (parse/packed.hpp) do so; the rows are the same.
void use_packs(bool wanted);
bool uses_packs();

}  // namespace onepass
