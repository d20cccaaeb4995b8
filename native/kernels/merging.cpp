// Merging two stored vectors into one (Wang, Crammer and Vucetic 2012), for the Gaussian kernel.
#include <algorithm>
#include <cmath>
#include <optional>

#include "kernels/budgets.hpp"

namespace onepass::budgets {

namespace {

constexpr int halvings = 30;

// Vectors i and j merged into z = h x_i + (1 - h) x_j. z takes the coefficients c_i kappa^((1-h)^2) + c_j kappa^(h^2),
// kappa = K(x_i, x_j).
struct Pair {
    size_t i, j;
    double log_kappa;

    double share_of_i(double h) const { return std::exp(log_kappa * (1.0 - h) * (1.0 - h)); }
    double share_of_j(double h) const { return std::exp(log_kappa * h * h); }
    // The squared norm of z's coefficients.
    double retained(const Expansion& f, double h) const {
        const double of_i = share_of_i(h), of_j = share_of_j(h);
        double sum = 0.0;
        for (size_t r = 0; r < f.outputs(); ++r) {
            const double c = f.c(i, r) * of_i + f.c(j, r) * of_j;
            sum += c * c;
        }
        return sum;
    }
    std::vector<double> merged(const Expansion& f, double h) const {
        std::vector<double> out(f.outputs());
        for (size_t r = 0; r < f.outputs(); ++r) out[r] = f.c(i, r) * share_of_i(h) + f.c(j, r) * share_of_j(h);
        return out;
    }
};

// The h of [0, 1] that retains most.
double golden_section(const Expansion& f, const Pair& pair) {
    const double golden = 0.6180339887498949;
    double low = 0.0, high = 1.0, a = high - golden * (high - low), b = low + golden * (high - low);
    double at_a = pair.retained(f, a), at_b = pair.retained(f, b);
    for (int step = 0; step < halvings; ++step) {
        if (at_a >= at_b) {
            high = b;
            b = a;
            at_b = at_a;
            a = high - golden * (high - low);
            at_a = pair.retained(f, a);
        } else {
            low = a;
            a = b;
            at_a = at_b;
            b = low + golden * (high - low);
            at_b = pair.retained(f, b);
        }
    }
    return 0.5 * (low + high);
}

struct BestMerge {
    Pair pair;
    double h, lost;  // lost: |c_i K(x_i, .) + c_j K(x_j, .)|^2 less what is retained
};

double dot_of_coefficients(const Expansion& f, size_t i, size_t j) {
    double sum = 0.0;
    for (size_t r = 0; r < f.outputs(); ++r) sum += f.c(i, r) * f.c(j, r);
    return sum;
}

// The vector that loses least when it is merged with vector i; the oldest of equals. k = K(x_i, x_j) of all j.
// Vectors whose coefficients have opposite signs are not merged.
std::optional<BestMerge> best_merge(const Expansion& f, size_t i, const std::vector<double>& sizes, const double* k) {
    std::optional<BestMerge> best;
    for (size_t j = 0; j < f.size(); ++j) {
        const double mixed = dot_of_coefficients(f, i, j);
        if (j == i || !(mixed > 0.0) || !(k[j] > 0.0)) continue;
        const Pair pair{i, j, std::log(k[j])};
        const double h = golden_section(f, pair);
        const double lost = sizes[i] + sizes[j] + 2.0 * mixed * k[j] - pair.retained(f, h);
        if (!best || lost < best->lost || (lost == best->lost && f.birth[j] < f.birth[best->pair.j]))
            best = {pair, h, lost};
    }
    return best;
}

struct SparseVector {
    std::vector<double> values;
    std::vector<int64_t> index;  // empty for a dense vector
};

// h*x + (1-h)*z, dense or sparse.
SparseVector blend(const Query& x, const Query& z, double h) {
    SparseVector out;
    if (!x.index) {
        for (size_t j = 0; j < x.n; ++j) out.values.push_back(h * x.x[j] + (1.0 - h) * z.x[j]);
        return out;
    }
    for (size_t a = 0, b = 0; a < x.n || b < z.n;) {
        const bool from_x = b == z.n || (a < x.n && x.index[a] <= z.index[b]);
        const bool from_z = a == x.n || (b < z.n && z.index[b] <= x.index[a]);
        out.index.push_back(from_x ? x.index[a] : z.index[b]);
        out.values.push_back((from_x ? h * x.x[a] : 0.0) + (from_z ? (1.0 - h) * z.x[b] : 0.0));
        a += from_x;
        b += from_z;
    }
    return out;
}

// Replaces the two vectors of `best` by one. The merged vector is as old as the older of the two.
void replace_by_merged(Expansion& f, const Query& x_i, const BestMerge& best) {
    const auto& [i, j, log_kappa] = best.pair;
    const std::vector<double> coefficients = best.pair.merged(f, best.h);
    std::vector<double> other;
    const SparseVector merged = blend(x_i, f.points.query(j, other), best.h);
    Query z{merged.values.data(), x_i.index ? merged.index.data() : nullptr, merged.values.size()};
    const double born = std::min(f.birth[i], f.birth[j]);
    f.remove(std::max(i, j));
    f.remove(std::min(i, j));
    kernel_loops->prepare(*f.kernel, z);
    std::vector<double> scores(f.outputs());
    const double* k = f.kernel_values(z);
    f.score(k, scores.data());
    f.append(z, k, diagonal(*f.kernel, z), scores.data(), coefficients.data(), born);
}

}  // namespace

// After a step that exceeds the budget, the vector with the smallest coefficients is merged with the one that loses
// least, or removed when there is none.
bool merge(Budget& budget, Expansion& f, const KernelRound& round) {
    const bool changed = take_step(budget, f, round);
    if (budget.B == 0 || f.size() <= budget.B) return changed;
    std::vector<double> sizes(f.size());
    for (size_t i = 0; i < f.size(); ++i) sizes[i] = f.squared_norm(i);
    const size_t smallest = f.argmin(sizes);
    std::vector<double> stored, k(Points::lined(f.size()));
    const Query x = f.points.query(smallest, stored);
    kernel_loops->row(*f.kernel, x, f.points, 0, f.size(), k.data());
    if (const std::optional<BestMerge> best = best_merge(f, smallest, sizes, k.data())) replace_by_merged(f, x, *best);
    else f.remove(smallest);
    return true;
}

}  // namespace onepass::budgets
