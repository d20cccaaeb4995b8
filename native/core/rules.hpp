// The table of the rules' functions. The formulas are in core/rules.cpp alone: loops call them by pointer.
#pragma once
#include <span>

#include "core/abi.hpp"
#include "core/name_lists.hpp"

namespace onepass::rules {

struct Entry {
    const char* name;        // of the rule's class in src/onepass/rules/
    const char* parameters;  // the names of `params`, in order: those that the rule's native() gives
    const char* slots;       // the names of `state`, in order: the rule's `slots`
    StepFn step;
    SolveFn solve;  // null where the rule never looks at all scores
};

std::span<const Entry> table();
const Entry* find(std::string_view name);  // null where there is none

}  // namespace onepass::rules

namespace onepass {

// Parameters and slots that loops read: of rules that move every weight by its own history.
ONEPASS_POSITIONS(AdaGradParams, loss, loss_parameter, eta, delta, eps_inside);
ONEPASS_POSITIONS(AdaDeltaParams, loss, loss_parameter, rho, eps, lr);
ONEPASS_POSITIONS(RMSPropParams, loss, loss_parameter, eta, rho, eps);
ONEPASS_POSITIONS(AdamParams, loss, loss_parameter, eta, beta1, beta2, eps);
ONEPASS_POSITIONS(FTRLParams, loss, loss_parameter, alpha, beta, lam1, lam2);
ONEPASS_POSITIONS(CoordinateSlots, rounds);
ONEPASS_POSITIONS(VWParams, loss, loss_parameter, eta, power, adaptive, normalized, invariant, clip, vw_compat,
                  kappa_power);
ONEPASS_POSITIONS(VWSlots, t, low, high);  // the importance so far, the least and the greatest label

}  // namespace onepass
