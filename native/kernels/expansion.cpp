#include "kernels/expansion.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/memory.hpp"

namespace onepass {

namespace {

constexpr double smallest_scale = 1e-9, largest_scale = 1e9;
constexpr double recompute_every = 1000.0;
constexpr double sparse_overhead = 96.0;                                    // bytes beside a sparse row's numbers
constexpr double reinvert_every = 500.0, tolerated = 1e-7, jitter = 1e-10;  // or every 4n: O(n^2) an insertion

// Row and column i of a square table away; the last ones take their place.
void drop(Rows& rows, size_t i) {
    for (std::vector<double>& row : rows) {
        row[i] = row.back();
        row.pop_back();
    }
    std::swap(rows[i], rows.back());
    rows.pop_back();
}

void drop(std::vector<double>& values, size_t i) {
    values[i] = values.back();
    values.pop_back();
}

}  // namespace

void Expansion::begin(const Kernel* with, bool sparse, size_t columns, size_t slots) {
    kernel = with;
    points = Points(sparse, columns, slots);
}

void Expansion::set_outputs(size_t count) {
    const size_t wanted = count > 2 ? count : 1, before = outputs();
    if (wanted == before) return;
    if (before == 1 && own_class) {
        const std::vector<double> both = coef[0];
        coef.assign(wanted, std::vector<double>(both.size(), 0.0));
        for (size_t i = 0; i < both.size(); ++i) coef[both[i] < 0.0 ? 0 : 1][i] = std::abs(both[i]);
    } else if (before == 1) {
        std::vector<double> half = coef[0];
        for (double& each : half) each *= 0.5;
        coef.assign(wanted, std::vector<double>(half.size(), 0.0));
        coef[1] = half;
        for (double& each : half) each = -each;
        coef[0] = half;
        ww *= 0.5;
    } else {
        coef.resize(wanted, std::vector<double>(coef[0].size(), 0.0));
    }
}

void Expansion::negate() {
    for (std::vector<double>& row : coef)
        for (double& each : row) each = -each;
    for (double& each : values) each = -each;
}

double Expansion::squared(size_t i) const {
    double sum = 0.0;
    for (size_t r = 0; r < outputs(); ++r) sum += c(i, r) * c(i, r);
    return sum;
}

double Expansion::largest() const {
    double most = 0.0;
    for (const std::vector<double>& row : coef) most = std::max(most, kernel_loops->largest(row.data(), row.size()));
    return std::abs(scale) * most;
}

const double* Expansion::row(const Query& x) {
    if (k_.size() < Points::lined(size())) k_.resize(2 * Points::lined(size()));
    kernel_loops->row(*kernel, x, points, 0, size(), k_.data());
    return k_.data();
}

void Expansion::score(const double* k, double* out) const {
    for (size_t r = 0; r < outputs(); ++r) out[r] = scale * kernel_loops->dot(coef[r].data(), k, size());
}

double Expansion::value(size_t i, size_t r) {
    const double* k;
    if (keeps_gram) {
        k = gram[i].data();
    } else {
        const Query x = points.query(i, keep_);
        room_.resize(Points::lined(size()));
        kernel_loops->row(*kernel, x, points, 0, size(), room_.data());
        k = room_.data();
    }
    return scale * kernel_loops->dot(coef[r].data(), k, size());
}

double Expansion::bytes_with(size_t more, size_t columns, size_t outputs, size_t numbers) const {
    const double n = double(size() + more), tables = keeps_gram + keeps_inverse + keeps_covariance;
    const double beside = double(outputs) + 7.0 + 2.0 * tables * n;  // a table's rows grow by doubling
    if (!points.sparse()) return 8.0 * n * (double(columns) + beside);
    return 16.0 * double(points.numbers() + more * numbers) + n * (8.0 * beside + sparse_overhead);
}

// Looks the limit up, and grants twice what is needed. Dense rows are copied where their room grows: both must fit.
bool Expansion::grant(const Query& x) {
    const double wanted = bytes_with(1, points.columns(), outputs(), x.n);
    if (wanted <= small_tables) {
        granted_ = small_tables;
        return true;
    }
    const double limit = memory_limit_of_rows(), here = points.sparse() ? 0.0 : wanted;
    const double most = std::min(2.0 * wanted, limit - here);
    if (wanted > most) return false;
    granted_ = most;
    points.reserve(size_t(double(size() + 1) * (most / wanted)));
    return true;
}

void Expansion::rescale(double factor) {
    if (factor == 1.0) return;
    if (factor == 0.0) return clear();
    scale *= factor;
    ww *= factor * factor;
    for (double& each : values) each *= factor;
    if (!(std::abs(scale) >= smallest_scale && std::abs(scale) <= largest_scale)) fold();
}

void Expansion::fold() {
    for (std::vector<double>& row : coef)
        for (double& each : row) each *= scale;
    scale = 1.0;
}

void Expansion::append(const Query& x, const double* k, double ktt, const double* scores, const double* row,
                       double born) {
    const size_t n = size();
    if (keeps_gram) {
        for (size_t i = 0; i < n; ++i) gram[i].push_back(k[i]);
        gram.emplace_back(k, k + n);
        gram.back().push_back(ktt);
    }
    if (keeps_values) {
        kernel_loops->axpy(row[0], k, values.data(), n);
        values.push_back(scores[0] + row[0] * ktt);
    }
    if (follows_norm)
        for (size_t r = 0; r < outputs(); ++r) ww += 2.0 * row[r] * scores[r] + row[r] * row[r] * ktt;
    points.push(x);
    birth.push_back(born);
    diagonals.push_back(ktt);
    for (size_t r = 0; r < outputs(); ++r) {
        coef[r].resize(Points::lined(n + 1), 0.0);
        coef[r][n] = row[r] / scale;
    }
    count_change();
}

void Expansion::count_change() {
    changes += 1.0;
    if (changes < std::max(recompute_every, double(size()))) return;
    if (follows_norm) recompute_norm();
    if (keeps_values) recompute_values();
    changes = 0.0;
}

void Expansion::take_out_of_norm(size_t i) {
    for (size_t r = 0; r < outputs(); ++r) ww += c(i, r) * (c(i, r) * diagonals[i] - 2.0 * value(i, r));
    ww = std::max(0.0, ww);
}

void Expansion::replace(size_t i, const Query& x, const double* k, double ktt, const double* scores, const double* row,
                        double born) {
    const size_t n = size();
    if (follows_norm) {
        take_out_of_norm(i);
        for (size_t r = 0; r < outputs(); ++r) ww += 2.0 * row[r] * scores[r] + row[r] * row[r] * ktt;
    }
    if (keeps_values) {
        kernel_loops->axpy(-c(i), gram[i].data(), values.data(), n);
        kernel_loops->axpy(row[0], k, values.data(), n);
        values[i] = scores[0] + row[0] * ktt;
    }
    if (keeps_gram) {
        for (size_t j = 0; j < n; ++j) gram[i][j] = gram[j][i] = k[j];
        gram[i][i] = ktt;
    }
    points.replace(i, x);
    birth[i] = born;
    diagonals[i] = ktt;
    for (size_t r = 0; r < outputs(); ++r) coef[r][i] = row[r] / scale;
    count_change();
}

void Expansion::add_to(size_t i, const double* row) {
    for (size_t r = 0; r < outputs(); ++r) coef[r][i] += row[r] / scale;
}

void Expansion::remove(size_t i) {
    const size_t last = size() - 1;
    if (follows_norm) take_out_of_norm(i);
    if (keeps_values) {
        kernel_loops->axpy(-c(i), gram[i].data(), values.data(), size());
        drop(values, i);
    }
    if (keeps_gram) drop(gram, i);
    points.remove(i);
    drop(birth, i);
    drop(diagonals, i);
    for (std::vector<double>& row : coef) {
        row[i] = row[last];
        row[last] = 0.0;
        row.resize(Points::lined(last));
    }
}

void Expansion::clear() {
    points.clear();
    for (std::vector<double>& row : coef) row.clear();
    birth.clear();
    diagonals.clear();
    gram.clear();
    inverse.clear();
    covariance.clear();
    values.clear();
    scale = 1.0;
    ww = 0.0;
}

size_t Expansion::oldest() const { return kernel_loops->first_least(birth.data(), size()); }

size_t Expansion::least(const std::vector<double>& scores) const {
    size_t best = 0;
    for (size_t i = 1; i < size(); ++i)
        if (scores[i] < scores[best] || (scores[i] == scores[best] && birth[i] < birth[best])) best = i;
    return best;
}

std::vector<double> Expansion::solve(const double* k) const {
    std::vector<double> d(size());
    for (size_t i = 0; i < size(); ++i) d[i] = kernel_loops->dot(inverse[i].data(), k, size());
    return d;
}

void Expansion::extend_inverse(const std::vector<double>& d, double delta2) {
    const size_t n = d.size();
    std::vector<double> last(n + 1);
    for (size_t i = 0; i < n; ++i) {
        kernel_loops->axpy(d[i] / delta2, d.data(), inverse[i].data(), n);
        last[i] = -d[i] / delta2;
        inverse[i].push_back(last[i]);
    }
    last[n] = 1.0 / delta2;
    inverse.push_back(std::move(last));
    insertions += 1.0;
}

// Bordered by the newcomer t, then without `gone`, in one pass: with m the column of `gone` in the bordered inverse,
// M_ij = K^-1_ij + d_i d_j/delta2 - m_i m_j/m_gone.
std::vector<double> Expansion::exchange_inverse(size_t gone, const std::vector<double>& d, double delta2) {
    const size_t n = d.size();
    std::vector<double> m(inverse[gone].begin(), inverse[gone].end());
    kernel_loops->axpy(d[gone] / delta2, d.data(), m.data(), n);
    const double m_t = -d[gone] / delta2, m_gone = m[gone];
    for (size_t i = 0; i < n; ++i) {
        if (i == gone) continue;
        kernel_loops->axpy(d[i] / delta2, d.data(), inverse[i].data(), n);
        kernel_loops->axpy(-m[i] / m_gone, m.data(), inverse[i].data(), n);
        inverse[i][gone] = inverse[gone][i] = -d[i] / delta2 - m[i] / m_gone * m_t;
    }
    inverse[gone][gone] = 1.0 / delta2 - m_t / m_gone * m_t;
    insertions += 1.0;
    for (double& each : m) each = -each / m_gone;
    m[gone] = -m_t / m_gone;
    return m;
}

void Expansion::guard_inverse() {
    const size_t n = size();
    if (n == 0) return;
    if (insertions >= std::max(reinvert_every, 4.0 * double(n))) return invert();
    const size_t at = size_t(insertions) % n;  // one row after the other: O(n^2) a look
    double worst = 0.0;
    for (size_t j = 0; j < n; ++j) {
        const double entry = kernel_loops->dot(inverse[at].data(), gram[j].data(), n);
        worst = std::max(worst, std::abs(entry - (at == j ? 1.0 : 0.0)));
    }
    if (!(worst <= tolerated)) invert();
}

// By Cholesky, K + jitter*mean diagonal*I = L L', ten times more jitter where that fails.
void Expansion::invert() {
    const size_t n = size();
    double mean = 0.0;
    for (double each : diagonals) mean += each / double(n);
    Rows L(n);
    for (double added = jitter * mean;; added *= 10.0) {
        bool positive = true;
        for (size_t i = 0; i < n && positive; ++i) {
            L[i].assign(n, 0.0);
            for (size_t j = 0; j <= i; ++j) {
                double sum = gram[i][j] - kernel_loops->dot(L[i].data(), L[j].data(), j);
                if (i == j) sum += added;
                if (i == j) positive = sum > 0.0;
                if (!positive) break;
                L[i][j] = i == j ? std::sqrt(sum) : sum / L[j][j];
            }
        }
        if (positive) break;
    }
    Rows M(n);  // L^-1, transposed: row j holds column j
    for (size_t j = 0; j < n; ++j) {
        M[j].assign(n, 0.0);
        M[j][j] = 1.0 / L[j][j];
        for (size_t i = j + 1; i < n; ++i)
            M[j][i] = -kernel_loops->dot(L[i].data() + j, M[j].data() + j, i - j) / L[i][i];
    }
    inverse.assign(n, std::vector<double>(n));
    for (size_t i = 0; i < n; ++i)
        for (size_t j = 0; j <= i; ++j)
            inverse[i][j] = inverse[j][i] = kernel_loops->dot(M[i].data() + i, M[j].data() + i, n - i);
    inversions += 1.0;
    insertions = 0.0;
}

// As it was built: the younger of two is the one that came to the other.
void Expansion::rebuild_gram() {
    const size_t n = size();
    gram.assign(n, std::vector<double>(n));
    for (size_t i = 0; i < n; ++i) {
        const Query x = points.query(i, keep_);
        room_.resize(Points::lined(n));
        kernel_loops->row(*kernel, x, points, 0, n, room_.data());
        for (size_t j = 0; j < n; ++j)
            if (birth[j] < birth[i]) gram[i][j] = gram[j][i] = room_[j];
        gram[i][i] = diagonals[i];
    }
}

void Expansion::recompute_norm() {
    ww = 0.0;
    for (size_t i = 0; i < size(); ++i)
        for (size_t r = 0; r < outputs(); ++r) ww += c(i, r) * value(i, r);
    ww = std::max(0.0, ww);
}

void Expansion::recompute_values() {
    for (size_t i = 0; i < size(); ++i) values[i] = value(i);
}

}  // namespace onepass
