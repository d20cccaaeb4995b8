// The transforms as Python sees them: running statistics over arrays, and features made of features.
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include "bind/features.hpp"
#include "bind/reader.hpp"
#include "learners/running.hpp"
#include "parse/rows.hpp"

namespace onepass {

using namespace nb::literals;

template <class V>
using Vector = nb::ndarray<V, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Matrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Results = std::optional<nb::ndarray<double, nb::c_contig, nb::device::cpu>>;

static double* target(const Results& results, size_t size) {
    if (!results) return nullptr;
    if (results->size() != size) raise("ParameterError", "the place for results has the wrong size");
    return results->data();
}

template <class Statistic>
static size_t dense(Statistic statistic, size_t known, const Matrix& X, bool learn, const Results& before,
                    const Results& after) {
    if (X.shape(1) > known) raise("ParameterError", "more columns than statistics");
    const Outputs out{target(before, X.size()), target(after, X.size())};
    nb::gil_scoped_release unlocked;
    return run_dense(statistic, X.data(), X.shape(0), X.shape(1), learn, out);
}

template <class Statistic>
static size_t sparse(Statistic statistic, size_t known, const Vector<const int64_t>& starts,
                     const Vector<const int32_t>& columns, const Vector<const double>& values, bool learn,
                     const Results& before, const Results& after) {
    const size_t size = values.shape(0);
    if (starts.shape(0) == 0 || columns.shape(0) != size || starts.data()[0] != 0)
        raise("ParameterError", "the rows do not fit together");
    for (size_t i = 1; i < starts.shape(0); ++i)
        if (starts.data()[i] < starts.data()[i - 1] || size_t(starts.data()[i]) > size)
            raise("ParameterError", "the rows do not fit together");
    for (size_t k = 0; k < size; ++k)
        if (columns.data()[k] < 0 || size_t(columns.data()[k]) >= known)
            raise("ParameterError", "a column without statistics");
    const Outputs out{target(before, size), target(after, size)};
    nb::gil_scoped_release unlocked;
    return run_sparse(statistic, starts.data(), columns.data(), values.data(), starts.shape(0) - 1, learn, out);
}

// A mapping's numbers as the statistics change them, after learning them if wanted; strings pass. With `write`, the
// statistics of names in the index are learned. None where they overflow.
template <class Statistic>
static nb::object mapping(Statistic statistic, size_t known, nb::dict index, nb::handle x, bool learn, bool write,
                          nb::handle as_number) {
    nb::object items = nb::steal(PyMapping_Items(x.ptr()));  // holds what it names, whatever as_number may run
    if (!items.is_valid()) throw nb::python_error();
    nb::dict out;
    if (learn) count_row(statistic);
    for (nb::handle item : items) {
        if (!PyTuple_Check(item.ptr()) || PyTuple_GET_SIZE(item.ptr()) != 2)
            raise("InputError", "a mapping's items must be pairs of name and value, got " + text_of(item));
        PyObject *const name = PyTuple_GET_ITEM(item.ptr(), 0), *const value = PyTuple_GET_ITEM(item.ptr(), 1);
        if (!PyUnicode_Check(name) && (!PyLong_Check(name) || PyBool_Check(name)))
            raise("FeatureError", "feature names must be strings or whole numbers, got " + text_of(name) + " (" +
                                      Py_TYPE(name)->tp_name + "); convert it with str()");
        if (PyUnicode_Check(value)) {
            PyDict_SetItem(out.ptr(), name, value);
            continue;
        }
        double number = PyFloat_CheckExact(value) ? PyFloat_AS_DOUBLE(value) : std::numeric_limits<double>::infinity();
        if (!std::isfinite(number)) number = nb::cast<double>(as_number(nb::handle(name), nb::handle(value)));
        PyObject* const found = PyDict_GetItemWithError(index.ptr(), name);
        if (!found && PyErr_Occurred()) throw nb::python_error();
        const int64_t j = found ? PyLong_AsLongLong(found) : -1;
        if (j >= int64_t(known)) raise("ParameterError", "a column without statistics");
        double own[Statistic::numbers];
        Statistic one = statistic.column(j, own);
        if (learn) one.learn(0, number);
        if (!one.is_finite(0)) return nb::none();
        if (write && j >= 0) statistic.put(size_t(j), own);
        nb::object changed = nb::steal(PyFloat_FromDouble(one.change(0, number, one.divisor(0))));
        if (PyDict_SetItem(out.ptr(), name, changed.ptr()) != 0) throw nb::python_error();
    }
    return out;
}

static Moments moments(const Vector<double>& count, const Vector<double>& mean, const Vector<double>& squares,
                       double rows, bool centre, bool scale) {
    if (mean.shape(0) != count.shape(0) || squares.shape(0) != count.shape(0))
        raise("ParameterError", "the statistics do not fit together");
    return {count.data(), mean.data(), squares.data(), centre, scale, rows};
}

static Range range(const Vector<double>& low, const Vector<double>& high, double from, double to, bool clip) {
    if (low.shape(0) != high.shape(0)) raise("ParameterError", "the statistics do not fit together");
    return {low.data(), high.data(), from, to - from, clip};
}

static Expansion* expansion(nb::list interactions, size_t ngram) {
    auto made = std::make_unique<Expansion>();
    made->ngram = ngram;
    for (nb::handle given : interactions) {
        std::vector<Term> terms;
        for (nb::handle each : given) {
            const auto [kind, text] = nb::cast<std::pair<int, std::string>>(each);
            terms.push_back({Term::Kind(kind), text});
        }
        if (terms.size() < 2 || terms.size() > 8) raise("ParameterError", "an interaction has from 2 to 8 terms");
        made->interactions.push_back(std::move(terms));
    }
    return made.release();
}

static std::string_view utf8(nb::handle name) {
    Py_ssize_t length = 0;
    const char* text = PyUnicode_AsUTF8AndSize(name.ptr(), &length);
    if (!text) throw nb::python_error();
    return {text, size_t(length)};
}

// A row as lists of names and values, both ways. Equal names that come out are the caller's to add up.
static nb::tuple expand_one(const Expansion& self, nb::list names, nb::list values) {
    Expander expander(self);
    expander.clear();
    for (size_t i = 0; i < names.size(); ++i) expander.note({}, utf8(names[i]), nb::cast<double>(values[i]));
    try {
        expander.expand(true);
    } catch (const TooManyFeatures& error) {
        raise("InputError", error.what());
    }
    nb::list called, numbers;
    for (const Expander::Made& made : expander.features()) {
        const std::string_view name = expander.name(made);
        called.append(nb::str(name.data(), name.size()));
        numbers.append(made.value);
    }
    return nb::make_tuple(called, numbers);
}

// Rows over codes, whose names are given, with the features made of theirs: hashed, or to be settled in a table.
template <class NameOf>
static Rows* expand_rows(const Expansion& self, const Vector<const int32_t>& starts, const Vector<const int32_t>& codes,
                         const Vector<const double>& values, size_t known, NameOf name_of, int hash_bits,
                         Names* table) {
    if (starts.shape(0) == 0 || codes.shape(0) != values.shape(0))
        raise("ParameterError", "the rows do not fit together");
    auto rows = std::make_unique<Rows>();
    ParseOptions options;
    options.hash_bits = hash_bits;
    options.names = table;
    options.expansion = &self;
    std::string wrong;
    {
        nb::gil_scoped_release unlocked;
        RowBuilder builder(*rows, options);
        for (size_t i = 0; i + 1 < starts.shape(0) && wrong.empty(); ++i) {
            const int32_t begin = starts.data()[i], end = starts.data()[i + 1];
            if (begin < 0 || end < begin || size_t(end) > codes.shape(0)) throw std::out_of_range("starts");
            builder.begin(size_t(end - begin));
            builder.enter({});
            for (int32_t at = begin; at < end; ++at) {
                const int32_t code = codes.data()[at];
                if (code < 0 || size_t(code) >= known) throw std::out_of_range("codes");
                const std::string_view name = name_of(size_t(code));
                builder.add(builder.keep(name), name.size(), values.data()[at]);
            }
            try {
                builder.finish();
            } catch (const Malformed& malformed) {
                wrong = "row " + std::to_string(i) + ": " + malformed.what;
            }
        }
    }
    if (!wrong.empty()) raise("InputError", wrong + ". Nothing of this call was learned");
    return rows.release();
}

void bind_transforms(nb::module_& module) {
    module.def(
        "moments_dense",
        [](Vector<double> count, Vector<double> mean, Vector<double> squares, double rows, bool centre, bool scale,
           Matrix X, bool learn, Results before, Results after) {
            return dense(moments(count, mean, squares, rows, centre, scale), count.shape(0), X, learn, before, after);
        },
        "count"_a, "mean"_a, "squares"_a, "rows"_a, "centre"_a, "scale"_a, "X"_a, "learn"_a, "before"_a.none(),
        "after"_a.none());
    module.def(
        "moments_sparse",
        [](Vector<double> count, Vector<double> mean, Vector<double> squares, double rows, bool centre, bool scale,
           Vector<const int64_t> starts, Vector<const int32_t> columns, Vector<const double> values, bool learn,
           Results before, Results after) {
            return sparse(moments(count, mean, squares, rows, centre, scale), count.shape(0), starts, columns, values,
                          learn, before, after);
        },
        "count"_a, "mean"_a, "squares"_a, "rows"_a, "centre"_a, "scale"_a, "starts"_a, "columns"_a, "values"_a,
        "learn"_a, "before"_a.none(), "after"_a.none());
    module.def(
        "range_dense",
        [](Vector<double> low, Vector<double> high, double from, double to, bool clip, Matrix X, bool learn,
           Results before,
           Results after) { return dense(range(low, high, from, to, clip), low.shape(0), X, learn, before, after); },
        "low"_a, "high"_a, "from_"_a, "to"_a, "clip"_a, "X"_a, "learn"_a, "before"_a.none(), "after"_a.none());
    module.def(
        "range_sparse",
        [](Vector<double> low, Vector<double> high, double from, double to, bool clip, Vector<const int64_t> starts,
           Vector<const int32_t> columns, Vector<const double> values, bool learn, Results before, Results after) {
            return sparse(range(low, high, from, to, clip), low.shape(0), starts, columns, values, learn, before,
                          after);
        },
        "low"_a, "high"_a, "from_"_a, "to"_a, "clip"_a, "starts"_a, "columns"_a, "values"_a, "learn"_a,
        "before"_a.none(), "after"_a.none());
    module.def(
        "moments_mapping",
        [](Vector<double> count, Vector<double> mean, Vector<double> squares, double rows, bool centre, bool scale,
           nb::dict index, nb::object x, bool learn, bool write, nb::object as_number) {
            const Moments statistic = moments(count, mean, squares, rows, centre, scale);
            return mapping(statistic, count.shape(0), index, x, learn, write, as_number);
        },
        "count"_a, "mean"_a, "squares"_a, "rows"_a, "centre"_a, "scale"_a, "index"_a, "x"_a, "learn"_a, "write"_a,
        "as_number"_a);
    module.def(
        "range_mapping",
        [](Vector<double> low, Vector<double> high, double from, double to, bool clip, nb::dict index, nb::object x,
           bool learn, bool write, nb::object as_number) {
            const Range statistic = range(low, high, from, to, clip);
            return mapping(statistic, low.shape(0), index, x, learn, write, as_number);
        },
        "low"_a, "high"_a, "from_"_a, "to"_a, "clip"_a, "index"_a, "x"_a, "learn"_a, "write"_a, "as_number"_a);
    nb::class_<Expansion>(module, "Expansion")
        .def(nb::new_(&expansion), "interactions"_a, "ngram"_a)
        .def("expand", expand_one, "names"_a, "values"_a)
        .def(
            "rows",
            [](const Expansion& self, Vector<const int32_t> starts, Vector<const int32_t> codes,
               Vector<const double> values, nb::list names, int hash_bits, Names* table) {
                std::vector<std::string_view> called;
                for (nb::handle name : names) called.push_back(utf8(name));
                return expand_rows(
                    self, starts, codes, values, called.size(), [&](size_t code) { return called[code]; }, hash_bits,
                    table);
            },
            "starts"_a, "codes"_a, "values"_a, "names"_a, "hash_bits"_a, "table"_a.none(),
            nb::rv_policy::take_ownership)
        .def(
            "rows",
            [](const Expansion& self, Vector<const int32_t> starts, Vector<const int32_t> codes,
               Vector<const double> values, const Names& names, int hash_bits, Names* table) {
                return expand_rows(
                    self, starts, codes, values, names.size(), [&](size_t code) { return names[code]; }, hash_bits,
                    table);
            },
            "starts"_a, "codes"_a, "values"_a, "names"_a, "hash_bits"_a, "table"_a.none(),
            nb::rv_policy::take_ownership);
}

}  // namespace onepass
