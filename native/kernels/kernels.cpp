#include "kernels/kernels.hpp"

#include <algorithm>
#include <cmath>
#ifdef __linux__
#include <sys/mman.h>
#endif

namespace onepass {

bool Kernel::nonnegative() const {
    if (op == KernelOp::intersection || op == KernelOp::chi2 || op == KernelOp::chi2_exp) return true;
    return std::any_of(parts.begin(), parts.end(), [](const Kernel& part) { return part.nonnegative(); });
}

size_t number_slots(Kernel& kernel, size_t first) {
    if (kernel.op == KernelOp::precomputed || kernel.op == KernelOp::call) kernel.slot = first++;
    for (Kernel& part : kernel.parts) first = number_slots(part, first);
    return first;
}

static double diagonal_of_vector(const Kernel& kernel, double norm, double sum) {
    using At = KernelParams;
    const double* p = kernel.p;
    switch (kernel.op) {
        case KernelOp::constant: return p[At::c];
        case KernelOp::linear: return norm;
        case KernelOp::polynomial: {
            double power = 1.0;
            for (int i = 0; i < int(p[At::degree]); ++i) power *= p[At::gamma] * norm + p[At::r];
            return power;
        }
        case KernelOp::sigmoid: return std::tanh(p[At::gamma] * norm + p[At::r]);
        case KernelOp::intersection:
        case KernelOp::chi2: return sum;
        default: return 1.0;  // functions of a distance, which is 0
    }
}

double diagonal(const Kernel& kernel, double norm, double sum, const double* selves) {
    switch (kernel.op) {
        case KernelOp::precomputed:
        case KernelOp::call: return selves[kernel.slot];
        case KernelOp::sum: {
            double all = 0.0;
            for (const Kernel& part : kernel.parts) all += diagonal(part, norm, sum, selves);
            return all;
        }
        case KernelOp::product: {
            double all = 1.0;
            for (const Kernel& part : kernel.parts) all *= diagonal(part, norm, sum, selves);
            return all;
        }
        case KernelOp::normalized: {
            const double inner = diagonal(kernel.parts[0], norm, sum, selves);
            return inner == 0.0 ? 0.0 : inner / std::abs(inner);
        }
        default: return diagonal_of_vector(kernel, norm, sum);
    }
}

namespace {

constexpr size_t huge_page = size_t(1) << 21;

std::align_val_t alignment_of(size_t bytes) { return std::align_val_t(bytes < 2 * huge_page ? 64 : huge_page); }

}  // namespace

void* allocate_lines(size_t bytes) {
    void* at = ::operator new(bytes, alignment_of(bytes));
#ifdef __linux__
    if (bytes >= 2 * huge_page) madvise(at, bytes, MADV_HUGEPAGE);  // may fail: then the memory is only slower
#endif
    return at;
}

void release_lines(void* at, size_t bytes) noexcept { ::operator delete(at, alignment_of(bytes)); }

double* kernel_workspace(size_t which, size_t n) {
    thread_local std::vector<std::vector<double>> workspaces;
    if (workspaces.size() <= which) workspaces.resize(which + 1);
    if (workspaces[which].size() < n) workspaces[which].resize(n, 0.0);
    return workspaces[which].data();
}

void Points::push(const Query& z) {
    const size_t at = size_++;
    if (sparse_) sparse_points_.resize(size_);
    else dense_.resize(lined(size_) * columns_, 0.0);
    norms_.resize(lined(size_), 0.0);
    sums_.resize(lined(size_), 0.0);
    selves_.resize(size_ * slots_);
    write(at, z);
}

void Points::replace(size_t at, const Query& z) { write(at, z); }

void Points::write(size_t at, const Query& z) {
    if (watched) changes.push_back({at, at, z.x});
    if (sparse_) {
        numbers_ += z.n - sparse_points_[at].x.size();
        sparse_points_[at].index.assign(z.index, z.index + z.n);
        sparse_points_[at].x.assign(z.x, z.x + z.n);
    } else {
        pending_.push_back({at, z.x});
        if (!z.lasting) settle();
    }
    norms_[at] = z.norm;
    sums_[at] = z.sum;
    std::copy(z.selves.begin(), z.selves.end(), selves_.begin() + ptrdiff_t(at * slots_));
}

void Points::write_pending() {
    constexpr size_t features = 64;   // written at a time: 4 KB of a line, which stay in the cache meanwhile
    constexpr size_t many_lanes = 4;  // so many vectors of a line are transposed together
    for (auto first = pending_.begin(), end = first; first != pending_.end(); first = end) {
        const size_t l = first->at / line;
        end = std::find_if(first, pending_.end(), [l](const Pending& each) { return each.at / line != l; });
        double* to = dense_.data() + l * columns_ * line;
        const double* lanes[line] = {};
        for (auto each = first; each != end; ++each)
            lanes[each->at % line] = each->x;  // the last vector of a slot wins
        if (line - size_t(std::count(lanes, lanes + line, nullptr)) >= many_lanes) {
            kernel_loops->write_line(lanes, columns_, to);
            continue;
        }
        for (size_t from = 0; from < columns_; from += features)
            for (size_t q = 0; q < line; ++q)
                for (size_t j = from; lanes[q] && j < std::min(from + features, columns_); ++j)
                    to[j * line + q] = lanes[q][j];
    }
    pending_.clear();
}

void Points::remove(size_t at) {
    settle();
    const size_t last = size_ - 1;
    if (watched && at != last) changes.push_back({at, last, nullptr});
    if (sparse_) {
        numbers_ -= sparse_points_[at].x.size();
        if (at != last) std::swap(sparse_points_[at], sparse_points_[last]);
        sparse_points_.pop_back();
    } else {
        double* from = dense_.data() + last / line * columns_ * line + last % line;
        double* to = dense_.data() + at / line * columns_ * line + at % line;
        for (size_t j = 0; j < columns_; ++j) {
            to[j * line] = from[j * line];
            from[j * line] = 0.0;
        }
        dense_.resize(lined(last) * columns_);
    }
    for (std::vector<double>* each : {&norms_, &sums_}) {
        (*each)[at] = (*each)[last];
        (*each)[last] = 0.0;
        each->resize(lined(last));
    }
    std::copy_n(selves_.begin() + ptrdiff_t(last * slots_), slots_, selves_.begin() + ptrdiff_t(at * slots_));
    selves_.resize(last * slots_);
    size_ = last;
}

void Points::clear() {
    const bool was_watched = watched;
    pending_.clear();
    std::vector<Change> so_far = std::move(changes);
    *this = Points(sparse_, columns_, slots_);
    watched = was_watched;
    changes = std::move(so_far);
}

double* Points::open(size_t count) {
    pending_.clear();
    size_ = count;
    dense_.resize(lined(count) * columns_, 0.0);
    norms_.resize(lined(count), 0.0);
    sums_.resize(lined(count), 0.0);
    selves_.resize(count * slots_);
    return dense_.data();
}

void Points::describe(const Query* zs) {
    for (size_t i = 0; i < size_; ++i) {
        norms_[i] = zs[i].norm;
        sums_[i] = zs[i].sum;
        std::copy(zs[i].selves.begin(), zs[i].selves.end(), selves_.begin() + ptrdiff_t(i * slots_));
    }
}

void Points::widen(size_t columns) {
    if (columns <= columns_) return;
    settle();
    if (!sparse_) {
        std::vector<double, LineAligned<double>> wide(lined(size_) * columns, 0.0);
        for (size_t g = 0; g * line < size_; ++g)
            std::copy_n(dense_line(g), columns_ * line, wide.begin() + ptrdiff_t(g * columns * line));
        dense_.swap(wide);
    }
    columns_ = columns;
}

double Points::value(size_t at, size_t column) const { return dense_line(at / line)[column * line + at % line]; }

Query Points::query(size_t at, std::vector<double>& buffer) const {
    Query z;
    if (sparse_) {
        z.x = sparse_points_[at].x.data();
        // A vector without features has no memory of its own, but null would mean a dense vector.
        static const int64_t no_index = 0;
        z.index = sparse_points_[at].index.empty() ? &no_index : sparse_points_[at].index.data();
        z.n = sparse_points_[at].x.size();
    } else {
        buffer.resize(columns_);
        for (size_t j = 0; j < columns_; ++j) buffer[j] = value(at, j);
        z.x = buffer.data();
        z.n = columns_;
    }
    z.norm = norms_[at];
    z.sum = sums_[at];
    z.selves.assign(selves(at), selves(at) + slots_);
    return z;
}

bool Points::same(size_t at, const Query& z) const {
    if (norms_[at] != z.norm || sums_[at] != z.sum) return false;
    if (sparse_) {
        const SparsePoint& point = sparse_points_[at];
        return point.x.size() == z.n && std::equal(point.x.begin(), point.x.end(), z.x) &&
               std::equal(point.index.begin(), point.index.end(), z.index);
    }
    for (size_t j = 0; j < columns_; ++j)
        if (value(at, j) != z.x[j]) return false;
    return true;
}

}  // namespace onepass
