// One example: a mapping of names, a row of numbers, or a sparse row.
#include <algorithm>
#include <cfloat>

#include "bind/engine.hpp"

namespace onepass {

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

// What Python's `to_row` makes of an x that is neither a dict nor a float64 vector: a float64 vector, a mapping, or
// (indices, values, columns[, streamed]) of a sparse row.
void Engine::read_converted(nb::handle x, Read& row) {
    row.keep = to_row(x);
    if (!PyTuple_Check(row.keep.ptr())) {
        if (!read_vector(row.keep.ptr(), row)) read_mapping(row.keep, row);
        return;
    }
    nb::tuple parts = nb::cast<nb::tuple>(row.keep);
    auto index = nb::cast<Vector<int64_t>>(parts[0]);
    auto value = nb::cast<Vector<double>>(parts[1]);
    scratch_.clear();
    scratch_.index.assign(index.data(), index.data() + index.shape(0));
    scratch_.value.assign(value.data(), value.data() + value.shape(0));
    row.columns = nb::cast<size_t>(parts[2]);
    row.streamed = parts.size() > 3;
    row.n = scratch_.index.size();
}

void Engine::read_mapping(nb::handle x, Read& row) {
    features.read(x, scratch_, model.w.cells.data(), model.w.pitch);
    row.n = scratch_.index.size();
}

void Engine::require_finite(const Read& row) const {
    const double* values = row.dense ? row.x : scratch_.value.data();
    bool finite = true;
    for (size_t i = 0; i < row.n; ++i) finite &= std::abs(values[i]) <= DBL_MAX;  // false for NaN
    for (size_t i = 0; i < row.n && !finite; ++i)
        if (!std::isfinite(values[i]))
            raise("InputError", "x must hold finite numbers, but x[" +
                                    std::to_string(row.dense ? int64_t(i) : scratch_.index[i]) + "] is " +
                                    std::to_string(values[i]));
}

// Refuses a row of numbers that does not fit the rows or names learned so far.
void Engine::require_same_width(const Read& row) const {
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
}

// Reads an example and validates it. New names are registered later, when it is learned; for a prediction they are
// left out, since their weight is 0.
void Engine::read(nb::handle x, Read& row, bool learning) {
    if (learning) require_judge();
    if (PyDict_Check(x.ptr())) read_mapping(x, row);
    else if (!read_vector(x.ptr(), row)) read_converted(x, row);
    row.dense = row.x != nullptr;
    if (row.has_columns()) {
        require_finite(row);
        require_same_width(row);
        return;
    }
    if (positional && features.size() == 0 && !features.hashed())
        raise("FeatureError", "this model has learned rows of " + std::to_string(model.w.features) +
                                  " unnamed features; give it such a row, or fit it on a data frame to have names");
    if (learning || scratch_.new_names.empty()) return;
    leave_out([](int64_t index) { return index < 0; }, row);
}

template <class Unknown>
void Engine::leave_out(const Unknown& unknown, Read& row) {
    size_t count = 0;
    for (size_t i = 0; i < row.n; ++i) {
        if (unknown(scratch_.index[i])) continue;
        scratch_.index[count] = scratch_.index[i];
        scratch_.value[count++] = scratch_.value[i];
    }
    row.n = count;
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

// Registers the features of an example before it is learned.
void Engine::register_features(Read& row) {
    const size_t before = model.w.features;
    if (row.has_columns()) {
        const size_t wanted = row.dense ? row.n : row.columns;
        require_room(wanted);
        if (wanted > before) require_memory(wanted, model.w.outputs, "FeatureError");
        positional = true;
        columns = wanted;
        row.streamed ? model.w.reserve_features(columns) : model.w.set_features(columns);
    } else if (features.hashed()) {
        row.added = features.register_names(scratch_);
    } else {
        const size_t wanted = features.size() + scratch_.new_names.size();
        require_room(wanted);
        if (wanted > before) require_memory(wanted, model.w.outputs, "FeatureError");
        row.added = features.register_names(scratch_);
        model.w.set_features(features.size());
    }
    if (model.w.touched.on) touch(row.dense ? nullptr : scratch_.index.data(), row.n);
}

void Engine::teach(Read& row, double y, double importance, double target, const uint8_t* set, double base) {
    importance += 0.0;  // of -0.0, which would mean an example that is only predicted, 0
    const Registered before{model.w.features, columns, positional, model.t};
    register_features(row);
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
    features.unregister_names(row.added);
    if (!features.hashed()) model.w.drop_features(before.features);
    positional = before.positional;
    columns = before.columns;
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
    if (row.streamed) leave_out([&](int64_t index) { return size_t(index) >= model.w.features; }, row);
    const bool unknown = (row.dense || row.columns) && model.w.features == 0;  // no feature has a weight yet
    const size_t weighed = std::min(row.n, model.w.features);                  // the weight of the others is 0
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

}  // namespace onepass
