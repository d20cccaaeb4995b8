// Text of Python objects.
#pragma once
#include <nanobind/nanobind.h>

#include <string>
#include <string_view>

namespace onepass {

namespace nb = nanobind;

// repr(object)
std::string text_of(nb::handle object);

// The UTF-8 bytes of a string: valid as long as the string lives.
std::string_view utf8(nb::handle string);

}  // namespace onepass
