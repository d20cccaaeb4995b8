// class KernelEngine of onepass._native.
#include "bind/kernel_engine.hpp"
#include "bind/kernel_table.hpp"

namespace onepass {

using namespace nb::literals;

namespace {

using Indices = Vector<int64_t>;

// The verbs take the arguments of Engine's. A kernel learner has no direction, no label sets and no validated rows:
// `target`, `sets` and `validated` are ignored.
void define_batches(nb::class_<KernelEngine, Engine>& engine) {
    engine.def(
        "learn",
        [](KernelEngine& self, Matrix<double> X, nb::object y, nb::object importance, nb::object, nb::object,
           nb::object scores) { self.learn(KernelTable(X), y, importance, scores); },
        nb::arg("X").noconvert(), "y"_a.none(), "importance"_a.none(), "target"_a.none(), "sets"_a.none(),
        "scores"_a.none());
    engine.def(
        "learn_csr",
        [](KernelEngine& self, Vector<double> data, Indices indices, Indices starts, size_t columns, nb::object y,
           nb::object importance, nb::object, nb::object, nb::object scores, bool distinct, bool named, bool) {
            KernelTable X(data, indices, starts, columns);
            X.streamed = distinct;
            X.named = named;
            self.learn(X, y, importance, scores);
        },
        nb::arg("data").noconvert(), nb::arg("indices").noconvert(), nb::arg("starts").noconvert(), "columns"_a,
        "y"_a.none(), "importance"_a.none(), "target"_a.none(), "sets"_a.none(), "scores"_a.none(),
        "distinct"_a = false, "named"_a = false, "validated"_a = false);
    engine.def(
        "score", [](KernelEngine& self, Matrix<double> X, Out scores) { self.score(KernelTable(X), scores); },
        nb::arg("X").noconvert(), "scores"_a);
    engine.def(
        "score_csr",
        [](KernelEngine& self, Vector<double> data, Indices indices, Indices starts, size_t columns, Out scores, bool,
           bool) { self.score(KernelTable(data, indices, starts, columns), scores); },
        nb::arg("data").noconvert(), nb::arg("indices").noconvert(), nb::arg("starts").noconvert(), "columns"_a,
        "scores"_a, "distinct"_a = false, "validated"_a = false);
    engine.def(
        "check", [](KernelEngine& self, Matrix<double> X) { self.check(KernelTable(X)); }, nb::arg("X").noconvert());
    engine.def(
        "check_csr",
        [](KernelEngine& self, Vector<double> data, Indices indices, Indices starts, size_t columns, bool) {
            self.check(KernelTable(data, indices, starts, columns));
        },
        nb::arg("data").noconvert(), nb::arg("indices").noconvert(), nb::arg("starts").noconvert(), "columns"_a,
        "distinct"_a = false);
}

}  // namespace

void bind_kernel_engine(nb::module_& module) {
    nb::class_<KernelEngine, Engine> engine(module, "KernelEngine", nb::type_slots(garbage_collection));
    engine.def(nb::init<const std::string&, nb::dict, nb::dict, nb::object, nb::dict>(), "task"_a, "rule"_a,
               "options"_a, "make_kernel"_a, "budget"_a);
    define_batches(engine);
    engine.def_prop_ro("features", [](KernelEngine& self) { return self.width; })
        .def_prop_ro("kernel_features", [](KernelEngine& self) { return self.kernel_features; })
        .def_prop_ro("rows", [](KernelEngine& self) { return self.f.outputs(); })
        .def_prop_ro("ww", [](KernelEngine& self) { return self.f.ww; })
        .def_prop_ro("support", [](KernelEngine& self) { return self.f.size(); })
        .def_prop_ro("inversions", [](KernelEngine& self) { return self.f.inversions; })
        .def_prop_ro("gram", &KernelEngine::gram);
}

}  // namespace onepass
