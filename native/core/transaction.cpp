#include "core/transaction.hpp"

#include <algorithm>

#include "core/model.hpp"

namespace onepass {

Transaction::Transaction() = default;
Transaction::Transaction(const Transaction&) {}
Transaction::~Transaction() = default;

// Visits all numbers that a round may change, besides those of features.
template <class Visit>
static void each_scalar(Model& model, const Visit& visit) {
    Weights& w = model.w;
    for (double* value : {&w.a, &w.average.A, &w.average.rounds, &w.l1.pending, &w.norm.ww, &w.norm.since_recomputed,
                          &w.peaks.v, &w.peaks.z, &model.t, &model.k, &model.skipped_zero})
        visit(*value);
    for (int i = 0; i < model.slots; ++i) visit(model.state[i]);
    for (std::vector<double>* values : {&w.bias, &w.planes.bias, &w.average.bias_sum})
        for (double& value : *values) visit(value);
}

// How many numbers are saved for one output of a feature.
static size_t numbers_of_each(const Weights& w) { return 2 + w.planes.count() + w.average.on(); }

Transaction::Savepoint& Transaction::open(Saved saved) {
    if (depth_ == open_.size()) open_.emplace_back();
    Savepoint& point = open_[depth_++];
    point.saved = saved;
    point.first_number = used_;
    point.saved_all = false;
    point.scalars.clear();
    recording_ = saved == Saved::numbers;
    return point;
}

void Transaction::save_average(const Average& average) {
    saved_average_.A = average.A;
    saved_average_.rounds = average.rounds;
    saved_average_.bias_sum = average.bias_sum;
}

void Transaction::restore_average(Average& average) const {
    average.A = saved_average_.A;
    average.rounds = saved_average_.rounds;
    average.bias_sum = saved_average_.bias_sum;
}

void Transaction::begin_example(Model& model) {
    const Weights& w = model.w;
    if (w.pocket.on || w.votes.on || w.sigma.full) return open_copy(model, true);
    Savepoint& point = open(Saved::numbers);
    each_scalar(model, [&](double value) { point.scalars.push_back(value); });
    point.features = w.features;
    if (w.batch.on()) point.batch = w.batch;
}

void Transaction::begin_batch(const Model& model) { open_copy(model, true); }

void Transaction::open_copy(const Model& model, bool reuse) {
    std::unique_ptr<Model> copy = reuse ? std::move(spare_) : nullptr;
    if (copy) *copy = model;
    else copy = std::make_unique<Model>(model);
    Savepoint& point = open(Saved::copy);
    point.copy = std::move(copy);
    point.reuse_copy = reuse;
}

// Some new classes change the outputs that exist: they are halved, negated, or stored in another form. This cannot be
// undone exactly, so the model is copied. Otherwise it is enough to drop the new outputs.
void Transaction::begin_growth(const Model& model, size_t known, size_t added) {
    const Weights& w = model.w;
    const bool reshapes = w.needs_lanes(known + added) && (w.l1.on || w.stride <= 8);
    if (added > 0 && (known < 3 || reshapes)) return open_copy(model, false);
    Savepoint& point = open(Saved::sizes);
    point.features = w.features;
    point.outputs = w.outputs;
    point.bounded = w.sigma.bounded;
}

void Transaction::close() {
    Savepoint& point = open_[--depth_];
    if (point.reuse_copy) spare_ = std::move(point.copy);
    point.copy.reset();
    point.reuse_copy = false;
    if (depth_ == 0) used_ = 0;
    recording_ = depth_ > 0 && open_[depth_ - 1].saved == Saved::numbers && !open_[depth_ - 1].saved_all;
}

void Transaction::commit() { close(); }

void Transaction::roll_back(Model& model) {
    Savepoint& point = open_[depth_ - 1];
    Weights& w = model.w;
    const double* from = point.scalars.data();
    switch (point.saved) {
        case Saved::numbers:
            restore_numbers(w, point.first_number);
            each_scalar(model, [&](double& value) { value = *from++; });
            if (w.batch.on()) w.batch = point.batch;
            w.drop_features(point.features);
            break;
        case Saved::sizes:
            if (w.outputs > point.outputs) w.drop_outputs(point.outputs);
            w.drop_features(point.features);
            w.sigma.bounded = point.bounded;
            break;
        case Saved::copy: model = *point.copy; break;
    }
    used_ = point.first_number;
    close();
}

SavedNumbers Transaction::begin_save(const Weights& w, size_t count) {
    numbers_.grow(used_ + count * numbers_of_each(w));
    return {numbers_.data() + used_};
}

void Transaction::save_all(const Weights& w) {
    SavedNumbers out = begin_save(w, w.features);
    const double* const z = w.average.z.data();
    w.each_touched([&](size_t j) {
        out.save(j * w.pitch, w.v_of(j), w.planes.count(), w.stride, w.average.on() ? z + j : nullptr);
    });
    end_save(out);
    open_[depth_ - 1].saved_all = true;
    recording_ = false;
}

// In reverse order: a number that was written twice was saved twice, and the first saved one is the oldest. Features
// that no longer exist are skipped.
void Transaction::restore_numbers(Weights& w, size_t from) {
    const size_t planes = w.planes.count(), each = numbers_of_each(w);
    for (size_t at = used_; at > from;) {
        at -= each;
        const double* saved = numbers_.data() + at;
        const size_t place = size_t(saved[0]);
        const size_t feature = place / w.pitch, output = place % w.pitch;
        if (feature >= w.features) continue;
        double* const v = w.cells.data() + place;
        for (size_t p = 0; p <= planes; ++p) v[p * w.stride] = saved[1 + p];
        if (w.average.on()) w.average.z.data()[feature * w.stride + output] = saved[2 + planes];
    }
}

RollbackGuard::~RollbackGuard() {
    if (open_) model_.transaction.roll_back(model_);
}

void RollbackGuard::commit() {
    model_.transaction.commit();
    open_ = false;
}

}  // namespace onepass
