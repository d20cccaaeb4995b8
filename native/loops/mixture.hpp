// Mixtures: responsibilities and sufficient statistics. Sixteen rows are computed at once, one in each lane of two
// registers, so that the result of a row does not depend on the other rows. Sums over rows are added in their order.
// Included once per instruction set, inside namespace ONEPASS_ISA; no templates of the standard library here.
#pragma once
#include <cmath>

#include "loops/exponential.hpp"
#include "loops/lanes.hpp"
#include "loops/learner_loops.hpp"

namespace onepass::ONEPASS_ISA {

inline void put(double* p, Eight x) { std::memcpy(p, &x, sizeof x); }

// Transposes up to 16 rows: tile[16 j + r] = x_rj - shift_j; zeros for the rows that do not exist.
inline void to_tile(const double* X, size_t rows, size_t d, const double* shift, double* tile) {
    for (size_t j = 0; j < d; ++j)
        for (size_t r = 0; r < 16; ++r) tile[16 * j + r] = r < rows ? X[r * d + j] - shift[j] : 0.0;
}

// Adds the squares of R entries of z = A x, from entry `i` on, to the sums |z|^2 of 16 rows. A is lower triangular; the
// zeros above its diagonal change no bit.
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

// Turns the logarithms of the joint densities of 16 rows into responsibilities. The sum of a row's densities is
// exp(top) * total; the densities themselves could overflow.
inline void normalise_joint(double* joint, size_t K, double* top, double* total) {
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
}

void responsibilities(const Components& c, const double* X, size_t n, double* workspace, double* likelihood,
                      double* R) {
    const size_t K = c.K, d = c.d;
    double *const tile = workspace, *const centred = tile + 16 * d, *const joint = centred + 16 * d;
    for (size_t i = 0; i < n; i += 16) {
        const size_t rows = n - i < 16 ? n - i : 16;
        to_tile(X + i * d, rows, d, c.shift, tile);
        for (size_t k = 0; k < K; ++k) joint_of(c, k, tile, centred, joint + 16 * k);
        double top[16], total[16];
        normalise_joint(joint, K, top, total);
        for (size_t r = 0; r < rows; ++r) {
            likelihood[i + r] = top[r] + std::log(total[r]);
            for (size_t k = 0; k < K; ++k) R[(i + r) * K + k] = joint[16 * k + r];
        }
    }
}

// Sixteen rows, less the shift, padded with zeros to whole registers. Rows that do not exist have weight 0.
struct SixteenRows {
    double *values, *weight;
    size_t wide;

    void load_rows(const double* X, size_t rows, size_t d, const double* shift) const {
        for (size_t r = 0; r < 16 && r < rows; ++r)
            for (size_t j = 0; j < d; ++j) values[r * wide + j] = X[r * d + j] - shift[j];
    }
    // The responsibilities of component k for the rows.
    void load_weights(const double* R, size_t rows, size_t K, size_t k) const {
        for (size_t r = 0; r < 16; ++r) weight[r] = r < rows ? R[r * K + k] : 0.0;
    }
    // to[j] += sum over the rows of by[r] * z_rj, for eight columns.
    void add_products(double* to, size_t j, const double* by) const {
        Eight sum = load(to + j);
        for (size_t r = 0; r < 16; ++r) sum += by[r] * load(values + r * wide + j);
        put(to + j, sum);
    }
    // to[j] += sum over the rows of weight[r] * z_rj^2, for eight columns.
    void add_squares(double* to, size_t j) const {
        Eight sum = load(to + j);
        for (size_t r = 0; r < 16; ++r) {
            const Eight x = load(values + r * wide + j);
            sum += weight[r] * (x * x);
        }
        put(to + j, sum);
    }
    // The lower triangle of `to` += sum over the rows of weight[r] * z_r z_r'.
    void add_outer_products(double* to, size_t d) const {
        for (size_t a = 0; a < d; ++a) {
            double by[16];
            for (size_t r = 0; r < 16; ++r) by[r] = weight[r] * values[r * wide + a];
            for (size_t j = 0; j <= a; j += 8) add_products(to + a * wide, j, by);
        }
    }
};

void statistics(const double* X, size_t n, size_t d, const double* shift, const double* R, size_t K, Second second,
                double* workspace, double* s1, double* s2) {
    const size_t wide = (d + 7) / 8 * 8;
    const SixteenRows block{workspace, workspace + 16 * wide, wide};
    for (size_t i = 0; i < 16 * wide; ++i) workspace[i] = 0.0;
    for (size_t i = 0; i < n; i += 16) {
        block.load_rows(X + i * d, n - i, d, shift);
        for (size_t k = 0; k < K; ++k) {
            block.load_weights(R + i * K, n - i, K, k);
            for (size_t j = 0; j < wide; j += 8) block.add_products(s1 + k * wide, j, block.weight);
            if (second == Second::diagonal)
                for (size_t j = 0; j < wide; j += 8) block.add_squares(s2 + k * wide, j);
            if (second == Second::full) block.add_outer_products(s2 + k * d * wide, d);
        }
    }
}

}  // namespace onepass::ONEPASS_ISA
