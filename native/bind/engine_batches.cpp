// Batches: learned as a whole or not at all, scored, checked, and stored as the set by which a ratchet judges.
#include <algorithm>

#include "bind/engine.hpp"
#include "bind/signal_watch.hpp"
#include "core/blocks.hpp"

namespace onepass {

template <class Batch>
static size_t count_stored(const Batch& X) {
    if constexpr (requires { X.nonzeros; }) return X.nonzeros;
    else return X.rows * X.columns;
}

// True if the columns are features with names.
template <class Batch>
static bool has_names(const Batch& X) {
    if constexpr (requires { X.named; }) return X.named;
    else return false;
}

// True if later batches may have more columns: the rows come from a stream, or their features have names.
template <class Batch>
static bool may_grow(const Batch& X) {
    if constexpr (requires { X.distinct; }) return X.named || X.distinct;
    else return false;
}

// True if another thread has validated the rows when it parsed them.
template <class Batch>
static bool is_validated(const Batch& X) {
    if constexpr (requires { X.validated; }) return X.validated;
    else return false;
}

// The number of columns that the first `rows` rows bring. A stream with column numbers is cut into batches by chance,
// so the width of the batch must not count: only the largest index does. The rows may be malformed.
template <class Batch>
static size_t columns_within(const Batch& X, size_t rows) {
    if constexpr (requires { X.indices; }) {
        if (!may_grow(X) || X.named) return X.columns;
        const auto end = X.starts[rows];
        size_t width = 0;
        for (size_t at = 0; at < X.nonzeros && end > 0 && at < size_t(end); ++at)
            if (X.indices[at] >= 0) width = std::max(width, size_t(X.indices[at]) + 1);
        return std::min(width, X.columns);
    }
    return X.columns;
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

// Calls run(from, rows) for one part of a batch after the other, and handles signals in between. Returns the first
// outcome that is not ok.
template <class Batch, class Run>
static Outcome in_parts(const Model& model, const Batch& X, SignalWatch& watch, const Run& run) {
    constexpr size_t work_of_part = 1 << 20;  // multiplications, roughly
    const Weights& w = model.w;
    size_t work_of_row = (count_stored(X) / std::max<size_t>(X.rows, 1) + 1) * w.pitch;
    if (w.sigma.full) work_of_row = X.columns * X.columns * w.outputs + 1;
    if (w.votes.on) work_of_row = work_of_part;
    const size_t rows = std::max<size_t>(work_of_part / work_of_row, 1);
    for (size_t from = 0; from < X.rows; from += rows) {
        const size_t count = std::min(rows, X.rows - from);
        Outcome outcome = run(from, count);
        outcome.row += from;
        if (outcome.status != Status::ok) return outcome;
        if (from + count < X.rows && watch.interrupted(work_of_part))
            return {Status::interrupted, from + count, 0, 0.0};
    }
    return {};
}

template <class V>
static void mark_touched(Weights& w, const DenseBatch<V>& X) {
    for (size_t j = 0; j < std::min(X.columns, w.features); ++j) w.touched.mark(j);
}

// The indices may be malformed.
template <class V, class I>
static void mark_touched(Weights& w, const CsrBatch<V, I>& X) {
    for (size_t at = 0; at < X.nonzeros; ++at)
        if (X.indices[at] >= 0 && size_t(X.indices[at]) < w.features) w.touched.mark(size_t(X.indices[at]));
}

// The first malformed row from row `from` on.
template <class Batch>
static Outcome validate(const Batch& X, size_t from = 0) {
    Outcome outcome =
        by_blocks(part(X, from, X.rows - from), [](const auto& block, size_t) { return loops->check(block, 0); });
    outcome.row += from;
    return outcome;
}

Answers Engine::read_answers(size_t rows, const BatchArguments& given, BatchArrays& arrays) const {
    Answers in{numbers(given.y, rows, "y", arrays.columns),
               numbers(given.importance, rows, "importance", arrays.columns),
               numbers(given.target, rows, "target", arrays.columns),
               nullptr,
               nullptr,
               read_bases(given.base, rows, known_classes(true), arrays.columns)};
    if (!given.sets.is_none()) {
        arrays.sets = nb::cast<LabelSets>(given.sets);
        if (arrays.sets.shape(0) != rows || arrays.sets.shape(1) != model.w.outputs)
            raise("InputError", "the label sets have the wrong shape");
        in.sets = arrays.sets.data();
    } else if (model.task == Task::multilabel) {
        raise("LabelError", "multilabel learning needs label sets");
    }
    if (!given.scores.is_none()) {
        Out out = nb::cast<Out>(given.scores);
        if (out.shape(0) != rows || out.shape(1) != model.w.outputs) raise("InputError", "scores has the wrong shape");
        in.scores = out.data();
    }
    return in;
}

void Engine::require_valid(const Answers& in, size_t rows) const {
    for (size_t i = 0; i < rows; ++i) {
        if (in.y && !std::isfinite(in.y[i]))
            raise("LabelError", "y must hold finite numbers, but y[" + std::to_string(i) + "] is not");
        if (in.y && model.task == Task::classify && !(in.y[i] >= 0.0 && in.y[i] < double(nb::len(classes))))
            raise("LabelError", "y must hold class indices, but y[" + std::to_string(i) + "] is outside the classes");
        if (in.importance && !(in.importance[i] >= 0.0 && std::isfinite(in.importance[i])))
            raise("InputError", "importance must be finite and >= 0, but entry " + std::to_string(i) + " is " +
                                    std::to_string(in.importance[i]));
    }
}

// Registers the columns of a batch before it is learned.
template <class Batch>
void Engine::register_columns(const Batch& X) {
    require_room(X.columns);
    require_memory(X.columns, model.w.outputs, "FeatureError");
    may_grow(X) ? model.w.reserve_features(X.columns) : model.w.set_features(X.columns);
    if (!has_names(X)) {
        positional = true;
        columns = X.columns;
    }
    if (!model.w.touched.on) return;
    model.coordinates == Coordinates::adam ? touch(nullptr, X.columns) : mark_touched(model.w, X);
}

// Unregisters the columns that only row `row` of a batch, or a later one, has.
template <class Batch>
void Engine::unregister_columns(const Batch& X, size_t row, const Registered& before) {
    if (model.t == before.t) {
        model.w.drop_features(before.features);
        positional = before.positional;
        columns = before.columns;
    } else if (!has_names(X)) {
        columns = std::max(columns_within(X, row), std::min(before.features, X.columns));
        model.w.drop_features(std::max(columns, before.features));
    }
}

template <class Batch>
Outcome Engine::learn_rows(const Batch& X, const Answers& in, SignalWatch& watch) {
    return in_parts(model, X, watch, [&](size_t from, size_t rows) {
        return by_blocks(part(X, from, rows), [&](const auto& block, size_t row) {
            return loops->learn(model, block, part(in, from + row, model.w.outputs));
        });
    });
}

// True if the outcome refuses one well-formed row only.
static bool refuses_one_row(Status status) { return status == Status::overflow || status == Status::full; }

// True if the rows before the outcome's row stay learned.
static bool keeps_rows_before(Status status) {
    return status == Status::ok || status == Status::interrupted || refuses_one_row(status);
}

// Learns all rows, or none if any is malformed. An overflow refuses its own row only: the rows before it stay learned.
//
// There are two ways. The batch is validated first. Or it is learned at once, and if a row is malformed, the
// transaction restores the model from a copy: the loops find such a row without extra work, since its norm is not
// finite. The copy is cheaper if the model is smaller than the batch. A full covariance is never copied.
template <class Batch>
Outcome Engine::learn_all_or_none(const Batch& X, const Answers& in, SignalWatch& watch) {
    if (is_validated(X)) return learn_rows(X, in, watch);
    if (model.w.sigma.full || count_stored(X) < model.w.numbers()) {
        const Outcome malformed = validate(X);
        return malformed.status == Status::ok ? learn_rows(X, in, watch) : malformed;
    }
    model.transaction.begin_batch(model);
    RollbackGuard batch(model);
    const Outcome outcome = learn_rows(X, in, watch);
    const Outcome malformed = refuses_one_row(outcome.status) ? validate(X, outcome.row + 1) : Outcome();
    if (malformed.status != Status::ok) return malformed;
    if (keeps_rows_before(outcome.status)) batch.commit();
    return outcome;
}

template <class Batch>
void Engine::learn(Batch X, const BatchArguments& given) {
    auto lock = own();
    require_judge();
    BatchArrays arrays;
    const Answers in = read_answers(X.rows, given, arrays);
    require_valid(in, X.rows);
    const Registered before{model.w.features, columns, positional, model.t};
    X.columns = std::max(columns_within(X, X.rows), std::min(before.features, X.columns));
    register_columns(X);
    const RuleScope scope(python_ ? &callback_ : nullptr);
    SignalWatch watch;
    Outcome outcome;
    run_unlocked(python_, [&] { outcome = learn_all_or_none(X, in, watch); });
    if (outcome.status == Status::ok) return;
    unregister_columns(X, outcome.row, before);
    refuse(outcome);
}

// The set by which a ratchet judges weights.
template <class Batch>
struct StoredSet {
    Batch X;
    std::vector<double> y, importance;

    static double count_errors(const Model& model, const void* set) {
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
    const Outcome outcome = validate(X);
    if (outcome.status != Status::ok) refuse(outcome);
    auto set = std::make_shared<StoredSet<Batch>>(StoredSet<Batch>{X, {y.data(), y.data() + y.shape(0)}, {}});
    std::vector<Vector<double>> columns_given;
    if (const double* c = numbers(importance, X.rows, "importance", columns_given))
        set->importance.assign(c, c + X.rows);
    if (set->y.size() != X.rows) raise("InputError", "y must hold a class for every row of the set");
    if (X.columns > model.w.features) set_features(X.columns);
    set_arrays_ = arrays;
    model.errors = StoredSet<Batch>::count_errors;
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
    const Outcome outcome = validate(X);
    if (outcome.status != Status::ok) refuse(outcome);
}

template <class Batch>
void Engine::score(const Batch& X, Out scores, nb::object base) {
    auto lock = own();
    std::vector<Vector<double>> arrays;
    const double* bases = read_bases(base, X.rows, known_classes(false), arrays);
    if (scores.shape(0) != X.rows || scores.shape(1) != model.w.outputs)
        raise("InputError", "scores has the wrong shape");
    if (X.columns > model.w.features) raise("FeatureError", "X has more columns than the model has features");
    Outcome outcome;
    SignalWatch watch;
    run_unlocked(false, [&] {
        if (!is_validated(X)) outcome = validate(X);
        if (outcome.status != Status::ok) return;
        outcome = in_parts(model, X, watch, [&](size_t from, size_t rows) {
            return by_blocks(part(X, from, rows), [&](const auto& block, size_t row) {
                loops->score(model, block, bases ? bases + from + row : nullptr,
                             scores.data() + (from + row) * model.w.outputs);
                return Outcome();
            });
        });
    });
    if (outcome.status != Status::ok) refuse(outcome);
}

template <class Batch>
void Engine::variance(const Batch& X, Out out) {
    auto lock = own();
    require_spread();
    if (out.shape(0) != X.rows || out.shape(1) != variances()) raise("InputError", "variances has the wrong shape");
    if (X.columns > model.w.features) raise("FeatureError", "X has more columns than the model has features");
    Outcome outcome;
    run_unlocked(false, [&] {
        outcome = validate(X);
        if (outcome.status != Status::ok) return;
        by_blocks(X, [&](const auto& block, size_t row) {
            loops->variance(model, block, out.data() + row * variances());
            return Outcome();
        });
    });
    if (outcome.status != Status::ok) refuse(outcome);
}

#define ONEPASS_INSTANTIATE(...)                                                                \
    template void Engine::learn(__VA_ARGS__, const BatchArguments&);                            \
    template void Engine::keep_set(const __VA_ARGS__&, nb::object, Vector<double>, nb::object); \
    template void Engine::check(const __VA_ARGS__&);                                            \
    template void Engine::variance(const __VA_ARGS__&, Out);                                    \
    template void Engine::score(const __VA_ARGS__&, Out, nb::object);
ONEPASS_INSTANTIATE(DenseBatch<double>)
ONEPASS_INSTANTIATE(DenseBatch<float>)
ONEPASS_INSTANTIATE(CsrBatch<double, int32_t>)
ONEPASS_INSTANTIATE(CsrBatch<double, int64_t>)
ONEPASS_INSTANTIATE(CsrBatch<float, int32_t>)
ONEPASS_INSTANTIATE(CsrBatch<float, int64_t>)

}  // namespace onepass
