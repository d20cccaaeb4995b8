// The rules of src/onepass/rules/, one function each. The order of params is that of the rule's native().
#include "core/rules.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "core/losses.hpp"
#include "core/schedules.hpp"

namespace onepass::rules {

// If m <= beta (strict: m < beta): w += rho_t * phi.   params: beta, strict, schedule[4]
static void perceptron(const Scalars* s, const double* p, double*, Step* step) {
    const bool violated = p[1] != 0.0 ? s->m < p[0] : s->m <= p[0];
    if (violated) step->add = s->importance * eta_at(p + 2, s->t);
}

// LMS: w += rho_t * (target - m) * phi.   params: schedule[4]
static double adaline_rate(const Scalars* s, const double* p) { return s->importance * eta_at(p, s->t); }

static void adaline(const Scalars* s, const double* p, double*, Step* step) {
    step->add = adaline_rate(s, p) * (s->target - s->m);
}

// Normalised LMS.   params: mu, eps, scale_step
static double nlms_rate(const Scalars* s, const double* p) {
    return p[0] * s->importance / (p[1] + (p[2] != 0.0 ? 1.0 : s->importance) * s->xx);
}

static void nlms(const Scalars* s, const double* p, double*, Step* step) {
    step->add = nlms_rate(s, p) * (s->target - s->m);
}

// Passive-Aggressive: tau(loss, xx, c) is all that the variants differ in.   params: C, on_mistake, scale_step
template <double (*tau)(double loss, double xx, double c, double C)>
static void passive_aggressive(const Scalars* s, const double* p, double*, Step* step) {
    const double loss = std::max(0.0, s->target - s->m);
    if (loss == 0.0 || (p[1] != 0.0 && s->m > 0.0)) return;
    step->add = p[2] != 0.0 ? s->importance * tau(loss, s->xx, 1.0, p[0]) : tau(loss, s->xx, s->importance, p[0]);
}

static double tau_pa(double loss, double xx, double, double) { return loss / xx; }
static double tau_pa1(double loss, double xx, double c, double C) { return std::min(c * C, loss / xx); }
static double tau_pa2(double loss, double xx, double c, double C) { return loss / (xx + 1.0 / (2.0 * c * C)); }

// Gradient descent, w <- w - eta*c*gradient.   params: loss, its parameter, schedule[4], clock, then the penalty's
static double sgd_eta(const Scalars* s, const double* p) { return eta_at(p + 2, p[6] != 0.0 ? s->k + 1.0 : s->t); }

// The penalties that may follow a gradient step.   params from 7 on: l2 | lam1, lam2 | gravity, K
static void shrink_l2(const Scalars*, const double* p, double eta, Step* step) {
    step->decay = std::max(0.0, 1.0 - eta * p[7]);
}
static void elastic_net(const Scalars*, const double* p, double eta, Step* step) {
    step->soft = eta * p[7];
    step->shrink = 1.0 / (1.0 + eta * p[8]);
}
static void truncate(const Scalars* s, const double* p, double eta, Step* step) {
    const double times = s->t / p[8];  // whole exactly where K divides t, as far as rounds can be counted
    if (double(int64_t(times)) == times) step->soft = p[8] * eta * p[7];
}
using Penalty = void (*)(const Scalars*, const double*, double, Step*);

// What a loss adds to the multiplier of phi for each unit of the rate.   params: loss, its parameter
static double pull_of(const Scalars* s, const double* p) {
    const Loss loss = Loss(int(p[0]));
    return of_margin(loss) ? pull(loss, p[1], s->m + (1.0 - s->target))
                           : s->side * pull(loss, p[1], s->side * (s->target - s->m));
}

template <Penalty penalty>
static void descent(const Scalars* s, const double* p, double*, Step* step) {
    const double eta = sgd_eta(s, p);
    step->add = eta * s->importance * pull_of(s, p);
    penalty(s, p, eta, step);
}

// Rules by coordinates: the gradient alone, whose way into the weights is theirs.   params: loss, its parameter, theirs
static void gradient(const Scalars* s, const double* p, double*, Step* step) {
    step->add = s->importance * pull_of(s, p);
}

// eta = 1/(lam*t); w <- (1 - 1/t)*w + eta*phi [m < target]; then onto the ball 1/sqrt(lam).   params: lam, project
static void pegasos(const Scalars* s, const double* p, double*, Step* step) {
    double scale = 1.0 - 1.0 / s->t;
    double add = s->m < s->target ? 1.0 / (p[0] * s->t) * s->importance : 0.0;
    if (p[1] != 0.0) {
        const double inner = s->m - s->base;
        const double ww = scale * scale * s->ww + 2.0 * scale * add * inner + add * add * s->xx;
        const double inside = ww > 0.0 ? std::min(1.0, 1.0 / std::sqrt(p[0] * ww)) : 1.0;
        scale *= inside;
        add *= inside;
    }
    step->add = add;
    step->scale = scale;
}

// Least squares with targets +1 and -1 in the class rows; rate is the multiplier of the residual.
template <double (*rate)(const Scalars*, const double*)>
static void one_hot(const Scalars* s, const double* scores, int64_t classes, int64_t y, const double* p, double*,
                    double* coefficients, Step* step) {
    const double multiplier = rate(s, p);
    for (int64_t r = 0; r < classes; ++r) coefficients[r] = multiplier * ((r == y ? 1.0 : -1.0) - scores[r]);
    step->add = 1.0;
}

// The pull of softmax cross-entropy (logistic) or of squares with targets +-1 on every row, times c.
static void pull_rows(const double* scores, int64_t classes, int64_t y, const double* p, double c,
                      double* coefficients) {
    if (Loss(int(p[0])) == Loss::logistic) {
        double top = scores[0], sum = 0.0;
        for (int64_t r = 1; r < classes; ++r) top = std::max(top, scores[r]);
        for (int64_t r = 0; r < classes; ++r) sum += coefficients[r] = std::exp(scores[r] - top);
        for (int64_t r = 0; r < classes; ++r) coefficients[r] = c * ((r == y) - coefficients[r] / sum);
    } else {
        for (int64_t r = 0; r < classes; ++r) coefficients[r] = c * ((r == y ? 1.0 : -1.0) - scores[r]);
    }
}

// Descent by that.   params: as descent
template <Penalty penalty>
static void descent_rows(const Scalars* s, const double* scores, int64_t classes, int64_t y, const double* p, double*,
                         double* coefficients, Step* step) {
    const double eta = sgd_eta(s, p);
    pull_rows(scores, classes, y, p, eta * s->importance, coefficients);
    step->add = 1.0;
    penalty(s, p, eta, step);
}

static void gradient_rows(const Scalars* s, const double* scores, int64_t classes, int64_t y, const double* p, double*,
                          double* coefficients, Step* step) {
    pull_rows(scores, classes, y, p, s->importance, coefficients);
    step->add = 1.0;
}

// MIRA: alpha = clip((beta - m)/xx, 0, c*cap).   params: beta, cap, step on a tie
static void mira(const Scalars* s, const double* p, double*, Step* step) {
    const double cap = s->importance * p[1];
    if (p[0] == 0.0 && s->m == 0.0) step->add = p[2] != 0.0 ? cap : 0.0;
    else step->add = std::min(cap, std::max(0.0, (p[0] - s->m) / s->xx));
}

// The Euclidean projection of z onto {v >= 0, sum v = total}, in place.
static void project_to_simplex(double* z, int64_t n, double total) {
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
static void mira_rows(const Scalars* s, const double* scores, int64_t classes, int64_t y, const double* p, double*,
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

// The sum of all tau where they meet the constraints at once: tau_r = max(0, q_r - kappa * sum). Sums the largest q
// first.
static double sum_of_taus(const std::vector<double>& q, double kappa) {
    thread_local std::vector<double> sorted;
    sorted.clear();
    for (double value : q)
        if (value > 0.0) sorted.push_back(value);  // the constraints that hold do not count
    std::sort(sorted.begin(), sorted.end(), std::greater<double>());
    double used = 0.0, total = 0.0;
    for (size_t j = 0; j < sorted.size() && sorted[j] - kappa * total > 0.0; ++j) {
        used += sorted[j];
        total = used / (1.0 + double(j + 1) * kappa);
    }
    return total;
}

// Passive-Aggressive with all constraints s_y - s_r >= 1 at once (Matsushima, Shimizu, Yoshida, Ninomiya and Nakagawa
// 2010); `which` is its variant.   params: as PA
enum class Variant { hard, linear, squared };
template <Variant variant>
static void passive_aggressive_rows(const Scalars* s, const double* scores, int64_t classes, int64_t y, const double* p,
                                    double*, double* coefficients, Step* step) {
    std::fill_n(coefficients, classes, 0.0);
    if (p[1] != 0.0 && s->m > 0.0) return;
    const double c = p[2] != 0.0 ? 1.0 : s->importance;
    const double kappa = variant == Variant::squared ? 1.0 + 1.0 / (2.0 * c * p[0] * s->xx) : 1.0;
    thread_local std::vector<double> q;
    q.clear();
    if (s->m >= 1.0) return;  // every constraint holds
    for (int64_t r = 0; r < classes; ++r)
        if (r != y) q.push_back((1.0 - scores[y] + scores[r]) / s->xx);
    const double total = sum_of_taus(q, kappa);
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

// ROMMA: the smallest w with <w, phi> >= target - base and <w, w_t> >= |w_t|^2.   no params
template <bool aggressive>
static void romma(const Scalars* s, const double*, double*, Step* step) {
    if (aggressive ? s->m >= s->target : s->m > 0.0) return;
    const double both = s->xx * s->ww, inner = s->m - s->base, target = s->target - s->base;
    if (both == 0.0 || target * inner >= both) {
        step->scale = 0.0;
        step->add = target / s->xx;
        return;
    }
    const double d = both - inner * inner;
    if (d <= 1e-12 * both) return;
    step->scale = (both - target * inner) / d;
    step->add = s->ww * (target - inner) / d;
}

// ALMA.   params: alpha, B*sqrt(p-1), C/sqrt(p-1), normalize, strict, whether p != 2 (then the weights see to the ball)
static void alma(const Scalars* s, const double* p, double*, Step* step) {
    const double length = p[3] != 0.0 ? std::sqrt(s->xx) : 1.0;
    const double threshold = (1.0 - p[0]) * p[1] / std::sqrt(s->k + 1.0), margin = s->m / length;
    if (margin > threshold || (p[4] != 0.0 && margin == threshold)) return;
    const double add = p[2] / std::sqrt(s->k + 1.0) / length;
    if (p[5] != 0.0) {
        step->add = add;
        return;
    }
    const double inside = 1.0 / std::max(1.0, std::sqrt(s->ww + 2.0 * add * (s->m - s->base) + add * add * s->xx));
    step->scale = inside;
    step->add = inside * add;
}

// Shifting Perceptron: w <- (1 - lam_k)*w + phi on a mistake.   params: lam, constant
static void shifting(const Scalars* s, const double* p, double*, Step* step) {
    if (s->m > 0.0) return;
    const double lam = p[1] != 0.0 ? p[0] : (p[0] > 0.0 ? p[0] / (p[0] + s->k) : 0.0);
    step->scale = 1.0 - lam;
    step->add = 1.0;
}

// MROC: ascent on the sigmoid of the pair's margin.   params: beta, mu, min_slope
static void mroc(const Scalars* s, const double* p, double*, Step* step) {
    const double e = std::exp(-std::abs(p[0] * s->m));
    const double slope = p[0] * e / ((1.0 + e) * (1.0 + e));
    if (slope >= p[2]) step->add = s->importance * p[1] * slope;
}

// Recursive least squares.   params: forgetting; slots: sum of normalised squares, its rounds
static double rls_rate(const Scalars* s, const double* p) { return s->importance / (p[0] + s->importance * s->xx); }

static void rls(const Scalars* s, const double* p, double* state, Step* step) {
    const double e = s->target - s->m, rate = rls_rate(s, p);
    state[0] = p[0] * state[0] + e * e * p[0] * rate;
    state[1] = p[0] * state[1] + 1.0;
    step->add = rate * e;
    step->gain = s->importance;
    step->forget = p[0];
}

static void rls_rows(const Scalars* s, const double* scores, int64_t classes, int64_t y, const double* p, double* state,
                     double* coefficients, Step* step) {
    one_hot<rls_rate>(s, scores, classes, y, p, state, coefficients, step);
    step->gain = s->importance;
    step->forget = p[0];
}

// AROW, and Kalman's filter.   params: lam, shrink Sigma also beyond the margin
static void arow(const Scalars* s, const double* p, double*, Step* step) {
    if (s->regression != 0.0 || s->m < s->target) {
        step->add = (s->target - s->m) / (s->xx + p[0] / s->importance);
        step->gain = s->importance / p[0];
    } else if (p[1] != 0.0) {
        step->gain = s->importance / p[0];
    }
}

// Confidence-weighted: the variants differ in alpha(m, v, phi, c).   params: phi, variance form, C
static double alpha_cw(double m, double v, double phi, double) {
    const double pp = phi * phi, zeta = 1.0 + pp;
    const double root = std::sqrt(m * m * (pp * pp) / 4.0 + v * pp * zeta);
    return std::max(0.0, (-m * (1.0 + pp / 2.0) + root) / (v * zeta));
}
static double alpha_scw1(double m, double v, double phi, double C) { return std::min(C, alpha_cw(m, v, phi, C)); }
static double alpha_scw2(double m, double v, double phi, double C) {
    const double n = v + 1.0 / (2.0 * C), pp = phi * phi;
    const double root = phi * std::sqrt(pp * m * m * v * v + 4.0 * n * v * (n + v * pp));
    return std::max(0.0, (-(2.0 * m * n + pp * m * v) + root) / (2.0 * (n * n + n * v * pp)));
}

constexpr double smallest_variance = 1e-300;

template <double (*alpha_of)(double m, double v, double phi, double C)>
static void confidence_weighted(const Scalars* s, const double* p, double*, Step* step) {
    const double m = s->m, v = s->xx, phi = p[0];
    if (v < smallest_variance) return;
    if (p[1] != 0.0) {
        if (m >= phi * v) return;
        const double b = 1.0 + 2.0 * phi * m;
        step->add = std::max(0.0, (-b + std::sqrt(b * b - 8.0 * phi * (m - phi * v))) / (4.0 * phi * v));
        step->gain = 2.0 * step->add * phi;
        return;
    }
    if (m >= phi * std::sqrt(v)) return;
    const double alpha = alpha_of(m, v, phi, s->importance * p[2]), spread = alpha * v * phi;
    step->add = alpha;
    step->gain = alpha * phi / (2.0 * v / (spread + std::sqrt(spread * spread + 4.0 * v)));
}

// Gaussian herding.   params: C
static void nherd(const Scalars* s, const double* p, double*, Step* step) {
    if (s->m >= s->target) return;
    const double C = s->importance * p[0];
    step->add = (s->target - s->m) / (s->xx + 1.0 / C);
    step->gain = 2.0 * C + C * C * s->xx;
}

// Online Newton step.   params: loss, its parameter, gamma
static void newton_step(const Scalars* s, const double* p, double*, Step* step) {
    const Loss loss = Loss(int(p[0]));
    double pulled = of_margin(loss) ? pull(loss, p[1], s->m + (1.0 - s->target))
                                    : s->side * pull(loss, p[1], s->side * (s->target - s->m));
    pulled *= s->importance;
    step->add = pulled / (p[2] * (1.0 + pulled * pulled * s->xx));
    step->gain = pulled * pulled;
}

// NORMA: w <- (1 - eta_t*lam)*w + eta_t*phi [m <= rho], rho moved by nu.   params: schedule (4), lam, rho, nu or -1
// state: how far rho has moved
static void norma(const Scalars* s, const double* p, double* state, Step* step) {
    const double eta = eta_at(p, s->t), rho = p[5] + state[0], wrong = s->m <= rho ? 1.0 : 0.0;
    if (p[6] >= 0.0) state[0] = std::max(0.0, rho - eta * (wrong - p[6])) - p[5];
    step->add = eta * s->importance * wrong;
    step->decay = 1.0 - eta * p[4];
}

// Parzen: every example goes to its own class.
static void parzen(const Scalars* s, const double*, double*, Step* step) { step->add = s->importance; }
static void parzen_rows(const Scalars* s, const double*, int64_t classes, int64_t y, const double*, double*,
                        double* coefficients, Step* step) {
    for (int64_t r = 0; r < classes; ++r) coefficients[r] = r == y ? s->importance : 0.0;
    step->add = 1.0;
}

const Entry table[] = {
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
    {rls, rls_rows},
    {arow, nullptr},
    {confidence_weighted<alpha_cw>, nullptr},
    {confidence_weighted<alpha_scw1>, nullptr},
    {confidence_weighted<alpha_scw2>, nullptr},
    {nherd, nullptr},
    {newton_step, nullptr},
    {norma, nullptr},
    {parzen, parzen_rows},
    {gradient, gradient_rows},
};
static_assert(sizeof(table) / sizeof(table[0]) == count, "count is what core/rules.hpp says");

}  // namespace onepass::rules
