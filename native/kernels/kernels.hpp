// Kernels and the points they are evaluated at. Knows no Python.
//
// One call gives K(x, z_i) for a whole block of stored points. Every value is a pure function of x and z_i: neither the
// block nor the instruction set changes its bits.
#pragma once
#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

namespace onepass {

// The formulas of src/onepass/kernels.py, in the order of their `code`.
enum class KernelOp {
    constant,      // p[0]
    linear,        // <x, z>
    polynomial,    // (p[0]*<x, z> + p[1])^p[2]
    rbf,           // exp(-p[0]*|x - z|^2)
    laplacian,     // exp(-p[0]*|x - z|_1)
    sigmoid,       // tanh(p[0]*<x, z> + p[1])
    intersection,  // sum min(x_j, z_j)
    chi2,          // sum 2*x_j*z_j/(x_j + z_j)
    chi2_exp,      // exp(-p[0]*sum (x_j - z_j)^2/(x_j + z_j))
    precomputed,   // gram[x, z]: a row holds one number, its index
    foreign,       // the user's function
    sum,           // of the parts
    product,       // of the parts
    normalised,    // K(x, z)/sqrt(K(x, x)*K(z, z)) of the one part; 0 where a diagonal is 0
    epanechnikov,  // max(0, 1 - p[0]*|x - z|^2)
    box,           // 1 where p[0]*|x - z|^2 <= 1, else 0
};

struct Query;
class Points;

// A user's function: writes K(x, z_i) for points from..to-1; `self` alone where `points` is null (then one number).
using ForeignKernel = void (*)(void* self, const Query& x, const Points* points, size_t from, size_t to, double* out);

struct Kernel {
    KernelOp op = KernelOp::linear;
    double p[4] = {};
    std::vector<Kernel> parts;
    const double* gram = nullptr;  // precomputed: size x size
    size_t size = 0;
    ForeignKernel call = nullptr;
    void* self = nullptr;
    size_t slot = 0;  // precomputed, foreign: where a point keeps its K(z, z)

    bool nonnegative() const;  // does it want histograms?
};

// Gives the nodes that need one their slot; returns how many there are.
size_t number_slots(Kernel& kernel, size_t first = 0);

// A row, dense or sparse (indices rising), and what kernels want to know of it beforehand. See `prepare`.
struct Query {
    const double* x = nullptr;
    const int64_t* index = nullptr;  // null for a dense row
    size_t n = 0;                    // elements of x
    double norm = 0.0;               // |x|^2
    double sum = 0.0;                // sum |x_j|
    std::vector<double> selves{};    // K(x, x) of the nodes with a slot
    bool lasting = false;            // does x stay where it is until `Points::settle`?
};

// K(x, x), from what was prepared.
double diagonal(const Kernel& kernel, double norm, double sum, const double* selves);
inline double diagonal(const Kernel& kernel, const Query& x) {
    return diagonal(kernel, x.norm, x.sum, x.selves.data());
}

// Memory from the beginning of a cache line: a register full of numbers never lies across two. Much of it comes in huge
// pages where the system has them: a pass over many points looks up few addresses.
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

// Stored rows, in slots 0..size()-1. A removed row's place is taken by the last: O(row), and slots are not in order of
// age.
//
// Dense rows lie in lines of eight, feature by feature: eight points share a pass over x, each in its own lane of a
// register. The last line is filled up with zeros. Sparse rows lie one by one.
//
// A row that lasts is written when somebody next looks, together with others of its line: a row alone is spread over
// as many cache lines as it has features, eight of them are spread over the same ones.
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
    // n points in whole lines: the room that an `out` must have.
    static size_t lined(size_t n) { return (n + line - 1) / line * line; }

