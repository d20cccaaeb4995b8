// Models of one output whose rule has its own step for each coordinate. Compiled once per instruction set.
#include "loops/learn_rows.hpp"

namespace onepass::ONEPASS_ISA {

ONEPASS_LEARN(Kind::coordinates)

}  // namespace onepass::ONEPASS_ISA
