// Adds the text parsers, the tables as rows, and the transforms to the Python module.
#pragma once
#include <nanobind/nanobind.h>

namespace onepass {

void bind_reader(nanobind::module_& module);
void bind_tables(nanobind::module_& module);
void bind_transforms(nanobind::module_& module);

}  // namespace onepass
