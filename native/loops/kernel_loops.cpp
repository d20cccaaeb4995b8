// Kernel values K(x, z_i). Compiled once per instruction set; ONEPASS_ISA is its name.
#include <algorithm>
#include <cmath>

#include "kernels/kernels.hpp"
#include "loops/exponential.hpp"
#include "loops/lanes.hpp"
#include "loops/lines.hpp"

namespace onepass::ONEPASS_ISA {

// What a kernel sums over the features of x and z.
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

// Sums of x with all vectors of `lines` lines, which begin at z. Several lines at once, so that an addition need not
// wait for the one before. Every sum is added in the order of the features, whatever the block.
template <Over over, size_t lines>
inline void block_sums(const Query& x, const double* z, double* out) {
    Eight sums[lines] = {};
    for (size_t j = 0; j < x.n; ++j, z += Points::line)
        for (size_t l = 0; l < lines; ++l) sums[l] += term<over>(all(x.x[j]), load(z + l * x.n * Points::line));
    std::memcpy(out, sums, sizeof sums);
}

template <Over over>
inline void dense_sums(const Query& x, const Points& points, size_t from, size_t to, double* out) {
    constexpr size_t line = Points::line;
    for (size_t start = from; start < to;) {
        const double* z = points.dense_line(start / line);
        if (to - start > 3 * line) {
            block_sums<over, 4>(x, z, out + (start - from));
            start += 4 * line;
        } else if (to - start > line) {
            block_sums<over, 2>(x, z, out + (start - from));
            start += 2 * line;
        } else {
            block_sums<over, 1>(x, z, out + (start - from));
            start += line;
        }
    }
}

// With more features than these, |x - z|^2 is computed as |x|^2 + |z|^2 - 2<x, z>, which takes two thirds of the work.
// With fewer, the squared differences are added: they are exact for close points in space.
constexpr size_t few_features = 32;

// |x - z|^2 = |x|^2 + |z|^2 - 2<x, z>
inline Eight distance_from_product(double norm, Eight norms, Eight product) {
    const Eight squared = (all(norm) + norms) - 2.0 * product;
    return squared < all(0.0) ? all(0.0) : squared;
}

inline void distances_from_products(const Query& x, const double* norms, size_t n, double* out) {
    for (size_t i = 0; i < n; i += 8) {
        const Eight squared = distance_from_product(x.norm, load(norms + i), load(out + i));
        std::memcpy(out + i, &squared, sizeof squared);
    }
}

// Sparse vectors z_i: x is scattered into a dense vector, and only the features of z_i are visited.
template <Over over>
inline double sparse_term(double x, double z) {
    if constexpr (over == Over::distances) return term<over>(x, z) - std::abs(x);  // x.sum has |x_j| already
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

// x as a dense vector, while this object exists. Features beyond `columns` are left out: no z_i has them.
class Scattered {
 public:
    Scattered(const Query& x, size_t columns) : x_(x) {
        values_ = kernel_workspace(0, columns);
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

// How many columns the sparse vectors from..to-1 have.
inline size_t columns_of(const Points& points, size_t from, size_t to) {
    int64_t most = -1;
    for (size_t i = from; i < to; ++i) {
        const auto& index = points.sparse_point(i).index;
        if (!index.empty() && index.back() > most) most = index.back();
    }
    return size_t(most + 1);
}

template <Over over>
inline void sparse_sums(const Query& x, const Points& points, size_t from, size_t to, double* out) {
    const Scattered scattered(x, columns_of(points, from, to));
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
        dense_sums<Over::dot>(x, points, from, to, out);
        return distances_from_products(x, points.norms() + from, Points::lined(to - from), out);
    }
    dense_sums<over>(x, points, from, to, out);
}

template <class Function>
inline void each_eight(double* out, size_t n, const Function& function) {
    for (size_t i = 0; i < n; i += 8) {
        const Eight value = function(load(out + i));
        std::memcpy(out + i, &value, sizeof value);
    }
}

// Kernels that are functions of |x - z|^2: from `squared` distances to kernel values, for several registers of eight.
template <KernelOp op, size_t count>
inline void of_distances(double p, Eight (&squared)[count]) {
    for (Eight& each : squared) {
        if constexpr (op == KernelOp::rbf) each = -p * each;
        if constexpr (op == KernelOp::box) each = p * each <= all(1.0) ? all(1.0) : all(0.0);
        if constexpr (op == KernelOp::epanechnikov) {
            const Eight value = 1.0 - p * each;
            each = value > all(0.0) ? value : all(0.0);
        }
    }
    if constexpr (op == KernelOp::rbf) exponentials(squared);
}

template <KernelOp op, size_t count>
inline void of_distances_at(double p, double* at) {
    Eight values[count];
    std::memcpy(values, at, sizeof values);
    of_distances<op>(p, values);
    std::memcpy(at, values, sizeof values);
}

template <KernelOp op>
inline void of_distances(double p, double* out, size_t n) {
    size_t i = 0;
    for (; i + 8 * abreast <= n; i += 8 * abreast) of_distances_at<op, abreast>(p, out + i);
    for (; i < n; i += 8) of_distances_at<op, 1>(p, out + i);
}

template <KernelOp op>
void evaluate_of_distance(const Kernel& kernel, const Query& x, const Points& points, size_t from, size_t to,
                          double* out) {
    sums<Over::squares>(x, points, from, to, out);
    of_distances<op>(kernel.p[KernelParams::gamma], out, Points::lined(to - from));
}

// exp(-gamma * sum)
template <Over over>
void evaluate_exponential(const Kernel& kernel, const Query& x, const Points& points, size_t from, size_t to,
                          double* out) {
    sums<over>(x, points, from, to, out);
    of_distances<KernelOp::rbf>(kernel.p[KernelParams::gamma], out, Points::lined(to - from));
}

void evaluate_polynomial(const Kernel& kernel, const Query& x, const Points& points, size_t from, size_t to,
                         double* out) {
    using At = KernelParams;
    const double* p = kernel.p;
    sums<Over::dot>(x, points, from, to, out);
    each_eight(out, Points::lined(to - from), [p](Eight dot) {
        const Eight base = p[At::gamma] * dot + p[At::r];
        Eight power = base;
        for (int i = 1; i < int(p[At::degree]); ++i) power *= base;
        return power;
    });
}

// Kernels of the sums over the features of x and z.
void evaluate_of_vectors(const Kernel& kernel, const Query& x, const Points& points, size_t from, size_t to,
                         double* out) {
    using At = KernelParams;
    const double* p = kernel.p;
    switch (kernel.op) {
        case KernelOp::linear: return sums<Over::dot>(x, points, from, to, out);
        case KernelOp::polynomial: return evaluate_polynomial(kernel, x, points, from, to, out);
        case KernelOp::rbf: return evaluate_of_distance<KernelOp::rbf>(kernel, x, points, from, to, out);
        case KernelOp::epanechnikov:
            return evaluate_of_distance<KernelOp::epanechnikov>(kernel, x, points, from, to, out);
        case KernelOp::box: return evaluate_of_distance<KernelOp::box>(kernel, x, points, from, to, out);
        case KernelOp::laplacian: return evaluate_exponential<Over::distances>(kernel, x, points, from, to, out);
        case KernelOp::chi2_exp: return evaluate_exponential<Over::chi2>(kernel, x, points, from, to, out);
        case KernelOp::sigmoid:
            sums<Over::dot>(x, points, from, to, out);
            for (size_t i = 0; i < to - from; ++i) out[i] = std::tanh(p[At::gamma] * out[i] + p[At::r]);
            return;
        case KernelOp::intersection: return sums<Over::minima>(x, points, from, to, out);
        default: return sums<Over::harmonic>(x, points, from, to, out);  // chi2
    }
}

void evaluate(const Kernel& kernel, const Query& x, const Points& points, size_t from, size_t to, double* out,
              size_t depth);

// Sums and products of kernels. `depth` numbers the working memory, since parts may be sums and products themselves.
void evaluate_combination(const Kernel& kernel, const Query& x, const Points& points, size_t from, size_t to,
                          double* out, size_t depth) {
    const size_t n = to - from;
    evaluate(kernel.parts[0], x, points, from, to, out, depth + 1);
    for (size_t part = 1; part < kernel.parts.size(); ++part) {
        double* other = kernel_workspace(1 + depth, Points::lined(n));
        evaluate(kernel.parts[part], x, points, from, to, other, depth + 1);
        for (size_t i = 0; i < n; ++i) out[i] = kernel.op == KernelOp::sum ? out[i] + other[i] : out[i] * other[i];
    }
}

void evaluate_normalised(const Kernel& kernel, const Query& x, const Points& points, size_t from, size_t to,
                         double* out, size_t depth) {
    const Kernel& part = kernel.parts[0];
    evaluate(part, x, points, from, to, out, depth + 1);
    const double k_xx = diagonal(part, x);
    for (size_t i = from; i < to; ++i) {
        const double norm = k_xx * diagonal(part, points.norms()[i], points.sums()[i], points.selves(i));
        out[i - from] = norm == 0.0 ? 0.0 : out[i - from] / std::sqrt(norm);
    }
}

// out[i - from] = K(x, z_i) for from <= i < to.
void evaluate(const Kernel& kernel, const Query& x, const Points& points, size_t from, size_t to, double* out,
              size_t depth) {
    switch (kernel.op) {
        case KernelOp::constant:
            for (size_t i = 0; i < to - from; ++i) out[i] = kernel.p[KernelParams::c];
            return;
        case KernelOp::precomputed: {
            const double* row = kernel.gram + size_t(x.x[0]) * kernel.size;
            for (size_t i = from; i < to; ++i) out[i - from] = row[size_t(points.value(i, 0))];
            return;
        }
        case KernelOp::call: return kernel.call(kernel.self, x, &points, from, to, out);
        case KernelOp::sum:
        case KernelOp::product: return evaluate_combination(kernel, x, points, from, to, out, depth);
        case KernelOp::normalized: return evaluate_normalised(kernel, x, points, from, to, out, depth);
        default: return evaluate_of_vectors(kernel, x, points, from, to, out);
    }
}

void row(const Kernel& kernel, const Query& x, const Points& points, size_t from, size_t to, double* out) {
    if (to > from) evaluate(kernel, x, points, from, to, out, 0);
}

// How many vectors x share a pass over the points: as many as there are registers for their sums. With AVX-512, one
// number from memory can be an operand for all lanes, so 16 vectors x and one line of points keep the multipliers busy.
#ifdef __AVX512F__
constexpr size_t tile = 16;
constexpr size_t small_tile = 8;
#else
constexpr size_t tile = 4;
constexpr size_t small_tile = 4;
#endif
constexpr size_t few_rows = 3;  // so few vectors x are evaluated one by one

// Sums of `height` vectors of a panel, from `first` on, with the line of points at z. `next` is prefetched.
template <Over over, size_t height>
inline void tile_sums(const Points& panel, size_t first, const double* z, const double* next, Eight (&sums)[height]) {
    constexpr size_t line = Points::line, lines = (height + line - 1) / line;
    const double* x[lines];
    for (size_t l = 0; l < lines; ++l) x[l] = panel.dense_line(first / line + l) + first % line;
    for (size_t q = 0; q < height; ++q) sums[q] = Eight{};
    const auto add = [&](size_t j) {
        const Eight point = load(z + j);
        __builtin_prefetch(next + j, 0, 2);
        for (size_t q = 0; q < height; ++q) sums[q] += term<over>(all(x[q / line][j + q % line]), point);
    };
    if constexpr (over == Over::dot)
        for (size_t j : panel.used) add(j);  // the other features would add 0
    else
        for (size_t j = 0; j < panel.columns() * line; j += line) add(j);
}

// K of the vectors of a panel from `first` on, `count` <= height of them, with the points from..to-1.
template <KernelOp op, Over over, size_t height>
void tile_rows(double p, const Query* xs, const Points& panel, size_t first, size_t count, const Points& points,
               size_t from, size_t to, double* const* outs, const double* after) {
    constexpr size_t line = Points::line;
    static_assert(height % abreast == 0);
    double norms[height] = {};
    for (size_t q = 0; q < height && q < count; ++q) norms[q] = xs[first + q].norm;
    for (size_t start = from; start < to; start += line) {
        const double* z = points.dense_line(start / line);
        const double* next = start + line < to ? points.dense_line(start / line + 1) : after;
        Eight sums[height];
        tile_sums<over, height>(panel, first, z, next, sums);
        for (size_t q = 0; q < height && q < count; q += abreast) {
            Eight values[abreast];
            for (size_t i = 0; i < abreast; ++i) {
                values[i] = sums[q + i];
                if constexpr (op != KernelOp::linear && over == Over::dot)
                    values[i] = distance_from_product(norms[q + i], load(points.norms() + start), values[i]);
            }
            if constexpr (op != KernelOp::linear) of_distances<op>(p, values);
            for (size_t i = 0; i < abreast && q + i < count; ++i) store(outs[first + q + i] + start, values[i]);
        }
    }
}

template <KernelOp op, Over over>
void panel_rows(const Kernel& kernel, const Query* xs, size_t first, size_t count, const Points& panel,
                const Points& points, size_t from, size_t to, double* const* outs, const double* after) {
    for (size_t done = first; done < count;) {
        const size_t left = count - done;
        if (left <= few_rows) {
            evaluate(kernel, xs[done], points, from, to, outs[done] + from, 0);
            done += 1;
        } else if (left > small_tile) {
            tile_rows<op, over, tile>(kernel.p[KernelParams::gamma], xs, panel, done, left, points, from, to, outs,
                                      after);
            done += std::min(tile, left);
        } else {
            tile_rows<op, over, small_tile>(kernel.p[KernelParams::gamma], xs, panel, done, left, points, from, to,
                                            outs, after);
            done += std::min(small_tile, left);
        }
    }
}

// Kernels of a product or a distance share the passes over the points. For others the vectors go one by one.
void rows(const Kernel& kernel, const Query* xs, size_t first, size_t count, const Points& panel, const Points& points,
          size_t from, size_t to, double* const* outs, const double* after) {
    if (to <= from) return;
    if (!after) after = points.dense_line(from / Points::line);  // in the cache anyway
    const bool product = panel.columns() > few_features;
    const auto share = [&]<KernelOp op, Over over>() {
        panel_rows<op, over>(kernel, xs, first, count, panel, points, from, to, outs, after);
    };
    const auto distances = [&]<KernelOp op>() {
        if (product) share.template operator()<op, Over::dot>();
        else share.template operator()<op, Over::squares>();
    };
    switch (kernel.op) {
        case KernelOp::linear: return share.template operator()<KernelOp::linear, Over::dot>();
        case KernelOp::rbf: return distances.template operator()<KernelOp::rbf>();
        case KernelOp::epanechnikov: return distances.template operator()<KernelOp::epanechnikov>();
        case KernelOp::box: return distances.template operator()<KernelOp::box>();
        default:
            for (size_t q = first; q < count; ++q) evaluate(kernel, xs[q], points, from, to, outs[q] + from, 0);
    }
}

void fill_selves(const Kernel& kernel, Query& x) {
    if (kernel.op == KernelOp::precomputed)
        x.selves[kernel.slot] = kernel.gram[size_t(x.x[0]) * kernel.size + size_t(x.x[0])];
    if (kernel.op == KernelOp::call) kernel.call(kernel.self, x, nullptr, 0, 1, &x.selves[kernel.slot]);
    for (const Kernel& part : kernel.parts) fill_selves(part, x);
}

// The norm is summed in the same order as products, so that the distance of a vector from itself is exactly 0.
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

void write_line(const double* const* given, size_t n, double* line) {
    const EightRows rows(given);
    rows.by_feature(n, [&](size_t j, Eight values) {
        double* at = line + j * Points::line;
        store(at, rows.or_else(values, load(at)));
    });
}

// Finds the features that are not 0 in all vectors of a panel. If the first vector has few zeros, all features are
// used.
void find_used(const Query* xs, size_t count, Points& panel) {
    const size_t n = panel.columns(), zeros = size_t(std::count(xs[0].x, xs[0].x + n, 0.0));
    const bool search = zeros > n / 8;
    if (!search && panel.used.size() == n) return;  // all features are in the list already
    panel.used.resize(n);
    size_t found = 0;
    const auto add_if_used = [&](size_t j, double most) {
        panel.used[found] = j * Points::line;
        found += !search || most != 0.0;
    };
    size_t j = 0;
    for (; j + 8 <= n; j += 8) {
        Eight most{};
        for (size_t q = 0; search && q < count; ++q) {
            const Eight size = absolute(load(xs[q].x + j));
            most = larger(size, most);
        }
        for (size_t l = 0; l < 8; ++l) add_if_used(j + l, most[l]);
    }
    for (; j < n; ++j) {
        double most = 0.0;
        for (size_t q = 0; search && q < count; ++q) most = std::max(most, std::abs(xs[q].x[j]));
        add_if_used(j, most);
    }
    panel.used.resize(found);
}

// As `prepare`, with a vector in each lane.
void prepare_rows(const Kernel& kernel, Query* xs, size_t count, Points& panel) {
    double* z = panel.open(count);
    for (size_t first = 0; first < count; first += Points::line, z += panel.columns() * Points::line) {
        const size_t here = std::min(Points::line, count - first);
        const double* given[Points::line] = {};
        for (size_t q = 0; q < here; ++q) given[q] = xs[first + q].x;
        const EightRows rows(given);
        Eight sums{}, squares{};
        rows.by_feature(panel.columns(), [&](size_t j, Eight values) {
            const Eight column = rows.or_else(values, all(0.0));
            store(z + j * Points::line, column);
            sums += absolute(column);
            squares += column * column;
        });
        for (size_t q = 0; q < here; ++q) {
            xs[first + q].sum = sums[q];
            xs[first + q].norm = squares[q];
        }
    }
    for (size_t q = 0; q < count; ++q)
        if (!xs[q].selves.empty()) fill_selves(kernel, xs[q]);
    panel.describe(xs);
    find_used(xs, count, panel);
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
    static const KernelLoops loops = {ONEPASS_TEXT(ONEPASS_ISA), ONEPASS_ISA::prepare,     ONEPASS_ISA::prepare_rows,
                                      ONEPASS_ISA::row,          ONEPASS_ISA::rows,        ONEPASS_ISA::write_line,
                                      ONEPASS_ISA::finite,       ONEPASS_ISA::first_least, ONEPASS_ISA::largest,
                                      ONEPASS_ISA::dot,          ONEPASS_ISA::axpy};
    return &loops;
}

}  // namespace onepass
