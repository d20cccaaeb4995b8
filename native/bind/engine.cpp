#include "bind/engine.hpp"

#include <algorithm>
#include <bit>
#include <cfloat>

#include "bind/name_lists.hpp"
#include "core/rules.hpp"

namespace onepass {

Engine::Engine(const std::string& task, nb::dict rule, nb::dict options, bool tables)
    : features(nb::cast<int>(options["hash_bits"])) {
    model.task = value_of<Task>("task", nb::cast(task));
    model.w.output_each = model.task == Task::multilabel;
    rule_text = nb::cast<std::string>(rule["text"]);
    take_formula(rule);
    model.uses_ww = nb::cast<bool>(rule["uses_ww"]) || model.task == Task::oneclass;
    model.tube = nb::cast<double>(rule["tube"]);
    model.constant = nb::cast<double>(options["constant"]);
    model.bias_in_norm = nb::cast<bool>(options["bias_in_norm"]);
    model.w.average.start(value_of<Averaging>("averaging", options["averaging"]),
                          nb::cast<double>(options["average_from"]));
    model.against = value_of<Against>("multiclass", options["against"]);
    model.roots = nb::cast<std::vector<double>>(options["roots"]);
    model.w.l1.on = nb::cast<bool>(rule["uses_soft"]);
    model.w.l1.threshold = nb::cast<double>(rule["theta"]);
    model.w.p_norm.p = nb::cast<double>(rule["geometry"]);
    model.w.batch.size = nb::cast<double>(rule["batch_size"]);
    model.w.batch.mean = nb::cast<bool>(rule["mean"]);
    model.w.p_norm.ball = nb::cast<double>(rule["ball"]);
    model.coordinates = value_of<Coordinates>("coordinates", rule["coordinates"]);
    model.clips = model.task == Task::regress && nb::cast<bool>(rule["clips"]);
    std::vector<Plane> kinds;  // (start, odd, dead) of what the rule keeps of every weight
    for (nb::handle each : nb::cast<nb::list>(rule["planes"])) {
        nb::tuple kind = nb::cast<nb::tuple>(each);
        kinds.push_back({nb::cast<double>(kind[0]), nb::cast<bool>(kind[1]), nb::cast<double>(kind[2])});
    }
    if (!kinds.empty()) model.w.set_planes(std::move(kinds), nb::cast<size_t>(rule["row_planes"]));
    if (nb::object given = rule["spread"]; !given.is_none()) {
        nb::dict spread = nb::cast<nb::dict>(given);
        Covariance& sigma = model.w.sigma;
        sigma.on = true;
        sigma.full = nb::cast<bool>(spread["full"]);
        sigma.form = value_of<Form>("form", spread["form"]);
        sigma.start = nb::cast<double>(spread["start"]);
        sigma.precisions = nb::cast<bool>(spread["precisions"]);
        sigma.forgets = nb::cast<bool>(spread["forgets"]);
        sigma.drift = nb::cast<double>(spread["drift"]);
        sigma.largest = nb::cast<double>(spread["largest"]);
        sigma.vaw = nb::cast<bool>(spread["vaw"]);
        sigma.max_dim = nb::cast<size_t>(spread["max_dim"]);
        sigma.shared = nb::cast<bool>(rule["sees_all_scores"]);
        sigma.constants = model.constant != 0.0;
        sigma.begin();
    }
    if (nb::cast<bool>(options["pocket"])) model.w.pocket.start();
    model.calibrated = nb::cast<bool>(options["calibrated"]);
    model.w.pocket.ratchet = nb::cast<bool>(options["ratchet"]);
    model.w.votes.max_vectors = nb::cast<double>(options["votes"]);
    model.w.votes.on = model.w.votes.max_vectors > 0.0;
    max_features = nb::cast<size_t>(options["max_features"]);
    on_new_label = nb::none();
    to_row = options["to_row"];
    if (features.hashed()) require_room(features.slots());
    if (features.hashed() && tables) {
        require_memory(features.slots(), model.w.outputs, "ParameterError");
        model.w.set_features(features.slots());
    }
    model.size_scratch();
}

// The function that answers each round, with its parameters and slots: compiled, a C function of the user, or Python.
void Engine::take_formula(nb::dict rule) {
    const bool all_scores = nb::cast<bool>(rule["sees_all_scores"]);
    const auto slots = nb::cast<std::vector<double>>(rule["slots"]);
    std::vector<double> params;
    if (const uintptr_t address = nb::cast<uintptr_t>(rule["cfunc"])) {
        params = nb::cast<std::vector<double>>(rule["params"]);
        model.step = reinterpret_cast<StepFn>(address);
    } else if (const auto name = nb::cast<std::string>(rule["compiled"]); !name.empty()) {
        const rules::Entry* entry = rules::find(name);
        if (!entry || count_names(entry->slots) != slots.size())
            raise("ParameterError", rule_text + " has no compiled formula " + name + " with its slots");
        params = parameters_of(rule_text, entry->parameters, nb::cast<nb::dict>(rule["params"]));
        model.step = entry->step;
        if (all_scores) model.solve = entry->solve;
    } else {
        python_ = true;
        callback_ = {rule["step"], rule["solve"], int(slots.size())};
        model.step = python_step;
        if (all_scores) model.solve = python_solve;
    }
    if (params.size() > max_params || slots.size() > max_slots)
        raise("ParameterError", "a rule may have at most 16 native parameters and 8 state slots");
    std::copy(params.begin(), params.end(), model.params);
    std::copy(slots.begin(), slots.end(), model.state);
    model.slots = int(slots.size());
}

void Engine::Owned::refuse() {
    lock.release();
    PyErr_SetString(PyExc_RuntimeError, "a model cannot be used from inside its own step or its own input");
    throw nb::python_error();
}

void Engine::raise_row(const char* kind, size_t row, const std::string& why) {
    const std::string message = "row " + std::to_string(row) + ": " + why;
    nb::object error = nb::module_::import_("onepass.errors").attr(kind)(message, row);
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
    throw nb::python_error();
}

void Engine::refuse(const Outcome& outcome) const {
    const std::string row = std::to_string(outcome.row), column = std::to_string(outcome.column);
    if (PyErr_Occurred()) throw nb::python_error();
    switch (outcome.status) {
        case Status::not_finite:
            raise("InputError",
                  "X must hold finite numbers, but X[" + row + ", " + column + "] is " +
                      (std::isnan(outcome.value) ? "NaN" : (outcome.value > 0 ? "infinity" : "-infinity")) +
                      "; drop or impute the row. Nothing of this call was learned");
        case Status::bad_index:
            if (outcome.column > int64_t(most_columns))
                raise("FeatureError", "X has column index " + column + " in row " + row +
                                          ", but a linear model has at most " + std::to_string(most_columns) +
                                          " features; hash them (hash_bits)");
            raise("InputError", "X has column index " + column + " in row " + row +
                                    ", outside its shape; build it with scipy.sparse, which checks");
        case Status::full:
            raise_row("FullError", outcome.row,
                      "the voted readout already keeps max_vectors updates; raise it, or use readout='average', which "
                      "needs no more memory with time");
        case Status::indefinite:
            raise_row("NumericalError", outcome.row,
                      "the covariance of " + rule_text +
                          " is no longer positive definite; scale the features to similar sizes, or choose a larger "
                          "noise (lam), less forgetting or, for rls, form='chol'");
        case Status::bad_starts: raise("InputError", "X.indptr is damaged at row " + row);
        default: break;
    }
    raise_row("NumericalError", outcome.row,
              "the update of " + rule_text + " overflows; scale the features down or choose smaller steps");
}

// A float64 vector through the buffer protocol; false for anything else.
bool Engine::read_vector(PyObject* x, Read& row) {
    if (!PyObject_CheckBuffer(x)) return false;
    if (PyObject_GetBuffer(x, &row.view, PyBUF_FORMAT | PyBUF_ND) != 0) {
        PyErr_Clear();
        return false;
    }
    const char* format = row.view.format ? row.view.format : "B";
    if (row.view.ndim != 1 || row.view.shape[0] == 0 || row.view.itemsize != 8 ||
        !(format[0] == 'd' && format[1] == 0)) {
        PyBuffer_Release(&row.view);
        row.view.obj = nullptr;
        return false;
    }
    row.x = static_cast<const double*>(row.view.buf);
    row.n = size_t(row.view.shape[0]);
    return true;
}

void Engine::require_judge() const {
    if (model.w.pocket.ratchet && !model.errors)
        raise("ParameterError",
              "readout='pocket(ratchet=true)' judges weights on a stored set, which a stream has not; use fit, "
              "LinearModel.judged_by, or readout='pocket'");
}

void Engine::require_spread() const {
    if (!model.w.sigma.on)
        raise("ParameterError", rule_text + " keeps no variances; use a second-order rule such as rls or arow");
}

void Engine::require_room(size_t count) const {
    const Covariance& sigma = model.w.sigma;
    if (sigma.admits(count)) return;
    raise("FeatureError", rule_text + " keeps a covariance of every two of its features, up to max_dim=" +
                              std::to_string(sigma.max_dim) + " with the intercept; " + std::to_string(count) +
                              " features would be too many. Use a rule with covariance='diagonal', or raise max_dim");
}

void Engine::read(nb::handle x, Read& row, bool learning) {
    if (learning) require_judge();
    const bool mapping = PyDict_Check(x.ptr());
    if (!mapping && !read_vector(x.ptr(), row)) {
        row.keep = to_row(x);  // a float64 vector, a mapping, or (indices, values, columns[, streamed]) of a sparse row
        if (PyTuple_Check(row.keep.ptr())) {
            nb::tuple parts = nb::cast<nb::tuple>(row.keep);
            auto index = nb::cast<Vector<int64_t>>(parts[0]);
            auto value = nb::cast<Vector<double>>(parts[1]);
            scratch_.clear();
            scratch_.index.assign(index.data(), index.data() + index.shape(0));
            scratch_.value.assign(value.data(), value.data() + value.shape(0));
            row.columns = nb::cast<size_t>(parts[2]);
            row.streamed = parts.size() > 3;
            row.n = scratch_.index.size();
        } else if (!read_vector(row.keep.ptr(), row)) {
            features.read(row.keep, scratch_, model.w.cells.data(), model.w.pitch);
            row.n = scratch_.index.size();
        }
    } else if (mapping) {
        features.read(x, scratch_, model.w.cells.data(), model.w.pitch);
        row.n = scratch_.index.size();
    }
    if (row.x || row.columns || row.streamed) {
        row.dense = row.x != nullptr;
        const double* values = row.dense ? row.x : scratch_.value.data();
        bool sound = true;
        for (size_t i = 0; i < row.n; ++i) sound &= std::abs(values[i]) <= DBL_MAX;  // false for NaN
        for (size_t i = 0; i < row.n && !sound; ++i)
            if (!std::isfinite(values[i]))
                raise("InputError", "x must hold finite numbers, but x[" +
                                        std::to_string(row.dense ? int64_t(i) : scratch_.index[i]) + "] is " +
                                        std::to_string(values[i]));
        const size_t width = row.dense ? row.n : row.columns;
        const bool started = columns > 0 && !features.hashed();
        if (features.size() > 0 && !positional)
            raise("FeatureError",
                  "this model has learned named features; give it a mapping of names to numbers, not a row");
        if (features.hashed() && width > features.slots())
            raise("FeatureError", "x has " + std::to_string(width) + " features, but hash_bits leaves room for " +
                                      std::to_string(features.slots()) + "; raise hash_bits");
        if (started && width != columns && !row.streamed)
            raise("FeatureError", "x has " + std::to_string(width) + " features, but this model has learned rows of " +
                                      std::to_string(columns));
        return;
    }
    if (positional && features.size() == 0 && !features.hashed())
        raise("FeatureError", "this model has learned rows of " + std::to_string(model.w.features) +
                                  " unnamed features; give it such a row, or fit it on a data frame to have names");
    if (learning || scratch_.unknown.empty()) return;
    leave_out([](int64_t index) { return index >= 0; }, row);
}

// A reader ignores features that it has never seen: their weight is zero.
template <class Known>
void Engine::leave_out(const Known& known, Read& row) {
    size_t kept = 0;
    for (size_t i = 0; i < row.n; ++i)
        if (known(scratch_.index[i])) {
            scratch_.index[kept] = scratch_.index[i];
            scratch_.value[kept++] = scratch_.value[i];
        }
    row.n = kept;
}

double Engine::answer(nb::handle y) {
    if (model.task == Task::oneclass) return 0.0;  // there is nothing to answer
    if (model.task == Task::regress) {
        const double real = real_of(y.ptr());
        if ((real == -1.0 && PyErr_Occurred()) || !std::isfinite(real) || PyUnicode_Check(y.ptr())) {
            PyErr_Clear();
            raise("LabelError", "y must be a finite number, got " + text_of(y));
        }
        return real;
    }
    PyObject* index = PyDict_GetItemWithError(labels.ptr(), y.ptr());
    if (index) return double(PyLong_AsSsize_t(index));
    if (PyErr_Occurred()) {
        PyErr_Clear();
        raise("LabelError", "a label must be hashable, got " + text_of(y) + " (" + Py_TYPE(y.ptr())->tp_name + ")");
    }
    return nb::cast<double>(on_new_label(y));
}

void Engine::teach(Read& row, double y, double importance, double target, const uint8_t* set, double base) {
    importance += 0.0;  // of -0.0, which would mean an example that is only predicted, 0
    const size_t before = model.w.features;
    const bool was_positional = positional;
    const size_t columns_before = columns;
    if (row.dense || row.columns || row.streamed) {
        const size_t wanted = row.dense ? row.n : row.columns;
        require_room(wanted);
        if (wanted > before) require_memory(wanted, model.w.outputs, "FeatureError");
        positional = true;
        columns = wanted;
        row.streamed ? model.w.reserve_features(columns) : model.w.set_features(columns);
    } else {
        const size_t wanted = features.size() + scratch_.unknown.size();
        if (!features.hashed()) require_room(wanted);
        if (!features.hashed() && wanted > before) require_memory(wanted, model.w.outputs, "FeatureError");
        row.added = features.admit(scratch_);
        if (!features.hashed()) model.w.set_features(features.size());
    }
    if (model.w.touched.on) touch(row.dense ? nullptr : scratch_.index.data(), row.n);
    const RuleScope scope(python_ ? &callback_ : nullptr);
    Outcome outcome;
    if (row.dense) {
        const Table X{row.x, 1, row.n};
        outcome = loops->learn_table(model, X, Answers{&y, &importance, &target, set, nullptr, &base});
    } else {
        outcome.status = loops->learn_one(model, scratch_.value.data(), scratch_.index.data(), row.n, y, importance,
                                          target, set, base);
    }
    if (outcome.status == Status::ok) return;
    if (outcome.status == Status::not_finite) outcome.status = Status::overflow;
    features.forget(row.added);
    if (!features.hashed()) model.w.drop_features(before);
    positional = was_positional;
    columns = columns_before;
    refuse(outcome);
}

static void check_importance(double importance) {
    if (!(importance >= 0.0 && std::isfinite(importance)))
        raise("InputError", "importance must be a finite number >= 0, got " + std::to_string(importance));
}

void Engine::learn_one(nb::handle x, nb::handle y, nb::handle weight, double base) {
    const double importance = real_of(weight.ptr());
    if (importance == -1.0 && PyErr_Occurred()) {
        PyErr_Clear();
        raise("InputError", "importance must be a finite number >= 0, got " + text_of(weight));
    }
    check_importance(importance);
    if (model.task == Task::multilabel) {
        require_base(base, true);
        return learn_set(x, y, importance);
    }
    auto lock = own();
    Read row;
    read(x, row, true);
    PyObject* index = model.task == Task::classify ? PyDict_GetItemWithError(labels.ptr(), y.ptr()) : nullptr;
    if (index || model.task != Task::classify) {
        require_base(base, true);
        teach(row, index ? double(PyLong_AsSsize_t(index)) : answer(y), importance, 1.0, nullptr, base);
        return;
    }
    PyErr_Clear();  // not hashable: answer() says so
    Growing growing(*this, 1);
    const double label = answer(y);
    require_base(base, true);
    teach(row, label, importance, 1.0, nullptr, base);
    growing.commit();
}

void Engine::learn_direction(nb::handle x, double target, double importance) {
    check_importance(importance);
    if (!std::isfinite(target)) raise("InputError", "the target must be finite, got " + std::to_string(target));
    auto lock = own();
    Read row;
    read(x, row, true);
    teach(row, 1.0, importance, target);
}

void Engine::check_one(nb::handle x) {
    auto lock = own();
    Read row;
    read(x, row, true);
}

void Engine::scores_of(nb::handle x, double base, double* out) {
    Read row;
    read(x, row, false);
    if (row.streamed) leave_out([&](int64_t index) { return size_t(index) < model.w.features; }, row);
    const bool unknown = (row.dense || row.columns) && model.w.features == 0;  // none of its features has a weight yet
    const size_t weighed = std::min(row.n, model.w.features);                  // what was never learned weighs nothing
    if (row.dense && !unknown) loops->score_table(model, Table{row.x, 1, weighed}, &base, out);
    else loops->score_one(model, scratch_.value.data(), scratch_.index.data(), unknown ? 0 : row.n, base, out);
}

nb::object Engine::score_one(nb::handle x, double base) {
    auto lock = own();
    require_base(base, false);
    std::vector<double> scores(model.w.outputs);
    scores_of(x, base, scores.data());
    if (scores.size() == 1) return nb::float_(scores[0]);
    nb::list out;
    for (double s : scores) out.append(s);
    return out;
}

nb::object Engine::predict_one(nb::handle x, double base) {
    auto lock = own();
    require_base(base, false);
    double few[32];
    std::vector<double> many;
    double* scores = few;
    if (model.w.outputs > 32) {
        many.resize(model.w.outputs);
        scores = many.data();
    }
    scores_of(x, base, scores);
    if (model.task == Task::multilabel) {
        nb::set in;
        for (size_t r = 0; r < nb::len(classes); ++r)
            if (scores[r] > 0.0) in.add(nb::object(classes[r]));
        return in;
    }
    if (model.task != Task::classify) return nb::float_(scores[0]);
    const size_t known = size_t(PyList_GET_SIZE(classes.ptr()));
    if (known == 0) return nb::none();
    size_t best = 0;
    if (model.w.outputs == 1) {
        best = scores[0] > 0.0 && known > 1 ? 1 : 0;
    } else {
        for (size_t r = 1; r < model.w.outputs; ++r)
            if (scores[r] > scores[best]) best = r;
    }
    return nb::borrow(PyList_GET_ITEM(classes.ptr(), Py_ssize_t(best)));
}

// x' Sigma x, one for each Sigma. A name that was never learned has a weight too: of the variance all start with.
nb::object Engine::variance_one(nb::handle x) {
    auto lock = own();
    require_spread();
    Read row;
    read(x, row, true);
    const Covariance& sigma = model.w.sigma;
    const bool first = model.w.features == 0;  // nothing is known of any feature yet
    double unknown = 0.0;
    const double* values = row.dense ? row.x : scratch_.value.data();
    std::vector<double> known_values;
    std::vector<int64_t> known;
    for (size_t i = 0; i < row.n; ++i) {
        const int64_t at = row.dense ? int64_t(i) : scratch_.index[i];
        if (at < 0 || first || size_t(at) >= model.w.features) {
            unknown += sigma.start * values[i] * values[i];
        } else {
            known.push_back(at);
            known_values.push_back(values[i]);
        }
    }
    std::vector<double> out(variances());
    const size_t weighed = std::min(row.n, model.w.features);
    if (row.dense && !first) loops->variance_table(model, Table{row.x, 1, weighed}, out.data());
    else loops->variance_one(model, known_values.data(), known.data(), known.size(), out.data());
    for (double& v : out) v += unknown;
    if (out.size() == 1) return nb::float_(out[0]);
    nb::list all;
    for (double v : out) all.append(v);
    return all;
}

nb::list Engine::row_of(nb::handle x) {
    auto lock = own();
    Read row;
    read(x, row, false);
    nb::list out;
    for (size_t i = 0; i < row.n; ++i) {
        if (row.dense) out.append(nb::make_tuple(i, row.x[i]));
        else out.append(nb::make_tuple(scratch_.index[i], scratch_.value[i]));
    }
    return out;
}

void Engine::set_features(size_t d) {
    require_room(d);
    require_memory(d, model.w.outputs, "FeatureError");
    model.w.set_features(d);
    positional = true;
    columns = d;
}

void Engine::admit_names(nb::list names) {
    auto lock = own();
    require_room(features.size() + nb::len(names));
    require_memory(features.size() + nb::len(names), model.w.outputs, "FeatureError");
    for (nb::handle name : names) features.append(name.ptr());
    model.w.reserve_features(features.size());
}

void Engine::hold_back(size_t known) {
    auto lock = own();
    model.w.sigma.registered = std::min(model.w.sigma.registered, known + model.w.sigma.constants);
}

void Engine::forget_names(size_t count) {
    auto lock = own();
    features.forget(count);
    model.w.drop_features(features.size());
}

}  // namespace onepass
