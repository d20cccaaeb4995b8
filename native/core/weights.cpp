#include "core/weights.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/model.hpp"

namespace onepass {

// Gives the first planes of a feature, or of the intercepts, their start values.
static void start_planes(const std::vector<Plane>& kinds, size_t count, size_t stride, double* planes) {
    for (size_t p = 0; p < count; ++p)
        for (size_t r = 0; r < stride; ++r) planes[p * stride + r] = kinds[p].start;
}

static bool same(double a, double b) { return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b); }

// Writes a number where it changes something: untouched pages stay untouched.
static void put(double& to, double value) {
    if (!same(to, value)) to = value;
}

// Calls visit with every v that may be anything but 0, padding included, and its place where features are only `stride`
// apart.
template <class Visit>
static void each_v(Weights& w, const Visit& visit) {
    w.each_touched([&](size_t j) {
        for (size_t r = 0; r < w.stride; ++r) visit(w.v_of(j)[r], j * w.stride + r);
    });
}

bool Weights::starts_at_zero() const {
    for (size_t p = 0; p < plane_count(); ++p)
        if (kinds[p].start != 0.0) return false;
    return true;
}

bool Weights::is_met(size_t feature, bool with_pocket) const {
    const auto differs = [&](const double* from, double start) {
        return !std::all_of(from, from + rows, [start](double value) { return same(value, start); });
    };
    if (differs(v_of(feature), 0.0)) return true;
    for (size_t p = 0; p < plane_count(); ++p)
        if (differs(planes_of(feature) + p * stride, kinds[p].start)) return true;
    if (z.size() && differs(z.data() + feature * stride, 0.0)) return true;
    return with_pocket && pocket.size() && differs(pocket.data() + feature * stride, 0.0);
}

void Weights::set_features(size_t d) {
    if (d <= features) return;
    cells.grow(d * pitch);
    if (averaging != Averaging::none) z.grow(d * stride);
    if (pocketing) pocket.grow(d * stride);
    sigma.set_features(d);
    if (!starts_at_zero())
        for (size_t j = features; j < d; ++j) start_planes(kinds, plane_count(), stride, planes_of(j));
    if (wide) touched.resize(d / 64 + 1);
    features = d;
}

void Weights::let_in(size_t d) {
    const size_t met = sigma.met;
    set_features(d);
    sigma.met = met;
}

void Weights::set_kinds(std::vector<Plane> all, size_t of_rows) {
    kinds = std::move(all);
    row_kinds = of_rows;
    pitch = pitch_of(plane_count(), stride);
    bias_planes.resize(kinds.size() * stride);
    start_planes(kinds, kinds.size(), stride, bias_planes.data());
}

void Weights::drop_features(size_t d) {
    if (d >= features) return;
    cells.shrink(d * pitch);
    z.shrink(d * stride);
    pocket.shrink(d * stride);
    sigma.drop_features(d);
    features = d;
    if (!wide) return;
    touched.resize(d / 64 + 1);
    touched.back() &= (uint64_t(1) << d % 64) - 1;
}

// Row 0 gets -w/2, row 1 +w/2; a weight of zero stays +0.0 in both, as in rows that start at zero.
static double half_of(double w, size_t row, double half = 0.5) { return row == 0 ? 0.0 - half * w : half * w; }

// The weights of one feature for more rows.
static void widen_row(const double* from, size_t rows, size_t stride, double* to, double half) {
    for (size_t r = 0; r < std::max<size_t>(rows, 2); ++r) to[r] = stride == 1 ? half_of(from[0], r, half) : from[r];
}

// The same for a plane: an even one goes to both rows as it is.
static double part_of(const Plane& kind, double value, size_t row) {
    if (!kind.odd) return value;
    const double beyond = std::abs(value) - kind.dead;
    const double size = beyond > 0.0 ? kind.dead + 0.5 * beyond : std::abs(value);
    return half_of(std::copysign(size, value), row, 1.0);
}

static void widen_planes(const std::vector<Plane>& kinds, size_t count, size_t rows, size_t stride, size_t new_stride,
                         const double* from, double* to) {
    for (size_t p = 0; p < count; ++p)
        for (size_t r = 0; r < std::max<size_t>(rows, 2); ++r)
            to[p * new_stride + r] = stride == 1 ? part_of(kinds[p], from[p], r) : from[p * stride + r];
}

static void widen(std::vector<double>& values, size_t classes, double half = 0.5) {
    if (values.size() == 1 && classes > 1) values = {half_of(values[0], 0, half), half_of(values[0], 1, half)};
    values.resize(classes, 0.0);
}

size_t Weights::stride_for(size_t classes) const {
    const size_t wanted = (classes + 7) / 8 * 8;
    if (wanted <= stride && stride > 1) return stride;
    return stride > 8 ? std::max(wanted, (stride + stride / 2) / 8 * 8) : wanted;
}

