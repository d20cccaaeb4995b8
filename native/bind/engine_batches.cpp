// Batches of rows: learned whole or not at all, scored, looked at, kept as the set that a ratchet judges by.
#include <algorithm>

#include "bind/engine.hpp"
#include "bind/signal_watch.hpp"
#include "core/blocks.hpp"

namespace onepass {

template <class Batch>
static size_t stored(const Batch& X) {
    if constexpr (requires { X.nonzeros; }) return X.nonzeros;
    else return X.rows * X.columns;
}

template <class Batch>
static bool named(const Batch& X) {
    if constexpr (requires { X.named; }) return X.named;
    else return false;
}

// Rows of a stream or of names, among which features come up, rather than rows of a table.
template <class Batch>
static bool grows(const Batch& X) {
    if constexpr (requires { X.distinct; }) return X.named || X.distinct;
    else return false;
}

// How many columns the first rows reach, where they are rows of a stream with numbers for names: as many as these rows
// would have brought alone, whatever the width of their batch. They need not be well formed yet.
template <class Batch>
static size_t reached(const Batch& X, size_t rows) {
    if constexpr (requires { X.indices; }) {
        if (!grows(X) || X.named) return X.columns;
        const auto end = X.starts[rows];
        size_t width = 0;
        for (size_t at = 0; at < X.nonzeros && end > 0 && at < size_t(end); ++at)
            if (X.indices[at] >= 0) width = std::max(width, size_t(X.indices[at]) + 1);
        return std::min(width, X.columns);
    }
    return X.columns;
}

template <class Batch>
static bool sound(const Batch& X) {
    if constexpr (requires { X.sound; }) return X.sound;
    else return false;
}

template <class V>
static DenseBatch<V> part(const DenseBatch<V>& X, size_t from, size_t rows) {
    return {X.values + from * X.columns, rows, X.columns};
}

template <class V, class I>
static CsrBatch<V, I> part(CsrBatch<V, I> X, size_t from, size_t rows) {
    X.starts += from;
    X.rows = rows;
    return X;
}

static Answers part(Answers in, size_t from, size_t outputs) {
    for (const double** each : {&in.y, &in.importance, &in.target, &in.base})
        if (*each) *each += from;
    if (in.sets) in.sets += from * outputs;
    if (in.scores) in.scores += from * outputs;
    return in;
}

// Calls run(from, rows) with some rows after the other, few enough that signals are looked for in time; the outcome of
// the first that fails.
template <class Batch, class Run>
static Outcome in_pieces(const Model& model, const Batch& X, SignalWatch& watch, const Run& run) {
    constexpr size_t enough = 1 << 20;
    const Weights& w = model.w;
    size_t each = (stored(X) / std::max<size_t>(X.rows, 1) + 1) * w.pitch;  // multiplications of a row, roughly
    if (w.sigma.full) each = X.columns * X.columns * w.outputs + 1;
    if (w.votes.on) each = enough;
    const size_t rows = std::max<size_t>(enough / each, 1);
    for (size_t from = 0; from < X.rows; from += rows) {
        const size_t some = std::min(rows, X.rows - from);
        Outcome outcome = run(from, some);
        outcome.row += from;
        if (outcome.status != Status::ok) return outcome;
        if (from + some < X.rows && watch.interrupted(enough)) return {Status::interrupted, from + some, 0, 0.0};
    }
    return {};
}

template <class V>
static void touch(Weights& w, const DenseBatch<V>& X) {
    for (size_t j = 0; j < std::min(X.columns, w.features); ++j) w.touched.mark(j);
}

// The indices need not be well formed yet.
template <class V, class I>
static void touch(Weights& w, const CsrBatch<V, I>& X) {
    for (size_t at = 0; at < X.nonzeros; ++at)
        if (X.indices[at] >= 0 && size_t(X.indices[at]) < w.features) w.touched.mark(size_t(X.indices[at]));
}

// Looks for malformed rows from a row on.
template <class Batch>
static Outcome check_rows(const Batch& X, size_t from = 0) {
    Outcome outcome =
        by_blocks(part(X, from, X.rows - from), [](const auto& block, size_t) { return loops->check(block, 0); });
    outcome.row += from;
    return outcome;
}

// Is only one row refused, though it is well formed?
static bool refuses_one_row(Status status) { return status == Status::overflow || status == Status::full; }

// Do the rows before the outcome's row stay learned?
static bool keeps_rows_before(Status status) {
    return status == Status::ok || status == Status::interrupted || refuses_one_row(status);
}

template <class Batch>
void Engine::learn(Batch X, nb::object y, nb::object importance, nb::object target, nb::object sets, nb::object scores,
                   nb::object base) {
    auto lock = own();
    require_judge();
    std::vector<Vector<double>> keep;
    Answers in{numbers(y, X.rows, "y", keep),
               numbers(importance, X.rows, "importance", keep),
               numbers(target, X.rows, "target", keep),
               nullptr,
               nullptr,
               read_bases(base, X.rows, known_classes(true), keep)};
    nb::ndarray<const uint8_t, nb::ndim<2>, nb::c_contig, nb::device::cpu> marks;
    if (!sets.is_none()) {
        marks = nb::cast<decltype(marks)>(sets);
        if (marks.shape(0) != X.rows || marks.shape(1) != model.w.outputs)
            raise("InputError", "the label sets have the wrong shape");
        in.sets = marks.data();
    } else if (model.task == Task::multilabel) {
        raise("LabelError", "multilabel learning needs label sets");
    }
    if (!scores.is_none()) {
        Out out = nb::cast<Out>(scores);
        if (out.shape(0) != X.rows || out.shape(1) != model.w.outputs)
            raise("InputError", "scores has the wrong shape");
        in.scores = out.data();
    }
    for (size_t i = 0; i < X.rows; ++i) {
        if (in.y && !std::isfinite(in.y[i]))
            raise("LabelError", "y must hold finite numbers, but y[" + std::to_string(i) + "] is not");
        if (in.y && model.task == Task::classify && !(in.y[i] >= 0.0 && in.y[i] < double(nb::len(classes))))
            raise("LabelError", "y must hold class indices, but y[" + std::to_string(i) + "] is outside the classes");
        if (in.importance && !(in.importance[i] >= 0.0 && std::isfinite(in.importance[i])))
            raise("InputError", "importance must be finite and >= 0, but entry " + std::to_string(i) + " is " +
                                    std::to_string(in.importance[i]));
    }
    const size_t features_before = model.w.features;
    X.columns = std::max(reached(X, X.rows), std::min(features_before, X.columns));
    require_room(X.columns);
    require_memory(X.columns, model.w.outputs, "FeatureError");
    const double t_before = model.t;
    const bool was_positional = positional;
    const size_t columns_before = columns;
    grows(X) ? model.w.reserve_features(X.columns) : model.w.set_features(X.columns);
    if (!named(X)) {
        positional = true;
        columns = X.columns;
    }
    if (model.w.touched.on)
        model.coordinates == Coordinates::adam ? touch(nullptr, X.columns) : onepass::touch(model.w, X);
    const RuleScope scope(python_ ? &callback_ : nullptr);
    SignalWatch watch;
    // A malformed row anywhere refuses the whole batch. If the weights take less memory than the batch, it is learned
    // at once, and a malformed row (its norm is not finite, which the round computes anyway) rolls the model back to a
    // copy. Otherwise the batch is validated first, and always with a full Sigma.
    const bool copy_first = !sound(X) && stored(X) >= model.w.numbers() && !model.w.sigma.full;
    Outcome outcome;
    auto learn_rows = [&] {
        outcome = in_pieces(model, X, watch, [&](size_t from, size_t rows) {
            return by_blocks(part(X, from, rows), [&](const auto& block, size_t row) {
                return loops->learn(model, block, part(in, from + row, model.w.outputs));
            });
        });
    };
    auto run = [&] {
        if (!copy_first) {
            if (!sound(X)) outcome = check_rows(X);
            if (outcome.status == Status::ok) learn_rows();
            return;
        }
        model.transaction.begin_batch(model);
        TransactionScope batch(model);
        learn_rows();
        if (refuses_one_row(outcome.status))
            if (const Outcome later = check_rows(X, outcome.row + 1); later.status != Status::ok) outcome = later;
        if (keeps_rows_before(outcome.status)) batch.commit();
    };
    if (python_) {
        run();
    } else {
        nb::gil_scoped_release release;
        run();
    }
    if (outcome.status == Status::ok) return;
    if (model.t == t_before) {
        model.w.drop_features(features_before);
        positional = was_positional;
        columns = columns_before;
    } else if (!named(X)) {
        columns = std::max(reached(X, outcome.row), std::min(features_before, X.columns));
        model.w.drop_features(std::max(columns, features_before));
    }
    refuse(outcome);
}

template <class Batch>
struct StoredSet {
    Batch X;
    std::vector<double> y, importance;

