// What only reads the model: predictions, variances, the errors on a stored set, the validation of rows. Compiled once
// per instruction set.
#include "core/rules.hpp"
#include "loops/batches.hpp"
#include "loops/gaussian.hpp"
#include "loops/readers.hpp"

namespace onepass::ONEPASS_ISA {

// Scores from the pocket, from weights with pending L1, or through the link.
template <class Row>
inline void score_otherwise(const Model& M, const Row& row, double* out, double* scratch) {
    const Weights& w = M.w;
    const bool pocket = w.pocket.on && w.pocket.best_run > 0.0;
    double* decoded = w.l1.on && !pocket ? M.gathered(row.n * w.stride) : nullptr;
    const Reading read = pocket ? Reading{w.pocket.v.data(), w.stride, false, w.pocket.a, w.pocket.bias.data()}
                                : read_current(M, row, decoded);
    scores_of(M, row, read, out, scratch);
}

// The scores of one row by the readout. `base` is for votes: the score of each voter begins there.
template <class Row>
void score_row(const Model& M, const Row& row, double* out, double* scratch, double base) {
    const Weights& w = M.w;
    if (w.votes.on)
        return with_numbers(row, [&](const double* x, const int64_t* at) { M.count_votes(x, at, row.n, base, out); });
    if (w.l1.on || w.p_norm.on() || (w.pocket.on && w.pocket.best_run > 0.0))
        return score_otherwise(M, row, out, scratch);
    const bool average = w.average.on() && w.average.rounds > 0;
    if (w.stride == 1) {
        const double dot = row.dot_norm(w.cells.data(), w.pitch).dot;
        out[0] = average ? (w.average.A * dot - row.dot_norm(w.average.z.data()).dot) / w.average.rounds +
                               w.average.bias_sum[0] / w.average.rounds * M.constant
                         : w.a * dot + w.bias[0] * M.constant;
        return;
    }
    class_scores_wide(row, w.cells.data(), w.pitch, w.lanes(), scratch);
    if (!average) {
        for (size_t r = 0; r < w.outputs; ++r) out[r] = w.a * scratch[r] + w.bias[r] * M.constant;
        return;
    }
    for (size_t r = 0; r < w.outputs; ++r) out[r] = w.average.A * scratch[r] + w.average.bias_sum[r] * M.constant;
    class_scores_wide(row, w.average.z.data(), w.stride, w.lanes(), scratch);
    for (size_t r = 0; r < w.outputs; ++r) out[r] = (out[r] - scratch[r]) / w.average.rounds;
}

// x' Sigma x of a row, for each output with a Sigma of its own.
template <class Row>
inline void variance_row(const Model& M, const Row& row, double* out) {
    const Covariance& S = M.w.sigma;
    size_t n = S.full ? S.registered : row.n;
    for (size_t i = 0; S.full && i < row.n; ++i)
        if (row.column(i) + S.constants >= n) n = S.size;  // a feature that was never learned
    double *x = covariance_room(2 * n + 24), *z = x + n + 8;
    double constant;
    for (size_t r = 0; r < (S.shared ? 1 : M.w.outputs); ++r) {
        if (!S.full) read_variances(M.w, row, r, x);
        out[r] = !S.full                ? through_diagonal(M, row, r, x, z, &constant)
                 : S.form == Form::chol ? variance_by_factor(M, row, r, n, x, z)
                                        : through_full(M, row, r, n, x, z);
    }
}

// The scores of one row as predictions: the forecast of Vovk, Azoury and Warmuth is divided by 1 + v, the initial
// prediction is added, and VW's predictions are clipped to the labels seen so far.
template <class Row>
void predict_row(const Model& M, const Row& row, double* out, double* scratch, double base) {
    score_row(M, row, out, scratch, base);
    if (M.w.sigma.vaw) {
        double v;  // one number: all outputs share Sigma
        variance_row(M, row, &v);
        for (size_t r = 0; r < M.w.outputs; ++r) out[r] /= 1.0 + v;
    }
    if (base != 0.0 && !M.w.votes.on) out[0] += base;
    if (M.clips) {
        const double low = M.state[VWSlots::low], high = M.state[VWSlots::high];
        out[0] = out[0] < low ? low : (out[0] > high ? high : out[0]);
    }
}

template void predict_row(const Model&, const DenseRow<double>&, double*, double*, double);
template void predict_row(const Model&, const SparseRow<double, int32_t>&, double*, double*, double);
template void predict_row(const Model&, const SparseRow<double, int64_t>&, double*, double*, double);

template void score_row(const Model&, const DenseRow<double>&, double*, double*, double);
template void score_row(const Model&, const SparseRow<double, int32_t>&, double*, double*, double);

template <class Batch>
void score(const Model& M, const Batch& X, const double* base, double* scores) {
    double* scratch = M.scratch();
    RowOf<Batch> row{};
    for (size_t i = 0; i < X.rows; ++i)
        if (read_row(X, i, row) == Status::ok)
            predict_row(M, row, scores + i * M.w.outputs, scratch, base ? base[i] : 0.0);
}

// Validates rows. Rows whose norm overflows are well formed.
template <class Batch>
Outcome check(const Batch& X, size_t from_row) {
    RowOf<Batch> row{};
    for (size_t i = from_row; i < X.rows; ++i) {
        Status status = read_row(X, i, row);
        if (status == Status::ok && !finite(norm(row.x, row.n))) status = Status::not_finite;
        if (status == Status::ok) continue;
        const Outcome outcome = explain(X, i, status);
        if (outcome.status != Status::overflow) return outcome;
    }
    return {};
}

// The class that the current weights predict.
template <class Row>
size_t class_of(const Model& M, const Row& row) {
    double* scores = M.scratch();
    const size_t own = M.w.stride;
    scores_of(M, row, read_current(M, row, M.w.l1.on ? M.gathered(row.n * own) : nullptr), scores, scores);
    if (own == 1) return scores[0] > 0.0;
    size_t best = 0;
    for (size_t r = 1; r < M.w.outputs; ++r)
        if (scores[r] > scores[best]) best = r;
    return best;
}

// so_far plus the importance of the rows that the current weights assign to a wrong class.
template <class Batch>
double errors(const Model& M, const Batch& X, const double* y, const double* importance, double so_far) {
    RowOf<Batch> row{};
    for (size_t i = 0; i < X.rows; ++i)
        if (read_row(X, i, row) == Status::ok && double(class_of(M, row)) != y[i])
            so_far += importance ? importance[i] : 1.0;
    return so_far;
}

template <class Batch>
void variance(const Model& M, const Batch& X, double* variances) {
    const size_t own = M.w.sigma.shared ? 1 : M.w.outputs;
    RowOf<Batch> row{};
    for (size_t i = 0; i < X.rows; ++i)
        if (read_row(X, i, row) == Status::ok) variance_row(M, row, variances + i * own);
}

void variance_one(const Model& M, const double* x, const int64_t* index, size_t n, double* variances) {
    variance_row(M, SparseRow<double, int64_t>{x, index, n}, variances);
}

#define ONEPASS_READ(Batch)                                                                   \
    template void score(const Model&, const Batch&, const double*, double*);                  \
    template Outcome check(const Batch&, size_t);                                             \
    template double errors(const Model&, const Batch&, const double*, const double*, double); \
    template void variance(const Model&, const Batch&, double*);
ONEPASS_READ(Table)
ONEPASS_READ(Csr)

}  // namespace onepass::ONEPASS_ISA
