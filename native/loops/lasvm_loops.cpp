// Compiled once per instruction set; ONEPASS_ISA is its name.
#include "loops/lasvm_loops.hpp"

#include <limits>

#include "loops/lanes.hpp"

namespace onepass::ONEPASS_ISA {

typedef int64_t EightFlags __attribute__((vector_size(64)));

inline EightFlags select(EightFlags which, EightFlags yes, EightFlags no) { return (which & yes) | (~which & no); }

inline bool any(EightFlags flags) {
    int64_t all = 0;
    for (int l = 0; l < 8; ++l) all |= flags[l];
    return all != 0;
}

// The best of eight values and its slot; the lowest slot of equals. Lanes without a slot have a negative one.
template <class Better>
inline size_t best_of(Eight value, EightFlags slot, double worst, const Better& better) {
    double best = worst;
    size_t at = Pair::none;
    for (int l = 0; l < 8; ++l)
        if (slot[l] >= 0 &&
            (at == Pair::none || better(value[l], best) || (value[l] == best && size_t(slot[l]) < at))) {
            best = value[l];
            at = size_t(slot[l]);
        }
    return at;
}

Pair find_pair(const double* alpha, const double* gradient, const double* lower, const double* upper, size_t n) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    Eight top = Eight{} - infinity, bottom = Eight{} + infinity;
    EightFlags rise = EightFlags{} - 1, fall = EightFlags{} - 1, here = {0, 1, 2, 3, 4, 5, 6, 7};
    size_t s = 0;
    for (; s + 8 <= n; s += 8, here += 8) {
        const Eight a = load(alpha + s), g = load(gradient + s);
        const EightFlags up = (a < load(upper + s)) & (g > top), down = (a > load(lower + s)) & (g < bottom);
        top = up ? g : top;
        bottom = down ? g : bottom;
        rise = select(up, here, rise);
        fall = select(down, here, fall);
    }
    for (int l = 0; s < n; ++s, ++l) {
        if (alpha[s] < upper[s] && gradient[s] > top[l]) top[l] = gradient[s], rise[l] = int64_t(s);
        if (alpha[s] > lower[s] && gradient[s] < bottom[l]) bottom[l] = gradient[s], fall[l] = int64_t(s);
    }
    return {best_of(top, rise, -infinity, [](double a, double b) { return a > b; }),
            best_of(bottom, fall, infinity, [](double a, double b) { return a < b; })};
}

void update_gradient(double* gradient, const double* k_i, const double* k_j, double step, size_t n) {
    for (size_t s = 0; s < n; ++s) gradient[s] -= step * (k_i[s] - k_j[s]);
}

size_t find_removable(const double* alpha, const double* gradient, const double* lower, const double* upper, size_t n,
                      double top, double bottom, size_t* out) {
    const auto is_removable = [=](size_t s) {
        return alpha[s] == 0.0 && ((lower[s] < 0.0 && gradient[s] >= top) || (upper[s] > 0.0 && gradient[s] <= bottom));
    };
    size_t found = 0, s = 0;
    for (; s + 8 <= n; s += 8) {
        const Eight g = load(gradient + s), zero{};
        const EightFlags idle = load(alpha + s) == zero;
        const EightFlags none =
            ((load(lower + s) < zero) & (g >= zero + top)) | ((load(upper + s) > zero) & (g <= zero + bottom));
        if (!any(idle & none)) continue;
        for (size_t l = s; l < s + 8; ++l)
            if (is_removable(l)) out[found++] = l;
    }
    for (; s < n; ++s)
        if (is_removable(s)) out[found++] = s;
    return found;
}

}  // namespace onepass::ONEPASS_ISA

#define ONEPASS_JOIN(a, b) a##b
#define ONEPASS_NAME(a, b) ONEPASS_JOIN(a, b)
#define ONEPASS_TEXT(a) #a
#define ONEPASS_STRING(a) ONEPASS_TEXT(a)

namespace onepass {

const LasvmLoops* ONEPASS_NAME(lasvm_loops_, ONEPASS_ISA)() {
    static const LasvmLoops loops = {ONEPASS_STRING(ONEPASS_ISA), ONEPASS_ISA::find_pair, ONEPASS_ISA::update_gradient,
                                     ONEPASS_ISA::find_removable};
    return &loops;
}

}  // namespace onepass
