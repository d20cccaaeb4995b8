// Weights own the representation: lazy scale, norm, intercept, average. Rules and tasks never touch them.
//
//   w = a * v            one row of weights, or one per class, and what a rule keeps of each beside it, in planes.
//   cells                all that belongs to feature j lies together, since it is read together: v of its rows at
//                        cells[j * pitch + row], plane k of it at cells[j * pitch + (1 + k) * stride + row]
//   bias[row]            weight of the constant feature, not under the scale
//   sum of averaged w = A * v - z, with A the sum of the averaged scales (spec 00, section 8)
//   ww                   |a * v|^2, followed in O(1) and recomputed now and then
//
// In the p-norm geometry (geometry.py) all this is theta, to which steps add; scores read w, its image under the link.
#pragma once
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/buffer.hpp"
#include "core/covariance.hpp"

#define ONEPASS_INLINE __attribute__((always_inline)) inline
#define ONEPASS_INLINE_LAMBDA __attribute__((always_inline))

namespace onepass {

enum class Averaging { none, predictor, post };

// Updates kept one by one: the row of each, and what it adds of that row to every class row.
struct Updates {
    std::vector<int64_t> index;
    std::vector<double> value;
    std::vector<int64_t> ends;         // where each update's row ends
    std::vector<double> coefficients;  // of the class rows there were, one after the other
    std::vector<int64_t> coefficient_ends;

    size_t count() const { return ends.size(); }
    size_t begin(size_t k) const { return k ? size_t(ends[k - 1]) : 0; }
    void push(const double* x, const int64_t* at, size_t n, const double* of_rows, size_t rows);
    void coefficients_of(size_t k, size_t rows, double* out) const;  // for the class rows there are now
    void negate();
};

// The voted readout: every update ever made, and how many rounds the weights after it stood. Score k of an x is the sum
// over the first k updates of coefficient * (x_k . x), so no weight vector is stored.
struct Votes {
    bool on = false;
    double most = 0.0;                   // vectors that may be stored
    std::vector<double> counts = {0.0};  // of the start and of every update
    Updates updates;

    bool full() const { return double(counts.size()) > most; }
};

// A mini-batch: rounds that share one step, all seen by the weights before it.
struct MiniBatch {
    double size = 1.0;  // rounds a step
    bool mean = true;   // of their updates, or the sum
    double rounds = 0.0, steps = 0.0;
    bool moves = false;  // was any round not skipped? Then these hold:
    double scale = 1.0, decay = 1.0, soft = 0.0, shrink = 1.0;
    Updates updates;
    double reach = 0.0;  // how far the updates may lead, together; not part of the state

    bool on() const { return size > 1.0; }
    void clear();
};

// One number that a rule keeps beside every weight.
struct Plane {
    double start = 0.0;  // of a weight that was never met
    bool odd = false;    // changes sign with the weight, and is halved with it; otherwise the same for both signs
    double dead = 0.0;   // odd planes: only what is beyond this is halved
};
struct Undo;

struct Weights {
    size_t features = 0, rows = 1, stride = 1;
    bool row_each = false;  // a row for every class, even for one or two
    size_t pitch = 1;       // numbers from one feature to the next
    Buffer cells;
    double a = 1.0;
    std::vector<double> bias = {0.0};

    Averaging averaging = Averaging::none;
    double average_from = 1.0;  // first round covered
    Buffer z;
    double A = 0.0;
    std::vector<double> bias_sum = {0.0};
    double averaged = 0.0;  // rounds covered

    // L1 by laziness. `owed` is all soft-thresholding so far, in units of v. A weight is stored raised by what was owed
    // when it was written, so that |stored| - owed, if positive, is what is left of it: one number tells both.
    bool lazy = false;
    double owed = 0.0;
    double threshold = HUGE_VAL;  // larger weights owe nothing: they are not raised, and their last bit says so

    // What a rule keeps of every weight. The intercepts have all kinds, features only those before `row_kinds`.
    std::vector<Plane> kinds;
    size_t row_kinds = 0;             // the last so many kinds are of a row as a whole
    std::vector<double> bias_planes;  // [kind * stride + row]
    size_t plane_count() const { return kinds.size() - row_kinds; }
    // v and the planes of its rows, each padded to the stride. With one row 1, 2, 4, …: no feature lies across two
    // cache lines, and whole vectors are read.
    static constexpr size_t pitch_of(size_t planes, size_t stride) {
        return stride == 1 ? std::bit_ceil(1 + planes) : (1 + planes) * stride;
    }
    void set_kinds(std::vector<Plane> kinds, size_t row_kinds);

    double* v_of(size_t feature) { return cells.data() + feature * pitch; }
    const double* v_of(size_t feature) const { return cells.data() + feature * pitch; }
    double* planes_of(size_t feature) { return v_of(feature) + stride; }
    const double* planes_of(size_t feature) const { return v_of(feature) + stride; }

