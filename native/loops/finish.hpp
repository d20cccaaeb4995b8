// The functions of loops/adaptive.cpp that stand in the table of loops.
#pragma once
#include "core/model.hpp"

namespace onepass::ONEPASS_ISA {

void finish(Model& M);  // a mini-batch that is not full takes its step
void derive(Model& M);  // weights that follow from their planes, after these were changed

}  // namespace onepass::ONEPASS_ISA
