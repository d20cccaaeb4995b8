// LASVM (Bordes, Ertekin, Weston, Bottou 2005): an SVM that learns example by example and converges to the batch
// solution.
//
//   maximise W(alpha) = sum_i alpha_i y_i - 1/2 sum_ij alpha_i alpha_j k_ij
//   subject to sum_i alpha_i = 0 and A_i <= alpha_i <= B_i, where [A, B] is [0, C] for y = +1 and [-C, 0] for y = -1
//
// The gradient of W is g_s = y_s - sum_i alpha_i k_is. A pair of vectors is tau-violating if alpha_rise < B_rise,
// alpha_fall > A_fall and g_rise - g_fall > tau: W grows when alpha_rise rises and alpha_fall falls by as much.
//
// Several machines (one against the rest, or one against one) share the stored vectors and their kernel rows. Each
// vector has a slot, and every machine has an alpha and a gradient for each slot. S, the expansion of a machine, is the
// set of the vectors that it contains. Elsewhere A = B = 0, so that alpha can neither rise nor fall, and loops over all
// slots need no test. A slot that no machine uses is free; the lowest free slot is used first.
#pragma once
#include <cmath>
#include <limits>
#include <optional>
#include <unordered_map>
#include <vector>

#include "kernels/kernels.hpp"
#include "kernels/row_cache.hpp"
#include "loops/lasvm_loops.hpp"

namespace onepass {

struct Machine {
    int64_t positive = 1;                               // the class of y = +1
    int64_t negative = 0;                               // the class of y = -1; any_other for all others
    std::vector<double> alpha, gradient, lower, upper;  // by slot
    double bias = 0.0;
    double delta = std::numeric_limits<double>::infinity();  // the largest violation; infinite with one class only
    double steps = 0.0;
    size_t members = 0;  // |S|
    bool saw_positive = false, saw_negative = false;

    static constexpr int64_t any_other = -1;
    // y of a label; 0 if the label is of neither class.
    double sign(int64_t label) const {
        if (label == positive) return 1.0;
        return negative == any_other || label == negative ? -1.0 : 0.0;
    }
    bool saw_both() const { return saw_positive && saw_negative; }
    bool contains(size_t slot) const { return lower[slot] < upper[slot]; }
    double y(size_t slot) const { return upper[slot] > 0.0 ? 1.0 : lower[slot] < 0.0 ? -1.0 : 0.0; }
    void resize(size_t slots);
    double objective() const;  // W
};

struct LasvmOptions {
    double C = 1.0, tau = 1e-3;
    size_t cache_bytes = size_t(256) << 20;
    size_t reprocess_steps = 1;
    double reprocess_until = std::numeric_limits<double>::infinity();  // repeat while delta is larger
    bool may_be_indefinite = false;  // the kernel is not known to be positive semi-definite
};

enum class LasvmStatus { ok, not_finite, indefinite, full };

class Lasvm {
 public:
    // A machine that has seen one class only stores so many examples at most.
    static constexpr size_t most_of_one_class = 1000;
    static constexpr int64_t no_id = -1;  // examples of a stream have no id

    Lasvm(Kernel kernel, size_t kernel_slots, bool sparse, size_t columns, const LasvmOptions& options);

    void add_machine(int64_t positive, int64_t negative);
    // Replaces the one machine of two classes by two machines, each of one class against the rest. The second is the
    // old machine, the first its mirror image: alpha, gradients, bounds and bias have the other sign.
    void split();
    // Inserts the vectors that the other machines have stored into a machine that was added late.
    void collect(size_t machine);
    // Removes the machines that were added last. No vector may have been stored for them alone.
    void drop_machines(size_t count);

    // Computes the kernel rows of examples that will be learned next, block by block, so that each stored vector is
    // read once for all of them. Examples that are in S already are left out.
    void prepare(const Query* rows, const int64_t* ids, size_t count, CachedRow* out);
    // PROCESS, then REPROCESS, in every machine that the label concerns. A refused example changes nothing. An example
    // whose id is in S already is not processed again. `row` comes from `prepare`, or is empty.
    LasvmStatus learn(const Query& x, CachedRow& row, int64_t label, double weight, int64_t id);
    // Inserts an example into S with alpha = 0.
    LasvmStatus seed(const Query& x, CachedRow& row, int64_t label, double weight, int64_t id);
    LasvmStatus reprocess(Machine& machine);
    // REPROCESS until delta <= tau. Returns false if that took more than 100 |S| times.
    bool finish(Machine& machine, LasvmStatus& status);
    void compact();     // removes free slots
    void forget_ids();  // every later example counts as new

