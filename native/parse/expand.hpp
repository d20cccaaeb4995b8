// Features made of features: runs of neighbours in a namespace, and products across namespaces. Knows no Python.
//
// A feature called space^name is of that namespace; one without '^' of the nameless one. The product of p and q is the
// feature called p*q, as in VW's audit, with the product of their values; a run of words is called space^one two and
// has the value 1. The hash of a made feature is the hash of its name: rows of names and rows of hashes agree.
#pragma once
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "parse/hash.hpp"

namespace onepass {

// One place in an interaction, and the features that may stand there.
struct Term {
    enum Kind { any, initial, named };
    Kind kind = any;
    std::string text;  // the namespace's first letter (empty: the nameless one), or the whole name
    // A whole name also stands for the column of a table: for the features name=value, and name itself.
    bool takes(std::string_view name) const;
};

struct Expansion {
    std::vector<std::vector<Term>> interactions;  // each of 2 to 8 terms
    size_t ngram = 1;                             // the longest run
};

struct TooManyFeatures : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// One row at a time: note its features, expand, read what came out.
class Expander {
 public:
    explicit Expander(const Expansion& what) : what_(what) {}
    void clear();
    void note(std::string_view space, std::string_view name, double value);  // called space + name
    // Equal features are added up where the first stood; then runs, then products. Names of products are only spelled
    // out where they are wanted.
    void expand(bool spell);

    struct Made {
        size_t begin;  // in the text; length 0: not spelled out
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

    const Expansion& what_;
    std::string text_;  // ends in padding, for the hash
    std::vector<Made> features_;
    std::vector<uint32_t> seen_;
    // of the interaction in work
    std::vector<std::vector<size_t>> takers_;  // by term: features that may stand there
    std::vector<uint8_t> fits_;                // by feature: a bit for every term that takes it
    std::vector<size_t> chosen_;
    std::string prefix_;  // the names chosen so far, each followed by '*'
    std::vector<PrefixHash> hashes_;
};

}  // namespace onepass
