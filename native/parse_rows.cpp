#include "parse_rows.hpp"

#include <limits>

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

// The first byte that is not UTF-8 (RFC 3629: no surrogates, nothing overlong), or `end`.
static const char* first_not_utf8(const char* p, const char* end) {
    while (p < end) {
        const uint8_t c = uint8_t(*p);
        if (c < 0x80) {
            ++p;
            continue;
        }
        int more;
        uint32_t code, least;
        if ((c & 0xE0) == 0xC0) more = 1, code = c & 0x1F, least = 0x80;
        else if ((c & 0xF0) == 0xE0) more = 2, code = c & 0x0F, least = 0x800;
        else if ((c & 0xF8) == 0xF0) more = 3, code = c & 0x07, least = 0x10000;
        else return p;
        if (end - p <= more) return p;
        for (int i = 1; i <= more; ++i) {
            if ((uint8_t(p[i]) & 0xC0) != 0x80) return p;
            code = code << 6 | (uint8_t(p[i]) & 0x3F);
        }
        if (code < least || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) return p;
        p += more + 1;
    }
    return end;
}

void Rows::settle(Names& names) {
    if (fresh.size() > 0) {
        std::vector<int32_t> columns_of(fresh.size());
        {
            std::unique_lock guard(names.lock);
            for (size_t i = 0; i < fresh.size(); ++i)
                columns_of[i] = names.intern(fresh[i], murmur3(fresh[i].data(), fresh[i].size()));
        }
        for (size_t i = 0; i < index.size(); ++i)
            if (index.data()[i] < 0) index.data()[i] = columns_of[size_t(-1 - index.data()[i])];
        fresh.clear();
    }
    for (size_t i = 0; i < index.size(); ++i)
        if (index.data()[i] >= columns) columns = index.data()[i] + 1;
}

RowBuilder::RowBuilder(Rows& rows, const ParseOptions& options)
    : rows_(rows),
      options_(options),
      mask_(options.hash_bits >= 0 ? uint32_t((uint64_t(1) << options.hash_bits) - 1) : 0),
      seen_(1024, {0, 0}) {
    if (rows_.starts.size() == 0) rows_.starts.push(0);
}

void RowBuilder::begin(size_t most) {
    index_ = rows_.index.room(most);
    value_ = rows_.value.room(most);
    n_ = 0;
}

int32_t RowBuilder::column_of(std::string_view name) {
    const uint32_t hash = murmur3(name.data(), name.size());
    if (options_.hash_bits >= 0) return int32_t(hash & mask_);
    {
        std::shared_lock guard(options_.names->lock);
        const int32_t known = options_.names->find(name, hash);
        if (known >= 0) return known;
    }
    return -1 - rows_.fresh.intern(name, hash);
}

void RowBuilder::add(std::string_view name, double value) {
    if (value != 0.0) add(column_of(name), value);
}

// Adds up equal features where the first of them stood.
void RowBuilder::merge() {
    bool rising = true;
    for (size_t i = 1; i < n_; ++i) rising &= index_[i - 1] < index_[i];
    if (rising) return;
    if (seen_.size() < 4 * n_) seen_.assign(size_t(2) << (64 - __builtin_clzll(2 * n_)), {0, 0}), stamp_ = 0;
    if (++stamp_ == 0) seen_.assign(seen_.size(), {0, 0}), stamp_ = 1;
    const size_t mask = seen_.size() - 1;
    size_t kept = 0;
    for (size_t i = 0; i < n_; ++i) {
        const int32_t index = index_[i];
        size_t slot = uint32_t(index) * 0x9E3779B1u >> 7 & mask;
        while (seen_[slot].row == stamp_ && index_[seen_[slot].at] != index) slot = (slot + 1) & mask;
        if (seen_[slot].row == stamp_) {
            value_[seen_[slot].at] += value_[i];
            continue;
        }
        seen_[slot] = {stamp_, uint32_t(kept)};
        index_[kept] = index;
        value_[kept++] = value_[i];
    }
    n_ = kept;
}

bool RowBuilder::finite() const {
    bool finite = true;
    for (size_t i = 0; i < n_; ++i) finite &= std::abs(value_[i]) <= std::numeric_limits<double>::max();
    return finite;
}

void RowBuilder::finish() {
    merge();
    if (!finite()) throw Malformed{nullptr, "the row's values are too large for a double"};
    rows_.index.take(n_);
    rows_.value.take(n_);
    rows_.starts.push(int32_t(rows_.index.size()));
}

void parse_block(const char* text, size_t size, LineParser line, const ParseOptions& options, Rows& rows) {
    const bool plain = !any_high_bit(text, size);
    const char* const stop = text + size;
    RowBuilder builder(rows, options);
    for (const char* p = text; p < stop;) {
        const char* const newline = static_cast<const char*>(std::memchr(p, '\n', size_t(stop - p)));
        const char* end = newline;
        if (end > p && end[-1] == '\r') --end;
        try {
            if (!plain) {
                const char* wrong = first_not_utf8(p, end);
                if (wrong != end) throw Malformed{wrong, "not UTF-8 text"};
            }
            line(p, end, builder, rows, options);
        } catch (const Malformed& malformed) {
            const size_t column = malformed.at ? size_t(malformed.at - p) : 0;
            rows.bad.push_back({rows.rows(), rows.lines, size_t(p - text), size_t(end - p), column, malformed.what});
            if (!options.keep_going) return;
        }
        ++rows.lines;
        p = newline + 1;
    }
}

}  // namespace onepass
