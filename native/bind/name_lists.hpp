// Names from Python as values of enums and as positions in arrays.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <string>
#include <vector>

#include "core/name_lists.hpp"

namespace onepass {

// Where `name` stands in a list; raises ParameterError, which says what was expected of `what`.
size_t position_in(const char* names, const std::string& name, const std::string& what);

template <class Enum>
Enum value_of(const char* what, nanobind::handle name) {
    return Enum(position_in(names_of(Enum{}), nanobind::cast<std::string>(name), what));
}

// The parameters of a compiled formula in its order. The names of a loss and of a schedule become numbers here.
std::vector<double> parameters_of(const std::string& what, const char* names, nanobind::dict given);

void bind_name_lists(nanobind::module_& module);

}  // namespace onepass
