// svmlight / libsvm text: label [qid:n] index:value ... [# comment]
#include <limits>

#include "parse_rows.hpp"

namespace onepass {

namespace {

inline bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

inline const char* word_end(const char* p, const char* end) {
    while (p < end && !is_blank(*p) && *p != '#') ++p;
    return p;
}

[[noreturn]] void refuse(const char* p, const char* end, const std::string& expected) {
    throw Malformed{p, expected + ", got '" + std::string(p, size_t(word_end(p, end) - p)) + "'"};
}

// A whole number at p, at most `most`; p moves behind it.
int64_t read_whole(const char*& p, const char* end, int64_t most, const char* what) {
    const char* const begin = p;
    uint64_t value = 0;
    int step = 0;
    do p += step = read_digits(p, value);
    while (step == 8);
    if (p == begin) refuse(begin, end, std::string(what) + " must be a whole number >= 0");
    if (p - begin > 18 || value > uint64_t(most))
        refuse(begin, end, std::string(what) + " must be at most " + std::to_string(most));
    return int64_t(value);
}

}  // namespace

void parse_svmlight(const char* p, const char* end, RowBuilder& row, Rows& rows, const ParseOptions& options) {
    while (p < end && is_blank(*p)) ++p;
    if (p == end || *p == '#') return;
    const bool by_name = options.hash_bits >= 0;
    double label;
    const char* word = p;
    const Number outcome = read_number(p, label);
    if (outcome == Number::overflow) refuse(word, end, "the label is too large for a double");
    if (outcome == Number::none || (p < end && !is_blank(*p) && *p != '#'))
        refuse(word, end, "the line must begin with a label that is a number");
    row.begin(size_t(end - p) / 2 + 1);
    int64_t query = -1;
    char name[24];
    for (;;) {
        while (p < end && is_blank(*p)) ++p;
        if (p >= end || *p == '#') break;
        if (end - p > 4 && std::memcmp(p, "qid:", 4) == 0) {
            p += 4;
            query = read_whole(p, end, std::numeric_limits<int64_t>::max() / 2, "qid");
        } else {
            word = p;
            int64_t index = read_whole(p, end, std::numeric_limits<int32_t>::max() - 1, "an index");
            if (*p != ':') refuse(word, end, "expected index:value");
            if (index < options.base) refuse(word, end, "indices begin at " + std::to_string(options.base));
            ++p;
            double value;
            const Number number = read_number(p, value);
            if (number == Number::overflow) refuse(word, end, "the value is too large for a double");
            if (number == Number::none) refuse(word, end, "expected index:value with a number as value");
            if (by_name) {
                const auto [last, error] = std::to_chars(name, name + sizeof name, index);
                row.add(std::string_view(name, size_t(last - name)), value);
            } else {
                row.add(int32_t(index - options.base), value);
            }
        }
        if (p < end && !is_blank(*p) && *p != '#') refuse(p, end, "expected a blank after a value");
    }
    row.finish();
    rows.label.push(label);
    rows.query.push(query);
    rows.queried |= query != -1;
}

}  // namespace onepass
