// L1 regularisation, applied lazily: soft thresholding shrinks every weight in every round, but a round touches only
// the features of its example.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>

#include "core/inline.hpp"

namespace onepass {

// `pending` is the sum of all soft thresholds so far, in units of v. A weight is stored with the value of `pending` at
// that time added to its absolute value. Its value now is therefore |stored| - pending, or 0 if that is negative.
//
//   decode(stored)   the weight now, with its pending L1 applied
//   encode(weight)   how it is stored
//
// Weights whose absolute value is above `threshold` are exempt from L1. They are stored as they are, and their lowest
// bit is set to mark them; the lowest bit of all others is then 0.
struct LazyL1 {
    bool on = false;
    double pending = 0.0;
    double threshold = HUGE_VAL;

    int64_t exempt_bit() const { return threshold < HUGE_VAL; }  // 0 where no weight is exempt
    ONEPASS_INLINE double decode(double stored) const {
        if (std::bit_cast<int64_t>(stored) & exempt_bit()) return stored;
        const double left = std::abs(stored) - pending;
        return std::copysign(left > 0.0 ? left : 0.0, stored);
    }
    ONEPASS_INLINE double encode(double weight) const {
        const double size = std::abs(weight);
        if (size > threshold) return std::bit_cast<double>(std::bit_cast<int64_t>(weight) | 1);
        return std::copysign(std::bit_cast<double>(std::bit_cast<int64_t>(size + pending) & ~exempt_bit()), weight);
    }
};

}  // namespace onepass
