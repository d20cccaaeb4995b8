// The pocket readout: the weights that survived the longest run of rounds without an update.
#pragma once
#include <cmath>
#include <vector>

#include "core/buffer.hpp"

namespace onepass {

struct Pocket {
    bool on = false;
    Buffer v;                    // [feature * stride + output]; empty unless on
    std::vector<double> bias;    // empty unless on
    double a = 1.0;              // the scale of v
    double run = 0.0;            // rounds since the last update
    double best_run = 0.0;       // the longest run of weights in the pocket; 0 while it is empty
    bool holds_current = false;  // are the weights in the pocket the current ones?
    bool ratchet = false;        // do only weights with fewer errors on a stored set enter?
    double errors = HUGE_VAL;    // ratchet: the errors of the weights in the pocket
    bool rejected = false;       // ratchet: were the current weights judged, and refused?

    bool predicts() const { return on && best_run > 0.0; }
    void start() {
        on = true;
        bias = {0.0};
    }
};

}  // namespace onepass
