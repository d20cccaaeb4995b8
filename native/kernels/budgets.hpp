// Budgets: how a kernel learner applies the step of a rule and stores at most B vectors. The formulas are those of
// src/onepass/kernels/budgets/.
#pragma once
#include <cstdint>
#include <span>

#include "core/name_lists.hpp"
#include "kernels/expansion.hpp"

namespace onepass {

// A round as a budget sees it: the rule's step is known, and f has not changed yet.
struct KernelRound {
    const Query& x;
    const double* k;       // K(x, x_i)
    double ktt;            // K(x, x)
    const double* scores;  // f(x), one number per output
    double m, target;      // the margin, and the margin that the loss asks for
    double xx;             // |phi|^2 = ktt * |parts|^2
    double importance;
    double add, scale;    // the rule's step: f <- scale*f + add*parts*K(x, .)
    const double* parts;  // the direction phi, one number per output
    double t;

    double loss() const { return target - m; }
};

struct Budget;
// Applies the step of the round, or replaces it by a step with which f has at most B vectors. Returns true if f
// changed.
using Admit = bool (*)(Budget&, Expansion&, const KernelRound&);

constexpr size_t max_budget_params = 4;

struct Budget {
    Admit admit = nullptr;
    size_t B = 0;                      // the most vectors; 0 is no limit
    double p[max_budget_params] = {};  // by the names below
    double Q = 0.0, M = 0.0;           // numbers of the Forgetron; in the Reservoir, M counts all updates
    uint64_t random = 0;               // the state of the random generator
    bool merge_duplicates = false;
    bool every_round = false;               // `admit` is called in every round, even if the rule adds nothing
    std::vector<double> nearest, distance;  // BPA-NN: each vector's nearest neighbour and its squared distance

    bool full(const Expansion& f) const { return B > 0 && f.size() >= B; }
};

// f <- scale*f + add*parts*K(x, .), without a limit.
bool take_step(Budget& budget, Expansion& f, const KernelRound& round);

// The parameters of budgets, those of the rule that they read included.
ONEPASS_POSITIONS(ShrinkingParams, phi);
ONEPASS_POSITIONS(BudgetPerceptronParams, after, sweep, beta);  // remove after adding; check each vector once
ONEPASS_POSITIONS(ForgetronParams, self_tuned);
ONEPASS_POSITIONS(ProjectronParams, eta, margin_errors, by_U, U);
ONEPASS_POSITIONS(BPAParams, ramp, C, squared);  // squared: PA-II
ONEPASS_POSITIONS(ALDParams, nu);

// A budget, and what the expansion must store for it.
struct BudgetEntry {
    const char* name;  // of its class in src/onepass/kernels/budgets/
    Admit admit;
    const char* parameters = "";
    bool gram = false, inverse = false, values = false, norm = false, every_round = false, covariance = false;
};
std::span<const BudgetEntry> budget_table();
const BudgetEntry* find_budget(std::string_view name);  // null where there is none

void find_neighbours(Budget& budget, const Expansion& f);  // of BPA-NN, after a model was loaded

namespace budgets {
bool stop(Budget&, Expansion&, const KernelRound&);
bool oldest(Budget&, Expansion&, const KernelRound&);
bool random(Budget&, Expansion&, const KernelRound&);
bool shrinking(Budget&, Expansion&, const KernelRound&);
bool perceptron(Budget&, Expansion&, const KernelRound&);
bool forgetron(Budget&, Expansion&, const KernelRound&);
bool projectron(Budget&, Expansion&, const KernelRound&);
bool bpa_s(Budget&, Expansion&, const KernelRound&);
bool bpa_nn(Budget&, Expansion&, const KernelRound&);
bool bpa_p(Budget&, Expansion&, const KernelRound&);
bool merge(Budget&, Expansion&, const KernelRound&);
bool ald(Budget&, Expansion&, const KernelRound&);
bool reservoir(Budget&, Expansion&, const KernelRound&);
}  // namespace budgets

}  // namespace onepass
