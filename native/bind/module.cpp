// onepass._native: the binding, and the choice of instruction set.
#include <nanobind/stl/shared_ptr.h>

#include <cstdlib>
#include <stdexcept>

#include "bind/engine.hpp"
#include "bind/kernel_engine.hpp"
#include "bind/kernels.hpp"
#include "bind/lasvm.hpp"
#include "bind/learners.hpp"
#include "bind/name_lists.hpp"
#include "bind/reader.hpp"
#include "core/blocks.hpp"
#include "loops/lasvm_loops.hpp"
#include "loops/learner_loops.hpp"
#include "parse/many.hpp"
#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace onepass {

static std::vector<const Loops*> available_loops() {
    std::vector<const Loops*> out = {loops_scalar()};
#ifdef ONEPASS_X86
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2")) out.push_back(loops_avx2());
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        out.push_back(loops_avx512());
#endif
    return out;
}

const Loops* loops = nullptr;

// The kernels' loops go with the others, and so do the parsers.
static void choose(const Loops* chosen) {
    loops = chosen;
    use_packs(std::string(chosen->name) == "avx512");
    kernel_loops = kernel_loops_scalar();
    lasvm_loops = lasvm_loops_scalar();
    learner_loops = learner_loops_scalar();
#ifdef ONEPASS_X86
    const std::string name = chosen->name;
    if (name == "avx2") {
        kernel_loops = kernel_loops_avx2();
        lasvm_loops = lasvm_loops_avx2();
        learner_loops = learner_loops_avx2();
    }
    if (name == "avx512") {
        kernel_loops = kernel_loops_avx512();
        lasvm_loops = lasvm_loops_avx512();
        learner_loops = learner_loops_avx512();
    }
#endif
}

static std::string names_of(const std::vector<const Loops*>& sets) {
    std::string names;
    for (const Loops* each : sets) names += (names.empty() ? "" : ", ") + std::string(each->name);
    return names;
}

// Null where this machine has no instruction set of that name.
static const Loops* find_loops(const std::string& name) {
    for (const Loops* each : available_loops())
        if (name == each->name) return each;
    return nullptr;
}

// The instruction set that ONEPASS_ISA names, by default the widest. What is thrown becomes an ImportError.
static const Loops* first_loops() {
    const char* name = std::getenv("ONEPASS_ISA");
    if (!name || !*name) return available_loops().back();
    if (const Loops* found = find_loops(name)) return found;
    throw std::runtime_error("ONEPASS_ISA=" + std::string(name) +
                             ": expected scalar, avx2 or avx512; this machine has " + names_of(available_loops()) +
                             ". Set it to one of these, or leave it out for the last");
}

template <class V>
static DenseBatch<V> batch(const Matrix<V>& X) {
    return {X.data(), X.shape(0), X.shape(1)};
}

template <class V, class I>
static CsrBatch<V, I> batch(const Vector<V>& data, const Vector<I>& indices, const Vector<I>& starts, size_t columns,
                            bool distinct = false, bool named = false, bool sound = false) {
    if (starts.shape(0) == 0 || data.shape(0) != indices.shape(0))
        raise("InputError", "X is not a CSR matrix: its arrays do not fit together");
    return {data.data(), indices.data(), starts.data(), starts.shape(0) - 1, columns, data.shape(0),
            distinct,    named,          sound};
}

// A whole batch at 32-bit indices: pairs go back and forth in it. One whose starts are damaged stays so.
struct NarrowBatch {
    std::vector<int32_t> indices, starts;
    Csr rows{};
};
static NarrowBatch narrow(const Csr& X) { return {{}, {}, X}; }
static NarrowBatch narrow(const CsrBatch<double, int64_t>& X) {
    NarrowBatch out;
    for (size_t i = 0; i < X.nonzeros; ++i) out.indices.push_back(narrow_index(X.indices[i]));
    for (size_t i = 0; i <= X.rows; ++i) out.starts.push_back(narrow_index(X.starts[i]));
    out.rows = {X.values, out.indices.data(), out.starts.data(), X.rows, X.columns, X.nonzeros};
    return out;
}

