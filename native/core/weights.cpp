// Operations on all weights at once.
#include "core/weights.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "core/model.hpp"

namespace onepass {

// Writes a number only if it differs, so that untouched pages stay untouched.
static void put(double& to, double value) {
    if (std::bit_cast<uint64_t>(to) != std::bit_cast<uint64_t>(value)) to = value;
}

// Calls visit(v, place) for every v that may differ from 0, padding included; place is where the same output stands in
// a table whose features are `stride` apart.
template <class Visit>
static void each_v(Weights& w, const Visit& visit) {
    w.each_touched([&](size_t j) {
        for (size_t r = 0; r < w.stride; ++r) visit(w.v_of(j)[r], j * w.stride + r);
    });
}

void Weights::negate() {
    for (Buffer* buffer : {&average.z, &pocket.v})
        for (size_t i = 0; i < buffer->size(); ++i) put(buffer->data()[i], 0.0 - buffer->data()[i]);
    for (size_t i = 0; i < cells.size(); ++i) {
        const size_t plane = i % pitch / stride;
        if (plane == 0 || (plane <= planes.count() && planes.kinds[plane - 1].odd))
            put(cells.data()[i], 0.0 - cells.data()[i]);
    }
    for (size_t i = 0; i < planes.bias.size(); ++i)
        if (planes.kinds[i / stride].odd) planes.bias[i] = 0.0 - planes.bias[i];
    for (double& b : bias) b = 0.0 - b;
    for (double& b : average.bias_sum) b = 0.0 - b;
    for (double& b : pocket.bias) b = 0.0 - b;
    votes.updates.negate();
    batch.updates.negate();
}

void Weights::rebase_average() {
    if (average.z.size())
        each_v(*this, [&](double v, size_t i) { put(average.z.data()[i], average.z.data()[i] - average.A * v); });
    peaks.z += average.A * peaks.v;
    average.A = 0.0;
}

void Weights::apply_pending() {
    if (l1.pending == 0.0) return;
    each_v(*this, [&](double& v, size_t) { put(v, l1.decode(v)); });
    l1.pending = 0.0;
}

void Weights::encode_weights() {
    if (!l1.on || (l1.pending == 0.0 && !l1.exempt_bit())) return;
    each_v(*this, [&](double& v, size_t) { put(v, l1.encode(v)); });
}

void Weights::store_in_pocket() {
    each_v(*this, [&](double v, size_t i) { put(pocket.v.data()[i], v); });
    pocket.bias = bias;
    pocket.a = a;
    if (!p_norm.on()) return;
    const double length = theta_norm();  // the pocket holds w
    each_v(*this, [&](double v, size_t i) { put(pocket.v.data()[i], p_norm.link(a * v, length)); });
    for (double& b : pocket.bias) b = p_norm.link(b, length);
    pocket.a = 1.0;
}

double Weights::theta_norm() const {
    const double most = std::sqrt(norm.ww);
    double largest = most, sum = 0.0;
    for (double b : bias) largest = std::max(largest, std::abs(b));
    if (largest == 0.0) return 0.0;
    for (double b : bias) sum += std::pow(std::abs(b) / largest, p_norm.p);
    return largest * std::pow(std::pow(most / largest, p_norm.p) + sum, 1.0 / p_norm.p);
}

void Weights::project_into_ball() {
    const double length = theta_norm();
    if (!(length > p_norm.ball)) return;
    const double inside = p_norm.ball / length;
    a *= inside;
    norm.ww *= inside * inside;
    for (double& b : bias) b *= inside;
}

void Weights::fold_scale() {
    rebase_average();
    apply_pending();
    each_v(*this, [&](double& v, size_t) { put(v, v * a); });
    peaks.v *= std::abs(a);
    a = 1.0;
    encode_weights();
}

void Weights::set_to_zero() {
    rebase_average();
    each_v(*this, [](double& v, size_t) { put(v, 0.0); });
    a = 1.0;
    norm.ww = peaks.v = 0.0;
}

void Weights::recompute_norm() {
    norm.since_recomputed = 0.0;
    double sum = 0.0;
    if (p_norm.on()) {
        double largest = 0.0;
        each_v(*this, [&](double v, size_t) { largest = std::max(largest, std::abs(v)); });
        if (largest > 0.0) each_v(*this, [&](double v, size_t) { sum += std::pow(std::abs(v) / largest, p_norm.p); });
        const double length = a * largest * std::pow(sum, 1.0 / p_norm.p);
        norm.ww = length * length;
        return;
    }
    each_v(*this, [&](double v, size_t) { sum += v * v; });
    norm.ww = a * a * sum;
}

void Weights::recompute_peaks() {
    peaks.v = peaks.z = 0.0;
    each_v(*this, [&](double v, size_t) { peaks.v = std::max(peaks.v, std::abs(v)); });
    if (average.z.size())
        each_v(*this, [&](double, size_t i) { peaks.z = std::max(peaks.z, std::abs(average.z.data()[i])); });
}

}  // namespace onepass
