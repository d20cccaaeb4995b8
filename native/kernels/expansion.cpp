#include "kernels/expansion.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/memory.hpp"

namespace onepass {

namespace {

constexpr double smallest_scale = 1e-9, largest_scale = 1e9;
constexpr double recompute_every = 1000.0;  // new vectors
constexpr double sparse_overhead = 96.0;    // bytes of a sparse vector besides its numbers
// The inverse is recomputed in O(n^3) after max(reinvert_every, 4n) updates of O(n^2) each, or when an entry of
// K^-1 K is wrong by more than `tolerance`. `jitter` times the mean of K(x_i, x_i) is added to the diagonal of K.
constexpr double reinvert_every = 500.0, tolerance = 1e-7, jitter = 1e-10;

void remove_entry(std::vector<double>& values, size_t i) {
    values[i] = values.back();
    values.pop_back();
}

// Removes row i and column i of a square matrix. The last row and column move to their place.
void remove_row_and_column(Rows& matrix, size_t i) {
    for (std::vector<double>& row : matrix) remove_entry(row, i);
    std::swap(matrix[i], matrix.back());
    matrix.pop_back();
}

}  // namespace

void Expansion::initialise(const Kernel* with, bool sparse, size_t columns, size_t slots) {
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

double Expansion::squared_norm(size_t i) const {
    double sum = 0.0;
    for (size_t r = 0; r < outputs(); ++r) sum += c(i, r) * c(i, r);
    return sum;
}

double Expansion::largest_coefficient() const {
    double most = 0.0;
    for (const std::vector<double>& row : coef) most = std::max(most, kernel_loops->largest(row.data(), row.size()));
    return std::abs(scale) * most;
}

const double* Expansion::kernel_values(const Query& x) {
    if (k_.size() < Points::lined(size())) k_.resize(2 * Points::lined(size()));
    kernel_loops->row(*kernel, x, points, 0, size(), k_.data());
    return k_.data();
}

void Expansion::score(const double* k, double* out) const {
    for (size_t r = 0; r < outputs(); ++r) out[r] = scale * kernel_loops->dot(coef[r].data(), k, size());
}

double Expansion::value(size_t i, size_t r) {
    const double* k;
    if (stores_gram) {
        k = gram[i].data();
    } else {
        const Query x = points.query(i, stored_);
        k_of_stored_.resize(Points::lined(size()));
        kernel_loops->row(*kernel, x, points, 0, size(), k_of_stored_.data());
        k = k_of_stored_.data();
    }
    return scale * kernel_loops->dot(coef[r].data(), k, size());
}

double Expansion::bytes_with(size_t more, size_t columns, size_t outputs, size_t numbers) const {
    const double n = double(size() + more), matrices = stores_gram + stores_inverse + stores_covariance;
    // Numbers per vector besides its features. The rows of a matrix may take twice their size: they grow by doubling.
    const double others = double(outputs) + 7.0 + 2.0 * matrices * n;
    if (!points.sparse()) return 8.0 * n * (double(columns) + others);
    return 16.0 * double(points.numbers() + more * numbers) + n * (8.0 * others + sparse_overhead);
}

// Compares with the memory limit, and reserves twice the bytes that are needed, or as many as fit. While dense vectors
// move to larger memory, the old and the new memory must fit together.
bool Expansion::reserve_room(const Query& x) {
    const double wanted = bytes_with(1, points.columns(), outputs(), x.n);
    if (wanted <= small_tables) {
        reserved_ = small_tables;
        return true;
    }
    const double limit = memory_limit_of_rows(), old_memory = points.sparse() ? 0.0 : wanted;
    const double most = std::min(2.0 * wanted, limit - old_memory);
    if (wanted > most) return false;
    reserved_ = most;
    points.reserve(size_t(double(size() + 1) * (most / wanted)));
    return true;
}

void Expansion::rescale(double factor) {
    if (factor == 1.0) return;
    if (factor == 0.0) return clear();
    scale *= factor;
    ww *= factor * factor;
    for (double& each : values) each *= factor;
    if (!(std::abs(scale) >= smallest_scale && std::abs(scale) <= largest_scale)) multiply_scale_in();
}

void Expansion::multiply_scale_in() {
    for (std::vector<double>& row : coef)
        for (double& each : row) each *= scale;
    scale = 1.0;
}

void Expansion::append(const Query& x, const double* k, double ktt, const double* scores, const double* coefficients,
                       double born) {
    const size_t n = size();
    if (stores_gram) {
        for (size_t i = 0; i < n; ++i) gram[i].push_back(k[i]);
        gram.emplace_back(k, k + n);
        gram.back().push_back(ktt);
    }
    if (stores_values) {
        kernel_loops->axpy(coefficients[0], k, values.data(), n);
        values.push_back(scores[0] + coefficients[0] * ktt);
    }
    if (tracks_norm) add_to_norm(coefficients, ktt, scores);
    points.push(x);
    birth.push_back(born);
    diagonals.push_back(ktt);
    for (size_t r = 0; r < outputs(); ++r) {
        coef[r].resize(Points::lined(n + 1), 0.0);
        coef[r][n] = coefficients[r] / scale;
    }
    count_change();
}

void Expansion::count_change() {
    changes += 1.0;
    if (changes < std::max(recompute_every, double(size()))) return;
    if (tracks_norm) recompute_norm();
    if (stores_values) recompute_values();
    changes = 0.0;
}

// |f + c K(x, .)|^2 = |f|^2 + 2 c f(x) + c^2 K(x, x)
void Expansion::add_to_norm(const double* coefficients, double ktt, const double* scores) {
    for (size_t r = 0; r < outputs(); ++r)
        ww += 2.0 * coefficients[r] * scores[r] + coefficients[r] * coefficients[r] * ktt;
}

void Expansion::subtract_from_norm(size_t i) {
    for (size_t r = 0; r < outputs(); ++r) ww += c(i, r) * (c(i, r) * diagonals[i] - 2.0 * value(i, r));
    ww = std::max(0.0, ww);
}

void Expansion::replace(size_t i, const Query& x, const double* k, double ktt, const double* scores,
                        const double* coefficients, double born) {
    const size_t n = size();
    if (tracks_norm) {
        subtract_from_norm(i);
        add_to_norm(coefficients, ktt, scores);
    }
    if (stores_values) {
        kernel_loops->axpy(-c(i), gram[i].data(), values.data(), n);
        kernel_loops->axpy(coefficients[0], k, values.data(), n);
        values[i] = scores[0] + coefficients[0] * ktt;
    }
    if (stores_gram) {
        for (size_t j = 0; j < n; ++j) gram[i][j] = gram[j][i] = k[j];
        gram[i][i] = ktt;
    }
    points.replace(i, x);
    birth[i] = born;
    diagonals[i] = ktt;
    for (size_t r = 0; r < outputs(); ++r) coef[r][i] = coefficients[r] / scale;
    count_change();
}

void Expansion::add_to_coefficient(size_t i, const double* change) {
    for (size_t r = 0; r < outputs(); ++r) coef[r][i] += change[r] / scale;
}

void Expansion::remove(size_t i) {
    const size_t last = size() - 1;
    if (tracks_norm) subtract_from_norm(i);
    if (stores_values) {
        kernel_loops->axpy(-c(i), gram[i].data(), values.data(), size());
        remove_entry(values, i);
    }
    if (stores_gram) remove_row_and_column(gram, i);
    points.remove(i);
    remove_entry(birth, i);
    remove_entry(diagonals, i);
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

size_t Expansion::argmin(const std::vector<double>& costs) const {
    size_t best = 0;
    for (size_t i = 1; i < size(); ++i)
        if (costs[i] < costs[best] || (costs[i] == costs[best] && birth[i] < birth[best])) best = i;
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

// Extends the inverse by the new vector t and removes vector `removed` from it, in one pass. With m the column of
// `removed` in the extended inverse: M_ij = K^-1_ij + d_i d_j/delta2 - m_i m_j/m_removed.
std::vector<double> Expansion::replace_in_inverse(size_t removed, const std::vector<double>& d, double delta2) {
    const size_t n = d.size();
    std::vector<double> m(inverse[removed].begin(), inverse[removed].end());
    kernel_loops->axpy(d[removed] / delta2, d.data(), m.data(), n);
    const double m_t = -d[removed] / delta2, m_removed = m[removed];
    for (size_t i = 0; i < n; ++i) {
        if (i == removed) continue;
        kernel_loops->axpy(d[i] / delta2, d.data(), inverse[i].data(), n);
        kernel_loops->axpy(-m[i] / m_removed, m.data(), inverse[i].data(), n);
        inverse[i][removed] = inverse[removed][i] = -d[i] / delta2 - m[i] / m_removed * m_t;
    }
    inverse[removed][removed] = 1.0 / delta2 - m_t / m_removed * m_t;
    insertions += 1.0;
    for (double& each : m) each = -each / m_removed;
    m[removed] = -m_t / m_removed;
    return m;
}

void Expansion::check_inverse() {
    const size_t n = size();
    if (n == 0) return;
    if (insertions >= std::max(reinvert_every, 4.0 * double(n))) return recompute_inverse();
    const size_t checked = size_t(insertions) % n;  // each call checks another row: O(n^2) a call
    double worst = 0.0;
    for (size_t j = 0; j < n; ++j) {
        const double entry = kernel_loops->dot(inverse[checked].data(), gram[j].data(), n);
        worst = std::max(worst, std::abs(entry - (checked == j ? 1.0 : 0.0)));
    }
    if (!(worst <= tolerance)) recompute_inverse();
}

Rows Expansion::cholesky_factor(double added) const {
    const size_t n = size();
    Rows L(n);
    for (size_t i = 0; i < n; ++i) {
        L[i].assign(n, 0.0);
        for (size_t j = 0; j < i; ++j)
            L[i][j] = (gram[i][j] - kernel_loops->dot(L[i].data(), L[j].data(), j)) / L[j][j];
        double pivot = gram[i][i] - kernel_loops->dot(L[i].data(), L[i].data(), i);
        pivot += added;
        if (!(pivot > 0.0)) return {};
        L[i][i] = std::sqrt(pivot);
    }
    return L;
}

void Expansion::recompute_inverse() {
    const size_t n = size();
    double mean = 0.0;
    for (double each : diagonals) mean += each / double(n);
    double added = jitter * mean;
    Rows L = cholesky_factor(added);
    while (L.empty()) L = cholesky_factor(added *= 10.0);
    Rows M(n);  // the transpose of L^-1: row j holds column j
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

// K(x, z) and K(z, x) may differ in the last bit. As during learning, the younger of two vectors is the first argument.
void Expansion::recompute_gram() {
    const size_t n = size();
    gram.assign(n, std::vector<double>(n));
    for (size_t i = 0; i < n; ++i) {
        const Query x = points.query(i, stored_);
        k_of_stored_.resize(Points::lined(n));
        kernel_loops->row(*kernel, x, points, 0, n, k_of_stored_.data());
        for (size_t j = 0; j < n; ++j)
            if (birth[j] < birth[i]) gram[i][j] = gram[j][i] = k_of_stored_[j];
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
