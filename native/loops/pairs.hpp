// The functions of loops/pairs.cpp that stand in the table of loops.
#pragma once
#include "core/model.hpp"

namespace onepass::ONEPASS_ISA {

template <class Batch>
Outcome learn_pairs(Model& M, const Batch& X, const RankedRows& in, Difference& room);

}  // namespace onepass::ONEPASS_ISA
