#include "bind/lasvm.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <chrono>

#include "bind/signal_watch.hpp"
#include "core/memory.hpp"

namespace onepass {

using namespace nb::literals;

const LasvmLoops* lasvm_loops = lasvm_loops_scalar();

LasvmTable::LasvmTable(nb::handle given) : arrays_(nb::borrow(given)) {
    if (nb::isinstance<nb::tuple>(given)) {
        const nb::tuple parts = nb::cast<nb::tuple>(given);
        const auto data = nb::cast<In1<double>>(parts[0]);
        const auto index = nb::cast<In1<int64_t>>(parts[1]);
        const auto starts = nb::cast<In1<int64_t>>(parts[2]);
        f64_ = data.data();
        index_ = index.data();
        starts_ = starts.data();
        rows = starts.shape(0) - 1;
        require_csr(index.shape(0), data.shape(0));
    } else if (In2<float> single; nb::try_cast(given, single, false)) {
        f32_ = single.data();
        rows = single.shape(0);
        columns = single.shape(1);
    } else {
        const auto table = nb::cast<In2<double>>(given, false);
        f64_ = table.data();
        rows = table.shape(0);
        columns = table.shape(1);
    }
}

void LasvmTable::require_csr(size_t indices, size_t values) const {
    bool fits = indices == values;
    for (size_t i = 0; fits && i < rows; ++i) fits = 0 <= starts_[i] && starts_[i] <= starts_[i + 1];
    if (!fits || (rows > 0 && size_t(starts_[rows]) > values))
        raise("InputError", "X is not a CSR matrix: its arrays do not fit together");
}

bool LasvmTable::indices_rise() const {
    for (size_t i = 0; sparse() && i < rows; ++i)
        for (int64_t at = starts_[i]; at < starts_[i + 1]; ++at)
            if (index_[at] < 0 || (at > starts_[i] && index_[at] <= index_[at - 1])) return false;
    return true;
}

bool LasvmTable::finite() const {
    if (rows == 0) return true;
    const size_t begin = sparse() ? size_t(starts_[0]) : 0, end = sparse() ? size_t(starts_[rows]) : rows * columns;
    for (size_t i = begin; i < end; ++i)
        if (!std::isfinite(f32_ ? double(f32_[i]) : f64_[i])) return false;
    return true;
}

Query LasvmTable::query(size_t i, size_t selves, std::vector<double>& room) const {
    Query out;
    if (sparse()) {
        out.x = f64_ + starts_[i];
        out.index = index_ + starts_[i];
        out.n = size_t(starts_[i + 1] - starts_[i]);
    } else {
        out.n = columns;
        out.x = f64_ + i * columns;
        if (f32_) {
            room.assign(f32_ + i * columns, f32_ + (i + 1) * columns);
            out.x = room.data();
        }
    }
    out.selves.resize(selves);
    return out;
}

static LasvmOptions read_options(nb::dict given) {
    LasvmOptions out;
    out.C = nb::cast<double>(given["C"]);
    out.tau = nb::cast<double>(given["tau"]);
    out.cache_bytes = nb::cast<size_t>(given["cache_bytes"]);
    out.reprocess_steps = nb::cast<size_t>(given["reprocess_steps"]);
    out.reprocess_until = nb::cast<double>(given["reprocess_until"]);
    out.may_be_indefinite = nb::cast<bool>(given["may_be_indefinite"]);
    return out;
}

LasvmEngine::LasvmEngine(nb::dict kernel, bool sparse, size_t columns, nb::dict options)
    : holder_(kernel), svm(holder_.kernel, holder_.slots, sparse, columns, read_options(options)) {}

// The examples of one call, in the order in which they are learned.
struct LasvmEngine::Examples {
    const LasvmTable& X;
    In1<int64_t> labels;
    In1<double> weights;
    std::optional<In1<int64_t>> order;
    bool identify;

