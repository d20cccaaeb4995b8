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

// An element of the difference of two sparse rows: a, where `left`, less b, where `right`. Whose turn it is, is a
// coin's toss, so it is masked, not branched on. False where nothing is left.
inline bool subtract(const double& a, const double& b, bool left, bool right, uint64_t minus, double* out) {
    uint64_t bits_a, bits_b, bits;
    std::memcpy(&bits_a, &a, sizeof a);
    std::memcpy(&bits_b, &b, sizeof b);
    bits_a &= 0 - uint64_t(left);
    bits_b &= 0 - uint64_t(right);
    double p, q;
    std::memcpy(&p, &bits_a, sizeof p);
    std::memcpy(&q, &bits_b, sizeof q);
    p -= q;
    std::memcpy(&bits, &p, sizeof bits);
    const uint64_t signed_bits = bits ^ minus;
    std::memcpy(out, &signed_bits, sizeof signed_bits);
    return bits << 1;
}

// The same of two sorted sparse rows: sorted again, zeros left out. Both ends are merged at once, as each step waits
// for the one before it.
template <class I>
inline SparseRow<double, int64_t> difference(const SparseRow<double, I>& a, const SparseRow<double, I>& b, double sign,
                                             Difference& out) {
    const uint64_t minus = uint64_t(sign < 0.0) << 63;
    const ptrdiff_t room = ptrdiff_t(a.n + b.n);
    const double* __restrict ax = a.x, * __restrict bx = b.x;
    const I* __restrict at = a.index, * __restrict bt = b.index;
    double* __restrict x = out.x;
    int64_t* __restrict index = out.index;
    ptrdiff_t i = 0, j = 0, i_last = ptrdiff_t(a.n) - 1, j_last = ptrdiff_t(b.n) - 1;
    ptrdiff_t front = 0, back = room;
    while (i < i_last && j < j_last) {  // two of each are left, so the two ends take different ones
        const I p = at[i], q = bt[j], r = at[i_last], s = bt[j_last];
        index[front] = int64_t(p < q ? p : q);
        front += subtract(ax[i], bx[j], p <= q, q <= p, minus, x + front);
        index[back - 1] = int64_t(r > s ? r : s);
        back -= subtract(ax[i_last], bx[j_last], r >= s, s >= r, minus, x + back - 1);
        i += p <= q;
        j += q <= p;
        i_last -= r >= s;
        j_last -= s >= r;
    }
    for (; i <= i_last && j <= j_last;) {
        const I p = at[i], q = bt[j];
        index[front] = int64_t(p < q ? p : q);
        front += subtract(ax[i], bx[j], p <= q, q <= p, minus, x + front);
        i += p <= q;
        j += q <= p;
    }
    for (; i <= i_last; ++i) {
        index[front] = int64_t(at[i]);
        front += subtract(ax[i], 0.0, true, false, minus, x + front);
    }
    for (; j <= j_last; ++j) {
        index[front] = int64_t(bt[j]);
        front += subtract(0.0, bx[j], false, true, minus, x + front);
    }
    for (; back < room; ++back, ++front) {
        x[front] = x[back];
        index[front] = index[back];
    }
    return {x, index, size_t(front)};
}

template <class V>
inline DenseRow<V> plain_row(const DenseBatch<V>& X, size_t i) {
    return {X.values + i * X.columns, X.columns};
}
template <class V, class I>
inline SparseRow<V, I> plain_row(const CsrBatch<V, I>& X, size_t i) {
    return {X.values + X.starts[i], X.indices + X.starts[i], size_t(X.starts[i + 1] - X.starts[i])};
}

// Are all rows sorted, and inside?
template <class V>
inline bool clean(const DenseBatch<V>&) {
    return true;
}
template <class V, class I>
inline bool clean(const CsrBatch<V, I>& X) {
    for (size_t i = 0; i < X.rows; ++i) {
        const I begin = X.starts[i], end = X.starts[i + 1];
        if (begin < 0 || end < begin || size_t(end) > X.nonzeros) return false;
        if (order(X.indices + begin, size_t(end - begin), X.columns) != Order::sorted) return false;
    }
    return true;
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
template <class Path, class Batch>
Outcome learn_pairs_by(Model& M, const Batch& X, const Meetings& in, Difference& phi) {
    if (!clean(X)) return {Status::bad_starts, in.first, 0, 0.0};
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
                learn_row<Path>(M, direction, 1.0, in.importance[i] * in.importance[j], 1.0, nullptr, nullptr);
            if (status != Status::ok) return {status == Status::not_finite ? Status::overflow : status, i, 0, 0.0};
        }
    }
    return {Status::ok, X.rows, 0, 0.0};
}

template <class Batch>
Outcome learn_pairs(Model& M, const Batch& X, const Meetings& in, Difference& phi) {
    return is_plain(M) ? learn_pairs_by<Path<false, true>>(M, X, in, phi)
                       : learn_pairs_by<Path<false, false>>(M, X, in, phi);
}

}  // namespace onepass::ONEPASS_ISA
