// Kernel rows, compiled once per instruction set, with ONEPASS_ISA naming it.
#include <algorithm>
#include <cmath>

#include "exponential.hpp"
#include "kernels.hpp"
#include "lanes.hpp"

namespace onepass::ONEPASS_ISA {

// What a kernel adds up over the features of a pair.
enum class Over { dot, squares, distances, minima, harmonic, chi2 };

template <Over over, class V>
inline V term(V x, V z) {
    const V zero{};
    if constexpr (over == Over::dot) return x * z;
    if constexpr (over == Over::squares) return (x - z) * (x - z);
    if constexpr (over == Over::distances) return x < z ? z - x : x - z;
    if constexpr (over == Over::minima) return x < z ? x : z;
    if constexpr (over == Over::harmonic) return x + z > zero ? 2.0 * x * z / (x + z) : zero;
    return x + z > zero ? (x - z) * (x - z) / (x + z) : zero;
}

// How many rows share a pass over the points, and how many lines of eight points a row meets at once: as many sums as
// there are registers.
#ifdef __AVX512F__
constexpr size_t tile = 4, tile_lines = 4;
#else
constexpr size_t tile = 2, tile_lines = 2;
#endif
constexpr size_t row_lines = Points::group / Points::line;

// Each sum is added up in the order of the features, whatever the block.
template <Over over, size_t count, size_t lines>
inline void block_sums(const Query* xs, const double* z, double* const* outs, size_t at) {
    const double* x[count];
    for (size_t q = 0; q < count; ++q) x[q] = xs[q].x;
    Eight sums[count][lines] = {};
    for (size_t j = 0, n = xs[0].n; j < n; ++j, z += Points::group) {
        Eight points[lines];
        for (size_t l = 0; l < lines; ++l) points[l] = load(z + l * Points::line);
        for (size_t q = 0; q < count; ++q) {
            const Eight value = all(x[q][j]);
            for (size_t l = 0; l < lines; ++l) sums[q][l] += term<over>(value, points[l]);
        }
    }
    for (size_t q = 0; q < count; ++q) std::memcpy(outs[q] + at, sums[q], sizeof sums[q]);
}

// Dense points, in blocks of up to `most` lines that lie in one group.
template <Over over, size_t count, size_t most>
inline void dense_sums(const Query* xs, const Points& points, size_t from, size_t to, double* const* outs) {
    constexpr size_t group = Points::group, line = Points::line;
    for (size_t start = from; start < to;) {
        const double* z = points.dense_group(start / group) + start % group;
        const size_t here = std::min({most, (group - start % group) / line, (to - start + line - 1) / line});
        if (most >= 4 && here >= 4) block_sums<over, count, std::min<size_t>(most, 4)>(xs, z, outs, start - from);
        else if (most >= 3 && here == 3) block_sums<over, count, std::min<size_t>(most, 3)>(xs, z, outs, start - from);
        else if (here == 2) block_sums<over, count, 2>(xs, z, outs, start - from);
        else block_sums<over, count, 1>(xs, z, outs, start - from);
        start += here * line;
    }
}

// Beyond this many features |x - z|^2 comes from |x|^2 + |z|^2 - 2<x, z>: two thirds of the work. With few features,
// where places in space are meant, the differences are squared.
constexpr size_t few_features = 32;

// |x - z|^2 from the product, which `out` holds.
inline void distances_from_products(const Query& x, const double* norms, size_t n, double* out) {
    for (size_t i = 0; i < n; i += 8) {
        const Eight squared = (all(x.norm) + load(norms + i)) - 2.0 * load(out + i);
        const Eight clamped = squared < all(0.0) ? all(0.0) : squared;
        std::memcpy(out + i, &clamped, sizeof clamped);
    }
}

// Sparse points, against x scattered into a dense vector: only the point's own features are visited.
template <Over over>
inline double sparse_term(double x, double z) {
    if constexpr (over == Over::distances) return term<over>(x, z) - std::abs(x);  // |x_j| is in x.sum already
    return term<over>(x, z);
}

template <Over over>
inline double sparse_sum(const double* x, const Points::SparsePoint& point) {
    const size_t n = point.x.size();
    if constexpr (over == Over::dot) return dot_norm_of(point.x.data(), n, Indexed<int64_t>{x, point.index.data()}).dot;
    double sums[lanes] = {};
    for (size_t i = 0; i < n; ++i) sums[i % lanes] += sparse_term<over>(x[point.index[i]], point.x[i]);
    Sum sum;
    std::memcpy(&sum, sums, sizeof sums);
    return sum.total();
}

// x as a dense vector, as long as this lives; features that no point has are left out.
class Scattered {
 public:
    Scattered(const Query& x, size_t columns) : x_(x) {
        values_ = kernel_room(0, columns);
        for (n_ = 0; n_ < x.n && size_t(x.index[n_]) < columns; ++n_) values_[x.index[n_]] = x.x[n_];
    }
    ~Scattered() {
        for (size_t i = 0; i < n_; ++i) values_[x_.index[i]] = 0.0;
    }
    Scattered(const Scattered&) = delete;
    const double* data() const { return values_; }

