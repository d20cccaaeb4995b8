// The functions of loops/scores.cpp that stand in the table of loops.
#pragma once
#include "core/model.hpp"

namespace onepass::ONEPASS_ISA {

template <class Batch>
void score(const Model& M, const Batch& X, const double* base, double* scores);
template <class Batch>
Outcome check(const Batch& X, size_t from_row);
template <class Batch>
double errors(const Model& M, const Batch& X, const double* y, const double* importance, double so_far);
template <class Batch>
void variance(const Model& M, const Batch& X, double* variances);
void variance_one(const Model& M, const double* x, const int64_t* index, size_t n, double* variances);

}  // namespace onepass::ONEPASS_ISA
