// Other learners: each function adds to the module what stands in the file of its name.
#pragma once
#include <nanobind/nanobind.h>

#include <string>

#include "bind/errors.hpp"

namespace onepass {

inline void require_size(size_t got, size_t wanted, const char* what) {
    if (got != wanted) raise("ParameterError", std::string(what) + " does not fit the other arrays");
}

void bind_learners(nanobind::module_& module);
void bind_prototypes(nanobind::module_& module);
void bind_statistics(nanobind::module_& module);

}  // namespace onepass
