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
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "parse/expand.hpp"
#include "parse/many.hpp"
#include "parse/names.hpp"
#include "parse/number.hpp"

namespace onepass {

constexpr size_t padding = 64;

// A line that was not understood. `row` counts the rows of the block before it.
struct Bad {
    size_t row, line, column;
    std::string text, what;
};

// Memory of 2^k bytes that was used before: fresh pages cost the system more than parsing into them. Bounded.
void* take_memory(size_t bytes);
void give_memory(void* memory, size_t bytes) noexcept;

// An array that grows without being zeroed first.
template <class T>
class Stack {
 public:
    Stack() = default;
    Stack(const Stack&) = delete;
    Stack& operator=(const Stack&) = delete;
    ~Stack() { give_memory(data_, capacity_ * sizeof(T)); }
    size_t size() const { return size_; }
    T* data() const { return data_; }
    T* room(size_t more) {  // space for `more` at the end, of which `take` then keeps some
        if (size_ + more > capacity_) grow(size_ + more);
        return data_ + size_;
    }
    void take(size_t more) { size_ += more; }
    void give_back() {  // the memory, where nothing was stored
        if (size_ > 0) return;
        give_memory(data_, capacity_ * sizeof(T));
        data_ = nullptr;
        capacity_ = 0;
    }
    void clear() { size_ = 0; }
    void drop(size_t first) {
        size_ -= first;
        if (first > 0 && size_ > 0) std::memmove(data_, data_ + first, size_ * sizeof(T));
    }
    void push(T value) {
        *room(1) = value;
        ++size_;
    }

 private:
    void grow(size_t least) {
        size_t capacity = 512 / sizeof(T);
        while (capacity < least) capacity *= 2;
        T* larger = static_cast<T*>(take_memory(capacity * sizeof(T)));
        if (size_) std::memcpy(larger, data_, size_ * sizeof(T));
        give_memory(data_, capacity_ * sizeof(T));
        data_ = larger;
        capacity_ = capacity;
    }
    T* data_ = nullptr;
    size_t size_ = 0, capacity_ = 0;
};

// The value of the feature at a place among those of all rows.
struct ValueAt {
    int32_t at;
    double value;
};

struct Rows {
    Stack<int32_t> starts;  // rows + 1
    Stack<int32_t> index;   // of a new name: -1 - its place in `fresh`, until settled
    Stack<double> value;    // empty where nearly every feature is 1: of words nothing is written
    Stack<ValueAt> others;  // then: those that are not 1, as of two words at one place
    Stack<double> label;    // NaN where there is none; of a set, how many members it has
    Stack<double> members;  // of the labels that are sets, one after the other
    Stack<double> weight, base;
    Stack<int64_t> query;  // svmlight's qid, -1 where there is none
    Stack<int32_t> tag_ends;
    std::string tags;
    bool weighted = false, based = false, queried = false;  // does any row say something else than 1, 0, -1?
    bool settled = false;
    std::vector<int64_t> whole;  // the labels, where all are whole numbers that a double holds exactly
    Names fresh;                 // names that the stream's table did not have
    std::vector<Bad> bad;
    size_t lines = 0;
    uint32_t crc = 0;     // of the text, where all of it was parsed
    int32_t columns = 0;  // one more than the largest index; for names, after settle()

    size_t rows() const { return label.size(); }
    void expect(size_t characters) {  // room for about as many as there will be: growing costs copies
        index.room(characters / 8);
        value.room(characters / 8);
    }
    void close();  // after the last row
    // Gives new names their columns. Called in the order of the stream.
    void settle(Names& names);
};

struct ParseOptions {
    int hash_bits = -1;         // features are hashes of their names
    Names* names = nullptr;     // features are names with columns of their own; with hash_bits: names to be remembered
    uint32_t base = 0;          // svmlight: the first index
    bool keep_going = false;    // after a bad line
    bool sets = false;          // a label is a set of numbers: 1,3,5
    size_t longest = SIZE_MAX;  // bytes of a line
    const Expansion* expansion = nullptr;  // features made of those in the text
};

// Where a line has blanks, control characters, ':' or '|', and where it ends. Found for the whole line before anything
// is read: each name and number then begins at a place that is known, instead of where the one before it ended, and
// the processor works on several at once.
class Stops {
 public:
    const uint32_t* find(const char* line, size_t length);
    bool carets() const { return carets_; }  // may there be a '^' in the line? Then names have namespaces of their own

