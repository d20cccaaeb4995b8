// How much memory tables of weights may take.
#pragma once
#include <string>

namespace onepass {

// Bytes: what ONEPASS_MAX_MEMORY says (a number, or one with K, M, G or T), by default all that this machine, or the
// control group of this process, has. Throws std::invalid_argument where it says something else.
double memory_limit();

// The same for loops, which refuse a row: 0 where ONEPASS_MAX_MEMORY says something else.
double memory_limit_of_rows() noexcept;

// Why there is no room for one more stored vector. `advice`: what to do about it.
std::string no_vector_more(const std::string& advice);

// Tables of so few bytes are not looked at: as much as anybody has.
constexpr double small_tables = 1 << 20;

// What is wrong with `what`, which takes so many bytes; empty where nothing is. `advice`: what to do about it.
std::string too_large(double bytes, const std::string& what, const std::string& advice);

// How many features a table of weights may have where nobody says otherwise: what ONEPASS_MAX_FEATURES says, by default
// 2^26. One row of text may name any column, and a dense table has all columns below.
size_t most_features();

// What is wrong with so many features; empty where nothing is. `most`: the model's own limit, or 0.
std::string too_many_features(size_t count, size_t most);

// As people read it, as 6.3 GB; `short_form` as ONEPASS_MAX_MEMORY takes it, rounded up: 7G.
std::string text_of_bytes(double bytes, bool short_form = false);

}  // namespace onepass