#define DENSE(V)                                                                                               \
    engine.def(                                                                                                \
        "learn",                                                                                               \
        [](Engine& self, Matrix<V> X, nb::object y, nb::object importance, nb::object target, nb::object sets, \
           nb::object scores,                                                                                  \
           nb::object base) { self.learn(batch<V>(X), y, importance, target, sets, scores, base); },           \
        nb::arg("X").noconvert(), "y"_a.none(), "importance"_a.none(), "target"_a.none(), "sets"_a.none(),     \
        "scores"_a.none(), "base"_a.none() = nb::none());                                                      \
    engine.def(                                                                                                \
        "score",                                                                                               \
        [](Engine& self, Matrix<V> X, Out scores, nb::object base) { self.score(batch<V>(X), scores, base); }, \
        nb::arg("X").noconvert(), "scores"_a, "base"_a.none() = nb::none());

#define CHECKS(V)                                                                                              \
    engine.def("check", [](Engine& self, Matrix<V> X) { self.check(batch<V>(X)); }, nb::arg("X").noconvert()); \
    engine.def(                                                                                                \
        "keep_set",                                                                                            \
        [](Engine& self, Matrix<V> X, Vector<double> y, nb::object importance) {                               \
            self.keep_set(batch<V>(X), nb::make_tuple(X), y, importance);                                      \
        },                                                                                                     \
        nb::arg("X").noconvert(), "y"_a, "importance"_a.none());

#define CSR_CHECKS(V, I)                                                                                         \
    engine.def(                                                                                                  \
        "check_csr",                                                                                             \
        [](Engine& self, Vector<V> data, Vector<I> indices, Vector<I> starts, size_t columns, bool distinct) {   \
            self.check(batch<V, I>(data, indices, starts, columns, distinct));                                   \
        },                                                                                                       \
        nb::arg("data").noconvert(), nb::arg("indices").noconvert(), nb::arg("starts").noconvert(), "columns"_a, \
        "distinct"_a = false);                                                                                   \
    engine.def(                                                                                                  \
        "keep_set_csr",                                                                                          \
        [](Engine& self, Vector<V> data, Vector<I> indices, Vector<I> starts, size_t columns, Vector<double> y,  \
           nb::object importance) {                                                                              \
            self.keep_set(batch<V, I>(data, indices, starts, columns), nb::make_tuple(data, indices, starts), y, \
                          importance);                                                                           \
        },                                                                                                       \
        nb::arg("data").noconvert(), nb::arg("indices").noconvert(), nb::arg("starts").noconvert(), "columns"_a, \
        "y"_a, "importance"_a.none());

#define CSR(V, I)                                                                                                   \
    engine.def(                                                                                                     \
        "learn_csr",                                                                                                \
        [](Engine& self, Vector<V> data, Vector<I> indices, Vector<I> starts, size_t columns, nb::object y,         \
           nb::object importance, nb::object target, nb::object sets, nb::object scores, bool distinct, bool named, \
           bool sound, nb::object base) {                                                                           \
            self.learn(batch<V, I>(data, indices, starts, columns, distinct, named, sound), y, importance, target,  \
                       sets, scores, base);                                                                         \
        },                                                                                                          \
        nb::arg("data").noconvert(), nb::arg("indices").noconvert(), nb::arg("starts").noconvert(), "columns"_a,    \
        "y"_a.none(), "importance"_a.none(), "target"_a.none(), "sets"_a.none(), "scores"_a.none(),                 \
        "distinct"_a = false, "named"_a = false, "sound"_a = false, "base"_a.none() = nb::none());                  \
    engine.def(                                                                                                     \
        "score_csr",                                                                                                \
        [](Engine& self, Vector<V> data, Vector<I> indices, Vector<I> starts, size_t columns, Out scores,           \
           bool distinct, bool sound, nb::object base) {                                                            \
            self.score(batch<V, I>(data, indices, starts, columns, distinct, false, sound), scores, base);          \
        },                                                                                                          \
        nb::arg("data").noconvert(), nb::arg("indices").noconvert(), nb::arg("starts").noconvert(), "columns"_a,    \
        "scores"_a, "distinct"_a = false, "sound"_a = false, "base"_a.none() = nb::none());

