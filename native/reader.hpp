// Adds the text parsers, and the transforms, to the Python module.
#pragma once
#include <nanobind/nanobind.h>

namespace onepass {

void bind_reader(nanobind::module_& module);
void bind_transforms(nanobind::module_& module);

}  // namespace onepass
