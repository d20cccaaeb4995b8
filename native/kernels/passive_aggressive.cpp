// Passive-Aggressive learning on a budget: BPA-S, BPA-NN, BPA-P (Wang and Vucetic 2010). When the budget is full, the
// PA problem is solved for every stored vector r that could be removed, and for removing none. The best one is taken.
#include <algorithm>

#include "kernels/projection.hpp"

namespace onepass {

namespace {

// Squared distances from a span, as parts of K(x, x), up to which x counts as a combination of the vectors.
constexpr double dependent = 1e-10, dependent_on_all = 1e-8;

// min over tau of (1/2) tau^2 p2 + C*loss(H - tau*p2): the cost of a step along phi of squared length p2.
struct Problem {
    double C, H;
    bool squared;  // PA-II

    double loss(double rest) const {
        rest = std::max(0.0, rest);
        return rest == 0.0 ? 0.0 : C * (squared ? rest * rest : rest);
    }
    double tau(double p2) const { return squared ? H / (p2 + 1.0 / (2.0 * C)) : std::min(C, H / p2); }
    double cost(double tau, double p2) const { return 0.5 * tau * tau * p2 + loss(H - tau * p2); }
    // Removing a vector costs `removal` besides the rule's own step. Is a step along p2 that removes none as cheap?
    bool keeps_all(const KernelRound& round, double p2, double removal) const {
        return cost(tau(p2), p2) <= cost(round.add, round.xx) + removal;
    }
};

Problem problem_of(const Budget& budget, const KernelRound& round) {
    return {round.importance * budget.p[BPAParams::C], round.loss(), budget.p[BPAParams::squared] != 0.0};
}

// Whether the round changes nothing. The ramp loss is flat where the margin is wrong by more than 1.
bool is_passive(const Budget& budget, const KernelRound& round) {
    return round.add == 0.0 || (budget.p[BPAParams::ramp] != 0.0 && round.loss() > 2.0);
}

std::vector<double> coefficients_of(const Expansion& f, size_t i) {
    std::vector<double> out(f.outputs());
    for (size_t r = 0; r < f.outputs(); ++r) out[r] = f.c(i, r);
    return out;
}

// Puts x into the slot of a removed vector, with `part` of the removed vector's coefficients and the round's own step.
// These budgets need neither values nor the norm, so the scores are not read.
void replace(Expansion& f, const KernelRound& round, size_t removed, double part) {
    std::vector<double> coefficients = own_coefficients(f, round);
    for (size_t r = 0; r < f.outputs(); ++r) coefficients[r] += part * f.c(removed, r);
    f.replace(removed, round.x, round.k, round.ktt, round.scores, coefficients.data(), round.t);
}

double squared_distance(const Expansion& f, size_t i, size_t j) {
    return f.diagonals[i] + f.diagonals[j] - 2.0 * f.gram[j][i];
}

// Finds the nearest neighbour of vector i; the oldest of equals.
void find_nearest(Budget& budget, const Expansion& f, size_t i) {
    budget.nearest[i] = -1.0;
    for (size_t j = 0; j < f.size(); ++j) {
        if (j == i) continue;
        const double d = squared_distance(f, i, j);
        const bool closer = budget.nearest[i] < 0.0 || d < budget.distance[i];
        if (closer || (d == budget.distance[i] && f.birth[j] < f.birth[size_t(budget.nearest[i])])) {
            budget.nearest[i] = double(j);
            budget.distance[i] = d;
        }
    }
}

// Updates all nearest neighbours after slot `added` got a new vector.
void update_neighbours(Budget& budget, const Expansion& f, size_t added) {
    budget.nearest.resize(f.size(), -1.0);
    budget.distance.resize(f.size(), 0.0);
    for (size_t i = 0; i < f.size(); ++i) {
        if (i == added) continue;
        if (budget.nearest[i] == double(added)) {  // the vector that was there before is removed
            find_nearest(budget, f, i);
            continue;
        }
        const double d = squared_distance(f, i, added);
        if (budget.nearest[i] < 0.0 || d < budget.distance[i]) {
            budget.nearest[i] = double(added);
            budget.distance[i] = d;
        }
    }
    find_nearest(budget, f, added);
}

// The projection of a removed vector on the new vector and on the removed one's nearest neighbour.
struct NeighbourProjection {
    double on_neighbour, on_new;  // the parts of the coefficients that these two take over
    double residual;              // the squared distance of the removed vector from its projection
};

NeighbourProjection project_on_neighbour(const Budget& budget, const Expansion& f, const KernelRound& round, size_t r) {
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

// The stored vector that is nearest to x; the oldest of equals.
size_t nearest_to_new(const Expansion& f, const KernelRound& round) {
    size_t n = 0;
    for (size_t r = 0; r < f.size(); ++r) {
        const double d = f.diagonals[r] - 2.0 * round.k[r], best = f.diagonals[n] - 2.0 * round.k[n];
        if (d < best || (d == best && f.birth[r] < f.birth[n])) n = r;
    }
    return n;
}

}  // namespace

namespace budgets {

// The removed vector is projected on the new one. O(B).
bool bpa_s(Budget& budget, Expansion& f, const KernelRound& round) {
    if (is_passive(budget, round)) return false;
    if (!budget.full(f)) return take_step(budget, f, round);
    const Problem problem = problem_of(budget, round);
    std::vector<double> costs(f.size());
    for (size_t r = 0; r < f.size(); ++r)
        costs[r] = 0.5 * f.squared_norm(r) * std::max(0.0, f.diagonals[r] - round.k[r] * round.k[r] / round.ktt);
    const size_t removed = f.argmin(costs);
    if (problem.loss(problem.H) <= problem.cost(round.add, round.xx) + costs[removed]) return false;
    replace(f, round, removed, round.k[removed] / round.ktt);
    return true;
}

// The removed vector is projected on the new one and on its own nearest neighbour. O(B).
bool bpa_nn(Budget& budget, Expansion& f, const KernelRound& round) {
    if (is_passive(budget, round)) return false;
    if (!budget.full(f)) {
        take_step(budget, f, round);
        update_neighbours(budget, f, f.size() - 1);
        return true;
    }
    const Problem problem = problem_of(budget, round);
    std::vector<double> costs(f.size());
    for (size_t r = 0; r < f.size(); ++r)
        costs[r] = 0.5 * f.squared_norm(r) * std::max(0.0, project_on_neighbour(budget, f, round, r).residual);
    const size_t removed = f.argmin(costs), n = nearest_to_new(f, round);
    const double p2 = squared_parts(round, f.outputs()) * round.k[n] * round.k[n] / f.diagonals[n];
    if (problem.keeps_all(round, p2, costs[removed])) {  // x itself is projected on its nearest neighbour
        std::vector<double> change(f.outputs());
        for (size_t r = 0; r < f.outputs(); ++r)
            change[r] = problem.tau(p2) * round.parts[r] * round.k[n] / f.diagonals[n];
        f.add_to_coefficient(n, change.data());
        return true;
    }
    const NeighbourProjection projection = project_on_neighbour(budget, f, round, removed);
    if (projection.on_neighbour != 0.0) {
        std::vector<double> change = coefficients_of(f, removed);
        for (double& each : change) each *= projection.on_neighbour;
        f.add_to_coefficient(size_t(budget.nearest[removed]), change.data());
    }
    replace(f, round, removed, projection.on_new);
    update_neighbours(budget, f, removed);
    return true;
}

namespace {

// Removes a vector and projects it on all others, the new one included.
void replace_and_project(Expansion& f, const KernelRound& round, size_t removed, const std::vector<double>& d,
                         double delta2) {
    const std::vector<double> c = coefficients_of(f, removed), parts = f.replace_in_inverse(removed, d, delta2);
    std::vector<double> change(f.outputs());
    for (size_t i = 0; i < f.size(); ++i) {
        if (i == removed) continue;
        for (size_t r = 0; r < f.outputs(); ++r) change[r] = parts[i] * c[r];
        f.add_to_coefficient(i, change.data());
    }
    replace(f, round, removed, parts[removed]);
    f.check_inverse();
}

}  // namespace

// The removed vector is projected on all others. O(B^2).
bool bpa_p(Budget& budget, Expansion& f, const KernelRound& round) {
    if (is_passive(budget, round)) return false;
    if (f.size() == 0) {
        append_and_extend(f, round, own_coefficients(f, round), {}, round.ktt);
        return true;
    }
    const Problem problem = problem_of(budget, round);
    const size_t n = f.size();
    const std::vector<double> d = f.solve(round.k);
    const double inside = kernel_loops->dot(d.data(), round.k, n), delta2 = round.ktt - inside;
    const double p2 = squared_parts(round, f.outputs()) * inside;
    const bool in_span = delta2 <= dependent_on_all * round.ktt;
    if (!in_span && !budget.full(f)) {
        append_and_extend(f, round, own_coefficients(f, round), d, delta2);
        return true;
    }
    if (!in_span) {
        std::vector<double> costs(n);
        for (size_t r = 0; r < n; ++r) costs[r] = 0.5 * f.squared_norm(r) / (f.inverse[r][r] + d[r] * d[r] / delta2);
        const size_t removed = f.argmin(costs);
        if (!problem.keeps_all(round, p2, costs[removed])) {
            replace_and_project(f, round, removed, d, delta2);
            return true;
        }
    }
    add_projected(f, d, problem.tau(p2), round.parts);
    return true;
}

}  // namespace budgets

void find_neighbours(Budget& budget, const Expansion& f) {
    budget.nearest.assign(f.size(), -1.0);
    budget.distance.assign(f.size(), 0.0);
    for (size_t i = 0; i < f.size(); ++i) find_nearest(budget, f, i);
}

}  // namespace onepass
