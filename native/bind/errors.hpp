// Errors for Python.
#pragma once
#include <nanobind/nanobind.h>

#include <string>

#include "bind/text.hpp"

namespace onepass {

// Raises onepass.errors.<kind>(message).
[[noreturn]] void raise(const char* kind, const std::string& message);

// Raises an error with the attribute `row`, and the row's number in its message: the rows before it are learned.
[[noreturn]] void raise_row(const char* kind, size_t row, const std::string& why);

}  // namespace onepass