#define VARIANCE(V)                                                                                          \
    engine.def(                                                                                              \
        "variance", [](Engine& self, Matrix<V> X, Out variances) { self.variance(batch<V>(X), variances); }, \
        nb::arg("X").noconvert(), "variances"_a);
#define CSR_VARIANCE(V, I)                                                                                       \
    engine.def(                                                                                                  \
        "variance_csr",                                                                                          \
        [](Engine& self, Vector<V> data, Vector<I> indices, Vector<I> starts, size_t columns, Out variances,     \
           bool distinct) { self.variance(batch<V, I>(data, indices, starts, columns, distinct), variances); },  \
        nb::arg("data").noconvert(), nb::arg("indices").noconvert(), nb::arg("starts").noconvert(), "columns"_a, \
        "variances"_a, "distinct"_a = false);

#define PAIRS(I)                                                                                                   \
    engine.def(                                                                                                    \
        "learn_pairs_csr",                                                                                         \
        [](Engine& self, Vector<double> data, Vector<I> indices, Vector<I> starts, size_t columns,                 \
           Vector<double> relevance, Vector<double> importance, Vector<int64_t> begin, size_t first,               \
           nb::object scores, Count learned) {                                                                     \
            self.learn_pairs(narrow(batch<double, I>(data, indices, starts, columns)).rows, relevance, importance, \
                             begin, first, scores, learned);                                                       \
        },                                                                                                         \
        nb::arg("data").noconvert(), nb::arg("indices").noconvert(), nb::arg("starts").noconvert(), "columns"_a,   \
        "relevance"_a, "importance"_a, "begin"_a, "first"_a, "scores"_a.none(), nb::arg("learned").noconvert());

using namespace nb::literals;

// An engine calls back into the model that owns it; the collector must see that circle.
static int traverse(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    if (!nb::inst_ready(self)) return 0;
    Engine* engine = nb::inst_ptr<Engine>(self);
    for (nb::object* held : engine->held()) Py_VISIT(held->ptr());
    return 0;
}

static int clear(PyObject* self) {
    Engine* engine = nb::inst_ptr<Engine>(self);
    for (nb::object* held : engine->held()) *held = nb::none();
    return 0;
}

static PyType_Slot slots[] = {
    {Py_tp_traverse, reinterpret_cast<void*>(traverse)}, {Py_tp_clear, reinterpret_cast<void*>(clear)}, {0, nullptr}};

