// Running statistics of columns, one row after another, and rows as they look before or after each is counted.
//
// Every column has its own numbers and every row is counted in turn, so that the order of operations is the stream's
// whatever the chunks; the compiler may work on several columns at once, which changes no bit.
#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace onepass {

// Mean and sum of squared deviations (Welford 1962) of the values that were there, and how many they were.
struct Moments {
    static constexpr size_t numbers = 3;
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
    // Can the variance be told, however many zeros or ordinary values follow? False of NaN too.
    bool sound(size_t j) const {
        return squares[j] + mean[j] * mean[j] * count[j] <= std::numeric_limits<double>::max();
    }

    // What a value is divided by. Of a column that never varied nothing is known about the scale; what rounding leaves
    // of the deviations of a constant does not count as variation.
    double divisor(size_t j) const {
        if (!scale) return 1.0;
        const double spread = std::sqrt(variance(j));
        return spread > 10.0 * std::numeric_limits<double>::epsilon() * std::abs(mean[j]) ? spread : 1.0;
    }
    double change(size_t j, double x, double divided_by) const { return (centre ? x - mean[j] : x) / divided_by; }
    // The same statistic of one column alone, in numbers of its own.
    Moments alone(int64_t j, double* own) const {
        own[0] = j < 0 ? 0.0 : count[j];
        own[1] = j < 0 ? 0.0 : mean[j];
        own[2] = j < 0 ? 0.0 : squares[j];
        return {own, own + 1, own + 2, centre, scale, rows};
    }
    void put(size_t j, const double* own) { count[j] = own[0], mean[j] = own[1], squares[j] = own[2]; }

 private:
    // With zeros: their deviations and the others' from the common mean (Chan, Golub and LeVeque 1979).
    double variance(size_t j) const {
        if (centre) return squares[j] / (count[j] > 1.0 ? count[j] : 1.0);
        const double all = rows > 1.0 ? rows : 1.0, zeros = all - count[j];
        return (squares[j] + mean[j] * mean[j] * (count[j] * zeros / all)) / all;
    }
};

// The least and the greatest value.
struct Range {
    static constexpr size_t numbers = 2;
    double *low, *high;
    double from, width;  // of the target interval
    bool clip;

    void learn(size_t j, double x) {
        low[j] = x < low[j] ? x : low[j];
        high[j] = x > high[j] ? x : high[j];
    }
    bool sound(size_t j) const { return high[j] - low[j] <= std::numeric_limits<double>::max(); }
    double divisor(size_t j) const { return high[j] > low[j] ? high[j] - low[j] : 1.0; }
    double change(size_t j, double x, double divided_by) const {
        if (!(high[j] >= low[j])) return from;  // nothing known
        const double out = from + width * ((x - low[j]) / divided_by);
        return !clip ? out : out < from ? from : out > from + width ? from + width : out;
    }
    Range alone(int64_t j, double* own) const {
        own[0] = j < 0 ? std::numeric_limits<double>::infinity() : low[j];
        own[1] = j < 0 ? -std::numeric_limits<double>::infinity() : high[j];
        return {own, own + 1, from, width, clip};
    }
    void put(size_t j, const double* own) { low[j] = own[0], high[j] = own[1]; }
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
        bool sound = true;
        for (size_t j = 0; j < columns; ++j) sound &= statistic.sound(j);
        if (!sound) return i;
        if (out.before || out.after) divide();
        if (out.after) change(x, out.after + i * columns);
    }
    return rows;
}

// No column twice in a row.
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
        bool sound = true;
        for (size_t k = begin; k < end; ++k) {
            statistic.learn(size_t(columns[k]), values[k]);
            sound &= statistic.sound(size_t(columns[k]));
        }
        if (!sound) return i;
        if (out.after)
            for (size_t k = begin; k < end; ++k) out.after[k] = change(k);
    }
    return rows;
}

}  // namespace onepass
