// A model: weights, the rule's function and parameters, the task, the counters.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/abi.hpp"
#include "core/name_lists.hpp"
#include "core/rows.hpp"
#include "core/weights.hpp"

namespace onepass {

// classify: y is a class index. regress: y is a real. direction: the row is phi itself (ranking, structured).
// multilabel: every class is in or out. oneclass: w is the centre of the rows.
ONEPASS_ENUM(Task, classify, regress, direction, multilabel, oneclass)

// With several classes: which rows of phi take the -x.
ONEPASS_ENUM(Against, rival, uniform, proportional)

// Rules that move every weight by its own history (loops/coordinates.hpp, loops/vowpal.hpp).
ONEPASS_ENUM(Coordinates, none, adagrad, adadelta, adadelta_exact, rmsprop, rmsprop_exact, adam, adam_lazy, ftrl,
             ftrl_without_l1, vowpal)

struct Model {
    Weights w;
    Task task = Task::classify;
    StepFn step = nullptr;
    SolveFn solve = nullptr;  // set where the rule looks at all scores
    double params[max_params] = {};
    double state[max_slots] = {};
    int slots = 0;
    double tube = 0.0;      // regression: half-width of the insensitive tube; oneclass: the radius
    double constant = 1.0;  // value of the constant feature; 0 without an intercept
    bool bias_in_norm = true;
    bool uses_ww = false;
    Coordinates coordinates = Coordinates::none;
    bool clips = false;  // regression: predictions lie within the labels seen, VWSlots::low and high
    Against against = Against::rival;
    bool calibrated = false;    // multilabel: in above 0 and out below it, a step each
    std::vector<double> roots;  // with class costs: classes x classes, their square roots

    double t = 0.0, k = 0.0, skipped_zero = 0.0;

    // The ratchet's judge: errors of the current weights on a stored set. Not part of the state.
    double (*errors)(const Model&, const void* set) = nullptr;
    const void* set = nullptr;

    // z = Sigma * phi of this round, for each class row with a Sigma of its own; not part of the state.
    struct Along {
        std::vector<double> x, z, made, parts, constants, variances, gains;
        double variance, length;  // x' Sigma x and |z|^2 over the features of a diagonal's one row
    } along;
    void room_along(size_t size);

    // Working space for class scores, coefficients and the paid weights of a row; not part of the state.
    std::vector<double> scores, coefficients;
    Buffer kept;

    double constant_norm() const { return bias_in_norm ? constant * constant : 0.0; }
    // Scratch for readers: one per thread, since readers run side by side.
    double* scratch() const;
    double* gathered(size_t size) const;
    double* linked_bias() const;
    double* room_to_keep(size_t size) {
        const size_t with_rest = size + 16;  // the last elements of a row are written as whole vectors
        if (kept.size() < with_rest) [[unlikely]]
            kept.grow(with_rest);
        return kept.data();
    }
    void record_vote(const double* x, const int64_t* index, size_t n, const double* coefficients);
    void count_votes(const double* x, const int64_t* index, size_t n, double base, double* out) const;
    void size_scratch() {
        const size_t n = std::max<size_t>(w.stride, 8);
        scores.resize(n);
        coefficients.resize(n);
        along.parts.resize(n);
        along.constants.resize(n);
        along.variances.resize(n);
        along.gains.resize(n);
    }
};

// Takes back several rounds of a model of one row of weights: what a round writes is put aside first.
struct Undo {
    void begin(const Model& model);
    void restore(Model& model);

    // Before weights at some features are written: room for their places, v and z (null where there is none).
    struct Room {
        int64_t* index;
        double *v, *z;
    };
    Room room_for(size_t n, bool averaging);
    void put_aside(const Weights& w);  // all of them, unless that was done

    bool all = false;