    void push(const Query& row);
    void replace(size_t at, const Query& row);
    void remove(size_t at);  // the last one moves to `at`
    void clear();
    // What became of the slots since the list was last cleared, for whoever keeps kernel rows of older points: a slot
    // holds what slot `from` held, or the row that was read at x. Kept where `watched`.
    struct Change {
        size_t at, from;
        const double* x;  // null where it came from another slot
    };
    bool watched = false;
    std::vector<Change> changes;
    // Dense: room for this many rows in place of those here. The caller writes it, then says what is known of the rows.
    double* open(size_t count);
    void describe(const Query* rows);
    // The places of features in a line, without those that are 0 in all of these rows; filled in by `prepare_rows`.
    std::vector<size_t> used;
    void widen(size_t columns);  // more features, zero so far
    // Writes what waits; before the rows that lasted go.
    void settle() {
        if (!waiting_.empty()) write_waiting();
    }

    // The row in a slot, in `keep`'s memory where it has to be put together.
    Query query(size_t at, std::vector<double>& keep) const;
    bool same(size_t at, const Query& row) const;
    // Dense: room for so many rows, so that what comes does not take more than what was looked at.
    void reserve(size_t count) { dense_.reserve(sparse_ ? 0 : lined(count) * columns_); }
    size_t numbers() const { return sparse_ ? numbers_ : lined(size_) * columns_; }  // of the rows

    const double* dense_line(size_t l) const {
        const_cast<Points*>(this)->settle();
        return dense_.data() + l * columns_ * line;
    }
    const SparsePoint& sparse_point(size_t at) const { return rows_[at]; }
    double value(size_t at, size_t column) const;  // of a dense point
    const double* norms() const { return norms_.data(); }
    const double* sums() const { return sums_.data(); }
    const double* selves(size_t at) const { return selves_.data() + at * slots_; }

 private:
    void write(size_t at, const Query& row);
    void write_waiting();

    struct Waiting {
        size_t at;
        const double* x;
    };
    bool sparse_ = false;
    size_t columns_ = 0, slots_ = 0, size_ = 0;
    size_t numbers_ = 0;  // of sparse rows
    std::vector<Waiting> waiting_;
    std::vector<double, LineAligned<double>> dense_;
    std::vector<double> norms_, sums_, selves_;  // in whole lines but for selves_
    std::vector<SparsePoint> rows_;
};

// Working space of this thread, by number, zero when first given; 0 is always left zero. Not in the loops' file, whose
// templates must not be shared between instruction sets.
double* kernel_room(size_t which, size_t n);

// The loops of one instruction set.
struct KernelLoops {
    const char* name;
    // Fills in what kernels want to know of a row.
    void (*prepare)(const Kernel& kernel, Query& x);
    // The same for several dense rows, which `panel` then holds.
    void (*prepare_rows)(const Kernel& kernel, Query* xs, size_t count, Points& panel);
    // out[i - from] = K(x, z_i) for from <= i < to; `from` a multiple of Points::line, room for lined(to - from).
    void (*row)(const Kernel& kernel, const Query& x, const Points& points, size_t from, size_t to, double* out);
    // The same for dense rows first..count-1, which share every pass over the points: outs[q][i] = K(xs[q], z_i) for
    // from <= i < to, room for whole lines; `first` a multiple of Points::line too. `panel` holds the rows, as
    // prepared. `after` (or null): a line's worth of numbers that are read before long; they are on their way
    // meanwhile.
    void (*rows)(const Kernel& kernel, const Query* xs, size_t first, size_t count, const Points& panel,
                 const Points& points, size_t from, size_t to, double* const* outs, const double* after);
    // Rows of n numbers into their lanes of a line of points; null where a lane stays as it is (not all of them).
    void (*write_line)(const double* const* rows, size_t n, double* line);
    // Are all numbers finite? Where is the first of the smallest (n > 0)? How large is the largest, without its sign?
    bool (*finite)(const double* x, size_t n);
    size_t (*first_least)(const double* x, size_t n);
    double (*largest)(const double* x, size_t n);
    // Sums in 16 lanes.
    double (*dot)(const double* a, const double* b, size_t n);
    // y[i] += factor * x[i]
    void (*axpy)(double factor, const double* x, double* y, size_t n);
};

const KernelLoops* kernel_loops_scalar();
const KernelLoops* kernel_loops_avx2();
const KernelLoops* kernel_loops_avx512();
extern const KernelLoops* kernel_loops;  // the instruction set in use

}  // namespace onepass
