// The native core without Python, meant for AddressSanitizer and UndefinedBehaviorSanitizer (scripts/check runs it so):
// every rule over every kind of batch on every instruction set gives the same bits; damaged batches are refused.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <random>
#include <vector>

#include "core/blocks.hpp"
#include "core/losses.hpp"
#include "core/model.hpp"
#include "core/rules.hpp"
#include "core/schedules.hpp"
#include "parse/hash.hpp"

using namespace onepass;

static int passed = 0, failed = 0;

static void expect(bool holds, const char* what) {
    holds ? ++passed : ++failed;
    if (!holds) std::printf("FAILED: %s\n", what);
}

static std::vector<const Loops*> instruction_sets() {
    std::vector<const Loops*> out = {loops_scalar()};
#ifdef ONEPASS_X86
    if (__builtin_cpu_supports("avx2")) out.push_back(loops_avx2());
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        out.push_back(loops_avx512());
#endif
    return out;
}

template <class V, class I>
struct Rows {
    size_t rows, columns;
    std::vector<V> dense, values;
    std::vector<I> indices, starts;
    std::vector<double> y, importance, base;  // base: of models with one row of weights

    Rows(size_t n, size_t d, size_t classes, bool regress, uint64_t seed, bool disorder) : rows(n), columns(d) {
        std::mt19937_64 random(seed);
        std::normal_distribution<double> normal;
        starts.push_back(0);
        for (size_t i = 0; i < n; ++i) {
            for (size_t j = 0; j < d; ++j) {
                const V x = random() % 3 ? V(normal(random)) : V(0);
                dense.push_back(x);
                if (x != V(0)) {
                    values.push_back(x);
                    indices.push_back(I(j));
                }
            }
            if (disorder && values.size() > size_t(starts.back()) + 1) {  // the same row, told another way
                std::swap(values[size_t(starts.back())], values.back());
                std::swap(indices[size_t(starts.back())], indices.back());
            }
            starts.push_back(I(values.size()));
            y.push_back(regress ? normal(random) : double(random() % classes));
            importance.push_back(double(random() % 4) / 2.0);
            base.push_back(random() % 3 ? normal(random) : 0.0);
        }
    }
    DenseBatch<V> as_dense() const { return {dense.data(), rows, columns}; }
    CsrBatch<V, I> as_csr() const {
        return {values.data(), indices.data(), starts.data(), rows, columns, values.size()};
    }
    Answers answers() const { return {y.data(), importance.data(), nullptr, nullptr, nullptr, base.data()}; }
};

// A rule of the table with its parameters; of those by coordinates also which formula moves the weights.
struct Case {
    const char* rule;
    std::vector<double> params;
    Coordinates coordinates = Coordinates::none;
};

static double code(Loss loss) { return double(int(loss)); }
static double code(Schedule schedule) { return double(int(schedule)); }

