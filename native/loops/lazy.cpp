// Models of one output with L1. Compiled once per instruction set.
#include "loops/learn_rows.hpp"

namespace onepass::ONEPASS_ISA {

ONEPASS_LEARN(Kind::lazy)

}  // namespace onepass::ONEPASS_ISA
