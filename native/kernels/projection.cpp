// Projectron and Projectron++ (Orabona, Keshet and Caputo 2009).
#include "kernels/projection.hpp"

#include <algorithm>
#include <cmath>

namespace onepass {

std::vector<double> own_coefficients(const Expansion& f, const KernelRound& round) {
    std::vector<double> out(f.outputs());
    for (size_t r = 0; r < f.outputs(); ++r) out[r] = round.add * round.parts[r];
    return out;
}

double squared_parts(const KernelRound& round, size_t outputs) {
    double sum = 0.0;
    for (size_t r = 0; r < outputs; ++r) sum += round.parts[r] * round.parts[r];
    return sum;
}

void add_projected(Expansion& f, const std::vector<double>& d, double factor, const double* parts) {
    std::vector<double> change(f.outputs());
    for (size_t i = 0; i < f.size(); ++i) {
        for (size_t r = 0; r < f.outputs(); ++r) change[r] = factor * d[i] * parts[r];
        f.add_to_coefficient(i, change.data());
    }
}

void append_and_extend(Expansion& f, const KernelRound& round, const std::vector<double>& coefficients,
                       const std::vector<double>& d, double delta2) {
    f.append(round.x, round.k, round.ktt, round.scores, coefficients.data(), round.t);
    f.extend_inverse(d, delta2);
    f.check_inverse();
}

namespace budgets {

namespace {

// x counts as a combination of the stored vectors when its squared distance from their span is below this part of
// K(x, x).
constexpr double dependent = 1e-10;

// The projected step of Projectron++ on a margin error; 0 for none. p2 = |P phi|^2, delta the distance from the span.
double margin_error_step(const Budget& budget, double loss, double p2, double delta) {
    using At = ProjectronParams;
    const double eta = budget.p[At::eta], U = budget.p[At::U];
    const bool by_U = budget.p[At::by_U] != 0.0;
    if (!(p2 > 0.0)) return 0.0;
    const double tau = std::min(1.0, loss / p2);
    if (by_U) return 2.0 * loss - tau * p2 - 2.0 * U * delta < 0.0 ? 0.0 : tau;
    if (loss <= delta / eta) return 0.0;
    return std::min(tau, 2.0 * (loss - delta / eta) / p2);
}

}  // namespace

bool projectron(Budget& budget, Expansion& f, const KernelRound& round) {
    using At = ProjectronParams;
    const double eta = budget.p[At::eta], loss = round.loss();
    const bool takes_errors = budget.p[At::margin_errors] != 0.0;  // as Projectron++ does
    const bool mistake = round.add != 0.0, margin_error = takes_errors && round.m > 0.0 && loss > 0.0;
    if (!mistake && !margin_error) return false;
    if (f.size() == 0) {
        append_and_extend(f, round, own_coefficients(f, round), {}, round.ktt);
        return true;
    }
    const std::vector<double> d = f.solve(round.k);
    const double p2 = kernel_loops->dot(d.data(), round.k, f.size()), delta2 = std::max(0.0, round.ktt - p2);
    const double delta = std::sqrt(delta2);
    if (mistake) {
        if (delta <= eta || budget.full(f) || delta2 <= dependent * round.ktt)
            add_projected(f, d, round.add, round.parts);
        else append_and_extend(f, round, own_coefficients(f, round), d, delta2);
        return true;
    }
    const double tau = margin_error_step(budget, loss, p2, delta);
    if (tau == 0.0) return false;
    add_projected(f, d, round.importance * tau, round.parts);
    return true;
}

}  // namespace budgets

}  // namespace onepass
