// Models of one output that have nothing but weights: the most common kind. Compiled once per instruction set.
#include "loops/learn_rows.hpp"

namespace onepass::ONEPASS_ISA {

ONEPASS_LEARN(Kind::plain)

// A row of names.
template Status learn_row<Path<Kind::plain>>(Model&, const SparseRow<double, int64_t>&, double, double, double,
                                             const uint8_t*, double*, double);
// The difference of two dense rows, for loops/pairs.cpp.
template Status learn_row<Path<Kind::plain>>(Model&, const DenseValues<Minus>&, double, double, double, const uint8_t*,
                                             double*, double);

}  // namespace onepass::ONEPASS_ISA
