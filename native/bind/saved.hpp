// The names of the numbers in the arrays that models write to files. Python reads these numbers by the same names
// (`_native.saved`, src/onepass/models/saved.py).
#pragma once
#include <string>
#include <vector>

#include "core/name_lists.hpp"

namespace onepass::saved {

// `scalars` of an Engine: the weights are scale*v; A, rounds of the average; positional: rows came before names.
ONEPASS_POSITIONS(Linear, scale, A, averaged, ww, since_recomputed, t, k, skipped_zero, positional, columns);
// `pocket_scalars`; errors only with a ratchet, -1 while the pocket is empty
ONEPASS_POSITIONS(Pocket, scale, run, best_run, holds_current, errors);
// `batch_scalars`: what the rounds of an unfinished mini-batch have asked for
ONEPASS_POSITIONS(MiniBatch, rounds, steps, moves, scale, decay, soft, shrink);
// `scalars` of a KernelEngine; Q and M are those of the Forgetron
ONEPASS_POSITIONS(Kernel, scale, ww, changes, insertions, inversions, Q, M, t, k, skipped_zero, positional, columns,
                  width);
// a row of `machines`, LASVM: the two classes, bias, the largest violation, steps, the classes that it has seen
ONEPASS_POSITIONS(Machine, positive, negative, bias, delta, steps, saw_positive, saw_negative);

}  // namespace onepass::saved
