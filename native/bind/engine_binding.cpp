// class Engine of onepass._native.
#include <nanobind/stl/shared_ptr.h>

#include "bind/engine.hpp"
#include "core/blocks.hpp"

namespace onepass {

using namespace nb::literals;

namespace {

using EngineClass = nb::class_<Engine>;

template <class V>
DenseBatch<V> batch(const Matrix<V>& X) {
    return {X.data(), X.shape(0), X.shape(1)};
}

template <class V, class I>
CsrBatch<V, I> batch(const Vector<V>& data, const Vector<I>& indices, const Vector<I>& starts, size_t columns,
                     bool distinct = false, bool named = false, bool validated = false) {
    if (starts.shape(0) == 0 || data.shape(0) != indices.shape(0))
        raise("InputError", "X is not a CSR matrix: its arrays do not fit together");
    return {data.data(), indices.data(), starts.data(), starts.shape(0) - 1, columns, data.shape(0),
            distinct,    named,          validated};
}

// A batch at 32-bit indices, converted as a whole: the loop over pairs goes back and forth in it. Damaged starts stay
// damaged, and the loop refuses them.
struct NarrowBatch {
    std::vector<int32_t> indices, starts;
    Csr rows{};
};
NarrowBatch narrow(const Csr& X) { return {{}, {}, X}; }
NarrowBatch narrow(const CsrBatch<double, int64_t>& X) {
    NarrowBatch out;
    for (size_t i = 0; i < X.nonzeros; ++i) out.indices.push_back(narrow_index(X.indices[i]));
    for (size_t i = 0; i <= X.rows; ++i) out.starts.push_back(narrow_index(X.starts[i]));
    out.rows = {X.values, out.indices.data(), out.starts.data(), X.rows, X.columns, X.nonzeros};
    return out;
}

template <class V>
void define_dense_verbs(EngineClass& engine) {
    engine.def(
        "learn",
        [](Engine& self, Matrix<V> X, nb::object y, nb::object importance, nb::object target, nb::object sets,
           nb::object scores,
           nb::object base) { self.learn(batch<V>(X), {y, importance, target, sets, scores, base}); },
        nb::arg("X").noconvert(), "y"_a.none(), "importance"_a.none(), "target"_a.none(), "sets"_a.none(),
        "scores"_a.none(), "base"_a.none() = nb::none());
    engine.def(
        "score", [](Engine& self, Matrix<V> X, Out scores, nb::object base) { self.score(batch<V>(X), scores, base); },
        nb::arg("X").noconvert(), "scores"_a, "base"_a.none() = nb::none());
    engine.def(
        "variance", [](Engine& self, Matrix<V> X, Out variances) { self.variance(batch<V>(X), variances); },
        nb::arg("X").noconvert(), "variances"_a);
    engine.def("check", [](Engine& self, Matrix<V> X) { self.check(batch<V>(X)); }, nb::arg("X").noconvert());
    engine.def(
        "keep_set",
        [](Engine& self, Matrix<V> X, Vector<double> y, nb::object importance) {
            self.keep_set(batch<V>(X), nb::make_tuple(X), y, importance);
        },
        nb::arg("X").noconvert(), "y"_a, "importance"_a.none());
}

template <class V, class I>
void define_csr_verbs(EngineClass& engine) {
    engine.def(
        "learn_csr",
        [](Engine& self, Vector<V> data, Vector<I> indices, Vector<I> starts, size_t columns, nb::object y,
           nb::object importance, nb::object target, nb::object sets, nb::object scores, bool distinct, bool named,
           bool validated, nb::object base) {
            self.learn(batch<V, I>(data, indices, starts, columns, distinct, named, validated),
                       {y, importance, target, sets, scores, base});
        },
        nb::arg("data").noconvert(), nb::arg("indices").noconvert(), nb::arg("starts").noconvert(), "columns"_a,
        "y"_a.none(), "importance"_a.none(), "target"_a.none(), "sets"_a.none(), "scores"_a.none(),
        "distinct"_a = false, "named"_a = false, "validated"_a = false, "base"_a.none() = nb::none());
    engine.def(
        "score_csr",
        [](Engine& self, Vector<V> data, Vector<I> indices, Vector<I> starts, size_t columns, Out scores, bool distinct,
           bool validated, nb::object base) {
            self.score(batch<V, I>(data, indices, starts, columns, distinct, false, validated), scores, base);
        },
        nb::arg("data").noconvert(), nb::arg("indices").noconvert(), nb::arg("starts").noconvert(), "columns"_a,
        "scores"_a, "distinct"_a = false, "validated"_a = false, "base"_a.none() = nb::none());
    engine.def(
        "variance_csr",
        [](Engine& self, Vector<V> data, Vector<I> indices, Vector<I> starts, size_t columns, Out variances,
           bool distinct) { self.variance(batch<V, I>(data, indices, starts, columns, distinct), variances); },
        nb::arg("data").noconvert(), nb::arg("indices").noconvert(), nb::arg("starts").noconvert(), "columns"_a,
        "variances"_a, "distinct"_a = false);
    engine.def(
        "check_csr",
        [](Engine& self, Vector<V> data, Vector<I> indices, Vector<I> starts, size_t columns, bool distinct) {
            self.check(batch<V, I>(data, indices, starts, columns, distinct));
        },
        nb::arg("data").noconvert(), nb::arg("indices").noconvert(), nb::arg("starts").noconvert(), "columns"_a,
        "distinct"_a = false);
    engine.def(
        "keep_set_csr",
        [](Engine& self, Vector<V> data, Vector<I> indices, Vector<I> starts, size_t columns, Vector<double> y,
           nb::object importance) {
            self.keep_set(batch<V, I>(data, indices, starts, columns), nb::make_tuple(data, indices, starts), y,
                          importance);
        },
        nb::arg("data").noconvert(), nb::arg("indices").noconvert(), nb::arg("starts").noconvert(), "columns"_a, "y"_a,
        "importance"_a.none());
}

template <class I>
void define_pairs_csr(EngineClass& engine) {
    engine.def(
        "learn_pairs_csr",
        [](Engine& self, Vector<double> data, Vector<I> indices, Vector<I> starts, size_t columns,
           Vector<double> relevance, Vector<double> importance, Vector<int64_t> begin, size_t first, nb::object scores,
           Count learned) {
            self.learn_pairs(narrow(batch<double, I>(data, indices, starts, columns)).rows, relevance, importance,
                             begin, first, scores, learned);
        },
        nb::arg("data").noconvert(), nb::arg("indices").noconvert(), nb::arg("starts").noconvert(), "columns"_a,
        "relevance"_a, "importance"_a, "begin"_a, "first"_a, "scores"_a.none(), nb::arg("learned").noconvert());
}

void define_pairs(EngineClass& engine) {
    engine.def(
        "learn_pairs",
        [](Engine& self, Matrix<double> X, Vector<double> relevance, Vector<double> importance, Vector<int64_t> begin,
           size_t first, nb::object scores,
           Count learned) { self.learn_pairs(batch<double>(X), relevance, importance, begin, first, scores, learned); },
        nb::arg("X").noconvert(), "relevance"_a, "importance"_a, "begin"_a, "first"_a, "scores"_a.none(),
        nb::arg("learned").noconvert());
    define_pairs_csr<int32_t>(engine);
    define_pairs_csr<int64_t>(engine);
}

// The versions without a base come first: most calls have none, and an argument costs some forty instructions.
void define_verbs_of_one_example(EngineClass& engine) {
    engine
        .def(
            "learn_one",
            [](Engine& self, nb::handle x, nb::handle y, nb::handle importance) { self.learn_one(x, y, importance); },
            "x"_a.none(), "y"_a.none(), "importance"_a.none() = nb::float_(1.0))
        .def(
            "learn_one",
            [](Engine& self, nb::handle x, nb::handle y, nb::handle importance, nb::handle base) {
                self.learn_one(x, y, importance, Engine::read_base(base));
            },
            "x"_a.none(), "y"_a.none(), "importance"_a.none() = nb::float_(1.0), "base"_a.none())
        .def("learn_direction", &Engine::learn_direction, "x"_a, "target"_a = 1.0, "importance"_a = 1.0)
        .def("learn_together", &Engine::learn_together, "directions"_a, "importance"_a)
        .def(
            "score_one", [](Engine& self, nb::handle x) { return self.score_one(x); }, "x"_a.none())
        .def(
            "score_one",
            [](Engine& self, nb::handle x, nb::handle base) { return self.score_one(x, Engine::read_base(base)); },
            "x"_a.none(), "base"_a.none())
        .def(
            "predict_one", [](Engine& self, nb::handle x) { return self.predict_one(x); }, "x"_a.none())
        .def(
            "predict_one",
            [](Engine& self, nb::handle x, nb::handle base) { return self.predict_one(x, Engine::read_base(base)); },
            "x"_a.none(), "base"_a.none())
        .def("why_no_base", &Engine::why_no_base, "known"_a)
        .def("variance_one", &Engine::variance_one, "x"_a.none())
        .def("check_one", &Engine::check_one, "x"_a.none())
        .def("row_of", &Engine::row_of, "x"_a.none());
}

void define_features(EngineClass& engine) {
    engine.def("set_features", &Engine::set_features, "d"_a)
        .def("register_names", &Engine::register_names, "names"_a)
        .def("hold_back", &Engine::hold_back, "known"_a)
        .def("unregister_names", &Engine::unregister_names, "count"_a)
        .def(
            "set_names", [](Engine& self, nb::list names) { self.features.set_names(names); }, "names"_a)
        .def(
            "find", [](Engine& self, nb::handle name) { return self.features.find(name.ptr()); }, "name"_a)
        .def_rw("max_features", &Engine::max_features)
        .def(
            "require_few",
            [](Engine& self, size_t count) {
                if (!self.features.hashed()) require_few(count, self.max_features, "FeatureError");
            },
            "features"_a)
        .def_prop_ro("names", [](Engine& self) { return self.features.names(); })
        .def_prop_ro("columns", [](Engine& self) { return self.columns; })
        .def_prop_ro("positional", [](Engine& self) { return self.positional; })
        .def_prop_ro("features", [](Engine& self) { return self.model.w.features; });
}

void define_classes(EngineClass& engine) {
    engine.def("set_classes", &Engine::set_classes, "classes"_a)
        .def("add_class", &Engine::add_class, "label"_a.none())
        .def("flip_classes", &Engine::flip_classes)
        .def("begin_growth", &Engine::begin_growth, "coming"_a)
        .def("commit_growth", &Engine::commit_growth)
        .def("roll_back_growth", &Engine::roll_back_growth)
        .def(
            "require_memory",
            [](Engine& self, size_t classes) { self.require_memory(self.model.w.features, classes, "LabelError"); },
            "classes"_a)
        .def_prop_rw(
            "on_new_label", [](Engine& self) { return self.on_new_label; },
            [](Engine& self, nb::object hook) { self.on_new_label = hook; }, nb::arg().none())
        .def_prop_ro("classes", [](Engine& self) { return self.classes; });
}

void define_state(EngineClass& engine) {
    engine.def("state", &Engine::state, "met_only"_a = false)
        .def("set_state", &Engine::set_state, "state"_a)
        .def("forget_set", &Engine::forget_set)
        .def("flush", &Engine::flush)
        .def_rw("lock", &Engine::lock)
        .def_prop_ro("rows", [](Engine& self) { return self.model.w.outputs; })
        .def_prop_ro("table_bytes", [](Engine& self) { return self.table_bytes(); })
        .def_prop_ro("variances", &Engine::variances)
        .def_prop_ro(
            "slots",
            [](Engine& self) { return std::vector<double>(self.model.state, self.model.state + self.model.slots); })
        .def_prop_ro("risky", [](Engine& self) { return self.risky(); })
        .def_prop_ro("ww", [](Engine& self) { return self.model.w.norm.ww; })
        .def_prop_ro("t", [](Engine& self) { return uint64_t(self.model.t); })
        .def_prop_ro("k", [](Engine& self) { return uint64_t(self.model.k); })
        .def_prop_ro("skipped_zero", [](Engine& self) { return uint64_t(self.model.skipped_zero); });
}

int visit_held_objects(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    if (!nb::inst_ready(self)) return 0;
    for (nb::object* held : nb::inst_ptr<Engine>(self)->held()) Py_VISIT(held->ptr());
    return 0;
}

int clear_held_objects(PyObject* self) {
    for (nb::object* held : nb::inst_ptr<Engine>(self)->held()) *held = nb::none();
    return 0;
}

PyType_Slot slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(visit_held_objects)},
                       {Py_tp_clear, reinterpret_cast<void*>(clear_held_objects)},
                       {0, nullptr}};

}  // namespace

PyType_Slot* const garbage_collection = slots;

void bind_engine(nb::module_& module) {
    EngineClass engine(module, "Engine", nb::type_slots(garbage_collection));
    engine.def(nb::init<const std::string&, nb::dict, nb::dict>(), "task"_a, "rule"_a, "options"_a);
    define_dense_verbs<double>(engine);
    define_dense_verbs<float>(engine);
    define_csr_verbs<double, int32_t>(engine);
    define_csr_verbs<double, int64_t>(engine);
    define_csr_verbs<float, int32_t>(engine);
    define_csr_verbs<float, int64_t>(engine);
    define_pairs(engine);
    define_verbs_of_one_example(engine);
    define_features(engine);
    define_classes(engine);
    define_state(engine);
}

}  // namespace onepass
