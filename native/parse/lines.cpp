#include "parse/lines.hpp"

#include <algorithm>

#include "parse/packed.hpp"

namespace onepass {

static bool any_high_bit(const char* p, size_t size) {
    uint64_t all = 0;
    size_t i = 0;
    for (; i + 8 <= size; i += 8) {
        uint64_t word;
        std::memcpy(&word, p + i, 8);
        all |= word;
    }
    for (; i < size; ++i) all |= uint8_t(p[i]);
    return (all & 0x8080808080808080u) != 0;
}

// The end of the line at p, and whether all of the line is ASCII.
static const char* find_newline(const char* p, const char* stop, bool& ascii) {
#ifdef ONEPASS_CLONED
    if (uses_packs()) return packed::find_newline(p, ascii);
#endif
    const char* const newline = static_cast<const char*>(std::memchr(p, '\n', size_t(stop - p)));
    ascii = !any_high_bit(p, size_t(newline - p));
    return newline;
}

// The length of the character that starts with this byte, the bits of its code there, and the least code that needs so
// many bytes. Length 0: no character starts so.
struct Utf8Start {
    int length;
    uint32_t bits, least;
};
static Utf8Start utf8_start(uint8_t c) {
    if (c < 0x80) return {1, c, 0};
    if ((c & 0xE0) == 0xC0) return {2, c & 0x1Fu, 0x80};
    if ((c & 0xF0) == 0xE0) return {3, c & 0x0Fu, 0x800};
    if ((c & 0xF8) == 0xF0) return {4, c & 0x07u, 0x10000};
    return {0, 0, 0};
}

// The first byte that is not UTF-8 (RFC 3629: no surrogates, no longer codes than needed), or `end`.
static const char* first_not_utf8(const char* p, const char* end) {
    while (p < end) {
        const auto [length, bits, least] = utf8_start(uint8_t(*p));
        if (length == 0 || end - p < length) return p;
        uint32_t code = bits;
        for (int i = 1; i < length; ++i) {
            if ((uint8_t(p[i]) & 0xC0) != 0x80) return p;
            code = code << 6 | (uint8_t(p[i]) & 0x3F);
        }
        if (code < least || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) return p;
        p += length;
    }
    return end;
}

std::vector<double> read_members(const char* p, const char* end) {
    std::vector<double> members;
    while (true) {
        const char* const comma = static_cast<const char*>(std::memchr(p, ',', size_t(end - p)));
        const char* const stop = comma ? comma : end;
        const char* q = p;
        double value = 0.0;
        if (read_number(q, value) != Number::good || q != stop)
            throw Malformed{p, "a label must be numbers with commas between them (1,3,5), got '" +
                                   std::string(p, size_t(stop - p)) + "'"};
        if (std::find(members.begin(), members.end(), value) != members.end())
            throw Malformed{p, "the label '" + std::string(p, size_t(stop - p)) + "' stands twice"};
        members.push_back(value);
        if (!comma) return members;
        p = comma + 1;
    }
}

void parse_block(const char* text, size_t size, LineParser line, const ParseOptions& options, ParsedRows& rows) {
    RowBuilder builder(rows, options);
    rows.reserve_for(size);
    parse_lines(text, size, line, options, builder, rows);
}

constexpr size_t shown_of_long = 200;  // bytes, as in streams/sources.py

[[noreturn]] static void refuse_length(size_t length) {
    const std::string digits = std::to_string(length);
    std::string grouped;
    for (size_t i = 0; i < digits.size(); ++i) {
        if (i > 0 && (digits.size() - i) % 3 == 0) grouped += ',';
        grouped += digits[i];
    }
    throw Malformed{nullptr, "a line of " + grouped + " bytes, longer than max_line"};
}

static void require_utf8(const char* p, const char* end) {
    const char* const wrong = first_not_utf8(p, end);
    if (wrong != end) throw Malformed{wrong, "not UTF-8 text"};
}

void parse_lines(const char* text, size_t size, LineParser line, const ParseOptions& options, RowBuilder& builder,
                 ParsedRows& rows) {
    const char* const stop = text + size;
    for (const char* p = text; p < stop;) {
        bool ascii;
        const char* const newline = find_newline(p, stop, ascii);
        const size_t length = size_t(newline - p);
        const char* end = newline;
        if (end > p && end[-1] == '\r') --end;
        try {
            if (length > options.longest) refuse_length(length);
            if (!ascii) require_utf8(p, end);
            line(p, end, builder, rows, options);
        } catch (const Malformed& malformed) {
            const size_t column = malformed.at ? size_t(malformed.at - p) : 0, most = size_t(end - p);
            const size_t shown = length > options.longest ? std::min(most, shown_of_long) : most;
            rows.bad.push_back({rows.rows(), rows.lines, column, {p, shown}, malformed.what});
            if (!options.keep_going) return;
        }
        ++rows.lines;
        p = newline + 1;
    }
}

}  // namespace onepass
