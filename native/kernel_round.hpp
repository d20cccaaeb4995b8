// One round of a kernel learner: the tasks and rules of the linear learner on an expansion. Knows no Python.
#pragma once
#include "budgets.hpp"
#include "model.hpp"

namespace onepass {

// Of `model` the rule, the task and the counters are used, not the weights. Where `out` is given, the scores before the
// update are written there. A refused round leaves all as it was.
Status learn_kernel_round(Model& model, Expansion& f, Budget& budget, Query& x, double y, double importance,
                          double* out);

}  // namespace onepass