NB_MODULE(_native, module) {
    // A thread that never ends keeps its learners until the process does: no mistake to tell its user of.
    nb::set_leak_warnings(false);
    choose(first_loops());
    bind_lock(module);
    bind_kernels(module);
    bind_lasvm(module);
    bind_learners(module);
    bind_prototypes(module);
    nb::class_<Engine> engine(module, "Engine", nb::type_slots(slots));
    engine.def(nb::init<const std::string&, nb::dict, nb::dict>(), "task"_a, "rule"_a, "options"_a);
    DENSE(double)
    DENSE(float)
    CHECKS(double)
    CHECKS(float)
    CSR_CHECKS(double, int32_t)
    CSR_CHECKS(double, int64_t)
    CSR_CHECKS(float, int32_t)
    CSR_CHECKS(float, int64_t)
    CSR(double, int32_t)
    CSR(double, int64_t)
    CSR(float, int32_t)
    CSR(float, int64_t)
    VARIANCE(double)
    VARIANCE(float)
    CSR_VARIANCE(double, int32_t)
    CSR_VARIANCE(double, int64_t)
    CSR_VARIANCE(float, int32_t)
    CSR_VARIANCE(float, int64_t)
    PAIRS(int32_t)
    PAIRS(int64_t)
    engine.def(
        "learn_pairs",
        [](Engine& self, Matrix<double> X, Vector<double> relevance, Vector<double> importance, Vector<int64_t> begin,
           size_t first, nb::object scores,
           Count learned) { self.learn_pairs(batch<double>(X), relevance, importance, begin, first, scores, learned); },
        nb::arg("X").noconvert(), "relevance"_a, "importance"_a, "begin"_a, "first"_a, "scores"_a.none(),
        nb::arg("learned").noconvert());
    // Without a base first: what most calls are, and an argument costs some forty instructions.
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
        .def("row_of", &Engine::row_of, "x"_a.none())
        .def("set_features", &Engine::set_features, "d"_a)
        .def("admit_names", &Engine::admit_names, "names"_a)
        .def("learn_together", &Engine::learn_together, "directions"_a, "importance"_a)
        .def("hold_back", &Engine::hold_back, "known"_a)
        .def("forget_names", &Engine::forget_names, "count"_a)
        .def(
            "set_names", [](Engine& self, nb::list names) { self.features.set_names(names); }, "names"_a)
        .def("set_classes", &Engine::set_classes, "classes"_a)
        .def("add_class", &Engine::add_class, "label"_a.none())
        .def("flip_classes", &Engine::flip_classes)
        .def("begin_growth", &Engine::begin_growth, "coming"_a)
        .def("undo_growth", &Engine::undo_growth)
        .def("end_growth", &Engine::end_growth)
        .def(
            "require_memory",
            [](Engine& self, size_t classes) { self.require_memory(self.model.w.features, classes, "LabelError"); },
            "classes"_a)
        .def_rw("max_features", &Engine::max_features)
        .def(
            "require_few",
            [](Engine& self, size_t count) {
                if (!self.features.hashed()) require_few(count, self.max_features, "FeatureError");
            },
            "features"_a)
        .def("state", &Engine::state, "met_only"_a = false)
        .def("forget_set", &Engine::forget_set)
        .def("flush", &Engine::flush)
        .def("set_state", &Engine::set_state, "state"_a)
        .def(
            "find", [](Engine& self, nb::handle name) { return self.features.find(name.ptr()); }, "name"_a)
        .def_prop_rw(
            "on_new_label", [](Engine& self) { return self.on_new_label; },
            [](Engine& self, nb::object hook) { self.on_new_label = hook; }, nb::arg().none())
        .def_rw("lock", &Engine::lock)
        .def_prop_ro("names", [](Engine& self) { return self.features.names(); })
        .def_prop_ro("classes", [](Engine& self) { return self.classes; })
        .def_prop_ro("columns", [](Engine& self) { return self.columns; })
        .def_prop_ro("positional", [](Engine& self) { return self.positional; })
        .def_prop_ro("features", [](Engine& self) { return self.model.w.features; })
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

    bind_kernel_engine(module);
    module.def("isa", [] { return std::string(loops->name); });
    module.def("isas", [] {
        std::vector<std::string> names;
        for (const Loops* each : available_loops()) names.push_back(each->name);
        return names;
    });
    module.def(
        "use_isa",
        [](const std::string& name) {
            const Loops* found = find_loops(name);
            if (!found)
                raise("ParameterError", "instruction set '" + name + "' is not available on this machine, which has " +
                                            names_of(available_loops()));
            choose(found);
        },
        "name"_a);
    module.def("uses_packs", uses_packs);  // do the parsers read in registers of AVX-512?
    module.def(
        "most_features",
        [] {
            try {
                return most_features();
            } catch (const std::invalid_argument& wrong) {
                raise("ParameterError", wrong.what());
            }
        },
        "How many features there may be where nobody says otherwise.");
    module.def(
        "require_memory",
        [](double bytes, const std::string& what, const std::string& advice, const std::string& error) {
            onepass::require_memory(bytes, what, advice, error.c_str());
        },
        "bytes"_a, "what"_a, "advice"_a, "error"_a);
    // Memory that is asked for and given back with every block stays with the process, instead of being mapped anew.
    module.def("keep_memory", [] {
#ifdef __GLIBC__
        mallopt(M_MMAP_THRESHOLD, 32 << 20);
        mallopt(M_TRIM_THRESHOLD, 64 << 20);
#endif
    });
    module.def(
        "murmur3", [](const std::string& text, uint32_t seed) { return murmur3(text.data(), text.size(), seed); },
        "text"_a, "seed"_a = 0);
    bind_name_lists(module);
    bind_transforms(module);
    bind_reader(module);
    bind_tables(module);
}

}  // namespace onepass
