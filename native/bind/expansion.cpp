// Interactions and n-grams: class FeatureExpansion of onepass._native.
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <memory>
#include <stdexcept>

#include "bind/arrays.hpp"
#include "bind/errors.hpp"
#include "bind/name_lists.hpp"
#include "bind/reader.hpp"
#include "parse/row_builder.hpp"

namespace onepass {

using namespace nb::literals;

namespace {

FeatureExpansion* make_expansion(nb::list interactions, size_t ngram) {
    auto made = std::make_unique<FeatureExpansion>();
    made->ngram = ngram;
    for (nb::handle given : interactions) {
        std::vector<Term> terms;
        for (nb::handle each : given) {
            const auto [kind, text] = nb::cast<std::pair<nb::object, std::string>>(each);
            terms.push_back({value_of<TermKind>("term", kind), text});
        }
        if (terms.size() < 2 || terms.size() > 8) raise("ParameterError", "an interaction has from 2 to 8 terms");
        made->interactions.push_back(std::move(terms));
    }
    return made.release();
}

// One example as lists of names and values: (names, values) with the made features. The caller adds up equal names.
nb::tuple expand_example(const FeatureExpansion& self, nb::list names, nb::list values) {
    FeatureExpander expander(self);
    expander.clear();
    for (size_t i = 0; i < names.size(); ++i) expander.note({}, utf8(names[i]), nb::cast<double>(values[i]));
    try {
        expander.expand(true);
    } catch (const TooManyFeatures& error) {
        raise("InputError", error.what());
    }
    nb::list out_names, out_values;
    for (const FeatureExpander::Made& made : expander.features()) {
        const std::string_view name = expander.name(made);
        out_names.append(nb::str(name.data(), name.size()));
        out_values.append(made.value);
    }
    return nb::make_tuple(out_names, out_values);
}

// Sparse rows over codes: a code stands for a name.
struct CodedRows {
    In1<int32_t> starts, codes;
    In1<double> values;
    size_t names;
};

template <class NameOf>
void add_row(const CodedRows& given, size_t row, const NameOf& name_of, RowBuilder& builder) {
    const int32_t begin = given.starts.data()[row], end = given.starts.data()[row + 1];
    if (begin < 0 || end < begin || size_t(end) > given.codes.shape(0)) throw std::out_of_range("starts");
    builder.begin(size_t(end - begin));
    builder.enter_namespace({});
    for (int32_t at = begin; at < end; ++at) {
        const int32_t code = given.codes.data()[at];
        if (code < 0 || size_t(code) >= given.names) throw std::out_of_range("codes");
        const std::string_view name = name_of(size_t(code));
        builder.add(builder.copy_name(name), name.size(), given.values.data()[at]);
    }
    builder.finish();
}

// The rows with the made features, whose names are hashed, or get a code when `table` assigns the columns of the rows.
template <class NameOf>
ParsedRows* expand_rows(const FeatureExpansion& self, const CodedRows& given, const NameOf& name_of, int hash_bits,
                        Names* table) {
    if (given.starts.shape(0) == 0 || given.codes.shape(0) != given.values.shape(0))
        raise("ParameterError", "the rows do not fit together");
    auto rows = std::make_unique<ParsedRows>();
    ParseOptions options;
    options.hash_bits = hash_bits;
    options.names = table;
    options.expansion = &self;
    std::string wrong;
    {
        nb::gil_scoped_release unlocked;
        RowBuilder builder(*rows, options);
        for (size_t i = 0; i + 1 < given.starts.shape(0) && wrong.empty(); ++i) {
            try {
                add_row(given, i, name_of, builder);
            } catch (const Malformed& malformed) {
                wrong = "row " + std::to_string(i) + ": " + malformed.what;
            }
        }
    }
    if (!wrong.empty()) raise("InputError", wrong + ". Nothing of this call was learned");
    return rows.release();
}

ParsedRows* expand_listed(const FeatureExpansion& self, In1<int32_t> starts, In1<int32_t> codes, In1<double> values,
                          nb::list names, int hash_bits, Names* table) {
    std::vector<std::string_view> texts;
    for (nb::handle name : names) texts.push_back(utf8(name));
    const auto name_of = [&](size_t code) { return texts[code]; };
    return expand_rows(self, {starts, codes, values, texts.size()}, name_of, hash_bits, table);
}

ParsedRows* expand_interned(const FeatureExpansion& self, In1<int32_t> starts, In1<int32_t> codes, In1<double> values,
                            const Names& names, int hash_bits, Names* table) {
    const auto name_of = [&](size_t code) { return names[code]; };
    return expand_rows(self, {starts, codes, values, names.size()}, name_of, hash_bits, table);
}

}  // namespace

void bind_expansion(nb::module_& module) {
    nb::class_<FeatureExpansion>(module, "FeatureExpansion")
        .def(nb::new_(&make_expansion), "interactions"_a, "ngram"_a)
        .def("expand", expand_example, "names"_a, "values"_a)
        .def("rows", expand_listed, "starts"_a, "codes"_a, "values"_a, "names"_a, "hash_bits"_a, "table"_a.none(),
             nb::rv_policy::take_ownership)
        .def("rows", expand_interned, "starts"_a, "codes"_a, "values"_a, "names"_a, "hash_bits"_a, "table"_a.none(),
             nb::rv_policy::take_ownership);
}

}  // namespace onepass
