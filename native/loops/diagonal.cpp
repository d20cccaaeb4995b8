// Gaussian weights: one row of them, each beside its variance. Compiled once per
// instruction set.
#include "loops/learn_rows.hpp"

namespace onepass::ONEPASS_ISA {

ONEPASS_LEARN(Kind::diagonal)

}  // namespace onepass::ONEPASS_ISA
