#include "core/rows.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace onepass {

template <class I>
MergedRow<I> merge_row(const double* x, const I* index, size_t n) {
    thread_local std::vector<std::pair<I, double>> entries;
    thread_local std::vector<double> values;
    thread_local std::vector<I> indices;
    entries.clear();
    values.clear();
    indices.clear();
    for (size_t i = 0; i < n; ++i) entries.emplace_back(index[i], x[i]);
    std::stable_sort(entries.begin(), entries.end(), [](const auto& p, const auto& q) { return p.first < q.first; });
    for (const auto& [at, value] : entries) {
        if (!indices.empty() && indices.back() == at) {
            values.back() += value;
        } else {
            indices.push_back(at);
            values.push_back(value);
        }
    }
    return {values.data(), indices.data(), values.size()};
}

template MergedRow<int32_t> merge_row(const double*, const int32_t*, size_t);
template MergedRow<int64_t> merge_row(const double*, const int64_t*, size_t);

RowCopy& row_copy(size_t n) {
    thread_local std::vector<double> values;
    thread_local std::vector<int64_t> indices;
    thread_local RowCopy copy;
    if (values.size() < n) {
        values.resize(n);
        indices.resize(n);
    }
    copy = {values.data(), indices.data()};
    return copy;
}

int32_t* NarrowIndices::room(size_t n) {
    thread_local std::vector<int32_t> narrow;
    if (narrow.size() < n) narrow.resize(n);
    return narrow.data();
}

}  // namespace onepass
