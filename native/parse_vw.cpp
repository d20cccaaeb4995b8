// Vowpal Wabbit's text format, as VW 9 reads it: label [importance [initial]] ['tag]|namespace[:scale] feature[:value]
// ...
//
// A feature is called namespace^name, as in VW's audit; in the nameless namespace just name. A value that is no number
// is a string: a:xyz is the feature a=xyz. A feature without a name is called by its place among such: 0, 1, ...
// Where VW warns and goes on with a guess (nan, 1x, 1 2 3 4 |, a label abc), the line is malformed here.
#include <limits>

#include "parse_rows.hpp"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace onepass {

namespace {

// The next ':', '|', blank or control character. There is one: every line ends.
inline const char* next_stop(const char* p) {
#ifdef __SSE2__
    const __m128i blank = _mm_set1_epi8(' '), colon = _mm_set1_epi8(':'), bar = _mm_set1_epi8('|');
    for (;; p += 16) {
        const __m128i c = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
        const __m128i low = _mm_cmpeq_epi8(_mm_min_epu8(c, blank), c);
        const int found =
            _mm_movemask_epi8(_mm_or_si128(low, _mm_or_si128(_mm_cmpeq_epi8(c, colon), _mm_cmpeq_epi8(c, bar))));
        if (found) return p + __builtin_ctz(unsigned(found));
    }
#else
    while (uint8_t(*p) > ' ' && *p != ':' && *p != '|') ++p;
    return p;
#endif
}

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
    const std::string text(p, size_t(end - p));
    if (outcome == Number::overflow)
        throw Malformed{p, std::string(what) + " '" + text + "' is too large for a double"};
    if (outcome == Number::none || q != end)
        throw Malformed{p, std::string(what) + " must be a number, got '" + text + "'"};
    return value;
}

struct Head {
    double label = std::numeric_limits<double>::quiet_NaN(), weight = 1.0, base = 0.0;
    std::string_view tag;
};

// What stands before the first bar.
Head read_head(const char* p, const char* bar) {
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
    if (count > 0) head.label = number_at(words[0].begin, words[0].end, "the label");
    if (count > 1) {
        head.weight = number_at(words[1].begin, words[1].end, "the importance");
        if (head.weight < 0.0) throw Malformed{words[1].begin, "the importance must be >= 0"};
    }
    if (count > 2) head.base = number_at(words[2].begin, words[2].end, "the initial prediction");
    return head;
}

// Namespace and name in one piece; names of the nameless namespace are used where they stand.
class FullName {
 public:
    void enter(std::string_view space) {
        text_.assign(space);
        if (!space.empty()) text_ += '^';
        prefix_ = text_.size();
    }
    std::string_view of(const char* name, size_t length) {
        if (prefix_ == 0) return {name, length};
        if (text_.size() < prefix_ + length + 16) text_.resize(2 * (prefix_ + length) + 16);
        std::memcpy(text_.data() + prefix_, name, length);
        return {text_.data(), prefix_ + length};
    }
    std::string_view of(const char* name, size_t length, std::string_view value) {
        joined_.assign(name, length).append("=").append(value);
        return of(joined_.data(), joined_.size());
    }

 private:
    std::string text_, joined_;
    size_t prefix_ = 0;
};

}  // namespace

void parse_vw(const char* p, const char* end, RowBuilder& row, Rows& rows, const ParseOptions&) {
    if (skip_blanks(p) >= end) return;
    const char* const bar = static_cast<const char*>(std::memchr(p, '|', size_t(end - p)));
    if (!bar) throw Malformed{end, "expected '|' between label and features; there is none"};
    const Head head = read_head(p, bar);
    thread_local FullName name;
    row.begin(size_t(end - bar));
    double scale = 1.0;
    int anonymous = 0;
    p = bar;
    while (p < end) {
        if (*p == '|') {
            const char* space = ++p;
            p = next_stop(p);
            const std::string_view called(space, size_t(p - space));
            scale = 1.0;
            anonymous = 0;
            if (*p == ':') {
                if (called.empty()) throw Malformed{p, "a namespace's scale without a namespace"};
                const char* text = ++p;
                p = next_stop(p);
                scale = number_at(text, p, "a namespace's scale");
            }
            name.enter(called);
        } else if (is_blank(*p)) {
            p = skip_blanks(p);
            continue;
        } else {
            const char* const begin = p;
            p = next_stop(p);
            size_t length = size_t(p - begin);
            double value = 1.0;
            if (*p == ':') {
                const char* const text = ++p;
                const Number outcome = read_number(p, value);
                if (outcome != Number::good || (p != end && !is_blank(*p) && *p != '|')) {
                    p = text;
                    do p = next_stop(p);
                    while (*p == ':' && ++p);
                    if (p == text) throw Malformed{text, "no value after ':'"};
                    if (like_a_number(text, p)) number_at(text, p, "a feature's value"), throw Malformed{text, ""};
                    row.add(name.of(begin, length, {text, size_t(p - text)}), scale);
                    length = size_t(-1);
                }
            }
            if (length == 0) {
                const std::string place = std::to_string(anonymous++);
                row.add(name.of(place.data(), place.size()), scale * value);
            } else if (length != size_t(-1)) {
                row.add(name.of(begin, length), scale * value);
            }
        }
        if (p < end && *p != '|' && !is_blank(*p))
            throw Malformed{p, uint8_t(*p) < ' ' ? "a control character" : "a misplaced ':'"};
    }
    row.finish();
    rows.label.push(head.label);
    rows.weight.push(head.weight);
    rows.base.push(head.base);
    rows.weighted |= head.weight != 1.0;
    rows.based |= head.base != 0.0;
    rows.tags += head.tag;
    rows.tag_ends.push(int32_t(rows.tags.size()));
}

}  // namespace onepass
