// The averaged readout: the sum of the weights over the rounds it covers, of which the prediction takes the mean.
#pragma once
#include <vector>

#include "core/buffer.hpp"
#include "core/name_lists.hpp"

namespace onepass {

// predictor: the weights before each update are averaged, those that predicted. post: the weights after it.
ONEPASS_ENUM(Averaging, none, predictor, post)

//   sum of w = A * v - z
//
// v is the stored weight, A the sum of the scales of the covered rounds. Only the features of an example are touched,
// whatever the number of features.
struct Average {
    Averaging kind = Averaging::none;
    double from = 1.0;    // the first round that is covered
    double rounds = 0.0;  // how many rounds are covered
    double A = 0.0;
    Buffer z;                      // [feature * stride + output]; empty unless on
    std::vector<double> bias_sum;  // of the intercepts, one per output; empty unless on

    bool on() const { return kind != Averaging::none; }
    void start(Averaging chosen, double first_round) {
        kind = chosen;
        from = first_round;
        bias_sum.assign(on(), 0.0);
    }
};

}  // namespace onepass