    size_t count() const { return order ? order->shape(0) : X.rows; }
    size_t row(size_t at) const { return order ? size_t(order->data()[at]) : at; }
    int64_t id(size_t at) const { return identify ? int64_t(row(at)) : Lasvm::no_id; }
    bool fit_together() const {
        bool fit = labels.shape(0) == X.rows && weights.shape(0) == X.rows;
        for (size_t i = 0; order && i < count(); ++i) fit = fit && row(i) < X.rows;
        return fit;
    }
};

Query LasvmEngine::query(const LasvmTable& X, size_t row, std::vector<double>& room) const {
    Query out = X.query(row, holder_.slots, room);
    kernel_loops->prepare(svm.kernel, out);
    return out;
}

// Computes the kernel rows of the next examples together. Returns how many they are.
size_t LasvmEngine::prepare_group(const Examples& examples, size_t from) {
    const size_t count = std::min(group, examples.count() - from);
    int64_t ids[group];
    for (size_t i = 0; i < count; ++i) {
        ids[i] = examples.id(from + i);
        queries_[i] = query(examples.X, examples.row(from + i), rooms_[i]);
    }
    svm.prepare(queries_, ids, count, rows_);
    return count;
}

LasvmStatus LasvmEngine::learn_prepared(const Examples& examples, size_t at, size_t in_group, bool seeding) {
    const Query& x = queries_[in_group];
    CachedRow& kernel_row = rows_[in_group];
    const int64_t label = examples.labels.data()[examples.row(at)];
    const double weight = examples.weights.data()[examples.row(at)];
    if (seeding) return svm.seed(x, kernel_row, label, weight, examples.id(at));
    return svm.learn(x, kernel_row, label, weight, examples.id(at));
}

size_t LasvmEngine::learn(nb::handle given, In1<int64_t> labels, In1<double> weights, std::optional<In1<int64_t>> order,
                          bool identify, size_t most_support, double seconds, bool seeding) {
    using Clock = std::chrono::steady_clock;
    const LasvmTable X(given);
    const Examples examples{X, labels, weights, order, identify};
    if (!examples.fit_together() || !fits(X))
        raise("InputError", "rows, labels, weights and their order do not fit together");
    const OneCall one = one_call();
    const size_t count = examples.count();
    size_t done = 0;
    LasvmStatus status = LasvmStatus::ok;
    bool interrupted = false;
    SignalWatch watch;
    run_unlocked(holder_.calls_python(), [&] {
        const auto deadline = Clock::now() + std::chrono::duration<double>(seconds);
        const auto reached_limit = [&] {
            return (most_support > 0 && svm.support() >= most_support) ||
                   (std::isfinite(seconds) && Clock::now() >= deadline);
        };
        while (done < count) {
            const size_t prepared = prepare_group(examples, done);
            for (size_t i = 0; i < prepared; ++i) {
                status = learn_prepared(examples, done, i, seeding);
                if (status != LasvmStatus::ok) return;
                ++done;
                if (reached_limit()) return;
                interrupted = done < count && watch.interrupted(svm.points.size() * (8 + queries_[i].n));
                if (interrupted) return;
            }
        }
    });
    if (interrupted) throw nb::python_error();
    if (status != LasvmStatus::ok) refuse(status, examples.row(done));
    return done;
}

void LasvmEngine::score(nb::handle given, Out2 out, bool counted) {
    const LasvmTable X(given);
    if (!fits(X) || out.shape(0) != X.rows || out.shape(1) != svm.machines.size())
        raise("InputError", "rows and scores do not fit the machine");
    const OneCall one = one_call();
    const uint64_t before = svm.evaluations;
    run_unlocked(holder_.calls_python(), [&] {
        for (size_t done = 0; done < X.rows; done += group) {
            const size_t count = std::min(group, X.rows - done);
            for (size_t i = 0; i < count; ++i) queries_[i] = query(X, done + i, rooms_[i]);
            svm.score(queries_, count, out.data() + done * svm.machines.size());
        }
    });
    if (!counted) svm.evaluations = before;
    if (PyErr_Occurred()) throw nb::python_error();
}

size_t LasvmEngine::finish() {
    const OneCall one = one_call();
    LasvmStatus status = LasvmStatus::ok;
    size_t unfinished = 0;
    run_unlocked(holder_.calls_python(), [&] {
        for (Machine& machine : svm.machines)
            if (status == LasvmStatus::ok && !svm.finish(machine, status)) ++unfinished;
        if (status == LasvmStatus::ok) svm.compact();
    });
    if (status != LasvmStatus::ok) refuse(status, 0);
    return unfinished;
}

void LasvmEngine::reprocess(size_t machine) {
    const OneCall one = one_call();
    const LasvmStatus status = svm.reprocess(svm.machines.at(machine));
    if (status != LasvmStatus::ok) refuse(status, 0);
}

void LasvmEngine::refuse(LasvmStatus status, size_t row) {
    if (PyErr_Occurred()) throw nb::python_error();
    if (status == LasvmStatus::full) raise_row("FullError", row, no_vector_more("use fewer classes or features"));
    raise_row("NumericalError", row,
              status == LasvmStatus::indefinite
                  ? "the kernel is not positive semi-definite: K(x, x) + K(z, z) - 2 K(x, z) < 0 for two "
                    "of the stored vectors; use another kernel"
                  : "its kernel values overflow; scale the features down");
}

template <class Value>
static auto of_each_machine(Value value) {
    return [value](const LasvmEngine& self) {
        std::vector<double> out;
        for (const Machine& machine : self.svm.machines) out.push_back(value(machine));
        return out;
    };
}

static nb::list layout(const LasvmEngine& self) {
    nb::list out;
    for (const Machine& m : self.svm.machines) out.append(nb::make_tuple(m.positive, m.negative));
    return out;
}

static uint64_t count_steps(const LasvmEngine& self) {
    double sum = 0.0;
    for (const Machine& machine : self.svm.machines) sum += machine.steps;
    return uint64_t(sum);
}

void bind_lasvm(nb::module_& module) {
    nb::class_<LasvmEngine>(module, "LasvmEngine")
        .def(nb::init<nb::dict, bool, size_t, nb::dict>(), "kernel"_a, "sparse"_a, "columns"_a, "options"_a)
        .def("learn", &LasvmEngine::learn, "X"_a, "labels"_a, "weights"_a, "order"_a.none() = nb::none(),
             "identify"_a = false, "most_support"_a = 0, "seconds"_a = std::numeric_limits<double>::infinity(),
             "seeding"_a = false)
        .def("score", &LasvmEngine::score, "X"_a, "out"_a, "counted"_a = false)
        .def("finish", &LasvmEngine::finish)
        .def("reprocess", &LasvmEngine::reprocess, "machine"_a)
        .def(
            "add_machine",
            [](LasvmEngine& self, int64_t positive, int64_t negative) { self.svm.add_machine(positive, negative); },
            "positive"_a, "negative"_a)
        .def("split", [](LasvmEngine& self) { self.svm.split(); })
        .def(
            "drop_machines", [](LasvmEngine& self, size_t count) { self.svm.drop_machines(count); }, "count"_a)
        .def(
            "collect", [](LasvmEngine& self, size_t machine) { self.svm.collect(machine); }, "machine"_a)
        .def("forget_ids", [](LasvmEngine& self) { self.svm.forget_ids(); })
        .def("state", &LasvmEngine::state)
        .def("set_state", &LasvmEngine::set_state, "state"_a)
        .def("layout", layout)
        .def("biases", of_each_machine([](const Machine& m) { return m.bias; }))
        .def("deltas", of_each_machine([](const Machine& m) { return m.delta; }))
        .def("objectives", of_each_machine([](const Machine& m) { return m.objective(); }))
        .def("steps", count_steps)
        .def_prop_ro("machines", [](LasvmEngine& self) { return self.svm.machines.size(); })
        .def_prop_ro("stored", [](LasvmEngine& self) { return self.svm.stored(); })
        .def_prop_ro("support", [](LasvmEngine& self) { return self.svm.support(); })
        .def_prop_rw(
            "t", [](LasvmEngine& self) { return self.svm.t; }, [](LasvmEngine& self, uint64_t t) { self.svm.t = t; })
        .def_prop_ro("evaluations", [](LasvmEngine& self) { return self.svm.evaluations; })
        .def_prop_ro("cache_bytes", [](LasvmEngine& self) { return self.svm.cache.bytes(); })
        .def_prop_ro("cache_rows", [](LasvmEngine& self) { return self.svm.cache.count(); });
}

}  // namespace onepass
