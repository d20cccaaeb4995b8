// svmlight / libsvm text: label [qid:n] index:value ... [# comment]; a label that is a set is 1,3,5, or nothing
#include <limits>

#include "parse/rows.hpp"

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

}  // namespace

void parse_svmlight(const char* line, const char* end, RowBuilder& row, Rows& rows, const ParseOptions& options) {
    if (const void* comment = std::memchr(line, '#', size_t(end - line))) end = static_cast<const char*>(comment);
    const char* p = line;
    while (p < end && is_blank(*p)) ++p;
    if (p == end) return;
    const uint32_t* stop = row.stops.find(line, size_t(end - line));
    while (line + *stop < p) ++stop;
    const char* at = line + *stop;
    const bool unlabelled = at < end && *at == ':';
    double label = 0.0;
    std::vector<double> members;
    if (unlabelled && options.sets && p > line) {  // a blank where the label would be: the empty set
        at = p - 1;
        --stop;
    } else if (unlabelled) {
        refuse(p, end, "the line must begin with a label");
    } else if (options.sets) {
        members = read_members(p, at);
        label = double(members.size());
    } else {
        label = read_value(p, at, "the label");
    }
    row.begin(size_t(end - p) / 2 + 1);
    if (options.names) row.enter("");
    int64_t query = -1;
    while (at < end) {
        if (!is_blank(*at)) refuse(at, end, "expected a blank");
        p = at + 1;
        at = line + *++stop;
        if (p == at) continue;
        if (at == end || *at != ':') refuse(p, end, "expected index:value");
        const char* const colon = at;
        at = line + *++stop;
        if (colon - p == 3 && std::memcmp(p, "qid", 3) == 0) {
            query = read_whole(colon + 1, at, std::numeric_limits<int64_t>::max() / 2, "qid");
            continue;
        }
        uint32_t index;
        if (!read_short_whole(p, size_t(colon - p), index))
            index = uint32_t(read_whole(p, colon, std::numeric_limits<int32_t>::max() - 1, "an index"));
        if (index < options.base) refuse(p, end, "indices begin at " + std::to_string(options.base));
        Decimal value{};
        const bool usual = read_short_number(colon + 1, size_t(at - colon - 1), value);
        const double number = usual ? 0.0 : read_value(colon + 1, at, "a value");
        if (options.names) {
            const std::string digits = std::to_string(index);
            const char* const name = row.keep(digits);
            if (usual) row.add(name, digits.size(), value);
            else row.add(name, digits.size(), number);
        } else {
            const uint32_t column = row.hashed() ? index : index - options.base;
            if (usual) row.add_made(column, value);
            else row.add_made(column, number);
        }
    }
    row.finish();
    rows.label.push(label);
    for (const double member : members) rows.members.push(member);
    rows.query.push(query);
    rows.queried |= query != -1;
}

}  // namespace onepass
