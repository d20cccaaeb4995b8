// One transaction for all that learns with linear weights. What a round, an example, a batch or a new class changed is
// undone as a whole:
//
//   begin_...    opens a transaction
//   save         saves the numbers of a feature before they are written
//   commit       accepts what was learned
//   roll_back    restores the model as it was at the beginning
//
// Transactions nest: a round lies within an example, and a batch within the growth that its new classes need.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/average.hpp"
#include "core/buffer.hpp"
#include "core/inline.hpp"
#include "core/updates.hpp"

namespace onepass {

struct Model;
struct Weights;

// Writes the numbers of features where they are saved: of every output its place, its weight, its planes, and its part
// of the averaged sum.
struct SavedNumbers {
    double* next;

    // `place` says where the weight v stands in Weights::cells, plane p stands at v[(1 + p) * stride], and z is null if
    // the model does not average.
    ONEPASS_INLINE void save(size_t place, const double* v, size_t planes, size_t stride, const double* z) {
        next[0] = double(int64_t(place));  // exact: no table has 2^53 numbers
        next[1] = v[0];
        for (size_t p = 0; p < planes; ++p) next[2 + p] = v[(1 + p) * stride];
        next += 2 + planes;
        if (z) *next++ = *z;
    }
};

class Transaction {
 public:
    Transaction();
    // A copy of a model has a transaction of its own, of which nothing is open.
    Transaction(const Transaction&);
    Transaction& operator=(const Transaction&) { return *this; }
    ~Transaction();

    // One round of a rule with its own step for each coordinate, always the innermost transaction. Saves the scalars of
    // the average. To stay fast, such a round saves the other numbers that it overwrites in the working space, and
    // restores them itself (loops/adaptive.cpp, loops/coordinates.hpp).
    void begin_round(const Average& average);
    void roll_back_round(Average& average) const;
    // Rounds that are accepted together, such as the pairs of a ranked example. Saves all scalars; save() saves the
    // weights. Models that keep more than weights, planes and an average are copied.
    void begin_example(Model& model);
    // A whole batch: copies the model.
    void begin_batch(const Model& model);
    // New features and classes: from `known` classes to at most `coming` more. Copies the model if the new classes
    // would change the outputs that exist.
    void begin_growth(const Model& model, size_t known, size_t coming);
    void commit();
    void roll_back(Model& model);

    // Must weights be saved before they are written?
    ONEPASS_INLINE bool recording() const { return recording_; }
    // Room to save the numbers of so many outputs of features; end_save() says how many were saved.
    SavedNumbers begin_save(const Weights& w, size_t count);
    ONEPASS_INLINE void end_save(const SavedNumbers& end) { used_ = size_t(end.next - numbers_.data()); }
    void save_all(const Weights& w);  // of a model of one output

    // Working space of one round.
    ONEPASS_INLINE double* workspace(size_t size) {
        const size_t with_rest = size + 16;  // the last elements of a row are written as whole vectors
        if (workspace_.size() < with_rest) [[unlikely]]
            workspace_.grow(with_rest);
        return workspace_.data();
    }
    ONEPASS_INLINE const double* workspace() const { return workspace_.data(); }

 private:
    enum class Extent { example, sizes, copy };
    struct Savepoint {
        Extent extent;
        size_t first = 0;             // of its numbers
        bool saved_all = false;       // are the numbers of all features saved?
        std::vector<double> scalars;  // and the intercepts
        MiniBatch batch;
        size_t features = 0, outputs = 0, bounded = 0;
        std::unique_ptr<Model> copy;
        bool reuse_copy = false;
    };
    Savepoint& open(Extent extent);
    void open_copy(const Model& model, bool reuse);
    void close();
    void restore_numbers(Weights& w, size_t from);

    std::vector<Savepoint> open_;  // the innermost last
    size_t depth_ = 0;
    bool recording_ = false;
    Buffer numbers_, workspace_;
    size_t used_ = 0;
    struct {
        double A, rounds;
        std::vector<double> bias_sum;
    } round_;
    std::unique_ptr<Model> spare_;  // the copy of the last batch: fresh memory for each would cost more than the copy
};

// Rolls back at the end of its scope unless it was committed.
class TransactionScope {
 public:
    explicit TransactionScope(Model& model) : model_(model) {}
    TransactionScope(const TransactionScope&) = delete;
    ~TransactionScope();
    void commit();

 private:
    Model& model_;
    bool open_ = true;
};

}  // namespace onepass
