// How much memory tables of weights may take.
#pragma once
#include <string>

namespace onepass {

// The limit in bytes: ONEPASS_MAX_MEMORY (a number, or one with K, M, G or T), by default the memory of this machine or
// of the control group of this process. Throws std::invalid_argument if the variable is malformed.
double memory_limit();

// The same for loops, which cannot throw: 0 if the variable is malformed.
double memory_limit_of_rows() noexcept;

// Why there is no room for one more stored vector. `advice`: what to do about it.
std::string no_vector_more(const std::string& advice);

// Smaller tables are always allowed.
constexpr double small_tables = 1 << 20;

// The error for `what`, which takes so many bytes; empty if that is allowed. `advice` says what the user can do.
std::string too_large(double bytes, const std::string& what, const std::string& advice);

// How many features a table of weights may have by default: ONEPASS_MAX_FEATURES, or 2^26. One row of text may name any
// column, and a dense table has all columns below it.
size_t most_features();

// The error for so many features; empty if they are allowed. `most` is the limit of the model, or 0.
std::string too_many_features(size_t count, size_t most);

// A number of bytes as text, such as 6.3 GB; with `short_form` as ONEPASS_MAX_MEMORY reads it, rounded up: 7G.
std::string text_of_bytes(double bytes, bool short_form = false);

}  // namespace onepass
