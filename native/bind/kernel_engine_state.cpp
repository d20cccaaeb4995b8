// The state of a KernelEngine as arrays, and back.
#include <cmath>

#include "bind/kernel_engine.hpp"
#include "bind/saved.hpp"
#include "bind/saved_state.hpp"

namespace onepass {

static nb::object square(const Rows& rows) {
    std::vector<double> all;
    for (const std::vector<double>& row : rows) all.insert(all.end(), row.begin(), row.end());
    return array({rows.size(), rows.size()}, std::move(all));
}

static Rows square_of(const SavedState& state, const char* name, size_t n) {
    const auto given = state.table(name, n, n);
    Rows rows;
    for (size_t i = 0; i < n; ++i) rows.emplace_back(given.data() + i * n, given.data() + (i + 1) * n);
    return rows;
}

nb::object KernelEngine::gram() const { return square(f.gram); }

static void put_sparse_vectors(nb::dict& out, const Points& points) {
    std::vector<double> values;
    std::vector<int64_t> index, starts = {0};
    for (size_t i = 0; i < points.size(); ++i) {
        const Points::SparsePoint& point = points.sparse_point(i);
        values.insert(values.end(), point.x.begin(), point.x.end());
        index.insert(index.end(), point.index.begin(), point.index.end());
        starts.push_back(int64_t(values.size()));
    }
    const size_t stored = values.size();
    out["support_data"] = array({stored}, std::move(values));
    out["support_index"] = array({stored}, std::move(index));
    out["support_starts"] = array({points.size() + 1}, std::move(starts));
}

// The points may be wider than the model: a prediction for unknown names widens them.
static void put_dense_vectors(nb::dict& out, const Points& points, size_t width) {
    const size_t n = points.size(), d = n > 0 ? width : 0;
    std::vector<double> values;
    for (size_t i = 0; i < n; ++i)
        for (size_t j = 0; j < d; ++j) values.push_back(points.value(i, j));
    out["support"] = array({n, d}, std::move(values));
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
    if (f.points.sparse()) put_sparse_vectors(out, f.points);
    else put_dense_vectors(out, f.points, width);
    std::vector<double> coefficients;
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

// The numbers of columns and of features, against which everything else is checked.
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

void KernelEngine::restore_vector(const double* x, const int64_t* index, size_t n) {
    check_row(x, index, n, f.size());
    Query row{x, index, n};
    row.selves.resize(holder_->slots);
    kernel_loops->prepare(holder_->kernel, row);
    f.points.push(row);
    f.diagonals.push_back(diagonal(holder_->kernel, row));
    // No learner stores such a vector, and its Gram matrix may have no inverse.
    if (!std::isfinite(f.diagonals.back()) || (f.stores_inverse && !(f.diagonals.back() > 0.0)))
        raise("ModelFileError", "K(x, x) of a support vector is no number above 0");
}

void KernelEngine::restore_sparse_vectors(const SavedState& state, size_t n) {
    const auto data = state.vector<double>("support_data");
    const auto index = state.vector<int64_t>("support_index", data.shape(0));
    const auto starts = state.vector<int64_t>("support_starts", n + 1);
    if (n > 0 && !f.points.sparse())
        raise("ModelFileError", "the support vectors are sparse, but this model stores dense ones");
    for (size_t i = 0; i < n; ++i) {
        const int64_t begin = starts.data()[i], end = starts.data()[i + 1];
        if (begin < 0 || end < begin || size_t(end) > data.shape(0))
            raise("ModelFileError", "the support vectors do not fit together");
        int64_t least = 0;
        for (int64_t at = begin; at < end; ++at) {
            const int64_t here = index.data()[at];
            if (here < least || size_t(here) >= width) raise("ModelFileError", "an index is outside its table");
            least = here + 1;
        }
        restore_vector(data.data() + begin, index.data() + begin, size_t(end - begin));
    }
}

void KernelEngine::restore_vectors(const SavedState& state, size_t n) {
    const bool sparse = state.has("support_data");
    const size_t d = nb::cast<size_t>(state.at("kernel_features"));
    if (d > 0 || n > 0) start(sparse, d);
    f.scale = 1.0;
    if (sparse) return restore_sparse_vectors(state, n);
    if (n == 0) return;
    const auto support = state.table("support", n, width);
    if (f.points.sparse()) raise("ModelFileError", "the support vectors are dense, but this model stores sparse ones");
    for (size_t i = 0; i < n; ++i) restore_vector(support.data() + i * width, nullptr, width);
}

void KernelEngine::restore_coefficients(const In2<double>& saved) {
    const size_t n = saved.shape(0);
    for (size_t r = 0; r < f.outputs(); ++r) {
        f.coef[r].assign(Points::lined(n), 0.0);
        for (size_t i = 0; i < n; ++i) f.coef[r][i] = saved.data()[i * f.outputs() + r];
    }
}

// K(x, x) of every vector was checked. Numbers like 1e200 may still make K(x, z) infinite, as a chi-squared kernel
// does: no learner stores such vectors, and their Gram matrix has no inverse.
static void require_finite_gram(const Rows& gram) {
    for (const std::vector<double>& row : gram)
        for (double entry : row)
            if (!std::isfinite(entry)) raise("ModelFileError", "K(x, z) of two support vectors is not a finite number");
}

void KernelEngine::set_state(nb::dict arrays) {
    const SavedState state(arrays);
    const size_t n = state.table("coefficients").shape(0);
    const auto coefficients = state.table("coefficients", n, f.outputs());
    const std::vector<double> scalars = state.numbers("scalars", saved::Kernel::count);
    const std::vector<double> slots = state.numbers("slots", size_t(model.slots));
    const std::vector<double> births = state.numbers("births", n);
    restore_columns(scalars);
    restore_vectors(state, n);
    restore_coefficients(coefficients);
    f.birth = births;
    restore_numbers(scalars);
    std::copy(slots.begin(), slots.end(), model.state);
    budget.random = state.vector<uint64_t>("random", 1).data()[0];
    if (f.stores_gram && n > 0) {
        f.recompute_gram();
        require_finite_gram(f.gram);
    }
    if (f.stores_inverse) f.inverse = square_of(state, "inverse", n);
    if (f.stores_covariance) f.covariance = square_of(state, "covariance", n);
    if (f.stores_values) f.values = state.numbers("values", n);
    if (budget.admit == budgets::bpa_nn) find_neighbours(budget, f);
    model.size_scratch();
}

}  // namespace onepass
