#include "parse/rows.hpp"

#include <pthread.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "parse/names.hpp"
#include "parse/packed.hpp"
#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace onepass {

namespace {

constexpr size_t classes = 40, most_spare = size_t(64) << 20;  // bytes kept for the next block
std::mutex spare_lock;
std::vector<void*>* const spare = new std::vector<void*>[classes];  // never destroyed: rows may outlive anything static
size_t spare_bytes = 0;

// The child of a fork has none of the threads that parse: what they share with it must not be in their hands then.
[[maybe_unused]] const int at_fork =
    pthread_atfork([] { spare_lock.lock(), names_lock.lock(); }, [] { names_lock.unlock(), spare_lock.unlock(); },
                   [] { names_lock.unlock(), spare_lock.unlock(); });

}  // namespace

void* take_memory(size_t bytes) {
    const size_t kind = size_t(__builtin_ctzll(bytes));
    {
        std::lock_guard guard(spare_lock);
        if (kind < classes && !spare[kind].empty()) {
            void* memory = spare[kind].back();
            spare[kind].pop_back();
            spare_bytes -= bytes;
            return memory;
        }
    }
    void* memory = std::malloc(bytes);
    if (!memory) throw std::bad_alloc();
    return memory;
}

void give_memory(void* memory, size_t bytes) noexcept {
    if (!memory) return;
    const size_t kind = size_t(__builtin_ctzll(bytes));
    {
        std::lock_guard guard(spare_lock);
        if (kind < classes && spare_bytes + bytes <= most_spare) {
            try {
                spare[kind].push_back(memory);
                spare_bytes += bytes;
                return;
            } catch (const std::bad_alloc&) {
            }
        }
    }
    std::free(memory);
}

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

#ifdef __SSE2__
using Carets = __m128i;
static bool any(Carets carets) { return _mm_movemask_epi8(carets) != 0; }
static uint64_t stops_in_16(const char* p, Carets& carets) {
    const __m128i c = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    carets = _mm_or_si128(carets, _mm_cmpeq_epi8(c, _mm_set1_epi8('^')));
    const __m128i low = _mm_cmpeq_epi8(_mm_min_epu8(c, _mm_set1_epi8(' ')), c);
    const __m128i marks = _mm_or_si128(_mm_cmpeq_epi8(c, _mm_set1_epi8(':')), _mm_cmpeq_epi8(c, _mm_set1_epi8('|')));
    return uint64_t(_mm_movemask_epi8(_mm_or_si128(low, marks)));
}
static uint64_t stops_in_64(const char* p, Carets& carets) {
    return stops_in_16(p, carets) | stops_in_16(p + 16, carets) << 16 | stops_in_16(p + 32, carets) << 32 |
           stops_in_16(p + 48, carets) << 48;
}
#else
using Carets = bool;
static bool any(Carets carets) { return carets; }
static uint64_t stops_in_64(const char* p, Carets& carets) {
    uint64_t found = 0;
    for (int i = 0; i < 64; ++i) {
        found |= uint64_t(uint8_t(p[i]) <= ' ' || p[i] == ':' || p[i] == '|') << i;
        carets |= p[i] == '^';
    }
    return found;
}
#endif

// Not every x86-64 has an instruction for it.
static int count_bits(uint64_t x) {
    x -= x >> 1 & 0x5555555555555555u;
    x = (x & 0x3333333333333333u) + (x >> 2 & 0x3333333333333333u);
    return int(((x + (x >> 4)) & 0x0F0F0F0F0F0F0F0Fu) * 0x0101010101010101u >> 56);
}

