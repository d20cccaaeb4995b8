// Steps along the stored vectors alone: x is replaced by its projection on their span. Shared by the Projectron, kernel
// least squares and BPA-P.
#pragma once
#include <vector>

#include "kernels/budgets.hpp"

namespace onepass {

// add*parts: the coefficients of x when it becomes a stored vector.
std::vector<double> own_coefficients(const Expansion& f, const KernelRound& round);

// |parts|^2
double squared_parts(const KernelRound& round, size_t outputs);

// c_i += factor*d_i*parts for all vectors.
void add_projected(Expansion& f, const std::vector<double>& d, double factor, const double* parts);

// Adds x as a stored vector, and to the inverse of the Gram matrix.
void append_and_extend(Expansion& f, const KernelRound& round, const std::vector<double>& coefficients,
                       const std::vector<double>& d, double delta2);

}  // namespace onepass
