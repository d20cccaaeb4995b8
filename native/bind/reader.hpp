// Text to rows, and rows for Python: each function adds to the module what stands in the file of its name.
#pragma once
#include <nanobind/nanobind.h>

namespace onepass {

void bind_expansion(nanobind::module_& module);
void bind_names(nanobind::module_& module);
void bind_parser(nanobind::module_& module);
void bind_rows(nanobind::module_& module);
void bind_tables(nanobind::module_& module);

}  // namespace onepass
