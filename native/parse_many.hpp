// The features of one namespace, many at a time: where all of them are name:number, or all are name. Most lines of most
// files are so; whatever is not is left to the reader of single features, which gives the same row.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "hash.hpp"

namespace onepass {

class ManyFeatures {
 public:
    // Reads from `at`, a blank, up to the next bar or the end of the line, which is padded: returns where that is. Null
    // where anything is unusual. Features without a value have the value 1; zeros are none. Hashes and values go to
    // `index` and `value`, and `count` says how many there are.
    const char* read(const char* at, const char* end, const PrefixHash& prefix, int32_t* index, double* value,
                     size_t& count);

 private:
    void load_eights(const char* from, const uint32_t* at);
    bool read_names(const char* text, const PrefixHash& prefix, const uint32_t* ends, int32_t* index);

    std::vector<uint32_t> blanks_, colons_;
    std::vector<uint64_t> eights_;
    std::vector<uint32_t> sizes_, hashes_;
    size_t n_ = 0;
};

}  // namespace onepass
