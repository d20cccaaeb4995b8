#include "bind/kernel_engine.hpp"

#include <algorithm>
#include <numeric>

#include "bind/name_lists.hpp"
#include "bind/signal_watch.hpp"
#include "core/memory.hpp"

namespace onepass {

using namespace nb::literals;

static size_t features_of(const double* x, size_t n) {
    return size_t(std::count_if(x, x + n, [](double value) { return value != 0.0; }));
}

// Rows of a dense matrix, or of a CSR one.
struct KernelEngine::Table {
    const double* x;
    const int64_t *index, *starts;
    size_t rows, columns, nonzeros;
    bool streamed = false, named = false;  // rows of a stream, whose width means nothing; columns are features by name

    Table(Matrix<double> X)
        : x(X.data()), index(nullptr), starts(nullptr), rows(X.shape(0)), columns(X.shape(1)), nonzeros(X.size()) {}
    Table(Vector<double> data, Vector<int64_t> indices, Vector<int64_t> from, size_t columns)
        : x(data.data()), index(indices.data()), starts(from.data()), columns(columns), nonzeros(data.shape(0)) {
        if (from.shape(0) == 0 || data.shape(0) != indices.shape(0))
            raise("InputError", "X is not a CSR matrix: its arrays do not fit together");
        rows = from.shape(0) - 1;
    }

