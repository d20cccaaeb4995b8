// Kernel recursive least squares, sparse by approximate linear dependence (Engel, Mannor and Meir 2004). The rule says
// only that the loss is the square; its step is not used.
#include <algorithm>

#include "kernels/projection.hpp"

namespace onepass::budgets {

namespace {

// x is far from the span of the stored vectors and becomes one of them: c <- [c - d e/delta; e/delta], P <- diag(P,
// 1/w).
void add_vector(Expansion& f, const KernelRound& round, const std::vector<double>& d, double delta, double residual) {
    const size_t n = f.size();
    for (size_t i = 0; i < n; ++i) {
        const double change = -d[i] * residual / delta;
        f.add_to_coefficient(i, &change);
        f.covariance[i].push_back(0.0);
    }
    f.covariance.emplace_back(n + 1, 0.0);
    f.covariance[n][n] = 1.0 / round.importance;
    append_and_extend(f, round, {residual / delta}, d, delta);
}

// x is close to the span: with g = P d and s = 1/w + d'g, P <- P - g g'/s and c <- c + K^-1 g e/s.
void update_coefficients(Expansion& f, const KernelRound& round, const std::vector<double>& d, double residual) {
    const size_t n = f.size();
    std::vector<double> g(n);
    for (size_t i = 0; i < n; ++i) g[i] = kernel_loops->dot(f.covariance[i].data(), d.data(), n);
    const double s = 1.0 / round.importance + kernel_loops->dot(d.data(), g.data(), n);
    for (size_t i = 0; i < n; ++i)
        for (size_t j = 0; j <= i; ++j) f.covariance[i][j] = f.covariance[j][i] = f.covariance[i][j] - g[i] * g[j] / s;
    const std::vector<double> gain = f.solve(g.data());
    for (size_t i = 0; i < n; ++i) {
        const double change = gain[i] * residual / s;
        f.add_to_coefficient(i, &change);
    }
}

}  // namespace

bool ald(Budget& budget, Expansion& f, const KernelRound& round) {
    const size_t n = f.size();
    const double nu = budget.p[ALDParams::nu], residual = round.parts[0] * round.loss();
    const std::vector<double> d = n > 0 ? f.solve(round.k) : std::vector<double>();
    const double delta = std::max(0.0, round.ktt - (n > 0 ? kernel_loops->dot(d.data(), round.k, n) : 0.0));
    if (n == 0 || (delta > nu * round.ktt && !budget.full(f))) add_vector(f, round, d, delta, residual);
    else update_coefficients(f, round, d, residual);
    return true;
}

}  // namespace onepass::budgets
