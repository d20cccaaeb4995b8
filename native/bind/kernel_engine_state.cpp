// What a KernelEngine writes to files and reads from them, and its binding.
#include <cmath>

#include "bind/arrays.hpp"
#include "bind/kernel_engine.hpp"
#include "bind/saved.hpp"

namespace onepass {

using namespace nb::literals;

static nb::object square(const Rows& rows) {
    std::vector<double> all;
    for (const std::vector<double>& row : rows) all.insert(all.end(), row.begin(), row.end());
    return array({rows.size(), rows.size()}, std::move(all));
}

static Rows square_of(nb::object from, size_t n) {
    const auto given = nb::cast<Matrix<double>>(from);
    if (given.shape(0) != n || given.shape(1) != n) raise("ModelFileError", "a matrix has the wrong shape");
    Rows rows;
    for (size_t i = 0; i < n; ++i) rows.emplace_back(given.data() + i * n, given.data() + (i + 1) * n);
    return rows;
}

nb::object KernelEngine::save_scalars() const {
    using At = saved::Kernel;
    std::vector<double> scalars(At::count);
    scalars[At::scale] = f.scale;
    scalars[At::ww] = f.ww;
    scalars[At::changes] = f.changes;
    scalars[At::insertions] = f.insertions;
    scalars[At::inversions] = f.inversions;
    scalars[At::Q] = budget.Q;
    scalars[At::M] = budget.M;
    scalars[At::t] = model.t;
    scalars[At::k] = model.k;
    scalars[At::skipped_zero] = model.skipped_zero;
    scalars[At::positional] = positional;
    scalars[At::columns] = double(columns);
    scalars[At::width] = double(width);
    return array({scalars.size()}, std::move(scalars));
}

nb::dict KernelEngine::state(bool) {
    auto lock = own();
    const size_t n = f.size();
    nb::dict out;
    std::vector<double> values, coefficients;
    if (f.points.sparse()) {
        std::vector<int64_t> index, starts = {0};
        for (size_t i = 0; i < n; ++i) {
            const Points::SparsePoint& point = f.points.sparse_point(i);
            values.insert(values.end(), point.x.begin(), point.x.end());
            index.insert(index.end(), point.index.begin(), point.index.end());
            starts.push_back(int64_t(values.size()));
        }
        const size_t stored = values.size();
        out["support_data"] = array({stored}, std::move(values));
        out["support_index"] = array({stored}, std::move(index));
        out["support_starts"] = array({n + 1}, std::move(starts));
    } else {
        const size_t d = n > 0 ? width : 0;  // the points may be wider: names that were only asked about
        for (size_t i = 0; i < n; ++i)
            for (size_t j = 0; j < d; ++j) values.push_back(f.points.value(i, j));
        out["support"] = array({n, d}, std::move(values));
    }
    for (size_t i = 0; i < n; ++i)
        for (size_t r = 0; r < f.outputs(); ++r) coefficients.push_back(f.coef[r][i]);
    out["coefficients"] = array({n, f.outputs()}, std::move(coefficients));
    out["births"] = array({n}, std::vector<double>(f.birth));
    if (f.stores_inverse) out["inverse"] = square(f.inverse);
    if (f.stores_covariance) out["covariance"] = square(f.covariance);
    if (f.stores_values) out["values"] = array({n}, std::vector<double>(f.values));
    out["slots"] = array({size_t(model.slots)}, std::vector<double>(model.state, model.state + model.slots));
    out["random"] = array({1}, std::vector<uint64_t>{budget.random});
    out["scalars"] = save_scalars();
    return out;
}

static std::vector<double> numbers_of(nb::object from, size_t n) {
    const auto given = nb::cast<Vector<double>>(from);
    if (given.shape(0) != n) raise("ModelFileError", "an array has the wrong length");
    return {given.data(), given.data() + n};
}

// How wide the rows are, which everything else is checked against.
void KernelEngine::restore_columns(const std::vector<double>& scalars) {
    using At = saved::Kernel;
    const double features_here = scalars[At::width];
    positional = scalars[At::positional] != 0.0;
    if (!(features_here >= 0.0 && features_here <= 9007199254740992.0) || features_here != std::floor(features_here))
        raise("ModelFileError", "the number of features is not a count");
    if (!features.hashed()) require_few(size_t(features_here), max_features, "ModelFileError");
    else if (size_t(features_here) != features.slots())
        raise("ModelFileError", "the number of features is not that of hash_bits");
    require_columns(scalars[At::columns], features_here);
    columns = size_t(scalars[At::columns]);
    width = size_t(features_here);
}

void KernelEngine::restore_numbers(const std::vector<double>& scalars) {
    using At = saved::Kernel;
    f.scale = scalars[At::scale];
    f.ww = scalars[At::ww];
    f.changes = scalars[At::changes];
    f.insertions = scalars[At::insertions];
    f.inversions = scalars[At::inversions];
    budget.Q = scalars[At::Q];
    budget.M = scalars[At::M];
    model.t = scalars[At::t];
    model.k = scalars[At::k];
    model.skipped_zero = scalars[At::skipped_zero];
}

void KernelEngine::set_state(nb::dict state) {
    const auto coefficients = nb::cast<Matrix<double>>(state["coefficients"]);
    const size_t n = coefficients.shape(0);
    if (coefficients.shape(1) != f.outputs()) raise("ModelFileError", "the coefficients have the wrong shape");
    const std::vector<double> scalars = numbers_of(state["scalars"], saved::Kernel::count),
                              slots = numbers_of(state["slots"], size_t(model.slots));
    const std::vector<double> births = numbers_of(state["births"], n);
    restore_columns(scalars);
    const bool sparse = state.contains("support_data");
    const size_t d = nb::cast<size_t>(state["kernel_features"]);
    if (d > 0 || n > 0) start(sparse, d);
    f.scale = 1.0;
    const std::vector<double> zeros(f.outputs(), 0.0);
    const auto push = [&](const double* x, const int64_t* index, size_t size) {
        check_row(x, index, size, f.size());
        Query row{x, index, size};
        row.selves.resize(holder_->slots);
        kernel_loops->prepare(holder_->kernel, row);
        f.points.push(row);
        f.diagonals.push_back(diagonal(holder_->kernel, row));
        // No learner keeps such a vector, and a Gram matrix with one may have no inverse.
        if (!std::isfinite(f.diagonals.back()) || (f.stores_inverse && !(f.diagonals.back() > 0.0)))
            raise("ModelFileError", "K(x, x) of a support vector is no number above 0");
    };
    if (sparse) {
        const auto data = nb::cast<Vector<double>>(state["support_data"]);
        const auto index = nb::cast<Vector<int64_t>>(state["support_index"]);
        const auto starts = nb::cast<Vector<int64_t>>(state["support_starts"]);
        if (starts.shape(0) != n + 1 || data.shape(0) != index.shape(0) || (n > 0 && !f.points.sparse()))
            raise("ModelFileError", "the support vectors do not fit together");
        for (size_t i = 0; i < n; ++i) {
            const int64_t begin = starts.data()[i], end = starts.data()[i + 1];
            if (begin < 0 || end < begin || size_t(end) > data.shape(0))
                raise("ModelFileError", "the support vectors do not fit together");
            for (int64_t at = begin; at < end; ++at)
                if (index.data()[at] < (at > begin ? index.data()[at - 1] + 1 : 0) || size_t(index.data()[at]) >= width)
                    raise("ModelFileError", "an index is outside its table");
            push(data.data() + begin, index.data() + begin, size_t(end - begin));
        }
    } else if (n > 0) {
        const auto support = nb::cast<Matrix<double>>(state["support"]);
        if (support.shape(0) != n || support.shape(1) != width || f.points.sparse())
            raise("ModelFileError", "the support vectors have the wrong shape");
        for (size_t i = 0; i < n; ++i) push(support.data() + i * width, nullptr, width);
    }
    f.birth = births;
    for (size_t r = 0; r < f.outputs(); ++r) {
        f.coef[r].assign(Points::lined(n), 0.0);
        for (size_t i = 0; i < n; ++i) f.coef[r][i] = coefficients.data()[i * f.outputs() + r];
    }
    restore_numbers(scalars);
    for (size_t i = 0; i < slots.size(); ++i) model.state[i] = slots[i];
    const auto random = nb::cast<Vector<uint64_t>>(state["random"]);
    if (random.shape(0) != 1) raise("ModelFileError", "an array has the wrong length");
    budget.random = random.data()[0];
    if (f.stores_gram && n > 0) f.recompute_gram();
    if (f.stores_inverse) f.inverse = square_of(state["inverse"], n);
    if (f.stores_covariance) f.covariance = square_of(state["covariance"], n);
    if (f.stores_values) f.values = numbers_of(state["values"], n);
    if (budget.admit == budgets::bpa_nn) find_neighbours(budget, f);
    model.size_scratch();
}

void bind_kernel_engine(nb::module_& module) {
    // target and sets are for directions and label sets, which have no kernel form here.
    nb::class_<KernelEngine, Engine>(module, "KernelEngine", nb::type_slots(garbage_collection))
        .def(nb::init<const std::string&, nb::dict, nb::dict, nb::object, nb::dict>(), "task"_a, "rule"_a, "options"_a,
             "make_kernel"_a, "budget"_a)
        .def(
            "learn",
            [](KernelEngine& self, Matrix<double> X, nb::object y, nb::object importance, nb::object, nb::object,
               nb::object scores) { self.learn_dense(X, y, importance, scores); },
            nb::arg("X").noconvert(), "y"_a.none(), "importance"_a.none(), "target"_a.none(), "sets"_a.none(),
            "scores"_a.none())
        .def(
            "learn_csr",
            [](KernelEngine& self, Vector<double> data, Vector<int64_t> indices, Vector<int64_t> starts, size_t columns,
               nb::object y, nb::object importance, nb::object, nb::object, nb::object scores, bool distinct,
               bool named,
               bool) { self.learn_csr(data, indices, starts, columns, y, importance, scores, distinct, named); },
            nb::arg("data").noconvert(), nb::arg("indices").noconvert(), nb::arg("starts").noconvert(), "columns"_a,
            "y"_a.none(), "importance"_a.none(), "target"_a.none(), "sets"_a.none(), "scores"_a.none(),
            "distinct"_a = false, "named"_a = false, "sound"_a = false)
        .def("score", &KernelEngine::score_dense, nb::arg("X").noconvert(), "scores"_a)
        .def(
            "score_csr",
            [](KernelEngine& self, Vector<double> data, Vector<int64_t> indices, Vector<int64_t> starts, size_t columns,
               Out scores, bool, bool) { self.score_csr(data, indices, starts, columns, scores); },
            nb::arg("data").noconvert(), nb::arg("indices").noconvert(), nb::arg("starts").noconvert(), "columns"_a,
            "scores"_a, "distinct"_a = false, "sound"_a = false)
        .def("check", &KernelEngine::check_dense, nb::arg("X").noconvert())
        .def(
            "check_csr",
            [](KernelEngine& self, Vector<double> data, Vector<int64_t> indices, Vector<int64_t> starts, size_t columns,
               bool) { self.check_csr(data, indices, starts, columns); },
            nb::arg("data").noconvert(), nb::arg("indices").noconvert(), nb::arg("starts").noconvert(), "columns"_a,
            "distinct"_a = false)
        .def_prop_ro("features", [](KernelEngine& self) { return self.width; })
        .def_prop_ro("kernel_features", [](KernelEngine& self) { return self.kernel_features; })
        .def_prop_ro("rows", [](KernelEngine& self) { return self.f.outputs(); })
        .def_prop_ro("ww", [](KernelEngine& self) { return self.f.ww; })
        .def_prop_ro("support", [](KernelEngine& self) { return self.f.size(); })
        .def_prop_ro("inversions", [](KernelEngine& self) { return self.f.inversions; })
        .def_prop_ro("gram", [](KernelEngine& self) { return square(self.f.gram); });
}

}  // namespace onepass