    struct Row {
        const double* x;
        const int64_t* index;
        size_t n;
    };
    // The d of gamma = 1/d: how wide the rows are, or how many features the first row of a stream has.
    size_t features() const {
        return !streamed || rows == 0 ? columns : features_of(x + starts[0], size_t(starts[1] - starts[0]));
    }
    // How wide the model is after the first rows: those of a stream are as wide as they reach.
    size_t reached(size_t first) const {
        if (!streamed || named) return columns;
        const int64_t *begin = index, *end = index + starts[first];
        return begin == end ? 0 : size_t(*std::max_element(begin, end)) + 1;
    }
    // A sparse row's indices rise; equal ones are added up.
    Row row(size_t i) const {
        if (!starts) return {x + i * columns, nullptr, columns};
        const double* values = x + starts[i];
        const int64_t* at = index + starts[i];
        const size_t n = size_t(starts[i + 1] - starts[i]);
        if (std::adjacent_find(at, at + n, [](int64_t a, int64_t b) { return a >= b; }) == at + n)
            return {values, at, n};
        const MergedRow<int64_t> merged = merge_row(values, at, n);
        return {merged.x, merged.index, merged.n};
    }
};

KernelEngine::KernelEngine(const std::string& task, nb::dict rule, nb::dict options, nb::object make_kernel,
                           nb::dict config)
    : Engine(task, rule, options, false), make_kernel_(make_kernel) {
    const auto name = nb::cast<std::string>(config["budget"]);
    const BudgetEntry* found = find_budget(name);
    if (!found) raise("ParameterError", "budget='" + name + "' has no compiled formula");
    const BudgetEntry& entry = *found;
    const std::vector<double> parameters = parameters_of(name, entry.parameters, nb::cast<nb::dict>(config["p"]));
    std::copy(parameters.begin(), parameters.end(), budget.p);
    budget.admit = entry.admit;
    budget.B = nb::cast<size_t>(config["B"]);
    budget.every_round = entry.every_round;
    budget.random = nb::cast<uint64_t>(config["seed"]);
    budget.merge_duplicates = nb::cast<bool>(config["merge_duplicates"]);
    f.tracks_norm = model.uses_ww || entry.norm;
    f.stores_gram = entry.gram || (model.uses_ww && budget.B > 0);
    f.stores_inverse = entry.inverse;
    f.stores_values = entry.values;
    f.stores_covariance = entry.covariance;
    f.own_class = nb::cast<bool>(config["own_class"]);
    if (features.hashed()) width = features.slots();
}

std::vector<nb::object*> KernelEngine::held() {
    std::vector<nb::object*> out = Engine::held();
    out.push_back(&make_kernel_);
    for (KernelHolder* holder : {holder_.get(), sample_.get()})
        if (holder)
            for (nb::object& each : holder->callees) out.push_back(&each);
    return out;
}

static bool has(const Kernel& kernel, KernelOp op) {
    return kernel.op == op ||
           std::any_of(kernel.parts.begin(), kernel.parts.end(), [op](const Kernel& part) { return has(part, op); });
}

// The smallest precomputed kernel inside this one: every row must have its place there.
static const Kernel* precomputed(const Kernel& kernel) {
    const Kernel* least = kernel.op == KernelOp::precomputed ? &kernel : nullptr;
    for (const Kernel& part : kernel.parts)
        if (const Kernel* found = precomputed(part); found && (!least || found->size < least->size)) least = found;
    return least;
}

void KernelEngine::start(bool sparse, size_t d) {
    if (holder_) return;
    auto holder = std::make_unique<KernelHolder>(nb::cast<nb::dict>(make_kernel_(d)));
    const bool dense_only = has(holder->kernel, KernelOp::call) || has(holder->kernel, KernelOp::precomputed);
    if (dense_only && sparse && !positional)
        raise("ParameterError", "this kernel takes rows of numbers, not mappings of names");
    holder_ = std::move(holder);
    kernel_features = std::max<size_t>(1, d);  // 0 is for none yet
    // Hashed columns are many and mostly empty.
    f.initialise(&holder_->kernel, (sparse || features.hashed()) && !dense_only, width, holder_->slots);
}

// The first example was refused: as if it had not come.
void KernelEngine::unstart() {
    holder_.reset();
    kernel_features = 0;
    f.initialise(nullptr, false, 0, 0);
}

const Kernel& KernelEngine::any_kernel() {
    if (holder_) return holder_->kernel;
    if (!sample_) sample_ = std::make_unique<KernelHolder>(nb::cast<nb::dict>(make_kernel_(1)));
    return sample_->kernel;
}

Query KernelEngine::as_query(const double* x, const int64_t* index, size_t n) {
    Query out;
    f.points.widen(index && n > 0 ? size_t(index[n - 1]) + 1 : n);
    const size_t columns = f.points.columns();
    if (f.points.sparse() == (index != nullptr) && (index || n == columns)) {
        out = {x, index, n};
    } else if (!f.points.sparse()) {
        values_.assign(columns, 0.0);
        for (size_t i = 0; i < n; ++i) values_[index ? size_t(index[i]) : i] = x[i];
        out = {values_.data(), nullptr, columns};
    } else {
        values_.clear();
        indices_.clear();
        for (size_t j = 0; j < n; ++j)
            if (x[j] != 0.0) {
                values_.push_back(x[j]);
                indices_.push_back(int64_t(j));
            }
        out = {values_.data(), indices_.data(), values_.size()};
    }
    out.selves.resize(holder_->slots);
    return out;
}

// What kernels cannot take, though it is finite.
void KernelEngine::check_row(const double* x, const int64_t* index, size_t n, size_t row) {
    const Kernel& kernel = any_kernel();
    const auto where = [row] { return "X[" + std::to_string(row) + "]"; };
    if (kernel.nonnegative())
        for (size_t i = 0; i < n; ++i)
            if (x[i] < 0.0)
                raise("InputError", "a histogram kernel wants numbers >= 0, but " + where() + " holds " +
                                        std::to_string(x[i]) + " at feature " +
                                        std::to_string(index ? index[i] : int64_t(i)) +
                                        "; shift the features, or use another kernel");
    if (const Kernel* gram = precomputed(kernel)) {
        const double at = n == 1 ? x[0] : -1.0;
        if (index || !(at >= 0.0 && at < double(gram->size) && at == std::floor(at)))
            raise("InputError", "a precomputed kernel takes rows of one whole number from 0 to " +
                                    std::to_string(gram->size - 1) + ", its place in the matrix; " + where() +
                                    " is something else");
    }
}

// Do the parts of a CSR table fit together?
void KernelEngine::require_inside(const Table& X) const {
    for (size_t i = 0; X.starts && i < X.rows; ++i) {
        const int64_t begin = X.starts[i], end = X.starts[i + 1];
        if (begin < 0 || end < begin || size_t(end) > X.nonzeros) refuse_row({Status::bad_starts, i, 0, 0.0});
        for (int64_t at = begin; at < end; ++at)
            if (X.index[at] < 0 || size_t(X.index[at]) >= X.columns)
                refuse_row({Status::bad_index, i, X.index[at], 0.0});
    }
}

void KernelEngine::check(const Table& X) {
    require_inside(X);
    for (size_t i = 0; i < X.rows; ++i) {
        const size_t begin = X.starts ? size_t(X.starts[i]) : i * X.columns;
        const size_t end = X.starts ? size_t(X.starts[i + 1]) : begin + X.columns;
        for (size_t at = begin; at < end && !kernel_loops->finite(X.x + begin, end - begin); ++at)
            if (!std::isfinite(X.x[at]))
                refuse_row({Status::not_finite, i, X.index ? X.index[at] : int64_t(at - begin), X.x[at]});
        const Table::Row row = X.row(i);
        check_row(row.x, row.index, row.n, i);
    }
}

void KernelEngine::refuse_row(const Outcome& outcome) const {
    if (outcome.status == Status::indefinite)
        raise("InputError", "row " + std::to_string(outcome.row) + ": K(x, x) is below 0, so this is no kernel at x");
    if (outcome.status == Status::full)
        raise_row("FullError", outcome.row,
                  no_vector_more(std::string("give the learner a ") + (budget.B ? "smaller " : "") +
                                 "budget, as in budget='forgetron:B=1000'"));
    refuse(outcome);
}

void KernelEngine::require_memory(size_t count, size_t known, const char* error) const {
    Engine::require_memory(count, known, error);
    const size_t outputs = known > 2 ? known : 1;
    if (outputs > f.outputs()) require_vectors(f.points.columns(), outputs, error);
}

void KernelEngine::require_vectors(size_t columns, size_t outputs, const char* error) const {
    onepass::require_memory(f.bytes_with(0, columns, outputs, 0),
                            std::to_string(f.size()) + " stored vectors of " + std::to_string(columns) + " features" +
                                (outputs > 1 ? " x " + std::to_string(outputs) + " classes" : "") + " of " + rule_text,
                            "give the learner a budget, fewer features or fewer classes", error);
}

void KernelEngine::widen_vectors() {
    if (!f.points.sparse() && width > f.points.columns()) require_vectors(width, f.outputs(), "FeatureError");
    f.points.widen(width);
}

static const double* numbers(const nb::object& given, size_t rows, const char* name, Vector<double>& keep) {
    if (given.is_none()) return nullptr;
    keep = nb::cast<Vector<double>>(given);
    if (keep.shape(0) != rows)
        raise("InputError", std::string(name) + " has " + std::to_string(keep.shape(0)) + " entries, X has " +
                                std::to_string(rows) + " rows");
    return keep.data();
}

void KernelEngine::learn(const Table& X, nb::object y_given, nb::object importance_given, nb::object scores) {
    auto lock = own();
    Vector<double> keep_y, keep_importance;
    const double* y = numbers(y_given, X.rows, "y", keep_y);
    const double* importance = numbers(importance_given, X.rows, "importance", keep_importance);
    double* out = nullptr;
    if (!scores.is_none()) {
        Out room = nb::cast<Out>(scores);
        if (room.shape(0) != X.rows || room.shape(1) != f.outputs()) raise("InputError", "scores has the wrong shape");
        out = room.data();
    }
    for (size_t i = 0; i < X.rows; ++i)
        if (!y || (model.task == Task::classify && !(y[i] >= 0.0 && y[i] < double(nb::len(classes)))))
            raise("LabelError", "y must hold class indices, but y[" + std::to_string(i) + "] is outside the classes");
    const bool was_positional = positional, started = holder_ != nullptr;
    const size_t columns_before = columns, width_before = width;
    const double t_before = model.t;
    Outcome outcome;
    const auto widen = [&](size_t rows) {
        width = std::max(width_before, X.reached(rows));
        if (X.named) return;
        positional = true;
        columns = X.streamed ? width : X.columns;
    };
    const auto go_back = [&] {
        if (model.t > t_before) return widen(outcome.row);
        if (!started) unstart();
        positional = was_positional;
        columns = columns_before;
        width = width_before;
    };
    try {
        require_inside(X);
        if (!features.hashed()) require_few(std::max(width, X.reached(X.rows)), max_features, "FeatureError");
        widen(X.rows);
        start(X.starts != nullptr, X.features());
        check(X);
        widen_vectors();
        const RuleScope scope(python_ ? &callback_ : nullptr);
        const bool looks_ahead = !X.starts && !f.points.sparse() && X.columns == f.points.columns() && !in_python();
        SignalWatch watch;
        const auto run = [&] {
            for (size_t i = 0; i < X.rows && outcome.status == Status::ok; ++i) {
                outcome.row = i;
                if (i > 0 && watch.interrupted(work(X, i))) {
                    outcome.status = Status::interrupted;
                    return;
                }
                const double weight = importance ? importance[i] : 1.0;
                double* to = out ? out + i * f.outputs() : nullptr;
                if (looks_ahead) {
                    if (i % ahead == 0) look_ahead(X, i);
                    const double* k = looked_up(i % ahead);
                    outcome.status = learn_kernel_round(model, f, budget, coming_[i % ahead], y[i], weight, to, k);
                } else {
                    const Table::Row row = X.row(i);
                    Query x = as_query(row.x, row.index, row.n);
                    kernel_loops->prepare(holder_->kernel, x);
                    f.points.watched = false;
                    outcome.status = learn_kernel_round(model, f, budget, x, y[i], weight, to);
                }
            }
        };
        // The rows are the caller's: what was kept of them is written down before they go.
        struct Settled {
            Points& points;
            ~Settled() { points.settle(); }
        } settled{f.points};
        if (in_python()) {
            run();
        } else {
            nb::gil_scoped_release release;
            run();
        }
    } catch (...) {
        nb::error_scope keep_error;
        go_back();
        throw;
    }
    if (outcome.status == Status::ok && !PyErr_Occurred()) return;
    go_back();
    refuse_row(outcome);
}

size_t KernelEngine::work(const Table& X, size_t i) const {
    const size_t size = X.starts ? size_t(X.starts[i + 1] - X.starts[i]) : X.columns;
    return f.size() * (8 + size + f.outputs());
}

void KernelEngine::look_ahead(const Table& X, size_t from) {
    const size_t count = std::min(ahead, X.rows - from);
    coming_.resize(count);
    coming_stride_ = Points::lined(f.size() + 2 * ahead);  // some may be added on the way
    if (coming_rows_.size() < ahead * coming_stride_) coming_rows_.resize(ahead * coming_stride_);
    double* outs[ahead];
    for (size_t q = 0; q < count; ++q) {
        coming_[q].x = X.x + (from + q) * X.columns;
        coming_[q].n = X.columns;
        coming_[q].selves.resize(holder_->slots);
        coming_[q].lasting = true;
        outs[q] = coming_rows_.data() + q * coming_stride_;
    }
    if (coming_points_.columns() != X.columns) coming_points_ = Points(false, X.columns, holder_->slots);
    kernel_loops->prepare_rows(holder_->kernel, coming_.data(), count, coming_points_);
    met_.fill(false);
    then_ = from + 2 * ahead <= X.rows ? X.x + (from + ahead) * X.columns : nullptr;
    f.points.watched = true;
    f.points.changes.clear();
    kernel_loops->rows(holder_->kernel, coming_.data(), 0, count, coming_points_, f.points, 0, f.size(), outs, nullptr);
}

double KernelEngine::among_themselves(size_t q, size_t earlier) {
    const size_t l = earlier / Points::line, from = l * Points::line;
    if (!met_[l]) {
        double* outs[ahead];
        for (size_t p = 0; p < ahead; ++p) outs[p] = among_ + p * ahead;
        const size_t count = coming_.size(), to = std::min(from + Points::line, count);
        kernel_loops->rows(holder_->kernel, coming_.data(), from, count, coming_points_, coming_points_, from, to, outs,
                           then_ ? then_ + from * coming_points_.columns() : nullptr);
        met_[l] = true;
    }
    return among_[q * ahead + earlier];
}

const double* KernelEngine::looked_up(size_t q) {
    double* k = coming_rows_.data() + q * coming_stride_;
    unknown_.clear();
    for (const Points::Change& change : f.points.changes) {
        const auto was = change.x ? unknown_.end() : std::find(unknown_.begin(), unknown_.end(), change.from);
        const auto row = std::find_if(coming_.begin(), coming_.begin() + ptrdiff_t(q),
                                      [&](const Query& each) { return each.x == change.x; });
        const bool known = change.x ? row != coming_.begin() + ptrdiff_t(q) : was == unknown_.end();
        std::erase(unknown_, change.at);
        if (!known) unknown_.push_back(change.at);
        else k[change.at] = change.x ? among_themselves(q, size_t(row - coming_.begin())) : k[change.from];
    }
    for (size_t at : unknown_) {
        const size_t start = at / Points::line * Points::line, end = std::min(start + Points::line, f.size());
        if (at < f.size()) kernel_loops->row(holder_->kernel, coming_[q], f.points, start, end, k + start);
    }
    return k;
}

void KernelEngine::score(const Table& X, Out scores) {
    auto lock = own();
    if (scores.shape(0) != X.rows || scores.shape(1) != f.outputs()) raise("InputError", "scores has the wrong shape");
    check(X);
    std::fill_n(scores.data(), X.rows * f.outputs(), 0.0);
    if (!holder_) return;
    f.points.widen(X.columns);  // features that were never learned still count in |x|
    const bool looks_ahead = !X.starts && !f.points.sparse() && X.columns == f.points.columns() && !in_python();
    SignalWatch watch;
    const auto run = [&] {
        for (size_t i = 0; i < X.rows && !watch.interrupted(work(X, i)); ++i) {
            if (looks_ahead) {
                if (i % ahead == 0) look_ahead(X, i);
                f.score(coming_rows_.data() + i % ahead * coming_stride_, scores.data() + i * f.outputs());
                continue;
            }
            const Table::Row row = X.row(i);
            Query x = as_query(row.x, row.index, row.n);
            kernel_loops->prepare(holder_->kernel, x);
            f.score(f.kernel_values(x), scores.data() + i * f.outputs());
        }
    };
    if (in_python()) {
        run();
    } else {
        nb::gil_scoped_release release;
        run();
    }
    if (PyErr_Occurred()) throw nb::python_error();
}

void KernelEngine::learn_dense(Matrix<double> X, nb::object y, nb::object importance, nb::object scores) {
    learn(Table(X), y, importance, scores);
}
void KernelEngine::learn_csr(Vector<double> data, Vector<int64_t> indices, Vector<int64_t> starts, size_t columns,
                             nb::object y, nb::object importance, nb::object scores, bool distinct, bool named) {
    Table X(data, indices, starts, columns);
    X.streamed = distinct;
    X.named = named;
    learn(X, y, importance, scores);
}
void KernelEngine::score_dense(Matrix<double> X, Out scores) { score(Table(X), scores); }
void KernelEngine::score_csr(Vector<double> data, Vector<int64_t> indices, Vector<int64_t> starts, size_t columns,
                             Out scores) {
    score(Table(data, indices, starts, columns), scores);
}
void KernelEngine::check_dense(Matrix<double> X) { check(Table(X)); }
void KernelEngine::check_csr(Vector<double> data, Vector<int64_t> indices, Vector<int64_t> starts, size_t columns) {
    check(Table(data, indices, starts, columns));
}

// A named row by rising index. Names that are not known here stand behind all others: no support vector has them, but
// they are part of |x|.
void KernelEngine::sort_named(bool admitted) {
    scratch_.version = 0;
    for (int64_t& at : scratch_.index)
        if (!admitted && at < 0) at = int64_t(features.size()) - 1 - at;
    std::vector<size_t> order(scratch_.index.size());
    std::iota(order.begin(), order.end(), size_t(0));
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return scratch_.index[a] < scratch_.index[b]; });
    values_.resize(order.size());
    indices_.resize(order.size());
    for (size_t i = 0; i < order.size(); ++i) {
        values_[i] = scratch_.value[order[i]];
        indices_[i] = scratch_.index[order[i]];
    }
}

