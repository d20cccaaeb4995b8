// The weights of a linear model. Rules and tasks never touch them.
//
//   w = a * v              a is a scale that all weights share; v has one number per feature and output
//   output                 the weights that give one score: a model has one output, or one per class
//   cells                  all numbers of feature j lie together, since they are read together: v of its outputs at
//                          cells[j * pitch + output], plane k at cells[j * pitch + (1 + k) * stride + output]
//   bias[output]           the weight of the constant feature, the intercept; not under the scale
//
// Every other part stands in a file of its own, and holds no numbers where it is not used. In the p-norm geometry all
// this is theta, to which updates are added; scores read w, its image under the link.
#pragma once
#include <bit>
#include <cstddef>
#include <vector>

#include "core/average.hpp"
#include "core/buffer.hpp"
#include "core/covariance.hpp"
#include "core/inline.hpp"
#include "core/lazy_l1.hpp"
#include "core/p_norm.hpp"
#include "core/planes.hpp"
#include "core/pocket.hpp"
#include "core/touched.hpp"
#include "core/updates.hpp"

namespace onepass {

// |a * v|^2 without the intercepts, updated in O(1) per round and recomputed now and then. In the p-norm geometry it is
// the square of the p-norm.
struct SquaredNorm {
    double ww = 0.0;
    // Updates since it was exact. In the p-norm geometry: its error, in roundings of the p-th power.
    double since_recomputed = 0.0;
};

// Upper bounds on |v_j| and |z_j|. While they are far below overflow, no weight has to be checked. Not part of the
// saved state.
struct Peaks {
    double v = 0.0, z = 0.0;
};

struct Weights {
    size_t features = 0, outputs = 1;
    size_t stride = 1;         // numbers of one plane of a feature: the outputs, padded to eight; 1 with one output
    size_t pitch = 1;          // numbers from one feature to the next
    bool output_each = false;  // an output for every class, even for one or two
    Buffer cells;
    double a = 1.0;
    std::vector<double> bias = {0.0};

    Average average;
    LazyL1 l1;
    Planes planes;
    Touched touched;
    Covariance sigma;  // of Gaussian weights
    Pocket pocket;
    Votes votes;
    MiniBatch batch;
    PNorm p_norm;
    SquaredNorm norm;
    Peaks peaks;

    double* v_of(size_t feature) { return cells.data() + feature * pitch; }
    const double* v_of(size_t feature) const { return cells.data() + feature * pitch; }
    double* planes_of(size_t feature) { return v_of(feature) + stride; }
    const double* planes_of(size_t feature) const { return v_of(feature) + stride; }
    size_t lanes() const { return (outputs + 7) / 8 * 8; }  // the outputs, padded to eight; the stride may be larger
    size_t numbers() const { return cells.size() + average.z.size() + pocket.v.size(); }
    // v and the planes of a feature, each padded to the stride. With one output the pitch is 1, 2, 4, …, so that no
    // feature lies across two cache lines and whole vectors can be read.
    static constexpr size_t pitch_of(size_t planes, size_t stride) {
        return stride == 1 ? std::bit_ceil(1 + planes) : (1 + planes) * stride;
    }

    // How many features and outputs there are (core/growth.cpp).
    void set_planes(std::vector<Plane> kinds, size_t of_output);
    void set_features(size_t count);
    void reserve_features(size_t count);  // the same, but a full Sigma registers each with its first example
    void drop_features(size_t count);     // drops features from there on, which must not have been learned
    void set_outputs(size_t classes);     // the third class turns w into the outputs -w/2, +w/2 and 0
    void drop_outputs(size_t classes);    // drops outputs from there on, which must not have been learned; stride > 8
    bool reshaped_by(size_t classes) const;  // would so many classes give other outputs than there are?
    bool needs_lanes(size_t classes) const;  // would they need one more vector of eight?
    double bytes_for(size_t features, size_t classes) const;  // the memory of tables for so many
    bool is_changed(size_t feature, bool with_pocket) const;  // does any of its bits differ from how it started?
    template <class Visit>
    void each_touched(const Visit& visit) const {
        touched.each(features, visit);
    }

    // Operations on all weights (core/weights.cpp).
    void negate();          // swaps the two classes of a binary model
    void rebase_average();  // z <- z - A * v, A <- 0: the sum so far no longer depends on v
    void fold_scale();      // v <- a * v, a <- 1
    void set_to_zero();     // w <- 0; the average keeps its sum
    void apply_pending();   // applies the pending L1 to every weight; v is then not encoded, until
    void encode_weights();  // encodes it again
    void store_in_pocket();
    double theta_norm() const;  // p-norm geometry: |theta|_p, intercepts included
    void project_into_ball();   // p-norm geometry: |theta|_p <= ball
    void recompute_norm();
    void recompute_peaks();

 private:
    size_t stride_for(size_t classes) const;
    void widen_to(size_t stride, double half);
};

}  // namespace onepass
