// Names of features and their codes: class Names of onepass._native, and the hashes of names.
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include "bind/arrays.hpp"
#include "bind/reader.hpp"
#include "bind/text.hpp"
#include "parse/row_builder.hpp"

namespace onepass {

using namespace nb::literals;

static nb::list names_between(const Names& names, size_t from, size_t to) {
    nb::list out;
    for (size_t i = from; i < to && i < names.size(); ++i) out.append(nb::str(names[i].data(), names[i].size()));
    return out;
}

static nb::list intern(Names& self, nb::list names) {
    nb::list out;
    for (nb::handle name : names) {
        const std::string_view text = utf8(name);
        out.append(self.intern(text, hash_name(text.data(), text.size())));
    }
    return out;
}

static nb::object hash_names(nb::list names, int bits) {
    const uint32_t mask = uint32_t((uint64_t(1) << bits) - 1);
    std::vector<int32_t> out;
    for (nb::handle name : names) {
        const std::string_view text = utf8(name);
        out.push_back(int32_t(hash_name(text.data(), text.size()) & mask));
    }
    const size_t size = out.size();
    return array({size}, std::move(out));
}

void bind_names(nb::module_& module) {
    nb::class_<Names>(module, "Names")
        .def(nb::init<>())
        .def("__len__", &Names::size)
        .def("names", names_between, "start"_a, "stop"_a)
        .def("intern", intern, "names"_a);
    module.attr("HASH_VERSION") = hash_version;
    module.def("hash_names", hash_names, "names"_a, "bits"_a);
    module.def(
        "murmur3", [](const std::string& text, uint32_t seed) { return murmur3(text.data(), text.size(), seed); },
        "text"_a, "seed"_a = 0);
}

}  // namespace onepass
