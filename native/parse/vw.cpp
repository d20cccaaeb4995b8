// Vowpal Wabbit's text format, as VW 9 reads it: label [importance [initial]] ['tag]|namespace[:scale] feature[:value]
// ...
//
// A feature's name is namespace^name, as in VW's audit; in the namespace without a name it is just name. A value that
// is not a number is a string: a:xyz is the feature a=xyz. The name of a feature without one is its place among such
// features: 0, 1, ... Where VW warns and goes on with a guess (nan, 1x, 1 2 3 4 |, a label abc), the line is malformed
// here.
#include <limits>

#include "parse/lines.hpp"

namespace onepass {

namespace {

inline bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

inline const char* skip_blanks(const char* p) {
    while (is_blank(*p)) ++p;
    return p;
}

// Does text that is not a number look like one that was meant to be a number?
bool like_a_number(const char* p, const char* end) {
    if (is_digit(*p) || *p == '.' || *p == '-' || *p == '+') return true;
    const std::string_view text(p, size_t(end - p));
    for (std::string_view word : {"nan", "inf", "infinity"})
        if (text.size() == word.size()) {
            bool same = true;
            for (size_t i = 0; i < word.size(); ++i) same &= (text[i] | 0x20) == word[i];
            if (same) return true;
        }
    return false;
}

double number_at(const char* p, const char* end, const char* what) {
    double value;
    const char* q = p;
    const Number outcome = read_number(q, value);
    if (outcome == Number::good && q == end) return value;
    const std::string text(p, size_t(end - p));
    if (outcome == Number::overflow)
        throw Malformed{p, std::string(what) + " '" + text + "' is too large for a double"};
    throw Malformed{p, std::string(what) + " must be a number, got '" + text + "'"};
}

struct Head {
    double label = std::numeric_limits<double>::quiet_NaN(), weight = 1.0, base = 0.0;
    std::vector<double> members;  // of a label that is a set
    std::string_view tag;
};

// The numbers before the bar: their words, at most three.
struct HeadWords {
    struct Word {
        const char *begin, *end;
    } at[3];
    int count = 0;
};

// The words before the first bar. The last one is the tag if it touches the bar, or begins with '.
HeadWords read_words(const char* p, const char* bar, std::string_view& tag) {
    HeadWords words;
    for (p = skip_blanks(p); p < bar; p = skip_blanks(p)) {
        const char* begin = p;
        while (p < bar && !is_blank(*p)) {
            if (uint8_t(*p) < ' ') throw Malformed{p, "a control character"};
            ++p;
        }
        const char* next = p;
        while (next < bar && is_blank(*next)) ++next;
        if (next == bar && (p == bar || *begin == '\'')) {
            begin += *begin == '\'';
            tag = {begin, size_t(p - begin)};
            break;
        }
        if (words.count == 3)
            throw Malformed{begin, "expected at most a label, an importance and an initial prediction"};
        words.at[words.count++] = {begin, p};
    }
    return words;
}

// The text before the first bar. What ends with a tab at its beginning is ignored, as VW does.
Head read_head(const char* p, const char* bar, bool sets) {
    Head head;
    if (const void* tab = std::memchr(p, '\t', size_t(bar - p))) p = static_cast<const char*>(tab) + 1;
    const HeadWords words = read_words(p, bar, head.tag);
    const auto& [label, importance, base] = words.at;
    if (words.count > 0 && sets) {
        head.members = read_members(label.begin, label.end);
        head.label = double(head.members.size());
    } else if (words.count > 0) {
        head.label = number_at(label.begin, label.end, "the label");
    }
    if (words.count > 1) {
        head.weight = number_at(importance.begin, importance.end, "the importance");
        if (head.weight < 0.0) throw Malformed{importance.begin, "the importance must be >= 0"};
    }
    if (words.count > 2) head.base = number_at(base.begin, base.end, "the initial prediction");
    return head;
}

// The rest of a line, from its first bar on: one namespace after another.
class Body {
 public:
    Body(const char* line, const char* end, RowBuilder& row) : line_(line), end_(end), row_(row) {}