    // f of each machine for each row.
    void score(const Query* rows, size_t count, double* out);

    size_t slots() const { return labels.size(); }
    size_t stored() const { return slots() - free_.size(); }
    bool used(size_t slot) const { return users_[slot] > 0; }
    size_t support() const;  // how many vectors have an alpha other than 0
    bool contains(int64_t id) const { return id != no_id && slot_of_.count(id) > 0; }
    void restore();  // after loading: computes what follows from points, labels, weights and machines

    Kernel kernel;
    LasvmOptions options;
    Points points;
    std::vector<int64_t> labels;  // by slot
    std::vector<double> weights;  // by slot
    std::vector<Machine> machines;
    uint64_t t = 0;
    uint64_t evaluations = 0;  // kernel values computed
    RowCache cache;

 private:
    static constexpr double epsilon = 1e-12, indefinite_below = -1e-6;  // parts of the kernel's diagonal
    static constexpr double recompute_every = 1e4;  // steps, so that rounding errors of gradients do not add up
    static constexpr size_t most_repeats = 100;     // of REPROCESS, times |S|
    static constexpr size_t nowhere = size_t(-1);

    // An example that one machine will insert into its S.
    struct Insertion {
        size_t machine;
        double y, gradient;
    };
    // What an example may have changed. The vectors themselves need not be saved: an evicted vector stays in its slot,
    // because the new one is stored in a slot that was free before, or in a new one.
    struct Saved {
        std::vector<Machine> machines;
        std::vector<int64_t> labels, ids;
        std::vector<double> weights;
        std::vector<uint32_t> users;
        std::vector<size_t> free;
        std::unordered_map<int64_t, size_t> slot_of;
    };

    // The memory limit has room for one more vector.
    bool has_room(const Query& x) const;
    // Slots.
    size_t store(const Query& x, int64_t label, double weight, int64_t id);
    void release(size_t slot);
    size_t find_slot(int64_t id) const;
    void insert(Machine& machine, size_t slot, double y, double weight, double gradient);
    void evict(Machine& machine, size_t slot);
    // Kernel rows.
    void evaluate(const Query& x, size_t from, size_t to, double* out);
    bool is_exactly_symmetric() const;
    void update_row(const Query& x, size_t slot, CachedRow& row);
    const double* kernel_row(size_t slot);
    const double* arriving_row(const Query& x, CachedRow& row, size_t slot);
    double diagonal_of(size_t slot) const;
    // The algorithm.
    LasvmStatus process(const Query& x, CachedRow& row, int64_t label, double weight, int64_t id, bool stepping);
    bool compute_gradients(const Query& x, const double* k, size_t slot, int64_t label);
    size_t store_with_row(const Query& x, CachedRow& row, int64_t label, double weight, int64_t id);
    LasvmStatus process_step(Machine& machine, size_t slot, double y, CachedRow& row);
    Pair find_pair(const Machine& machine) const;
    bool violates(const Machine& machine, const Pair& pair) const;
    LasvmStatus step(Machine& machine, const Pair& pair);
    LasvmStatus reprocess_repeatedly(Machine& machine);
    void recompute_gradients(Machine& machine);
    // One example is a transaction. Only with a kernel that may be indefinite an example can be refused after it has
    // changed something, so only then begin() saves anything.
    void begin();
    void commit() { saved_.reset(); }
    void roll_back();

    bool exactly_symmetric_ = true;  // see is_exactly_symmetric()
    uint64_t clock_ = 1;             // rises when a slot is filled; 0 is before the first
    uint64_t numbering_ = 0;         // rises when slots are renumbered
    std::vector<uint64_t> filled_;   // by slot: the clock when it was filled
    std::vector<uint32_t> users_;    // by slot: how many machines contain it
    std::vector<size_t> free_;       // a heap, lowest slot first
    std::vector<int64_t> ids_;       // by slot
    std::unordered_map<int64_t, size_t> slot_of_;
    std::vector<double> stored_;
    std::vector<size_t> removable_;
    std::vector<Insertion> insertions_;
    std::vector<CachedRow> scored_;
    std::optional<Saved> saved_;
};

}  // namespace onepass
