// LASVM for Python: tables in, errors out.
#include "bind/lasvm.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <chrono>
#include <optional>

#include "bind/arrays.hpp"
#include "bind/features.hpp"
#include "bind/kernels.hpp"
#include "bind/lock.hpp"
#include "bind/signal_watch.hpp"
#include "kernels/lasvm.hpp"

namespace onepass {

using namespace nb::literals;

const LasvmLoops* lasvm_loops = lasvm_loops_scalar();

namespace {

constexpr size_t together = 8;  // rows whose kernel values are computed in one sweep over the stored vectors

// A table as Python gives it: float64 or float32 rows, or the three arrays of a CSR matrix whose indices rise.
class Table {
 public:
    explicit Table(nb::handle given) : keep_(nb::borrow(given)) {
        if (nb::isinstance<nb::tuple>(given)) {
            const nb::tuple parts = nb::cast<nb::tuple>(given);
            const auto data = nb::cast<In1<double>>(parts[0]);
            const auto index = nb::cast<In1<int64_t>>(parts[1]);
            const auto starts = nb::cast<In1<int64_t>>(parts[2]);
            f64_ = data.data();
            index_ = index.data();
            starts_ = starts.data();
            rows = starts.shape(0) - 1;
            check(index.shape(0) == data.shape(0), data.shape(0));
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

    bool sparse() const { return starts_ != nullptr; }
    bool indices_rise() const {
        for (size_t i = 0; sparse() && i < rows; ++i)
            for (int64_t at = starts_[i]; at < starts_[i + 1]; ++at)
                if (index_[at] < 0 || (at > starts_[i] && index_[at] <= index_[at - 1])) return false;
        return true;
    }
    bool finite() const {
        if (rows == 0) return true;
        const size_t begin = sparse() ? size_t(starts_[0]) : 0, end = sparse() ? size_t(starts_[rows]) : rows * columns;
        for (size_t i = begin; i < end; ++i)
            if (!std::isfinite(f32_ ? double(f32_[i]) : f64_[i])) return false;
        return true;
    }
    // Row i, in `room` where it has to be converted.
    Query query(size_t i, size_t selves, std::vector<double>& room) const {
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

    size_t rows = 0, columns = 0;

 private:
    void check(bool fits, size_t elements) const {
        for (size_t i = 0; fits && i < rows; ++i) fits = 0 <= starts_[i] && starts_[i] <= starts_[i + 1];
        if (!fits || (rows > 0 && size_t(starts_[rows]) > elements))
            raise("InputError", "X is not a CSR matrix: its arrays do not fit together");
    }

    nb::object keep_;
    const double* f64_ = nullptr;
    const float* f32_ = nullptr;
    const int64_t *index_ = nullptr, *starts_ = nullptr;
};

class LasvmEngine {
 public:
    LasvmEngine(nb::dict kernel, bool sparse, size_t columns, nb::dict options)
        : holder_(kernel), svm(holder_.kernel, holder_.slots, sparse, columns, read(options)) {}

    // Learns rows `order`, or all as they come. With `identify`, a row that is in S already is known by its number.
    // Stops early at so many support vectors or seconds. Returns how many rows were learned.
    size_t learn(nb::handle given, In1<int64_t> labels, In1<double> weights, std::optional<In1<int64_t>> order,
                 bool identify, size_t most_support, double seconds, bool seeding) {
        const Table X(given);
        const size_t count = order ? order->shape(0) : X.rows;
        bool fits = labels.shape(0) == X.rows && weights.shape(0) == X.rows && X.sparse() == svm.points.sparse();
        fits = fits && (X.sparse() || X.columns == svm.points.columns());
        for (size_t i = 0; order && i < count; ++i) fits = fits && size_t(order->data()[i]) < X.rows;
        if (!fits) raise("InputError", "rows, labels, weights and their order do not fit together");
        const Owned owned = own();
        LasvmStatus status = LasvmStatus::ok;
        size_t done = 0;
        bool interrupted = false;
        SignalWatch watch;
        unlocked([&] {
            const auto deadline = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
            while (done < count && status == LasvmStatus::ok) {
                const size_t here = std::min(together, count - done);
                size_t rows[together];
                int64_t ids[together];
                for (size_t i = 0; i < here; ++i) {
                    rows[i] = order ? size_t(order->data()[done + i]) : done + i;
                    ids[i] = identify ? int64_t(rows[i]) : Lasvm::no_id;
                    queries_[i] = query(X, rows[i], rooms_[i]);
                }
                svm.prepare(queries_, ids, here, rows_);
                for (size_t i = 0; i < here; ++i) {
                    const int64_t label = labels.data()[rows[i]];
                    const double weight = weights.data()[rows[i]];
                    status = seeding ? svm.seed(queries_[i], rows_[i], label, weight, ids[i])
                                     : svm.learn(queries_[i], rows_[i], label, weight, ids[i]);
                    if (status != LasvmStatus::ok) return;
                    ++done;
                    if (most_support > 0 && svm.support() >= most_support) return;
                    if (std::isfinite(seconds) && std::chrono::steady_clock::now() >= deadline) return;
                    interrupted = done < count && watch.interrupted(svm.points.size() * (8 + queries_[i].n));
                    if (interrupted) return;
                }
            }
        });
        if (interrupted) throw nb::python_error();
        if (status != LasvmStatus::ok) refuse(status, order ? size_t(order->data()[done]) : done);
        return done;
    }

    void score(nb::handle given, Out2 out, bool counted) {
        const Table X(given);
        if (X.sparse() != svm.points.sparse() || out.shape(0) != X.rows || out.shape(1) != svm.machines.size() ||
            !(X.sparse() || X.columns == svm.points.columns()))
            raise("InputError", "rows and scores do not fit the machine");
        const Owned owned = own();
        const uint64_t before = svm.evaluations;
        unlocked([&] {
            for (size_t done = 0; done < X.rows; done += together) {
                const size_t here = std::min(together, X.rows - done);
                for (size_t i = 0; i < here; ++i) queries_[i] = query(X, done + i, rooms_[i]);
                svm.score(queries_, here, out.data() + done * svm.machines.size());
            }
        });
        if (!counted) svm.evaluations = before;
        if (PyErr_Occurred()) throw nb::python_error();
    }

    // Machines whose violation stayed above tau.
    size_t finish() {
        const Owned owned = own();
        LasvmStatus status = LasvmStatus::ok;
        size_t unfinished = 0;
        unlocked([&] {
            for (Machine& machine : svm.machines)
                if (status == LasvmStatus::ok && !svm.finish(machine, status)) ++unfinished;
            if (status == LasvmStatus::ok) svm.compact();
        });
        if (status != LasvmStatus::ok) refuse(status, 0);
        return unfinished;
    }

    void reprocess(size_t machine) {
        const Owned owned = own();
        const LasvmStatus status = svm.reprocess(svm.machines.at(machine));
        if (status != LasvmStatus::ok) refuse(status, 0);
    }

    nb::dict state();
    void set_state(nb::dict state);

 private:
    static LasvmOptions read(nb::dict given) {
        LasvmOptions out;
        out.C = nb::cast<double>(given["C"]);
        out.tau = nb::cast<double>(given["tau"]);
        out.cache_bytes = nb::cast<size_t>(given["cache_bytes"]);
        out.reprocess_steps = nb::cast<size_t>(given["reprocess_steps"]);
        out.reprocess_until = nb::cast<double>(given["reprocess_until"]);
        out.may_be_indefinite = nb::cast<bool>(given["may_be_indefinite"]);
        return out;
    }
    Query query(const Table& X, size_t row, std::vector<double>& room) const {
        Query out = X.query(row, holder_.slots, room);
        kernel_loops->prepare(svm.kernel, out);
        return out;
    }
    // One writer or reader at a time; a kernel that comes back to its own model is refused, not left to hang.
    struct Owned {
        LasvmEngine& engine;
        explicit Owned(LasvmEngine& engine) : engine(engine) {
            engine.lock_.acquire();
            if (engine.inside_) {
                engine.lock_.release();
                PyErr_SetString(PyExc_RuntimeError, "a model cannot be used from inside its own kernel");
                throw nb::python_error();
            }
            engine.inside_ = true;
        }
        Owned(const Owned&) = delete;
        ~Owned() {
            engine.inside_ = false;
            engine.lock_.release();
        }
    };
    Owned own() { return Owned(*this); }
    // Without the interpreter's lock, unless the kernel is a function in Python.
    template <class Work>
    void unlocked(const Work& work) {
        if (holder_.calls_python()) return work();
        nb::gil_scoped_release release;
        work();
    }
    [[noreturn]] void refuse(LasvmStatus status, size_t row) const {
        if (PyErr_Occurred()) throw nb::python_error();
        const std::string why =
            status == LasvmStatus::indefinite
                ? "the kernel is not positive semi-definite: K(x, x) + K(z, z) - 2 K(x, z) < 0 for two "
                  "of the stored vectors; use another kernel"
            : status == LasvmStatus::full ? no_vector_more("use fewer classes or features")
                                          : "its kernel values overflow; scale the features down";
        const std::string message = "row " + std::to_string(row) + ": " + why;
        nb::object error = nb::module_::import_("onepass.errors")
                               .attr(status == LasvmStatus::full ? "FullError" : "NumericalError")(message, row);
        PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
        throw nb::python_error();
    }

    KernelHolder holder_;
    Lock lock_;
    bool inside_ = false;
    Query queries_[together];
    CachedRow rows_[together];
    std::vector<double> rooms_[together];

 public:
    Lasvm svm;
};

// Slots that are free hold zeros in a file: what stood there has no meaning.
nb::dict LasvmEngine::state() {
    const Owned owned = own();
    const size_t n = svm.slots(), M = svm.machines.size();
    nb::dict out;
    std::vector<double> alpha, gradient, lower, upper, scalars;
    for (const Machine& m : svm.machines) {
        alpha.insert(alpha.end(), m.alpha.begin(), m.alpha.end());
        gradient.insert(gradient.end(), m.gradient.begin(), m.gradient.end());
        lower.insert(lower.end(), m.lower.begin(), m.lower.end());
        upper.insert(upper.end(), m.upper.begin(), m.upper.end());
        for (const double value : {double(m.positive), double(m.negative), m.bias, m.delta, m.steps,
                                   double(m.saw_positive), double(m.saw_negative)})
            scalars.push_back(value);
    }
    // A slot of a machine that does not hold it has a gradient that nobody reads.
    for (size_t i = 0; i < gradient.size(); ++i)
        if (!(lower[i] < upper[i])) gradient[i] = 0.0;
    out["alpha"] = array({M, n}, std::vector<double>(alpha));
    out["gradient"] = array({M, n}, std::vector<double>(gradient));
    out["lower"] = array({M, n}, std::vector<double>(lower));
    out["upper"] = array({M, n}, std::vector<double>(upper));
    out["machines"] = array({M, 7}, std::vector<double>(scalars));
    out["labels"] = array({n}, std::vector<double>(svm.labels.begin(), svm.labels.end()));
    out["weights"] = array({n}, std::vector<double>(svm.weights));
    std::vector<double> x, index, starts = {0.0}, keep;
    for (size_t slot = 0; slot < n; ++slot) {
        const Query row = svm.points.query(slot, keep);
        if (svm.used(slot)) {
            x.insert(x.end(), row.x, row.x + row.n);
            if (svm.points.sparse()) index.insert(index.end(), row.index, row.index + row.n);
        } else if (!svm.points.sparse()) {
            x.resize(x.size() + row.n, 0.0);
        }
        starts.push_back(double(x.size()));
    }
    if (svm.points.sparse()) {
        out["index"] = array({index.size()}, std::vector<double>(index));
        out["starts"] = array({n + 1}, std::vector<double>(starts));
        out["x"] = array({x.size()}, std::vector<double>(x));
    } else {
        out["x"] = array({n, svm.points.columns()}, std::vector<double>(x));
    }
    return out;
}

void LasvmEngine::set_state(nb::dict state) {
    const Table X(state["rows"]);
    const auto labels = nb::cast<In1<double>>(state["labels"]);
    const auto weights = nb::cast<In1<double>>(state["weights"]);
    const auto scalars = nb::cast<In2<double>>(state["machines"]);
    const size_t n = labels.shape(0), M = scalars.shape(0);
    bool fits = X.rows == n && weights.shape(0) == n && scalars.shape(1) == 7 && X.sparse() == svm.points.sparse() &&
                (X.sparse() || X.columns == svm.points.columns()) && X.indices_rise();
    for (const char* name : {"alpha", "gradient", "lower", "upper"}) {
        const auto table = nb::cast<In2<double>>(state[name]);
        fits = fits && table.shape(0) == M && table.shape(1) == n;
        for (size_t i = 0; fits && i < M * n; ++i) fits = std::isfinite(table.data()[i]);
    }
    const auto whole = [](double value) { return std::abs(value) < 9007199254740992.0 && value == std::floor(value); };
    for (size_t i = 0; fits && i < n; ++i)
        fits = whole(labels.data()[i]) && std::isfinite(weights.data()[i]) && weights.data()[i] >= 0.0;
    for (size_t i = 0; fits && i < 7 * M; ++i)
        fits = i % 7 == 3 ? !std::isnan(scalars.data()[i])  // a violation is infinite where one class was seen
                          : std::isfinite(scalars.data()[i]) && (i % 7 > 1 || whole(scalars.data()[i]));
    fits = fits && X.finite();
    if (!fits) raise("ModelFileError", "the machine's arrays do not fit together");
    std::vector<double> room;
    for (size_t slot = 0; slot < n; ++slot) {
        svm.points.push(query(X, slot, room));
        svm.labels.push_back(int64_t(labels.data()[slot]));
        svm.weights.push_back(weights.data()[slot]);
    }
    for (size_t m = 0; m < M; ++m) {
        const double* scalar = scalars.data() + m * 7;
        Machine machine;
        machine.positive = int64_t(scalar[0]);
        machine.negative = int64_t(scalar[1]);
        machine.bias = scalar[2];
        machine.delta = scalar[3];
        machine.steps = scalar[4];
        machine.saw_positive = scalar[5] != 0.0;
        machine.saw_negative = scalar[6] != 0.0;
        const auto copy = [&](const char* name, std::vector<double>& to) {
            const auto table = nb::cast<In2<double>>(state[name]);
            to.assign(table.data() + m * n, table.data() + (m + 1) * n);
        };
        copy("alpha", machine.alpha);
        copy("gradient", machine.gradient);
        copy("lower", machine.lower);
        copy("upper", machine.upper);
        svm.machines.push_back(std::move(machine));
    }
    svm.restore();
}

}  // namespace

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
        .def("layout",
             [](LasvmEngine& self) {
                 nb::list out;
                 for (const Machine& m : self.svm.machines) out.append(nb::make_tuple(m.positive, m.negative));
                 return out;
             })
        .def("biases",
             [](LasvmEngine& self) {
                 std::vector<double> out;
                 for (const Machine& machine : self.svm.machines) out.push_back(machine.bias);
                 return out;
             })
        .def("deltas",
             [](LasvmEngine& self) {
                 std::vector<double> out;
                 for (const Machine& machine : self.svm.machines) out.push_back(machine.delta);
                 return out;
             })
        .def("steps",
             [](LasvmEngine& self) {
                 double sum = 0.0;
                 for (const Machine& machine : self.svm.machines) sum += machine.steps;
                 return uint64_t(sum);
             })
        .def("objectives",
             [](LasvmEngine& self) {
                 std::vector<double> out;
                 for (const Machine& machine : self.svm.machines) out.push_back(machine.objective());
                 return out;
             })
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
