// One row of weights, each beside the planes of a rule by coordinates. Compiled once per
// instruction set.
#include "loops/learn_rows.hpp"

namespace onepass::ONEPASS_ISA {

ONEPASS_LEARN(Kind::coordinates)

}  // namespace onepass::ONEPASS_ISA
