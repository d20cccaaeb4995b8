#include "model.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "weights.hpp"

namespace onepass {

template <class T>
Zeroed<T>::Zeroed(const Zeroed& other) {
    *this = other;
}

template <class T>
Zeroed<T>& Zeroed<T>::operator=(const Zeroed& other) {
    if (this == &other) return *this;
    if (other.size_ > capacity_) {
        Zeroed larger;
        larger.allocate(other.size_, std::malloc);  // all of it is written now
        larger.size_ = other.size_;
        *this = std::move(larger);
    }
    if (other.size_) std::memcpy(data_, other.data_, other.size_ * sizeof(T));
    if (other.size_ < size_) std::memset(data_ + other.size_, 0, (size_ - other.size_) * sizeof(T));
    size_ = other.size_;
    return *this;
}

template <class T>
Zeroed<T>::Zeroed(Zeroed&& other) noexcept {
    *this = std::move(other);
}

template <class T>
Zeroed<T>& Zeroed<T>::operator=(Zeroed&& other) noexcept {
    std::swap(block_, other.block_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
    return *this;
}

template <class T>
Zeroed<T>::~Zeroed() {
    std::free(block_);
}

template <class T>
void Zeroed<T>::grow(size_t size) {
    if (size <= size_) return;
    if (size > capacity_) {
        // The first allocation is exact (a table of fixed size stays so); growth is geometric.
        const size_t capacity = capacity_ ? std::max(size, capacity_ + capacity_ / 2) : size;
        Zeroed bigger;
        bigger.allocate(capacity, [](size_t bytes) { return std::calloc(bytes, 1); });
        if (size_) std::memcpy(bigger.data_, data_, size_ * sizeof(T));
        *this = std::move(bigger);
    }
    size_ = size;
}

template <class T>
void Zeroed<T>::allocate(size_t capacity, void* (*with)(size_t)) {
    constexpr size_t line = 64;
    size_t bytes = capacity * sizeof(T) + line;
    block_ = with(bytes);
    if (!block_) throw std::bad_alloc();
    void* begin = block_;
    data_ = static_cast<T*>(std::align(line, capacity * sizeof(T), begin, bytes));
    capacity_ = capacity;
}

template <class T>
void Zeroed<T>::shrink(size_t size) {
    if (size >= size_) return;
    std::memset(data_ + size, 0, (size_ - size) * sizeof(T));
    size_ = size;
}

template <class T>
void Zeroed<T>::clear() {
    if (size_) std::memset(data_, 0, size_ * sizeof(T));
}

template class Zeroed<double>;
template class Zeroed<uint32_t>;

// Gives the first planes of a feature, or of the intercepts, their start values.
static void start_planes(const std::vector<Plane>& kinds, size_t count, size_t stride, double* planes) {
    for (size_t p = 0; p < count; ++p)
        for (size_t r = 0; r < stride; ++r) planes[p * stride + r] = kinds[p].start;
}

// Calls visit with every v, padding included, and its place where features are only `stride` apart.
template <class Visit>
static void each_v(Weights& w, const Visit& visit) {
    for (size_t j = 0; j < w.features; ++j)
        for (size_t r = 0; r < w.stride; ++r) visit(w.v_of(j)[r], j * w.stride + r);
}

void Weights::set_features(size_t d) {
    if (d <= features) return;
    cells.grow(d * pitch);
    if (averaging != Averaging::none) z.grow(d * stride);
    if (pocketing) pocket.grow(d * stride);
    sigma.set_features(d);
    bool zeros = true;  // are there already, on pages that nobody touched
    for (size_t p = 0; p < plane_count(); ++p) zeros &= kinds[p].start == 0.0;
    for (size_t j = features; j < d && !zeros; ++j) start_planes(kinds, plane_count(), stride, planes_of(j));
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
}

// Row 0 gets -w/2, row 1 +w/2; a weight of zero stays +0.0 in both, as in rows that start at zero.
static double half_of(double w, size_t row, double half = 0.5) { return row == 0 ? 0.0 - half * w : half * w; }

// The weights of one feature for more rows.
static void widen_row(const double* from, size_t rows, size_t stride, double* to, double half) {
    for (size_t r = 0; r < std::max<size_t>(rows, 2); ++r) to[r] = stride == 1 ? half_of(from[0], r, half) : from[r];
}

static Buffer widened(const Buffer& old, size_t features, size_t rows, size_t stride, size_t new_stride) {
    Buffer wide;
    wide.grow(features * new_stride);
    for (size_t j = 0; j < features; ++j)
        widen_row(old.data() + j * stride, rows, stride, wide.data() + j * new_stride, 0.5);
    return wide;
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
        for (size_t r = 0; r < new_stride; ++r) {
            const double* old = from + p * stride;
            double& made = to[p * new_stride + r];
            if (stride == 1) made = r < 2 ? part_of(kinds[p], old[0], r) : kinds[p].start;
            else made = r < rows ? old[r] : kinds[p].start;
        }
}

static void widen(std::vector<double>& values, size_t classes, double half = 0.5) {
    if (values.size() == 1 && classes > 1) values = {half_of(values[0], 0, half), half_of(values[0], 1, half)};
    values.resize(classes, 0.0);
}

void Weights::set_rows(size_t classes) {
    if (classes <= (row_each ? rows * (stride > 1) : std::max<size_t>(rows, 2))) return;
    // Rows are padded to whole vectors of eight; a class that fits the padding is already there, as zeros.
    const size_t wanted = (classes + 7) / 8 * 8;
    const double half = linked() ? std::pow(2.0, -2.0 / p) : 0.5;  // the part of theta that halves w
    if (stride == 1 || wanted > stride) {
        pay();
        const size_t new_pitch = pitch_of(plane_count(), wanted);
        Buffer wide;
        wide.grow(features * new_pitch);
        for (size_t j = 0; j < features; ++j) {
            double* const to = wide.data() + j * new_pitch;
            widen_row(v_of(j), rows, stride, to, half);
            widen_planes(kinds, plane_count(), rows, stride, wanted, planes_of(j), to + wanted);
        }
        cells = std::move(wide);
        if (averaging != Averaging::none) z = widened(z, features, rows, stride, wanted);
        if (pocketing) pocket = widened(pocket, features, rows, stride, wanted);
        std::vector<double> bias_wide(kinds.size() * wanted);
        std::vector<Plane> of_bias = kinds;
        for (Plane& kind : of_bias) kind.dead = 0.0;  // penalties spare the intercept
        widen_planes(of_bias, kinds.size(), rows, stride, wanted, bias_planes.data(), bias_wide.data());
        bias_planes = std::move(bias_wide);
        if (stride == 1) ww *= half;
        stride = wanted;
        pitch = new_pitch;
        raise();
    }
    sigma.set_rows(classes);
    widen(bias, classes, half);
    widen(bias_sum, classes);
    widen(pocket_bias, classes);
    rows = classes;
}

void Weights::negate() {
    for (Buffer* buffer : {&z, &pocket})
        for (size_t i = 0; i < buffer->size(); ++i) buffer->data()[i] = 0.0 - buffer->data()[i];
    for (size_t i = 0; i < cells.size(); ++i) {
        const size_t plane = i % pitch / stride;
        if (plane == 0 || (plane <= plane_count() && kinds[plane - 1].odd)) cells.data()[i] = 0.0 - cells.data()[i];
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
    if (z.size()) each_v(*this, [&](double v, size_t i) { z.data()[i] -= A * v; });
    z_peak += A * peak;
    A = 0.0;
}

void Weights::pay() {
    if (owed == 0.0) return;
    if (undo) undo->put_aside(*this);
    each_v(*this, [&](double& v, size_t) { v = paid(v); });
    owed = 0.0;
}

void Weights::raise() {
    if (!lazy || (owed == 0.0 && !flag())) return;
    each_v(*this, [&](double& v, size_t) { v = raised(v); });
}

void Weights::keep() {
    each_v(*this, [&](double v, size_t i) { pocket.data()[i] = v; });
    pocket_bias = bias;
    pocket_a = a;
    if (!linked()) return;
    const double norm = theta_norm();  // the pocket holds w
    for (size_t i = 0; i < pocket.size(); ++i) pocket.data()[i] = link(a * pocket.data()[i], norm);
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
    each_v(*this, [&](double& v, size_t) { v *= a; });
    peak *= std::abs(a);
    a = 1.0;
    raise();
}

void Weights::clear() {
    anchor();
    each_v(*this, [](double& v, size_t) { v = 0.0; });
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
    for (size_t i = 0; i < z.size(); ++i) z_peak = std::max(z_peak, std::abs(z.data()[i]));
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

// Is there more to a weight than v and z?
static bool keeps_more(const Weights& w) { return w.pocketing || w.votes.on || !w.kinds.empty() || w.sigma.on; }

void Undo::begin(const Model& model) {
    const Weights& w = model.w;
    all = false;
    index_.clear();
    v_.clear();
    z_.clear();
    const double numbers[] = {w.a,    w.A,  w.bias[0],          w.bias_sum[0], w.averaged,
                              w.owed, w.ww, w.since_recomputed, w.peak,        w.z_peak};
    std::copy(std::begin(numbers), std::end(numbers), weights_);
    std::copy(model.state, model.state + model.slots, state_);
    counters_[0] = model.t, counters_[1] = model.k, counters_[2] = model.skipped_zero;
    if (w.batch.on()) batch_ = w.batch;
    if (keeps_more(w)) readout_ = w;
}

void Undo::restore(Model& model) {
    Weights& w = model.w;
    if (all) {
        std::copy(all_cells_.data(), all_cells_.data() + all_cells_.size(), w.cells.data());
        std::copy(all_z_.data(), all_z_.data() + all_z_.size(), w.z.data());
    }
    for (size_t i = index_.size(); i-- > 0;) {  // a weight written twice was put aside twice
        w.v_of(size_t(index_[i]))[0] = v_[i];
        if (w.z.size()) w.z.data()[index_[i]] = z_[i];
    }
    const double* from = weights_;
    for (double* number :
         {&w.a, &w.A, &w.bias[0], &w.bias_sum[0], &w.averaged, &w.owed, &w.ww, &w.since_recomputed, &w.peak, &w.z_peak})
        *number = *from++;
    std::copy(state_, state_ + model.slots, model.state);
    model.t = counters_[0], model.k = counters_[1], model.skipped_zero = counters_[2];
    if (w.batch.on()) w.batch = batch_;
    if (keeps_more(w)) w = readout_;
}

Undo::Room Undo::room_for(size_t n, bool averaging) {
    const size_t from = index_.size();
    index_.resize(from + n);
    v_.resize(from + n);
    if (averaging) z_.resize(from + n);
    return {index_.data() + from, v_.data() + from, averaging ? z_.data() + from : nullptr};
}

void Undo::put_aside(const Weights& w) {
    if (all) return;
    all = true;
    all_cells_.shrink(w.cells.size());
    all_cells_.grow(w.cells.size());
    std::copy(w.cells.data(), w.cells.data() + w.cells.size(), all_cells_.data());
    all_z_.shrink(w.z.size());
    all_z_.grow(w.z.size());
    std::copy(w.z.data(), w.z.data() + w.z.size(), all_z_.data());
}

void Model::record_vote(const double* x, const int64_t* index, size_t n, const double* coefficients) {
    w.votes.updates.push(x, index, n, coefficients, w.rows);
    w.votes.counts.push_back(1.0);
}

void Model::count_votes(const double* x, const int64_t* index, size_t n, double base, double* out) const {
    thread_local std::vector<double> spread, scores, coefficients;
    const Votes& votes = w.votes;
    const Updates& updates = votes.updates;
    if (spread.size() < w.features) spread.resize(w.features);
    for (size_t i = 0; i < n; ++i) spread[size_t(index[i])] = x[i];
    scores.assign(w.rows, base);
    coefficients.resize(w.rows);
    const bool nobody = updates.count() == 0 && votes.counts[0] == 0.0;  // has voted yet: w = 0 stands alone
    for (size_t r = 0; r < w.rows; ++r) out[r] = nobody ? base : 0.0;
    for (size_t k = 0; !nobody; ++k) {
        if (w.rows == 1) {
            out[0] += scores[0] > 0.0 ? votes.counts[k] : -votes.counts[k];
        } else {
            size_t best = 0;
            for (size_t r = 1; r < w.rows; ++r)
                if (scores[r] > scores[best]) best = r;
            out[best] += votes.counts[k];
        }
        if (k == updates.count()) break;
        double dot = constant * constant;
        for (size_t i = updates.begin(k); i < size_t(updates.ends[k]); ++i)
            dot += updates.value[i] * spread[size_t(updates.index[i])];
        updates.coefficients_of(k, w.rows, coefficients.data());
        for (size_t r = 0; r < w.rows; ++r) scores[r] += coefficients[r] * dot;
    }
    for (size_t i = 0; i < n; ++i) spread[size_t(index[i])] = 0.0;
}

void Model::room_along(size_t size) {
    const size_t own = w.sigma.shared ? 1 : w.rows, all = own * (size + 1) + 16;
    if (along.z.size() < all) {
        along.z.resize(all);
        along.made.resize(all);
    }
    if (along.x.size() < size + 16) along.x.resize(size + 16);
}

double* Model::room_to_keep(size_t size) {
    const size_t with_rest = size + 16;  // the last elements of a row are written as whole vectors
    if (kept.size() < with_rest) kept.resize(with_rest);
    return kept.data();
}

double* Model::gathered(size_t size) const {
    thread_local std::vector<double> numbers;
    if (numbers.size() < size + 16)
        numbers.resize(size + 16);  // the last elements of a row are written as whole vectors
    return numbers.data();
}

double* Model::linked_bias() const {
    thread_local std::vector<double> numbers;
    if (numbers.size() < w.rows) numbers.resize(w.rows);
    return numbers.data();
}

double* Model::scratch() const {
    thread_local std::vector<double> numbers;
    if (numbers.size() < w.stride) numbers.resize(w.stride);
    return numbers.data();
}

}  // namespace onepass
