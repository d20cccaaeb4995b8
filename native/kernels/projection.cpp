// Budgets that project what they drop onto what stays: Projectron (Orabona, Keshet and Caputo), BPA (Wang and Vucetic).
#include <algorithm>
#include <cmath>

#include "kernels/budgets.hpp"

namespace onepass {

namespace {

constexpr double dependent = 1e-10, dependent_bpa = 1e-8;  // squared distance over K(x, x): x is in the span

double squares(const double* row, size_t n) {
    double sum = 0.0;
    for (size_t r = 0; r < n; ++r) sum += row[r] * row[r];
    return sum;
}

// c_i += factor*d_i*parts for all vectors.
void add_projected(Expansion& f, const std::vector<double>& d, double factor, const double* parts) {
    std::vector<double> row(f.outputs());
    for (size_t i = 0; i < f.size(); ++i) {
        for (size_t r = 0; r < f.outputs(); ++r) row[r] = factor * d[i] * parts[r];
        f.add_to(i, row.data());
    }
}

void append(Expansion& f, const KernelRound& round, const double* k, const std::vector<double>& row) {
    f.append(round.x, k, round.ktt, round.scores, row.data(), round.t);
}

std::vector<double> own_row(const Expansion& f, const KernelRound& round) {
    std::vector<double> row(f.outputs());
    for (size_t r = 0; r < f.outputs(); ++r) row[r] = round.add * round.parts[r];
    return row;
}

void append_and_extend(Expansion& f, const KernelRound& round, const std::vector<double>& d, double delta2) {
    append(f, round, round.k, own_row(f, round));
    f.extend_inverse(d, delta2);
    f.guard_inverse();
}

}  // namespace

namespace budgets {

// p: eta; whether ++; whether with U; U
bool projectron(Budget& budget, Expansion& f, const KernelRound& round) {
    const double eta = budget.p[0], loss = round.target - round.m;
    const bool mistake = round.add != 0.0, margin_error = budget.p[1] != 0.0 && round.m > 0.0 && loss > 0.0;
    if (!mistake && !margin_error) return false;
    if (f.size() == 0) {
        append_and_extend(f, round, {}, round.ktt);
        return true;
    }
    const std::vector<double> d = f.solve(round.k);
    const double p2 = kernel_loops->dot(d.data(), round.k, f.size()), delta2 = std::max(0.0, round.ktt - p2);
    const double delta = std::sqrt(delta2);
    if (mistake) {
        if (delta <= eta || budget.full(f) || delta2 <= dependent * round.ktt)
            add_projected(f, d, round.add, round.parts);
        else append_and_extend(f, round, d, delta2);
        return true;
    }
    if (!(p2 > 0.0)) return false;
    double tau = std::min(1.0, loss / p2);
    if (budget.p[2] != 0.0) {
        if (2.0 * loss - tau * p2 - 2.0 * budget.p[3] * delta < 0.0) return false;
    } else {
        if (loss <= delta / eta) return false;
        tau = std::min(tau, 2.0 * (loss - delta / eta) / p2);
    }
    add_projected(f, d, round.importance * tau, round.parts);
    return true;
}

// Kernel recursive least squares with approximate linear dependence (Engel, Mannor and Meir 2004): the rule only says
// that squares are meant.   p: nu
bool ald(Budget& budget, Expansion& f, const KernelRound& round) {
    const size_t n = f.size();
    const double residual = round.parts[0] * (round.target - round.m);
    const std::vector<double> d = n > 0 ? f.solve(round.k) : std::vector<double>();
    const double delta = std::max(0.0, round.ktt - (n > 0 ? kernel_loops->dot(d.data(), round.k, n) : 0.0));
    if (n == 0 || (delta > budget.p[0] * round.ktt && !budget.full(f))) {
        for (size_t i = 0; i < n; ++i) {
            const double change = -d[i] * residual / delta;
            f.add_to(i, &change);
            f.covariance[i].push_back(0.0);
        }
        append(f, round, round.k, {residual / delta});
        f.extend_inverse(d, delta);
        f.covariance.emplace_back(n + 1, 0.0);
        f.covariance[n][n] = 1.0 / round.importance;
        f.guard_inverse();
        return true;
    }
    std::vector<double> g(n);  // P d
    for (size_t i = 0; i < n; ++i) g[i] = kernel_loops->dot(f.covariance[i].data(), d.data(), n);
    const double size = 1.0 / round.importance + kernel_loops->dot(d.data(), g.data(), n);
    for (size_t i = 0; i < n; ++i)
        for (size_t j = 0; j <= i; ++j)
            f.covariance[i][j] = f.covariance[j][i] = f.covariance[i][j] - g[i] * g[j] / size;
    const std::vector<double> change = f.solve(g.data());
    for (size_t i = 0; i < n; ++i) {
        const double step = change[i] * residual / size;
        f.add_to(i, &step);
    }
    return true;
}

namespace {

// min over tau of (1/2) tau^2 p2 + C*loss(H - tau*p2): what a step costs when phi has squared length p2.
struct Proximal {
    double C, H;
    bool squared;

