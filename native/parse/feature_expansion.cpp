#include "parse/feature_expansion.hpp"

#include <algorithm>

namespace onepass {

static constexpr uint32_t none = ~uint32_t(0);
static constexpr size_t slack = 8;  // bytes that a hash may read past a name

static std::string_view space_of(std::string_view name) {
    const size_t at = name.find('^');
    return at == std::string_view::npos ? std::string_view() : name.substr(0, at);
}

bool Term::takes(std::string_view name) const {
    if (kind == TermKind::any) return true;
    const bool spaced = name.find('^') != std::string_view::npos;
    const std::string_view space = space_of(name);
    if (kind == TermKind::initial) return text.empty() ? space.empty() : space.substr(0, text.size()) == text;
    return spaced ? space == text : name.substr(0, name.find('=')) == text;
}

void FeatureExpander::clear() {
    text_.assign(slack, '\0');
    features_.clear();
}

void FeatureExpander::note(std::string_view space, std::string_view name, double value) {
    if (value == 0.0) return;  // a zero is no feature
    text_.resize(text_.size() - slack);
    const size_t begin = text_.size();
    text_.append(space).append(name);
    const uint32_t length = uint32_t(text_.size() - begin);
    features_.push_back({begin, length, hash_name(text_.data() + begin, length), value});
    text_.append(slack, '\0');
}

void FeatureExpander::check_room() const {
    if (features_.size() >= most) throw TooManyFeatures("the row's interactions make more than 16,777,216 features");
}

void FeatureExpander::expand(bool spell) {
    if (what_.ngram > 1) add_runs();
    add_up();
    const size_t single = features_.size();
    for (const auto& terms : what_.interactions) {
        fits_.assign(single, 0);
        multiply(terms, spell);
    }
}

// Runs of 2 to `ngram` neighbours of each namespace, in the order of the row.
void FeatureExpander::add_runs() {
    std::vector<std::pair<std::string, std::vector<size_t>>> spaces;
    for (size_t i = 0; i < features_.size(); ++i) {
        const std::string_view space = space_of(name(features_[i]));
        auto at = std::find_if(spaces.begin(), spaces.end(), [&](const auto& each) { return each.first == space; });
        if (at == spaces.end()) at = spaces.insert(at, {std::string(space), {}});
        at->second.push_back(i);
    }
    std::string run;
    for (const auto& [space, members] : spaces) {
        const size_t skip = space.empty() ? 0 : space.size() + 1;
        for (size_t n = 2; n <= what_.ngram && n <= members.size(); ++n)
            for (size_t at = 0; at + n <= members.size(); ++at) {
                run.assign(name(features_[members[at]]));
                for (size_t i = 1; i < n; ++i) run.append(" ").append(name(features_[members[at + i]]).substr(skip));
                check_room();
                note({}, run, 1.0);
            }
    }
}

void FeatureExpander::add_up() {
    size_t slots = 64;
    while (slots < 2 * features_.size()) slots *= 2;
    seen_.assign(slots, none);
    size_t kept = 0;
    for (size_t i = 0; i < features_.size(); ++i) {
        const Made feature = features_[i];
        size_t slot = feature.hash & (slots - 1);
        while (seen_[slot] != none && name(features_[seen_[slot]]) != name(feature)) slot = (slot + 1) & (slots - 1);
        if (seen_[slot] != none) {
            features_[seen_[slot]].value += feature.value;
            continue;
        }
        seen_[slot] = uint32_t(kept);
        features_[kept++] = feature;
    }
    features_.resize(kept);
}

void FeatureExpander::multiply(const std::vector<Term>& terms, bool spell) {
    takers_.resize(terms.size());
    hashes_.resize(terms.size());
    for (size_t term = 0; term < terms.size(); ++term) {
        takers_[term].clear();
        for (size_t i = 0; i < fits_.size(); ++i)
            if (terms[term].takes(name(features_[i]))) {
                takers_[term].push_back(i);
                fits_[i] |= uint8_t(1 << term);
            }
        if (takers_[term].empty()) return;
    }
    chosen_.clear();
    prefix_.clear();
    choose(0, 1.0, spell);
}

// Terms that take the same features would make the same product several times: only the product whose features are in
// the order of their names is made.
bool FeatureExpander::is_taken_in_order(size_t term, size_t feature) const {
    for (size_t earlier = 0; earlier < term; ++earlier) {
        const size_t other = chosen_[earlier];
        if ((fits_[other] >> term & 1) && (fits_[feature] >> earlier & 1) &&
            name(features_[feature]) < name(features_[other]))
            return false;
    }
    return true;
}

void FeatureExpander::choose(size_t term, double value, bool spell) {
    const bool last = term + 1 == takers_.size();
    PrefixHash& hash = hashes_[term];
    if (last) hash.set(prefix_.data(), prefix_.size());
    for (const size_t i : takers_[term]) {
        if (!is_taken_in_order(term, i)) continue;
        const Made feature = features_[i];
        const double product = value * feature.value;
        if (!last) {
            const size_t length = prefix_.size();
            prefix_.append(name(feature)).append("*");
            chosen_.push_back(i);
            choose(term + 1, product, spell);
            chosen_.pop_back();
            prefix_.resize(length);
            continue;
        }
        if (product == 0.0) continue;
        check_room();
        Made made{0, 0, hash(text_.data() + feature.begin, feature.length), product};
        if (spell) {
            text_.resize(text_.size() - slack);
            made.begin = text_.size();
            text_.append(prefix_).append(text_, feature.begin, feature.length);
            made.length = uint32_t(text_.size() - made.begin);
            text_.append(slack, '\0');
        }
        features_.push_back(made);
    }
}

}  // namespace onepass
