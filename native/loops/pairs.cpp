// Ranking: an arriving example is paired with the earlier examples of its query whose relevance differs, oldest first.
// The difference of each pair is learned as a direction. Compiled once per instruction set.
#include "loops/pairs.hpp"

#include "loops/batches.hpp"

namespace onepass::ONEPASS_ISA {

// An arriving row, prepared for comparison with many others. phi = arriving row - other row, or the reverse if the
// other row is more relevant.
template <class Row>
struct Arrival;

template <>
struct Arrival<DenseRow<double>> {
    const DenseRow<double> row;
    Arrival(const DenseRow<double>& row, Difference&) : row(row) {}
    DenseValues<Minus> compare(const DenseRow<double>& other, bool ahead) const {
        return {ahead ? Minus{other.x, row.x} : Minus{row.x, other.x}, row.n};
    }
};

// The difference of sparse rows has the features of the arriving row in their order, then those that only the other row
// has. Nothing is sorted, and there is no branch on which features are shared, since it could not be predicted.
template <>
struct Arrival<SparseRow<double, int32_t>> {
    using Row = SparseRow<double, int32_t>;
    const Row row;
    const Difference room;

    Arrival(const Row& row, Difference& room) : row(row), room(room) {
        int32_t* __restrict index = room.index;
        room.arrived[0] = 0.0;
        for (size_t i = 0; i < row.n; ++i) {
            room.place[row.index[i]] = uint32_t(i + 1);
            room.arrived[i + 1] = row.x[i];
            index[i + 1] = row.index[i];
        }
    }
    Arrival(const Arrival&) = delete;
    ~Arrival() {
        for (size_t i = 0; i < row.n; ++i) room.place[row.index[i]] = 0;
    }

    Row compare(const Row& other, bool ahead) const {
        const uint32_t* __restrict place = room.place;
        const double* __restrict arrived = room.arrived;
        double* __restrict x = room.x;
        int32_t* __restrict index = room.index;
        const double sign = ahead ? -1.0 : 1.0;
        for (size_t i = 1; i <= row.n; ++i) x[i] = sign * arrived[i];
        size_t end = row.n + 1;
        for (size_t i = 0; i < other.n; ++i) {
            const size_t shared = place[other.index[i]], at = shared ? shared : end;
            x[at] = sign * (arrived[shared] - other.x[i]);
            index[at] = other.index[i];
            end += !shared;
        }
        return {x + 1, index + 1, end - 1};
    }
};

inline DenseRow<double> plain_row(const Table& X, size_t i) { return {X.values + i * X.columns, X.columns}; }
inline SparseRow<double, int32_t> plain_row(const Csr& X, size_t i) {
    return {X.values + X.starts[i], X.indices + X.starts[i], size_t(X.starts[i + 1] - X.starts[i])};
}

// Are the indices of all rows sorted and inside the table?
inline bool valid(const Table&) { return true; }
inline bool valid(const Csr& X) {
    for (size_t i = 0; i < X.rows; ++i) {
        const int32_t begin = X.starts[i], end = X.starts[i + 1];
        if (begin < 0 || end < begin || size_t(end) > X.nonzeros) return false;
        if (order(X.indices + begin, size_t(end - begin), X.columns) != Order::sorted) return false;
    }
    return true;
}

// Are differences with this row, and products with its importance, finite for every other such row?
template <class Row>
inline bool is_small(const Row& row, double importance) {
    return finite(norm(row.x, row.n)) && importance < 1e150;
}

// Are all differences of example i and their importances finite? If not, none of its pairs is learned.
template <class Row, class Batch>
bool all_finite(const Arrival<Row>& arrival, const Batch& X, size_t i, const RankedRows& in) {
    for (size_t j = size_t(in.begin[i]); j < i; ++j) {
        if (in.relevance[j] == in.relevance[i]) continue;
        const auto row = arrival.compare(plain_row(X, j), false);
        for (size_t e = 0; e < row.n; ++e)
            if (!finite(row.x[e])) return false;
        if (!finite(in.importance[i] * in.importance[j])) return false;
    }
    return true;
}

// Learns a direction whose margin should reach 1. Differences of dense rows are computed first for all but plain
// models.
template <Kind kind, class Row>
inline Status learn_direction(Model& M, const Row& row, double importance) {
    if constexpr (is_difference<Row> && kind != Kind::plain) {
        thread_local Buffer difference;
        if (difference.size() < row.n) difference.grow(row.n);
        double* x = difference.data();
        for (size_t i = 0; i < row.n; ++i) x[i] = row.x[i];
        return learn_row<Path<kind>>(M, DenseRow<double>{x, row.n}, 1.0, importance, 1.0, nullptr, nullptr, 0.0);
    } else {
        return learn_row<Path<kind>>(M, row, 1.0, importance, 1.0, nullptr, nullptr, 0.0);
    }
}

// Learns the examples in.first, in.first + 1, … The row of the outcome is the first that was refused: none of its pairs
// is learned.
template <Kind kind, class Batch>
Outcome learn_pairs_by(Model& M, const Batch& X, const RankedRows& in, Difference& room) {
    if (!valid(X)) return {Status::bad_starts, in.first, 0, 0.0};
    constexpr size_t block = 64;
    size_t after_large = 0;  // one past the last example whose differences could overflow
    for (size_t i = 0; i < X.rows; ++i) {
        const auto row = plain_row(X, i);
        if (!is_small(row, in.importance[i])) after_large = i + 1;
        if (i < in.first) continue;
        if (in.scores) score_row(M, row, in.scores + (i - in.first), M.scores.data(), 0.0);
        const size_t begin = size_t(in.begin[i]);
        M.transaction.begin_example(M);
        RollbackGuard example(M);
        const Arrival<decltype(plain_row(X, 0))> arrival(row, room);
        if (after_large > begin && !all_finite(arrival, X, i, in)) return {Status::overflow, i, 0, 0.0};
        for (size_t from = begin; from < i; from += block) {
            size_t rivals[block], count = 0;  // found without a branch, which could not be predicted
            for (size_t j = from, until = std::min(from + block, i); j < until; ++j) {
                rivals[count] = j;
                count += in.relevance[j] != in.relevance[i];
            }
            for (size_t k = 0; k < count; ++k) {
                const size_t j = rivals[k];
                const auto direction = arrival.compare(plain_row(X, j), in.relevance[j] > in.relevance[i]);
                const Status status = learn_direction<kind>(M, direction, in.importance[i] * in.importance[j]);
                if (status == Status::ok) continue;
                return {status == Status::not_finite ? Status::overflow : status, i, 0, 0.0};
            }
        }
        example.commit();
    }
    return {Status::ok, X.rows, 0, 0.0};
}

template <class Batch>
Outcome learn_pairs(Model& M, const Batch& X, const RankedRows& in, Difference& room) {
    return kind_of(M) == Kind::plain ? learn_pairs_by<Kind::plain>(M, X, in, room)
                                     : learn_pairs_by<Kind::general>(M, X, in, room);
}
template Outcome learn_pairs(Model&, const Table&, const RankedRows&, Difference&);
template Outcome learn_pairs(Model&, const Csr&, const RankedRows&, Difference&);

}  // namespace onepass::ONEPASS_ISA
