#include "bind/limits.hpp"

#include <nanobind/stl/string.h>

#include <stdexcept>

#include "bind/errors.hpp"
#include "core/memory.hpp"
#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace onepass {

using namespace nb::literals;

void require_few(size_t count, size_t most, const char* error) {
    if (most == 0 && count <= (size_t(1) << 16)) return;  // below every limit: the environment need not be read
    try {
        if (const std::string wrong = too_many_features(count, most); !wrong.empty()) raise(error, wrong);
    } catch (const std::invalid_argument& wrong) {
        raise("ParameterError", wrong.what());
    }
}

void require_memory(double bytes, const std::string& what, const std::string& advice, const char* error) {
    if (bytes <= small_tables) return;
    try {
        if (const std::string wrong = too_large(bytes, what, advice); !wrong.empty()) raise(error, wrong);
    } catch (const std::invalid_argument& wrong) {
        raise("ParameterError", wrong.what());
    }
}

static size_t most_features_or_raise() {
    try {
        return most_features();
    } catch (const std::invalid_argument& wrong) {
        raise("ParameterError", wrong.what());
    }
}

// Freed memory stays with the process: the next block uses it again, which is faster than mapping new pages.
static void keep_memory() {
#ifdef __GLIBC__
    mallopt(M_MMAP_THRESHOLD, 32 << 20);
    mallopt(M_TRIM_THRESHOLD, 64 << 20);
#endif
}

void bind_limits(nb::module_& module) {
    module.def("most_features", most_features_or_raise, "How many features there may be where nobody says otherwise.");
    module.def(
        "require_memory",
        [](double bytes, const std::string& what, const std::string& advice, const std::string& error) {
            require_memory(bytes, what, advice, error.c_str());
        },
        "bytes"_a, "what"_a, "advice"_a, "error"_a);
    module.def("keep_memory", keep_memory);
}

}  // namespace onepass
