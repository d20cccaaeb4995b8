// The p-norm geometry (Grove, Littlestone and Schuurmans 2001; Gentile 2003; scheme/geometry.py): updates are added to
// theta, and the weights that score are its image under a link function.
#pragma once
#include <cmath>

namespace onepass {

struct PNorm {
    double p = 2.0;
    double ball = HUGE_VAL;  // an update ends in |theta|_p <= ball

    bool on() const { return p != 2.0; }
    double link(double theta, double norm) const;              // the weight of a coordinate, where |theta|_p = norm
    double with_constant(double norm, double constant) const;  // |(x, constant)|_p where |x|_p = norm
};

}  // namespace onepass
