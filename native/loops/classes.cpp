// Models with an output for each class or label. Compiled once per instruction set.
#include "loops/learn_rows.hpp"

namespace onepass::ONEPASS_ISA {

ONEPASS_LEARN(Kind::classes)

}  // namespace onepass::ONEPASS_ISA
