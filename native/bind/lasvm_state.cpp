// The state of a LasvmEngine as arrays, and back.
#include <algorithm>

#include "bind/lasvm.hpp"
#include "bind/saved.hpp"

namespace onepass {

using At = saved::Machine;

static constexpr const char* slot_arrays[] = {"alpha", "gradient", "lower", "upper"};

static std::vector<double>& slot_array(Machine& machine, size_t which) {
    std::vector<double>* const arrays[] = {&machine.alpha, &machine.gradient, &machine.lower, &machine.upper};
    return *arrays[which];
}

static std::vector<double> scalars_of(const Machine& machine) {
    std::vector<double> out(At::count);
    out[At::positive] = double(machine.positive);
    out[At::negative] = double(machine.negative);
    out[At::bias] = machine.bias;
    out[At::delta] = machine.delta;
    out[At::steps] = machine.steps;
    out[At::saw_positive] = machine.saw_positive;
    out[At::saw_negative] = machine.saw_negative;
    return out;
}

static Machine machine_of(const double* scalars) {
    Machine machine;
    machine.positive = int64_t(scalars[At::positive]);
    machine.negative = int64_t(scalars[At::negative]);
    machine.bias = scalars[At::bias];
    machine.delta = scalars[At::delta];
    machine.steps = scalars[At::steps];
    machine.saw_positive = scalars[At::saw_positive] != 0.0;
    machine.saw_negative = scalars[At::saw_negative] != 0.0;
    return machine;
}

static bool whole(double value) { return std::abs(value) < 9007199254740992.0 && value == std::floor(value); }

// The classes are whole numbers. All scalars are finite but for the violation, which is infinite while a machine has
// seen one class only.
static bool valid_scalars(const double* scalars) {
    bool valid = whole(scalars[At::positive]) && whole(scalars[At::negative]) && !std::isnan(scalars[At::delta]);
    for (size_t i : {At::bias, At::steps, At::saw_positive, At::saw_negative})
        valid = valid && std::isfinite(scalars[i]);
    return valid;
}

// The stored vectors. A free slot has zeros: its old vector has no meaning.
void LasvmEngine::put_vectors(nb::dict& out) {
    const size_t n = svm.slots();
    std::vector<double> x, index, starts = {0.0}, room;
    for (size_t slot = 0; slot < n; ++slot) {
        const Query row = svm.points.query(slot, room);
        if (svm.used(slot)) {
            x.insert(x.end(), row.x, row.x + row.n);
            if (svm.points.sparse()) index.insert(index.end(), row.index, row.index + row.n);
        } else if (!svm.points.sparse()) {
            x.resize(x.size() + row.n, 0.0);
        }
        starts.push_back(double(x.size()));
    }
    if (svm.points.sparse()) {
        const size_t stored = index.size();
        out["index"] = array({stored}, std::move(index));
        out["starts"] = array({n + 1}, std::move(starts));
        out["x"] = array({stored}, std::move(x));
    } else {
        out["x"] = array({n, svm.points.columns()}, std::move(x));
    }
}

nb::dict LasvmEngine::state() {
    const OneCall one = one_call();
    const size_t n = svm.slots(), M = svm.machines.size();
    nb::dict out;
    std::vector<double> tables[4], scalars;
    for (const Machine& m : svm.machines) {
        tables[0].insert(tables[0].end(), m.alpha.begin(), m.alpha.end());
        // Nothing reads the gradient of a vector that is not in the machine's set.
        for (size_t i = 0; i < n; ++i) tables[1].push_back(m.contains(i) ? m.gradient[i] : 0.0);
        tables[2].insert(tables[2].end(), m.lower.begin(), m.lower.end());
        tables[3].insert(tables[3].end(), m.upper.begin(), m.upper.end());
        const std::vector<double> own = scalars_of(m);
        scalars.insert(scalars.end(), own.begin(), own.end());
    }
    for (size_t which = 0; which < 4; ++which) out[slot_arrays[which]] = array({M, n}, std::move(tables[which]));
    out["machines"] = array({M, At::count}, std::move(scalars));
    out["labels"] = array({n}, std::vector<double>(svm.labels.begin(), svm.labels.end()));
    out["weights"] = array({n}, std::vector<double>(svm.weights));
    put_vectors(out);
    return out;
}

// The arrays of a saved state, which are consistent if `valid`.
struct LasvmEngine::SavedArrays {
    LasvmTable X;
    In1<double> labels, weights;
    In2<double> machines;
    std::vector<In2<double>> tables;  // as in slot_arrays

    explicit SavedArrays(nb::dict state)
        : X(state["rows"]),
          labels(nb::cast<In1<double>>(state["labels"])),
          weights(nb::cast<In1<double>>(state["weights"])),
          machines(nb::cast<In2<double>>(state["machines"])) {
        for (const char* name : slot_arrays) tables.push_back(nb::cast<In2<double>>(state[name]));
    }
    size_t slots() const { return labels.shape(0); }
    size_t count() const { return machines.shape(0); }

    bool valid() const {
        const size_t n = slots();
        return X.rows == n && weights.shape(0) == n && machines.shape(1) == At::count && X.indices_rise() &&
               X.finite() && valid_tables() && valid_examples() && valid_machines();
    }

 private:
    bool valid_tables() const {
        for (const In2<double>& table : tables) {
            if (table.shape(0) != count() || table.shape(1) != slots()) return false;
            if (!std::all_of(table.data(), table.data() + table.size(), [](double x) { return std::isfinite(x); }))
                return false;
        }
        return true;
    }
    bool valid_examples() const {
        for (size_t i = 0; i < slots(); ++i) {
            const double weight = weights.data()[i];
            if (!whole(labels.data()[i]) || !std::isfinite(weight) || weight < 0.0) return false;
        }
        return true;
    }
    bool valid_machines() const {
        for (size_t m = 0; m < count(); ++m)
            if (!valid_scalars(machines.data() + m * At::count)) return false;
        return true;
    }
};

void LasvmEngine::set_state(nb::dict state) {
    const SavedArrays saved(state);
    if (!fits(saved.X) || !saved.valid()) raise("ModelFileError", "the machine's arrays do not fit together");
    const size_t n = saved.slots();
    std::vector<double> room;
    for (size_t slot = 0; slot < n; ++slot) {
        svm.points.push(query(saved.X, slot, room));
        svm.labels.push_back(int64_t(saved.labels.data()[slot]));
        svm.weights.push_back(saved.weights.data()[slot]);
    }
    for (size_t m = 0; m < saved.count(); ++m) {
        Machine machine = machine_of(saved.machines.data() + m * At::count);
        for (size_t which = 0; which < saved.tables.size(); ++which) {
            const double* const of_machine = saved.tables[which].data() + m * n;
            slot_array(machine, which).assign(of_machine, of_machine + n);
        }
        svm.machines.push_back(std::move(machine));
    }
    svm.restore();
}

}  // namespace onepass
