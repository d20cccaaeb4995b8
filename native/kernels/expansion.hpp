// f = sum c_i K(x_i, .): the weights of a kernel learner, one row of coefficients per support vector (one per output).
//
//   c_i = scale * coef[output][i]      the scale is lazy
//   ww = |f|^2                         followed in O(1) where asked for, recomputed now and then
//   gram, inverse                      K and its inverse on the support vectors, where a budget wants them
//   values                             f at the support vectors (one output), where a budget wants them
//
// A removed vector's slot is taken by the newcomer that replaces it, or by the last one; `birth` says who is older.
#pragma once
#include <cstddef>
#include <vector>

#include "kernels/kernels.hpp"

namespace onepass {

using Rows = std::vector<std::vector<double>>;

class Expansion {
 public:
    const Kernel* kernel = nullptr;
    Points points;
    std::vector<std::vector<double>> coef{1};  // outputs x size, padded with zeros
    std::vector<double> birth, diagonals;      // the round each came in; K(x_i, x_i)
    double scale = 1.0, ww = 0.0, changes = 0.0;
    bool follows_norm = false, keeps_gram = false, keeps_inverse = false, keeps_values = false,
         keeps_covariance = false;
    Rows gram, inverse;
    Rows covariance;  // of kernel recursive least squares: P
    std::vector<double> values;

    size_t size() const { return points.size(); }
    size_t outputs() const { return coef.size(); }
    double c(size_t i, size_t r = 0) const { return scale * coef[r][i]; }
    double squared(size_t i) const;  // |c_i|^2
    double largest() const;          // |c_i| at most

    void begin(const Kernel* kernel, bool sparse, size_t columns, size_t slots);
    // 1 -> many: w becomes -w/2, +w/2, 0, ...; under `own_class` each example goes to its own class's row.
    void set_outputs(size_t outputs);
    bool own_class = false;
    void negate();

    // K(x, x_i) of every support vector; valid until the next call.
    const double* row(const Query& x);
    void score(const double* k, double* out) const;
    // f at support vector i.
    double value(size_t i, size_t r = 0);

    // May one more vector come? Asked for before anything changes; it costs a few multiplications.
    bool has_room(const Query& x) { return bytes_with(1, points.columns(), outputs(), x.n) <= granted_ || grant(x); }
    // What so many more vectors would take, and all that are here, were there so many columns and outputs.
    double bytes_with(size_t more, size_t columns, size_t outputs, size_t numbers) const;

    // f <- factor*f
    void rescale(double factor);
    void fold();
    // f <- f + row K(x, .): k = row(x), scores those of f now.
    void append(const Query& x, const double* k, double ktt, const double* scores, const double* row, double born);
    // The same in the place of vector i, which goes: `scores` are those of f without it; k[i] is not read.
    void replace(size_t i, const Query& x, const double* k, double ktt, const double* scores, const double* row,
                 double born);
    // c_i += factor*row for one vector; k_i its kernel values with all others where values or the norm are followed
    void add_to(size_t i, const double* row);
    void remove(size_t i);
    void clear();
    size_t oldest() const;
    size_t least(const std::vector<double>& scores) const;  // whose score is lowest; the oldest among equals

    // K^-1 of the vectors and one more, whose projection on them is d at squared distance delta2.
    void extend_inverse(const std::vector<double>& d, double delta2);
    // K^-1 with that one in the place of vector `gone`. Returns the shares by which the others make up `gone` best, in
    // its own place that of the newcomer.
    std::vector<double> exchange_inverse(size_t gone, const std::vector<double>& d, double delta2);
    std::vector<double> solve(const double* k) const;  // K^-1 k
    // Inverts anew where the kept inverse has drifted: looked at in one row after the other.
    void guard_inverse();
    void invert();

    double inversions = 0.0, insertions = 0.0;  // of the inverse; insertions since it was made anew

    void rebuild_gram();  // after loading
    void recompute_norm();
    void recompute_values();

 private:
    bool grant(const Query& x);
    void take_out_of_norm(size_t i);
    void count_change();

    std::vector<double> k_, room_, keep_;
    double granted_ = 0.0;  // bytes: so many are within the limit
};

}  // namespace onepass