    double loss(double rest) const {
        rest = std::max(0.0, rest);
        return rest == 0.0 ? 0.0 : C * (squared ? rest * rest : rest);
    }
    double tau(double p2) const { return squared ? H / (p2 + 1.0 / (2.0 * C)) : std::min(C, H / p2); }
    double cost(double tau, double p2) const { return 0.5 * tau * tau * p2 + loss(H - tau * p2); }
};

// p: whether ramp.   rule: C, whether PA-II
Proximal proximal(const Budget& budget, const KernelRound& round) {
    return {round.importance * budget.rule[0], round.target - round.m, budget.rule[1] != 0.0};
}

// The ramp loss is flat where x is wrong by more than 1.
bool flat(const Budget& budget, const KernelRound& round) { return budget.p[0] != 0.0 && round.target - round.m > 2.0; }

std::vector<double> row_of(const Expansion& f, size_t i) {
    std::vector<double> row(f.outputs());
    for (size_t r = 0; r < f.outputs(); ++r) row[r] = f.c(i, r);
    return row;
}

// Vector `gone` leaves share*c_gone to the newcomer, which takes its slot and the round's step besides. (Neither the
// norm nor values are followed here: the scores are not read.)
void exchange(Expansion& f, const KernelRound& round, size_t gone, double share) {
    std::vector<double> row = own_row(f, round);
    for (size_t r = 0; r < f.outputs(); ++r) row[r] += share * f.c(gone, r);
    f.replace(gone, round.x, round.k, round.ktt, round.scores, row.data(), round.t);
}

}  // namespace

bool bpa_s(Budget& budget, Expansion& f, const KernelRound& round) {
    if (round.add == 0.0 || flat(budget, round)) return false;
    if (!budget.full(f)) return take_step(budget, f, round);
    const Proximal problem = proximal(budget, round);
    std::vector<double> scores(f.size());
    for (size_t r = 0; r < f.size(); ++r)
        scores[r] = 0.5 * f.squared(r) * std::max(0.0, f.diagonals[r] - round.k[r] * round.k[r] / round.ktt);
    const size_t gone = f.least(scores);
    if (problem.loss(problem.H) <= problem.cost(round.add, round.xx) + scores[gone]) return false;
    exchange(f, round, gone, round.k[gone] / round.ktt);
    return true;
}

namespace {

double apart(const Expansion& f, size_t i, size_t j) { return f.diagonals[i] + f.diagonals[j] - 2.0 * f.gram[j][i]; }

// Vector i's nearest other; the oldest among equals.
void find_nearest(Budget& budget, const Expansion& f, size_t i) {
    budget.nearest[i] = -1.0;
    for (size_t j = 0; j < f.size(); ++j) {
        if (j == i) continue;
        const double d = apart(f, i, j);
        const bool closer = budget.nearest[i] < 0.0 || d < budget.distance[i];
        if (closer || (d == budget.distance[i] && f.birth[j] < f.birth[size_t(budget.nearest[i])])) {
            budget.nearest[i] = double(j);
            budget.distance[i] = d;
        }
    }
}

// The vector in slot `at` has just come, in the place of another or behind all.
void meet(Budget& budget, const Expansion& f, size_t at) {
    budget.nearest.resize(f.size(), -1.0);
    budget.distance.resize(f.size(), 0.0);
    for (size_t i = 0; i < f.size(); ++i) {
        if (i == at) continue;
        if (budget.nearest[i] == double(at)) {  // who was there is gone
            find_nearest(budget, f, i);
            continue;
        }
        const double d = apart(f, i, at);
        if (budget.nearest[i] < 0.0 || d < budget.distance[i]) {
            budget.nearest[i] = double(at);
            budget.distance[i] = d;
        }
    }
    find_nearest(budget, f, at);
}

// Dropping r and spreading it over the newcomer and n.
struct Spread {
    double at_n, at_t, rest;  // shares of c_r; squared distance of x_r from their span
};

Spread spread(const Budget& budget, const Expansion& f, const KernelRound& round, size_t r) {
    const double krt = round.k[r], ktt = round.ktt;
    if (budget.nearest[r] >= 0.0) {
        const size_t n = size_t(budget.nearest[r]);
        const double knn = f.diagonals[n], knt = round.k[n], krn = f.gram[r][n];
        const double D = knn * ktt - knt * knt;
        if (D > dependent * knn * ktt) {
            const double a_n = (ktt * krn - knt * krt) / D, a_t = (knn * krt - knt * krn) / D;
            return {a_n, a_t, f.diagonals[r] - a_n * krn - a_t * krt};
        }
    }
    return {0.0, krt / ktt, f.diagonals[r] - krt * krt / ktt};
}

}  // namespace

bool bpa_nn(Budget& budget, Expansion& f, const KernelRound& round) {
    if (round.add == 0.0 || flat(budget, round)) return false;
    if (!budget.full(f)) {
        take_step(budget, f, round);
        meet(budget, f, f.size() - 1);
        return true;
    }
    const Proximal problem = proximal(budget, round);
    std::vector<double> scores(f.size());
    size_t n = 0;  // nearest to the newcomer
    for (size_t r = 0; r < f.size(); ++r) {
        scores[r] = 0.5 * f.squared(r) * std::max(0.0, spread(budget, f, round, r).rest);
        const double d = f.diagonals[r] - 2.0 * round.k[r], best = f.diagonals[n] - 2.0 * round.k[n];
        if (d < best || (d == best && f.birth[r] < f.birth[n])) n = r;
    }
    const size_t gone = f.least(scores);
    const double both = squares(round.parts, f.outputs());
    const double p2 = both * round.k[n] * round.k[n] / f.diagonals[n], tau = problem.tau(p2);
    if (problem.cost(tau, p2) <= problem.cost(round.add, round.xx) + scores[gone]) {
        std::vector<double> row(f.outputs());
        for (size_t r = 0; r < f.outputs(); ++r) row[r] = tau * round.parts[r] * round.k[n] / f.diagonals[n];
        f.add_to(n, row.data());
        return true;
    }
    const Spread shares = spread(budget, f, round, gone);
    if (shares.at_n != 0.0) {
        std::vector<double> row = row_of(f, gone);
        for (double& each : row) each *= shares.at_n;
        f.add_to(size_t(budget.nearest[gone]), row.data());
    }
    exchange(f, round, gone, shares.at_t);
    meet(budget, f, gone);
    return true;
}

bool bpa_p(Budget& budget, Expansion& f, const KernelRound& round) {
    if (round.add == 0.0 || flat(budget, round)) return false;
    if (f.size() == 0) {
        append_and_extend(f, round, {}, round.ktt);
        return true;
    }
    const Proximal problem = proximal(budget, round);
    const size_t n = f.size();
    const std::vector<double> d = f.solve(round.k);
    const double inside = kernel_loops->dot(d.data(), round.k, n), delta2 = round.ktt - inside;
    const double p2 = squares(round.parts, f.outputs()) * inside;
    if (delta2 <= dependent_bpa * round.ktt) {
        add_projected(f, d, problem.tau(p2), round.parts);
        return true;
    }
    if (!budget.full(f)) {
        append_and_extend(f, round, d, delta2);
        return true;
    }
    std::vector<double> scores(n);
    for (size_t r = 0; r < n; ++r) scores[r] = 0.5 * f.squared(r) / (f.inverse[r][r] + d[r] * d[r] / delta2);
    const size_t gone = f.least(scores);
    const double tau = problem.tau(p2);
    if (problem.cost(tau, p2) <= problem.cost(round.add, round.xx) + scores[gone]) {
        add_projected(f, d, tau, round.parts);
        return true;
    }
    const std::vector<double> left = row_of(f, gone), shares = f.exchange_inverse(gone, d, delta2);
    std::vector<double> row(f.outputs());
    for (size_t i = 0; i < n; ++i) {
        if (i == gone) continue;
        for (size_t r = 0; r < f.outputs(); ++r) row[r] = shares[i] * left[r];
        f.add_to(i, row.data());
    }
    exchange(f, round, gone, shares[gone]);
    f.guard_inverse();
    return true;
}

}  // namespace budgets

void find_neighbours(Budget& budget, const Expansion& f) {
    budget.nearest.assign(f.size(), -1.0);
    budget.distance.assign(f.size(), 0.0);
    for (size_t i = 0; i < f.size(); ++i) budgets::find_nearest(budget, f, i);
}

}  // namespace onepass
