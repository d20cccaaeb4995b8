// The step sizes of scheme/schedules.py. `parameters` points at four numbers: schedule, eta, p, q.
#pragma once
#include <algorithm>
#include <cmath>

#include "core/name_lists.hpp"

namespace onepass {

ONEPASS_ENUM(Schedule, constant, inv_t, inv_sqrt, inv_scaling, optimal, geometric, step_decay)
ONEPASS_POSITIONS(ScheduleParams, schedule, eta, p, q);

inline double eta_at(const double* parameters, double t) {
    using At = ScheduleParams;
    const double eta = parameters[At::eta], p = parameters[At::p], q = parameters[At::q];
    switch (Schedule(int(parameters[At::schedule]))) {
        case Schedule::constant: return eta;
        case Schedule::inv_t: return eta / t;
        case Schedule::inv_sqrt: return eta / std::sqrt(t);
        case Schedule::inv_scaling: return eta / std::pow(t + q, p);
        case Schedule::optimal: return 1.0 / (eta * (p + t - 1.0));  // eta is alpha here, p is t0
        case Schedule::geometric: return std::max(q, eta * std::pow(p, t - 1.0));
        case Schedule::step_decay: return eta * std::pow(p, std::floor((t - 1.0) / q));
    }
    return eta;
}

}  // namespace onepass
