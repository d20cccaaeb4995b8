#include "bind/python_rule.hpp"

#include <cmath>

namespace onepass {

static nb::list read_slots(const double* state) {
    nb::list slots;
    for (int i = 0; i < python_rule->slots; ++i) slots.append(state[i]);
    return slots;
}

static void write_slots(const nb::list& slots, double* state) {
    for (int i = 0; i < python_rule->slots; ++i) state[i] = nb::cast<double>(slots[size_t(i)]);
}

void python_step(const Scalars* s, const double*, double* state, Step* step) {
    step->add = std::nan("");
    if (PyErr_Occurred()) return;
    try {
        const nb::list slots = read_slots(state);
        nb::tuple answer = nb::cast<nb::tuple>(python_rule->step(s->m, s->target, s->xx, s->ww, s->importance, s->t,
                                                                 s->k, s->side, s->regression, s->base, slots));
        *step = {nb::cast<double>(answer[0]), nb::cast<double>(answer[1]), nb::cast<double>(answer[2]),
                 nb::cast<double>(answer[3]), nb::cast<double>(answer[4]), nb::cast<double>(answer[5]),
                 nb::cast<double>(answer[6])};
        write_slots(slots, state);
    } catch (nb::python_error& error) {
        error.restore();
    }
}

void python_solve(const Scalars* s, const double* scores, int64_t classes, int64_t y, const double*, double* state,
                  double* coefficients, Step* step) {
    step->add = std::nan("");
    if (PyErr_Occurred()) return;
    try {
        const nb::list slots = read_slots(state);
        nb::list all;
        for (int64_t r = 0; r < classes; ++r) all.append(scores[r]);
        nb::tuple answer = nb::cast<nb::tuple>(python_rule->solve(all, y, s->m, s->target, s->xx, s->ww, s->importance,
                                                                  s->t, s->k, s->side, s->regression, slots));
        nb::list row = nb::cast<nb::list>(answer[0]);
        for (int64_t r = 0; r < classes; ++r) coefficients[r] = nb::cast<double>(row[size_t(r)]);
        *step = {1.0,
                 nb::cast<double>(answer[1]),
                 nb::cast<double>(answer[2]),
                 nb::cast<double>(answer[3]),
                 nb::cast<double>(answer[4]),
                 nb::cast<double>(answer[5]),
                 nb::cast<double>(answer[6])};
        write_slots(slots, state);
    } catch (nb::python_error& error) {
        error.restore();
    }
}

}  // namespace onepass
