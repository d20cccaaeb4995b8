// Models of every rule, and random rows for them: what the tests of the native core share.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <initializer_list>
#include <map>
#include <random>
#include <string_view>
#include <vector>

#include "core/blocks.hpp"
#include "core/losses.hpp"
#include "core/model.hpp"
#include "core/rules.hpp"
#include "core/schedules.hpp"

using namespace onepass;

inline int passed = 0, failed = 0;

inline void expect(bool holds, const char* what) {
    holds ? ++passed : ++failed;
    if (!holds) std::printf("FAILED: %s\n", what);
}

inline std::vector<const Loops*> instruction_sets() {
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

inline double code(Loss loss) { return double(int(loss)); }
inline double code(Schedule schedule) { return double(int(schedule)); }

inline const std::vector<Case>& cases() {
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

inline bool is_one_of(const Case& of, std::initializer_list<std::string_view> names) {
    return std::ranges::find(names, std::string_view(of.rule)) != names.end();
}

inline const Case& named(std::string_view rule) {
    return *std::ranges::find_if(cases(), [&](const Case& each) { return each.rule == rule; });
}

inline bool lazy(const Case& of) { return is_one_of(of, {"FOBOS", "TruncatedGradient"}); }

inline void set_planes(Weights& w, Coordinates kind) {
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

inline Form form = Form::gain;

// The rules with Gaussian weights take turns at the full covariance and the diagonal.
inline void set_covariance(Model& model, const Case& of) {
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

inline bool uses_losses(const Case& of) {
    return position_of("loss", rules::find(of.rule)->parameters) == 0 && !is_one_of(of, {"ONS"});
}

// Parameters and state of the rule, as the engine would set them.
inline void set_rule(Model& model, const Case& of) {
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

inline Model make_model(const Case& rule, Task task, size_t classes, Averaging averaging, size_t d, double p = 2.0) {
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

inline bool same_scalars(const Model& p, const Model& q) {
    const auto scalars = [](const Model& m) {
        const Weights& w = m.w;
        return std::vector<double>{w.a,       w.average.A,    w.average.rounds, w.l1.pending,
                                   w.norm.ww, w.peaks.v,      w.peaks.z,        m.t,
                                   m.k,       m.skipped_zero, double(w.outputs)};
    };
    return scalars(p) == scalars(q) && std::equal(p.state, p.state + p.slots, q.state) && p.w.bias == q.w.bias &&
           p.w.planes.bias == q.w.planes.bias && p.w.average.bias_sum == q.w.average.bias_sum;
}

inline bool same_bits(const Buffer& p, const Buffer& q) {
    return p.size() == q.size() && (p.size() == 0 || std::memcmp(p.data(), q.data(), p.size() * sizeof(double)) == 0);
}

// Do all bits of both models agree?
inline bool same(const Model& p, const Model& q) {
    for (size_t r = 0; r < p.w.sigma.triangle.size(); ++r)
        if (!same_bits(p.w.sigma.triangle[r], q.w.sigma.triangle[r])) return false;
    return same_bits(p.w.cells, q.w.cells) && same_bits(p.w.average.z, q.w.average.z) && same_scalars(p, q);
}
