// Running statistics of columns: what the scalers learn, and the scaled values.
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <cmath>
#include <limits>
#include <optional>

#include "bind/arrays.hpp"
#include "bind/errors.hpp"
#include "bind/learners.hpp"
#include "learners/running.hpp"

namespace onepass {

using namespace nb::literals;

namespace {

using Results = std::optional<nb::ndarray<double, nb::c_contig, nb::device::cpu>>;

double* target(const Results& results, size_t size) {
    if (!results) return nullptr;
    if (results->size() != size) raise("ParameterError", "the place for results has the wrong size");
    return results->data();
}

Moments moments(const Out1& count, const Out1& mean, const Out1& squares, double rows, bool centre, bool scale) {
    if (mean.shape(0) != count.shape(0) || squares.shape(0) != count.shape(0))
        raise("ParameterError", "the statistics do not fit together");
    return {count.data(), mean.data(), squares.data(), centre, scale, rows};
}

Range range(const Out1& low, const Out1& high, double from, double to, bool clip) {
    if (low.shape(0) != high.shape(0)) raise("ParameterError", "the statistics do not fit together");
    return {low.data(), high.data(), from, to - from, clip};
}

template <class Statistic>
size_t scale_dense(Statistic statistic, size_t known, const In2<double>& X, bool learn, const Results& before,
                   const Results& after) {
    if (X.shape(1) > known) raise("ParameterError", "more columns than statistics");
    const Outputs out{target(before, X.size()), target(after, X.size())};
    nb::gil_scoped_release unlocked;
    return run_dense(statistic, X.data(), X.shape(0), X.shape(1), learn, out);
}

template <class Statistic>
size_t scale_sparse(Statistic statistic, size_t known, const In1<int64_t>& starts, const In1<int32_t>& columns,
                    const In1<double>& values, bool learn, const Results& before, const Results& after) {
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

struct Item {
    PyObject *name, *value;
};

Item read_item(nb::handle item) {
    if (!PyTuple_Check(item.ptr()) || PyTuple_GET_SIZE(item.ptr()) != 2)
        raise("InputError", "a mapping's items must be pairs of name and value, got " + text_of(item));
    PyObject* const name = PyTuple_GET_ITEM(item.ptr(), 0);
    if (!PyUnicode_Check(name) && (!PyLong_Check(name) || PyBool_Check(name)))
        raise("FeatureError", "feature names must be strings or whole numbers, got " + text_of(name) + " (" +
                                  Py_TYPE(name)->tp_name + "); convert it with str()");
    return {name, PyTuple_GET_ITEM(item.ptr(), 1)};
}

void set_item(nb::dict& dict, PyObject* name, PyObject* value) {
    if (PyDict_SetItem(dict.ptr(), name, value) != 0) throw nb::python_error();
}

// A finite float as it is. Python's as_number(name, value) converts everything else, or refuses it.
double number_of(const Item& item, nb::handle as_number) {
    if (PyFloat_CheckExact(item.value) && std::isfinite(PyFloat_AS_DOUBLE(item.value)))
        return PyFloat_AS_DOUBLE(item.value);
    return nb::cast<double>(as_number(nb::handle(item.name), nb::handle(item.value)));
}

// The column of a name, or -1 for a name without statistics.
int64_t column_of(PyObject* name, nb::dict index, size_t known) {
    PyObject* const found = PyDict_GetItemWithError(index.ptr(), name);
    if (!found && PyErr_Occurred()) throw nb::python_error();
    const int64_t column = found ? PyLong_AsLongLong(found) : -1;
    if (column >= int64_t(known)) raise("ParameterError", "a column without statistics");
    return column;
}

// The numbers of a mapping, scaled; with `learn`, by the statistics after this example. Strings stay as they are. With
// `write`, the statistics of the names in `index` are updated. None if they overflow.
template <class Statistic>
nb::object scale_mapping(Statistic statistic, size_t known, nb::dict index, nb::handle x, bool learn, bool write,
                         nb::handle as_number) {
    nb::object items = nb::steal(PyMapping_Items(x.ptr()));  // keeps names and values alive whatever as_number does
    if (!items.is_valid()) throw nb::python_error();
    nb::dict out;
    if (learn) count_row(statistic);
    for (nb::handle each : items) {
        const Item item = read_item(each);
        if (PyUnicode_Check(item.value)) {
            set_item(out, item.name, item.value);
            continue;
        }
        const double number = number_of(item, as_number);
        const int64_t column = column_of(item.name, index, known);
        double own[Statistic::numbers];
        Statistic one = statistic.column(column, own);
        if (learn) one.learn(0, number);
        if (!one.is_finite(0)) return nb::none();
        if (write && column >= 0) statistic.put(size_t(column), own);
        const nb::object scaled = nb::steal(PyFloat_FromDouble(one.change(0, number, one.divisor(0))));
        set_item(out, item.name, scaled.ptr());
    }
    return out;
}

void bind_moments(nb::module_& module) {
    module.def(
        "moments_dense",
        [](Out1 count, Out1 mean, Out1 squares, double rows, bool centre, bool scale, In2<double> X, bool learn,
           Results before, Results after) {
            const Moments statistic = moments(count, mean, squares, rows, centre, scale);
            return scale_dense(statistic, count.shape(0), X, learn, before, after);
        },
        "count"_a, "mean"_a, "squares"_a, "rows"_a, "centre"_a, "scale"_a, "X"_a, "learn"_a, "before"_a.none(),
        "after"_a.none());
    module.def(
        "moments_sparse",
        [](Out1 count, Out1 mean, Out1 squares, double rows, bool centre, bool scale, In1<int64_t> starts,
           In1<int32_t> columns, In1<double> values, bool learn, Results before, Results after) {
            const Moments statistic = moments(count, mean, squares, rows, centre, scale);
            return scale_sparse(statistic, count.shape(0), starts, columns, values, learn, before, after);
        },
        "count"_a, "mean"_a, "squares"_a, "rows"_a, "centre"_a, "scale"_a, "starts"_a, "columns"_a, "values"_a,
        "learn"_a, "before"_a.none(), "after"_a.none());
    module.def(
        "moments_mapping",
        [](Out1 count, Out1 mean, Out1 squares, double rows, bool centre, bool scale, nb::dict index, nb::object x,
           bool learn, bool write, nb::object as_number) {
            const Moments statistic = moments(count, mean, squares, rows, centre, scale);
            return scale_mapping(statistic, count.shape(0), index, x, learn, write, as_number);
        },
        "count"_a, "mean"_a, "squares"_a, "rows"_a, "centre"_a, "scale"_a, "index"_a, "x"_a, "learn"_a, "write"_a,
        "as_number"_a);
}

void bind_range(nb::module_& module) {
    module.def(
        "range_dense",
        [](Out1 low, Out1 high, double from, double to, bool clip, In2<double> X, bool learn, Results before,
           Results after) {
            return scale_dense(range(low, high, from, to, clip), low.shape(0), X, learn, before, after);
        },
        "low"_a, "high"_a, "from_"_a, "to"_a, "clip"_a, "X"_a, "learn"_a, "before"_a.none(), "after"_a.none());
    module.def(
        "range_sparse",
        [](Out1 low, Out1 high, double from, double to, bool clip, In1<int64_t> starts, In1<int32_t> columns,
           In1<double> values, bool learn, Results before, Results after) {
            const Range statistic = range(low, high, from, to, clip);
            return scale_sparse(statistic, low.shape(0), starts, columns, values, learn, before, after);
        },
        "low"_a, "high"_a, "from_"_a, "to"_a, "clip"_a, "starts"_a, "columns"_a, "values"_a, "learn"_a,
        "before"_a.none(), "after"_a.none());
    module.def(
        "range_mapping",
        [](Out1 low, Out1 high, double from, double to, bool clip, nb::dict index, nb::object x, bool learn, bool write,
           nb::object as_number) {
            const Range statistic = range(low, high, from, to, clip);
            return scale_mapping(statistic, low.shape(0), index, x, learn, write, as_number);
        },
        "low"_a, "high"_a, "from_"_a, "to"_a, "clip"_a, "index"_a, "x"_a, "learn"_a, "write"_a, "as_number"_a);
}

}  // namespace

void bind_statistics(nb::module_& module) {
    bind_moments(module);
    bind_range(module);
}

}  // namespace onepass
