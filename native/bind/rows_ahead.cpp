#include "bind/rows_ahead.hpp"

#include <algorithm>

namespace onepass {

void RowsAhead::compute(Expansion& f, size_t slots, const double* x, size_t columns, size_t count, const double* next) {
    queries_.resize(count);
    stride_ = Points::lined(f.size() + 2 * most);  // every row may add a vector
    if (values_.size() < most * stride_) values_.resize(most * stride_);
    double* outs[most];
    for (size_t q = 0; q < count; ++q) {
        queries_[q].x = x + q * columns;
        queries_[q].n = columns;
        queries_[q].selves.resize(slots);
        queries_[q].lasting = true;
        outs[q] = values_.data() + q * stride_;
    }
    if (points_.columns() != columns) points_ = Points(false, columns, slots);
    kernel_loops->prepare_rows(*f.kernel, queries_.data(), count, points_);
    computed_.fill(false);
    next_ = next;
    f.points.watched = true;
    f.points.changes.clear();
    kernel_loops->rows(*f.kernel, queries_.data(), 0, count, points_, f.points, 0, f.size(), outs, nullptr);
}

double RowsAhead::among_themselves(const Kernel& kernel, size_t q, size_t earlier) {
    const size_t line = earlier / Points::line, from = line * Points::line;
    if (!computed_[line]) {
        double* outs[most];
        for (size_t p = 0; p < most; ++p) outs[p] = among_ + p * most;
        const size_t count = queries_.size(), to = std::min(from + Points::line, count);
        kernel_loops->rows(kernel, queries_.data(), from, count, points_, points_, from, to, outs,
                           next_ ? next_ + from * points_.columns() : nullptr);
        computed_[line] = true;
    }
    return among_[q * most + earlier];
}

const double* RowsAhead::up_to_date(const Expansion& f, size_t q) {
    double* k = values_.data() + q * stride_;
    unknown_.clear();
    for (const Points::Change& change : f.points.changes) {
        const auto was = change.x ? unknown_.end() : std::find(unknown_.begin(), unknown_.end(), change.from);
        const auto row = std::find_if(queries_.begin(), queries_.begin() + ptrdiff_t(q),
                                      [&](const Query& each) { return each.x == change.x; });
        const bool known = change.x ? row != queries_.begin() + ptrdiff_t(q) : was == unknown_.end();
        std::erase(unknown_, change.at);
        if (!known) unknown_.push_back(change.at);
        else k[change.at] = change.x ? among_themselves(*f.kernel, q, size_t(row - queries_.begin())) : k[change.from];
    }
    for (size_t at : unknown_) {
        const size_t start = at / Points::line * Points::line, end = std::min(start + Points::line, f.size());
        if (at < f.size()) kernel_loops->row(*f.kernel, queries_[q], f.points, start, end, k + start);
    }
    return k;
}

}  // namespace onepass
