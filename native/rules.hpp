// The rules of src/onepass/rules/, one function each. The order of params is that of the rule's native().
#pragma once
#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "abi.hpp"
#include "losses.hpp"
#include "schedules.hpp"

namespace onepass::rules {

// If m <= beta (strict: m < beta): w += rho_t * phi.   params: beta, strict, schedule[4]
inline void perceptron(const Scalars* s, const double* p, double*, Step* step) {
    const bool violated = p[1] != 0.0 ? s->m < p[0] : s->m <= p[0];
    if (violated) step->add = s->importance * eta_at(p + 2, s->t);
}

// LMS: w += rho_t * (target - m) * phi.   params: schedule[4]
inline double adaline_rate(const Scalars* s, const double* p) { return s->importance * eta_at(p, s->t); }

inline void adaline(const Scalars* s, const double* p, double*, Step* step) {
    step->add = adaline_rate(s, p) * (s->target - s->m);
}

// Normalised LMS.   params: mu, eps, scale_step
inline double nlms_rate(const Scalars* s, const double* p) {
    return p[0] * s->importance / (p[1] + (p[2] != 0.0 ? 1.0 : s->importance) * s->xx);
}

inline void nlms(const Scalars* s, const double* p, double*, Step* step) {
    step->add = nlms_rate(s, p) * (s->target - s->m);
}

// Passive-Aggressive: tau(loss, xx, c) is all that the variants differ in.   params: C, on_mistake, scale_step
template <double (*tau)(double loss, double xx, double c, double C)>
inline void passive_aggressive(const Scalars* s, const double* p, double*, Step* step) {
    const double loss = std::max(0.0, s->target - s->m);
    if (loss == 0.0 || (p[1] != 0.0 && s->m > 0.0)) return;
    step->add = p[2] != 0.0 ? s->importance * tau(loss, s->xx, 1.0, p[0]) : tau(loss, s->xx, s->importance, p[0]);
}

inline double tau_pa(double loss, double xx, double, double) { return loss / xx; }
inline double tau_pa1(double loss, double xx, double c, double C) { return std::min(c * C, loss / xx); }
inline double tau_pa2(double loss, double xx, double c, double C) { return loss / (xx + 1.0 / (2.0 * c * C)); }

// Gradient descent, w <- w - eta*c*gradient.   params: loss, its parameter, schedule[4], clock, then the penalty's
inline double sgd_eta(const Scalars* s, const double* p) { return eta_at(p + 2, p[6] != 0.0 ? s->k + 1.0 : s->t); }

// The penalties that may follow a gradient step.   params from 7 on: l2 | lam1, lam2 | gravity, K
inline void shrink_l2(const Scalars*, const double* p, double eta, Step* step) {
    step->decay = std::max(0.0, 1.0 - eta * p[7]);
}
inline void elastic_net(const Scalars*, const double* p, double eta, Step* step) {
    step->soft = eta * p[7];
    step->shrink = 1.0 / (1.0 + eta * p[8]);
}
inline void truncate(const Scalars* s, const double* p, double eta, Step* step) {
    const double times = s->t / p[8];  // whole exactly where K divides t, as far as rounds can be counted
    if (double(int64_t(times)) == times) step->soft = p[8] * eta * p[7];
}
using Penalty = void (*)(const Scalars*, const double*, double, Step*);

template <Penalty penalty>
inline void descent(const Scalars* s, const double* p, double*, Step* step) {
    const double eta = sgd_eta(s, p);
    const Loss loss = Loss(int(p[0]));
    const double pulled = of_margin(loss) ? pull(loss, p[1], s->m + (1.0 - s->target))
                                          : s->side * pull(loss, p[1], s->side * (s->target - s->m));
    step->add = eta * s->importance * pulled;
    penalty(s, p, eta, step);
}

// eta = 1/(lam*t); w <- (1 - 1/t)*w + eta*phi [m < target]; then onto the ball 1/sqrt(lam).   params: lam, project
inline void pegasos(const Scalars* s, const double* p, double*, Step* step) {
    double scale = 1.0 - 1.0 / s->t;
    double add = s->m < s->target ? 1.0 / (p[0] * s->t) * s->importance : 0.0;
    if (p[1] != 0.0) {
        const double ww = scale * scale * s->ww + 2.0 * scale * add * s->m + add * add * s->xx;
        const double inside = ww > 0.0 ? std::min(1.0, 1.0 / std::sqrt(p[0] * ww)) : 1.0;
        scale *= inside;
        add *= inside;
    }
    step->add = add;
    step->scale = scale;
}

// Least squares with targets +1 and -1 in the class rows; rate is the multiplier of the residual.
template <double (*rate)(const Scalars*, const double*)>
inline void one_hot(const Scalars* s, const double* scores, int64_t classes, int64_t y, const double* p, double*,
                    double* coefficients, Step* step) {
    const double multiplier = rate(s, p);
    for (int64_t r = 0; r < classes; ++r) coefficients[r] = multiplier * ((r == y ? 1.0 : -1.0) - scores[r]);
    step->add = 1.0;
}

// Descent on softmax cross-entropy (logistic) or on squares with targets +-1.   params: as descent
template <Penalty penalty>
inline void descent_rows(const Scalars* s, const double* scores, int64_t classes, int64_t y, const double* p, double*,
                         double* coefficients, Step* step) {
    const double eta = sgd_eta(s, p), c = eta * s->importance;
    if (Loss(int(p[0])) == Loss::logistic) {
        double top = scores[0], sum = 0.0;
        for (int64_t r = 1; r < classes; ++r) top = std::max(top, scores[r]);
        for (int64_t r = 0; r < classes; ++r) sum += coefficients[r] = std::exp(scores[r] - top);
        for (int64_t r = 0; r < classes; ++r) coefficients[r] = c * ((r == y) - coefficients[r] / sum);
    } else {
        for (int64_t r = 0; r < classes; ++r) coefficients[r] = c * ((r == y ? 1.0 : -1.0) - scores[r]);
    }
    step->add = 1.0;
    penalty(s, p, eta, step);
}

// MIRA: alpha = clip((beta - m)/xx, 0, c*cap).   params: beta, cap, step on a tie
inline void mira(const Scalars* s, const double* p, double*, Step* step) {
    const double cap = s->importance * p[1];
    if (p[0] == 0.0 && s->m == 0.0) step->add = p[2] != 0.0 ? cap : 0.0;
    else step->add = std::min(cap, std::max(0.0, (p[0] - s->m) / s->xx));
}

// The Euclidean projection of z onto {v >= 0, sum v = total}, in place.
inline void project_to_simplex(double* z, int64_t n, double total) {
    double top = z[0];  // subtracted first: large numbers lose no digits
    for (int64_t r = 1; r < n; ++r) top = std::max(top, z[r]);
    thread_local std::vector<double> sorted;
    sorted.clear();
    for (int64_t r = 0; r < n; ++r)
        if (z[r] - top > -total) sorted.push_back(z[r] - top);  // what is lower becomes 0
    std::sort(sorted.begin(), sorted.end(), std::greater<double>());
    double sum = 0.0, threshold = 0.0;
    for (size_t j = 0; j < sorted.size(); ++j) {
        const double value = sorted[j];
        sum += value;
        const double candidate = (sum - total) / double(j + 1);
        if (value - candidate > 0.0) threshold = candidate;
    }
    for (int64_t r = 0; r < n; ++r) z[r] = std::max(0.0, z[r] - top - threshold);
}

// Multiclass MIRA: tau = C*e_y - projection of (C*e_y + scores/xx).   params: as mira
inline void mira_rows(const Scalars* s, const double* scores, int64_t classes, int64_t y, const double* p, double*,
                      double* coefficients, Step* step) {
    for (int64_t r = 0; r < classes; ++r) coefficients[r] = 0.0;
    const double cap = s->importance * p[1];
    double best = scores[0];
    int64_t errors = 0;
    for (int64_t r = 0; r < classes; ++r) {
        best = std::max(best, scores[r]);
        errors += r != y && scores[r] >= scores[y];
    }
    if (errors == 0) return;  // the projection would give the truth itself
    step->add = 1.0;
    if (best == scores[y] && p[2] != 0.0) {
        for (int64_t r = 0; r < classes; ++r)
            coefficients[r] = r == y ? cap : (scores[r] >= scores[y] ? -cap / double(errors) : 0.0);
        return;
    }
    for (int64_t r = 0; r < classes; ++r) coefficients[r] = (r == y ? cap : 0.0) + scores[r] / s->xx;
    project_to_simplex(coefficients, classes, cap);
    for (int64_t r = 0; r < classes; ++r) coefficients[r] = (r == y ? cap : 0.0) - coefficients[r];
}

// PA with every constraint s_y - s_r >= 1 at once (spec 01, 13.2); which says which variant.   params: as PA
enum class Variant { hard, linear, squared };
template <Variant variant>
inline void passive_aggressive_rows(const Scalars* s, const double* scores, int64_t classes, int64_t y, const double* p,
                                    double*, double* coefficients, Step* step) {
    for (int64_t r = 0; r < classes; ++r) coefficients[r] = 0.0;
    if (p[1] != 0.0 && s->m > 0.0) return;
    const double c = p[2] != 0.0 ? 1.0 : s->importance;
    const double kappa = variant == Variant::squared ? 1.0 + 1.0 / (2.0 * c * p[0] * s->xx) : 1.0;
    thread_local std::vector<double> q, sorted;
    q.clear();
    if (s->m >= 1.0) return;  // every constraint holds
    for (int64_t r = 0; r < classes; ++r)
        if (r != y) q.push_back((1.0 - scores[y] + scores[r]) / s->xx);
    sorted.clear();
    for (double value : q)
        if (value > 0.0) sorted.push_back(value);  // the constraints that hold do not count
    std::sort(sorted.begin(), sorted.end(), std::greater<double>());
    double used = 0.0, total = 0.0;
    for (size_t j = 0; j < sorted.size() && sorted[j] - kappa * total > 0.0; ++j) {
        used += sorted[j];
        total = used / (1.0 + double(j + 1) * kappa);
    }
    if (variant == Variant::linear && total > c * p[0]) project_to_simplex(q.data(), int64_t(q.size()), c * p[0]);
    else
        for (double& value : q) value = std::max(0.0, value - kappa * total);
    const double scale = p[2] != 0.0 ? s->importance : 1.0;
    double sum = 0.0;
    for (int64_t r = 0; r < classes; ++r) {
        if (r == y) continue;
        const double tau = q[size_t(r < y ? r : r - 1)];
        coefficients[r] = -scale * tau;
        sum += tau;
    }
    coefficients[y] = scale * sum;
    step->add = 1.0;
}

// ROMMA: the smallest w with <w, phi> >= target and <w, w_t> >= |w_t|^2.   no params
template <bool aggressive>
inline void romma(const Scalars* s, const double*, double*, Step* step) {
    if (aggressive ? s->m >= s->target : s->m > 0.0) return;
    const double both = s->xx * s->ww;
    if (both == 0.0 || s->target * s->m >= both) {
        step->scale = 0.0;
        step->add = s->target / s->xx;
        return;
    }
    const double d = both - s->m * s->m;
    if (d <= 1e-12 * both) return;
    step->scale = (both - s->target * s->m) / d;
    step->add = s->ww * (s->target - s->m) / d;
}

// ALMA.   params: alpha, B*sqrt(p-1), C/sqrt(p-1), normalize, strict, whether p != 2 (then the weights see to the ball)
inline void alma(const Scalars* s, const double* p, double*, Step* step) {
    const double length = p[3] != 0.0 ? std::sqrt(s->xx) : 1.0;
    const double threshold = (1.0 - p[0]) * p[1] / std::sqrt(s->k + 1.0), margin = s->m / length;
    if (margin > threshold || (p[4] != 0.0 && margin == threshold)) return;
    const double add = p[2] / std::sqrt(s->k + 1.0) / length;
    if (p[5] != 0.0) {
        step->add = add;
        return;
    }
    const double inside = 1.0 / std::max(1.0, std::sqrt(s->ww + 2.0 * add * s->m + add * add * s->xx));
    step->scale = inside;
    step->add = inside * add;
}

// Shifting Perceptron: w <- (1 - lam_k)*w + phi on a mistake.   params: lam, constant
inline void shifting(const Scalars* s, const double* p, double*, Step* step) {
    if (s->m > 0.0) return;
    const double lam = p[1] != 0.0 ? p[0] : (p[0] > 0.0 ? p[0] / (p[0] + s->k) : 0.0);
    step->scale = 1.0 - lam;
    step->add = 1.0;
}

// MROC: ascent on the sigmoid of the pair's margin.   params: beta, mu, min_slope
inline void mroc(const Scalars* s, const double* p, double*, Step* step) {
    const double e = std::exp(-std::abs(p[0] * s->m));
    const double slope = p[0] * e / ((1.0 + e) * (1.0 + e));
    if (slope >= p[2]) step->add = s->importance * p[1] * slope;
}

// NORMA: w <- (1 - eta_t*lam)*w + eta_t*phi [m <= rho], rho moved by nu.   params: schedule (4), lam, rho, nu or -1
// state: how far rho has moved
inline void norma(const Scalars* s, const double* p, double* state, Step* step) {
    const double eta = eta_at(p, s->t), rho = p[5] + state[0], wrong = s->m <= rho ? 1.0 : 0.0;
    if (p[6] >= 0.0) state[0] = std::max(0.0, rho - eta * (wrong - p[6])) - p[5];
    step->add = eta * s->importance * wrong;
    step->decay = 1.0 - eta * p[4];
}

// Parzen: every example goes to its own class.
inline void parzen(const Scalars* s, const double*, double*, Step* step) { step->add = s->importance; }
inline void parzen_rows(const Scalars* s, const double*, int64_t classes, int64_t y, const double*, double*,
                        double* coefficients, Step* step) {
    for (int64_t r = 0; r < classes; ++r) coefficients[r] = r == y ? s->importance : 0.0;
    step->add = 1.0;
}

struct Entry {
    StepFn step;
    SolveFn solve;  // null where the rule never looks at all scores
};

// Indexed by the rule's `code`.
inline constexpr Entry table[] = {
    {perceptron, nullptr},
    {adaline, one_hot<adaline_rate>},
    {nlms, one_hot<nlms_rate>},
    {passive_aggressive<tau_pa>, passive_aggressive_rows<Variant::hard>},
    {passive_aggressive<tau_pa1>, passive_aggressive_rows<Variant::linear>},
    {passive_aggressive<tau_pa2>, passive_aggressive_rows<Variant::squared>},
    {descent<shrink_l2>, descent_rows<shrink_l2>},
    {pegasos, nullptr},
    {mira, mira_rows},
    {romma<false>, nullptr},
    {romma<true>, nullptr},
    {alma, nullptr},
    {shifting, nullptr},
    {mroc, nullptr},
    {descent<elastic_net>, descent_rows<elastic_net>},
    {descent<truncate>, descent_rows<truncate>},
    {norma, nullptr},
    {parzen, parzen_rows},
};
inline constexpr int count = int(sizeof(table) / sizeof(table[0]));

}  // namespace onepass::rules
