// How weights grow: new features, new outputs for new classes, and the memory that they take.
#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "core/weights.hpp"

namespace onepass {

static bool same_bits(double a, double b) { return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b); }

bool Weights::is_changed(size_t feature, bool with_pocket) const {
    const auto differs = [&](const double* from, double start) {
        return !std::all_of(from, from + outputs, [start](double value) { return same_bits(value, start); });
    };
    if (differs(v_of(feature), 0.0)) return true;
    for (size_t p = 0; p < planes.count(); ++p)
        if (differs(planes_of(feature) + p * stride, planes.kinds[p].start)) return true;
    if (average.z.size() && differs(average.z.data() + feature * stride, 0.0)) return true;
    return with_pocket && pocket.v.size() && differs(pocket.v.data() + feature * stride, 0.0);
}

void Weights::set_features(size_t count) {
    if (count <= features) return;
    cells.grow(count * pitch);
    if (average.on()) average.z.grow(count * stride);
    if (pocket.on) pocket.v.grow(count * stride);
    sigma.set_features(count);
    if (!planes.start_at_zero())
        for (size_t j = features; j < count; ++j) planes.start(planes.count(), stride, planes_of(j));
    if (touched.on) touched.resize(count);
    features = count;
}

void Weights::reserve_features(size_t count) {
    const size_t registered = sigma.registered;
    set_features(count);
    sigma.registered = registered;
}

void Weights::drop_features(size_t count) {
    if (count >= features) return;
    cells.shrink(count * pitch);
    average.z.shrink(count * stride);
    pocket.v.shrink(count * stride);
    sigma.drop_features(count);
    features = count;
    if (touched.on) touched.resize(count);
}

void Touched::resize(size_t features) {
    bits.resize(features / 64 + 1);
    bits.back() &= (uint64_t(1) << features % 64) - 1;
}

void Weights::set_planes(std::vector<Plane> kinds, size_t of_output) {
    planes.kinds = std::move(kinds);
    planes.of_output = of_output;
    pitch = pitch_of(planes.count(), stride);
    planes.bias.resize(planes.kinds.size() * stride);
    planes.start(planes.kinds.size(), stride, planes.bias.data());
}

// The weights of one feature for more outputs.
static void widen_feature(const double* from, size_t outputs, size_t stride, double* to, double half) {
    for (size_t r = 0; r < std::max<size_t>(outputs, 2); ++r) to[r] = stride == 1 ? half_of(from[0], r, half) : from[r];
}

// One number of a plane for output 0 or 1.
static double part_of(const Plane& kind, double value, size_t output) {
    if (!kind.odd) return value;
    const double beyond = std::abs(value) - kind.dead;
    const double size = beyond > 0.0 ? kind.dead + 0.5 * beyond : std::abs(value);
    return half_of(std::copysign(size, value), output, 1.0);
}

static void widen_planes(const std::vector<Plane>& kinds, size_t count, size_t outputs, size_t stride,
                         size_t new_stride, const double* from, double* to) {
    for (size_t p = 0; p < count; ++p)
        for (size_t r = 0; r < std::max<size_t>(outputs, 2); ++r)
            to[p * new_stride + r] = stride == 1 ? part_of(kinds[p], from[p], r) : from[p * stride + r];
}

// One number per output; none where the part is not used.
static void widen(std::vector<double>& values, size_t classes, double half = 0.5) {
    if (values.empty()) return;
    if (values.size() == 1 && classes > 1) values = {half_of(values[0], 0, half), half_of(values[0], 1, half)};
    values.resize(classes, 0.0);
}

// The classes, padded to eight. Beyond eight there is room for half as many again: k classes that come one by one cost
// O(k) copies of a class instead of O(k^2). No result depends on it.
size_t Weights::stride_for(size_t classes) const {
    const size_t wanted = (classes + 7) / 8 * 8;
    if (wanted <= stride && stride > 1) return stride;
    return stride > 8 ? std::max(wanted, (stride + stride / 2) / 8 * 8) : wanted;
}

