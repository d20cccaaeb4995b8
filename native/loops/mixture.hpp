// Mixtures: responsibilities and sufficient statistics. Sixteen rows stand side by side, so that a row's numbers do not
// depend on its neighbours; sums over rows run in the rows' order.
// Included once per instruction set, inside namespace ONEPASS_ISA; no templates of the standard library here.
#pragma once
#include <cmath>

#include "loops/exponential.hpp"
#include "loops/lanes.hpp"
#include "loops/learner_loops.hpp"

namespace onepass::ONEPASS_ISA {

inline void put(double* p, Eight x) { std::memcpy(p, &x, sizeof x); }

// Up to 16 rows as columns: tile[16 j + r] = x_rj - shift_j, zeros where there is no row.
inline void to_tile(const double* X, size_t rows, size_t d, const double* shift, double* tile) {
    for (size_t j = 0; j < d; ++j)
        for (size_t r = 0; r < 16; ++r) tile[16 * j + r] = r < rows ? X[r * d + j] - shift[j] : 0.0;
}

// Adds |z|^2 for R entries of z = A x, from `i` on, to sums of 16 rows. Zeros above A's diagonal change no bit.
template <size_t R>
inline void add_whitened(const double* A, size_t d, size_t i, const double* x, Eight& low, Eight& high) {
    Eight z0[R] = {}, z1[R] = {};
    for (size_t j = 0; j < i + R; ++j) {
        const Eight x0 = load(x + 16 * j), x1 = load(x + 16 * j + 8);
        for (size_t r = 0; r < R; ++r) {
            const double a = A[(i + r) * d + j];
            z0[r] += a * x0;
            z1[r] += a * x1;
        }
    }
    for (size_t r = 0; r < R; ++r) low += z0[r] * z0[r], high += z1[r] * z1[r];
}

// ln(weight) + ln p_k(x) of 16 rows.
inline void joint_of(const Components& c, size_t k, const double* tile, double* centred, double* out) {
    const size_t d = c.d;
    const double *const point = c.points + k * d, *scale = c.scales;
    Eight low{}, high{};
    if (c.form == Components::Form::linear) {
        for (size_t j = 0; j < d; ++j)
            low += point[j] * load(tile + 16 * j), high += point[j] * load(tile + 16 * j + 8);
        put(out, c.constants[k] + low);
        put(out + 8, c.constants[k] + high);
        return;
    }
    if (c.form == Components::Form::diagonal) {
        scale += k * d;
        for (size_t j = 0; j < d; ++j) {
            const Eight a = load(tile + 16 * j) - point[j], b = load(tile + 16 * j + 8) - point[j];
            low += scale[j] * (a * a);
            high += scale[j] * (b * b);
        }
    } else {
        scale += k * d * d;
        for (size_t j = 0; j < 16 * d; j += 8) put(centred + j, load(tile + j) - point[j / 16]);
        size_t i = 0;
        for (; i + 4 <= d; i += 4) add_whitened<4>(scale, d, i, centred, low, high);
        for (; i < d; ++i) add_whitened<1>(scale, d, i, centred, low, high);
    }
    put(out, c.constants[k] - 0.5 * low);
    put(out + 8, c.constants[k] - 0.5 * high);
}

void responsibilities(const Components& c, const double* X, size_t n, double* room, double* likelihood, double* R) {
    const size_t K = c.K, d = c.d;
    double *const tile = room, *const centred = tile + 16 * d, *const joint = centred + 16 * d;
    for (size_t i = 0; i < n; i += 16) {
        const size_t rows = n - i < 16 ? n - i : 16;
        to_tile(X + i * d, rows, d, c.shift, tile);
        for (size_t k = 0; k < K; ++k) joint_of(c, k, tile, centred, joint + 16 * k);
        double top[16], total[16];
        for (size_t half = 0; half < 16; half += 8) {
            Eight most = load(joint + half), sum{};
            for (size_t k = 1; k < K; ++k) most = larger(load(joint + 16 * k + half), most);
            for (size_t k = 0; k < K; ++k) {
                const Eight part = exponential(load(joint + 16 * k + half) - most);
                sum += part;
                put(joint + 16 * k + half, part);
            }
            for (size_t k = 0; k < K; ++k) put(joint + 16 * k + half, load(joint + 16 * k + half) / sum);
            put(top + half, most);
            put(total + half, sum);
        }
        for (size_t r = 0; r < rows; ++r) {
            likelihood[i + r] = top[r] + std::log(total[r]);
            for (size_t k = 0; k < K; ++k) R[(i + r) * K + k] = joint[16 * k + r];
        }
    }
}

void statistics(const double* X, size_t n, size_t d, const double* shift, const double* R, size_t K, Second second,
                double* room, double* s1, double* s2) {
    const size_t wide = (d + 7) / 8 * 8;
    double *const rows = room, *const weight = rows + 16 * wide;
    const auto accumulate = [=](double* to, size_t from, const double* by) {
        Eight sum = load(to + from);
        for (size_t r = 0; r < 16; ++r) sum += by[r] * load(rows + r * wide + from);
        put(to + from, sum);
    };
    for (size_t i = 0; i < 16 * wide; ++i) rows[i] = 0.0;
    for (size_t i = 0; i < n; i += 16) {
        // Where there is no row, what the last sixteen left there weighs nothing.
        for (size_t r = 0; r < 16 && i + r < n; ++r)
            for (size_t j = 0; j < d; ++j) rows[r * wide + j] = X[(i + r) * d + j] - shift[j];
        for (size_t k = 0; k < K; ++k) {
            for (size_t r = 0; r < 16; ++r) weight[r] = i + r < n ? R[(i + r) * K + k] : 0.0;
            for (size_t j = 0; j < wide; j += 8) accumulate(s1 + k * wide, j, weight);
            if (second == Second::diagonal)
                for (size_t j = 0; j < wide; j += 8) {
                    Eight sum = load(s2 + k * wide + j);
                    for (size_t r = 0; r < 16; ++r) {
                        const Eight x = load(rows + r * wide + j);
                        sum += weight[r] * (x * x);
                    }
                    put(s2 + k * wide + j, sum);
                }
            if (second != Second::full) continue;
            for (size_t a = 0; a < d; ++a) {
                double by[16];
                for (size_t r = 0; r < 16; ++r) by[r] = weight[r] * rows[r * wide + a];
                for (size_t j = 0; j <= a; j += 8) accumulate(s2 + (k * d + a) * wide, j, by);
            }
        }
    }
}

}  // namespace onepass::ONEPASS_ISA
