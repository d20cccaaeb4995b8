// Running statistics of columns for scalers: each row is counted, and may be transformed by the statistics before or
// after it was counted.
//
// Every column has its own numbers, and rows are counted one after another. The results therefore do not depend on the
// chunks; the compiler may compute several columns at once without changing a bit.
#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace onepass {

// Mean and sum of squared deviations of the values in a column (Welford 1962), and their count.
struct Moments {
    static constexpr size_t numbers = 3;
    double *count, *mean, *squares;
    bool centre, scale;
    double rows;  // without centring, an absent value counts as 0, so all rows count

    void learn(size_t j, double x) {
        count[j] += 1.0;
        const double deviation = x - mean[j];
        mean[j] += deviation / count[j];
        squares[j] += deviation * (x - mean[j]);
    }
    // Whether the variance is finite, also after any number of zeros or moderate values. False for NaN.
    bool is_finite(size_t j) const {
        return squares[j] + mean[j] * mean[j] * count[j] <= std::numeric_limits<double>::max();
    }

    // The divisor of a value. It is 1 for a column that never varied; the rounding errors of a constant are no
    // variation.
    double divisor(size_t j) const {
        if (!scale) return 1.0;
        const double spread = std::sqrt(variance(j));
        return spread > 10.0 * std::numeric_limits<double>::epsilon() * std::abs(mean[j]) ? spread : 1.0;
    }
    double change(size_t j, double x, double divided_by) const { return (centre ? x - mean[j] : x) / divided_by; }
    // The same statistic for one column, on a copy of its numbers; j < 0 is a new column.
    Moments column(int64_t j, double* own) const {
        own[0] = j < 0 ? 0.0 : count[j];
        own[1] = j < 0 ? 0.0 : mean[j];
        own[2] = j < 0 ? 0.0 : squares[j];
        return {own, own + 1, own + 2, centre, scale, rows};
    }
    void put(size_t j, const double* own) { count[j] = own[0], mean[j] = own[1], squares[j] = own[2]; }

 private:
    // Without centring, the absent values are zeros: the union of two sets (Chan, Golub and LeVeque 1979).
    double variance(size_t j) const {
        if (centre) return squares[j] / (count[j] > 1.0 ? count[j] : 1.0);
        const double all = rows > 1.0 ? rows : 1.0, zeros = all - count[j];
        return (squares[j] + mean[j] * mean[j] * (count[j] * zeros / all)) / all;
    }
};

// The smallest and the largest value of a column.
struct Range {
    static constexpr size_t numbers = 2;
    double *low, *high;
    double from, width;  // the target interval
    bool clip;

    void learn(size_t j, double x) {
        low[j] = x < low[j] ? x : low[j];
        high[j] = x > high[j] ? x : high[j];
    }
    bool is_finite(size_t j) const { return high[j] - low[j] <= std::numeric_limits<double>::max(); }
    double divisor(size_t j) const { return high[j] > low[j] ? high[j] - low[j] : 1.0; }
    double change(size_t j, double x, double divided_by) const {
        if (!(high[j] >= low[j])) return from;  // no values yet
        const double out = from + width * ((x - low[j]) / divided_by);
        return !clip ? out : out < from ? from : out > from + width ? from + width : out;
    }
    Range column(int64_t j, double* own) const {
        own[0] = j < 0 ? std::numeric_limits<double>::infinity() : low[j];
        own[1] = j < 0 ? -std::numeric_limits<double>::infinity() : high[j];
        return {own, own + 1, from, width, clip};
    }
    void put(size_t j, const double* own) { low[j] = own[0], high[j] = own[1]; }
};

inline void count_row(Moments& moments) { moments.rows += 1.0; }
inline void count_row(Range&) {}

// Where transformed rows are written, or null: by the statistics before, and after, each row was counted.
struct Outputs {
    double *before, *after;
};

// Returns the first row whose statistics overflow, or the number of rows. `after` is written only with `learn`.
template <class Statistic>
size_t run_dense(Statistic& statistic, const double* X, size_t rows, size_t columns, bool learn, Outputs out) {
    std::vector<double> divisors(columns);
    double* const divisor = divisors.data();
    const auto change = [&](const double* x, double* z) {
#pragma GCC ivdep
        for (size_t j = 0; j < columns; ++j) z[j] = statistic.change(j, x[j], divisor[j]);
    };
    const auto divide = [&] {
#pragma GCC ivdep
        for (size_t j = 0; j < columns; ++j) divisor[j] = statistic.divisor(j);
    };
    divide();
    for (size_t i = 0; i < rows; ++i) {
        const double* const x = X + i * columns;
        if (out.before) change(x, out.before + i * columns);
        if (!learn) continue;
        count_row(statistic);
#pragma GCC ivdep
        for (size_t j = 0; j < columns; ++j) statistic.learn(j, x[j]);
        bool finite = true;
        for (size_t j = 0; j < columns; ++j) finite &= statistic.is_finite(j);
        if (!finite) return i;
        if (out.before || out.after) divide();
        if (out.after) change(x, out.after + i * columns);
    }
    return rows;
}

// The same for sparse rows. No column may occur twice in a row.
template <class Statistic>
size_t run_sparse(Statistic& statistic, const int64_t* starts, const int32_t* columns, const double* values,
                  size_t rows, bool learn, Outputs out) {
    const auto change = [&](size_t k) {
        const size_t j = size_t(columns[k]);
        return statistic.change(j, values[k], statistic.divisor(j));
    };
    for (size_t i = 0; i < rows; ++i) {
        const size_t begin = size_t(starts[i]), end = size_t(starts[i + 1]);
        if (out.before)
            for (size_t k = begin; k < end; ++k) out.before[k] = change(k);
        if (!learn) continue;
        count_row(statistic);
        bool finite = true;
        for (size_t k = begin; k < end; ++k) {
            statistic.learn(size_t(columns[k]), values[k]);
            finite &= statistic.is_finite(size_t(columns[k]));
        }
        if (!finite) return i;
        if (out.after)
            for (size_t k = begin; k < end; ++k) out.after[k] = change(k);
    }
    return rows;
}

}  // namespace onepass
