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
    if (kernel.op == KernelOp::precomputed || kernel.op == KernelOp::foreign) kernel.slot = first++;
    for (Kernel& part : kernel.parts) first = number_slots(part, first);
    return first;
}

double diagonal(const Kernel& kernel, double norm, double sum, const double* selves) {
    const double* p = kernel.p;
    switch (kernel.op) {
        case KernelOp::constant: return p[0];
        case KernelOp::linear: return norm;
        case KernelOp::polynomial: {
            double power = 1.0;
            for (int i = 0; i < int(p[2]); ++i) power *= p[0] * norm + p[1];
            return power;
        }
        case KernelOp::rbf:
        case KernelOp::epanechnikov:
        case KernelOp::box:
        case KernelOp::laplacian:
        case KernelOp::chi2_exp: return 1.0;
        case KernelOp::sigmoid: return std::tanh(p[0] * norm + p[1]);
        case KernelOp::intersection:
        case KernelOp::chi2: return sum;
        case KernelOp::precomputed:
        case KernelOp::foreign: return selves[kernel.slot];
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
        case KernelOp::normalised: {
            const double inner = diagonal(kernel.parts[0], norm, sum, selves);
            return inner == 0.0 ? 0.0 : inner / std::abs(inner);
        }
    }
    return 0.0;
}

namespace {

constexpr size_t huge_page = size_t(1) << 21;

std::align_val_t alignment_of(size_t bytes) { return std::align_val_t(bytes < 2 * huge_page ? 64 : huge_page); }

}  // namespace

void* allocate_lines(size_t bytes) {
    void* at = ::operator new(bytes, alignment_of(bytes));
#ifdef __linux__
    if (bytes >= 2 * huge_page) madvise(at, bytes, MADV_HUGEPAGE);  // a wish: without it all is the same, but slower
#endif
    return at;
}

void release_lines(void* at, size_t bytes) noexcept { ::operator delete(at, alignment_of(bytes)); }

double* kernel_room(size_t which, size_t n) {
    thread_local std::vector<std::vector<double>> rooms;
    if (rooms.size() <= which) rooms.resize(which + 1);
    if (rooms[which].size() < n) rooms[which].resize(n, 0.0);
    return rooms[which].data();
}

void Points::push(const Query& row) {
    const size_t at = size_++;
    if (sparse_) rows_.resize(size_);
    else dense_.resize(lined(size_) * columns_, 0.0);
    norms_.resize(lined(size_), 0.0);
    sums_.resize(lined(size_), 0.0);
    selves_.resize(size_ * slots_);
    write(at, row);
}

void Points::replace(size_t at, const Query& row) { write(at, row); }

void Points::write(size_t at, const Query& row) {
    if (watched) changes.push_back({at, at, row.x});
    if (sparse_) {
        numbers_ += row.n - rows_[at].x.size();
        rows_[at].index.assign(row.index, row.index + row.n);
        rows_[at].x.assign(row.x, row.x + row.n);
    } else {
        waiting_.push_back({at, row.x});
        if (!row.lasting) settle();
    }
    norms_[at] = row.norm;
    sums_[at] = row.sum;
    std::copy(row.selves.begin(), row.selves.end(), selves_.begin() + ptrdiff_t(at * slots_));
}

void Points::write_waiting() {
    constexpr size_t features = 64;  // of a line at a time: 4 KB, which stay near while its rows come
    constexpr size_t many = 4;       // rows of a line: these go together
    for (auto first = waiting_.begin(), end = first; first != waiting_.end(); first = end) {
        const size_t l = first->at / line;
        end = std::find_if(first, waiting_.end(), [l](const Waiting& each) { return each.at / line != l; });
        double* to = dense_.data() + l * columns_ * line;
        const double* rows[line] = {};
        for (auto each = first; each != end; ++each) rows[each->at % line] = each->x;  // a slot's last row stays
        if (line - size_t(std::count(rows, rows + line, nullptr)) >= many) {
            kernel_loops->write_line(rows, columns_, to);
            continue;
        }
        for (size_t from = 0; from < columns_; from += features)
            for (size_t q = 0; q < line; ++q)
                for (size_t j = from; rows[q] && j < std::min(from + features, columns_); ++j)
                    to[j * line + q] = rows[q][j];
    }
    waiting_.clear();
}

void Points::remove(size_t at) {
    settle();
    const size_t last = size_ - 1;
    if (watched && at != last) changes.push_back({at, last, nullptr});
    if (sparse_) {
        numbers_ -= rows_[at].x.size();
        if (at != last) std::swap(rows_[at], rows_[last]);
        rows_.pop_back();
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
    waiting_.clear();
    std::vector<Change> so_far = std::move(changes);
    *this = Points(sparse_, columns_, slots_);
    watched = was_watched;
    changes = std::move(so_far);
}

double* Points::open(size_t count) {
    waiting_.clear();
    size_ = count;
    dense_.resize(lined(count) * columns_, 0.0);
    norms_.resize(lined(count), 0.0);
    sums_.resize(lined(count), 0.0);
    selves_.resize(count * slots_);
    return dense_.data();
}

void Points::describe(const Query* rows) {
    for (size_t i = 0; i < size_; ++i) {
        norms_[i] = rows[i].norm;
        sums_[i] = rows[i].sum;
        std::copy(rows[i].selves.begin(), rows[i].selves.end(), selves_.begin() + ptrdiff_t(i * slots_));
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

Query Points::query(size_t at, std::vector<double>& keep) const {
    Query row;
    if (sparse_) {
        row.x = rows_[at].x.data();
        row.index = rows_[at].index.data();
        row.n = rows_[at].x.size();
    } else {
        keep.resize(columns_);
        for (size_t j = 0; j < columns_; ++j) keep[j] = value(at, j);
        row.x = keep.data();
        row.n = columns_;
    }
    row.norm = norms_[at];
    row.sum = sums_[at];
    row.selves.assign(selves(at), selves(at) + slots_);
    return row;
}

bool Points::same(size_t at, const Query& row) const {
    if (norms_[at] != row.norm || sums_[at] != row.sum) return false;
    if (sparse_) {
        const SparsePoint& point = rows_[at];
        return point.x.size() == row.n && std::equal(point.x.begin(), point.x.end(), row.x) &&
               std::equal(point.index.begin(), point.index.end(), row.index);
    }
    for (size_t j = 0; j < columns_; ++j)
        if (value(at, j) != row.x[j]) return false;
    return true;
}

}  // namespace onepass
