// Ranking: an arriving example is paired with those of its query before it whose relevance differs, oldest first, and
// the difference is learned as a direction. Included once per instruction set, by loops.cpp.
#pragma once

namespace onepass::ONEPASS_ISA {

// phi = sign * (a - b), written into `out`.
template <class V>
inline DenseRow<double> difference(const DenseRow<V>& a, const DenseRow<V>& b, double sign, Difference& out) {
    const V* __restrict p = a.x, * __restrict q = b.x;
    double* __restrict x = out.x;
    for (size_t i = 0; i < a.n; ++i) x[i] = sign * (double(p[i]) - double(q[i]));
    return {x, a.n};
}

// The same of two sorted sparse rows: sorted again, zeros left out. Which row an element comes from is a coin's toss,
// so there is no branch on it; both ends are merged at once, as each step waits for the one before it.
template <class V, class I>
inline SparseRow<double, int64_t> difference(const SparseRow<V, I>& a, const SparseRow<V, I>& b, double sign,
                                             Difference& out) {
    const size_t room = a.n + b.n;
    double *x = out.x, *x_end = out.x + room;
    int64_t *index = out.index, *index_end = out.index + room;
    ptrdiff_t i = 0, j = 0, i_last = ptrdiff_t(a.n) - 1, j_last = ptrdiff_t(b.n) - 1;
    size_t front = 0, back = 0;
    while (i < i_last && j < j_last) {  // two of each are left, so the two ends take different ones
        const I p = a.index[i], q = b.index[j];
        const double a_first = double(a.x[i]), b_first = double(b.x[j]);
        const double up = sign * ((p <= q ? a_first : 0.0) - (q <= p ? b_first : 0.0));
        x[front] = up;
        index[front] = int64_t(p < q ? p : q);
        front += up != 0.0;
        i += p <= q;
        j += q <= p;
        const I r = a.index[i_last], s = b.index[j_last];
        const double a_last = double(a.x[i_last]), b_last = double(b.x[j_last]);
        const double down = sign * ((r >= s ? a_last : 0.0) - (s >= r ? b_last : 0.0));
        x_end[-1 - ptrdiff_t(back)] = down;
        index_end[-1 - ptrdiff_t(back)] = int64_t(r > s ? r : s);
        back += down != 0.0;
        i_last -= r >= s;
        j_last -= s >= r;
    }
    while (i <= i_last || j <= j_last) {
        const bool only_a = j > j_last, only_b = i > i_last;
        const bool take_a = !only_b && (only_a || a.index[i] <= b.index[j]);
        const bool take_b = !only_a && (only_b || b.index[j] <= a.index[i]);
        const double value = sign * ((take_a ? double(a.x[i]) : 0.0) - (take_b ? double(b.x[j]) : 0.0));
        x[front] = value;
        index[front] = int64_t(take_a ? a.index[i] : b.index[j]);
        front += value != 0.0;
        i += take_a;
        j += take_b;
    }
    std::memmove(x + front, x_end - back, back * sizeof(double));
    std::memmove(index + front, index_end - back, back * sizeof(int64_t));
    return {x, index, front + back};
}

// Can neither a difference of this row nor a product of its importance be infinite, whatever the other row?
template <class Row>
inline bool tame(const Row& row, double importance) {
    return finite(norm(row.x, row.n)) && importance < 1e150;
}

// Are all differences of example i, and their importances, finite? If not, none of its pairs is learned.
template <class Batch>
bool all_finite(const Batch& X, size_t i, const Meetings& in, Difference& phi) {
    for (size_t j = size_t(in.begin[i]); j < i; ++j) {
        if (in.relevance[j] == in.relevance[i]) continue;
        const auto row = difference(plain_row(X, i), plain_row(X, j), 1.0, phi);
        for (size_t e = 0; e < row.n; ++e)
            if (!finite(row.x[e])) return false;
        if (!finite(in.importance[i] * in.importance[j])) return false;
    }
    return true;
}

// Learns examples in.first, in.first + 1, ...; the outcome's row is the first that was not.
template <class Batch>
Outcome learn_pairs(Model& M, const Batch& X, const Meetings& in, Difference& phi) {
    if (!clean(X, 0, X.rows)) return {Status::bad_starts, in.first, 0, 0.0};
    size_t after_wild = 0;  // one past the last example that is not tame
    for (size_t i = 0; i < X.rows; ++i) {
        const auto row = plain_row(X, i);
        if (!tame(row, in.importance[i])) after_wild = i + 1;
        if (i < in.first) continue;
        if (in.scores) score_row(M, row, in.scores + (i - in.first), M.scores.data());
        const size_t begin = size_t(in.begin[i]);
        if (after_wild > begin && !all_finite(X, i, in, phi)) return {Status::overflow, i, 0, 0.0};
        for (size_t j = begin; j < i; ++j) {
            if (in.relevance[j] == in.relevance[i]) continue;
            const double sign = in.relevance[j] < in.relevance[i] ? 1.0 : -1.0;
            const auto direction = difference(row, plain_row(X, j), sign, phi);
            const Status status =
                learn_row<false>(M, direction, 1.0, in.importance[i] * in.importance[j], 1.0, nullptr, nullptr);
            if (status != Status::ok) return {status == Status::not_finite ? Status::overflow : status, i, 0, 0.0};
        }
    }
    return {Status::ok, X.rows, 0, 0.0};
}

}  // namespace onepass::ONEPASS_ISA
