#include "bind/kernels.hpp"

#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>

#include "bind/arrays.hpp"
#include "bind/features.hpp"
#include "bind/name_lists.hpp"

namespace onepass {

using namespace nb::literals;

const KernelLoops* kernel_loops = kernel_loops_scalar();

// Calls a kernel written in Python with copies of a vector and of stored vectors.
static void call_python(void* self, const Query& x, const Points* points, size_t from, size_t to, double* out) {
    for (size_t i = 0; i < to - from; ++i) out[i] = std::nan("");  // if the call raises, the round is refused
    if (PyErr_Occurred()) return;
    try {
        const size_t n = to - from;
        std::vector<double> table(n * x.n);
        for (size_t i = 0; i < n; ++i)
            for (size_t j = 0; j < x.n; ++j) table[i * x.n + j] = points ? points->value(from + i, j) : x.x[j];
        nb::object numpy = nb::module_::import_("numpy");
        nb::object row = numpy.attr("array")(nb::ndarray<nb::numpy, const double>(x.x, {x.n}, nb::handle()));
        nb::object rows =
            numpy.attr("array")(nb::ndarray<nb::numpy, const double>(table.data(), {n, x.n}, nb::handle()));
        nb::object answer = (*static_cast<nb::object*>(self))(row, rows);
        const auto values = nb::cast<In1<double>>(answer);
        for (size_t i = 0; i < n; ++i) out[i] = values.data()[i];
    } catch (nb::python_error& error) {
        error.restore();
    }
}

KernelHolder::KernelHolder(nb::dict config) : kernel(read(config)) { slots = number_slots(kernel); }

Kernel KernelHolder::read(nb::dict config) {
    Kernel out;
    out.op = value_of<KernelOp>("kernel", config["op"]);
    for (const auto& [name, number] : nb::cast<nb::dict>(config["p"]))
        out.p[position_in(KernelParams::names, nb::cast<std::string>(name), "a kernel's parameter")] =
            nb::cast<double>(number);
    for (nb::handle part : nb::cast<nb::list>(config["parts"])) out.parts.push_back(read(nb::cast<nb::dict>(part)));
    if (config.contains("gram")) {
        keep.push_back(config["gram"]);
        const auto gram = nb::cast<In2<double>>(keep.back());
        out.gram = gram.data();
        out.size = gram.shape(0);
    }
    if (config.contains("block")) {
        callees.push_back(config["block"]);
        out.call = call_python;
        out.self = &callees.back();
    }
    return out;
}

// The rows of a dense matrix, or of a CSR matrix whose indices rise.
struct Table {
    const double* x;
    const int64_t *index = nullptr, *starts = nullptr;
    size_t rows, columns;
    Query query(size_t i, size_t slots) const {
        Query out;
        if (index) out = {x + starts[i], index + starts[i], size_t(starts[i + 1] - starts[i])};
        else out = {x + i * columns, nullptr, columns};
        out.selves.resize(slots);
        return out;
    }
};

static void fill_block(KernelHolder& holder, const Table& X, const Table& Z, double* out) {
    Points points(Z.index != nullptr, Z.columns, holder.slots);
    for (size_t i = 0; i < Z.rows; ++i) {
        Query row = Z.query(i, holder.slots);
        kernel_loops->prepare(holder.kernel, row);
        points.push(row);
    }
    std::vector<double> values(Points::lined(Z.rows));
    for (size_t i = 0; i < X.rows; ++i) {
        Query row = X.query(i, holder.slots);
        kernel_loops->prepare(holder.kernel, row);
        kernel_loops->row(holder.kernel, row, points, 0, Z.rows, values.data());
        std::copy_n(values.begin(), Z.rows, out + i * Z.rows);
    }
}

void bind_kernels(nb::module_& module) {
    module.def(
        "kernel_block",
        [](nb::dict kernel, In2<double> X, In2<double> Z, Out2 out) {
            KernelHolder holder(kernel);
            fill_block(holder, {X.data(), nullptr, nullptr, X.shape(0), X.shape(1)},
                       {Z.data(), nullptr, nullptr, Z.shape(0), Z.shape(1)}, out.data());
            if (PyErr_Occurred()) throw nb::python_error();
        },
        "kernel"_a, "X"_a, "Z"_a, "out"_a);
    module.def(
        "kernel_block_csr",
        [](nb::dict kernel, In1<double> x, In1<int64_t> x_index, In1<int64_t> x_starts, In1<double> z,
           In1<int64_t> z_index, In1<int64_t> z_starts, size_t columns, Out2 out) {
            KernelHolder holder(kernel);
            fill_block(holder, {x.data(), x_index.data(), x_starts.data(), x_starts.shape(0) - 1, columns},
                       {z.data(), z_index.data(), z_starts.data(), z_starts.shape(0) - 1, columns}, out.data());
        },
        "kernel"_a, "x"_a, "x_index"_a, "x_starts"_a, "z"_a, "z_index"_a, "z_starts"_a, "columns"_a, "out"_a);
}

}  // namespace onepass
