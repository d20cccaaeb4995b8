// A linear model: weights, the rule's function and parameters, the task, the counters; and what loops read and answer.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/abi.hpp"
#include "core/name_lists.hpp"
#include "core/rows.hpp"
#include "core/transaction.hpp"
#include "core/weights.hpp"

namespace onepass {

// classify: y is the index of a class. regress: y is a real number. direction: the example is phi itself (ranking,
// structured output). multilabel: y is a set of classes. oneclass: w is the centre of the examples.
ONEPASS_ENUM(Task, classify, regress, direction, multilabel, oneclass)

// With several classes: which outputs share the -x of phi.
ONEPASS_ENUM(Against, rival, uniform, proportional)

// Rules with their own step for each coordinate (loops/coordinates.hpp, loops/vowpal.hpp).
ONEPASS_ENUM(Coordinates, none, adagrad, adadelta, adadelta_exact, rmsprop, rmsprop_exact, adam, adam_lazy, ftrl,
             ftrl_without_l1, vowpal)

struct Model {
    Weights w;
    Task task = Task::classify;
    StepFn step = nullptr;
    SolveFn solve = nullptr;  // set if the rule sees all scores
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
    bool calibrated = false;    // multilabel: scores above 0 are in the set; one step for each side
    std::vector<double> roots;  // with costs of classes: their square roots, classes x classes

    double t = 0.0, k = 0.0, skipped_zero = 0.0;

    // For the ratchet: the errors of the current weights on a stored set. Not part of the state.
    double (*errors)(const Model&, const void* set) = nullptr;
    const void* set = nullptr;

    // Working space of Gaussian weights: z = Sigma * phi of this round, for each output with a Sigma of its own. Not
    // part of the state.
    struct Along {
        std::vector<double> x, z, made, parts, constants, variances, gains;
        double variance, length;  // a diagonal with one output: x' Sigma x and |z|^2 over the features
    } along;
    void room_along(size_t size);

    // Working space for class scores and coefficients; not part of the state.
    std::vector<double> scores, coefficients;
    Transaction transaction;  // undoes what is refused; not part of the state

    double constant_norm() const { return bias_in_norm ? constant * constant : 0.0; }
    // Working space for readers: one per thread, since several may read at the same time.
    double* scratch() const;
    double* gathered(size_t size) const;
    double* linked_bias() const;
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

// What a loop reads besides the rows of a batch; importance and target are 1 if null.
struct Answers {
    const double* y;
    const double* importance;
    const double* target;
    const uint8_t* sets;  // multilabel: rows x classes, 1 for in
    double* scores;       // where the scores before each update are written (rows x outputs), or null
    // Models of one output: the initial prediction of each example, at which its score begins; 0 if null.
    const double* base = nullptr;
};

// What the ranking loop reads besides the rows. The rows before `first` were learned before; the others arrive now. Row
// i is compared with the rows from begin[i] to i - 1.
struct RankedRows {
    const double *relevance, *importance;
    const int64_t* begin;
    size_t first;
    double* scores;  // where the score of each arriving row before its pairs is written, or null
};

// Working space for differences of sparse rows. place[j] says where feature j stands in the arriving row, counted from
// 1; it is 0 for all other features. `arrived` holds the values of that row; x and index hold a difference, with room
// for twice the longest row and one more.
struct Difference {
    uint32_t* place;
    double *arrived, *x;
    int32_t* index;
};

// interrupted: a signal handler raised an exception between two rows; the row of the outcome is the first that was not
// learned.
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
    // Validate rows without learning.
    Outcome (*check_table)(const Table&, size_t from_row);
    Outcome (*check_csr)(const Csr&, size_t from_row);
    // so_far plus the importance of the rows that the current weights assign to a wrong class.
    double (*errors_table)(const Model&, const Table&, const double* y, const double* importance, double so_far);
    double (*errors_csr)(const Model&, const Csr&, const double* y, const double* importance, double so_far);
    void (*variance_table)(const Model&, const Table&, double* variances);
    void (*variance_csr)(const Model&, const Csr&, double* variances);
    // One sparse row whose indices are valid and distinct, in any order.
    Status (*learn_one)(Model&, const double* x, const int64_t* index, size_t n, double y, double importance,
                        double target, const uint8_t* set, double base);
    void (*finish_batch)(Model&);
    void (*derive)(Model&);
    void (*score_one)(const Model&, const double* x, const int64_t* index, size_t n, double base, double* scores);
    void (*variance_one)(const Model&, const double* x, const int64_t* index, size_t n, double* variances);
    Outcome (*learn_pairs_table)(Model&, const Table&, const RankedRows&, Difference&);
    Outcome (*learn_pairs_csr)(Model&, const Csr&, const RankedRows&, Difference&);

    // Overloads for the two kinds of batches.
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
    Outcome learn_pairs(Model& model, const Table& X, const RankedRows& in, Difference& room) const {
        return learn_pairs_table(model, X, in, room);
    }
    Outcome learn_pairs(Model& model, const Csr& X, const RankedRows& in, Difference& room) const {
        return learn_pairs_csr(model, X, in, room);
    }
};

const Loops* loops_scalar();
const Loops* loops_avx2();
const Loops* loops_avx512();

}  // namespace onepass
