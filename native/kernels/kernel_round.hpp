// One round of a kernel learner: the tasks and rules of the linear learner on an expansion. Knows no Python.
#pragma once
#include "core/model.hpp"
#include "kernels/budgets.hpp"

namespace onepass {

// Of `model` the rule, the task and the counters are used, not the weights. x is prepared. Where `out` is given, the
// scores before the update are written there; where `ready` is, it holds K(x, x_i). A refused round leaves all as it
// was.
Status learn_kernel_round(Model& model, Expansion& f, Budget& budget, const Query& x, double y, double importance,
                          double* out, const double* ready = nullptr);

}  // namespace onepass
