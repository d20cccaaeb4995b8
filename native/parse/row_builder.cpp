#include "parse/row_builder.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "core/clones.hpp"

namespace onepass {

// Values from decimals (parse/number.hpp). A value with divisor 0 is computed already.
ONEPASS_CLONES static void divide_decimals(const uint64_t* digits, const double* divisor, double* value, size_t n) {
    for (size_t i = 0; i < n; ++i) {
        uint64_t t = digits[i];  // pairs of digits, then fours, then all eight; no carry leaves its part
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

ONEPASS_CLONES static void mask_bits(int32_t* index, uint32_t mask, size_t n) {
    for (size_t i = 0; i < n; ++i) index[i] &= int32_t(mask);
}

ONEPASS_CLONES static bool all_ones(const double* value, size_t n) {
    bool others = false;
    for (size_t i = 0; i < n; ++i) others |= value[i] != 1.0;
    return !others;
}

ONEPASS_CLONES static bool all_rise(const int32_t* index, uint32_t mask, size_t n) {
    uint32_t falls = 0;
    for (size_t i = 1; i < n; ++i) falls |= (uint32_t(index[i - 1]) & mask) >= (uint32_t(index[i]) & mask);
    return falls == 0;
}
static bool rises(const int32_t* index, uint32_t mask, size_t n) {
    for (size_t i = 1; i < n && i < 8; ++i)  // most rows that do not rise fall soon
        if ((uint32_t(index[i - 1]) & mask) >= (uint32_t(index[i]) & mask)) return false;
    return all_rise(index, mask, n);
}

// Features are looked for at places in a table of 2^mark_bits: equal features have the same place.
constexpr int mark_bits = 14;
constexpr size_t most_marked = 256;
ONEPASS_CLONES static void find_places(const int32_t* index, uint32_t mask, uint16_t* places, size_t n) {
    for (size_t i = 0; i < n; ++i) places[i] = uint16_t((uint32_t(index[i]) & mask) * 0x9E3779B1u >> (32 - mark_bits));
}

RowBuilder::RowBuilder(ParsedRows& rows, const ParseOptions& options)
    : rows_(rows),
      options_(options),
      names_before_(options.names ? options.names->size() : 0),
      mask_(options.hash_bits >= 0 ? uint32_t((uint64_t(1) << options.hash_bits) - 1) : 0),
      marks_((size_t(1) << mark_bits) + 8, 0),
      seen_(1024, {0, 0}) {
    if (rows_.starts.size() == 0) rows_.starts.push(0);
    if (options_.expansion) expander_ = std::make_unique<FeatureExpander>(*options_.expansion);
}

void RowBuilder::begin(size_t most) {
    index_ = rows_.index.reserve(most + 1);
    value_ = rows_.value.reserve(most + 1);
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
    copied_names_.clear();
    n_ = 0;
}

void RowBuilder::enter_namespace(std::string_view space) {
    if (names_wanted()) {
        spaces_.emplace_back(space);
        if (!space.empty()) spaces_.back() += '^';
    }
    if (namespace_ && space == *namespace_) return;
    namespace_ = space;
    const std::string prefix = space.empty() ? "" : *namespace_ + '^';
    prefix_.set(prefix.data(), prefix.size());
    origin_ = prefix_.origin();
}

void RowBuilder::begin_one_by_one() {
    one_by_one_ = true;
    ones_ = false;
    std::fill_n(divisor_, n_, 0.0);
    std::fill_n(unmixed_, n_, 0);
}

const char* RowBuilder::add_namespace(const char* at, const char* end) {
    if (names_wanted()) return nullptr;
    size_t count = 0;
    bool valued = false;
    const char* const next = namespace_reader_.read(at, end, prefix_, index_ + n_, value_ + n_, count, valued);
    if (!next) return nullptr;
    ones_ &= !valued;
    if (one_by_one_) {
        std::fill_n(divisor_ + n_, count, 0.0);
        std::fill_n(unmixed_ + n_, count, 0);
    }
    n_ += count;
    return next;
}

const char* RowBuilder::copy_name(std::string_view name) {
    copied_names_.push_back(std::make_unique<std::string>(name));
    copied_names_.back()->append(padding, ' ');
    return copied_names_.back()->data();
}

void RowBuilder::add(std::string_view name, std::string_view text, double value) {
    std::string both(name);
    both.append("=").append(text);
    add(copy_name(both), both.size(), value);
}

void RowBuilder::look_up() {
    const Names& names = *options_.names;
    for (size_t i = 0; i < n_; ++i) names.prefetch_entry(pending_[i].hash);
    for (size_t i = 0; i < n_; ++i) {
        const Pending& at = pending_[i];
        const std::string_view name(at.name, at.length);
        int32_t column = names.find(name, at.hash, spaces_[at.space]);
        // A name that another thread has added since the block began counts as new. Otherwise a name that occurs twice
        // could be new the first time and not the second.
        if (column < 0 || size_t(column) >= names_before_)
            column = -1 - rows_.new_names.intern(spaces_[at.space] + std::string(name), at.hash);
        if (!hashed()) index_[i] = column;
    }
}

// May a feature occur twice? A quick test without branches: it may be wrong if it says yes, never if it says no.
bool RowBuilder::may_repeat(uint32_t mask) {
    const size_t n = n_;
    if (n > most_marked) return true;
    uint16_t places[most_marked + 8];
    find_places(index_, mask, places, n);
    for (uint16_t k = 0; k < 8; ++k)
        places[n + k] = uint16_t((1 << mark_bits) + k);  // so that the loops may read eight at a time
    uint8_t* const marks = marks_.data();
    for (size_t i = 0; i < n; i += 8)
        for (size_t k = 0; k < 8; ++k) marks[places[i + k]] = uint8_t(i + k);
    uint8_t others = 0;  // of two features at one place, only the last finds its own mark
    for (size_t i = 0; i < n; i += 8)
        for (size_t k = 0; k < 8; ++k) others |= marks[places[i + k]] ^ uint8_t(i + k);
    if (others == 0) return false;
    size_t lost = 0, loser = 0;
    for (size_t i = 0; i < n; ++i) {
        const bool here = marks[places[i]] != uint8_t(i);
        lost += here;
        loser = here ? i : loser;
    }
    // A single feature that lost its place can only be equal to the feature that took it.
    return lost > 1 || ((uint32_t(index_[loser]) ^ uint32_t(index_[marks[places[loser]]])) & mask) == 0;
}

// Does a feature occur twice, comparing only these bits? Makes room in `seen_` for `merge`.
bool RowBuilder::repeats(uint32_t mask) {
    if (rises(index_, mask, n_) || !may_repeat(mask)) return false;
    if (seen_.size() < 4 * n_) seen_.assign(size_t(2) << (64 - __builtin_clzll(2 * n_)), {0, 0}), stamp_ = 0;
    if (++stamp_ == 0) seen_.assign(seen_.size(), {0, 0}), stamp_ = 1;
    const size_t slots = seen_.size() - 1;
    for (size_t i = 0; i < n_; ++i) {
        const uint32_t index = uint32_t(index_[i]) & mask;
        size_t slot = (index * 0x9E3779B1u >> 7) & slots;
        while (seen_[slot].stamp == stamp_) {
            if ((uint32_t(index_[seen_[slot].at]) & mask) == index) return true;
            slot = (slot + 1) & slots;
        }
        seen_[slot] = {stamp_, uint32_t(i)};
    }
    return false;
}

// Adds up equal features at the place of the first. `repeats` must have found some.
void RowBuilder::merge() {
    if (++stamp_ == 0) seen_.assign(seen_.size(), {0, 0}), stamp_ = 1;
    const size_t slots = seen_.size() - 1;
    size_t kept = 0;
    for (size_t i = 0; i < n_; ++i) {
        const int32_t index = index_[i];
        size_t slot = (uint32_t(index) * 0x9E3779B1u >> 7) & slots;
        while (seen_[slot].stamp == stamp_ && index_[seen_[slot].at] != index) slot = (slot + 1) & slots;
        if (seen_[slot].stamp == stamp_) {
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

// Replaces the row's features by those of the expansion, which include them.
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
    enter_namespace({});
    for (const FeatureExpander::Made& made : expander_->features()) {
        pending_[n_] = {expander_->name(made).data(), made.length, made.hash, 0};
        add(int32_t(made.hash), made.value);
    }
}

bool RowBuilder::finite() const {
    bool finite = true;
    for (size_t i = 0; i < n_; ++i) finite &= std::abs(value_[i]) <= std::numeric_limits<double>::max();
    return finite;
}

// Lists the values that are not 1 while they are few. When they become many, all values are stored, earlier ones too.
void RowBuilder::store_values() {
    if (rows_.value.size() > 0) return rows_.value.commit(n_);
    if (ones_ || all_ones(value_, n_)) return;
    const size_t before = rows_.index.size();
    for (size_t i = 0; i < n_; ++i)
        if (value_[i] != 1.0) rows_.not_ones.push({int32_t(before + i), value_[i]});
    if (rows_.not_ones.size() <= 16 + before / 16) return;
    rows_.value.commit(n_);
    rows_.value.reserve(before);
    rows_.value.commit(before);
    double* const all = rows_.value.data();
    std::fill_n(all, before + n_, 1.0);
    for (size_t i = 0; i < rows_.not_ones.size(); ++i)
        all[rows_.not_ones.data()[i].at] = rows_.not_ones.data()[i].value;
    rows_.not_ones.clear();
}

void RowBuilder::finish() {
    if (decimal_) divide_decimals(digits_, divisor_, value_, n_);
    if (some_unmixed_) mix_hashes(index_, unmixed_, n_);
    if (expander_) expand();
    if (options_.names) look_up();
    if (hashed()) {
        // First features of the same hash are added up, then those of the same place: the sums of a mapping of names.
        const bool some = repeats(mask_);
        if (some) merge();
        mask_bits(index_, mask_, n_);
        if (some) merge();
    } else if (repeats(~uint32_t(0))) {
        merge();
    }
    if (may_overflow_ && !finite()) throw Malformed{nullptr, "the row's values are too large for a double"};
    if (rows_.index.size() + n_ > size_t(std::numeric_limits<int32_t>::max()))
        throw Malformed{nullptr,
                        "the rows of this block have more than 2,147,483,647 features; use a smaller block_size"};
    store_values();
    rows_.index.commit(n_);
    rows_.starts.push(int32_t(rows_.index.size()));
}

}  // namespace onepass
