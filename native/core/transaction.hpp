// The transactions of a linear model. A transaction restores the model as it was if what was learned since is refused.
//
//   begin_example, begin_batch, begin_growth   open a transaction
//   begin_save, end_save, save_all             save numbers of features before they are written
//   commit                                     accepts all that was learned, and closes the innermost transaction
//   roll_back                                  restores the model, and closes the innermost transaction
//
// Transactions nest: growth may contain a batch. A single round needs no transaction, since its step is checked before
// it is written. The exception is a rule with its own step for each coordinate: save_average and restore_average are
// for its rounds only. They open and close no transaction.
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

// Copies the numbers of features to the memory of a transaction. For each output of a feature it writes: the place, the
// weight, the planes, and the number of the averaged sum if the model has one.
struct SavedNumbers {
    double* next;  // where the next number is written

    // place: the index of the weight in Weights::cells.
    // v: the address of the weight. Plane p is at v[(1 + p) * stride].
    // z: the address of its number of the averaged sum, or null if the model does not average.
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
    // A copied model begins with no open transaction. A model that is assigned to keeps its own open transactions:
    // roll_back assigns the saved copy to the model.
    Transaction(const Transaction&);
    Transaction& operator=(const Transaction&) { return *this; }
    ~Transaction();

    // Rounds that are accepted or refused together, such as the pairs of a ranked example. Saves all scalars at once;
    // the loops save the numbers of a feature before they write them. Copies the whole model if it has a pocket,
    // recorded votes or a full covariance.
    void begin_example(Model& model);
    // A whole batch of examples. Copies the model.
    void begin_batch(const Model& model);
    // An example or a batch that may bring new features and classes. The model has `known` classes, and at most `added`
    // new ones may come. Saves the sizes of the model; copies the whole model if the new classes would change the
    // outputs that exist.
    void begin_growth(const Model& model, size_t known, size_t added);
    void commit();
    void roll_back(Model& model);

    // True if the numbers of a feature must be saved before they are written.
    ONEPASS_INLINE bool recording() const { return recording_; }
    // begin_save returns where to save the numbers of `count` outputs of features. end_save ends that: what was written
    // before `end` is saved.
    SavedNumbers begin_save(const Weights& w, size_t count);
    ONEPASS_INLINE void end_save(const SavedNumbers& end) { used_ = size_t(end.next - numbers_.data()); }
    // Saves the numbers of every feature that was ever written. Only for models of one output.
    void save_all(const Weights& w);

    // For one round of a rule with its own step for each coordinate: its changes of the average. The round saves and
    // restores the other numbers itself, in the working space (loops/adaptive.cpp, loops/coordinates.hpp).
    void save_average(const Average& average);
    void restore_average(Average& average) const;

    // Working space of one round.
    ONEPASS_INLINE double* workspace(size_t size) {
        const size_t with_rest = size + 16;  // the last elements of a row are written as whole vectors
        if (workspace_.size() < with_rest) [[unlikely]]
            workspace_.grow(with_rest);
        return workspace_.data();
    }
    ONEPASS_INLINE const double* workspace() const { return workspace_.data(); }

 private:
    enum class Saved { numbers, sizes, copy };
    struct Savepoint {
        Saved saved;                       // what roll_back restores from
        size_t first_number = 0;           // the index in `numbers_` of its first number
        bool saved_all = false;            // true after save_all: no number needs to be saved again
        std::vector<double> scalars;       // all scalars, the intercepts included
        MiniBatch batch;                   // the unfinished mini-batch
        size_t features = 0, outputs = 0;  // the sizes of the model
        size_t bounded = 0;                // Covariance::bounded
        std::unique_ptr<Model> copy;
        bool reuse_copy = false;  // the next example or batch may use the memory of this copy
    };
    Savepoint& open(Saved saved);
    void open_copy(const Model& model, bool reuse);
    void close();
    void restore_numbers(Weights& w, size_t from);

    std::vector<Savepoint> open_;  // the first `depth_` are open, the innermost last; the others are used again
    size_t depth_ = 0;
    bool recording_ = false;
    Buffer numbers_, workspace_;
    size_t used_ = 0;  // how many of `numbers_` are saved
    struct {
        double A, rounds;
        std::vector<double> bias_sum;
    } saved_average_;
    // The copy of the last example or batch. Its memory is used again: to allocate it anew would take longer than to
    // copy.
    std::unique_ptr<Model> spare_;
};

// Takes over the transaction that was opened just before, and rolls it back at the end of the scope unless it was
// committed. It opens nothing itself.
class RollbackGuard {
 public:
    explicit RollbackGuard(Model& model) : model_(model) {}
    RollbackGuard(const RollbackGuard&) = delete;
    ~RollbackGuard();
    void commit();

 private:
    Model& model_;
    bool open_ = true;
};

}  // namespace onepass
