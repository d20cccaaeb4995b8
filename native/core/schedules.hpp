// The step sizes of schedules.py. parameters points at {code, three numbers}.
#pragma once
#include <algorithm>
#include <cmath>

namespace onepass {

enum class Schedule { constant, inv_t, inv_sqrt, inv_scaling, optimal, geometric, step_decay };

inline double eta_at(const double* parameters, double t) {
    const double eta = parameters[1], p = parameters[2], q = parameters[3];
    switch (Schedule(int(parameters[0]))) {
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
