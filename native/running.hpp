// Running statistics of columns, one row after another, and rows as they look before or after each is counted.
//
// Every column has its own numbers and every row is counted in turn, so that the order of operations is the stream's
// whatever the chunks; the compiler may work on several columns at once, which changes no bit.
#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace onepass {

// Mean and sum of squared deviations (Welford 1962) of the values that were there, and how many they were.
struct Moments {
    double *count, *mean, *squares;
    bool centre, scale;
    // Scaling alone takes an absent value for a zero, so all rows count; centring takes it for the mean.
    double rows;

    void learn(size_t j, double x) {
        count[j] += 1.0;
        const double deviation = x - mean[j];
        mean[j] += deviation / count[j];
        squares[j] += deviation * (x - mean[j]);
    }
    bool sound(size_t j) const { return squares[j] <= std::numeric_limits<double>::max(); }  // false of NaN too
    // The variance of the column; with zeros: theirs and the others' deviations from the common mean (Chan et al.
    // 1979).
    double variance(size_t j) const {
        if (count[j] == 0.0) return 0.0;
        if (centre) return squares[j] / count[j];
        const double zeros = rows - count[j];
        return (squares[j] + mean[j] * mean[j] * (count[j] * zeros / rows)) / rows;
    }
    double operator()(size_t j, double x) const {
        const double spread = scale ? std::sqrt(variance(j)) : 1.0;
        // Of a column that never varied, or of one unknown, nothing is known about the scale. What rounding leaves of
        // the deviations of a constant does not count as variation.
        const double centred = centre ? x - mean[j] : x;
        const bool varies = spread > 10.0 * std::numeric_limits<double>::epsilon() * std::abs(mean[j]);
        return varies ? centred / spread : centred;
    }
};

// The least and the greatest value.
struct Range {
    double *low, *high;
    double from, width;  // of the target interval
    bool clip;

    void learn(size_t j, double x) {
        low[j] = x < low[j] ? x : low[j];
        high[j] = x > high[j] ? x : high[j];
    }
    bool sound(size_t j) const { return high[j] - low[j] <= std::numeric_limits<double>::max(); }
    double operator()(size_t j, double x) const {
        const double spread = high[j] - low[j];
        if (!(spread >= 0.0)) return from;  // nothing known
        const double at = spread > 0.0 ? (x - low[j]) / spread : x - low[j];
        const double out = from + width * at;
        return clip ? (out < from ? from : out > from + width ? from + width : out) : out;
    }
};

inline void count_row(Moments& moments) { moments.rows += 1.0; }
inline void count_row(Range&) {}

// Where the results go, if wanted: rows as the statistics before or after them make them.
struct Outputs {
    double *before, *after;
};

// Returns the first row whose statistics overflow, or the number of rows. Without `learn`, `after` has nothing.
template <class Statistic>
size_t run_dense(Statistic& statistic, const double* X, size_t rows, size_t columns, bool learn, Outputs out) {
    for (size_t i = 0; i < rows; ++i) {
        const double* const x = X + i * columns;
        if (out.before)
            for (size_t j = 0; j < columns; ++j) out.before[i * columns + j] = statistic(j, x[j]);
        if (!learn) continue;
        count_row(statistic);
        bool sound = true;
        for (size_t j = 0; j < columns; ++j) {
            statistic.learn(j, x[j]);
            sound &= statistic.sound(j);
        }
        if (!sound) return i;
        if (out.after)
            for (size_t j = 0; j < columns; ++j) out.after[i * columns + j] = statistic(j, x[j]);
    }
    return rows;
}

// No column twice in a row.
template <class Statistic>
size_t run_sparse(Statistic& statistic, const int64_t* starts, const int32_t* columns, const double* values,
                  size_t rows, bool learn, Outputs out) {
    for (size_t i = 0; i < rows; ++i) {
        const size_t begin = size_t(starts[i]), end = size_t(starts[i + 1]);
        if (out.before)
            for (size_t k = begin; k < end; ++k) out.before[k] = statistic(size_t(columns[k]), values[k]);
        if (!learn) continue;
        count_row(statistic);
        bool sound = true;
        for (size_t k = begin; k < end; ++k) {
            statistic.learn(size_t(columns[k]), values[k]);
            sound &= statistic.sound(size_t(columns[k]));
        }
        if (!sound) return i;
        if (out.after)
            for (size_t k = begin; k < end; ++k) out.after[k] = statistic(size_t(columns[k]), values[k]);
    }
    return rows;
}

}  // namespace onepass
