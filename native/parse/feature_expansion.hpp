// Features made of other features: runs of neighbours in a namespace (n-grams), and products. Knows no Python.
//
// A feature named space^name belongs to that namespace, one without '^' to the namespace without a name. The product of
// p and q is the feature named p*q, as in VW's audit, with the product of their values. A run of words is named
// space^one two and has the value 1. The hash of a made feature is the hash of its name, so that rows of names and rows
// of hashes agree.
#pragma once
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "core/name_lists.hpp"
#include "parse/hash.hpp"

namespace onepass {

// Which features a factor of an interaction takes: all, those of a namespace, or those of a name.
ONEPASS_ENUM(TermKind, any, initial, named)

// One factor of an interaction, and the features that it takes.
struct Term {
    TermKind kind = TermKind::any;
    std::string text;  // the first letter of the namespace (empty: the one without a name), or the whole name
    // A whole name also means the column of a table: it takes the features name=value, and name itself.
    bool takes(std::string_view name) const;
};

struct FeatureExpansion {
    std::vector<std::vector<Term>> interactions;  // each of 2 to 8 terms
    size_t ngram = 1;                             // the longest run
};

struct TooManyFeatures : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// For one row after another: `clear`, `note` each of its features, `expand`, read `features`.
class FeatureExpander {
 public:
    explicit FeatureExpander(const FeatureExpansion& what) : what_(what) {}
    void clear();
    void note(std::string_view space, std::string_view name, double value);  // named space + name
    // Adds runs, adds up equal features at the place of the first, then adds products. The names of products are made
    // only if `spell`.
    void expand(bool spell);

    struct Made {
        size_t begin;  // in the text; length 0: the name was not made
        uint32_t length, hash;
        double value;
    };
    const std::vector<Made>& features() const { return features_; }
    std::string_view name(const Made& made) const { return {text_.data() + made.begin, made.length}; }

 private:
    static constexpr size_t most = size_t(1) << 24;  // features of a row
    void add_runs();
    void add_up();
    void multiply(const std::vector<Term>& terms, bool spell);
    void choose(size_t term, double value, bool spell);
    bool is_taken_in_order(size_t term, size_t feature) const;
    void check_room() const;

    const FeatureExpansion& what_;
    std::string text_;  // ends in padding, for the hash
    std::vector<Made> features_;
    std::vector<uint32_t> seen_;
    // For the interaction that is being multiplied:
    std::vector<std::vector<size_t>> takers_;  // by term: the features that it takes
    std::vector<uint8_t> fits_;                // by feature: a bit for every term that takes it
    std::vector<size_t> chosen_;
    std::string prefix_;  // the names chosen so far, each followed by '*'
    std::vector<PrefixHash> hashes_;
};

}  // namespace onepass