bool Weights::needs_lanes(size_t classes) const { return stride == 1 || (classes + 7) / 8 * 8 > lanes(); }

bool Weights::reshaped_by(size_t classes) const {
    return classes > (row_each ? rows * (stride > 1) : std::max<size_t>(rows, 2));
}

double Weights::bytes_for(size_t count, size_t classes) const {
    const double apart = double(reshaped_by(classes) ? stride_for(classes) : stride);
    const double planes = apart == 1.0 ? double(pitch) : double(1 + plane_count()) * apart;
    const double tables = planes + apart * ((averaging != Averaging::none) + pocketing);
    const double triangles = sigma.full ? double(sigma.shared ? 1 : std::max<size_t>(classes, 1)) : 0.0;
    return sizeof(double) * (double(count) * tables + triangles * double(Covariance::row_at(count + sigma.constants)));
}

// The same weights with more room for classes between features.
void Weights::widen_to(size_t wanted, double half) {
    const size_t new_pitch = pitch_of(plane_count(), wanted), page = 4096 / sizeof(double);
    Buffer cells_now, z_now, pocket_now;
    cells_now.grow(features * new_pitch);
    if (z.size()) z_now.grow(features * wanted);
    if (pocket.size()) pocket_now.grow(features * wanted);
    if (new_pitch >= page)
        for (Buffer* each : {&cells_now, &z_now, &pocket_now}) each->scatter();
    if (!starts_at_zero())
        for (size_t j = 0; j < features; ++j)
            start_planes(kinds, plane_count(), wanted, cells_now.data() + j * new_pitch + wanted);
    std::vector<uint64_t> met(features / 64 + 1);
    each_touched([&](size_t j) {
        if (!is_met(j, true)) return;  // the pages of the others stay untouched
        double* const to = cells_now.data() + j * new_pitch;
        widen_row(v_of(j), rows, stride, to, half);
        widen_planes(kinds, plane_count(), rows, stride, wanted, planes_of(j), to + wanted);
        if (z.size()) widen_row(z.data() + j * stride, rows, stride, z_now.data() + j * wanted, 0.5);
        if (pocket.size()) widen_row(pocket.data() + j * stride, rows, stride, pocket_now.data() + j * wanted, 0.5);
        met[j / 64] |= uint64_t(1) << j % 64;
    });
    cells = std::move(cells_now);
    z = std::move(z_now);
    pocket = std::move(pocket_now);
    wide = new_pitch >= page;
    if (wide) touched = std::move(met);
    std::vector<double> bias_wide(kinds.size() * wanted);
    std::vector<Plane> of_bias = kinds;
    for (Plane& kind : of_bias) kind.dead = 0.0;  // penalties spare the intercept
    start_planes(of_bias, kinds.size(), wanted, bias_wide.data());
    widen_planes(of_bias, kinds.size(), rows, stride, wanted, bias_planes.data(), bias_wide.data());
    bias_planes = std::move(bias_wide);
    if (stride == 1) ww *= half;
    stride = wanted;
    pitch = new_pitch;
}

void Weights::set_rows(size_t classes) {
    if (!reshaped_by(classes)) return;
    // Rows are padded to whole vectors of eight; a class that fits the padding is already there, as zeros.
    const double half = linked() ? std::pow(2.0, -2.0 / p) : 0.5;  // the part of theta that halves w
    if (needs_lanes(classes)) {
        pay();
        if (const size_t wanted = stride_for(classes); wanted > stride) widen_to(wanted, half);
        raise();
    }
    sigma.set_rows(classes);
    widen(bias, classes, half);
    widen(bias_sum, classes);
    widen(pocket_bias, classes);
    rows = classes;
}

void Weights::drop_rows(size_t classes) {
    for (std::vector<double>* each : {&bias, &bias_sum, &pocket_bias}) each->resize(classes);
    sigma.drop_rows(classes);
    rows = classes;
}

void Weights::negate() {
    for (Buffer* buffer : {&z, &pocket})
        for (size_t i = 0; i < buffer->size(); ++i) put(buffer->data()[i], 0.0 - buffer->data()[i]);
    for (size_t i = 0; i < cells.size(); ++i) {
        const size_t plane = i % pitch / stride;
        if (plane == 0 || (plane <= plane_count() && kinds[plane - 1].odd)) put(cells.data()[i], 0.0 - cells.data()[i]);
    }
    for (size_t i = 0; i < bias_planes.size(); ++i)
        if (kinds[i / stride].odd) bias_planes[i] = 0.0 - bias_planes[i];
    for (double& b : bias) b = 0.0 - b;
    for (double& b : bias_sum) b = 0.0 - b;
    for (double& b : pocket_bias) b = 0.0 - b;
    votes.updates.negate();
    batch.updates.negate();
}

