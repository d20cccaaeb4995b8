// An engine's whole state as arrays, and back: what model files hold.
#include <algorithm>
#include <bit>
#include <numeric>

#include "bind/arrays.hpp"
#include "bind/engine.hpp"
#include "bind/saved.hpp"

namespace onepass {

using Places = std::vector<size_t>;

// Without the padding, features x rows, of a buffer whose features are so many numbers apart; of some features alone.
static nb::object table(const Weights& w, const Buffer& buffer, size_t apart, const Places& places) {
    const size_t count = buffer.size() ? places.size() : 0;
    std::vector<double> out(count * w.outputs);
    for (size_t i = 0; i < count; ++i)
        for (size_t r = 0; r < w.outputs; ++r) out[i * w.outputs + r] = buffer.data()[places[i] * apart + r];
    return array({count, w.outputs}, std::move(out));
}

// The planes of features (or of the one intercept) without the padding: features x kinds x rows.
static nb::object plane_table(const Weights& w, const Places& places, size_t count, const double* planes) {
    std::vector<double> out(places.size() * count * w.outputs);
    for (size_t i = 0; i < places.size(); ++i)
        for (size_t p = 0; p < count; ++p)
            for (size_t r = 0; r < w.outputs; ++r)
                out[(i * count + p) * w.outputs + r] = planes[places[i] * w.pitch + p * w.stride + r];
    return array({places.size(), count, w.outputs}, std::move(out));
}

// Beside planes, files hold the pocket whole.
static Places met_features(const Weights& w) {
    Places out;
    w.each_touched([&](size_t j) {
        if (w.is_changed(j, w.planes.kinds.empty())) out.push_back(j);
    });
    return out;
}

static Places all_features(const Weights& w) {
    Places out(w.features);
    std::iota(out.begin(), out.end(), size_t(0));
    return out;
}

static nb::object whole(const std::vector<int64_t>& values) {
    return array({values.size()}, std::vector<double>(values.begin(), values.end()));
}

static void put(nb::dict& out, const std::string& prefix, const Updates& updates) {
    auto set = [&](const char* name, nb::object values) { out[nb::str((prefix + name).c_str())] = values; };
    set("value", array({updates.value.size()}, std::vector<double>(updates.value)));
    set("index", whole(updates.index));
    set("ends", whole(updates.ends));
    set("coefficients", array({updates.coefficients.size()}, std::vector<double>(updates.coefficients)));
    set("coefficient_ends", whole(updates.coefficient_ends));
}

static void save_mini_batch(nb::dict& out, const MiniBatch& batch) {
    using At = saved::MiniBatch;
    std::vector<double> scalars(At::count);
    scalars[At::rounds] = batch.rounds;
    scalars[At::steps] = batch.steps;
    scalars[At::moves] = batch.moves;
    scalars[At::scale] = batch.scale;
    scalars[At::decay] = batch.decay;
    scalars[At::soft] = batch.soft;
    scalars[At::shrink] = batch.shrink;
    out["batch_scalars"] = array({scalars.size()}, std::move(scalars));
    put(out, "batch_", batch.updates);
}

static nb::object pocket_scalars(const Pocket& pocket) {
    using At = saved::Pocket;
    std::vector<double> scalars(pocket.ratchet ? At::count : At::errors);
    scalars[At::scale] = pocket.a;
    scalars[At::run] = pocket.run;
    scalars[At::best_run] = pocket.best_run;
    scalars[At::holds_current] = pocket.holds_current;
    if (pocket.ratchet) scalars[At::errors] = std::isfinite(pocket.errors) ? pocket.errors : -1.0;
    return array({scalars.size()}, std::move(scalars));
}

nb::object Engine::save_scalars() const {
    using At = saved::Linear;
    const Weights& w = model.w;
    std::vector<double> scalars(At::count);
    scalars[At::scale] = w.a;
    scalars[At::A] = w.average.A;
    scalars[At::averaged] = w.average.rounds;
    scalars[At::ww] = w.norm.ww;
    scalars[At::since_recomputed] = w.norm.since_recomputed;
    scalars[At::t] = model.t;
    scalars[At::k] = model.k;
    scalars[At::skipped_zero] = model.skipped_zero;
    scalars[At::positional] = positional;
    scalars[At::columns] = double(columns);
    return array({scalars.size()}, std::move(scalars));
}

nb::dict Engine::state(bool met_only) {
    auto lock = own();
    const Weights& w = model.w;
    const Places places = met_only ? met_features(w) : all_features(w);
    nb::dict out;
    if (met_only) out["kept"] = array({places.size()}, std::vector<double>(places.begin(), places.end()));
    out["v"] = table(w, w.cells, w.pitch, places);
    out["z"] = table(w, w.average.z, w.stride, places);
    out["bias"] = array({w.outputs}, std::vector<double>(w.bias));
    out["bias_sum"] =
        array({w.outputs}, w.average.on() ? std::vector<double>(w.average.bias_sum) : std::vector<double>(w.outputs));
    if (w.l1.on) out["owed_now"] = array<double>({1}, {w.l1.pending});
    if (w.votes.on) {
        out["votes_counts"] = array({w.votes.counts.size()}, std::vector<double>(w.votes.counts));
        put(out, "votes_", w.votes.updates);
    }
    if (w.batch.on()) save_mini_batch(out, w.batch);
    if (w.pocket.on) {
        out["pocket"] = table(w, w.pocket.v, w.stride, w.planes.kinds.empty() ? places : all_features(w));
        out["pocket_bias"] = array({w.outputs}, std::vector<double>(w.pocket.bias));
        out["pocket_scalars"] = pocket_scalars(w.pocket);
    }
    if (w.sigma.full) {
        const Covariance& sigma = w.sigma;
        const size_t count = sigma.entries();
        std::vector<double> all(sigma.triangle.size() * count);
        for (size_t r = 0; r < sigma.triangle.size(); ++r) sigma.pack(r, all.data() + r * count);
        out["sigma"] = array({sigma.triangle.size(), count}, std::move(all));
        out["sigma_waited"] = array<double>({1}, {sigma.paused});
        if (sigma.form == Form::chol) out["sigma_reach"] = array<double>({1}, {sigma.bound_now()});
    }
    if (!w.planes.kinds.empty()) {
        out["planes"] = plane_table(w, places, w.planes.count(), w.planes_of(0));
        out["bias_planes"] = plane_table(w, {0}, w.planes.kinds.size(), w.planes.bias.data());
    }
    out["slots"] = array({size_t(model.slots)}, std::vector<double>(model.state, model.state + model.slots));
    out["scalars"] = save_scalars();
    return out;
}

static void fill(const Weights& w, Buffer& buffer, size_t apart, nb::object values, const Places& places) {
    auto from = nb::cast<Matrix<double>>(values);
    if (from.shape(0) == 0) return;
    if (from.shape(0) != places.size() || from.shape(1) != w.outputs)
        raise("ModelFileError", "the weights have the wrong shape");
    for (size_t i = 0; i < places.size(); ++i)
        for (size_t r = 0; r < w.outputs; ++r) {
            const double value = from.data()[i * w.outputs + r];
            // Leaves untouched pages untouched; -0.0 is not nothing, it has its own bits.
            if (std::bit_cast<uint64_t>(value) != 0) buffer.data()[places[i] * apart + r] = value;
        }
}

static void fill_planes(const Weights& w, const Places& places, size_t count, double* planes, nb::object values) {
    auto from = nb::cast<nb::ndarray<const double, nb::ndim<3>, nb::c_contig, nb::device::cpu>>(values);
    if (from.shape(0) != places.size() || from.shape(1) != count || from.shape(2) != w.outputs)
        raise("ModelFileError", "the planes beside the weights have the wrong shape");
    for (size_t i = 0; i < places.size(); ++i)
        for (size_t p = 0; p < count; ++p)
            for (size_t r = 0; r < w.outputs; ++r) {
                const double value = from.data()[(i * count + p) * w.outputs + r];
                double& kept = planes[places[i] * w.pitch + p * w.stride + r];
                if (std::bit_cast<uint64_t>(value) != std::bit_cast<uint64_t>(kept)) kept = value;
            }
}

static void fill(std::vector<double>& values, nb::object from) {
    auto given = nb::cast<Vector<double>>(from);
    if (given.shape(0) != values.size()) raise("ModelFileError", "an array has the wrong length");
    values.assign(given.data(), given.data() + given.shape(0));
}

static std::vector<double> numbers_of(nb::object from) {
    auto given = nb::cast<Vector<double>>(from);
    return {given.data(), given.data() + given.shape(0)};
}

static std::vector<int64_t> whole_numbers_of(nb::object from, double below) {
    std::vector<int64_t> out;
    for (double value : numbers_of(from)) {
        if (!(value >= 0.0 && value < below)) raise("ModelFileError", "an index is outside its table");
        out.push_back(int64_t(value));
    }
    return out;
}

// Features that are kept, in rising order.
static Places places_of(nb::object from, size_t features) {
    Places out;
    for (int64_t place : whole_numbers_of(from, double(features))) {
        if (!out.empty() && size_t(place) <= out.back())
            raise("ModelFileError", "the features kept are not places of the table, in order");
        out.push_back(size_t(place));
    }
    return out;
}

static void take(nb::dict& state, const std::string& prefix, const Weights& w, Updates& updates) {
    auto get = [&](const char* name) { return nb::object(state[nb::str((prefix + name).c_str())]); };
    updates.value = numbers_of(get("value"));
    updates.coefficients = numbers_of(get("coefficients"));
    updates.index = whole_numbers_of(get("index"), double(w.features));
    updates.ends = whole_numbers_of(get("ends"), double(updates.index.size()) + 1.0);
    updates.coefficient_ends = whole_numbers_of(get("coefficient_ends"), double(updates.coefficients.size()) + 1.0);
    bool fit = updates.value.size() == updates.index.size() && updates.count() == updates.coefficient_ends.size() &&
               std::is_sorted(updates.ends.begin(), updates.ends.end()) &&
               std::is_sorted(updates.coefficient_ends.begin(), updates.coefficient_ends.end());
    if (!fit) raise("ModelFileError", "the stored updates do not fit together");
}

static double reach_of(const Updates& updates, double constant) {
    double reach = 0.0;
    for (size_t k = 0; k < updates.count(); ++k) {
        double largest = 0.0, norm = 0.0;
        for (size_t i = updates.begin(k); i < size_t(updates.ends[k]); ++i) norm += updates.value[i] * updates.value[i];
        const size_t begin = k ? size_t(updates.coefficient_ends[k - 1]) : 0;
        for (size_t r = begin; r < size_t(updates.coefficient_ends[k]); ++r)
            largest = std::max(largest, std::abs(updates.coefficients[r]));
        reach += largest * (1.0 + norm + std::abs(constant));
    }
    return reach;
}

void Engine::require_columns(double width, double features_here) const {
    const double names_here = double(nb::len(features.names()));
    const bool whole = width >= 0.0 && width <= features_here && width == std::floor(width);
    // Features have names, or are the columns of rows; a model that has met none has neither.
    const bool fits = features.hashed() ||
                      (names_here == features_here && (!positional || width > 0.0 || features_here == 0.0)) ||
                      (names_here == 0.0 && positional && width == features_here);
    if (!whole || !fits) raise("ModelFileError", "the columns of its rows are not the features");
}

static void restore_mini_batch(nb::dict& state, Model& model) {
    using At = saved::MiniBatch;
    Weights& w = model.w;
    std::vector<double> scalars(At::count);
    fill(scalars, state["batch_scalars"]);
    w.batch.clear();
    take(state, "batch_", w, w.batch.updates);
    if (w.touched.on)
        for (int64_t j : w.batch.updates.index) w.touched.mark(size_t(j));
    const double rounds = scalars[At::rounds];
    if (!(rounds >= 0.0 && rounds < w.batch.size && double(w.batch.updates.count()) <= rounds))
        raise("ModelFileError", "the mini-batch holds more than its rounds");
    w.batch.rounds = rounds;
    w.batch.steps = scalars[At::steps];
    w.batch.moves = scalars[At::moves] != 0.0;
    w.batch.scale = scalars[At::scale];
    w.batch.decay = scalars[At::decay];
    w.batch.soft = scalars[At::soft];
    w.batch.shrink = scalars[At::shrink];
    w.batch.reach = reach_of(w.batch.updates, model.constant);
}

static void restore_pocket_scalars(nb::object from, Pocket& pocket) {
    using At = saved::Pocket;
    std::vector<double> scalars(pocket.ratchet ? At::count : At::errors);
    fill(scalars, from);
    pocket.a = scalars[At::scale];
    pocket.run = scalars[At::run];
    pocket.best_run = scalars[At::best_run];
    pocket.holds_current = scalars[At::holds_current] != 0.0;
    if (pocket.ratchet) pocket.errors = scalars[At::errors] < 0.0 ? HUGE_VAL : scalars[At::errors];
}

void Engine::restore_scalars(const std::vector<double>& scalars) {
    using At = saved::Linear;
    Weights& w = model.w;
    if (!w.average.on() && scalars[At::A] != 0.0)
        raise("ModelFileError", "there is a sum of weights, but nothing is averaged");
    w.a = scalars[At::scale];
    w.average.A = scalars[At::A];
    w.average.rounds = scalars[At::averaged];
    w.norm.ww = scalars[At::ww];
    w.norm.since_recomputed = scalars[At::since_recomputed];
    model.t = scalars[At::t];
    model.k = scalars[At::k];
    model.skipped_zero = scalars[At::skipped_zero];
    columns = size_t(scalars[At::columns]);
}

void Engine::set_state(nb::dict state) {
    Weights& w = model.w;
    std::vector<double> scalars(saved::Linear::count);
    fill(scalars, state["scalars"]);
    auto v = nb::cast<Matrix<double>>(state["v"]);
    const bool met_only = state.contains("kept");
    const size_t count = met_only ? nb::cast<size_t>(state["features"]) : v.shape(0);
    positional = scalars[saved::Linear::positional] != 0.0;
    require_columns(scalars[saved::Linear::columns], double(count));
    require_memory(count, v.shape(1), "ModelFileError");
    if (model.task == Task::classify || model.task == Task::multilabel) w.set_outputs(v.shape(1));
    w.set_features(count);
    const Places places = met_only ? places_of(state["kept"], w.features) : all_features(w);
    if (w.touched.on)
        for (size_t j : places) w.touched.mark(j);
    fill(w, w.cells, w.pitch, state["v"], places);
    fill(w, w.average.z, w.stride, state["z"], places);
    fill(w.bias, state["bias"]);
    if (w.average.on()) fill(w.average.bias_sum, state["bias_sum"]);
    if (w.l1.on) {
        std::vector<double> now(1);
        if (state.contains("owed")) {  // a file from before weights were stored raised: each feature's debt beside it
            std::vector<double> then(w.features);
            fill(then, state["owed"]);
            for (size_t j = 0; j < w.features; ++j)
                for (size_t r = 0; r < w.outputs; ++r) {
                    w.l1.pending = then[j];
                    w.v_of(j)[r] = w.l1.encode(w.v_of(j)[r]);
                }
        }
        fill(now, state["owed_now"]);
        w.l1.pending = now[0];
    }
    if (w.sigma.full) {
        Covariance& sigma = w.sigma;
        std::vector<double> one(1);
        fill(one, state["sigma_waited"]);
        sigma.paused = one[0];
        if (sigma.form == Form::chol) {
            fill(one, state["sigma_reach"]);
            sigma.bound = one[0];
            sigma.bounded = sigma.registered;
        }
        auto from = nb::cast<Matrix<double>>(state["sigma"]);
        const size_t count = sigma.entries();
        if (from.shape(0) != sigma.triangle.size() || from.shape(1) != count)
            raise("ModelFileError", "the covariance has the wrong shape");
        for (size_t r = 0; r < sigma.triangle.size(); ++r) sigma.unpack(r, from.data() + r * count);
    }
    if (!w.planes.kinds.empty()) {
        fill_planes(w, places, w.planes.count(), w.planes_of(0), state["planes"]);
        fill_planes(w, {0}, w.planes.kinds.size(), w.planes.bias.data(), state["bias_planes"]);
    }
    if (w.votes.on) {
        w.votes.counts = numbers_of(state["votes_counts"]);
        take(state, "votes_", w, w.votes.updates);
        if (w.votes.counts.size() != w.votes.updates.count() + 1)
            raise("ModelFileError", "the votes do not fit together");
    }
    if (w.batch.on()) restore_mini_batch(state, model);
    if (w.pocket.on) {
        fill(w, w.pocket.v, w.stride, state["pocket"], w.planes.kinds.empty() ? places : all_features(w));
        fill(w.pocket.bias, state["pocket_bias"]);
        restore_pocket_scalars(state["pocket_scalars"], w.pocket);
    }
    std::vector<double> slots(size_t(model.slots));
    fill(slots, state["slots"]);
    for (size_t i = 0; i < slots.size(); ++i) model.state[i] = slots[i];
    restore_scalars(scalars);
    loops->derive(model);
    w.recompute_peaks();
    model.size_scratch();
}

}  // namespace onepass
