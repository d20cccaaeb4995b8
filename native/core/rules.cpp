// The rules of src/onepass/rules/, one function each. The list before a function has the names of its parameters (and
// slots), in order. The table at the end says which rule has which function.
#include "core/rules.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "core/losses.hpp"
#include "core/schedules.hpp"

namespace onepass::rules {

// The step size in round t, for rules with the four numbers of a schedule among their parameters.
template <class Params>
static double scheduled_eta(const double* p, double t) {
    constexpr size_t first = Params::schedule;
    static_assert(Params::eta == first + ScheduleParams::eta && Params::p == first + ScheduleParams::p &&
                  Params::q == first + ScheduleParams::q);
    return eta_at(p + first, t);
}

// If m <= beta (strict: m < beta): w += rho_t * phi.
ONEPASS_POSITIONS(PerceptronParams, beta, strict, schedule, eta, p, q);
static void perceptron(const Scalars* s, const double* p, double*, Step* step) {
    const double beta = p[PerceptronParams::beta];
    const bool violated = p[PerceptronParams::strict] != 0.0 ? s->m < beta : s->m <= beta;
    if (violated) step->add = s->importance * scheduled_eta<PerceptronParams>(p, s->t);
}

// LMS: w += rho_t * (target - m) * phi.
ONEPASS_POSITIONS(AdalineParams, schedule, eta, p, q);
static double adaline_rate(const Scalars* s, const double* p) {
    return s->importance * scheduled_eta<AdalineParams>(p, s->t);
}

static void adaline(const Scalars* s, const double* p, double*, Step* step) {
    step->add = adaline_rate(s, p) * (s->target - s->m);
}

// Normalised LMS.
ONEPASS_POSITIONS(NLMSParams, mu, eps, scale_step);
static double nlms_rate(const Scalars* s, const double* p) {
    const double c = p[NLMSParams::scale_step] != 0.0 ? 1.0 : s->importance;
    return p[NLMSParams::mu] * s->importance / (p[NLMSParams::eps] + c * s->xx);
}

static void nlms(const Scalars* s, const double* p, double*, Step* step) {
    step->add = nlms_rate(s, p) * (s->target - s->m);
}

// Passive-Aggressive: tau(loss, xx, c) is all that the variants differ in.
ONEPASS_POSITIONS(PAParams, C, on_mistake, scale_step);
template <double (*tau)(double loss, double xx, double c, double C)>
static void passive_aggressive(const Scalars* s, const double* p, double*, Step* step) {
    const double loss = std::max(0.0, s->target - s->m), C = p[PAParams::C];
    if (loss == 0.0 || (p[PAParams::on_mistake] != 0.0 && s->m > 0.0)) return;
    step->add =
        p[PAParams::scale_step] != 0.0 ? s->importance * tau(loss, s->xx, 1.0, C) : tau(loss, s->xx, s->importance, C);
}

static double tau_pa(double loss, double xx, double, double) { return loss / xx; }
static double tau_pa1(double loss, double xx, double c, double C) { return std::min(c * C, loss / xx); }
static double tau_pa2(double loss, double xx, double c, double C) { return loss / (xx + 1.0 / (2.0 * c * C)); }

// Gradient descent, w <- w - eta*c*gradient; a penalty follows.
#define ONEPASS_DESCENT loss, loss_parameter, schedule, eta, p, q, by_updates
ONEPASS_POSITIONS(SGDParams, ONEPASS_DESCENT, l2);
ONEPASS_POSITIONS(FOBOSParams, ONEPASS_DESCENT, lam1, lam2);
ONEPASS_POSITIONS(TruncatedParams, ONEPASS_DESCENT, gravity, K);
#undef ONEPASS_DESCENT

template <class Params>
static double descent_eta(const Scalars* s, const double* p) {
    return scheduled_eta<Params>(p, p[Params::by_updates] != 0.0 ? s->k + 1.0 : s->t);
}

static void shrink_l2(const Scalars*, const double* p, double eta, Step* step) {
    step->decay = std::max(0.0, 1.0 - eta * p[SGDParams::l2]);
}
static void elastic_net(const Scalars*, const double* p, double eta, Step* step) {
    step->soft = eta * p[FOBOSParams::lam1];
    step->shrink = 1.0 / (1.0 + eta * p[FOBOSParams::lam2]);
}
static void truncate(const Scalars* s, const double* p, double eta, Step* step) {
    const double K = p[TruncatedParams::K];
    const double times = s->t / K;  // whole exactly where K divides t, as far as rounds can be counted
    if (double(int64_t(times)) == times) step->soft = K * eta * p[TruncatedParams::gravity];
}
using Penalty = void (*)(const Scalars*, const double*, double, Step*);

// What a loss adds to the multiplier of phi for each unit of the rate.
template <class Params>
static double pull_of(const Scalars* s, const double* p) {
    const Loss loss = Loss(int(p[Params::loss]));
    const double parameter = p[Params::loss_parameter];
    return of_margin(loss) ? pull(loss, parameter, s->m + (1.0 - s->target))
                           : s->side * pull(loss, parameter, s->side * (s->target - s->m));
}

template <class Params, Penalty penalty>
static void descent(const Scalars* s, const double* p, double*, Step* step) {
    const double eta = descent_eta<Params>(s, p);
    step->add = eta * s->importance * pull_of<Params>(s, p);
    penalty(s, p, eta, step);
}

// Rules by coordinates: the gradient alone; how it changes the weights is in loops/coordinates.hpp and vowpal.hpp.
template <class Params>
static void gradient(const Scalars* s, const double* p, double*, Step* step) {
    step->add = s->importance * pull_of<Params>(s, p);
}

// eta = 1/(lam*t); w <- (1 - 1/t)*w + eta*phi [m < target]; then onto the ball 1/sqrt(lam).
ONEPASS_POSITIONS(PegasosParams, lam, project);
static void pegasos(const Scalars* s, const double* p, double*, Step* step) {
    const double lam = p[PegasosParams::lam];
    double scale = 1.0 - 1.0 / s->t;
    double add = s->m < s->target ? 1.0 / (lam * s->t) * s->importance : 0.0;
    if (p[PegasosParams::project] != 0.0) {
        const double inner = s->m - s->base;
        const double ww = scale * scale * s->ww + 2.0 * scale * add * inner + add * add * s->xx;
        const double inside = ww > 0.0 ? std::min(1.0, 1.0 / std::sqrt(lam * ww)) : 1.0;
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
static void pull_rows(Loss loss, const double* scores, int64_t classes, int64_t y, double c, double* coefficients) {
    if (loss == Loss::logistic) {
        double top = scores[0], sum = 0.0;
        for (int64_t r = 1; r < classes; ++r) top = std::max(top, scores[r]);
        for (int64_t r = 0; r < classes; ++r) sum += coefficients[r] = std::exp(scores[r] - top);
        for (int64_t r = 0; r < classes; ++r) coefficients[r] = c * ((r == y) - coefficients[r] / sum);
    } else {
        for (int64_t r = 0; r < classes; ++r) coefficients[r] = c * ((r == y ? 1.0 : -1.0) - scores[r]);
    }
}

// Descent by that.
template <class Params, Penalty penalty>
static void descent_rows(const Scalars* s, const double* scores, int64_t classes, int64_t y, const double* p, double*,
                         double* coefficients, Step* step) {
    const double eta = descent_eta<Params>(s, p);
    pull_rows(Loss(int(p[Params::loss])), scores, classes, y, eta * s->importance, coefficients);
    step->add = 1.0;
    penalty(s, p, eta, step);
}

template <class Params>
static void gradient_rows(const Scalars* s, const double* scores, int64_t classes, int64_t y, const double* p, double*,
                          double* coefficients, Step* step) {
    pull_rows(Loss(int(p[Params::loss])), scores, classes, y, s->importance, coefficients);
    step->add = 1.0;
}

// MIRA: alpha = clip((beta - m)/xx, 0, c*cap).
ONEPASS_POSITIONS(MIRAParams, beta, cap, step_on_tie);
static void mira(const Scalars* s, const double* p, double*, Step* step) {
    const double cap = s->importance * p[MIRAParams::cap], beta = p[MIRAParams::beta];
    if (beta == 0.0 && s->m == 0.0) step->add = p[MIRAParams::step_on_tie] != 0.0 ? cap : 0.0;
    else step->add = std::min(cap, std::max(0.0, (beta - s->m) / s->xx));
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

// Multiclass MIRA: tau = C*e_y - projection of (C*e_y + scores/xx).
static void mira_rows(const Scalars* s, const double* scores, int64_t classes, int64_t y, const double* p, double*,
                      double* coefficients, Step* step) {
    for (int64_t r = 0; r < classes; ++r) coefficients[r] = 0.0;
    const double cap = s->importance * p[MIRAParams::cap];
    double best = scores[0];
    int64_t errors = 0;
    for (int64_t r = 0; r < classes; ++r) {
        best = std::max(best, scores[r]);
        errors += r != y && scores[r] >= scores[y];
    }
    if (errors == 0) return;  // the projection would give the truth itself
    step->add = 1.0;
    if (best == scores[y] && p[MIRAParams::step_on_tie] != 0.0) {
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
// 2010); `which` is its variant.
enum class Variant { hard, linear, squared };
template <Variant variant>
static void passive_aggressive_rows(const Scalars* s, const double* scores, int64_t classes, int64_t y, const double* p,
                                    double*, double* coefficients, Step* step) {
    std::fill_n(coefficients, classes, 0.0);
    if (p[PAParams::on_mistake] != 0.0 && s->m > 0.0) return;
    const bool scales_step = p[PAParams::scale_step] != 0.0;
    const double c = scales_step ? 1.0 : s->importance, C = p[PAParams::C];
    const double kappa = variant == Variant::squared ? 1.0 + 1.0 / (2.0 * c * C * s->xx) : 1.0;
    thread_local std::vector<double> q;
    q.clear();
    if (s->m >= 1.0) return;  // every constraint holds
    for (int64_t r = 0; r < classes; ++r)
        if (r != y) q.push_back((1.0 - scores[y] + scores[r]) / s->xx);
    const double total = sum_of_taus(q, kappa);
    if (variant == Variant::linear && total > c * C) project_to_simplex(q.data(), int64_t(q.size()), c * C);
    else
        for (double& value : q) value = std::max(0.0, value - kappa * total);
    const double scale = scales_step ? s->importance : 1.0;
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

// ROMMA: the smallest w with <w, phi> >= target - base and <w, w_t> >= |w_t|^2.
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

// ALMA, with gamma = B*sqrt(p-1) and eta = C/sqrt(p-1). With p != 2 (`linked`) the weights themselves limit their norm.
ONEPASS_POSITIONS(ALMAParams, alpha, gamma, eta, normalize, strict, linked);
static void alma(const Scalars* s, const double* p, double*, Step* step) {
    const double length = p[ALMAParams::normalize] != 0.0 ? std::sqrt(s->xx) : 1.0;
    const double gamma = (1.0 - p[ALMAParams::alpha]) * p[ALMAParams::gamma];
    const double threshold = gamma / std::sqrt(s->k + 1.0), margin = s->m / length;
    if (margin > threshold || (p[ALMAParams::strict] != 0.0 && margin == threshold)) return;
    const double add = p[ALMAParams::eta] / std::sqrt(s->k + 1.0) / length;
    if (p[ALMAParams::linked] != 0.0) {
        step->add = add;
        return;
    }
    const double inside = 1.0 / std::max(1.0, std::sqrt(s->ww + 2.0 * add * (s->m - s->base) + add * add * s->xx));
    step->scale = inside;
    step->add = inside * add;
}

// Shifting Perceptron: w <- (1 - lam_k)*w + phi on a mistake.
ONEPASS_POSITIONS(ShiftingParams, lam, constant);
static void shifting(const Scalars* s, const double* p, double*, Step* step) {
    if (s->m > 0.0) return;
    const double lam = p[ShiftingParams::lam];
    if (p[ShiftingParams::constant] != 0.0) step->scale = 1.0 - lam;
    else step->scale = 1.0 - (lam > 0.0 ? lam / (lam + s->k) : 0.0);
    step->add = 1.0;
}

// MROC: ascent on the sigmoid of the pair's margin.
ONEPASS_POSITIONS(MROCParams, beta, mu, min_slope);
static void mroc(const Scalars* s, const double* p, double*, Step* step) {
    const double beta = p[MROCParams::beta], e = std::exp(-std::abs(beta * s->m));
    const double slope = beta * e / ((1.0 + e) * (1.0 + e));
    if (slope >= p[MROCParams::min_slope]) step->add = s->importance * p[MROCParams::mu] * slope;
}

// Recursive least squares. The slots are the sum of normalised squared errors, and how many they are.
ONEPASS_POSITIONS(RLSParams, forgetting);
ONEPASS_POSITIONS(RLSSlots, squares, rounds);
static double rls_rate(const Scalars* s, const double* p) {
    return s->importance / (p[RLSParams::forgetting] + s->importance * s->xx);
}

static void rls(const Scalars* s, const double* p, double* state, Step* step) {
    const double e = s->target - s->m, rate = rls_rate(s, p), forgetting = p[RLSParams::forgetting];
    state[RLSSlots::squares] = forgetting * state[RLSSlots::squares] + e * e * forgetting * rate;
    state[RLSSlots::rounds] = forgetting * state[RLSSlots::rounds] + 1.0;
    step->add = rate * e;
    step->gain = s->importance;
    step->forget = forgetting;
}

static void rls_rows(const Scalars* s, const double* scores, int64_t classes, int64_t y, const double* p, double* state,
                     double* coefficients, Step* step) {
    one_hot<rls_rate>(s, scores, classes, y, p, state, coefficients, step);
    step->gain = s->importance;
    step->forget = p[RLSParams::forgetting];
}

// AROW, and Kalman's filter. `always_update_cov` shrinks Sigma also beyond the margin.
ONEPASS_POSITIONS(AROWParams, lam, always_update_cov);
static void arow(const Scalars* s, const double* p, double*, Step* step) {
    const double lam = p[AROWParams::lam];
    if (s->regression != 0.0 || s->m < s->target) {
        step->add = (s->target - s->m) / (s->xx + lam / s->importance);
        step->gain = s->importance / lam;
    } else if (p[AROWParams::always_update_cov] != 0.0) {
        step->gain = s->importance / lam;
    }
}

// Confidence-weighted: the variants differ in alpha(m, v, phi, c). `by_variance`: m >= phi*v is the constraint.
ONEPASS_POSITIONS(CWParams, phi, by_variance, C);
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
    const double m = s->m, v = s->xx, phi = p[CWParams::phi];
    if (v < smallest_variance) return;
    if (p[CWParams::by_variance] != 0.0) {
        if (m >= phi * v) return;
        const double b = 1.0 + 2.0 * phi * m;
        step->add = std::max(0.0, (-b + std::sqrt(b * b - 8.0 * phi * (m - phi * v))) / (4.0 * phi * v));
        step->gain = 2.0 * step->add * phi;
        return;
    }
    if (m >= phi * std::sqrt(v)) return;
    const double alpha = alpha_of(m, v, phi, s->importance * p[CWParams::C]), spread = alpha * v * phi;
    step->add = alpha;
    step->gain = alpha * phi / (2.0 * v / (spread + std::sqrt(spread * spread + 4.0 * v)));
}

// Gaussian herding.
ONEPASS_POSITIONS(NHERDParams, C);
static void nherd(const Scalars* s, const double* p, double*, Step* step) {
    if (s->m >= s->target) return;
    const double C = s->importance * p[NHERDParams::C];
    step->add = (s->target - s->m) / (s->xx + 1.0 / C);
    step->gain = 2.0 * C + C * C * s->xx;
}

// Online Newton step.
ONEPASS_POSITIONS(ONSParams, loss, loss_parameter, gamma);
static void newton_step(const Scalars* s, const double* p, double*, Step* step) {
    const double pulled = pull_of<ONSParams>(s, p) * s->importance;
    step->add = pulled / (p[ONSParams::gamma] * (1.0 + pulled * pulled * s->xx));
    step->gain = pulled * pulled;
}

// NORMA: w <- (1 - eta_t*lam)*w + eta_t*phi [m <= rho], where nu changes rho (-1: rho is fixed). `raised` is
// the sum of these changes.
ONEPASS_POSITIONS(NORMAParams, schedule, eta, p, q, lam, rho, nu);
ONEPASS_POSITIONS(NORMASlots, raised);
static void norma(const Scalars* s, const double* p, double* state, Step* step) {
    const double eta = scheduled_eta<NORMAParams>(p, s->t), nu = p[NORMAParams::nu];
    const double rho = p[NORMAParams::rho] + state[NORMASlots::raised], wrong = s->m <= rho ? 1.0 : 0.0;
    if (nu >= 0.0) state[NORMASlots::raised] = std::max(0.0, rho - eta * (wrong - nu)) - p[NORMAParams::rho];
    step->add = eta * s->importance * wrong;
    step->decay = 1.0 - eta * p[NORMAParams::lam];
}

// Parzen: every example goes to its own class.
static void parzen(const Scalars* s, const double*, double*, Step* step) { step->add = s->importance; }
static void parzen_rows(const Scalars* s, const double*, int64_t classes, int64_t y, const double*, double*,
                        double* coefficients, Step* step) {
    for (int64_t r = 0; r < classes; ++r) coefficients[r] = r == y ? s->importance : 0.0;
    step->add = 1.0;
}

// One row for each rule: its class in Python, parameters, slots, formula, and the formula for all class scores.
constexpr const char* nothing = "";
static const Entry entries[] = {
    {"Perceptron", PerceptronParams::names, nothing, perceptron, nullptr},
    {"Adaline", AdalineParams::names, nothing, adaline, one_hot<adaline_rate>},
    {"NormalizedLMS", NLMSParams::names, nothing, nlms, one_hot<nlms_rate>},
    {"PA", PAParams::names, nothing, passive_aggressive<tau_pa>, passive_aggressive_rows<Variant::hard>},
    {"PA1", PAParams::names, nothing, passive_aggressive<tau_pa1>, passive_aggressive_rows<Variant::linear>},
    {"PA2", PAParams::names, nothing, passive_aggressive<tau_pa2>, passive_aggressive_rows<Variant::squared>},
    {"SGD", SGDParams::names, nothing, descent<SGDParams, shrink_l2>, descent_rows<SGDParams, shrink_l2>},
    {"FOBOS", FOBOSParams::names, nothing, descent<FOBOSParams, elastic_net>, descent_rows<FOBOSParams, elastic_net>},
    {"TruncatedGradient", TruncatedParams::names, nothing, descent<TruncatedParams, truncate>,
     descent_rows<TruncatedParams, truncate>},
    {"Pegasos", PegasosParams::names, nothing, pegasos, nullptr},
    {"MIRA", MIRAParams::names, nothing, mira, mira_rows},
    {"ROMMA", nothing, nothing, romma<false>, nullptr},
    {"AggressiveROMMA", nothing, nothing, romma<true>, nullptr},
    {"ALMA", ALMAParams::names, nothing, alma, nullptr},
    {"Shifting", ShiftingParams::names, nothing, shifting, nullptr},
    {"MROC", MROCParams::names, nothing, mroc, nullptr},
    {"RLS", RLSParams::names, RLSSlots::names, rls, rls_rows},
    {"AROW", AROWParams::names, nothing, arow, nullptr},
    {"Kalman", AROWParams::names, nothing, arow, nullptr},
    {"CW", CWParams::names, nothing, confidence_weighted<alpha_cw>, nullptr},
    {"SCW1", CWParams::names, nothing, confidence_weighted<alpha_scw1>, nullptr},
    {"SCW2", CWParams::names, nothing, confidence_weighted<alpha_scw2>, nullptr},
    {"NHERD", NHERDParams::names, nothing, nherd, nullptr},
    {"ONS", ONSParams::names, nothing, newton_step, nullptr},
    {"NORMA", NORMAParams::names, NORMASlots::names, norma, nullptr},
    {"Parzen", nothing, nothing, parzen, parzen_rows},
    {"AdaGrad", AdaGradParams::names, CoordinateSlots::names, gradient<AdaGradParams>, gradient_rows<AdaGradParams>},
    {"AdaDelta", AdaDeltaParams::names, CoordinateSlots::names, gradient<AdaDeltaParams>,
     gradient_rows<AdaDeltaParams>},
    {"RMSProp", RMSPropParams::names, CoordinateSlots::names, gradient<RMSPropParams>, gradient_rows<RMSPropParams>},
    {"Adam", AdamParams::names, CoordinateSlots::names, gradient<AdamParams>, gradient_rows<AdamParams>},
    {"FTRL", FTRLParams::names, CoordinateSlots::names, gradient<FTRLParams>, gradient_rows<FTRLParams>},
    {"VW", VWParams::names, VWSlots::names, gradient<VWParams>, gradient_rows<VWParams>},
};

std::span<const Entry> table() { return entries; }

const Entry* find(std::string_view name) {
    for (const Entry& entry : entries)
        if (entry.name == name) return &entry;
    return nullptr;
}

}  // namespace onepass::rules
