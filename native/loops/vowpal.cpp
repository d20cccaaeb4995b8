// VW's update (loops/vowpal.hpp) for models of the kinds `general` and `classes`, and with other than the default
// options. Compiled once per instruction set.
#include "loops/vowpal.hpp"

namespace onepass::ONEPASS_ISA {

template <bool many>
Status learn_vowpal_rows(Model& M, const NumberedRow& row, const Example& of, const double* state, bool* moves) {
    const Vowpal rule(M.params);
    return rule.usual() ? learn_targets<many, true, false>(M, rule, row, of, state, moves)
                        : learn_targets<many, false, false>(M, rule, row, of, state, moves);
}
template Status learn_vowpal_rows<false>(Model&, const NumberedRow&, const Example&, const double*, bool*);
template Status learn_vowpal_rows<true>(Model&, const NumberedRow&, const Example&, const double*, bool*);

}  // namespace onepass::ONEPASS_ISA
