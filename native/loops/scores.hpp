// How weights are read to score a row: as they are, with pending L1, or through the link. Templates over the type of
// the row; included once per instruction set. Nothing here may call an out-of-line function of the standard library:
// the linker could pick another instruction set's copy.
#pragma once
#include <cfloat>
#include <cmath>

#include "core/model.hpp"
#include "loops/classes.hpp"
#include "loops/lanes.hpp"
#include "loops/lazy.hpp"

namespace onepass::ONEPASS_ISA {

inline bool finite(double x) { return std::abs(x) <= DBL_MAX; }  // false for NaN

// A dense row: an array, or the difference of two arrays.
template <class X>
struct DenseValues {
    X x;
    size_t n;
    size_t column(size_t i) const { return i; }
    template <class Pitch>
    InOrder<Pitch> where(const double* v, Pitch pitch) const {
        return {v, pitch};
    }
    DotNorm dot_norm(const double* v, size_t pitch = 1) const {
        return pitch == 1 ? ONEPASS_ISA::dot_norm(x, n, v) : dot_norm_of(x, n, where(v, pitch));
    }
};
template <class V>
using DenseRow = DenseValues<const V*>;

// The difference of two rows is a direction; nothing is predicted for it.
template <class Row>
constexpr bool is_difference = std::is_same_v<Row, DenseValues<Minus>>;

template <class V, class I>
struct SparseRow {
    const V* x;
    const I* index;
    size_t n;
    size_t ahead = 0;  // the next row lies right behind this one; so many of its features, at most n, may be prefetched
    size_t column(size_t i) const { return size_t(index[i]); }
    template <class Pitch>
    Indexed<I, Pitch> where(const double* v, Pitch pitch) const {
        return {v, index, pitch};
    }
    DotNorm dot_norm(const double* v, size_t pitch = 1) const {
        return pitch == 1 ? dot_norm_of(x, n, where(v, Adjacent())) : dot_norm_of(x, n, where(v, pitch));
    }
};

// v += c * x
template <class X>
inline void add(const DenseValues<X>& row, double c, double* __restrict v) {
    const X x = row.x;
    for (size_t i = 0; i < row.n; ++i) v[i] += c * double(x[i]);
}
template <class V, class I>
inline void add(const SparseRow<V, I>& row, double c, double* __restrict v) {
    const V* __restrict x = row.x;
    const I* __restrict index = row.index;
#pragma GCC unroll 8
    for (size_t i = 0; i < row.n; ++i) v[index[i]] += c * double(x[i]);
}
template <class Row>
inline void add(const Row& row, double c, double* __restrict v, size_t pitch) {
    if (pitch == 1) return add(row, c, v);
    const auto x = row.x;
    for (size_t i = 0; i < row.n; ++i) v[row.column(i) * pitch] += c * double(x[i]);
}

template <class X>
inline DenseValues<X> side_by_side(const DenseValues<X>& row) {
    return row;
}
template <class V, class I>
inline DenseRow<V> side_by_side(const SparseRow<V, I>& row) {
    return {row.x, row.n};
}

// The weights of the features of a row, one after the other, in the p-norm geometry, where |theta|_p is the given norm.
// Their sum has the same lanes as that of stored weights.
template <class Row>
inline double* gather_linked(const Model& M, const Row& row, double norm) {
    const Weights& w = M.w;
    double* gathered = M.gathered(row.n * w.stride);
    for (size_t i = 0; i < row.n; ++i) {
        const double* v = w.v_of(row.column(i));
        for (size_t r = 0; r < w.stride; ++r)
            gathered[i * w.stride + r] = r < w.outputs ? w.p_norm.link(w.a * v[r], norm) : 0.0;
    }
    return gathered;
}

// Where the current weights of a row are, with which scale and which intercepts.
struct Reading {
    const double* weights;
    size_t pitch;   // numbers from the weights of one feature to those of the next
    bool gathered;  // one after the other, not at the columns of the row
    double a;
    const double* bias;

    static Reading straight(const Weights& w) { return {w.cells.data(), w.pitch, false, w.a, w.bias.data()}; }
};

// `decoded` is working space for decoded weights; it may be null without L1.
template <class Row>
inline Reading read_current(const Model& M, const Row& row, double* decoded) {
    const Weights& w = M.w;
    if (w.l1.on) return {decoded_side_by_side(w, row, decoded), w.stride, true, w.a, w.bias.data()};
    if (!w.p_norm.on()) return Reading::straight(w);
    const double norm = w.theta_norm();
    double* bias = M.linked_bias();
    for (size_t r = 0; r < w.outputs; ++r) bias[r] = w.p_norm.link(w.bias[r], norm);
    return {gather_linked(M, row, norm), w.stride, true, 1.0, bias};
}

// All scores of a row.
template <class Row>
inline void scores_of(const Model& M, const Row& row, const Reading& read, double* out, double* scratch) {
    const Weights& w = M.w;
    if (w.stride == 1) {
        const double* v = read.weights;
        scratch[0] = (read.gathered ? side_by_side(row).dot_norm(v) : row.dot_norm(v, read.pitch)).dot;
    } else if (read.gathered) {
        class_scores_wide(side_by_side(row), read.weights, read.pitch, w.lanes(), scratch);
    } else {
        class_scores_wide(row, read.weights, read.pitch, w.lanes(), scratch);
    }
    for (size_t r = 0; r < w.outputs; ++r) out[r] = read.a * scratch[r] + read.bias[r] * M.constant;
}

// Calls use(x, indices) with any row as doubles at 64-bit indices.
template <class Row, class Use>
inline void with_numbers(const Row& row, Use use) {
    RowCopy& copy = row_copy(row.n);
    for (size_t i = 0; i < row.n; ++i) {
        copy.x[i] = double(row.x[i]);
        copy.index[i] = int64_t(row.column(i));
    }
    use(copy.x, copy.index);
}

}  // namespace onepass::ONEPASS_ISA
