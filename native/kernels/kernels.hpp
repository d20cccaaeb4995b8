// Kernels K(x, z), and the table of vectors z_i that they are evaluated at. Nothing here depends on Python.
//
// One call computes K(x, z_i) for a block of stored vectors. Every value depends on x and z_i alone: neither the block
// nor the instruction set changes a bit of it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

#include "core/name_lists.hpp"

namespace onepass {

// The formulas of src/onepass/kernels/functions.py and algebra.py, by the `name` of the class.
//
//   constant c                               intersection  sum min(x_j, z_j)
//   linear <x, z>                            chi2          sum 2*x_j*z_j/(x_j + z_j)
//   polynomial (gamma*<x, z> + r)^degree     chi2_exp      exp(-gamma*sum (x_j - z_j)^2/(x_j + z_j))
//   rbf exp(-gamma*|x - z|^2)                precomputed   gram[x, z]: a vector has one number, its index in the matrix
//   laplacian exp(-gamma*|x - z|_1)          call          the user's function
//   sigmoid tanh(gamma*<x, z> + r)           sum, product  of the parts
//   epanechnikov max(0, 1 - gamma*|x - z|^2) normalized    K(x, z)/sqrt(K(x, x)*K(z, z)) of its part; 0 where K(x, x)
//   or box 1 where gamma*|x - z|^2 <= 1, else 0               K(z, z) is 0
ONEPASS_ENUM(KernelOp, constant, linear, polynomial, rbf, laplacian, sigmoid, intersection, chi2, chi2_exp, precomputed,
             call, sum, product, normalized, epanechnikov, box)
ONEPASS_POSITIONS(KernelParams, c, gamma, r, degree);

struct Query;
class Points;

// A user's function. Writes K(x, z_i) of the points from..to-1, or the one number K(x, x) where `points` is null.
using ForeignKernel = void (*)(void* self, const Query& x, const Points* points, size_t from, size_t to, double* out);

struct Kernel {
    KernelOp op = KernelOp::linear;
    double p[KernelParams::count] = {};
    std::vector<Kernel> parts;
    const double* gram = nullptr;  // precomputed: size x size
    size_t size = 0;
    ForeignKernel call = nullptr;
    void* self = nullptr;
    size_t slot = 0;  // precomputed, foreign: the position of K(z, z) among the `selves` of a vector

    bool nonnegative() const;  // whether it is defined for numbers >= 0 only, as histograms have
};

// Numbers the slots of all precomputed and foreign kernels in a kernel. Returns how many there are.
size_t number_slots(Kernel& kernel, size_t first = 0);

// A vector x, dense or sparse (with rising indices), and the numbers that `prepare` computes from it for kernels.
struct Query {
    const double* x = nullptr;
    const int64_t* index = nullptr;  // null for a dense vector
    size_t n = 0;                    // how many numbers x has
    double norm = 0.0;               // |x|^2
    double sum = 0.0;                // sum |x_j|
    std::vector<double> selves{};    // K(x, x) of the kernels with a slot
    bool lasting = false;            // x stays valid until the next Points::settle
};

// K(x, x), from the prepared numbers.
double diagonal(const Kernel& kernel, double norm, double sum, const double* selves);
inline double diagonal(const Kernel& kernel, const Query& x) {
    return diagonal(kernel, x.norm, x.sum, x.selves.data());
}

// Memory that begins at a cache line, so that a full register of numbers lies in one line. Large blocks use huge pages
// where the system has them: a pass over many vectors then needs few address translations.
void* allocate_lines(size_t bytes);
void release_lines(void* at, size_t bytes) noexcept;

template <class T>
struct LineAligned {
    using value_type = T;
    LineAligned() = default;
    template <class U>
    LineAligned(const LineAligned<U>&) {}
    T* allocate(size_t n) { return static_cast<T*>(allocate_lines(n * sizeof(T))); }
    void deallocate(T* at, size_t n) noexcept { release_lines(at, n * sizeof(T)); }
    bool operator==(const LineAligned&) const = default;
};

// A table of vectors, in slots 0..size()-1. When a vector is removed, the last one moves to its slot.
//
// Eight dense vectors form a line, feature by feature: a pass over x serves eight vectors, each in its own lane of a
// register. The last line is filled up with zeros. Sparse vectors are stored one by one.
//
// Writing one dense vector touches a cache line for every feature; writing eight vectors of a line touches the same
// cache lines only once. A vector that `lasts` is therefore written later, together with others, when its line is next
// read.
class Points {
 public:
    static constexpr size_t line = 8;
    struct SparsePoint {
        std::vector<int64_t> index;
        std::vector<double> x;
    };

    Points() = default;
    Points(bool sparse, size_t columns, size_t slots) : sparse_(sparse), columns_(columns), slots_(slots) {}