    void read(const char* bar) {
        for (const char* at = bar; at < end_;) {
            at = read_namespace(at + 1);
            const char* const next = scale_ == 1.0 ? row_.add_namespace(at, end_) : nullptr;
            at = next ? next : read_one_by_one(at);
        }
    }

 private:
    // A namespace's name and scale; returns the separator after them.
    const char* read_namespace(const char* begin) {
        const char* at = find_separator(begin);
        const std::string_view called(begin, size_t(at - begin));
        scale_ = 1.0;
        anonymous_ = 0;
        row_.enter_namespace(called);
        if (at == end_ || *at != ':') return at;
        if (called.empty()) throw Malformed{at, "a namespace's scale without a namespace"};
        const char* const text = at + 1;
        at = find_separator(text);
        scale_ = number_at(text, at, "a namespace's scale");
        return at;
    }

    const char* find_separator(const char* at) const {
        while (at < end_ && uint8_t(*at) > ' ' && *at != ':' && *at != '|') ++at;
        return at;
    }

    // Features from a separator on, up to the next bar or the end.
    const char* read_one_by_one(const char* at) {
        if (!separator_) separator_ = row_.separators.find(line_, size_t(end_ - line_));  // once a line
        while (line_ + *separator_ < at) ++separator_;
        while (at < end_ && *at != '|') {
            if (!is_blank(*at)) throw Malformed{at, *at == ':' ? "a misplaced ':'" : "a control character"};
            const char* const name = at + 1;
            at = line_ + *++separator_;
            const size_t length = size_t(at - name);
            if (*at == ':') {
                const char* const text = at + 1;
                at = line_ + *++separator_;
                Decimal value;
                if (length > 0 && scale_ == 1.0 && read_short_number(text, size_t(at - text), value) && *at != ':')
                    row_.add(name, length, value);
                else at = read_unusual(name, length, text);
            } else if (length > 0) {
                row_.add(name, length, scale_);
            }
        }
        return at;
    }

    // A value that is long, or scaled, or a string, or of a feature without a name.
    const char* read_unusual(const char* name, size_t length, const char* text) {
        double value;
        const char* p = text;
        if (read_number(p, value) == Number::good && p == line_ + *separator_ && *p != ':') {
            if (length == 0) {
                const std::string place = std::to_string(anonymous_++);
                name = row_.copy_name(place);
                length = place.size();
            }
            row_.add(name, length, scale_ * value);
            return p;
        }
        while (line_[*separator_] == ':') ++separator_;  // a string may hold colons
        const char* const end = line_ + *separator_;
        if (end == text) throw Malformed{text, "no value after ':'"};
        if (like_a_number(text, end)) {
            number_at(text, end, "a feature's value");
            throw Malformed{text, "a feature's value must be a number or a word"};
        }
        row_.add({name, length}, {text, size_t(end - text)}, 1.0);  // VW does not scale it
        return end;
    }

    const char *const line_, *const end_;
    RowBuilder& row_;
    const uint32_t* separator_ = nullptr;  // the next one of the line, while features are read one by one
    double scale_ = 1.0;
    int anonymous_ = 0;
};

}  // namespace

void parse_vw(const char* p, const char* end, RowBuilder& row, ParsedRows& rows, const ParseOptions& options) {
    if (skip_blanks(p) >= end) return;
    const char* bar = p;
    Head head;
    const bool label_only = !options.sets && read_number(bar, head.label) == Number::good && bar + 1 < end &&
                            bar[0] == ' ' && bar[1] == '|';  // as most lines begin
    if (label_only) {
        ++bar;
    } else {
        bar = static_cast<const char*>(std::memchr(p, '|', size_t(end - p)));
        if (!bar) throw Malformed{end, "expected '|' between label and features; there is none"};
        head = read_head(p, bar, options.sets);
    }
    row.begin(size_t(end - bar));
    Body(p, end, row).read(bar);
    row.finish();
    rows.label.push(head.label);
    for (const double member : head.members) rows.members.push(member);
    rows.weight.push(head.weight);
    rows.base.push(head.base);
    rows.weighted |= head.weight != 1.0;
    rows.based |= head.base != 0.0;
    rows.tags += head.tag;
    rows.tag_ends.push(int32_t(rows.tags.size()));
}

}  // namespace onepass