    // Where the classes of one feature fill a page or more, most features of a large hash table are never met. Those
    // that may be are marked, a bit each; walks visit no others, and pages of the others stay untouched. Not part of
    // the state.
    bool wide = false;
    std::vector<uint64_t> touched;
    void touch(size_t feature) { touched[feature / 64] |= uint64_t(1) << feature % 64; }
    template <class Visit>
    void each_touched(const Visit& visit) const {
        for (size_t j = 0; j < features && !wide; ++j) visit(j);
        for (size_t word = 0; word < touched.size() && wide; ++word)
            for (uint64_t left = touched[word]; left; left &= left - 1)
                visit(word * 64 + size_t(std::countr_zero(left)));
    }

    Covariance sigma;  // of Gaussian weights

    // The pocket: the weights of the longest run without an update.
    bool pocketing = false;
    Buffer pocket;
    std::vector<double> pocket_bias = {0.0};
    double pocket_a = 1.0, run = 0.0, best_run = 0.0;
    bool in_pocket = false;
    bool ratchet = false;  // only weights with fewer errors on the stored set enter
    double pocket_errors = HUGE_VAL;
    bool rejected = false;  // these weights were judged already

    Votes votes;
    MiniBatch batch;

    // The p-norm geometry; ww is then the square of the p-norm.
    double p = 2.0, ball = HUGE_VAL;  // an update ends in |theta|_p <= ball
    bool linked() const { return p != 2.0; }
    double theta_norm() const;                          // |theta|_p, intercept included
    double link(double theta, double norm) const;       // the w of a theta
    double beside(double norm, double constant) const;  // |(x, constant)|_p of a row with |x|_p = norm
    void into_ball();

    double ww = 0.0;
    double since_recomputed =
        0.0;  // updates of ww since it was exact; p-norm: its error, in roundings of the p-th power

    Undo* undo = nullptr;  // where weights of one row are put before they change; not part of the state

    // Upper bounds on |v_j| and |z_j|: far below overflow, no coordinate needs a look. Not part of the state.
    double peak = 0.0, z_peak = 0.0;

    void set_features(size_t d);
    void let_in(size_t d);           // the same; but to a full Sigma each counts from its first row on
    void drop_features(size_t d);    // forget features from d on, which nothing was learned about
    void set_rows(size_t classes);   // the third class turns w into rows (-w/2, +w/2, 0)
    void drop_rows(size_t classes);  // forget classes from there on, which nothing was learned about; stride > 8
    bool reshaped_by(size_t classes) const;                   // would so many classes make other rows of what is there?
    double bytes_for(size_t features, size_t classes) const;  // of tables for so many
    size_t lanes() const { return (rows + 7) / 8 * 8; }  // of class rows that are added up; the stride may be larger
    void negate();                                       // swap the two classes of a binary model
    void anchor();                                       // z <- z - A*v, A <- 0: the sum so far no longer depends on v
    void fold();                                         // v <- a*v, a <- 1
    void clear();                                        // w <- 0; what was averaged stays averaged
    void pay();    // settles what every weight owes; v is then plain numbers, until
    void raise();  // they are stored again
    void keep();   // puts the weights into the pocket
    void recompute_norm();
    void recompute_peaks();
    size_t numbers() const { return cells.size() + z.size() + pocket.size(); }
    bool starts_at_zero() const;                          // do all planes of features?
    bool is_met(size_t feature, bool with_pocket) const;  // is anything not as it started, bit for bit?
    // Padded to eight. Beyond that, room for half as many again: k classes that come one by one cost O(k) copies of a
    // class, not O(k^2). Bits do not depend on it.
    size_t stride_for(size_t classes) const;
    bool needs_lanes(size_t classes) const;  // one more vector of eight? Then what is owed is paid
    void widen_to(size_t stride, double half);

    // The bit of a stored weight that says it owes nothing; none where all do.
    int64_t flag() const { return threshold < HUGE_VAL; }
    // A stored weight after paying, and back. Inlined, lest one instruction set call another's.
    ONEPASS_INLINE double paid(double stored) const {
        if (std::bit_cast<int64_t>(stored) & flag()) return stored;
        const double less = std::abs(stored) - owed;
        return std::copysign(less > 0.0 ? less : 0.0, stored);
    }
    ONEPASS_INLINE double raised(double value) const {
        const double size = std::abs(value);
        if (size > threshold) return std::bit_cast<double>(std::bit_cast<int64_t>(value) | 1);
        return std::copysign(std::bit_cast<double>(std::bit_cast<int64_t>(size + owed) & ~flag()), value);
    }
};

}  // namespace onepass
