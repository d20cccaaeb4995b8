// Reductions in 16 fixed lanes: element i goes to lane i mod 16, the lanes are added as a tree. Every instruction set
// adds the same numbers in the same order, so scalar, AVX2 and AVX-512 builds give the same bits.
// Included once per instruction set, inside namespace ONEPASS_ISA.
#pragma once
#include <cstddef>
#include <cstring>

namespace onepass::ONEPASS_ISA {

constexpr size_t lanes = 16;
typedef double Eight __attribute__((vector_size(64)));
typedef float EightFloats __attribute__((vector_size(32)));

inline Eight load(const double* p) {
    Eight out;
    std::memcpy(&out, p, sizeof out);
    return out;
}

inline Eight load(const float* p) {
    EightFloats out;
    std::memcpy(&out, p, sizeof out);
    return __builtin_convertvector(out, Eight);
}

struct Sum {
    Eight low{}, high{};

    double total() const {
        const Eight all = low + high;
        double lane[8];
        std::memcpy(lane, &all, sizeof lane);
        return ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
    }
};

struct DotNorm {
    double dot, norm;  // x.v and x.x
};

// x.v and x.x of a dense row.
template <class V>
inline DotNorm dot_norm(const V* x, const double* v, size_t n) {
    Sum dot, norm;
    size_t i = 0;
    for (; i + lanes <= n; i += lanes) {
        const Eight x0 = load(x + i), x1 = load(x + i + 8);
        dot.low += x0 * load(v + i);
        dot.high += x1 * load(v + i + 8);
        norm.low += x0 * x0;
        norm.high += x1 * x1;
    }
    if (i < n) {  // the rest, padded with zeros
        double xs[lanes] = {}, vs[lanes] = {};
        for (size_t l = 0; i + l < n; ++l) {
            xs[l] = double(x[i + l]);
            vs[l] = v[i + l];
        }
        const Eight x0 = load(xs), x1 = load(xs + 8);
        dot.low += x0 * load(vs);
        dot.high += x1 * load(vs + 8);
        norm.low += x0 * x0;
        norm.high += x1 * x1;
    }
    return {dot.total(), norm.total()};
}

template <class I>
inline Eight gather(const double* v, const I* index) {
    return Eight{v[index[0]], v[index[1]], v[index[2]], v[index[3]],
                 v[index[4]], v[index[5]], v[index[6]], v[index[7]]};
}

// x.v and x.x of a sparse row: lanes count stored elements.
template <class V, class I>
inline DotNorm dot_norm(const V* x, const I* index, const double* v, size_t n) {
    Sum dot, norm;
    size_t i = 0;
    for (; i + lanes <= n; i += lanes) {
        const Eight x0 = load(x + i), x1 = load(x + i + 8);
        dot.low += x0 * gather(v, index + i);
        dot.high += x1 * gather(v, index + i + 8);
        norm.low += x0 * x0;
        norm.high += x1 * x1;
    }
    if (i < n) {
        double xs[lanes] = {}, vs[lanes] = {};
        for (size_t l = 0; i + l < n; ++l) {
            xs[l] = double(x[i + l]);
            vs[l] = v[index[i + l]];
        }
        const Eight x0 = load(xs), x1 = load(xs + 8);
        dot.low += x0 * load(vs);
        dot.high += x1 * load(vs + 8);
        norm.low += x0 * x0;
        norm.high += x1 * x1;
    }
    return {dot.total(), norm.total()};
}

}  // namespace onepass::ONEPASS_ISA
