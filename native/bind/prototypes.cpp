// Distances, prototypes, neighbours, components, sparse codes and mixtures, for Python.
#include "learners/prototypes.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <optional>

#include "bind/arrays.hpp"
#include "bind/learners.hpp"
#include "loops/learner_loops.hpp"

namespace onepass {

using namespace nb::literals;

namespace {

void require_padded(size_t stride) {
    if (stride % 16 != 0) raise("ParameterError", "points must come in columns, padded to a multiple of 16");
}

nb::object distances(In2<double> X, In2<double> points) {
    const size_t n = X.shape(0), d = X.shape(1), stride = points.shape(1);
    require_size(points.shape(0), d, "points");
    require_padded(stride);
    std::vector<double> out(n * stride);
    {
        nb::gil_scoped_release unlocked;
        learner_loops->distances(X.data(), n, d, points.data(), stride, out.data());
    }
    return array<double>({n, stride}, std::move(out));
}

// X V'. The bits of a row do not depend on the other rows, which BLAS does not promise.
nb::object inner_products(In2<double> X, In2<double> V) {
    const size_t n = X.shape(0), d = X.shape(1), K = V.shape(0);
    require_size(V.shape(1), d, "V");
    std::vector<double> out(n * K);
    {
        nb::gil_scoped_release unlocked;
        for (size_t i = 0; i < n; ++i)
            for (size_t k = 0; k < K; ++k) out[i * K + k] = learner_loops->dot(X.data() + i * d, V.data() + k * d, d);
    }
    return array<double>({n, K}, std::move(out));
}

nb::tuple nearest(In2<double> X, In2<double> points) {
    const size_t n = X.shape(0), d = X.shape(1), K = points.shape(0);
    require_size(points.shape(1), d, "points");
    if (K == 0) raise("ParameterError", "there are no points");
    std::vector<int64_t> at(n);
    std::vector<double> distance(n), index(n);
    {
        nb::gil_scoped_release unlocked;
        const Columns columns(points.data(), K, d);
        learner_loops->nearest(X.data(), n, d, columns.table.data(), K, columns.stride, at.data(), distance.data());
    }
    std::copy(at.begin(), at.end(), index.begin());
    return nb::make_tuple(array<double>({n}, std::move(index)), array<double>({n}, std::move(distance)));
}

size_t nearest_one(In1<double> x, In2<double> points) {
    require_size(points.shape(1), x.shape(0), "points");
    if (points.shape(0) == 0) raise("ParameterError", "there are no points");
    double distance;
    return nearest_row(x.data(), points.data(), points.shape(0), x.shape(0), &distance);
}

auto learn_kmeans(In2<double> X, In1<double> w, size_t batch, double decay, Out2 centers, Out1 counts) {
    const size_t n = X.shape(0), d = X.shape(1), K = centers.shape(0);
    require_size(w.shape(0), n, "w");
    require_size(centers.shape(1), d, "centers");
    require_size(counts.shape(0), K, "counts");
    if (batch == 0 || K == 0) raise("ParameterError", "a mini-batch has a row and k-means a centre at least");
    nb::gil_scoped_release unlocked;
    return kmeans_steps(X.data(), w.data(), n, d, batch, decay, centers.data(), counts.data(), K);
}

void learn_lvq(In2<double> X, In1<int64_t> labels, In1<double> w, Out2 prototypes, In1<int64_t> owner, Out1 rate,
               const std::string& variant, double eta, double window) {
    const size_t n = X.shape(0), d = X.shape(1), K = prototypes.shape(0);
    require_size(labels.shape(0), n, "labels");
    require_size(w.shape(0), n, "w");
    require_size(prototypes.shape(1), d, "prototypes");
    require_size(owner.shape(0), K, "owner");
    require_size(rate.shape(0), K, "rate");
    const Lvq which = variant == "lvq21" ? Lvq::lvq21 : variant == "olvq1" ? Lvq::olvq1 : Lvq::lvq1;
    nb::gil_scoped_release unlocked;
    lvq_learn(X.data(), labels.data(), w.data(), n, d, prototypes.data(), owner.data(), rate.data(), K,
              {which, eta, window});
}

double learn_ccipca(In2<double> X, In1<double> w, Out1 mean, Out1 square, Out2 V, double amnesic, double count) {
    const size_t n = X.shape(0), d = X.shape(1);
    require_size(w.shape(0), n, "w");
    require_size(mean.shape(0), d, "mean");
    require_size(square.shape(0), d, "square");
    require_size(V.shape(1), d, "V");
    nb::gil_scoped_release unlocked;
    ccipca_learn(X.data(), w.data(), n, d, mean.data(), square.data(), V.data(), V.shape(0), amnesic, &count);
    return count;
}

auto solve_lasso(In2<double> G, In2<double> Q, double alpha, double tol, size_t sweeps, Out2 U) {
    const size_t n = Q.shape(0), K = G.shape(0);
    require_size(G.shape(1), K, "G");
    require_size(Q.shape(1), K, "Q");
    require_size(U.shape(0), n, "U");
    require_size(U.shape(1), K, "U");
    nb::gil_scoped_release unlocked;
    return lasso(G.data(), Q.data(), n, K, alpha, tol, sweeps, U.data());
}

nb::object vote(In2<double> X, In2<double> points, size_t size, In1<int64_t> owner, In1<double> weight, size_t classes,
                size_t k, bool by_distance) {
    const size_t n = X.shape(0), d = X.shape(1), stride = points.shape(1);
    require_size(points.shape(0), d, "points");
    require_size(owner.shape(0), stride, "owner");
    require_size(weight.shape(0), stride, "weight");
    require_padded(stride);
    if (size > stride || size == 0 || k == 0)
        raise("ParameterError", "expected 1 to " + std::to_string(stride) + " points and k >= 1, got " +
                                    std::to_string(size) + " points and k=" + std::to_string(k));
    for (size_t i = 0; i < size; ++i)
        if (owner.data()[i] < 0 || size_t(owner.data()[i]) >= classes)
            raise("ParameterError", "a class code without a class");
    std::vector<double> out(n * classes);
    {
        nb::gil_scoped_release unlocked;
        const Neighbours window{size, owner.data(), weight.data(), k, by_distance};
        std::vector<double> distance(stride);
        for (size_t i = 0; i < n; ++i) {
            learner_loops->distances(X.data() + i * d, 1, d, points.data(), stride, distance.data());
            neighbour_votes(distance.data(), window, out.data() + i * classes, classes);
        }
    }
    return array<double>({n, classes}, std::move(out));
}

nb::tuple responsibilities(In2<double> X, In1<double> shift, In2<double> points,
                           std::optional<nb::ndarray<const double, nb::c_contig, nb::device::cpu>> scales,
                           In1<double> constants) {
    const size_t n = X.shape(0), d = X.shape(1), K = points.shape(0);
    require_size(shift.shape(0), d, "shift");
    require_size(points.shape(1), d, "points");
    require_size(constants.shape(0), K, "constants");
    if (K == 0) raise("ParameterError", "a mixture has a component at least");
    using Form = Components::Form;
    const Form form = !scales ? Form::linear : scales->ndim() == 2 ? Form::diagonal : Form::triangular;
    if (scales) require_size(scales->size(), form == Form::diagonal ? K * d : K * d * d, "scales");
    const Components components{
        form, K, d, shift.data(), points.data(), scales ? scales->data() : nullptr, constants.data()};
    std::vector<double> likelihood(n), R(n * K), room(16 * (2 * d + K));
    {
        nb::gil_scoped_release unlocked;
        learner_loops->responsibilities(components, X.data(), n, room.data(), likelihood.data(), R.data());
    }
    return nb::make_tuple(array<double>({n}, std::move(likelihood)), array<double>({n, K}, std::move(R)));
}

// Rows of `wide` numbers without their padding.
std::vector<double> unpadded(const std::vector<double>& padded, size_t rows, size_t wide, size_t d) {
    std::vector<double> out(rows * d);
    for (size_t i = 0; i < rows; ++i) std::copy_n(padded.data() + i * wide, d, out.data() + i * d);
    return out;
}

// The loop computes the lower triangle of symmetric matrices.
void mirror_lower_triangles(std::vector<double>& matrices, size_t count, size_t d) {
    for (size_t k = 0; k < count; ++k)
        for (size_t i = 0; i < d; ++i)
            for (size_t j = 0; j < i; ++j) matrices[(k * d + j) * d + i] = matrices[(k * d + i) * d + j];
}

// Sums over the rows, weighted by the responsibilities R: of x, and of x x' ("full"), its diagonal ("diag") or nothing.
nb::tuple mixture_statistics(In2<double> X, In1<double> shift, In2<double> R, const std::string& second) {
    const size_t n = X.shape(0), d = X.shape(1), K = R.shape(1), wide = (d + 7) / 8 * 8;
    require_size(shift.shape(0), d, "shift");
    require_size(R.shape(0), n, "R");
    const Second which = second == "full" ? Second::full : second == "diag" ? Second::diagonal : Second::none;
    const size_t tall = which == Second::full ? K * d : which == Second::diagonal ? K : 0;
    std::vector<double> first, squares;
    {
        nb::gil_scoped_release unlocked;
        std::vector<double> s1(K * wide), s2(tall * wide), room(16 * wide + 16);
        learner_loops->statistics(X.data(), n, d, shift.data(), R.data(), K, which, room.data(), s1.data(), s2.data());
        first = unpadded(s1, K, wide, d);
        squares = unpadded(s2, tall, wide, d);
        if (which == Second::full) mirror_lower_triangles(squares, K, d);
    }
    const std::vector<size_t> shape =
        which == Second::full ? std::vector<size_t>{K, d, d} : std::vector<size_t>{tall, d};
    return nb::make_tuple(array<double>({K, d}, std::move(first)), array<double>(shape, std::move(squares)));
}

}  // namespace

void bind_prototypes(nb::module_& module) {
    module.def("distances", distances, "X"_a, "points"_a);
    module.def("inner", inner_products, "X"_a, "V"_a);
    module.def("nearest", nearest, "X"_a, "points"_a);
    module.def("nearest_one", nearest_one, "x"_a, "points"_a);
    module.def("kmeans_steps", learn_kmeans, "X"_a, "w"_a, "batch"_a, "decay"_a, "centers"_a, "counts"_a);
    module.def("lvq_learn", learn_lvq, "X"_a, "labels"_a, "w"_a, "prototypes"_a, "owner"_a, "rate"_a, "variant"_a,
               "eta"_a, "window"_a);
    module.def("ccipca_learn", learn_ccipca, "X"_a, "w"_a, "mean"_a, "square"_a, "V"_a, "amnesic"_a, "count"_a);
    module.def("lasso", solve_lasso, "G"_a, "Q"_a, "alpha"_a, "tol"_a, "sweeps"_a, "U"_a);
    module.def("neighbour_votes", vote, "X"_a, "points"_a, "size"_a, "owner"_a, "weight"_a, "classes"_a, "k"_a,
               "by_distance"_a);
    module.def("responsibilities", responsibilities, "X"_a, "shift"_a, "points"_a, "scales"_a.none(), "constants"_a);
    module.def("mixture_statistics", mixture_statistics, "X"_a, "shift"_a, "R"_a, "second"_a);
}

}  // namespace onepass
