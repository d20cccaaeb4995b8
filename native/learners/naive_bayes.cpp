#include "learners/naive_bayes.hpp"

#include <algorithm>
#include <cfloat>
#include <cmath>

#include "loops/learner_loops.hpp"

namespace onepass {

// The least variance of a feature that never varied, and the largest squared distance in units of the variance. With
// them the scores of all rows are finite.
constexpr double smallest_variance = DBL_MIN, farthest = 1e290;

void NaiveBayes::add_class() {
    Class fresh;
    fresh.count.resize(features);
    if (statistics == Statistics::moments) fresh.mean.resize(features), fresh.square.resize(features);
    classes.push_back(std::move(fresh));
    stale = true;
}

void NaiveBayes::widen(size_t columns) {
    if (columns <= features) return;
    features = columns;
    for (Class& c : classes) {
        c.count.resize(features);
        if (statistics == Statistics::moments) c.mean.resize(features), c.square.resize(features);
    }
    stale = true;
}

// With forgetting, all earlier counts should be multiplied by `forgetting`. Instead, the weight of new rows grows, and
// all counts are divided by `unit` when it becomes large.
double NaiveBayes::forget(double w) {
    unit /= forgetting;
    if (unit * std::max(w, 1.0) > 1e100) {
        const double scale = 1.0 / unit;
        for (Class& each : classes) {
            each.mass *= scale;
            each.total *= scale;
            for (double& count : each.count) count *= scale;
            for (double& square : each.square) square *= scale;
        }
        unit = 1.0;
    }
    return w * unit;
}

void NaiveBayes::learn_moments(const FeatureRow& row, Class& to, double w) {
    if (!row.index) {
        learner_loops->moments(row.value, w, to.count.data(), to.mean.data(), to.square.data(), row.n);
        return;
    }
    for (size_t i = 0; i < row.n; ++i) {
        const size_t j = row.at(i);
        learner_loops->moments(row.value + i, w, &to.count[j], &to.mean[j], &to.square[j], 1);
    }
}

void NaiveBayes::learn(const FeatureRow& row, size_t c, double w) {
    t += 1;
    if (w == 0.0) return;
    stale = true;
    if (forgetting < 1.0) w = forget(w);
    Class& to = classes[c];
    to.mass += w;
    if (statistics == Statistics::moments) return learn_moments(row, to, w);
    double sums[4] = {0.0, 0.0, 0.0, 0.0};  // four, so that an addition need not wait for the one before
    for (size_t i = 0; i < row.n; ++i) {
        const double x = statistics == Statistics::counts ? row.value[i] : double(row.value[i] > threshold);
        to.count[row.at(i)] += w * x;
        sums[i % 4] += x;
    }
    to.total += w * ((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

void NaiveBayes::with_zeros(const Class& c, size_t j, double& mean, double& square) const {
    // The formula of Chan, Golub and LeVeque for the union of two sets, one of which has only zeros.
    const double m = c.count[j], zeros = c.mass - m > 0.0 ? c.mass - m : 0.0, n = m + zeros;
    if (n <= 0.0) {
        mean = square = 0.0;
        return;
    }
    mean = c.mean[j] * (m / n);
    square = c.square[j] + c.mean[j] * c.mean[j] * (m * zeros / n);
}

double NaiveBayes::largest_variance() const {
    double largest = 0.0;
    for (size_t j = 0; j < features; ++j) {
        double n = 0.0, mean = 0.0, square = 0.0;
        for (const Class& c : classes) {
            if (c.mass <= 0.0) continue;
            double here, around;
            with_zeros(c, j, here, around);
            const double delta = here - mean, total = n + c.mass;
            square += around + delta * delta * (n * c.mass / total);
            mean += delta * (c.mass / total);
            n = total;
        }
        if (n > 0.0 && square / n > largest) largest = square / n;
    }
    return largest;
}

double NaiveBayes::complement_sum(size_t c, double smoothing) const {
    double sum = double(features) * smoothing;
    for (size_t other = 0; other < classes.size(); ++other)
        if (other != c) sum += classes[other].total;
    return sum;
}

double NaiveBayes::count_of_others(size_t c, size_t j, double smoothing) const {
    double sum = smoothing;
    for (size_t other = 0; other < classes.size(); ++other)
        if (other != c) sum += classes[other].count[j];
    return sum;
}

void NaiveBayes::score_multinomial(const FeatureRow& row, double a, double* out, double unknown) const {
    double total = unknown;
    for (size_t i = 0; i < row.n; ++i) total += row.value[i];
    for (size_t c = 0; c < classes.size(); ++c) {
        double s = unknown == 0.0 ? 0.0 : unknown * std::log(a);
        for (size_t i = 0; i < row.n; ++i)
            if (row.value[i] != 0.0) s += row.value[i] * std::log(classes[c].count[row.at(i)] + a);
        const bool nothing_counted = total == 0.0 || features == 0;  // in this row, or in all rows so far
        out[c] = nothing_counted ? 0.0 : s - total * std::log(classes[c].total + a * double(features));
    }
}

void NaiveBayes::score_gaussian(const FeatureRow& row, double smoothing, double* out) {
    if (stale) cache.assign(1, largest_variance()), stale = false;
    const double floor = smoothing * cache[0];
    constexpr double two_pi = 6.283185307179586476925286766559;
    for (size_t c = 0; c < classes.size(); ++c) {
        double s = 0.0;
        size_t next = 0;
        for (size_t j = 0; j < features; ++j) {
            double x = 0.0, mean, square;
            if (next < row.n && row.at(next) == j) x = row.value[next++];
            with_zeros(classes[c], j, mean, square);
            const double spread = (classes[c].mass > 0.0 ? square / classes[c].mass : 0.0) + floor;
            const double variance = std::max(spread, smallest_variance);
            s -= 0.5 * (std::log(two_pi * variance) + std::min((x - mean) * (x - mean) / variance, farthest));
        }
        out[c] = s;
    }
}

// The score of a row without any present feature, for each class.
void NaiveBayes::cache_absent_features(double a) {
    cache.assign(classes.size(), 0.0);
    for (size_t c = 0; c < classes.size(); ++c) {
        const double all = classes[c].mass + a;
        for (size_t j = 0; j < features; ++j) cache[c] += std::log(std::max(all - classes[c].count[j], a));
        cache[c] -= double(features) * std::log(classes[c].mass + 2.0 * a);
    }
    stale = false;
}

void NaiveBayes::score_bernoulli(const FeatureRow& row, double a, double* out) {
    if (stale) cache_absent_features(a);
    for (size_t c = 0; c < classes.size(); ++c) {
        out[c] = cache[c];
        const double all = classes[c].mass + a;
        for (size_t i = 0; i < row.n; ++i) {
            if (!(row.value[i] > threshold)) continue;
            const double count = classes[c].count[row.at(i)];
            out[c] += std::log(count + a) - std::log(std::max(all - count, a));
        }
    }
}

// The sum of ln theta over all features, for each class.
void NaiveBayes::cache_complement_norms(double a) {
    cache.assign(classes.size(), 0.0);
    for (size_t c = 0; c < classes.size(); ++c) {
        const double log_sum = std::log(complement_sum(c, a));
        for (size_t j = 0; j < features; ++j) cache[c] += std::log(count_of_others(c, j, a)) - log_sum;
    }
    stale = false;
}

void NaiveBayes::score_complement(const FeatureRow& row, double a, bool normed, double* out, double unknown) {
    if (features == 0 || (normed && features == 1)) {  // no class differs from the others
        std::fill_n(out, classes.size(), 0.0);
        return;
    }
    if (normed && stale) cache_complement_norms(a);
    for (size_t c = 0; c < classes.size(); ++c) {
        const double log_sum = std::log(complement_sum(c, a));
        double s = unknown == 0.0 ? 0.0 : unknown * (std::log(a) - log_sum);
        for (size_t i = 0; i < row.n; ++i)
            if (row.value[i] != 0.0) s += row.value[i] * (std::log(count_of_others(c, row.at(i), a)) - log_sum);
        out[c] = normed ? s / cache[c] : -s;
    }
}

void NaiveBayes::score(const FeatureRow& row, Scores by, double smoothing, double* out, double unknown) {
    const double a = smoothing * unit;
    switch (by) {
        case Scores::multinomial: return score_multinomial(row, a, out, unknown);
        case Scores::gaussian: return score_gaussian(row, smoothing, out);
        case Scores::bernoulli: return score_bernoulli(row, a, out);
        case Scores::complement: return score_complement(row, a, false, out, unknown);
        case Scores::normed_complement: return score_complement(row, a, true, out, unknown);
    }
}

}  // namespace onepass
