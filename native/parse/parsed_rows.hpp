// Sparse rows with their labels, as the text parsers make them of a block of lines.
//
// Rows keep the order of the text. Equal features of a row are added up at the place of the first: the same row that a
// model makes of a mapping of names.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "parse/growing_array.hpp"
#include "parse/names.hpp"

namespace onepass {

// A malformed line, after `row` rows of its block.
struct BadLine {
    size_t row, line, column;
    std::string text, what;
};

// The value of the feature at a place among those of all rows.
struct ValueAt {
    int32_t at;
    double value;
};

struct ParsedRows {
    GrowingArray<int32_t> starts;    // rows + 1
    GrowingArray<int32_t> index;     // of a new name: -1 - its place in `new_names`, until assign_columns()
    GrowingArray<double> value;      // empty where nearly every feature is 1, as in text of words
    GrowingArray<ValueAt> not_ones;  // then the values that are not 1, as where a word is repeated
    GrowingArray<double> label;      // NaN where there is none; of a set, how many members it has
    GrowingArray<double> members;    // of the labels that are sets, one after the other
    GrowingArray<double> weight, base;
    GrowingArray<int64_t> query;  // svmlight's qid, -1 where there is none
    GrowingArray<int32_t> tag_ends;
    std::string tags;
    bool weighted = false, based = false, queried = false;  // has any row another weight than 1, base than 0, query?
    bool assigned = false;
    std::vector<int64_t> whole_labels;  // if all are whole numbers that a double holds exactly; otherwise empty
    Names new_names;                    // names that the stream's table did not have
    std::vector<BadLine> bad;
    size_t lines = 0;
    uint32_t crc = 0;     // of the text, where all of it was parsed
    int32_t columns = 0;  // one more than the largest index; for names, after assign_columns()

    size_t rows() const { return label.size(); }
    void reserve_for(size_t characters) {  // about enough, since growing costs copies
        index.reserve(characters / 8);
        value.reserve(characters / 8);
    }
    // After the last row.
    void close();
    // Gives new names their columns. Called in the order of the stream.
    void assign_columns(Names& names);
};

}  // namespace onepass
