// One round of a kernel learner. The tasks and rules are those of linear learners; the weights are an expansion.
// The steps are those of KernelLearner in src/onepass/kernels/expansion.py: score, direction, the rule's step, and the
// budget, which applies it.
#pragma once
#include "core/model.hpp"
#include "kernels/budgets.hpp"

namespace onepass {

// Uses the rule, the task and the counters of `model`, not its weights. `x` was prepared by kernel_loops->prepare.
// `out`, where given, receives the scores before the update. `ready`, where given, holds K(x, x_i).
// A round is validated before it changes anything, so a refused round needs no roll-back.
Status learn_kernel_round(Model& model, Expansion& f, Budget& budget, const Query& x, double y, double importance,
                          double* out, const double* ready = nullptr);

}  // namespace onepass