static const std::vector<Case>& cases() {
    static const double logistic = code(Loss::logistic), inv_sqrt = code(Schedule::inv_sqrt);
    static const std::vector<Case> all = {
        {"Perceptron", {0.1, 0, code(Schedule::inv_scaling), 0.5, 0.6, 1.0}},
        {"Adaline", {code(Schedule::geometric), 0.05, 0.99, 0.001}},
        {"NormalizedLMS", {0.8, 1e-3, 0}},
        {"PA", {INFINITY, 0, 0}},
        {"PA1", {0.3, 0, 1}},
        {"PA2", {0.5, 1, 0}},
        {"SGD", {logistic, 0, inv_sqrt, 0.5, 0, 0, 0, 0.1}},
        {"Pegasos", {0.01, 1}},
        {"MIRA", {0.5, 0.3, 1}},
        {"ROMMA", {}},
        {"AggressiveROMMA", {}},
        {"ALMA", {0.9, 3.14, 1.41, 1, 0, 0}},
        {"Shifting", {0.1, 0}},
        {"MROC", {2, 0.1, 0}},
        {"FOBOS", {logistic, 0, inv_sqrt, 0.5, 0, 0, 0, 0.01, 0.1}},
        {"TruncatedGradient", {code(Loss::hinge), 0, code(Schedule::constant), 0.1, 0, 0, 0, 0.05, 3}},
        {"RLS", {0.98}},
        {"AROW", {0.5, 0}},
        {"Kalman", {0.5, 0}},
        {"CW", {0.8, 0, 0}},
        {"SCW1", {0.8, 0, 0.3}},
        {"SCW2", {0.8, 0, 0.3}},
        {"NHERD", {0.2}},
        {"ONS", {logistic, 0, 0.5}},
        {"NORMA", {inv_sqrt, 0.5, 0, 0, 0.1, 0.5, 0.3}},
        {"Parzen", {}},
        {"AdaGrad", {logistic, 0, 0.3, 0.01, 0}, Coordinates::adagrad},
        {"AdaDelta", {logistic, 0, 0.9, 0.01, 1}, Coordinates::adadelta},
        {"AdaDelta", {logistic, 0, 0.9, 0.01, 1}, Coordinates::adadelta_exact},
        {"RMSProp", {logistic, 0, 0.1, 0.9, 0.01}, Coordinates::rmsprop},
        {"RMSProp", {logistic, 0, 0.1, 0.9, 0.01}, Coordinates::rmsprop_exact},
        {"Adam", {logistic, 0, 0.1, 0.9, 0.99, 0.01}, Coordinates::adam},
        {"Adam", {logistic, 0, 0.1, 0.9, 0.99, 0.01}, Coordinates::adam_lazy},
        {"FTRL", {logistic, 0, 0.3, 1, 0.1, 0.1}, Coordinates::ftrl},
        {"FTRL", {logistic, 0, 0.3, 1, 0, 0.1}, Coordinates::ftrl_without_l1},
        {"VW", {logistic, 0, 0.5, 0.5, 1, 1, 1, 1, 0, 0.5}, Coordinates::vowpal},
    };
    return all;
}

static bool is_one_of(const Case& of, std::initializer_list<std::string_view> names) {
    return std::ranges::find(names, std::string_view(of.rule)) != names.end();
}

static const Case& named(std::string_view rule) {
    return *std::ranges::find_if(cases(), [&](const Case& each) { return each.rule == rule; });
}

static bool lazy(const Case& of) { return is_one_of(of, {"FOBOS", "TruncatedGradient"}); }

static void set_planes(Weights& w, Coordinates kind) {
    static const std::map<Coordinates, std::vector<Plane>> planes = {
        {Coordinates::none, {}},
        {Coordinates::adagrad, {{}}},                             // G
        {Coordinates::adadelta, {{}, {}}},                        // E, D
        {Coordinates::adadelta_exact, {{}, {}, {}}},              // E, D, met
        {Coordinates::rmsprop, {{}}},                             // E
        {Coordinates::rmsprop_exact, {{}, {}}},                   // E, met
        {Coordinates::adam, {{0.0, true}, {}}},                   // m, v
        {Coordinates::adam_lazy, {{0.0, true}, {}}},              // m, v
        {Coordinates::ftrl, {{0.0, true, 0.1}, {}}},              // z, n
        {Coordinates::ftrl_without_l1, {{}}},                     // n
        {Coordinates::vowpal, {{}, {}, {1e-3, false, 0.0}, {}}},  // G, N; of a row, the norms (from a start) and total
    };
    w.set_planes(planes.at(kind), kind == Coordinates::vowpal ? 2 : 0);
}

static Form form = Form::gain;

// The rules with Gaussian weights take turns at the full covariance and the diagonal.
static void set_covariance(Model& model, const Case& of) {
    Covariance& sigma = model.w.sigma;
    sigma.on = true;
    sigma.full = is_one_of(of, {"RLS", "Kalman", "CW", "SCW2", "ONS"});
    sigma.form = form;
    sigma.shared = model.solve != nullptr;
    sigma.forgets = is_one_of(of, {"RLS"});
    sigma.largest = 2.0;
    sigma.max_dim = 4096;
    sigma.constants = 1;
    sigma.begin();
    if (!sigma.full) model.w.set_planes({{1.0, false, 0.0}}, 0);
}