    bool sparse() const { return sparse_; }
    size_t size() const { return size_; }
    size_t columns() const { return columns_; }
    // n rounded up to whole lines: the length that outputs of kernel values must have.
    static size_t lined(size_t n) { return (n + line - 1) / line * line; }

    void push(const Query& z);
    void replace(size_t at, const Query& z);
    void remove(size_t at);  // the last vector moves to `at`
    void clear();

    // A change of a slot: it now has the vector that slot `from` had, or the one that was read at x. Whoever holds
    // kernel values that were computed earlier can update them by these.
    struct Change {
        size_t at, from;
        const double* x;  // null if the vector came from another slot
    };
    bool watched = false;         // whether `changes` are recorded
    std::vector<Change> changes;  // since the list was last cleared

    // Replaces the whole table by `count` dense vectors: the caller writes them to the result, and then describes them.
    double* open(size_t count);
    void describe(const Query* zs);
    // The offsets, within a line, of the features that are not 0 in all vectors. Set by `prepare_rows`.
    std::vector<size_t> used;
    void widen(size_t columns);  // adds features, which are 0 in all vectors
    // Writes all pending vectors. Must be called before the memory of vectors that `last` becomes invalid.
    void settle() {
        if (!pending_.empty()) write_pending();
    }

    // The vector in a slot. A dense one is copied to `buffer`.
    Query query(size_t at, std::vector<double>& buffer) const;
    bool same(size_t at, const Query& z) const;
    // Reserves memory for dense vectors, so that later ones need no more than what was checked against the limit.
    void reserve(size_t count) { dense_.reserve(sparse_ ? 0 : lined(count) * columns_); }
    size_t numbers() const { return sparse_ ? numbers_ : lined(size_) * columns_; }  // stored in all

    const double* dense_line(size_t l) const {
        const_cast<Points*>(this)->settle();
        return dense_.data() + l * columns_ * line;
    }
    const SparsePoint& sparse_point(size_t at) const { return sparse_points_[at]; }
    double value(size_t at, size_t column) const;  // of a dense vector
    const double* norms() const { return norms_.data(); }
    const double* sums() const { return sums_.data(); }
    const double* selves(size_t at) const { return selves_.data() + at * slots_; }

 private:
    void write(size_t at, const Query& z);
    void write_pending();

    struct Pending {
        size_t at;
        const double* x;
    };
    bool sparse_ = false;
    size_t columns_ = 0, slots_ = 0, size_ = 0;
    size_t numbers_ = 0;  // stored in sparse vectors
    std::vector<Pending> pending_;
    std::vector<double, LineAligned<double>> dense_;
    std::vector<double> norms_, sums_;  // padded with zeros to whole lines
    std::vector<double> selves_;
    std::vector<SparsePoint> sparse_points_;
};

// Working memory of this thread: number `which`, with room for n numbers. It holds zeros when it is new; the users of
// number 0 leave it all zeros. (Defined outside the loops' file, whose templates exist once per instruction set.)
double* kernel_workspace(size_t which, size_t n);

// The loops of one instruction set.
struct KernelLoops {
    const char* name;
    // Computes the numbers of x that kernels need: its norm, its sum and its selves.
    void (*prepare)(const Kernel& kernel, Query& x);
    // The same for several dense vectors, and stores them in `panel`.
    void (*prepare_rows)(const Kernel& kernel, Query* xs, size_t count, Points& panel);
    // out[i - from] = K(x, z_i) for from <= i < to. `from` is a multiple of Points::line, and `out` has room for
    // lined(to - from) numbers.
    void (*row)(const Kernel& kernel, const Query& x, const Points& points, size_t from, size_t to, double* out);
    // The same for the dense vectors first..count-1 of `panel`, which share every pass over the points: outs[q][i] =
    // K(xs[q], z_i) for from <= i < to. `first` and `from` are multiples of Points::line, and the outputs have room for
    // whole lines. `after`, where given, is a line of numbers that will be read soon; it is prefetched.
    void (*rows)(const Kernel& kernel, const Query* xs, size_t first, size_t count, const Points& panel,
                 const Points& points, size_t from, size_t to, double* const* outs, const double* after);
    // Writes vectors of n numbers to the lanes of a line of points. Lanes of null stay as they are; at least one is
    // not.
    void (*write_line)(const double* const* rows, size_t n, double* line);
    bool (*finite)(const double* x, size_t n);         // whether all numbers are finite
    size_t (*first_least)(const double* x, size_t n);  // the first position of the smallest number; n > 0
    double (*largest)(const double* x, size_t n);      // the largest absolute value
    double (*dot)(const double* a, const double* b, size_t n);
    // y[i] += factor * x[i]
    void (*axpy)(double factor, const double* x, double* y, size_t n);
};

const KernelLoops* kernel_loops_scalar();
const KernelLoops* kernel_loops_avx2();
const KernelLoops* kernel_loops_avx512();
extern const KernelLoops* kernel_loops;  // the instruction set in use

}  // namespace onepass
