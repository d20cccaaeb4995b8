#include "kernels/budgets.hpp"

#include <algorithm>
#include <cmath>

namespace onepass {

namespace {

// splitmix64 (Steele, Lea and Flood 2014): one draw per removal.
double uniform(uint64_t& state) {
    uint64_t z = state += 0x9E3779B97F4A7C15ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return double((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

// The scores after f <- factor*f.
const double* scaled(const KernelRound& round, double factor, size_t outputs) {
    thread_local std::vector<double> scores;
    scores.resize(outputs);
    for (size_t r = 0; r < outputs; ++r) scores[r] = factor * round.scores[r];
    return scores.data();
}

const double* coefficients(const KernelRound& round, double add, size_t outputs) {
    thread_local std::vector<double> row;
    row.resize(outputs);
    for (size_t r = 0; r < outputs; ++r) row[r] = add * round.parts[r];
    return row.data();
}

void append(Expansion& f, const KernelRound& round, double factor = 1.0) {
    f.append(round.x, round.k, round.ktt, scaled(round, factor, f.outputs()),
             coefficients(round, round.add, f.outputs()), round.t);
}

// A vector goes, the new one takes its slot.
void exchange(Expansion& f, const KernelRound& round, size_t gone) {
    thread_local std::vector<double> after;
    after.resize(f.outputs());
    for (size_t r = 0; r < f.outputs(); ++r) after[r] = round.scale * round.scores[r] - f.c(gone, r) * round.k[gone];
    f.replace(gone, round.x, round.k, round.ktt, after.data(), coefficients(round, round.add, f.outputs()), round.t);
}

}  // namespace

bool take_step(Budget& budget, Expansion& f, const KernelRound& round) {
    const double factor = f.size() == 0 ? 1.0 : round.scale;
    f.rescale(round.scale);
    if (round.add == 0.0) return round.scale != 1.0;
    if (budget.merge_duplicates)
        for (size_t i = 0; i < f.size(); ++i)
            if (f.points.same(i, round.x)) {
                const double* row = coefficients(round, round.add, f.outputs());
                const double* scores = scaled(round, factor, f.outputs());
                if (f.follows_norm)
                    for (size_t r = 0; r < f.outputs(); ++r)
                        f.ww += 2.0 * row[r] * scores[r] + row[r] * row[r] * round.ktt;
                f.add_to(i, row);
                return true;
            }
    append(f, round, f.size() == 0 ? 0.0 : factor);
    return true;
}

namespace budgets {

// Stoptron: full is the end of learning.
bool stop(Budget& budget, Expansion& f, const KernelRound& round) {
    return budget.full(f) ? false : take_step(budget, f, round);
}

bool oldest(Budget& budget, Expansion& f, const KernelRound& round) {
    if (round.add == 0.0 || !budget.full(f) || round.scale == 0.0) return take_step(budget, f, round);
    f.rescale(round.scale);
    exchange(f, round, f.oldest());
    return true;
}

bool random(Budget& budget, Expansion& f, const KernelRound& round) {
    if (round.add == 0.0 || !budget.full(f) || round.scale == 0.0) return take_step(budget, f, round);
    f.rescale(round.scale);
    exchange(f, round, std::min(f.size() - 1, size_t(uniform(budget.random) * double(f.size()))));
    return true;
}

// A uniform sample of all updates (Vitter 1985): the M-th comes in with probability B/M, in any one's place.
bool reservoir(Budget& budget, Expansion& f, const KernelRound& round) {
    if (round.scale == 0.0) budget.M = 0.0;
    if (round.add == 0.0) return take_step(budget, f, round);
    budget.M += 1.0;
    if (!budget.full(f) || round.scale == 0.0) return take_step(budget, f, round);
    f.rescale(round.scale);
    const double drawn = std::floor(uniform(budget.random) * budget.M);
    if (drawn < double(f.size())) exchange(f, round, size_t(drawn));
    return drawn < double(f.size()) || round.scale != 1.0;
}

// p: phi
bool shrinking(Budget& budget, Expansion& f, const KernelRound& round) {
    if (round.add == 0.0) return take_step(budget, f, round);
    KernelRound shrunk = round;
    shrunk.scale *= budget.p[0];
    return take_step(budget, f, shrunk);
}

namespace {

// The margin that vector i would have without its own term.
double alone(const Expansion& f, size_t i) {
    const double sign = f.c(i) < 0.0 ? -1.0 : 1.0;
    return sign * (f.values[i] - f.c(i) * f.diagonals[i]);
}

// The vector that the others classify best; the oldest among equals.
size_t most_redundant(const Expansion& f) {
    size_t best = 0;
    for (size_t i = 1; i < f.size(); ++i) {
        const double margin = alone(f, i), most = alone(f, best);
        if (margin > most || (margin == most && f.birth[i] < f.birth[best])) best = i;
    }
    return best;
}

void distil(Expansion& f, double beta) {
    while (f.size() > 1) {
        const size_t i = most_redundant(f);
        if (!(alone(f, i) >= beta)) return;
        f.remove(i);
    }
}

// Once through, the oldest first.
void sweep(Expansion& f, double beta) {
    std::vector<double> ages = f.birth;
    std::sort(ages.begin(), ages.end());
    for (double age : ages) {
        const size_t i = size_t(std::find(f.birth.begin(), f.birth.end(), age) - f.birth.begin());
        if (f.size() > 1 && alone(f, i) >= beta) f.remove(i);
    }
}

}  // namespace

// Crammer, Kandola and Singer; Pena's order.   p: 0 before, 1 after; 0 most redundant first, 1 sweep.   rule: beta
bool perceptron(Budget& budget, Expansion& f, const KernelRound& round) {
    if (round.add == 0.0) return take_step(budget, f, round);
    if (budget.B == 0) {
        append(f, round);
        if (budget.p[1] != 0.0) sweep(f, budget.rule[0]);
        else distil(f, budget.rule[0]);
    } else if (!budget.full(f)) {
        append(f, round);
    } else if (budget.p[0] == 0.0) {
        exchange(f, round, most_redundant(f));
    } else {
        append(f, round);
        f.remove(most_redundant(f));
    }
    return true;
}

namespace {

// The largest phi in (0, 1] with Q + Psi(phi) <= (15/32) M.
double self_tuned(double sigma, double mu, double c) {
    const double a = sigma * sigma - 2.0 * sigma * mu, b = 2.0 * sigma, d = b * b - 4.0 * a * c;
    if (std::abs(a) < 1e-12) return std::min(1.0, -c / b);
    if (a > 0.0 || (d > 0.0 && (-b - std::sqrt(d)) / (2.0 * a) > 1.0))
        return std::min(1.0, (-b + std::sqrt(d)) / (2.0 * a));
    return 1.0;
}

}  // namespace

// p: whether self-tuned
bool forgetron(Budget& budget, Expansion& f, const KernelRound& round) {
    if (round.add == 0.0) return take_step(budget, f, round);
    budget.M += 1.0;
    const bool full = budget.full(f);
    append(f, round);
    if (!full) return true;
    const size_t gone = f.oldest();
    const double B = double(budget.B);
    double phi;
    if (budget.p[0] != 0.0) {
        const double sigma = std::abs(f.c(gone)), sign = f.c(gone) < 0.0 ? -1.0 : 1.0, mu = sign * f.value(gone);
        phi = self_tuned(sigma, mu, budget.Q - 15.0 / 32.0 * budget.M);
        budget.Q += phi * sigma * (phi * sigma + 2.0 - 2.0 * phi * mu);
    } else {
        const double U = 0.25 * std::sqrt((B + 1.0) / std::log(B + 1.0));
        phi = std::pow(B + 1.0, -1.0 / (2.0 * (B + 1.0)));
        if (f.ww > 0.0) phi = std::min(phi, U / std::sqrt(f.ww));
    }
    f.rescale(phi);
    f.remove(gone);
    return true;
}

}  // namespace budgets

// In the order of the budgets' `code` in budgets.py.        gram   inverse values norm   every round
const BudgetEntry budget_table[] = {
    {take_step, false, false, false, false, false},          {budgets::stop, false, false, false, false, false},
    {budgets::oldest, false, false, false, false, false},    {budgets::random, false, false, false, false, false},
    {budgets::shrinking, false, false, false, false, false}, {budgets::perceptron, true, false, true, false, false},
    {budgets::forgetron, true, false, false, true, false},   {budgets::projectron, true, true, false, false, true},
    {budgets::bpa_s, false, false, false, false, false},     {budgets::bpa_nn, true, false, false, false, false},
    {budgets::bpa_p, true, true, false, false, false},       {budgets::merge, false, false, false, false, false},
    {budgets::ald, true, true, false, false, true, true},    {budgets::reservoir, false, false, false, false, false},
};
const int budget_count = int(sizeof(budget_table) / sizeof(budget_table[0]));

}  // namespace onepass