static bool uses_losses(const Case& of) {
    return position_of("loss", rules::find(of.rule)->parameters) == 0 && !is_one_of(of, {"ONS"});
}

// Parameters and state of the rule, as the engine would set them.
static void set_rule(Model& model, const Case& of) {
    const rules::Entry& entry = *rules::find(of.rule);
    model.step = entry.step;
    model.solve = entry.solve;
    model.coordinates = of.coordinates;
    model.slots = int(count_names(entry.slots));
    set_planes(model.w, model.coordinates);
    if (is_one_of(of, {"RLS", "AROW", "Kalman", "CW", "SCW1", "SCW2", "NHERD", "ONS"})) set_covariance(model, of);
    std::ranges::copy(of.params, model.params);
    model.w.l1.on = lazy(of);
    if (is_one_of(of, {"TruncatedGradient"})) model.w.l1.threshold = 3;
    model.uses_ww = is_one_of(of, {"Pegasos", "ROMMA", "AggressiveROMMA", "ALMA"});
}

static Model make_model(const Case& rule, Task task, size_t classes, Averaging averaging, size_t d, double p = 2.0) {
    Model model;
    model.task = task;
    set_rule(model, rule);
    if (uses_losses(rule) && task == Task::regress) model.params[0] = code(Loss::huber), model.params[1] = 1.0;
    model.tube = 0.1;
    if (p != 2.0) {
        model.w.p_norm.p = p;
        model.w.p_norm.ball = 1.0;
        model.params[position_of("linked", rules::find(rule.rule)->parameters)] = 1.0;
    }
    model.w.average.start(averaging, 1.0);
    model.w.set_features(d);
    if (task == Task::classify) model.w.set_outputs(classes);
    model.size_scratch();
    return model;
}

// Every rule of the table has a case here, with as many parameters as it reads.
static void check_cases() {
    for (const rules::Entry& entry : rules::table())
        expect(std::ranges::any_of(cases(), [&](const Case& of) { return entry.name == std::string_view(of.rule); }),
               entry.name);
    for (const Case& of : cases()) {
        const rules::Entry* entry = rules::find(of.rule);
        expect(entry && of.params.size() == count_names(entry->parameters), of.rule);
    }
}

static bool same(const Model& p, const Model& q) {
    for (size_t r = 0; r < p.w.sigma.triangle.size(); ++r)
        if (std::memcmp(p.w.sigma.of(r), q.w.sigma.of(r), Covariance::row_at(p.w.sigma.size) * sizeof(double)) != 0)
            return false;
    return p.w.cells.size() == q.w.cells.size() &&
           std::memcmp(p.w.cells.data(), q.w.cells.data(), p.w.cells.size() * sizeof(double)) == 0 &&
           (p.w.average.z.size() == 0 ||
            std::memcmp(p.w.average.z.data(), q.w.average.z.data(), p.w.average.z.size() * sizeof(double)) == 0) &&
           p.w.planes.bias == q.w.planes.bias && std::equal(p.state, p.state + p.slots, q.state) &&
           p.w.bias == q.w.bias && p.w.a == q.w.a && p.w.average.A == q.w.average.A && p.t == q.t && p.k == q.k;
}

static bool close(const Model& p, const Model& q) {
    auto weight = [](const Weights& w, size_t j, size_t r) {
        return w.a * (w.l1.on ? w.l1.decode(w.v_of(j)[r]) : w.v_of(j)[r]);
    };
    for (size_t j = 0; j < p.w.features; ++j)
        for (size_t r = 0; r < p.w.outputs; ++r) {
            const double one = weight(p.w, j, r);
            if (std::abs(one - weight(q.w, j, r)) > 1e-9 * std::max(1.0, std::abs(one))) return false;
        }
    return true;
}

