// Merging two support vectors into one (Wang, Crammer and Vucetic 2012).
#include <algorithm>
#include <cmath>

#include "kernels/budgets.hpp"

namespace onepass::budgets {

namespace {

constexpr int halvings = 30;

// Where on the way from one to the other a merged vector stands best: the h that maximises
// g(h) = |c_i kappa^((1-h)^2) + c_j kappa^(h^2)|^2, kappa = K(x_i, x_j), by golden sections.
struct Merged {
    double h, kept;
};

Merged best_place(const Expansion& f, size_t i, size_t j, double log_kappa) {
    const auto kept = [&](double h) {
        const double at_i = std::exp(log_kappa * (1.0 - h) * (1.0 - h)), at_j = std::exp(log_kappa * h * h);
        double sum = 0.0;
        for (size_t r = 0; r < f.outputs(); ++r) {
            const double c = f.c(i, r) * at_i + f.c(j, r) * at_j;
            sum += c * c;
        }
        return sum;
    };
    const double golden = 0.6180339887498949;
    double low = 0.0, high = 1.0, a = high - golden * (high - low), b = low + golden * (high - low);
    double at_a = kept(a), at_b = kept(b);
    for (int step = 0; step < halvings; ++step) {
        if (at_a >= at_b) {
            high = b;
            b = a;
            at_b = at_a;
            a = high - golden * (high - low);
            at_a = kept(a);
        } else {
            low = a;
            a = b;
            at_a = at_b;
            b = low + golden * (high - low);
            at_b = kept(b);
        }
    }
    const double h = 0.5 * (low + high);
    return {h, kept(h)};
}

// h*x + (1-h)*z, dense or sparse.
void blend(const Query& x, const Query& z, double h, std::vector<double>& values, std::vector<int64_t>& index) {
    values.clear();
    index.clear();
    if (!x.index) {
        for (size_t j = 0; j < x.n; ++j) values.push_back(h * x.x[j] + (1.0 - h) * z.x[j]);
        return;
    }
    for (size_t a = 0, b = 0; a < x.n || b < z.n;) {
        const bool from_x = b == z.n || (a < x.n && x.index[a] <= z.index[b]);
        const bool from_z = a == x.n || (b < z.n && z.index[b] <= x.index[a]);
        index.push_back(from_x ? x.index[a] : z.index[b]);
        values.push_back((from_x ? h * x.x[a] : 0.0) + (from_z ? (1.0 - h) * z.x[b] : 0.0));
        a += from_x;
        b += from_z;
    }
}

}  // namespace

// Merging (Wang, Crammer and Vucetic 2012), Gaussian kernels: the smallest vector and the one it fits best become one.
bool merge(Budget& budget, Expansion& f, const KernelRound& round) {
    const bool changed = take_step(budget, f, round);
    if (budget.B == 0 || f.size() <= budget.B) return changed;
    std::vector<double> sizes(f.size());
    for (size_t i = 0; i < f.size(); ++i) sizes[i] = f.squared(i);
    const size_t i = f.least(sizes);
    std::vector<double> keep, other, values, k(Points::lined(f.size()));
    const Query x = f.points.query(i, keep);
    kernel_loops->row(*f.kernel, x, f.points, 0, f.size(), k.data());
    size_t partner = i;
    Merged best{1.0, 0.0};
    double least = 0.0;
    for (size_t j = 0; j < f.size(); ++j) {
        double mixed = 0.0;  // vectors that pull against each other are not merged
        for (size_t r = 0; r < f.outputs(); ++r) mixed += f.c(i, r) * f.c(j, r);
        if (j == i || !(mixed > 0.0) || !(k[j] > 0.0)) continue;
        const Merged place = best_place(f, i, j, std::log(k[j]));
        const double lost = sizes[i] + sizes[j] + 2.0 * mixed * k[j] - place.kept;
        if (partner == i || lost < least || (lost == least && f.birth[j] < f.birth[partner])) {
            partner = j;
            best = place;
            least = lost;
        }
    }
    if (partner == i) {  // nobody near: the smallest goes
        f.remove(i);
        return true;
    }
    const double log_kappa = std::log(k[partner]), h = best.h;
    std::vector<double> row(f.outputs());
    for (size_t r = 0; r < f.outputs(); ++r)
        row[r] =
            f.c(i, r) * std::exp(log_kappa * (1.0 - h) * (1.0 - h)) + f.c(partner, r) * std::exp(log_kappa * h * h);
    std::vector<int64_t> index;
    blend(x, f.points.query(partner, other), h, values, index);
    Query z{values.data(), index.empty() && !x.index ? nullptr : index.data(), values.size()};
    const double born = std::min(f.birth[i], f.birth[partner]);
    f.remove(std::max(i, partner));
    f.remove(std::min(i, partner));
    kernel_loops->prepare(*f.kernel, z);
    std::vector<double> scores(f.outputs());
    const double* to_all = f.row(z);
    f.score(to_all, scores.data());
    f.append(z, to_all, diagonal(*f.kernel, z), scores.data(), row.data(), born);
    return true;
}

}  // namespace onepass::budgets
