// Gaussian weights with a diagonal Sigma and one output. Compiled once per instruction set.
#include "loops/learn_rows.hpp"

namespace onepass::ONEPASS_ISA {

ONEPASS_LEARN(Kind::diagonal)

}  // namespace onepass::ONEPASS_ISA
