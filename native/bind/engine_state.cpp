// An engine's whole state as arrays, and back: what model files hold.
#include <algorithm>
#include <bit>
#include <numeric>

#include "bind/arrays.hpp"
#include "bind/engine.hpp"

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
    if (w.batch.on()) {
        const MiniBatch& b = w.batch;
        out["batch_scalars"] =
            array<double>({7}, {b.rounds, b.steps, b.moves ? 1.0 : 0.0, b.scale, b.decay, b.soft, b.shrink});
        put(out, "batch_", b.updates);
    }
    if (w.pocket.on) {
        out["pocket"] = table(w, w.pocket.v, w.stride, w.planes.kinds.empty() ? places : all_features(w));
        out["pocket_bias"] = array({w.outputs}, std::vector<double>(w.pocket.bias));
        std::vector<double> scalars = {w.pocket.a, w.pocket.run, w.pocket.best_run, w.pocket.holds_current ? 1.0 : 0.0};
        if (w.pocket.ratchet)
            scalars.push_back(std::isfinite(w.pocket.errors) ? w.pocket.errors : -1.0);  // -1: still empty
        const size_t count = scalars.size();
        out["pocket_scalars"] = array({count}, std::move(scalars));
    }
    if (w.sigma.full) {
        const Covariance& sigma = w.sigma;
        const size_t count = sigma.entries();
        std::vector<double> all(sigma.triangle.size() * count);
        for (size_t r = 0; r < sigma.triangle.size(); ++r) sigma.pack(r, all.data() + r * count);
        out["sigma"] = array({sigma.triangle.size(), count}, std::move(all));
        out["sigma_waited"] = array<double>({1}, {sigma.waited});
        if (sigma.form == Form::cholesky) out["sigma_reach"] = array<double>({1}, {sigma.reach_now()});
    }
    if (!w.planes.kinds.empty()) {
        out["planes"] = plane_table(w, places, w.planes.count(), w.planes_of(0));
        out["bias_planes"] = plane_table(w, {0}, w.planes.kinds.size(), w.planes.bias.data());
    }
    out["slots"] = array({size_t(model.slots)}, std::vector<double>(model.state, model.state + model.slots));
    out["scalars"] =
        array<double>({10}, {w.a, w.average.A, w.average.rounds, w.norm.ww, w.norm.since_recomputed, model.t, model.k,
                             model.skipped_zero, positional ? 1.0 : 0.0, double(columns)});
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

void Engine::set_state(nb::dict state) {
    Weights& w = model.w;
    std::vector<double> scalars(10);
    fill(scalars, state["scalars"]);
    auto v = nb::cast<Matrix<double>>(state["v"]);
    const bool met_only = state.contains("kept");
    const size_t count = met_only ? nb::cast<size_t>(state["features"]) : v.shape(0);
    positional = scalars[8] != 0.0;
    require_columns(scalars[9], double(count));
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
        sigma.waited = one[0];
        if (sigma.form == Form::cholesky) {
            fill(one, state["sigma_reach"]);
            sigma.reach = one[0];
            sigma.covered = sigma.registered;
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
    if (w.batch.on()) {
        std::vector<double> b(7);
        fill(b, state["batch_scalars"]);
        w.batch.clear();
        take(state, "batch_", w, w.batch.updates);
        if (w.touched.on)
            for (int64_t j : w.batch.updates.index) w.touched.mark(size_t(j));
        if (!(b[0] >= 0.0 && b[0] < w.batch.size && double(w.batch.updates.count()) <= b[0]))
            raise("ModelFileError", "the mini-batch holds more than its rounds");
        w.batch.rounds = b[0];
        w.batch.steps = b[1];
        w.batch.moves = b[2] != 0.0;
        w.batch.scale = b[3];
        w.batch.decay = b[4];
        w.batch.soft = b[5];
        w.batch.shrink = b[6];
        w.batch.reach = reach_of(w.batch.updates, model.constant);
    }
    if (w.pocket.on) {
        std::vector<double> pocket(w.pocket.ratchet ? 5 : 4);
        fill(w, w.pocket.v, w.stride, state["pocket"], w.planes.kinds.empty() ? places : all_features(w));
        fill(w.pocket.bias, state["pocket_bias"]);
        fill(pocket, state["pocket_scalars"]);
        w.pocket.a = pocket[0];
        w.pocket.run = pocket[1];
        w.pocket.best_run = pocket[2];
        w.pocket.holds_current = pocket[3] != 0.0;
        if (w.pocket.ratchet) w.pocket.errors = pocket[4] < 0.0 ? HUGE_VAL : pocket[4];
    }
    std::vector<double> slots(size_t(model.slots));
    fill(slots, state["slots"]);
    for (size_t i = 0; i < slots.size(); ++i) model.state[i] = slots[i];
    if (!w.average.on() && scalars[1] != 0.0)
        raise("ModelFileError", "there is a sum of weights, but nothing is averaged");
    w.a = scalars[0];
    w.average.A = scalars[1];
    w.average.rounds = scalars[2];
    w.norm.ww = scalars[3];
    w.norm.since_recomputed = scalars[4];
    model.t = scalars[5];
    model.k = scalars[6];
    model.skipped_zero = scalars[7];
    columns = size_t(scalars[9]);
    loops->derive(model);
    w.recompute_peaks();
    model.size_scratch();
}

}  // namespace onepass