void Weights::anchor() {
    if (undo) undo->put_aside(*this);
    if (z.size()) each_v(*this, [&](double v, size_t i) { put(z.data()[i], z.data()[i] - A * v); });
    z_peak += A * peak;
    A = 0.0;
}

void Weights::pay() {
    if (owed == 0.0) return;
    if (undo) undo->put_aside(*this);
    each_v(*this, [&](double& v, size_t) { put(v, paid(v)); });
    owed = 0.0;
}

void Weights::raise() {
    if (!lazy || (owed == 0.0 && !flag())) return;
    each_v(*this, [&](double& v, size_t) { put(v, raised(v)); });
}

void Weights::keep() {
    each_v(*this, [&](double v, size_t i) { put(pocket.data()[i], v); });
    pocket_bias = bias;
    pocket_a = a;
    if (!linked()) return;
    const double norm = theta_norm();  // the pocket holds w
    each_v(*this, [&](double v, size_t i) { put(pocket.data()[i], link(a * v, norm)); });
    for (double& b : pocket_bias) b = link(b, norm);
    pocket_a = 1.0;
}

double Weights::link(double theta, double norm) const {
    return norm > 0.0 ? norm * std::copysign(std::pow(std::abs(theta) / norm, p - 1.0), theta) : 0.0;
}

double Weights::theta_norm() const {
    const double most = std::sqrt(ww);
    double largest = most, sum = 0.0;
    for (double b : bias) largest = std::max(largest, std::abs(b));
    if (largest == 0.0) return 0.0;
    for (double b : bias) sum += std::pow(std::abs(b) / largest, p);
    return largest * std::pow(std::pow(most / largest, p) + sum, 1.0 / p);
}

double Weights::beside(double norm, double constant) const {
    const double largest = std::max(norm, std::abs(constant));
    if (largest == 0.0) return 0.0;
    return largest * std::pow(std::pow(norm / largest, p) + std::pow(std::abs(constant) / largest, p), 1.0 / p);
}

void Weights::into_ball() {
    const double norm = theta_norm();
    if (!(norm > ball)) return;
    const double inside = ball / norm;
    a *= inside;
    ww *= inside * inside;
    for (double& b : bias) b *= inside;
}

void Weights::fold() {
    anchor();
    pay();
    each_v(*this, [&](double& v, size_t) { put(v, v * a); });
    peak *= std::abs(a);
    a = 1.0;
    raise();
}

void Weights::clear() {
    anchor();
    each_v(*this, [](double& v, size_t) { put(v, 0.0); });
    a = 1.0;
    ww = peak = 0.0;
}

void Weights::recompute_norm() {
    since_recomputed = 0.0;
    double sum = 0.0;
    if (linked()) {
        double largest = 0.0;
        each_v(*this, [&](double v, size_t) { largest = std::max(largest, std::abs(v)); });
        if (largest > 0.0) each_v(*this, [&](double v, size_t) { sum += std::pow(std::abs(v) / largest, p); });
        const double norm = a * largest * std::pow(sum, 1.0 / p);
        ww = norm * norm;
        return;
    }
    each_v(*this, [&](double v, size_t) { sum += v * v; });
    ww = a * a * sum;
}

void Weights::recompute_peaks() {
    peak = z_peak = 0.0;
    each_v(*this, [&](double v, size_t) { peak = std::max(peak, std::abs(v)); });
    if (z.size()) each_v(*this, [&](double, size_t i) { z_peak = std::max(z_peak, std::abs(z.data()[i])); });
}

void Updates::push(const double* x, const int64_t* at, size_t n, const double* of_rows, size_t rows) {
    value.insert(value.end(), x, x + n);
    index.insert(index.end(), at, at + n);
    ends.push_back(int64_t(index.size()));
    coefficients.insert(coefficients.end(), of_rows, of_rows + rows);
    coefficient_ends.push_back(int64_t(coefficients.size()));
}

void Updates::coefficients_of(size_t k, size_t rows, double* out) const {
    const size_t begin = k ? size_t(coefficient_ends[k - 1]) : 0, end = size_t(coefficient_ends[k]);
    for (size_t r = 0; r < rows; ++r) {
        if (end - begin == 1 && rows > 1) out[r] = r < 2 ? half_of(coefficients[begin], r) : 0.0;  // before the third
        else out[r] = r < end - begin ? coefficients[begin + r] : 0.0;
    }
}

void Updates::negate() {
    for (double& c : coefficients) c = 0.0 - c;
}

void MiniBatch::clear() {
    rounds = reach = 0.0;
    moves = false;
    scale = decay = shrink = 1.0;
    soft = 0.0;
    updates = Updates();
}

}  // namespace onepass
