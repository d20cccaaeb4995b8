// The rules of src/onepass/rules/, one function each. The order of params is that of the rule's native().
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>

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

// w <- max(0, 1 - eta*l2)*w - eta*c*gradient.   params: loss, its parameter, schedule[4], clock, l2
inline double sgd_eta(const Scalars* s, const double* p) { return eta_at(p + 2, p[6] != 0.0 ? s->k + 1.0 : s->t); }

inline void sgd(const Scalars* s, const double* p, double*, Step* step) {
    const double eta = sgd_eta(s, p);
    const Loss loss = Loss(int(p[0]));
    const double pulled = of_margin(loss) ? pull(loss, p[1], s->m + (1.0 - s->target))
                                          : s->side * pull(loss, p[1], s->side * (s->target - s->m));
    step->add = eta * s->importance * pulled;
    step->decay = std::max(0.0, 1.0 - eta * p[7]);
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

// SGD on softmax cross-entropy (logistic) or on squares with targets +-1.   params: as sgd
inline void sgd_rows(const Scalars* s, const double* scores, int64_t classes, int64_t y, const double* p, double*,
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
    step->decay = std::max(0.0, 1.0 - eta * p[7]);
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
    {passive_aggressive<tau_pa>, nullptr},
    {passive_aggressive<tau_pa1>, nullptr},
    {passive_aggressive<tau_pa2>, nullptr},
    {sgd, sgd_rows},
    {pegasos, nullptr},
};
inline constexpr int count = int(sizeof(table) / sizeof(table[0]));

}  // namespace onepass::rules
