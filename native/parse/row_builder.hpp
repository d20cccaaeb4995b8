// Makes a row of the features that a parser finds in a line, one row after another.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "parse/feature_expansion.hpp"
#include "parse/namespace_reader.hpp"
#include "parse/number.hpp"
#include "parse/parsed_rows.hpp"
#include "parse/separators.hpp"

namespace onepass {

// Names and text must be followed by so many readable bytes, since loops read whole registers.
constexpr size_t padding = 64;

struct ParseOptions {
    int hash_bits = -1;         // 0 or more: features are hashes of their names
    Names* names = nullptr;     // gives features their columns by name; with hash_bits, only records the names
    uint32_t base = 0;          // svmlight: the first index
    bool keep_going = false;    // skip a malformed line instead of ending there
    bool sets = false;          // a label is a set of numbers: 1,3,5
    size_t longest = SIZE_MAX;  // bytes of a line
    const FeatureExpansion* expansion = nullptr;  // features to make of those in the text
};

// A malformed line: what is wrong, and where in the line. Null if no single place is wrong.
struct Malformed {
    const char* at;
    std::string what;
};

class RowBuilder {
 public:
    Separators separators;  // the places of the separators in the current line
    RowBuilder(ParsedRows& rows, const ParseOptions& options);
    // Begins a row of at most `most` features.
    void begin(size_t most);
    bool hashed() const { return options_.hash_bits >= 0; }
    // Begins a namespace: it holds the features that are added next.
    void enter_namespace(std::string_view space);
    // Copies a name that is not part of the text, with padding. The copy is valid until the row is finished.
    const char* copy_name(std::string_view name);
    // Adds all features of a namespace; `at` is the blank before the first. Returns where they end, or null if they
    // must be added one by one.
    const char* add_namespace(const char* at, const char* end);
    // Adds the feature namespace^name. The name must be followed by padding.
    template <class Value>
    void add(const char* name, size_t length, Value value) {
        if (!names_wanted()) return add_hash(name, length, value);
        const uint32_t hash = prefix_(name, length);
        if (options_.names) options_.names->prefetch_slot(hash);
        pending_[n_] = {name, uint32_t(length), hash, uint32_t(spaces_.size() - 1)};
        add(int32_t(hash), value);
    }
    // Adds the feature "name=text", a category.
    void add(std::string_view name, std::string_view text, double value);
    // Adds a feature by its index: a number, or the complete hash of its name.
    template <class Value>
    void add_place(uint32_t hash, Value value) {
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
    // Adds a decimal number as digits and divisor. All are divided together when the row is finished, so that no
    // division waits for another.
    void add(int32_t column, Decimal value) {
        if (!one_by_one_) begin_one_by_one();
        index_[n_] = column;
        digits_[n_] = value.digits;
        divisor_[n_] = value.divisor;
        n_ += value.digits != 0;
        decimal_ = true;
    }
    // Appends the row to the rows.
    void finish();
    bool finite() const;

 private:
    // The hash prefix_(name, length), but for the last step, which is done when the row is finished, for many together.
    template <class Value>
    void add_hash(const char* name, size_t length, Value value) {
        uint32_t place;
        if (separators.carets()) return add_place(prefix_(name, length), value);
        if (is_digit(*name) && prefix_.opens()) {
            if (read_short_whole(name, length, place)) return add_place(origin_ + place, value);
            if (length > 8) return add_place(prefix_(name, length), value);
        }
        if (!one_by_one_) begin_one_by_one();
        unmixed_[n_] = ~uint32_t(0);
        some_unmixed_ = true;
        add(int32_t(prefix_.unmixed(name, length)), value);
    }
    void begin_one_by_one();
    bool names_wanted() const { return options_.names || options_.expansion; }
    bool names_spelled() const { return !hashed() || options_.names; }
    void store_values();
    bool may_repeat(uint32_t mask);
    bool repeats(uint32_t mask);
    void merge();
    void look_up();
    void expand();

    ParsedRows& rows_;
    const ParseOptions options_;
    const size_t names_before_;  // the table's, when the block began
    const uint32_t mask_;
    int32_t* index_ = nullptr;
    double* value_ = nullptr;
    size_t n_ = 0;
    bool decimal_ = false;       // some values are still digits, over a divisor that is not 0
    bool some_unmixed_ = false;  // some hashes lack their last step
    bool ones_ = false;          // every value is known to be 1
    bool one_by_one_ = false;    // some features were added one by one: only these may need a division or a last step
    bool may_overflow_ = false;  // some value may be large; numbers of few characters are not
    std::vector<double> divisors_;
    std::vector<uint64_t> all_digits_;
    std::vector<uint32_t> all_unmixed_;
    double* divisor_ = nullptr;
    uint64_t* digits_ = nullptr;
    uint32_t* unmixed_ = nullptr;  // all bits set where the column is a hash that lacks its last step
    uint32_t origin_ = 0;          // the place of the namespace's number 0
    PrefixHash prefix_;
    std::optional<std::string> namespace_;  // that of prefix_ and origin_
    NamespaceReader namespace_reader_;
    struct Pending {  // a name whose column is looked up when the row is finished
        const char* name;
        uint32_t length, hash, space;
    };
    std::vector<Pending> pending_;
    std::vector<std::string> spaces_;  // "namespace^" of the row's namespaces
    std::vector<std::unique_ptr<std::string>> copied_names_;
    std::vector<uint8_t> marks_;  // the last feature at each place
    struct Seen {
        uint32_t stamp;  // of the row; entries of other rows count as empty
        uint32_t at;
    };
    std::vector<Seen> seen_;
    uint32_t stamp_ = 0;
    std::unique_ptr<FeatureExpander> expander_;
};

}  // namespace onepass
