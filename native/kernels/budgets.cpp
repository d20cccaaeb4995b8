#include "kernels/budgets.hpp"

#include <algorithm>
#include <cmath>

namespace onepass {

namespace {

// A number in [0, 1) from splitmix64 (Steele, Lea and Flood 2014).
double uniform(uint64_t& state) {
    uint64_t z = state += 0x9E3779B97F4A7C15ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return double((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

// f(x) after f <- factor*f.
const double* scaled_scores(const KernelRound& round, double factor, size_t outputs) {
    thread_local std::vector<double> scores;
    scores.resize(outputs);
    for (size_t r = 0; r < outputs; ++r) scores[r] = factor * round.scores[r];
    return scores.data();
}

// add*parts: the coefficients of x.
const double* own_coefficients(const KernelRound& round, size_t outputs) {
    thread_local std::vector<double> out;
    out.resize(outputs);
    for (size_t r = 0; r < outputs; ++r) out[r] = round.add * round.parts[r];
    return out.data();
}

void append(Expansion& f, const KernelRound& round, double factor = 1.0) {
    f.append(round.x, round.k, round.ktt, scaled_scores(round, factor, f.outputs()),
             own_coefficients(round, f.outputs()), round.t);
}

// Removes a vector and puts the new one into its slot. f was already multiplied by the round's scale.
void replace(Expansion& f, const KernelRound& round, size_t removed) {
    thread_local std::vector<double> scores;  // f(x) without the removed vector
    scores.resize(f.outputs());
    for (size_t r = 0; r < f.outputs(); ++r)
        scores[r] = round.scale * round.scores[r] - f.c(removed, r) * round.k[removed];
    f.replace(removed, round.x, round.k, round.ktt, scores.data(), own_coefficients(round, f.outputs()), round.t);
}

// Adds the step of the round to vector i, which is equal to x.
void add_to_duplicate(Expansion& f, const KernelRound& round, size_t i, double factor) {
    const double* own = own_coefficients(round, f.outputs());
    const double* scores = scaled_scores(round, factor, f.outputs());
    if (f.tracks_norm)
        for (size_t r = 0; r < f.outputs(); ++r) f.ww += 2.0 * own[r] * scores[r] + own[r] * own[r] * round.ktt;
    f.add_to_coefficient(i, own);
}

}  // namespace

bool take_step(Budget& budget, Expansion& f, const KernelRound& round) {
    const double factor = f.size() == 0 ? 1.0 : round.scale;
    f.rescale(round.scale);
    if (round.add == 0.0) return round.scale != 1.0;
    if (budget.merge_duplicates)
        for (size_t i = 0; i < f.size(); ++i)
            if (f.points.same(i, round.x)) {
                add_to_duplicate(f, round, i, factor);
                return true;
            }
    append(f, round, f.size() == 0 ? 0.0 : factor);
    return true;
}

namespace budgets {

// Stoptron: when the budget is full, learning ends.
bool stop(Budget& budget, Expansion& f, const KernelRound& round) {
    return budget.full(f) ? false : take_step(budget, f, round);
}

bool oldest(Budget& budget, Expansion& f, const KernelRound& round) {
    if (round.add == 0.0 || !budget.full(f) || round.scale == 0.0) return take_step(budget, f, round);
    f.rescale(round.scale);
    replace(f, round, f.oldest());
    return true;
}

bool random(Budget& budget, Expansion& f, const KernelRound& round) {
    if (round.add == 0.0 || !budget.full(f) || round.scale == 0.0) return take_step(budget, f, round);
    f.rescale(round.scale);
    replace(f, round, std::min(f.size() - 1, size_t(uniform(budget.random) * double(f.size()))));
    return true;
}

// A uniform sample of all updates (Vitter 1985): the M-th is stored with probability B/M, in the place of any vector.
bool reservoir(Budget& budget, Expansion& f, const KernelRound& round) {
    if (round.scale == 0.0) budget.M = 0.0;
    if (round.add == 0.0) return take_step(budget, f, round);
    budget.M += 1.0;
    if (!budget.full(f) || round.scale == 0.0) return take_step(budget, f, round);
    f.rescale(round.scale);
    const double drawn = std::floor(uniform(budget.random) * budget.M);
    if (drawn < double(f.size())) replace(f, round, size_t(drawn));
    return drawn < double(f.size()) || round.scale != 1.0;
}

bool shrinking(Budget& budget, Expansion& f, const KernelRound& round) {
    if (round.add == 0.0) return take_step(budget, f, round);
    KernelRound shrunk = round;
    shrunk.scale *= budget.p[ShrinkingParams::phi];
    return take_step(budget, f, shrunk);
}

namespace {

// g_i = y_i (f(x_i) - c_i K(x_i, x_i)): the margin of vector i without its own term.
double margin_without_own(const Expansion& f, size_t i) {
    const double sign = f.c(i) < 0.0 ? -1.0 : 1.0;
    return sign * (f.values[i] - f.c(i) * f.diagonals[i]);
}

// The vector with the largest margin without its own term: the others classify it best. The oldest of equals.
size_t most_redundant(const Expansion& f) {
    size_t best = 0;
    for (size_t i = 1; i < f.size(); ++i) {
        const double margin = margin_without_own(f, i), most = margin_without_own(f, best);
        if (margin > most || (margin == most && f.birth[i] < f.birth[best])) best = i;
    }
    return best;
}

// Removes the most redundant vector as long as its margin reaches beta.
void distil(Expansion& f, double beta) {
    while (f.size() > 1) {
        const size_t i = most_redundant(f);
        if (!(margin_without_own(f, i) >= beta)) return;
        f.remove(i);
    }
}

// Checks every vector once, the oldest first.
void sweep(Expansion& f, double beta) {
    std::vector<double> births = f.birth;
    std::sort(births.begin(), births.end());
    for (double birth : births) {
        const size_t i = size_t(std::find(f.birth.begin(), f.birth.end(), birth) - f.birth.begin());
        if (f.size() > 1 && margin_without_own(f, i) >= beta) f.remove(i);
    }
}

}  // namespace

// The Budget Perceptron (Crammer, Kandola and Singer 2003), and Pena's variant, which removes after adding.
bool perceptron(Budget& budget, Expansion& f, const KernelRound& round) {
    if (round.add == 0.0) return take_step(budget, f, round);
    if (budget.B == 0) {
        append(f, round);
        const double beta = budget.p[BudgetPerceptronParams::beta];
        if (budget.p[BudgetPerceptronParams::sweep] != 0.0) sweep(f, beta);
        else distil(f, beta);
    } else if (!budget.full(f)) {
        append(f, round);
    } else if (budget.p[BudgetPerceptronParams::after] == 0.0) {
        replace(f, round, most_redundant(f));
    } else {
        append(f, round);
        f.remove(most_redundant(f));
    }
    return true;
}

namespace {

// The largest phi in (0, 1] with (sigma^2 - 2 sigma mu) phi^2 + 2 sigma phi + c <= 0, where c = Q - (15/32) M.
double self_tuned(double sigma, double mu, double c) {
    const double a = sigma * sigma - 2.0 * sigma * mu, b = 2.0 * sigma, d = b * b - 4.0 * a * c;
    if (std::abs(a) < 1e-12) return std::min(1.0, -c / b);
    if (a > 0.0 || (d > 0.0 && (-b - std::sqrt(d)) / (2.0 * a) > 1.0))
        return std::min(1.0, (-b + std::sqrt(d)) / (2.0 * a));
    return 1.0;
}

// The factor phi of the self-tuned Forgetron before the oldest vector is removed; adds the damage of the removal to Q.
double self_tuned_factor(Budget& budget, Expansion& f, size_t oldest) {
    const double sigma = std::abs(f.c(oldest)), sign = f.c(oldest) < 0.0 ? -1.0 : 1.0, mu = sign * f.value(oldest);
    const double phi = self_tuned(sigma, mu, budget.Q - 15.0 / 32.0 * budget.M);
    budget.Q += phi * sigma * (phi * sigma + 2.0 - 2.0 * phi * mu);
    return phi;
}

// The factor phi of the basic Forgetron: the smaller of (B+1)^(-1/(2(B+1))) and U/|f|.
double basic_factor(double B, double ww) {
    const double U = 0.25 * std::sqrt((B + 1.0) / std::log(B + 1.0));
    const double phi = std::pow(B + 1.0, -1.0 / (2.0 * (B + 1.0)));
    return ww > 0.0 ? std::min(phi, U / std::sqrt(ww)) : phi;
}

}  // namespace

// The Forgetron (Dekel, Shalev-Shwartz and Singer 2008): shrink f, then remove the oldest vector.
bool forgetron(Budget& budget, Expansion& f, const KernelRound& round) {
    if (round.add == 0.0) return take_step(budget, f, round);
    budget.M += 1.0;
    const bool was_full = budget.full(f);
    append(f, round);
    if (!was_full) return true;
    const size_t oldest = f.oldest();
    const bool self_tuned = budget.p[ForgetronParams::self_tuned] != 0.0;
    f.rescale(self_tuned ? self_tuned_factor(budget, f, oldest) : basic_factor(double(budget.B), f.ww));
    f.remove(oldest);
    return true;
}

}  // namespace budgets

static const BudgetEntry budget_entries[] = {
    {.name = "Unlimited", .admit = take_step},
    {.name = "Stoptron", .admit = budgets::stop},
    {.name = "Oldest", .admit = budgets::oldest},
    {.name = "Random", .admit = budgets::random},
    {.name = "Reservoir", .admit = budgets::reservoir},
    {.name = "Shrinking", .admit = budgets::shrinking, .parameters = ShrinkingParams::names},
    {.name = "BudgetPerceptron",
     .admit = budgets::perceptron,
     .parameters = BudgetPerceptronParams::names,
     .gram = true,
     .values = true},
    {.name = "Forgetron",
     .admit = budgets::forgetron,
     .parameters = ForgetronParams::names,
     .gram = true,
     .norm = true},
    {.name = "Projectron",
     .admit = budgets::projectron,
     .parameters = ProjectronParams::names,
     .gram = true,
     .inverse = true,
     .every_round = true},
    {.name = "ProjectronPP",
     .admit = budgets::projectron,
     .parameters = ProjectronParams::names,
     .gram = true,
     .inverse = true,
     .every_round = true},
    {.name = "BPAS", .admit = budgets::bpa_s, .parameters = BPAParams::names},
    {.name = "BPANN", .admit = budgets::bpa_nn, .parameters = BPAParams::names, .gram = true},
    {.name = "BPAP", .admit = budgets::bpa_p, .parameters = BPAParams::names, .gram = true, .inverse = true},
    {.name = "Merge", .admit = budgets::merge},
    {.name = "ALD",
     .admit = budgets::ald,
     .parameters = ALDParams::names,
     .gram = true,
     .inverse = true,
     .every_round = true,
     .covariance = true},
};

std::span<const BudgetEntry> budget_table() { return budget_entries; }

const BudgetEntry* find_budget(std::string_view name) {
    for (const BudgetEntry& entry : budget_entries)
        if (entry.name == name) return &entry;
    return nullptr;
}

}  // namespace onepass