void KernelEngine::teach(Read& row, double y, double importance, double, const uint8_t*, double) {
    const bool was_positional = positional, started = holder_ != nullptr;
    const size_t columns_before = columns, width_before = width;
    size_t added = 0;
    const auto go_back = [&] {
        features.forget(added);
        positional = was_positional;
        columns = columns_before;
        width = width_before;
        if (!started) unstart();
    };
    Outcome outcome;
    try {
        Query x;
        if (row.dense || row.columns || row.streamed) {
            positional = true;
            columns = row.dense ? row.n : row.columns;
            width = std::max(width, columns);
            if (!features.hashed()) require_few(width, max_features, "FeatureError");
            start(!row.dense, row.streamed ? features_of(scratch_.value.data(), row.n) : columns);
            if (!row.dense) {
                widen_vectors();  // rows of a table may have come before
                sort_named(true);
                scratch_.value = values_;
                scratch_.index = indices_;
                check_row(scratch_.value.data(), scratch_.index.data(), row.n, 0);
                x = as_query(scratch_.value.data(), scratch_.index.data(), row.n);
            } else {
                check_row(row.x, nullptr, row.n, 0);
                x = as_query(row.x, nullptr, row.n);
            }
        } else {
            if (!features.hashed())
                require_few(features.size() + scratch_.unknown.size(), max_features, "FeatureError");
            added = features.admit(scratch_);
            width = features.hashed() ? features.slots() : features.size();
            start(true, scratch_.index.size());
            sort_named(true);
            check_row(values_.data(), indices_.data(), values_.size(), 0);
            widen_vectors();  // rows of a data frame may have come before, and now a new name
            scratch_.value = values_;
            scratch_.index = indices_;
            x = as_query(scratch_.value.data(), scratch_.index.data(), scratch_.value.size());
        }
        kernel_loops->prepare(holder_->kernel, x);
        f.points.watched = false;  // nobody looks ahead
        const RuleScope scope(python_ ? &callback_ : nullptr);
        outcome.status = learn_kernel_round(model, f, budget, x, y, importance, nullptr);
    } catch (...) {
        nb::error_scope keep_error;
        go_back();
        throw;
    }
    if (outcome.status == Status::ok && !PyErr_Occurred()) return;
    go_back();
    refuse_row(outcome);
}

