// Batches of a kernel learner: checked, learned, scored.
#include <algorithm>

#include "bind/kernel_engine.hpp"
#include "bind/kernel_table.hpp"
#include "bind/signal_watch.hpp"

namespace onepass {

// Refuses a CSR matrix whose arrays do not fit together.
void KernelEngine::require_inside(const KernelTable& X) const {
    for (size_t i = 0; X.sparse() && i < X.rows; ++i) {
        const int64_t begin = X.starts[i], end = X.starts[i + 1];
        if (begin < 0 || end < begin || size_t(end) > X.nonzeros) refuse_row({Status::bad_starts, i, 0, 0.0});
        for (int64_t at = begin; at < end; ++at)
            if (X.index[at] < 0 || size_t(X.index[at]) >= X.columns)
                refuse_row({Status::bad_index, i, X.index[at], 0.0});
    }
}

void KernelEngine::check(const KernelTable& X) {
    require_inside(X);
    for (size_t i = 0; i < X.rows; ++i) {
        const KernelTable::Row given = X.stored(i);
        if (!kernel_loops->finite(given.x, given.n))
            for (size_t at = 0; at < given.n; ++at)
                if (!std::isfinite(given.x[at]))
                    refuse_row({Status::not_finite, i, given.index ? given.index[at] : int64_t(at), given.x[at]});
        const KernelTable::Row row = X.row(i);
        check_row(row.x, row.index, row.n, i);
    }
}

Answers KernelEngine::read_answers(size_t rows, const nb::object& y, const nb::object& importance,
                                   const nb::object& scores, std::vector<Vector<double>>& arrays) {
    Answers in{numbers(y, rows, "y", arrays),
               numbers(importance, rows, "importance", arrays),
               nullptr,
               nullptr,
               nullptr,
               nullptr};
    if (!scores.is_none()) {
        Out out = nb::cast<Out>(scores);
        if (out.shape(0) != rows || out.shape(1) != f.outputs()) raise("InputError", "scores has the wrong shape");
        in.scores = out.data();
    }
    for (size_t i = 0; i < rows; ++i)
        if (!in.y || (model.task == Task::classify && !(in.y[i] >= 0.0 && in.y[i] < double(nb::len(classes)))))
            raise("LabelError", "y must hold class indices, but y[" + std::to_string(i) + "] is outside the classes");
    return in;
}

// The number of features after the first `rows` rows of a batch.
void KernelEngine::set_width(const KernelTable& X, size_t rows, size_t width_before) {
    width = std::max(width_before, X.columns_of(rows));
    if (X.named) return;
    positional = true;
    columns = X.streamed ? width : X.columns;
}

void KernelEngine::prepare_batch(const KernelTable& X) {
    require_inside(X);
    if (!features.hashed()) require_few(std::max(width, X.columns_of(X.rows)), max_features, "FeatureError");
    set_width(X, X.rows, width);
    start(X.sparse(), X.features());
    check(X);
    widen_vectors();
}

// After row `row` was refused: the rows before it stay learned.
void KernelEngine::undo_from(const KernelTable& X, size_t row, const Before& before) {
    model.t > before.t ? set_width(X, row, before.width) : roll_back(before);
}

void KernelEngine::learn(const KernelTable& X, nb::object y, nb::object importance, nb::object scores) {
    auto lock = own();
    std::vector<Vector<double>> arrays;
    const Answers in = read_answers(X.rows, y, importance, scores, arrays);
    const Before before = this->before();
    Outcome outcome;
    try {
        prepare_batch(X);
        const RuleScope scope(python_ ? &callback_ : nullptr);
        SignalWatch watch;
        run_unlocked(calls_python(), [&] { learn_rows(X, in, watch, outcome); });
    } catch (...) {
        nb::error_scope keep_error;
        undo_from(X, outcome.row, before);
        throw;
    }
    if (outcome.status == Status::ok && !PyErr_Occurred()) return;
    undo_from(X, outcome.row, before);
    refuse_row(outcome);
}

// Copies the vectors that the expansion has stored as references to the caller's rows.
struct SettleAtEnd {
    Points& points;
    ~SettleAtEnd() { points.settle(); }
};

void KernelEngine::learn_rows(const KernelTable& X, const Answers& in, SignalWatch& watch, Outcome& outcome) {
    const SettleAtEnd settle{f.points};
    const bool grouped = in_groups(X);
    for (size_t i = 0; i < X.rows && outcome.status == Status::ok; ++i) {
        outcome.row = i;
        if (i > 0 && watch.interrupted(work(X, i))) {
            outcome.status = Status::interrupted;
            return;
        }
        const double importance = in.importance ? in.importance[i] : 1.0;
        double* scores = in.scores ? in.scores + i * f.outputs() : nullptr;
        if (grouped) {
            const size_t q = i % RowsAhead::most;
            if (q == 0) compute_group(X, i);
            const double* kernel_row = ahead_.up_to_date(f, q);
            outcome.status =
                learn_kernel_round(model, f, budget, ahead_.query(q), in.y[i], importance, scores, kernel_row);
        } else {
            const Query x = prepared_row(X, i);
            f.points.watched = false;
            outcome.status = learn_kernel_round(model, f, budget, x, in.y[i], importance, scores);
        }
    }
}

// Kernel rows are computed in groups for dense rows, if no Python is called: it could change the rows.
bool KernelEngine::in_groups(const KernelTable& X) const {
    return !X.sparse() && !f.points.sparse() && X.columns == f.points.columns() && !calls_python();
}

void KernelEngine::compute_group(const KernelTable& X, size_t from) {
    const size_t count = std::min(RowsAhead::most, X.rows - from), two_groups = from + 2 * RowsAhead::most;
    const double* const x = X.x + from * X.columns;
    const double* const next = two_groups <= X.rows ? x + RowsAhead::most * X.columns : nullptr;
    ahead_.compute(f, holder_->slots, x, X.columns, count, next);
}

// The multiplications that a row needs, roughly.
size_t KernelEngine::work(const KernelTable& X, size_t i) const { return f.size() * (8 + X.stored(i).n + f.outputs()); }

Query KernelEngine::prepared_row(const KernelTable& X, size_t i) {
    const KernelTable::Row row = X.row(i);
    Query x = as_query(row.x, row.index, row.n);
    kernel_loops->prepare(holder_->kernel, x);
    return x;
}

void KernelEngine::score(const KernelTable& X, Out scores) {
    auto lock = own();
    if (scores.shape(0) != X.rows || scores.shape(1) != f.outputs()) raise("InputError", "scores has the wrong shape");
    check(X);
    std::fill_n(scores.data(), X.rows * f.outputs(), 0.0);
    if (!holder_) return;
    f.points.widen(X.columns);  // features that were never learned are part of |x|
    const bool grouped = in_groups(X);
    SignalWatch watch;
    run_unlocked(calls_python(), [&] {
        for (size_t i = 0; i < X.rows && !watch.interrupted(work(X, i)); ++i) {
            double* const out = scores.data() + i * f.outputs();
            const size_t q = i % RowsAhead::most;
            if (grouped && q == 0) compute_group(X, i);
            f.score(grouped ? ahead_.as_computed(q) : f.kernel_values(prepared_row(X, i)), out);
        }
    });
    if (PyErr_Occurred()) throw nb::python_error();
}

}  // namespace onepass
