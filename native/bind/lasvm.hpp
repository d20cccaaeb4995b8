#pragma once
#include <nanobind/nanobind.h>

namespace onepass {

void bind_lasvm(nanobind::module_& module);

}  // namespace onepass
