// Rules written in Python: called back from the loop, which then holds the interpreter lock.
#pragma once
#include <nanobind/nanobind.h>

#include <utility>

#include "core/abi.hpp"

namespace onepass {

namespace nb = nanobind;

struct PythonRule {
    nb::object step, solve;  // onepass.callback.step / solve bound to the rule
    int slots;
};
inline thread_local const PythonRule* python_rule = nullptr;

// While it lives, callbacks of this thread go to `rule`; then to the rule before, since a step may run another model.
// Null for a compiled rule.
struct RuleScope {
    const PythonRule *rule, *outer = nullptr;
    explicit RuleScope(const PythonRule* rule) : rule(rule) {
        if (rule) outer = std::exchange(python_rule, rule);
    }
    ~RuleScope() {
        if (rule) python_rule = outer;
    }
};

// The step and solve functions of a rule in Python. If the call raises, the step is NaN and the round is refused.
void python_step(const Scalars* s, const double*, double* state, Step* step);
void python_solve(const Scalars* s, const double* scores, int64_t classes, int64_t y, const double*, double* state,
                  double* coefficients, Step* step);

}  // namespace onepass
