// The instruction set of the loops: chosen when the module is loaded, changed by `use_isa`.
#pragma once
#include <nanobind/nanobind.h>

namespace onepass {

// Chooses an instruction set, and adds isa, isas and use_isa to the module.
void bind_instruction_sets(nanobind::module_& module);

}  // namespace onepass
