// Lists of names that Python and C++ share, each written once, here in C++. Python reads them from the compiled module
// (bind/name_lists.cpp). No number that stands for a name passes between the two.
#pragma once
#include <algorithm>
#include <cstddef>
#include <string_view>

#define ONEPASS_QUOTED(...) #__VA_ARGS__

// The names of an array's numbers, in order: p[List::beta] is the number called "beta".
#define ONEPASS_POSITIONS(List, ...)                                      \
    struct List {                                                         \
        enum : size_t { __VA_ARGS__, count };                             \
        static constexpr const char* names = ONEPASS_QUOTED(__VA_ARGS__); \
    }

// An enum whose values Python calls by their names.
#define ONEPASS_ENUM(Name, ...)      \
    enum class Name { __VA_ARGS__ }; \
    constexpr const char* names_of(Name) { return ONEPASS_QUOTED(__VA_ARGS__); }

namespace onepass {

// Calls visit(name) for each name of a list such as "beta, strict".
template <class Visit>
constexpr void each_name(std::string_view names, const Visit& visit) {
    while (!names.empty()) {
        const size_t end = std::min(names.find(", "), names.size());
        visit(names.substr(0, end));
        names.remove_prefix(std::min(end + 2, names.size()));
    }
}

constexpr size_t count_names(std::string_view names) {
    size_t count = 0;
    each_name(names, [&](std::string_view) { ++count; });
    return count;
}

// Where a name stands in a list; count_names(names) if it is not there.
constexpr size_t position_of(std::string_view wanted, std::string_view names) {
    size_t at = 0;
    bool found = false;
    each_name(names, [&](std::string_view name) {
        found |= name == wanted;
        at += !found;
    });
    return at;
}
static_assert(position_of("b", "a, b, c") == 1 && position_of("d", "a, b, c") == 3 && count_names("") == 0);

}  // namespace onepass