const uint32_t* Stops::find(const char* line, size_t length) {
    if (at_.size() < length + 80) at_.resize(2 * length + 80);
    uint32_t* out = at_.data();
    Carets carets{};
    for (size_t from = 0; from < length; from += 64) {
        uint64_t found = stops_in_64(line + from, carets);
        if (length - from < 64) found &= (uint64_t(1) << (length - from)) - 1;
        const int count = count_bits(found);
        // Eight at a time, whether there are so many or not: how many there are cannot be guessed.
        for (int done = 0; done < count; done += 8)
            for (int i = 0; i < 8; ++i) {
                out[done + i] = uint32_t(from) + uint32_t(__builtin_ctzll(found | uint64_t(1) << 63));
                found &= found - 1;
            }
        out += count;
    }
    *out = uint32_t(length);
    carets_ = any(carets);
    return at_.data();
}

// Decimals: see parse/number.hpp. What has no divisor is a number already.
ONEPASS_CLONES static void make_numbers(const uint64_t* digits, const double* divisor, double* value, size_t n) {
    for (size_t i = 0; i < n; ++i) {
        uint64_t t = digits[i];  // pairs of digits, then fours, then all eight; no sum carries into its neighbour
        t = (t * 10 + (t >> 8)) & 0x00FF00FF00FF00FFu;
        t = (t * 100 + (t >> 16)) & 0x0000FFFF0000FFFFu;
        t = (t & 0xFFFFFFFFu) * 10000 + (t >> 32);
        const double number = std::bit_cast<double>(t | 0x4330000000000000u) - 0x1p52;  // a whole number below 2^52
        value[i] = divisor[i] == 0.0 ? value[i] : number / divisor[i];
    }
}

ONEPASS_CLONES static void mix_hashes(int32_t* index, const uint32_t* unmixed, size_t n) {
    for (size_t i = 0; i < n; ++i) {
        const uint32_t hash = uint32_t(index[i]);
        index[i] = int32_t((PrefixHash::mixed(hash) & unmixed[i]) | (hash & ~unmixed[i]));
    }
}

ONEPASS_CLONES static void keep_bits(int32_t* index, uint32_t mask, size_t n) {
    for (size_t i = 0; i < n; ++i) index[i] &= int32_t(mask);
}

ONEPASS_CLONES static bool all_ones(const double* value, size_t n) {
    bool others = false;
    for (size_t i = 0; i < n; ++i) others |= value[i] != 1.0;
    return !others;
}

ONEPASS_CLONES static bool none_falls(const int32_t* index, uint32_t mask, size_t n) {
    uint32_t falls = 0;
    for (size_t i = 1; i < n; ++i) falls |= (uint32_t(index[i - 1]) & mask) >= (uint32_t(index[i]) & mask);
    return falls == 0;
}
static bool rises(const int32_t* index, uint32_t mask, size_t n) {
    for (size_t i = 1; i < n && i < 8; ++i)  // what does not rise falls soon
        if ((uint32_t(index[i - 1]) & mask) >= (uint32_t(index[i]) & mask)) return false;
    return none_falls(index, mask, n);
}

// Places in a table of 2^mark_bits for features that may be equal.
constexpr int mark_bits = 14;
constexpr size_t most_marked = 256;
ONEPASS_CLONES static void find_places(const int32_t* index, uint32_t mask, uint16_t* places, size_t n) {
    for (size_t i = 0; i < n; ++i) places[i] = uint16_t((uint32_t(index[i]) & mask) * 0x9E3779B1u >> (32 - mark_bits));
}