template <class V, class I>
static void check_cell(const Case& rule, Task task, size_t classes, Averaging averaging, double p = 2.0) {
    const size_t d = 53;
    const Rows<V, I> tidy(300, d, classes, task == Task::regress, 7, false),
        untidy(300, d, classes, task == Task::regress, 7, true);
    const Loops* first = loops_scalar();
    Model dense = make_model(rule, task, classes, averaging, d, p), csr = dense, disordered = dense;
    auto learn = [&](const Loops* loops, Model& model, const auto& X, Answers in) {
        return by_blocks(X, [&](const auto& block, size_t row) {
            Answers of = in;
            of.y += row;
            of.importance += row;
            of.base += row;
            return loops->learn(model, block, of);
        });
    };
    auto learn_dense = [&](const Loops* loops, Model& model) {
        return learn(loops, model, tidy.as_dense(), tidy.answers());
    };
    auto learn_csr = [&](const Loops* loops, Model& model, const Rows<V, I>& rows) {
        return learn(loops, model, rows.as_csr(), rows.answers());
    };
    expect(learn_dense(first, dense).status == Status::ok, "a dense batch is learned");
    expect(learn_csr(first, csr, tidy).status == Status::ok, "a CSR batch is learned");
    expect(learn_csr(first, disordered, untidy).status == Status::ok, "a disordered CSR batch is learned");
    // ROMMA grows on labels drawn at random, and with it every rounding.
    if (!is_one_of(rule, {"ROMMA", "AggressiveROMMA"})) expect(close(dense, csr), "dense and CSR agree");
    expect(same(csr, disordered), "the order of indices in a row does not matter");
    for (const Loops* loops : instruction_sets()) {
        Model again = make_model(rule, task, classes, averaging, d, p), other = again;
        learn_dense(loops, again);
        learn_csr(loops, other, tidy);
        expect(same(again, dense) && same(other, csr), loops->name);
    }
}

// The difference of two rows with its sign: φ of the pair, in both forms.
struct PairDirection {
    std::vector<double> dense, values;
    std::vector<int64_t> indices;  // first the features of the arriving row, then those that only the other row has

    PairDirection(const double* row, const double* other, size_t d, double sign) {
        for (size_t c = 0; c < d; ++c) dense.push_back(sign * (row[c] - other[c]));
        for (bool arrived : {true, false})
            for (size_t c = 0; c < d; ++c)
                if (arrived ? row[c] != 0.0 : row[c] == 0.0 && other[c] != 0.0) {
                    values.push_back(dense[c]);
                    indices.push_back(int64_t(c));
                }
    }
};

// Learns the differences of the pairs one by one: from dense rows, and from sparse rows.
static void learn_differences(const Rows<double, int32_t>& rows, const Meetings& in, size_t first, Model& by_dense,
                              Model& by_sparse) {
    const size_t d = rows.columns;
    for (size_t i = first; i < rows.rows; ++i)
        for (size_t j = size_t(in.begin[i]); j < i; ++j) {
            if (in.relevance[i] == in.relevance[j]) continue;
            const double sign = in.relevance[j] < in.relevance[i] ? 1.0 : -1.0;
            const PairDirection phi(rows.dense.data() + i * d, rows.dense.data() + j * d, d, sign);
            const double importance = in.importance[i] * in.importance[j];
            loops_scalar()->learn_table(by_dense, {phi.dense.data(), 1, d},
                                        {nullptr, &importance, nullptr, nullptr, nullptr});
            loops_scalar()->learn_one(by_sparse, phi.values.data(), phi.indices.data(), phi.indices.size(), 1.0,
                                      importance, 1.0, nullptr, 0.0);
        }
}

