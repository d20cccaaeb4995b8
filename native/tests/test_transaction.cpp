// Transactions of the native core: a model that is rolled back has all its bits from the beginning, whatever was
// learned in between.
#include "core/transaction.hpp"
#include "tests/models.hpp"

constexpr size_t features = 24;

static void learn(const Loops* loops, Model& model, const Rows<double, int32_t>& rows, size_t from, size_t count) {
    for (size_t i = from; i < from + count; ++i) {
        const size_t begin = size_t(rows.starts[i]), n = size_t(rows.starts[i + 1]) - begin;
        std::vector<int64_t> index(rows.indices.begin() + long(begin), rows.indices.begin() + long(begin + n));
        const double y = model.task == Task::direction ? 1.0 : rows.y[i];
        loops->learn_one(model, rows.values.data() + begin, index.data(), n, y, 1.0, 1.0, nullptr, 0.0);
    }
}

// Rounds of directions, sparse and dense, are learned and rolled back; then learned again and committed.
static void check_example(const Loops* loops, const Case& rule, Averaging averaging, double p = 2.0) {
    const Rows<double, int32_t> rows(80, features, 2, false, 5, false);
    Model model = make_model(rule, Task::direction, 1, averaging, features, p);
    learn(loops, model, rows, 0, 40);
    const Model before = model;
    Model without = model;
    const auto learn_rest = [&](Model& m) {
        learn(loops, m, rows, 40, 20);
        loops->learn_table(m, {rows.dense.data() + 60 * features, 20, features},
                           {nullptr, nullptr, nullptr, nullptr, nullptr});
    };
    learn_rest(without);
    model.transaction.begin_example(model);
    learn_rest(model);
    expect(same(model, without) && !same(model, before), "a transaction does not change what is learned");
    model.transaction.roll_back(model);
    expect(same(model, before), "an example is rolled back");
    expect(!model.transaction.recording(), "nothing is open after a rollback");
    model.transaction.begin_example(model);
    learn_rest(model);
    model.transaction.commit();
    expect(same(model, without), "an example is committed");
    learn(loops, model, rows, 0, 5);
    learn(loops, without, rows, 0, 5);
    expect(same(model, without), "learning goes on after a commit");
}

// A round whose numbers overflow changes nothing, also inside an example.
static void check_round(const Loops* loops, const Case& rule, size_t classes, Averaging averaging) {
    const Rows<double, int32_t> rows(40, features, classes, false, 5, false);
    Model model = make_model(rule, Task::classify, classes, averaging, features);
    learn(loops, model, rows, 0, 40);
    const Model before = model;
    const int64_t index[] = {0, 3, 5, 7, 8, 9};
    const double x[] = {1e-3, 2.0, -1e120, 3.0, 1e-5, 4.0};  // squares are finite, squared gradients are not
    const auto learn_large = [&](Model& m, double y) {
        return loops->learn_one(m, x, index, 6, y, 1e200, 1.0, nullptr, 0.0);
    };
    const auto refused_label = [&] {  // one of two labels has a gradient
        Model trial = model;
        return learn_large(trial, 1.0) == Status::overflow ? 1.0 : 0.0;
    };
    expect(learn_large(model, refused_label()) == Status::overflow && same(model, before), "a round is rolled back");
    model.transaction.begin_example(model);
    learn(loops, model, rows, 0, 3);
    const Model during = model;
    expect(learn_large(model, refused_label()) == Status::overflow && same(model, during),
           "a round inside an example is rolled back alone");
    if (classes == 2) {
        model.transaction.roll_back(model);
        expect(same(model, before), "and then the example");
    } else {
        model.transaction.commit();
    }
}

// The same weights and averages, though the outputs may have more room.
static bool same_weights(const Model& p, const Model& q) {
    bool same = p.w.features == q.w.features && p.w.outputs == q.w.outputs && p.w.bias == q.w.bias;
    for (size_t j = 0; same && j < p.w.features; ++j)
        for (size_t r = 0; r < p.w.outputs; ++r) {
            same &= p.w.v_of(j)[r] == q.w.v_of(j)[r];
            if (p.w.average.on())
                same &= p.w.average.z.data()[j * p.w.stride + r] == q.w.average.z.data()[j * q.w.stride + r];
        }
    return same && p.t == q.t && p.w.l1.pending == q.w.l1.pending;
}

static void check_growth(size_t known, size_t coming, bool l1) {
    const Rows<double, int32_t> rows(60, features, known, false, 5, false);
    Model model = make_model(named(l1 ? "FOBOS" : "PA1"), Task::classify, known, l1 ? Averaging::none : Averaging::post,
                             features);
    learn(loops_scalar(), model, rows, 0, 60);
    const Model before = model;
    model.transaction.begin_growth(model, known, coming);
    model.w.set_features(features + 9);
    model.w.set_outputs(known + coming);
    model.size_scratch();
    model.transaction.begin_batch(model);  // a batch inside, which is refused
    learn(loops_scalar(), model, rows, 0, 10);
    model.transaction.roll_back(model);
    expect(model.w.outputs == (known + coming > 2 ? known + coming : 1) && model.t == before.t,
           "a batch inside a growth");
    model.transaction.roll_back(model);
    expect(same_weights(model, before), "new classes and features are dropped");
    model.size_scratch();
    learn(loops_scalar(), model, rows, 0, 10);
    expect(model.t == before.t + 10.0, "learning goes on");
}

int main() {
    for (const Loops* loops : instruction_sets()) {
        for (const Case& rule : cases())
            for (Averaging averaging : {Averaging::none, Averaging::predictor, Averaging::post}) {
                if (lazy(rule) && averaging != Averaging::none) continue;
                if (rule.coordinates != Coordinates::vowpal) check_example(loops, rule, averaging);
                if (rule.coordinates != Coordinates::none)
                    for (size_t classes : {2, 5}) check_round(loops, rule, classes, averaging);
            }
        check_example(loops, named("ALMA"), Averaging::none, 5.0);
    }
    for (bool l1 : {false, true})
        for (size_t known : {2, 3, 5, 8, 9, 20})
            for (size_t coming : {1, 2, 7}) check_growth(known, coming, l1);
    std::printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
