// Budgets: what happens when a kernel learner wants to add to its expansion. The formulas of src/onepass/budgets.py.
#pragma once
#include <cstdint>

#include "kernels/expansion.hpp"

namespace onepass {

// A round as a budget sees it: the rule has answered, nothing has moved yet.
struct KernelRound {
    const Query& x;
    const double* k;       // K(x, x_i)
    double ktt;            // K(x, x)
    const double* scores;  // f(x), one per output
    double m, target;      // the margin and what it should have reached
    double xx;             // |phi|^2 = ktt * |parts|^2
    double importance;
    double add, scale;    // f <- scale*f + add*parts*K(x, .)
    const double* parts;  // the direction: one number per output
    double t;
};

struct Budget;
// Takes the round's step, or another in its place; true where f has changed.
using Admit = bool (*)(Budget&, Expansion&, const KernelRound&);

struct Budget {
    Admit admit = nullptr;
    size_t B = 0;             // 0: no limit
    double p[8] = {};         // the budget's own parameters
    double rule[3] = {};      // of the rule: beta (Perceptron), or C and whether it is PA-II
    double Q = 0.0, M = 0.0;  // Forgetron; Reservoir counts the updates that came in M
    uint64_t random = 0;
    bool merge_duplicates = false;
    bool every_round = false;               // is it asked also where the rule does not add?
    std::vector<double> nearest, distance;  // BPA-NN: of each vector; follows from the Gram matrix

    bool full(const Expansion& f) const { return B > 0 && f.size() >= B; }
};

// f <- scale*f + add*parts*K(x, .), with no thought of room.
bool take_step(Budget& budget, Expansion& f, const KernelRound& round);

// Indexed by the budget's `code`; `prepare` says what the expansion must keep.
struct BudgetEntry {
    Admit admit;
    bool gram, inverse, values, norm, every_round, covariance = false;
};
extern const BudgetEntry budget_table[];
extern const int budget_count;

void find_neighbours(Budget& budget, const Expansion& f);  // BPA-NN, after loading

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