 private:
    std::vector<int64_t> index_;
    std::vector<double> v_, z_;
    Buffer all_cells_, all_z_;
    Weights readout_;  // all of them, where the readout or the rule keeps more than v and z
    MiniBatch batch_;
    double state_[max_slots], weights_[9], counters_[3], bias_sum_ = 0.0;
};

// What a loop reads beside the rows; null importance or target means 1.
struct Answers {
    const double* y;
    const double* importance;
    const double* target;
    const uint8_t* sets;  // multilabel: rows x classes, 1 for in
    double* scores;       // where to write the scores before each update (rows x outputs), or null
    // One row of weights: what each example's score begins at (VW's initial prediction), or null for 0.
    const double* base = nullptr;
};

// What the ranking loop reads beside the rows. Rows before `first` are remembered, the others arrive; row i meets those
// from begin[i] on.
struct Meetings {
    const double *relevance, *importance;
    const int64_t* begin;
    size_t first;
    double* scores;  // where to write each arriving row's score before its pairs, or null
};

// Room to work out the differences of sparse rows: where each feature of the arriving row stands in it, from 1 on, and
// 0 at all others; that row's values; one more than twice the longest row for the values and indices of a difference.
struct Difference {
    uint32_t* place;
    double *arrived, *x;
    int32_t* index;
};

// interrupted: a signal's handler raised between two rows; the outcome's row is the first that was not learned.
enum class Status { ok, not_finite, bad_index, bad_starts, overflow, full, indefinite, interrupted };

struct Outcome {
    Status status = Status::ok;
    size_t row = 0;
    int64_t column = 0;
    double value = 0.0;
};

// The loops of one instruction set.
struct Loops {
    const char* name;
    Outcome (*learn_table)(Model&, const Table&, const Answers&);
    Outcome (*learn_csr)(Model&, const Csr&, const Answers&);
    void (*score_table)(const Model&, const Table&, const double* base, double* scores);
    void (*score_csr)(const Model&, const Csr&, const double* base, double* scores);
    // Looks for malformed rows without learning.
    Outcome (*check_table)(const Table&, size_t from_row);
    Outcome (*check_csr)(const Csr&, size_t from_row);
    // so_far, and the importance of the rows that the current weights put into the wrong class.
    double (*errors_table)(const Model&, const Table&, const double* y, const double* importance, double so_far);
    double (*errors_csr)(const Model&, const Csr&, const double* y, const double* importance, double so_far);
    void (*variance_table)(const Model&, const Table&, double* variances);
    void (*variance_csr)(const Model&, const Csr&, double* variances);
    // One sparse row whose indices are known to be inside and distinct, in any order.
    Status (*learn_one)(Model&, const double* x, const int64_t* index, size_t n, double y, double importance,
                        double target, const uint8_t* set, double base);
    void (*finish_batch)(Model&);
    void (*derive)(Model&);
    void (*score_one)(const Model&, const double* x, const int64_t* index, size_t n, double base, double* scores);
    void (*variance_one)(const Model&, const double* x, const int64_t* index, size_t n, double* variances);
    Outcome (*learn_pairs_table)(Model&, const Table&, const Meetings&, Difference&);
    Outcome (*learn_pairs_csr)(Model&, const Csr&, const Meetings&, Difference&);

    // The same by the kind of batch.
    Outcome learn(Model& model, const Table& X, const Answers& in) const { return learn_table(model, X, in); }
    Outcome learn(Model& model, const Csr& X, const Answers& in) const { return learn_csr(model, X, in); }
    void score(const Model& model, const Table& X, const double* base, double* out) const {
        score_table(model, X, base, out);
    }
    void score(const Model& model, const Csr& X, const double* base, double* out) const {
        score_csr(model, X, base, out);
    }
    Outcome check(const Table& X, size_t from) const { return check_table(X, from); }
    Outcome check(const Csr& X, size_t from) const { return check_csr(X, from); }
    double errors(const Model& model, const Table& X, const double* y, const double* c, double so_far) const {
        return errors_table(model, X, y, c, so_far);
    }
    double errors(const Model& model, const Csr& X, const double* y, const double* c, double so_far) const {
        return errors_csr(model, X, y, c, so_far);
    }
    void variance(const Model& model, const Table& X, double* out) const { variance_table(model, X, out); }
    void variance(const Model& model, const Csr& X, double* out) const { variance_csr(model, X, out); }
    Outcome learn_pairs(Model& model, const Table& X, const Meetings& in, Difference& room) const {
        return learn_pairs_table(model, X, in, room);
    }
    Outcome learn_pairs(Model& model, const Csr& X, const Meetings& in, Difference& room) const {
        return learn_pairs_csr(model, X, in, room);
    }
};

const Loops* loops_scalar();
const Loops* loops_avx2();
const Loops* loops_avx512();

}  // namespace onepass
