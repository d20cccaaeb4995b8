// Vowpal Wabbit's text format, as VW 9 reads it: label [importance [initial]] ['tag]|namespace[:scale] feature[:value]
// ...
//
// A feature is called namespace^name, as in VW's audit; in the nameless namespace just name. A value that is no number
// is a string: a:xyz is the feature a=xyz. A feature without a name is called by its place among such: 0, 1, ...
// Where VW warns and goes on with a guess (nan, 1x, 1 2 3 4 |, a label abc), the line is malformed here.
#include <limits>

#include "parse/rows.hpp"

namespace onepass {

namespace {

inline bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

inline const char* skip_blanks(const char* p) {
    while (is_blank(*p)) ++p;
    return p;
}

// Does text that is not a number look as if it should be one?
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
    std::vector<double> members;  // where the label is a set
    std::string_view tag;
};

// What stands before the first bar.
Head read_head(const char* p, const char* bar, bool sets) {
    Head head;
    if (const void* tab = std::memchr(p, '\t', size_t(bar - p))) p = static_cast<const char*>(tab) + 1;
    struct Word {
        const char *begin, *end;
    } words[4];
    int count = 0;
    for (p = skip_blanks(p); p < bar; p = skip_blanks(p)) {
        const char* begin = p;
        while (p < bar && !is_blank(*p)) {
            if (uint8_t(*p) < ' ') throw Malformed{p, "a control character"};
            ++p;
        }
        // The last word is a tag where it touches the bar, or begins with '.
        const char* next = p;
        while (next < bar && is_blank(*next)) ++next;
        if (next == bar && (p == bar || *begin == '\'')) {
            begin += *begin == '\'';
            head.tag = {begin, size_t(p - begin)};
            break;
        }
        if (count == 3) throw Malformed{begin, "expected at most a label, an importance and an initial prediction"};
        words[count++] = {begin, p};
    }
    if (count > 0 && sets) {
        head.members = read_members(words[0].begin, words[0].end);
        head.label = double(head.members.size());
    } else if (count > 0) {
        head.label = number_at(words[0].begin, words[0].end, "the label");
    }
    if (count > 1) {
        head.weight = number_at(words[1].begin, words[1].end, "the importance");
        if (head.weight < 0.0) throw Malformed{words[1].begin, "the importance must be >= 0"};
    }
    if (count > 2) head.base = number_at(words[2].begin, words[2].end, "the initial prediction");
    return head;
}

// The rest of a line, from its first bar on: one namespace after another.
class Body {
 public:
    Body(const char* line, const char* end, RowBuilder& row) : line_(line), end_(end), row_(row) {}

    void read(const char* bar) {
        for (const char* at = bar; at < end_;) {
            at = enter(at + 1);
            const char* const past = scale_ == 1.0 ? row_.add_many(at, end_) : nullptr;
            at = past ? past : read_one_by_one(at);
        }
    }

 private:
    // A namespace's name and scale; returns the stop after it.
    const char* enter(const char* begin) {
        const char* at = find_stop(begin);
        const std::string_view called(begin, size_t(at - begin));
        scale_ = 1.0;
        anonymous_ = 0;
        row_.enter(called);
        if (at == end_ || *at != ':') return at;
        if (called.empty()) throw Malformed{at, "a namespace's scale without a namespace"};
        const char* const text = at + 1;
        at = find_stop(text);
        scale_ = number_at(text, at, "a namespace's scale");
        return at;
    }

    const char* find_stop(const char* at) const {
        while (at < end_ && uint8_t(*at) > ' ' && *at != ':' && *at != '|') ++at;
        return at;
    }

    // Features from a stop on, up to the next bar or the end.
    const char* read_one_by_one(const char* at) {
        if (!stop_) stop_ = row_.stops.find(line_, size_t(end_ - line_));  // once a line
        while (line_ + *stop_ < at) ++stop_;
        while (at < end_ && *at != '|') {
            if (!is_blank(*at)) throw Malformed{at, *at == ':' ? "a misplaced ':'" : "a control character"};
            const char* const name = at + 1;
            at = line_ + *++stop_;
            const size_t length = size_t(at - name);
            if (*at == ':') {
                const char* const text = at + 1;
                at = line_ + *++stop_;
                Decimal value;
                if (length > 0 && scale_ == 1.0 && read_short_number(text, size_t(at - text), value) && *at != ':')
                    row_.add(name, length, value);
                else at = unusual(name, length, text);
            } else if (length > 0) {
                row_.add(name, length, scale_);
            }
        }
        return at;
    }

    // A value that is long, or scaled, or a string, or of a feature without a name.
    const char* unusual(const char* name, size_t length, const char* text) {
        double value;
        const char* p = text;
        if (read_number(p, value) == Number::good && p == line_ + *stop_ && *p != ':') {
            if (length == 0) {
                const std::string place = std::to_string(anonymous_++);
                name = row_.keep(place);
                length = place.size();
            }
            row_.add(name, length, scale_ * value);
            return p;
        }
        while (line_[*stop_] == ':') ++stop_;  // a string may hold colons
        const char* const end = line_ + *stop_;
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
    const uint32_t* stop_ = nullptr;  // of the line: the next one, where features are read one by one
    double scale_ = 1.0;
    int anonymous_ = 0;
};

}  // namespace

void parse_vw(const char* p, const char* end, RowBuilder& row, Rows& rows, const ParseOptions& options) {
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
