#include "core/p_norm.hpp"

#include <algorithm>

namespace onepass {

double PNorm::link(double theta, double norm) const {
    return norm > 0.0 ? norm * std::copysign(std::pow(std::abs(theta) / norm, p - 1.0), theta) : 0.0;
}

// Dividing by the largest term first keeps the powers from overflowing.
double PNorm::with_constant(double norm, double constant) const {
    const double largest = std::max(norm, std::abs(constant));
    if (largest == 0.0) return 0.0;
    return largest * std::pow(std::pow(norm / largest, p) + std::pow(std::abs(constant) / largest, p), 1.0 / p);
}

}  // namespace onepass
