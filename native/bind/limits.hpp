// How many features and how much memory a learner may have.
#pragma once
#include <nanobind/nanobind.h>

#include <string>

namespace onepass {

// Refuses `count` features by an error of class `error` if they are more than the limit. `most`: the model's own
// limit; 0 for the limit of the environment (see most_features).
void require_few(size_t count, size_t most, const char* error);

// Refuses tables of so many bytes by an error of class `error` if they are above the limit of memory.
void require_memory(double bytes, const std::string& what, const std::string& advice, const char* error);

void bind_limits(nanobind::module_& module);

}  // namespace onepass