 private:
    bool carets_ = false;
    std::vector<uint32_t> at_;
};

// One row in the making.
class RowBuilder {
 public:
    Stops stops;  // of the line
    RowBuilder(Rows& rows, const ParseOptions& options);
    void begin(size_t most);  // features to come
    bool hashed() const { return options_.hash_bits >= 0; }
    // The features to come are of this namespace.
    void enter(std::string_view space);
    // A name that does not stand in the text: kept, and padded, until the row is finished.
    const char* keep(std::string_view name);
    // All features of the namespace, which go on from a blank: returns where they end, or null where they have to be
    // read one by one.
    const char* add_many(const char* at, const char* end);
    // namespace^name; the name is padded.
    template <class Value>
    void add(const char* name, size_t length, Value value) {
        if (!names_wanted()) return add_hash(name, length, value);
        const uint32_t hash = prefix_(name, length);
        if (options_.names) options_.names->ask_slot(hash);
        pending_[n_] = {name, uint32_t(length), hash, uint32_t(spaces_.size() - 1)};
        add(int32_t(hash), value);
    }
    void add(std::string_view name, std::string_view text, double value);  // name=text
    // A name that is a number, or a hash that is made.
    template <class Value>
    void add_made(uint32_t hash, Value value) {
        if (!one_by_one_) begin_one_by_one();
        unmixed_[n_] = 0;
        add(int32_t(hash), value);
    }
    void add(int32_t column, double value) {
        if (!one_by_one_) begin_one_by_one();
        may_overflow_ = true;
        index_[n_] = column;
        value_[n_] = value;
        divisor_[n_] = 0.0;
        n_ += value != 0.0;  // a zero is no feature
    }
    // Made all together when the row is finished: several at a time, and nobody waits for a division.
    void add(int32_t column, Decimal value) {
        if (!one_by_one_) begin_one_by_one();
        index_[n_] = column;
        digits_[n_] = value.digits;
        divisor_[n_] = value.divisor;
        n_ += value.digits != 0;
        decimal_ = true;
    }
    void finish();  // the row is good: keep it
    bool finite() const;

 private:
    // The same as prefix_(name, length), but for what many take together when the row is finished.
    template <class Value>
    void add_hash(const char* name, size_t length, Value value) {
        uint32_t place;
        if (stops.carets()) return add_made(prefix_(name, length), value);
        if (is_digit(*name) && prefix_.opens()) {
            if (read_short_whole(name, length, place)) return add_made(origin_ + place, value);
            if (length > 8) return add_made(prefix_(name, length), value);
        }
        if (!one_by_one_) begin_one_by_one();
        unmixed_[n_] = ~uint32_t(0);
        some_unmixed_ = true;
        add(int32_t(prefix_.unmixed(name, length)), value);
    }
    void begin_one_by_one();
    bool names_wanted() const { return options_.names || options_.expansion; }
    bool names_spelled() const { return !hashed() || options_.names; }
    void keep_values();
    bool may_repeat(uint32_t mask);
    bool repeats(uint32_t mask);
    void merge();
    void look_up();
    void expand();

    Rows& rows_;
    const ParseOptions options_;
    const size_t names_before_;  // the table's, when the block began
    const uint32_t mask_;
    int32_t* index_ = nullptr;
    double* value_ = nullptr;
    size_t n_ = 0;
    bool decimal_ = false;  // some values are still digits, over a divisor that is not 0
    bool some_unmixed_ = false;
    bool ones_ = false;          // every value is 1 for sure
    bool one_by_one_ = false;    // some features came so: only then is there something to make or to mix
    bool may_overflow_ = false;  // some value may be large: what is read many at a time, or short, is not
    std::vector<double> divisors_;
    std::vector<uint64_t> all_digits_;
    std::vector<uint32_t> all_unmixed_;
    double* divisor_ = nullptr;
    uint64_t* digits_ = nullptr;
    uint32_t* unmixed_ = nullptr;  // all bits set where the column is a hash whose bits are not mixed yet
    uint32_t origin_ = 0;          // of the namespace's numbers
    PrefixHash prefix_;
    std::optional<std::string> entered_;  // the namespace that prefix_ and origin_ are of
    ManyFeatures many_;
    struct Pending {  // a name whose column is looked up when the row is finished
        const char* name;
        uint32_t length, hash, space;
    };
    std::vector<Pending> pending_;
    std::vector<std::string> spaces_;                 // "namespace^" of the row's namespaces
    std::vector<std::unique_ptr<std::string>> made_;  // names that do not stand in the text
    std::vector<uint8_t> marks_;                      // which feature was last at this place
    struct Seen {
        uint32_t row;  // the stamp that makes clearing unnecessary
        uint32_t at;
    };
    std::vector<Seen> seen_;
    uint32_t stamp_ = 0;
    std::unique_ptr<Expander> expander_;
};

// A malformed line: what was wrong, and where in the line.
struct Malformed {
    const char* at;
    std::string what;
};

// The members of a label 1,3,5 between p and end, in their order and each once; throws Malformed.
std::vector<double> read_members(const char* p, const char* end);

using LineParser = void (*)(const char* p, const char* end, RowBuilder& row, Rows& rows, const ParseOptions& options);

// p is a line without its end; throws Malformed. Appends at most one row, and nothing where it throws.
void parse_vw(const char* p, const char* end, RowBuilder& row, Rows& rows, const ParseOptions& options);
void parse_svmlight(const char* p, const char* end, RowBuilder& row, Rows& rows, const ParseOptions& options);

// All lines of a block. Stops after the first bad line unless told to keep going.
void parse_block(const char* text, size_t size, LineParser line, const ParseOptions& options, Rows& rows);
// The same for a part of a block.
void parse_lines(const char* text, size_t size, LineParser line, const ParseOptions& options, RowBuilder& builder,
                 Rows& rows);

}  // namespace onepass
