// The names of the numbers in the arrays that models write to files. Python reads these numbers by the same names
// (`_native.saved`, src/onepass/models/saved.py).
#pragma once
#include "core/name_lists.hpp"

namespace onepass::saved {

// `scalars` of an Engine. A and averaged: the scales and rounds in the average. positional: features are columns.
ONEPASS_POSITIONS(Linear, scale, A, averaged, ww, since_recomputed, t, k, skipped_zero, positional, columns);
// `pocket_scalars`. errors: with a ratchet only; -1 while the pocket is empty.
ONEPASS_POSITIONS(Pocket, scale, run, best_run, holds_current, errors);
// `batch_scalars`: the rounds of an unfinished mini-batch, and the step that they share.
ONEPASS_POSITIONS(MiniBatch, rounds, steps, moves, scale, decay, soft, shrink);
// `scalars` of a KernelEngine. Q and M are the numbers of the Forgetron.
ONEPASS_POSITIONS(Kernel, scale, ww, changes, insertions, inversions, Q, M, t, k, skipped_zero, positional, columns,
                  width);
// One machine of `machines` (LASVM). delta: the largest violation.
ONEPASS_POSITIONS(Machine, positive, negative, bias, delta, steps, saw_positive, saw_negative);

}  // namespace onepass::saved
