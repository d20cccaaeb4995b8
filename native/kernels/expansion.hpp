// The kernel expansion f = sum over i of c_i K(x_i, .), which is what a kernel learner has learned.
//
// x_i is a stored vector (a support vector), c_i its coefficients. A learner for two classes or for numbers has one
// output, so c_i is one number. With more classes every class has its own output, and c_i has a number for each.
//
//   c_i = scale * coef[output][i]   to multiply f by a number, only `scale` is multiplied
//   ww = |f|^2                      updated in O(1) per change, and recomputed from time to time
//   gram, inverse                   the matrix K(x_i, x_j) of the stored vectors, and its inverse
//   values                          f(x_i); only where there is one output
//   covariance                      the matrix P of kernel recursive least squares
//
// The last four rows exist only where the rule or the budget needs them.
//
// Stored vectors have the slots 0 to size() - 1. A new vector is appended, or takes the slot of the vector that it
// replaces. When a vector is removed, the last one moves to its slot. The order of the slots is therefore not the order
// of age; `birth` tells which of two vectors is older.
#pragma once
#include <cstddef>
#include <vector>

#include "kernels/kernels.hpp"

namespace onepass {

using Rows = std::vector<std::vector<double>>;

class Expansion {
 public:
    const Kernel* kernel = nullptr;
    Points points;                             // the stored vectors
    std::vector<std::vector<double>> coef{1};  // outputs x size, padded with zeros
    std::vector<double> birth, diagonals;      // the round that added each vector; K(x_i, x_i)
    double scale = 1.0, ww = 0.0;
    double changes = 0.0;  // vectors added since `ww` and `values` were last recomputed
    bool tracks_norm = false, stores_gram = false, stores_inverse = false, stores_values = false,
         stores_covariance = false;
    bool own_class = false;  // the rule adds an example only to the output of its own class
    Rows gram, inverse, covariance;
    std::vector<double> values;
    double inversions = 0.0, insertions = 0.0;  // how often `inverse` was recomputed; its updates since then

    size_t size() const { return points.size(); }
    size_t outputs() const { return coef.size(); }
    double c(size_t i, size_t r = 0) const { return scale * coef[r][i]; }
    double squared_norm(size_t i) const;  // |c_i|^2 over all outputs
    double largest_coefficient() const;   // the largest |c_i|

    void initialise(const Kernel* kernel, bool sparse, size_t columns, size_t slots);
    // Grows from one output to several. w becomes -w/2, +w/2, 0, ...; with `own_class`, the coefficients of each sign
    // go to the output of their class.
    void set_outputs(size_t outputs);
    void negate();

    // K(x, x_i) of all stored vectors. The result is valid until the next call.
    const double* kernel_values(const Query& x);
    void score(const double* k, double* out) const;  // f(x) of every output, where k = kernel_values(x)
    double value(size_t i, size_t r = 0);            // f(x_i) of one output

    // Whether the memory limit has room for one more vector. Called before a change; usually a few multiplications.
    bool has_room(const Query& x) {
        return bytes_with(1, points.columns(), outputs(), x.n) <= reserved_ || reserve_room(x);
    }
    // The bytes of the stored vectors and `more` others of `numbers` numbers each, with so many columns and outputs.
    double bytes_with(size_t more, size_t columns, size_t outputs, size_t numbers) const;

    // f <- factor * f
    void rescale(double factor);
    void multiply_scale_in();  // scale becomes 1, f stays the same
    // f <- f + coefficients K(x, .), with x as a new vector. k = kernel_values(x); `scores` = f(x) before the change.
    void append(const Query& x, const double* k, double ktt, const double* scores, const double* coefficients,
                double born);
    // Removes vector i and puts x into its slot. `scores` = f(x) without vector i; k[i] is not read.
    void replace(size_t i, const Query& x, const double* k, double ktt, const double* scores,
                 const double* coefficients, double born);
    // c_i += change. `ww` and `values` are not updated.
    void add_to_coefficient(size_t i, const double* change);
    void remove(size_t i);
    void clear();
    size_t oldest() const;
    size_t argmin(const std::vector<double>& costs) const;  // the vector of the lowest cost; the oldest of equals

    // The inverse of the Gram matrix K. Below, d = K^-1 k(x) are the coefficients of the projection of x on the stored
    // vectors, and delta2 is the squared distance of x from its projection.
    std::vector<double> solve(const double* k) const;  // K^-1 k
    // Adds x to the inverse, as the last row and column.
    void extend_inverse(const std::vector<double>& d, double delta2);
    // Puts x into the place of vector `removed` in the inverse. Returns the coefficients of the projection of the
    // removed vector on the others; the coefficient of x stands at `removed`.
    std::vector<double> replace_in_inverse(size_t removed, const std::vector<double>& d, double delta2);
    // Recomputes the inverse after many updates, or when rounding errors are seen in one of its rows.
    void check_inverse();

    // What is not in a model file is recomputed after loading.
    void recompute_gram();
    void recompute_norm();
    void recompute_values();

 private:
    bool reserve_room(const Query& x);
    void add_to_norm(const double* coefficients, double ktt, const double* scores);
    void subtract_from_norm(size_t i);
    void count_change();
    void recompute_inverse();
    Rows cholesky_factor(double added) const;  // L with K + added * I = L L'; empty where K + added * I is not positive

    std::vector<double> k_, k_of_stored_, stored_;
    double reserved_ = 0.0;  // bytes; so much was found to be within the memory limit
};

}  // namespace onepass
