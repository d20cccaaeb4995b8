#pragma once
#include <nanobind/nanobind.h>

namespace onepass {

void bind_learners(nanobind::module_& module);

}  // namespace onepass