// The end of the line at p, and whether the line is all ASCII.
static const char* find_newline(const char* p, const char* stop, bool& plain) {
#ifdef ONEPASS_CLONED
    if (uses_packs()) return packed::find_newline(p, plain);
#endif
    const char* const newline = static_cast<const char*>(std::memchr(p, '\n', size_t(stop - p)));
    plain = !any_high_bit(p, size_t(newline - p));
    return newline;
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

void Rows::close() {
    value.give_back();
    constexpr double beyond = 0x1p53;
    whole.resize(rows());
    bool all = true;
    for (size_t i = 0; i < rows(); ++i) {
        const double y = label.data()[i];
        const bool inside = y > -beyond && y < beyond;  // NaN is not
        whole[i] = int64_t(inside ? y : 0.5);
        all &= double(whole[i]) == y;
    }
    if (!all) whole.clear();
}

void Rows::settle(Names& names) {
    if (!settled && fresh.size() > 0) {
        std::vector<int32_t> columns_of(fresh.size());
        for (size_t i = 0; i < fresh.size(); ++i)
            columns_of[i] = names.intern(fresh[i], hash_name(fresh[i].data(), fresh[i].size()));
        for (size_t i = 0; i < index.size(); ++i)
            if (index.data()[i] < 0) index.data()[i] = columns_of[size_t(-1 - index.data()[i])];
        settled = true;
    }
    for (size_t i = 0; i < index.size(); ++i)
        if (index.data()[i] >= columns) columns = index.data()[i] + 1;
}

RowBuilder::RowBuilder(Rows& rows, const ParseOptions& options)
    : rows_(rows),
      options_(options),
      names_before_(options.names ? options.names->size() : 0),
      mask_(options.hash_bits >= 0 ? uint32_t((uint64_t(1) << options.hash_bits) - 1) : 0),
      marks_((size_t(1) << mark_bits) + 8, 0),
      seen_(1024, {0, 0}) {
    if (rows_.starts.size() == 0) rows_.starts.push(0);
    if (options_.expansion) expander_ = std::make_unique<Expander>(*options_.expansion);
}

void RowBuilder::begin(size_t most) {
    index_ = rows_.index.room(most + 1);
    value_ = rows_.value.room(most + 1);
    if (divisors_.size() <= most) {
        divisors_.resize(2 * most + 1);
        all_digits_.resize(2 * most + 1);
        all_unmixed_.resize(2 * most + 1);
    }
    divisor_ = divisors_.data();
    digits_ = all_digits_.data();
    unmixed_ = all_unmixed_.data();
    decimal_ = some_unmixed_ = one_by_one_ = may_overflow_ = false;
    ones_ = true;
    if (names_wanted() && pending_.size() <= most) pending_.resize(2 * most + 1);
    spaces_.clear();
    made_.clear();
    n_ = 0;
}

void RowBuilder::enter(std::string_view space) {
    if (names_wanted()) {
        spaces_.emplace_back(space);
        if (!space.empty()) spaces_.back() += '^';
    }
    if (entered_ && space == *entered_) return;
    entered_ = space;
    const std::string prefix = space.empty() ? "" : *entered_ + '^';
    prefix_.set(prefix.data(), prefix.size());
    origin_ = prefix_.origin();
}

void RowBuilder::begin_one_by_one() {
    one_by_one_ = true;
    ones_ = false;
    std::fill_n(divisor_, n_, 0.0);
    std::fill_n(unmixed_, n_, 0);
}

const char* RowBuilder::add_many(const char* at, const char* end) {
    if (names_wanted()) return nullptr;
    size_t count = 0;
    bool valued = false;
    const char* const past = many_.read(at, end, prefix_, index_ + n_, value_ + n_, count, valued);
    if (!past) return nullptr;
    ones_ &= !valued;
    if (one_by_one_) {
        std::fill_n(divisor_ + n_, count, 0.0);
        std::fill_n(unmixed_ + n_, count, 0);
    }
    n_ += count;
    return past;
}

const char* RowBuilder::keep(std::string_view name) {
    made_.push_back(std::make_unique<std::string>(name));
    made_.back()->append(padding, ' ');
    return made_.back()->data();
}

void RowBuilder::add(std::string_view name, std::string_view text, double value) {
    std::string both(name);
    both.append("=").append(text);
    add(keep(both), both.size(), value);
}

void RowBuilder::look_up() {
    const Names& names = *options_.names;
    for (size_t i = 0; i < n_; ++i) names.ask_entry(pending_[i].hash);
    for (size_t i = 0; i < n_; ++i) {
        const Pending& at = pending_[i];
        const std::string_view name(at.name, at.length);
        int32_t column = names.find(name, at.hash, spaces_[at.space]);
        // A name that others add meanwhile is new all the same: or one that stands twice could be new first, then not.
        if (column < 0 || size_t(column) >= names_before_)
            column = -1 - rows_.fresh.intern(spaces_[at.space] + std::string(name), at.hash);
        if (!hashed()) index_[i] = column;
    }
}

// Could there be a feature twice? A quick look without branches, which is wrong now and then, but never misses one.
bool RowBuilder::may_repeat(uint32_t mask) {
    const size_t n = n_;
    if (n > most_marked) return true;
    uint16_t places[most_marked + 8];
    find_places(index_, mask, places, n);
    for (uint16_t k = 0; k < 8; ++k) places[n + k] = uint16_t((1 << mark_bits) + k);  // eight at a time, to the end
    uint8_t* const marks = marks_.data();
    for (size_t i = 0; i < n; i += 8)
        for (size_t k = 0; k < 8; ++k) marks[places[i + k]] = uint8_t(i + k);
    uint8_t others = 0;  // of two at one place, only the last finds its own mark there
    for (size_t i = 0; i < n; i += 8)
        for (size_t k = 0; k < 8; ++k) others |= marks[places[i + k]] ^ uint8_t(i + k);
    if (others == 0) return false;
    size_t lost = 0, loser = 0;
    for (size_t i = 0; i < n; ++i) {
        const bool here = marks[places[i]] != uint8_t(i);
        lost += here;
        loser = here ? i : loser;
    }
    // One that lost its place could only be equal to the one that took it.
    return lost > 1 || ((uint32_t(index_[loser]) ^ uint32_t(index_[marks[places[loser]]])) & mask) == 0;
}

// Is there a feature twice, looking only at these bits? Remembers where in `seen_` each is.
bool RowBuilder::repeats(uint32_t mask) {
    if (rises(index_, mask, n_) || !may_repeat(mask)) return false;
    if (seen_.size() < 4 * n_) seen_.assign(size_t(2) << (64 - __builtin_clzll(2 * n_)), {0, 0}), stamp_ = 0;
    if (++stamp_ == 0) seen_.assign(seen_.size(), {0, 0}), stamp_ = 1;
    const size_t slots = seen_.size() - 1;
    for (size_t i = 0; i < n_; ++i) {
        const uint32_t index = uint32_t(index_[i]) & mask;
        size_t slot = (index * 0x9E3779B1u >> 7) & slots;
        while (seen_[slot].row == stamp_) {
            if ((uint32_t(index_[seen_[slot].at]) & mask) == index) return true;
            slot = (slot + 1) & slots;
        }
        seen_[slot] = {stamp_, uint32_t(i)};
    }
    return false;
}

// Adds up equal features where the first of them stood, after `repeats` has found some and made room in `seen_`.
void RowBuilder::merge() {
    if (++stamp_ == 0) seen_.assign(seen_.size(), {0, 0}), stamp_ = 1;
    const size_t slots = seen_.size() - 1;
    size_t kept = 0;
    for (size_t i = 0; i < n_; ++i) {
        const int32_t index = index_[i];
        size_t slot = (uint32_t(index) * 0x9E3779B1u >> 7) & slots;
        while (seen_[slot].row == stamp_ && index_[seen_[slot].at] != index) slot = (slot + 1) & slots;
        if (seen_[slot].row == stamp_) {
            value_[seen_[slot].at] += value_[i];
            continue;
        }
        seen_[slot] = {stamp_, uint32_t(kept)};
        index_[kept] = index;
        value_[kept++] = value_[i];
    }
    n_ = kept;
    ones_ = false;
}

// The row's features with those that are made of them.
void RowBuilder::expand() {
    expander_->clear();
    for (size_t i = 0; i < n_; ++i)
        expander_->note(spaces_[pending_[i].space], {pending_[i].name, pending_[i].length}, value_[i]);
    try {
        expander_->expand(names_spelled());
    } catch (const TooManyFeatures& error) {
        throw Malformed{nullptr, error.what()};
    }
    begin(expander_->features().size());
    enter({});
    for (const Expander::Made& made : expander_->features()) {
        pending_[n_] = {expander_->name(made).data(), made.length, made.hash, 0};
        add(int32_t(made.hash), made.value);
    }
}

bool RowBuilder::finite() const {
    bool finite = true;
    for (size_t i = 0; i < n_; ++i) finite &= std::abs(value_[i]) <= std::numeric_limits<double>::max();
    return finite;
}

// Values that are not 1 are listed while they are few; then all are stored, those before them too.
void RowBuilder::keep_values() {
    if (rows_.value.size() > 0) return rows_.value.take(n_);
    if (ones_ || all_ones(value_, n_)) return;
    const size_t before = rows_.index.size();
    for (size_t i = 0; i < n_; ++i)
        if (value_[i] != 1.0) rows_.others.push({int32_t(before + i), value_[i]});
    if (rows_.others.size() <= 16 + before / 16) return;
    rows_.value.take(n_);
    rows_.value.room(before);
    rows_.value.take(before);
    double* const all = rows_.value.data();
    std::fill_n(all, before + n_, 1.0);
    for (size_t i = 0; i < rows_.others.size(); ++i) all[rows_.others.data()[i].at] = rows_.others.data()[i].value;
    rows_.others.clear();
}

void RowBuilder::finish() {
    if (decimal_) make_numbers(digits_, divisor_, value_, n_);
    if (some_unmixed_) mix_hashes(index_, unmixed_, n_);
    if (expander_) expand();
    if (options_.names) look_up();
    if (hashed()) {
        // First what has the same name, then what has the same place: the sums that a mapping of names would give.
        const bool some = repeats(mask_);
        if (some) merge();
        keep_bits(index_, mask_, n_);
        if (some) merge();
    } else if (repeats(~uint32_t(0))) {
        merge();
    }
    if (may_overflow_ && !finite()) throw Malformed{nullptr, "the row's values are too large for a double"};
    if (rows_.index.size() + n_ > size_t(std::numeric_limits<int32_t>::max()))
        throw Malformed{nullptr,
                        "the rows of this block have more than 2,147,483,647 features; use a smaller block_size"};
    keep_values();
    rows_.index.take(n_);
    rows_.starts.push(int32_t(rows_.index.size()));
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

void parse_block(const char* text, size_t size, LineParser line, const ParseOptions& options, Rows& rows) {
    RowBuilder builder(rows, options);
    rows.expect(size);
    parse_lines(text, size, line, options, builder, rows);
}

constexpr size_t shown_of_long = 200;  // bytes, as streams/sources.py keeps of a line that no block holds

[[noreturn]] static void throw_too_long(size_t length) {
    std::string digits = std::to_string(length);
    for (size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, ",");
    throw Malformed{nullptr, "a line of " + digits + " bytes, longer than max_line"};
}

void parse_lines(const char* text, size_t size, LineParser line, const ParseOptions& options, RowBuilder& builder,
                 Rows& rows) {
    const char* const stop = text + size;
    for (const char* p = text; p < stop;) {
        bool plain;
        const char* const newline = find_newline(p, stop, plain);
        const char* end = newline;
        if (end > p && end[-1] == '\r') --end;
        try {
            if (size_t(newline - p) > options.longest) throw_too_long(size_t(newline - p));
            if (!plain) {
                const char* wrong = first_not_utf8(p, end);
                if (wrong != end) throw Malformed{wrong, "not UTF-8 text"};
            }
            line(p, end, builder, rows, options);
        } catch (const Malformed& malformed) {
            const size_t column = malformed.at ? size_t(malformed.at - p) : 0;
            const size_t shown =
                size_t(newline - p) > options.longest ? std::min(size_t(end - p), shown_of_long) : size_t(end - p);
            rows.bad.push_back({rows.rows(), rows.lines, column, {p, shown}, malformed.what});
            if (!options.keep_going) return;
        }
        ++rows.lines;
        p = newline + 1;
    }
}

}  // namespace onepass