// The pairs of queries give the same bits as learning their differences one by one, in every form and instruction set.
static void check_pairs(const Case& rule, Averaging averaging) {
    const size_t n = 120, d = 53, first = 5, room = 7, query = 20;
    const Rows<double, int32_t> rows(n, d, 3, false, 11, false);
    std::vector<int64_t> begin(n);
    for (size_t i = 0; i < n; ++i) begin[i] = int64_t(std::max(i / query * query, i > room ? i - room : 0));
    const Meetings in{rows.y.data(), rows.importance.data(), begin.data(), first, nullptr};
    const Model fresh = make_model(rule, Task::direction, 1, averaging, d);
    Model by_dense = fresh, by_sparse = fresh;
    learn_differences(rows, in, first, by_dense, by_sparse);
    std::vector<uint32_t> place(d);
    std::vector<double> arrived(d + 1), x(2 * d + 1);
    std::vector<int32_t> index(2 * d + 1);
    Difference room_for{place.data(), arrived.data(), x.data(), index.data()};
    for (const Loops* loops : instruction_sets()) {
        Model dense = fresh, sparse = fresh, refused = fresh;
        loops->learn_pairs_table(dense, rows.as_dense(), in, room_for);
        const Outcome outcome = loops->learn_pairs_csr(sparse, rows.as_csr(), in, room_for);
        expect(outcome.status == Status::ok && outcome.row == n, "all examples are learned");
        expect(dense.t > 100 && same(dense, by_dense), "dense pairs are their differences");
        expect(same(sparse, by_sparse), "sparse pairs are their differences");
        expect(std::ranges::count(place, 0u) == ptrdiff_t(d), "no place is left marked");
        auto damaged = rows;
        damaged.indices[100] = 99;
        expect(loops->learn_pairs_csr(refused, damaged.as_csr(), in, room_for).status != Status::ok &&
                   same(refused, fresh),
               "an index past the last column is refused");
    }
}

static void check_damage() {
    Rows<double, int32_t> rows(40, 20, 2, false, 3, false);
    for (const Loops* loops : instruction_sets()) {
        auto status = [&](const Rows<double, int32_t>& damaged) {
            Model model = make_model(named("PA1"), Task::classify, 2, Averaging::none, 20);
            return loops->learn_csr(model, damaged.as_csr(), damaged.answers()).status;
        };
        auto damaged = rows;
        damaged.indices[100] = 20;
        expect(status(damaged) == Status::bad_index, "an index past the last column");
        damaged.indices[100] = -1;
        expect(status(damaged) == Status::bad_index, "a negative index");
        damaged = rows;
        damaged.starts[10] = 1 << 30;
        expect(status(damaged) == Status::bad_starts, "a row that ends past the data");
        damaged.starts[10] = -5;
        expect(status(damaged) == Status::bad_starts, "a row that starts before the data");
        damaged = rows;
        damaged.values[77] = NAN;
        expect(status(damaged) == Status::not_finite, "NaN");
        damaged.values[77] = -INFINITY;
        expect(status(damaged) == Status::not_finite, "infinity");
        damaged.values[77] = 1e200;
        expect(status(damaged) == Status::overflow, "a norm that overflows");
        damaged = rows;
        damaged.rows = 0;
        expect(status(damaged) == Status::ok, "no rows");
    }
}

// Float32 values and 64-bit indices come in blocks: the damaged row and its column are those of the batch.
static void check_blocks() {
    Rows<float, int64_t> rows(3000, 20, 2, false, 3, false);  // several blocks
    auto check = [](const auto& X) {
        return by_blocks(X, [](const auto& block, size_t) { return loops_scalar()->check(block, 0); });
    };
    expect(rows.values.size() > 2 * block_numbers && check(rows.as_csr()).status == Status::ok, "several blocks");
    const size_t late = 2900, at = size_t(rows.starts[late]);
    auto damaged = rows;
    damaged.values[at] = NAN;
    Outcome found = check(damaged.as_csr());
    expect(found.status == Status::not_finite && found.row == late && found.column == rows.indices[at],
           "NaN in a block");
    damaged = rows;
    damaged.dense[late * 20 + 3] = INFINITY;
    found = check(damaged.as_dense());
    expect(found.status == Status::not_finite && found.row == late && found.column == 3, "infinity in a block");
    for (int64_t outside : {int64_t(-1), int64_t(20), int64_t(1) << 32}) {  // the last is 0 in 32 bits
        damaged = rows;
        damaged.indices[at] = outside;
        found = check(damaged.as_csr());
        expect(found.status == Status::bad_index && found.row == late && found.column == outside, "an index outside");
    }
    for (int64_t start : {int64_t(-5), int64_t(1) << 40}) {
        damaged = rows;
        damaged.starts[late] = start;
        found = check(damaged.as_csr());
        expect(found.status == Status::bad_starts && found.row == late - 1, "damaged starts");
    }
}

