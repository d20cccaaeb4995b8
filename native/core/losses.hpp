// The losses of scheme/losses.py: the pull of each on the score. z is the margin m, or for residual losses y - s.
#pragma once
#include <algorithm>
#include <cmath>

#include "core/name_lists.hpp"

namespace onepass {

// First those of the margin, then from `squared` on those of the residual.
ONEPASS_ENUM(Loss, perceptron, hinge, squared_hinge, logistic, ramp, squared, absolute, eps_insensitive,
             squared_eps_insensitive, quantile, huber, tukey)

inline bool of_margin(Loss loss) { return loss < Loss::squared; }

// 1/(1 + e^-z), never exponentiating a positive number.
inline double sigmoid(double z) {
    if (z >= 0) return 1.0 / (1.0 + std::exp(-z));
    const double e = std::exp(z);
    return e / (1.0 + e);
}

inline double sign(double z) { return double(z > 0) - double(z < 0); }

// Always inlined: they are part of loops that are compiled once per instruction set, and of code that is not.
__attribute__((always_inline)) inline double pull_of_margin(Loss loss, double parameter, double z) {
    switch (loss) {
        case Loss::perceptron: return z <= parameter ? 1.0 : 0.0;
        case Loss::hinge: return z < 1.0 ? 1.0 : 0.0;
        case Loss::squared_hinge: return std::max(0.0, 1.0 - z);
        case Loss::logistic: return sigmoid(-z);
        default: return z >= 0.0 && z < 1.0 ? 1.0 : 0.0;  // ramp
    }
}

__attribute__((always_inline)) inline double pull_of_residual(Loss loss, double parameter, double z) {
    switch (loss) {
        case Loss::squared: return z;
        case Loss::absolute: return sign(z);
        case Loss::eps_insensitive: return std::abs(z) > parameter ? sign(z) : 0.0;
        case Loss::squared_eps_insensitive: return sign(z) * std::max(0.0, std::abs(z) - parameter);
        case Loss::quantile: return z > 0 ? parameter : (z < 0 ? parameter - 1.0 : 0.0);
        case Loss::huber: return std::min(parameter, std::max(-parameter, z));
        default: {  // tukey
            if (std::abs(z) > parameter) return 0.0;
            const double inside = 1.0 - (z / parameter) * (z / parameter);
            return z * (inside * inside);
        }
    }
}

__attribute__((always_inline)) inline double pull(Loss loss, double parameter, double z) {
    return of_margin(loss) ? pull_of_margin(loss, parameter, z) : pull_of_residual(loss, parameter, z);
}

}  // namespace onepass
