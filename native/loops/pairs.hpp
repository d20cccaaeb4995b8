// What loops/pairs.cpp gives the table of loops.
#pragma once
#include "core/model.hpp"

namespace onepass::ONEPASS_ISA {

template <class Batch>
Outcome learn_pairs(Model& M, const Batch& X, const Meetings& in, Difference& room);

}  // namespace onepass::ONEPASS_ISA
