// svmlight / libsvm text: label [qid:n] index:value ... [# comment]. A label that is a set is 1,3,5; of the empty set,
// nothing.
#include <limits>

#include "parse/lines.hpp"

namespace onepass {

namespace {

inline bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

[[noreturn]] void refuse(const char* p, const char* end, const std::string& expected) {
    const char* stop = p;
    while (stop < end && !is_blank(*stop)) ++stop;
    throw Malformed{p, expected + ", got '" + std::string(p, size_t(stop - p)) + "'"};
}

// The whole number from p to `stop`, at most `most`.
int64_t read_whole(const char* p, const char* stop, int64_t most, const char* what) {
    const char* const begin = p;
    uint64_t value = 0;
    int step = 0;
    do p += step = read_digits(p, value);
    while (step == 8);
    if (p == begin || p != stop) refuse(begin, stop, std::string(what) + " must be a whole number >= 0");
    if (p - begin > 18 || value > uint64_t(most))
        refuse(begin, stop, std::string(what) + " must be at most " + std::to_string(most));
    return int64_t(value);
}

// The number from p to `stop`.
double read_value(const char* p, const char* stop, const char* what) {
    const char* q = p;
    double value = 0.0;
    const Number outcome = read_number(q, value);
    if (outcome == Number::overflow) refuse(p, stop, std::string(what) + " is too large for a double");
    if (outcome == Number::none || q != stop) refuse(p, stop, std::string(what) + " must be a number");
    return value;
}

// One line, without its comment.
class SvmlightLine {
 public:
    double label = 0.0;
    std::vector<double> members;
    int64_t query = -1;

    // `begin`: its first character that is not a blank
    SvmlightLine(const char* line, const char* begin, const char* end, RowBuilder& row, const ParseOptions& options)
        : line_(line), end_(end), row_(row), options_(options) {
        separator_ = row.separators.find(line, size_t(end - line));
        while (line + *separator_ < begin) ++separator_;
        const char* at = read_label(begin);
        row.begin(size_t(end - begin) / 2 + 1);
        if (options.names) row.enter_namespace("");
        while (at < end) at = read_item(at);
        row.finish();
    }

 private:
    // The label from p on; returns the separator after it.
    const char* read_label(const char* p) {
        const char* const after = line_ + *separator_;
        if (after < end_ && *after == ':') {
            if (!options_.sets || p == line_) refuse(p, end_, "the line must begin with a label");
            --separator_;  // a blank in the place of the label: the empty set
            return p - 1;
        }
        if (options_.sets) {
            members = read_members(p, after);
            label = double(members.size());
        } else {
            label = read_value(p, after, "the label");
        }
        return after;
    }

    // index:value, qid:n or nothing, after the blank at `at`; returns the separator after it.
    const char* read_item(const char* at) {
        if (!is_blank(*at)) refuse(at, end_, "expected a blank");
        const char* const name = at + 1;
        const char* const colon = line_ + *++separator_;
        if (name == colon) return colon;
        if (colon == end_ || *colon != ':') refuse(name, end_, "expected index:value");
        const char* const after = line_ + *++separator_;
        if (colon - name == 3 && std::memcmp(name, "qid", 3) == 0)
            query = read_whole(colon + 1, after, std::numeric_limits<int64_t>::max() / 2, "qid");
        else read_feature(name, colon, after);
        return after;
    }

    void read_feature(const char* name, const char* colon, const char* after) {
        uint32_t index;
        if (!read_short_whole(name, size_t(colon - name), index))
            index = uint32_t(read_whole(name, colon, std::numeric_limits<int32_t>::max() - 1, "an index"));
        if (index < options_.base) refuse(name, end_, "indices begin at " + std::to_string(options_.base));
        Decimal value{};
        if (read_short_number(colon + 1, size_t(after - colon - 1), value)) add(index, value);
        else add(index, read_value(colon + 1, after, "a value"));
    }

    template <class Value>
    void add(uint32_t index, Value value) {
        if (options_.names) {
            const std::string digits = std::to_string(index);
            row_.add(row_.copy_name(digits), digits.size(), value);
        } else {
            row_.add_place(row_.hashed() ? index : index - options_.base, value);
        }
    }

    const char *const line_, *const end_;
    RowBuilder& row_;
    const ParseOptions& options_;
    const uint32_t* separator_;
};

}  // namespace

void parse_svmlight(const char* line, const char* end, RowBuilder& row, ParsedRows& rows, const ParseOptions& options) {
    if (const void* comment = std::memchr(line, '#', size_t(end - line))) end = static_cast<const char*>(comment);
    const char* begin = line;
    while (begin < end && is_blank(*begin)) ++begin;
    if (begin == end) return;
    const SvmlightLine read(line, begin, end, row, options);
    rows.label.push(read.label);
    for (const double member : read.members) rows.members.push(member);
    rows.query.push(read.query);
    rows.queried |= read.query != -1;
}

}  // namespace onepass