    static double judge(const Model& model, const void* set) {
        const auto* self = static_cast<const StoredSet*>(set);
        const double *y = self->y.data(), *importance = self->importance.empty() ? nullptr : self->importance.data();
        double sum = 0.0;
        by_blocks(self->X, [&](const auto& block, size_t row) {
            sum = loops->errors(model, block, y + row, importance ? importance + row : nullptr, sum);
            return Outcome();
        });
        return sum;
    }
};

template <class Batch>
void Engine::keep_set(const Batch& X, nb::object arrays, Vector<double> y, nb::object importance) {
    auto lock = own();
    const Outcome outcome = check_rows(X);
    if (outcome.status != Status::ok) refuse(outcome);
    auto set = std::make_shared<StoredSet<Batch>>(StoredSet<Batch>{X, {y.data(), y.data() + y.shape(0)}, {}});
    std::vector<Vector<double>> keep;
    if (const double* c = numbers(importance, X.rows, "importance", keep)) set->importance.assign(c, c + X.rows);
    if (set->y.size() != X.rows) raise("InputError", "y must hold a class for every row of the set");
    if (X.columns > model.w.features) set_features(X.columns);
    set_arrays_ = arrays;
    model.errors = StoredSet<Batch>::judge;
    model.set = set.get();
    set_ = std::move(set);
}

void Engine::flush() {
    auto lock = own();
    loops->finish_batch(model);
}

void Engine::forget_set() {
    auto lock = own();
    model.errors = nullptr;
    model.set = nullptr;
    set_.reset();
    set_arrays_.reset();
}

template <class Batch>
void Engine::check(const Batch& X) {
    auto lock = own();
    const Outcome outcome = check_rows(X);
    if (outcome.status != Status::ok) refuse(outcome);
}

template <class Batch>
void Engine::score(const Batch& X, Out scores, nb::object base) {
    auto lock = own();
    std::vector<Vector<double>> keep;
    const double* begins_at = read_bases(base, X.rows, known_classes(false), keep);
    if (scores.shape(0) != X.rows || scores.shape(1) != model.w.outputs)
        raise("InputError", "scores has the wrong shape");
    if (X.columns > model.w.features) raise("FeatureError", "X has more columns than the model has features");
    Outcome outcome;
    SignalWatch watch;
    {
        nb::gil_scoped_release release;
        if (!sound(X)) outcome = check_rows(X);
        if (outcome.status == Status::ok)
            outcome = in_pieces(model, X, watch, [&](size_t from, size_t rows) {
                return by_blocks(part(X, from, rows), [&](const auto& block, size_t row) {
                    loops->score(model, block, begins_at ? begins_at + from + row : nullptr,
                                 scores.data() + (from + row) * model.w.outputs);
                    return Outcome();
                });
            });
    }
    if (outcome.status != Status::ok) refuse(outcome);
}

template <class Batch>
void Engine::variance(const Batch& X, Out out) {
    auto lock = own();
    require_spread();
    if (out.shape(0) != X.rows || out.shape(1) != variances()) raise("InputError", "variances has the wrong shape");
    if (X.columns > model.w.features) raise("FeatureError", "X has more columns than the model has features");
    Outcome outcome;
    {
        nb::gil_scoped_release release;
        outcome = check_rows(X);
        if (outcome.status == Status::ok)
            by_blocks(X, [&](const auto& block, size_t row) {
                loops->variance(model, block, out.data() + row * variances());
                return Outcome();
            });
    }
    if (outcome.status != Status::ok) refuse(outcome);
}

#define ONEPASS_INSTANTIATE(...)                                                                                      \
    template void Engine::learn(__VA_ARGS__, nb::object, nb::object, nb::object, nb::object, nb::object, nb::object); \
    template void Engine::keep_set(const __VA_ARGS__&, nb::object, Vector<double>, nb::object);                       \
    template void Engine::check(const __VA_ARGS__&);                                                                  \
    template void Engine::variance(const __VA_ARGS__&, Out);                                                          \
    template void Engine::score(const __VA_ARGS__&, Out, nb::object);
ONEPASS_INSTANTIATE(DenseBatch<double>)
ONEPASS_INSTANTIATE(DenseBatch<float>)
ONEPASS_INSTANTIATE(CsrBatch<double, int32_t>)
ONEPASS_INSTANTIATE(CsrBatch<double, int64_t>)
ONEPASS_INSTANTIATE(CsrBatch<float, int32_t>)
ONEPASS_INSTANTIATE(CsrBatch<float, int64_t>)

}  // namespace onepass
