// The direction of a round with several classes: which outputs the example is added to, and which it is subtracted
// from. The same for linear and for kernel learners.
#pragma once
#include "core/inline.hpp"
#include "core/model.hpp"

namespace onepass {

// The rival of the true class: the class with the highest value(class), the lowest index of equals. The value is the
// score, or with costs of classes the score plus the root of the cost.
template <class Value>
ONEPASS_INLINE size_t rival_of(size_t true_class, size_t classes, const Value& value) {
    size_t rival = true_class == 0 ? 1 : 0;
    for (size_t r = rival + 1; r < classes; ++r)
        if (r != true_class && value(r) > value(rival)) rival = r;
    return rival;
}

struct Shares {
    double squares = 0.0;  // the sum of the squared parts
    double m = 0.0;        // the margin
};

// The uniform and proportional families: the true class gets the part 1, and all classes that score at least as high
// share -1, in equal parts or in proportion to how much higher they score.
ONEPASS_INLINE Shares share_among_errors(Against against, const double* scores, size_t true_class, size_t classes,
                                         double* parts) {
    const double truth = scores[true_class];
    double errors = 0.0, excess = 0.0;
    for (size_t r = 0; r < classes; ++r)
        if (r != true_class && scores[r] >= truth) {
            errors += 1.0;
            excess += scores[r] - truth;
        }
    const bool proportional = against == Against::proportional && excess > 0.0;
    Shares shares;
    for (size_t r = 0; r < classes; ++r) {
        const bool error = r != true_class && scores[r] >= truth;
        parts[r] =
            r == true_class ? 1.0 : (error ? -(proportional ? (scores[r] - truth) / excess : 1.0 / errors) : 0.0);
        shares.squares += parts[r] * parts[r];
        shares.m += parts[r] * (scores[r] - truth);  // a tie is exactly 0
    }
    return shares;
}

}  // namespace onepass
