#include "bind/engine.hpp"

#include <algorithm>

#include "bind/name_lists.hpp"
#include "core/rules.hpp"

namespace onepass {

const double* numbers(const nb::object& given, size_t rows, const char* name, std::vector<Vector<double>>& arrays) {
    if (given.is_none()) return nullptr;
    arrays.push_back(nb::cast<Vector<double>>(given));
    if (arrays.back().shape(0) != rows)
        raise("InputError", std::string(name) + " has " + std::to_string(arrays.back().shape(0)) + " entries, X has " +
                                std::to_string(rows) + " rows");
    return arrays.back().data();
}

Engine::Engine(const std::string& task, nb::dict rule, nb::dict options, bool tables)
    : features(nb::cast<int>(options["hash_bits"])) {
    model.task = value_of<Task>("task", nb::cast(task));
    model.w.output_each = model.task == Task::multilabel;
    rule_text = nb::cast<std::string>(rule["text"]);
    take_formula(rule);
    take_rule(rule);
    take_options(options);
    if (features.hashed()) require_room(features.slots());
    if (features.hashed() && tables) {
        require_memory(features.slots(), model.w.outputs, "ParameterError");
        model.w.set_features(features.slots());
    }
    model.size_scratch();
}

// The planes of a rule as (start, odd, dead): the numbers that it keeps beside every weight.
static std::vector<Plane> read_planes(nb::list given) {
    std::vector<Plane> planes;
    for (nb::handle each : given) {
        nb::tuple plane = nb::cast<nb::tuple>(each);
        planes.push_back({nb::cast<double>(plane[0]), nb::cast<bool>(plane[1]), nb::cast<double>(plane[2])});
    }
    return planes;
}

static void take_spread(nb::dict spread, Covariance& sigma) {
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
}

// What a rule declares of itself, but for its formula.
void Engine::take_rule(nb::dict rule) {
    Weights& w = model.w;
    model.uses_ww = nb::cast<bool>(rule["uses_ww"]) || model.task == Task::oneclass;
    model.tube = nb::cast<double>(rule["tube"]);
    model.clips = model.task == Task::regress && nb::cast<bool>(rule["clips"]);
    model.coordinates = value_of<Coordinates>("coordinates", rule["coordinates"]);
    w.l1.on = nb::cast<bool>(rule["uses_soft"]);
    w.l1.threshold = nb::cast<double>(rule["theta"]);
    w.p_norm.p = nb::cast<double>(rule["geometry"]);
    w.p_norm.ball = nb::cast<double>(rule["ball"]);
    w.batch.size = nb::cast<double>(rule["batch_size"]);
    w.batch.mean = nb::cast<bool>(rule["mean"]);
    if (std::vector<Plane> planes = read_planes(nb::cast<nb::list>(rule["planes"])); !planes.empty())
        w.set_planes(std::move(planes), nb::cast<size_t>(rule["row_planes"]));
    if (nb::object spread = rule["spread"]; !spread.is_none()) {
        take_spread(nb::cast<nb::dict>(spread), w.sigma);
        w.sigma.shared = nb::cast<bool>(rule["sees_all_scores"]);
    }
}

void Engine::take_options(nb::dict options) {
    Weights& w = model.w;
    model.constant = nb::cast<double>(options["constant"]);
    model.bias_in_norm = nb::cast<bool>(options["bias_in_norm"]);
    model.against = value_of<Against>("multiclass", options["against"]);
    model.roots = nb::cast<std::vector<double>>(options["roots"]);
    model.calibrated = nb::cast<bool>(options["calibrated"]);
    w.average.start(value_of<Averaging>("averaging", options["averaging"]), nb::cast<double>(options["average_from"]));
    if (w.sigma.on) {
        w.sigma.constants = model.constant != 0.0;
        w.sigma.begin();
    }
    if (nb::cast<bool>(options["pocket"])) w.pocket.start();
    w.pocket.ratchet = nb::cast<bool>(options["ratchet"]);
    w.votes.max_vectors = nb::cast<double>(options["votes"]);
    w.votes.on = w.votes.max_vectors > 0.0;
    max_features = nb::cast<size_t>(options["max_features"]);
    on_new_label = nb::none();
    to_row = options["to_row"];
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

bool Engine::risky() const {
    constexpr double large = 1e100;  // far from overflow, also after the next example
    const Weights& w = model.w;
    if (!(w.peaks.v < large && w.peaks.z < large && w.norm.ww < large * large)) return true;
    for (double bias : w.bias)
        if (!(std::abs(bias) < large)) return true;
    return (w.sigma.on && w.sigma.full) || (w.votes.on && w.votes.full());
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

void Engine::set_features(size_t d) {
    require_room(d);
    require_memory(d, model.w.outputs, "FeatureError");
    model.w.set_features(d);
    positional = true;
    columns = d;
}

void Engine::register_names(nb::list names) {
    auto lock = own();
    require_room(features.size() + nb::len(names));
    require_memory(features.size() + nb::len(names), model.w.outputs, "FeatureError");
    for (nb::handle name : names) features.register_name(name.ptr());
    model.w.reserve_features(features.size());
}

void Engine::hold_back(size_t known) {
    auto lock = own();
    model.w.sigma.registered = std::min(model.w.sigma.registered, known + model.w.sigma.constants);
}

void Engine::unregister_names(size_t count) {
    auto lock = own();
    features.unregister_names(count);
    model.w.drop_features(features.size());
}

}  // namespace onepass
