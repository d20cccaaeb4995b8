// Adds the text parsers to the Python module.
#pragma once
#include <nanobind/nanobind.h>

namespace onepass {

void bind_reader(nanobind::module_& module);

}  // namespace onepass
