// Models of one output that no other kind fits: with averages, votes, a pocket, mini-batches, |w|, a full Sigma, and so
// on. Compiled once per instruction set.
#include "loops/learn_rows.hpp"

namespace onepass::ONEPASS_ISA {

ONEPASS_LEARN(Kind::general)

}  // namespace onepass::ONEPASS_ISA