void KernelEngine::scores_of(nb::handle x, double, double* out) {
    Read row;
    read(x, row, true);  // as learning does: names that are new here still count in |x|
    std::fill_n(out, f.outputs(), 0.0);
    if (!holder_) return;
    Query query;
    if (row.dense) {
        check_row(row.x, nullptr, row.n, 0);
        query = as_query(row.x, nullptr, row.n);
    } else {
        sort_named(false);
        scratch_.value = values_;
        scratch_.index = indices_;
        if (!scratch_.index.empty()) f.points.widen(size_t(scratch_.index.back()) + 1);
        check_row(scratch_.value.data(), scratch_.index.data(), scratch_.value.size(), 0);
        query = as_query(scratch_.value.data(), scratch_.index.data(), scratch_.value.size());
    }
    kernel_loops->prepare(holder_->kernel, query);
    f.score(f.kernel_values(query), out);
    if (PyErr_Occurred()) throw nb::python_error();
}

void KernelEngine::set_features(size_t d) {
    require_few(d, max_features, "FeatureError");
    width = d;
    positional = true;
    columns = d;
}

void KernelEngine::admit_names(nb::list names) {
    auto lock = own();
    require_few(features.size() + nb::len(names), max_features, "FeatureError");
    for (nb::handle name : names) features.append(name.ptr());
    width = std::max(width, features.size());
}

void KernelEngine::forget_names(size_t count) {
    auto lock = own();
    features.forget(count);
    width = features.size();
}

void KernelEngine::set_outputs() {
    Engine::set_outputs();
    if (model.task == Task::classify) f.set_outputs(nb::len(classes));
}

void KernelEngine::begin_growth(size_t coming) {
    Engine::begin_growth(coming);
    one_output_.reset();
    if (f.outputs() == 1) one_output_ = OneOutput{f.coef[0], f.values, f.ww};  // which a new class negates or halves
}

void KernelEngine::roll_back_growth() {
    Engine::roll_back_growth();
    f.set_outputs(nb::len(classes));
    if (!one_output_) return;
    f.coef[0] = std::move(one_output_->coef);
    f.values = std::move(one_output_->values);
    f.ww = one_output_->ww;
}

void KernelEngine::flip_classes() {
    f.negate();
    nb::list swapped;
    swapped.append(classes[1]);
    swapped.append(classes[0]);
    set_classes(swapped);
}

}  // namespace onepass
