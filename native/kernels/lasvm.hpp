// LASVM (Bordes, Ertekin, Weston, Bottou 2005): an SVM that learns example by example and converges to the batch
// solution. Knows no Python.
//
//   maximise W(alpha) = sum_i alpha_i y_i - 1/2 sum_ij alpha_i alpha_j k_ij
//   subject to sum_i alpha_i = 0 and A_i <= alpha_i <= B_i, where [A, B] is [0, C] for y = +1 and [-C, 0] for y = -1
//
// Several machines (one against the rest, one against one) share the stored vectors and the kernel rows among them. A
// vector sits in a slot; every machine has its alpha and gradient there. Where it is not in a machine's set S, A = B =
// 0: it can neither rise nor fall, so that no loop has to ask. Slots that no machine uses are taken again, lowest
// first.
#pragma once
#include <cmath>
#include <limits>
#include <memory>
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
    double delta = std::numeric_limits<double>::infinity();  // largest violation; infinite with one class only
    double steps = 0.0;
    size_t members = 0;
    bool saw_positive = false, saw_negative = false;

    static constexpr int64_t any_other = -1;
    double sign(int64_t label) const {
        if (label == positive) return 1.0;
        return negative == any_other || label == negative ? -1.0 : 0.0;
    }
    bool saw_both() const { return saw_positive && saw_negative; }
    bool holds(size_t slot) const { return lower[slot] < upper[slot]; }
    double side(size_t slot) const { return upper[slot] > 0.0 ? 1.0 : lower[slot] < 0.0 ? -1.0 : 0.0; }
    void resize(size_t slots);
    double objective() const;
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
    // While a machine has seen one class only, this many arrivals are collected for it, and no more.
    static constexpr size_t most_collected = 1000;
    static constexpr int64_t stranger = -1;  // the id of an example that comes from a stream

    Lasvm(Kernel kernel, size_t kernel_slots, bool sparse, size_t columns, const LasvmOptions& options);

    void add_machine(int64_t positive, int64_t negative);
    // The one machine of two classes becomes two machines, each of one class against the rest: the second is the
    // machine as it was, the first its mirror image (alpha, gradients, bounds and bias change sign).
    void split();
    // Gives a machine that came late what the others have kept.
    void collect(size_t machine);
    // Takes away the machines that came last, of which no vector was stored for them alone.
    void drop_machines(size_t count);

    // K(x, slots) of some rows that are about to be learned: block by block, so that stored vectors are read once for
    // all. Rows that are in S already are left out.
    void prepare(const Query* rows, const int64_t* ids, size_t count, CachedRow* out);
    // PROCESS, then REPROCESS, in each machine concerned; a refused example leaves everything as it was. An id that is
    // in S already is not processed again. `row` is what `prepare` gave, or empty.
    LasvmStatus learn(const Query& x, CachedRow& row, int64_t label, double weight, int64_t id);
    // Puts an example into S with alpha = 0.
    LasvmStatus seed(const Query& x, CachedRow& row, int64_t label, double weight, int64_t id);
    LasvmStatus process(const Query& x, CachedRow& row, int64_t label, double weight, int64_t id, bool stepping);
    LasvmStatus reprocess(Machine& machine);
    // REPROCESS until delta <= tau; false where 100 |S| times were not enough.
    bool finish(Machine& machine, LasvmStatus& status);
    void compact();     // closes the gaps between slots
    void forget_ids();  // from now on every arrival is new

    // f of each machine for each row.
    void score(const Query* rows, size_t count, double* out);

    size_t slots() const { return labels.size(); }
    size_t stored() const { return slots() - free_.size(); }
    bool used(size_t slot) const { return users_[slot] > 0; }
    size_t support() const;  // vectors with some alpha other than 0
    bool holds(int64_t id) const { return id != stranger && slot_of_.count(id) > 0; }
    void restore();  // what follows from points, labels, weights and machines

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
    static constexpr double epsilon = 1e-12, indefinite_below = -1e-6;  // of the kernel's diagonal
    static constexpr double recompute_every = 1e4;  // steps: rounding errors of the gradients do not pile up
    static constexpr size_t most_repeats = 100;     // times |S|
    static constexpr size_t nowhere = size_t(-1);

    bool has_room(const Query& x) const;  // for one more stored vector, within the limit of memory

    struct Before;  // what a refused example must leave as it was
    struct Newcomer {
        size_t machine;
        double y, gradient;
    };

    void evaluate(const Query& x, size_t from, size_t to, double* out);
    bool symmetric() const;
    void complete(const Query& x, size_t slot, CachedRow& row);
    const double* row(size_t slot);
    double self(size_t slot) const;
    size_t place(const Query& x, int64_t label, double weight, int64_t id);
    void release(size_t slot);
    void admit(Machine& machine, size_t slot, double y, double weight, double gradient);
    void evict(Machine& machine, size_t slot);
    Extremes extremes(const Machine& machine) const;
    bool violates(const Machine& machine, const Extremes& pair) const;
    LasvmStatus step(Machine& machine, size_t i, size_t j);
    LasvmStatus reprocess_repeatedly(Machine& machine);
    void recompute(Machine& machine);
    std::unique_ptr<Before> remember() const;
    void undo(Before& before);

    bool symmetric_ = true;         // see symmetric()
    uint64_t clock_ = 1;            // rises with every slot taken; 0 is before everything
    uint64_t epoch_ = 0;            // rises when slots are renumbered
    std::vector<uint64_t> births_;  // by slot: the clock when it was taken
    std::vector<uint32_t> users_;   // by slot: machines that hold it
    std::vector<size_t> free_;      // a heap, lowest slot first
    std::vector<int64_t> ids_;      // by slot
    std::unordered_map<int64_t, size_t> slot_of_;
    std::vector<double> room_;
    std::vector<size_t> useless_;
    std::vector<Newcomer> newcomers_;
    std::vector<CachedRow> scored_;
};

}  // namespace onepass
