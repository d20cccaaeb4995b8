#include "bind/kernel_engine.hpp"

#include <algorithm>
#include <numeric>

#include "bind/kernel_table.hpp"
#include "bind/name_lists.hpp"
#include "core/memory.hpp"

namespace onepass {

static const BudgetEntry& read_entry(nb::dict config) {
    const auto name = nb::cast<std::string>(config["budget"]);
    const BudgetEntry* entry = find_budget(name);
    if (!entry) raise("ParameterError", "budget='" + name + "' has no compiled formula");
    return *entry;
}

static Budget read_budget(const BudgetEntry& entry, nb::dict config) {
    Budget budget;
    const std::vector<double> p = parameters_of(entry.name, entry.parameters, nb::cast<nb::dict>(config["p"]));
    std::copy(p.begin(), p.end(), budget.p);
    budget.admit = entry.admit;
    budget.every_round = entry.every_round;
    budget.B = nb::cast<size_t>(config["B"]);
    budget.random = nb::cast<uint64_t>(config["seed"]);
    budget.merge_duplicates = nb::cast<bool>(config["merge_duplicates"]);
    return budget;
}

KernelEngine::KernelEngine(const std::string& task, nb::dict rule, nb::dict options, nb::object make_kernel,
                           nb::dict config)
    : Engine(task, rule, options, false), make_kernel_(make_kernel) {
    const BudgetEntry& entry = read_entry(config);
    budget = read_budget(entry, config);
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

// The smallest precomputed matrix in a kernel, or null: every row must be a place in it.
static const Kernel* smallest_precomputed(const Kernel& kernel) {
    const Kernel* least = kernel.op == KernelOp::precomputed ? &kernel : nullptr;
    for (const Kernel& part : kernel.parts)
        if (const Kernel* found = smallest_precomputed(part); found && (!least || found->size < least->size))
            least = found;
    return least;
}

// Makes the kernel, with the first example.
void KernelEngine::start(bool sparse, size_t d) {
    if (holder_) return;
    auto holder = std::make_unique<KernelHolder>(nb::cast<nb::dict>(make_kernel_(d)));
    const bool dense_only = has(holder->kernel, KernelOp::call) || has(holder->kernel, KernelOp::precomputed);
    if (dense_only && sparse && !positional)
        raise("ParameterError", "this kernel takes rows of numbers, not mappings of names");
    holder_ = std::move(holder);
    kernel_features = std::max<size_t>(1, d);
    // Hashed columns are many and mostly 0: stored sparse, too.
    f.initialise(&holder_->kernel, (sparse || features.hashed()) && !dense_only, width, holder_->slots);
}

// The kernel; before the first example, the kernel for one feature.
const Kernel& KernelEngine::any_kernel() {
    if (holder_) return holder_->kernel;
    if (!sample_) sample_ = std::make_unique<KernelHolder>(nb::cast<nb::dict>(make_kernel_(1)));
    return sample_->kernel;
}

KernelEngine::Before KernelEngine::before() const {
    return {positional, holder_ != nullptr, columns, width, features.size(), model.t};
}

void KernelEngine::roll_back(const Before& before) {
    features.unregister_names(features.size() - before.names);
    positional = before.positional;
    columns = before.columns;
    width = before.width;
    if (before.started) return;
    holder_.reset();
    kernel_features = 0;
    f.initialise(nullptr, false, 0, 0);
}

// A row in the form of the stored vectors, dense or sparse.
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

// Refuses finite numbers that the kernel cannot take.
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
    if (const Kernel* gram = smallest_precomputed(kernel)) {
        const double at = n == 1 ? x[0] : -1.0;
        if (index || !(at >= 0.0 && at < double(gram->size) && at == std::floor(at)))
            raise("InputError", "a precomputed kernel takes rows of one whole number from 0 to " +
                                    std::to_string(gram->size - 1) + ", its place in the matrix; " + where() +
                                    " is something else");
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

// Refuses more memory for the stored vectors than the limit, if they had so many columns and outputs.
void KernelEngine::require_vectors(size_t columns, size_t outputs, const char* error) const {
    onepass::require_memory(f.bytes_with(0, columns, outputs, 0),
                            std::to_string(f.size()) + " stored vectors of " + std::to_string(columns) + " features" +
                                (outputs > 1 ? " x " + std::to_string(outputs) + " classes" : "") + " of " + rule_text,
                            "give the learner a budget, fewer features or fewer classes", error);
}

// Widens the stored vectors to `width`. They may be narrower: rows of a table or of a data frame came before, and now
// a new feature.
void KernelEngine::widen_vectors() {
    if (!f.points.sparse() && width > f.points.columns()) require_vectors(width, f.outputs(), "FeatureError");
    f.points.widen(width);
}

// Sorts the row in `scratch_` by its indices. Names that are unknown, and not admitted, come after all others: no
// stored vector has them, but they are part of |x|.
void KernelEngine::sort_scratch(bool admitted) {
    scratch_.dict_version = 0;
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
    scratch_.value.swap(values_);
    scratch_.index.swap(indices_);
}

Query KernelEngine::query_of_scratch() {
    return as_query(scratch_.value.data(), scratch_.index.data(), scratch_.value.size());
}

// Registers the features of an example, makes the kernel if it is the first, and returns the example as a query.
Query KernelEngine::query_to_learn(const Read& row) {
    if (row.has_columns()) {
        positional = true;
        columns = row.dense ? row.n : row.columns;
        width = std::max(width, columns);
        if (!features.hashed()) require_few(width, max_features, "FeatureError");
        start(!row.dense, row.streamed ? count_features(scratch_.value.data(), row.n) : columns);
    } else {
        if (!features.hashed()) require_few(features.size() + scratch_.new_names.size(), max_features, "FeatureError");
        features.register_names(scratch_);
        width = features.hashed() ? features.slots() : features.size();
        start(true, scratch_.index.size());
    }
    if (row.dense) {
        check_row(row.x, nullptr, row.n, 0);
        return as_query(row.x, nullptr, row.n);
    }
    sort_scratch(true);
    check_row(scratch_.value.data(), scratch_.index.data(), scratch_.value.size(), 0);
    widen_vectors();
    return query_of_scratch();
}

void KernelEngine::teach(Read& row, double y, double importance, double, const uint8_t*, double) {
    const Before before = this->before();
    Outcome outcome;
    try {
        Query x = query_to_learn(row);
        kernel_loops->prepare(holder_->kernel, x);
        f.points.watched = false;
        const RuleScope scope(python_ ? &callback_ : nullptr);
        outcome.status = learn_kernel_round(model, f, budget, x, y, importance, nullptr);
    } catch (...) {
        nb::error_scope keep_error;
        roll_back(before);
        throw;
    }
    if (outcome.status == Status::ok && !PyErr_Occurred()) return;
    roll_back(before);
    refuse_row(outcome);
}

void KernelEngine::scores_of(nb::handle x, double, double* out) {
    Read row;
    read(x, row, true);  // with unknown names: they are part of |x|
    std::fill_n(out, f.outputs(), 0.0);
    if (!holder_) return;
    Query query;
    if (row.dense) {
        check_row(row.x, nullptr, row.n, 0);
        query = as_query(row.x, nullptr, row.n);
    } else {
        sort_scratch(false);
        check_row(scratch_.value.data(), scratch_.index.data(), scratch_.value.size(), 0);
        query = query_of_scratch();
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

void KernelEngine::register_names(nb::list names) {
    auto lock = own();
    require_few(features.size() + nb::len(names), max_features, "FeatureError");
    for (nb::handle name : names) features.register_name(name.ptr());
    width = std::max(width, features.size());
}

void KernelEngine::unregister_names(size_t count) {
    auto lock = own();
    features.unregister_names(count);
    width = features.size();
}

void KernelEngine::set_outputs() {
    Engine::set_outputs();
    if (model.task == Task::classify) f.set_outputs(nb::len(classes));
}

void KernelEngine::begin_growth(size_t coming) {
    Engine::begin_growth(coming);
    one_output_.reset();
    if (f.outputs() == 1) one_output_ = OneOutput{f.coef[0], f.values, f.ww};  // a new class negates or halves it
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