bool Weights::needs_lanes(size_t classes) const { return stride == 1 || (classes + 7) / 8 * 8 > lanes(); }

bool Weights::reshaped_by(size_t classes) const {
    return classes > (output_each ? outputs * (stride > 1) : std::max<size_t>(outputs, 2));
}

double Weights::bytes_for(size_t count, size_t classes) const {
    const double wide = double(reshaped_by(classes) ? stride_for(classes) : stride);
    const double with_planes = wide == 1.0 ? double(pitch) : double(1 + planes.count()) * wide;
    const double tables = with_planes + wide * (average.on() + pocket.on);
    const double triangles = sigma.full ? double(sigma.shared ? 1 : std::max<size_t>(classes, 1)) : 0.0;
    return sizeof(double) * (double(count) * tables + triangles * double(Covariance::row_at(count + sigma.constants)));
}

// The same weights with room for more outputs per feature.
void Weights::widen_to(size_t wanted, double half) {
    const size_t new_pitch = pitch_of(planes.count(), wanted), page = 4096 / sizeof(double);
    Buffer new_cells, new_z, new_pocket;
    new_cells.grow(features * new_pitch);
    if (average.z.size()) new_z.grow(features * wanted);
    if (pocket.v.size()) new_pocket.grow(features * wanted);
    if (new_pitch >= page)
        for (Buffer* each : {&new_cells, &new_z, &new_pocket}) each->scatter();
    if (!planes.start_at_zero())
        for (size_t j = 0; j < features; ++j)
            planes.start(planes.count(), wanted, new_cells.data() + j * new_pitch + wanted);
    Touched changed;
    changed.resize(features);
    each_touched([&](size_t j) {
        if (!is_changed(j, true)) return;  // the pages of the others stay untouched
        double* const to = new_cells.data() + j * new_pitch;
        widen_feature(v_of(j), outputs, stride, to, half);
        widen_planes(planes.kinds, planes.count(), outputs, stride, wanted, planes_of(j), to + wanted);
        if (new_z.size()) widen_feature(average.z.data() + j * stride, outputs, stride, new_z.data() + j * wanted, 0.5);
        if (new_pocket.size())
            widen_feature(pocket.v.data() + j * stride, outputs, stride, new_pocket.data() + j * wanted, 0.5);
        changed.mark(j);
    });
    cells = std::move(new_cells);
    average.z = std::move(new_z);
    pocket.v = std::move(new_pocket);
    changed.on = new_pitch >= page;
    touched = changed.on ? std::move(changed) : Touched();
    Planes of_bias = planes;
    of_bias.bias.resize(planes.kinds.size() * wanted);
    for (Plane& kind : of_bias.kinds) kind.dead = 0.0;  // penalties spare the intercept
    of_bias.start(of_bias.kinds.size(), wanted, of_bias.bias.data());
    widen_planes(of_bias.kinds, of_bias.kinds.size(), outputs, stride, wanted, planes.bias.data(), of_bias.bias.data());
    planes.bias = std::move(of_bias.bias);
    if (stride == 1) norm.ww *= half;
    stride = wanted;
    pitch = new_pitch;
}

void Weights::set_outputs(size_t classes) {
    if (!reshaped_by(classes)) return;
    const double half = p_norm.on() ? std::pow(2.0, -2.0 / p_norm.p) : 0.5;  // the part of theta that halves w
    // Outputs are padded to vectors of eight: one that fits into the padding is already there, as zeros.
    if (needs_lanes(classes)) {
        apply_pending();
        if (const size_t wanted = stride_for(classes); wanted > stride) widen_to(wanted, half);
        encode_weights();
    }
    sigma.set_outputs(classes);
    widen(bias, classes, half);
    widen(average.bias_sum, classes);
    widen(pocket.bias, classes);
    outputs = classes;
}

void Weights::drop_outputs(size_t classes) {
    bias.resize(classes);
    if (average.on()) average.bias_sum.resize(classes);
    if (pocket.on) pocket.bias.resize(classes);
    sigma.drop_outputs(classes);
    outputs = classes;
}

}  // namespace onepass
