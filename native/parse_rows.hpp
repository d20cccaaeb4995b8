// What the text parsers share: a block of lines in, sparse rows out. Knows no Python.
//
// A block is whole lines, the last one ended too, followed by `padding` readable bytes, so that the scans may look
// ahead. Rows keep the order of the text; equal features of a row are added up where the first stood: what a model
// makes of the same row as a mapping of names.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "parse_names.hpp"
#include "parse_number.hpp"

namespace onepass {

constexpr size_t padding = 64;

// A line that was not understood. `row` counts the rows of the block before it.
struct Bad {
    size_t row, line, offset, length, column;
    std::string what;
};

// An array that grows without being zeroed first.
template <class T>
class Stack {
 public:
    size_t size() const { return size_; }
    T* data() const { return data_.get(); }
    T* room(size_t more) {  // space for `more` at the end, of which `take` then keeps some
        if (size_ + more > capacity_) {
            capacity_ = (size_ + more) * 2;
            T* larger = static_cast<T*>(std::realloc(data_.get(), capacity_ * sizeof(T)));
            if (!larger) throw std::bad_alloc();
            (void)data_.release();
            data_.reset(larger);
        }
        return data_.get() + size_;
    }
    void take(size_t more) { size_ += more; }
    void push(T value) {
        *room(1) = value;
        ++size_;
    }

 private:
    struct Free {
        void operator()(T* p) const { std::free(p); }
    };
    std::unique_ptr<T, Free> data_;
    size_t size_ = 0, capacity_ = 0;
};

struct Rows {
    Stack<int32_t> starts;  // rows + 1
    Stack<int32_t> index;   // of a new name: -1 - its place in `fresh`, until settled
    Stack<double> value;
    Stack<double> label;  // NaN where there is none
    Stack<double> weight, base;
    Stack<int64_t> query;  // svmlight's qid, -1 where there is none
    Stack<int32_t> tag_ends;
    std::string tags;
    bool weighted = false, based = false, queried = false;  // does any row say something else than 1, 0, -1?
    Names fresh;                                            // names that the stream's table did not have
    std::vector<Bad> bad;
    size_t lines = 0;
    int32_t columns = 0;  // one more than the largest index; for names, after settle()

    size_t rows() const { return label.size(); }
    // Gives new names their columns. Called in the order of the stream.
    void settle(Names& names);
};

struct ParseOptions {
    int hash_bits = -1;       // features are hashes of their names
    Names* names = nullptr;   // features are names with columns of their own
    int64_t base = 0;         // svmlight: the first index
    bool keep_going = false;  // after a bad line
};

// One row in the making.
class RowBuilder {
 public:
    RowBuilder(Rows& rows, const ParseOptions& options);
    void begin(size_t most);  // features to come
    void add(std::string_view name, double value);
    void add(int32_t column, double value) {
        if (value == 0.0) return;
        index_[n_] = column;
        value_[n_++] = value;
    }
    void finish();  // the row is good: keep it
    bool finite() const;

 private:
    void merge();
    int32_t column_of(std::string_view name);

    Rows& rows_;
    const ParseOptions options_;
    const uint32_t mask_;
    int32_t* index_ = nullptr;
    double* value_ = nullptr;
    size_t n_ = 0;
    struct Seen {
        uint32_t row;  // the stamp that makes clearing unnecessary
        uint32_t at;
    };
    std::vector<Seen> seen_;
    uint32_t stamp_ = 0;
};

// A malformed line: what was wrong, and where in the line.
struct Malformed {
    const char* at;
    std::string what;
};

using LineParser = void (*)(const char* p, const char* end, RowBuilder& row, Rows& rows, const ParseOptions& options);

// p is a line without its end; throws Malformed. Appends at most one row, and nothing where it throws.
void parse_vw(const char* p, const char* end, RowBuilder& row, Rows& rows, const ParseOptions& options);
void parse_svmlight(const char* p, const char* end, RowBuilder& row, Rows& rows, const ParseOptions& options);

// All lines of a block. Stops after the first bad line unless told to keep going.
void parse_block(const char* text, size_t size, LineParser line, const ParseOptions& options, Rows& rows);

}  // namespace onepass
