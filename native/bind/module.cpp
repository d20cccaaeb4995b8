// onepass._native: everything that Python sees of the native core.
#include <nanobind/nanobind.h>

#include "bind/engine.hpp"
#include "bind/instruction_sets.hpp"
#include "bind/kernel_engine.hpp"
#include "bind/kernels.hpp"
#include "bind/lasvm.hpp"
#include "bind/learners.hpp"
#include "bind/limits.hpp"
#include "bind/lock.hpp"
#include "bind/name_lists.hpp"
#include "bind/reader.hpp"

NB_MODULE(_native, module) {
    using namespace onepass;
    // A thread that never ends holds its learners until the process ends: that is no leak to warn the user of.
    nb::set_leak_warnings(false);
    bind_instruction_sets(module);
    bind_limits(module);
    bind_name_lists(module);
    bind_lock(module);
    bind_kernels(module);
    bind_lasvm(module);
    bind_learners(module);
    bind_prototypes(module);
    bind_engine(module);
    bind_kernel_engine(module);
    bind_statistics(module);
    bind_names(module);
    bind_rows(module);
    bind_expansion(module);
    bind_parser(module);
    bind_tables(module);
}
