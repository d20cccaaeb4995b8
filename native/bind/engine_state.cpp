// The state of an engine as arrays, and back: what model files hold.
#include <algorithm>
#include <bit>
#include <numeric>

#include "bind/arrays.hpp"
#include "bind/engine.hpp"
#include "bind/saved.hpp"
#include "bind/saved_state.hpp"

namespace onepass {

using Places = std::vector<size_t>;  // features, in rising order

// Features whose numbers have changed since they were registered. With planes, files hold the pocket of all features.
static Places changed_features(const Weights& w) {
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

// features x outputs, without padding. In the buffer, a feature begins every `pitch` numbers.
static nb::object save_table(const Weights& w, const Buffer& buffer, size_t pitch, const Places& places) {
    const size_t count = buffer.size() ? places.size() : 0;
    std::vector<double> out(count * w.outputs);
    for (size_t i = 0; i < count; ++i)
        for (size_t r = 0; r < w.outputs; ++r) out[i * w.outputs + r] = buffer.data()[places[i] * pitch + r];
    return array({count, w.outputs}, std::move(out));
}

// features x planes x outputs, without padding. The intercept has planes, too: those of one feature.
static nb::object save_planes(const Weights& w, const Places& places, size_t count, const double* planes) {
    std::vector<double> out(places.size() * count * w.outputs);
    for (size_t i = 0; i < places.size(); ++i)
        for (size_t p = 0; p < count; ++p)
            for (size_t r = 0; r < w.outputs; ++r)
                out[(i * count + p) * w.outputs + r] = planes[places[i] * w.pitch + p * w.stride + r];
    return array({places.size(), count, w.outputs}, std::move(out));
}

static nb::object save_numbers(const std::vector<double>& values) {
    return array({values.size()}, std::vector<double>(values));
}

static nb::object save_indices(const std::vector<int64_t>& values) {
    return array({values.size()}, std::vector<double>(values.begin(), values.end()));
}

static void save_updates(nb::dict& out, const std::string& prefix, const Updates& updates) {
    const auto set = [&](const char* name, nb::object values) { out[nb::str((prefix + name).c_str())] = values; };
    set("value", save_numbers(updates.value));
    set("index", save_indices(updates.index));
    set("ends", save_indices(updates.ends));
    set("coefficients", save_numbers(updates.coefficients));
    set("coefficient_ends", save_indices(updates.coefficient_ends));
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
    save_updates(out, "batch_", batch.updates);
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

static void save_covariance(nb::dict& out, const Covariance& sigma) {
    const size_t count = sigma.entries();
    std::vector<double> all(sigma.triangle.size() * count);
    for (size_t r = 0; r < sigma.triangle.size(); ++r) sigma.pack(r, all.data() + r * count);
    out["sigma"] = array({sigma.triangle.size(), count}, std::move(all));
    out["sigma_waited"] = array<double>({1}, {sigma.paused});
    if (sigma.form == Form::chol) out["sigma_reach"] = array<double>({1}, {sigma.bound_now()});
}

nb::dict Engine::state(bool met_only) {
    auto lock = own();
    const Weights& w = model.w;
    const Places places = met_only ? changed_features(w) : all_features(w);
    nb::dict out;
    if (met_only) out["kept"] = array({places.size()}, std::vector<double>(places.begin(), places.end()));
    out["v"] = save_table(w, w.cells, w.pitch, places);
    out["z"] = save_table(w, w.average.z, w.stride, places);
    out["bias"] = save_numbers(w.bias);
    out["bias_sum"] = save_numbers(w.average.on() ? w.average.bias_sum : std::vector<double>(w.outputs));
    if (w.l1.on) out["owed_now"] = array<double>({1}, {w.l1.pending});
    if (w.votes.on) {
        out["votes_counts"] = save_numbers(w.votes.counts);
        save_updates(out, "votes_", w.votes.updates);
    }
    if (w.batch.on()) save_mini_batch(out, w.batch);
    if (w.pocket.on) {
        out["pocket"] = save_table(w, w.pocket.v, w.stride, w.planes.kinds.empty() ? places : all_features(w));
        out["pocket_bias"] = save_numbers(w.pocket.bias);
        out["pocket_scalars"] = pocket_scalars(w.pocket);
    }
    if (w.sigma.full) save_covariance(out, w.sigma);
    if (!w.planes.kinds.empty()) {
        out["planes"] = save_planes(w, places, w.planes.count(), w.planes_of(0));
        out["bias_planes"] = save_planes(w, {0}, w.planes.kinds.size(), w.planes.bias.data());
    }
    out["slots"] = array({size_t(model.slots)}, std::vector<double>(model.state, model.state + model.slots));
    out["scalars"] = save_scalars();
    return out;
}

// The features that a file holds.
static Places read_places(const SavedState& state, size_t features) {
    Places out;
    for (int64_t place : state.indices("kept", double(features))) {
        if (!out.empty() && size_t(place) <= out.back())
            raise("ModelFileError", "the features kept are not places of the table, in order");
        out.push_back(size_t(place));
    }
    return out;
}

// An empty table leaves the buffer as it is.
static void restore_table(const SavedState& state, const char* name, const Weights& w, Buffer& buffer, size_t pitch,
                          const Places& places) {
    if (state.table(name).shape(0) == 0) return;
    const auto saved = state.table(name, places.size(), w.outputs);
    for (size_t i = 0; i < places.size(); ++i)
        for (size_t r = 0; r < w.outputs; ++r) {
            const double value = saved.data()[i * w.outputs + r];
            // Zeros are not written, so that their pages need no memory. -0.0 has other bits than 0.0.
            if (std::bit_cast<uint64_t>(value) != 0) buffer.data()[places[i] * pitch + r] = value;
        }
}

static void restore_planes(const SavedState& state, const char* name, const Weights& w, const Places& places,
                           size_t count, double* planes) {
    auto saved = nb::cast<nb::ndarray<const double, nb::ndim<3>, nb::c_contig, nb::device::cpu>>(state.at(name));
    SavedState::require_shape(name, {places.size(), count, w.outputs},
                              {saved.shape(0), saved.shape(1), saved.shape(2)});
    for (size_t i = 0; i < places.size(); ++i)
        for (size_t p = 0; p < count; ++p)
            for (size_t r = 0; r < w.outputs; ++r) {
                const double value = saved.data()[(i * count + p) * w.outputs + r];
                double& now = planes[places[i] * w.pitch + p * w.stride + r];
                if (std::bit_cast<uint64_t>(value) != std::bit_cast<uint64_t>(now)) now = value;
            }
}

static void restore_updates(const SavedState& state, const std::string& prefix, size_t features, Updates& updates) {
    updates.value = state.numbers(prefix + "value");
    updates.coefficients = state.numbers(prefix + "coefficients");
    updates.index = state.indices(prefix + "index", double(features));
    updates.ends = state.indices(prefix + "ends", double(updates.index.size()) + 1.0);
    updates.coefficient_ends = state.indices(prefix + "coefficient_ends", double(updates.coefficients.size()) + 1.0);
    const bool consistent = updates.value.size() == updates.index.size() &&
                            updates.count() == updates.coefficient_ends.size() &&
                            std::is_sorted(updates.ends.begin(), updates.ends.end()) &&
                            std::is_sorted(updates.coefficient_ends.begin(), updates.coefficient_ends.end());
    if (!consistent) raise("ModelFileError", "the stored updates do not fit together");
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

static void restore_mini_batch(const SavedState& state, Model& model) {
    using At = saved::MiniBatch;
    Weights& w = model.w;
    const std::vector<double> scalars = state.numbers("batch_scalars", At::count);
    w.batch.clear();
    restore_updates(state, "batch_", w.features, w.batch.updates);
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

static void restore_votes(const SavedState& state, Weights& w) {
    w.votes.counts = state.numbers("votes_counts");
    restore_updates(state, "votes_", w.features, w.votes.updates);
    if (w.votes.counts.size() != w.votes.updates.count() + 1) raise("ModelFileError", "the votes do not fit together");
}

static void restore_pocket(const SavedState& state, Weights& w, const Places& places) {
    using At = saved::Pocket;
    Pocket& pocket = w.pocket;
    restore_table(state, "pocket", w, pocket.v, w.stride, w.planes.kinds.empty() ? places : all_features(w));
    pocket.bias = state.numbers("pocket_bias", w.outputs);
    const auto scalars = state.numbers("pocket_scalars", pocket.ratchet ? At::count : At::errors);
    pocket.a = scalars[At::scale];
    pocket.run = scalars[At::run];
    pocket.best_run = scalars[At::best_run];
    pocket.holds_current = scalars[At::holds_current] != 0.0;
    if (pocket.ratchet) pocket.errors = scalars[At::errors] < 0.0 ? HUGE_VAL : scalars[At::errors];
}

// The pending L1. Files of old versions hold it for each feature, beside weights that are not encoded.
static void restore_pending_l1(const SavedState& state, Weights& w) {
    if (state.has("owed")) {
        const std::vector<double> pending = state.numbers("owed", w.features);
        for (size_t j = 0; j < w.features; ++j)
            for (size_t r = 0; r < w.outputs; ++r) {
                w.l1.pending = pending[j];
                w.v_of(j)[r] = w.l1.encode(w.v_of(j)[r]);
            }
    }
    w.l1.pending = state.number("owed_now");
}

static void restore_covariance(const SavedState& state, Covariance& sigma) {
    sigma.paused = state.number("sigma_waited");
    if (sigma.form == Form::chol) {
        sigma.bound = state.number("sigma_reach");
        sigma.bounded = sigma.registered;
    }
    const size_t count = sigma.entries();
    const auto saved = state.table("sigma", sigma.triangle.size(), count);
    for (size_t r = 0; r < sigma.triangle.size(); ++r) sigma.unpack(r, saved.data() + r * count);
}

void Engine::require_columns(double width, double features_here) const {
    const double names_here = double(nb::len(features.names()));
    const bool whole = width >= 0.0 && width <= features_here && width == std::floor(width);
    // A feature has a name, or is a column of rows of numbers. A model without examples has neither.
    const bool fits = features.hashed() ||
                      (names_here == features_here && (!positional || width > 0.0 || features_here == 0.0)) ||
                      (names_here == 0.0 && positional && width == features_here);
    if (!whole || !fits) raise("ModelFileError", "the columns of its rows are not the features");
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

// Allocates the tables, after everything that implies their size was checked. Returns the features that the file holds.
static Places allocate(const SavedState& state, Model& model, size_t features) {
    Weights& w = model.w;
    if (model.task == Task::classify || model.task == Task::multilabel) w.set_outputs(state.table("v").shape(1));
    w.set_features(features);
    const Places places = state.has("kept") ? read_places(state, features) : all_features(w);
    if (w.touched.on)
        for (size_t j : places) w.touched.mark(j);
    return places;
}

void Engine::set_state(nb::dict arrays) {
    const SavedState state(arrays);
    Weights& w = model.w;
    const std::vector<double> scalars = state.numbers("scalars", saved::Linear::count);
    const auto v = state.table("v");
    const size_t count = state.has("kept") ? nb::cast<size_t>(state.at("features")) : v.shape(0);
    positional = scalars[saved::Linear::positional] != 0.0;
    require_columns(scalars[saved::Linear::columns], double(count));
    require_memory(count, v.shape(1), "ModelFileError");
    const Places places = allocate(state, model, count);
    restore_table(state, "v", w, w.cells, w.pitch, places);
    restore_table(state, "z", w, w.average.z, w.stride, places);
    w.bias = state.numbers("bias", w.outputs);
    if (w.average.on()) w.average.bias_sum = state.numbers("bias_sum", w.outputs);
    if (w.l1.on) restore_pending_l1(state, w);
    if (w.sigma.full) restore_covariance(state, w.sigma);
    if (!w.planes.kinds.empty()) {
        restore_planes(state, "planes", w, places, w.planes.count(), w.planes_of(0));
        restore_planes(state, "bias_planes", w, {0}, w.planes.kinds.size(), w.planes.bias.data());
    }
    if (w.votes.on) restore_votes(state, w);
    if (w.batch.on()) restore_mini_batch(state, model);
    if (w.pocket.on) restore_pocket(state, w, places);
    const std::vector<double> slots = state.numbers("slots", size_t(model.slots));
    std::copy(slots.begin(), slots.end(), model.state);
    restore_scalars(scalars);
    loops->derive(model);
    w.recompute_peaks();
    model.size_scratch();
}

}  // namespace onepass
