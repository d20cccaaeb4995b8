// The table of the rules' functions. The formulas are in core/rules.cpp alone: loops call them by pointer.
#pragma once
#include "core/abi.hpp"

namespace onepass::rules {

struct Entry {
    StepFn step;
    SolveFn solve;  // null where the rule never looks at all scores
};

constexpr int count = 26;
extern const Entry table[];  // by the rule's `code`

}  // namespace onepass::rules