static void check_weights() {
    Model model = make_model(named("PA1"), Task::classify, 2, Averaging::predictor, 3);
    const double x[] = {1, 2, 3}, y[] = {1};
    loops_scalar()->learn_table(model, {x, 1, 3}, {y, nullptr, nullptr, nullptr, nullptr});
    const double before = model.w.v_of(1)[0];
    model.w.set_outputs(3);
    const double* after = model.w.v_of(1);
    expect(after[0] == -before / 2 && after[1] == before / 2 && after[2] == 0.0,
           "a third class turns w into -w/2, +w/2, 0");
    model.w.set_outputs(20);
    model.w.set_features(100);
    model.size_scratch();
    expect(model.w.cells.size() == 100 * model.w.pitch, "rows and features grow");
    model.w.drop_features(3);
    expect(model.w.features == 3, "features are dropped again");
    expect(murmur3("hello", 5) == 0x248bfa47, "murmur3 of hello");
    expect(murmur3("", 0) == 0, "murmur3 of nothing");
}

// Copies of numbers that grew, shrank and were copied before; under the sanitisers, that nothing is lost or freed
// twice.
static void check_copies() {
    Buffer small, large, copy;
    small.grow(3);
    large.grow(1000);
    for (size_t i = 0; i < 1000; ++i) large.data()[i] = double(i);
    small.data()[2] = 7.0;
    copy.grow(5);
    copy = large;
    copy = copy;
    expect(copy.size() == 1000 && copy.data()[999] == 999.0, "a larger one copied");
    expect(reinterpret_cast<uintptr_t>(copy.data()) % 64 == 0, "a copy begins with a cache line");
    copy = small;
    expect(copy.size() == 3 && copy.data()[2] == 7.0, "a smaller one copied");
    copy.grow(900);
    bool zeros = true;
    for (size_t i = 3; i < 900; ++i) zeros &= copy.data()[i] == 0.0;
    expect(zeros, "what grows after a smaller copy is zero");
    copy.grow(5000);
    Buffer moved(std::move(copy));
    const Buffer again(moved);
    expect(again.size() == 5000 && again.data()[2] == 7.0, "a copy of what was moved");
}

int main() {
    check_cases();
    for (const Case& rule : cases())
        for (Averaging averaging : {Averaging::none, Averaging::predictor, Averaging::post}) {
            if (lazy(rule) && averaging != Averaging::none) continue;
            for (size_t classes : {2, 5, 20}) {
                check_cell<double, int32_t>(rule, Task::classify, classes, averaging);
                check_cell<float, int64_t>(rule, Task::classify, classes, averaging);
            }
            check_cell<double, int64_t>(rule, Task::regress, 1, averaging);
            if (rule.coordinates != Coordinates::vowpal)
                check_cell<float, int32_t>(rule, Task::direction, 1, averaging);
        }
    for (Form other :
         {Form::joseph, Form::chol}) {  // one that shares Sigma among classes and forgets; one that does not
        form = other;
        for (const char* name : {"RLS", "ONS"}) {
            const Case& rule = named(name);
            check_cell<double, int32_t>(rule, Task::classify, 5, Averaging::none);
            check_cell<float, int64_t>(rule, Task::regress, 1, Averaging::none);
        }
    }
    form = Form::gain;
    const Case& alma = named("ALMA");
    for (size_t classes : {2, 5}) check_cell<double, int32_t>(alma, Task::classify, classes, Averaging::none, 5.0);
    check_cell<float, int64_t>(alma, Task::direction, 1, Averaging::none, 5.0);
    for (const char* name : {"Perceptron", "PA1", "Pegasos", "MROC", "FOBOS", "AROW", "ONS", "AdaGrad", "FTRL"})
        for (Averaging averaging : {Averaging::none, Averaging::predictor})
            if (!lazy(named(name)) || averaging == Averaging::none) check_pairs(named(name), averaging);
    check_damage();
    check_blocks();
    check_weights();
    check_copies();
    std::printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