 private:
    const Query& x_;
    double* values_;
    size_t n_ = 0;
};

// The widest index of the points decides how far x is scattered.
inline size_t widest(const Points& points, size_t from, size_t to) {
    int64_t most = -1;
    for (size_t i = from; i < to; ++i) {
        const auto& index = points.sparse_point(i).index;
        if (!index.empty() && index.back() > most) most = index.back();
    }
    return size_t(most + 1);
}

template <Over over>
inline void sparse_sums(const Query& x, const Points& points, size_t from, size_t to, double* out) {
    const Scattered scattered(x, widest(points, from, to));
    const double* v = scattered.data();
    for (size_t i = from; i < to; ++i) {
        const Points::SparsePoint& point = points.sparse_point(i);
        double value;
        if constexpr (over == Over::squares)
            value = (x.norm + points.norms()[i]) - 2.0 * sparse_sum<Over::dot>(v, point);
        else if constexpr (over == Over::chi2)
            value = (x.sum + points.sums()[i]) - 2.0 * sparse_sum<Over::harmonic>(v, point);
        else if constexpr (over == Over::distances) value = x.sum + sparse_sum<over>(v, point);
        else value = sparse_sum<over>(v, point);
        constexpr bool distance = over == Over::squares || over == Over::chi2 || over == Over::distances;
        out[i - from] = distance && value < 0.0 ? 0.0 : value;
    }
    for (size_t i = to - from; i < Points::lined(to - from); ++i) out[i] = 0.0;
}

template <Over over>
inline void sums(const Query& x, const Points& points, size_t from, size_t to, double* out) {
    if (points.sparse()) return sparse_sums<over>(x, points, from, to, out);
    if (over == Over::squares && x.n > few_features) {
        dense_sums<Over::dot, 1, row_lines>(&x, points, from, to, &out);
        return distances_from_products(x, points.norms() + from, Points::lined(to - from), out);
    }
    dense_sums<over, 1, row_lines>(&x, points, from, to, &out);
}

template <class Function>
inline void each_eight(double* out, size_t n, const Function& function) {
    for (size_t i = 0; i < n; i += 8) {
        const Eight value = function(load(out + i));
        std::memcpy(out + i, &value, sizeof value);
    }
}

inline void decay(double gamma, double* out, size_t n) {
    each_eight(out, n, [gamma](Eight sum) { return exponential(-gamma * sum); });
}

void evaluate(const Kernel& kernel, const Query& x, const Points& points, size_t from, size_t to, double* out,
              size_t depth) {
    const double* p = kernel.p;
    const size_t n = to - from, lined = Points::lined(n);
    switch (kernel.op) {
        case KernelOp::constant:
            for (size_t i = 0; i < n; ++i) out[i] = p[0];
            return;
        case KernelOp::linear: return sums<Over::dot>(x, points, from, to, out);
        case KernelOp::polynomial:
            sums<Over::dot>(x, points, from, to, out);
            return each_eight(out, lined, [p](Eight dot) {
                const Eight base = p[0] * dot + p[1];
                Eight power = base;
                for (int i = 1; i < int(p[2]); ++i) power *= base;
                return power;
            });
        case KernelOp::rbf: sums<Over::squares>(x, points, from, to, out); return decay(p[0], out, lined);
        case KernelOp::laplacian: sums<Over::distances>(x, points, from, to, out); return decay(p[0], out, lined);
        case KernelOp::chi2_exp: sums<Over::chi2>(x, points, from, to, out); return decay(p[0], out, lined);
        case KernelOp::sigmoid:
            sums<Over::dot>(x, points, from, to, out);
            for (size_t i = 0; i < n; ++i) out[i] = std::tanh(p[0] * out[i] + p[1]);
            return;
        case KernelOp::intersection: return sums<Over::minima>(x, points, from, to, out);
        case KernelOp::chi2: return sums<Over::harmonic>(x, points, from, to, out);
        case KernelOp::precomputed: {
            const double* row = kernel.gram + size_t(x.x[0]) * kernel.size;
            for (size_t i = 0; i < n; ++i) out[i] = row[size_t(points.value(from + i, 0))];
            return;
        }
        case KernelOp::foreign: return kernel.call(kernel.self, x, &points, from, to, out);
        case KernelOp::sum:
        case KernelOp::product:
            evaluate(kernel.parts[0], x, points, from, to, out, depth + 1);
            for (size_t part = 1; part < kernel.parts.size(); ++part) {
                double* other = kernel_room(1 + depth, lined);
                evaluate(kernel.parts[part], x, points, from, to, other, depth + 1);
                for (size_t i = 0; i < n; ++i)
                    out[i] = kernel.op == KernelOp::sum ? out[i] + other[i] : out[i] * other[i];
            }
            return;
        case KernelOp::normalised: {
            evaluate(kernel.parts[0], x, points, from, to, out, depth + 1);
            const double own = diagonal(kernel.parts[0], x);
            for (size_t i = 0; i < n; ++i) {
                const double norm = own * diagonal(kernel.parts[0], points.norms()[from + i], points.sums()[from + i],
                                                   points.selves(from + i));
                out[i] = norm == 0.0 ? 0.0 : out[i] / std::sqrt(norm);
            }
        }
    }
}

void row(const Kernel& kernel, const Query& x, const Points& points, size_t from, size_t to, double* out) {
    if (to > from) evaluate(kernel, x, points, from, to, out, 0);
}

// Kernels of one sum share their passes; others go row by row.
void rows(const Kernel& kernel, const Query* xs, size_t count, const Points& points, double* const* outs) {
    const size_t n = points.size(), lined = Points::lined(n);
    const bool product = kernel.op == KernelOp::linear || (kernel.op == KernelOp::rbf && xs[0].n > few_features);
    const bool plain = product || kernel.op == KernelOp::rbf;
    for (; count > 0 && n > 0;
         xs += std::min(count, tile), outs += std::min(count, tile), count -= std::min(count, tile)) {
        if (!plain || count < tile) {
            for (size_t q = 0; q < std::min(count, tile); ++q) row(kernel, xs[q], points, 0, n, outs[q]);
            continue;
        }
        if (product) dense_sums<Over::dot, tile, tile_lines>(xs, points, 0, n, outs);
        else dense_sums<Over::squares, tile, tile_lines>(xs, points, 0, n, outs);
        if (kernel.op == KernelOp::linear) continue;
        for (size_t q = 0; q < tile; ++q) {
            if (product) distances_from_products(xs[q], points.norms(), lined, outs[q]);
            decay(kernel.p[0], outs[q], lined);
        }
    }
}

void fill_selves(const Kernel& kernel, Query& x) {
    if (kernel.op == KernelOp::precomputed)
        x.selves[kernel.slot] = kernel.gram[size_t(x.x[0]) * kernel.size + size_t(x.x[0])];
    if (kernel.op == KernelOp::foreign) kernel.call(kernel.self, x, nullptr, 0, 1, &x.selves[kernel.slot]);
    for (const Kernel& part : kernel.parts) fill_selves(part, x);
}

// The norm is added up as the product with another row is: the distance of a row from itself is exactly 0.
void prepare(const Kernel& kernel, Query& x) {
    double sum = 0.0, squares = 0.0;
    for (size_t i = 0; i < x.n; ++i) {
        sum += std::abs(x.x[i]);
        squares += x.x[i] * x.x[i];
    }
    x.sum = sum;
    x.norm = x.index ? norm(x.x, x.n) : squares;
    if (!x.selves.empty()) fill_selves(kernel, x);
}

// As `prepare`, a row in each lane.
void prepare_rows(const Kernel& kernel, Query* xs, size_t count, Points& panel) {
    panel.assign(xs, count);
    Eight sums{}, squares{};
    const double* z = panel.dense_group(0);
    for (size_t j = 0; j < panel.columns(); ++j, z += Points::group) {
        const Eight value = load(z);
        sums += value < all(0.0) ? -value : value;
        squares += value * value;
    }
    for (size_t q = 0; q < count; ++q) {
        xs[q].sum = sums[q];
        xs[q].norm = squares[q];
        if (!xs[q].selves.empty()) fill_selves(kernel, xs[q]);
    }
    panel.describe(xs);
}

double dot(const double* a, const double* b, size_t n) { return dot_norm(a, n, b).dot; }

void axpy(double factor, const double* x, double* y, size_t n) {
    for (size_t i = 0; i < n; ++i) y[i] += factor * x[i];
}

}  // namespace onepass::ONEPASS_ISA

#define ONEPASS_NAME_(isa) kernel_loops_##isa
#define ONEPASS_NAME(isa) ONEPASS_NAME_(isa)
#define ONEPASS_TEXT_(isa) #isa
#define ONEPASS_TEXT(isa) ONEPASS_TEXT_(isa)

namespace onepass {

const KernelLoops* ONEPASS_NAME(ONEPASS_ISA)() {
    static const KernelLoops loops = {ONEPASS_TEXT(ONEPASS_ISA), ONEPASS_ISA::prepare, ONEPASS_ISA::prepare_rows,
                                      ONEPASS_ISA::row,          ONEPASS_ISA::rows,    ONEPASS_ISA::dot,
                                      ONEPASS_ISA::axpy};
    return &loops;
}

}  // namespace onepass
