#include "learners/naive_bayes.hpp"

#include <algorithm>
#include <cfloat>
#include <cmath>

#include "loops/learner_loops.hpp"

namespace onepass {

// A feature without variance counts as one with hardly any: its own value is all but certain, all others are equally
// strange. So a score is finite, whatever the row.
constexpr double smallest_variance = DBL_MIN, farthest = 1e290;

void NaiveBayes::add_class() {
    Class fresh;
    fresh.count.resize(features);
    if (keeps == Keeps::moments) fresh.mean.resize(features), fresh.square.resize(features);
    classes.push_back(std::move(fresh));
    stale = true;
}

void NaiveBayes::widen(size_t columns) {
    if (columns <= features) return;
    features = columns;
    for (Class& c : classes) {
        c.count.resize(features);
        if (keeps == Keeps::moments) c.mean.resize(features), c.square.resize(features);
    }
    stale = true;
}

void NaiveBayes::learn(const FeatureRow& row, size_t c, double w) {
    t += 1;
    if (w == 0.0) return;
    stale = true;
    if (forgetting < 1.0) {
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
        w *= unit;
    }
    Class& to = classes[c];
    to.mass += w;
    if (keeps == Keeps::moments) {
        if (!row.index) {
            learner_loops->moments(row.value, w, to.count.data(), to.mean.data(), to.square.data(), row.n);
            return;
        }
        for (size_t i = 0; i < row.n; ++i) {
            const size_t j = row.at(i);
            learner_loops->moments(row.value + i, w, &to.count[j], &to.mean[j], &to.square[j], 1);
        }
        return;
    }
    double sums[4] = {0.0, 0.0, 0.0, 0.0};  // four, so that one addition need not wait for the last
    for (size_t i = 0; i < row.n; ++i) {
        const double x = keeps == Keeps::counts ? row.value[i] : double(row.value[i] > threshold);
        to.count[row.at(i)] += w * x;
        sums[i % 4] += x;
    }
    to.total += w * ((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

void NaiveBayes::with_zeros(const Class& c, size_t j, double& mean, double& square) const {
    // Chan, Golub and LeVeque's formula for joining two sets, one of them zeros.
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

void NaiveBayes::score(const FeatureRow& row, Scores by, double smoothing, double* out, double unknown) {
    const size_t C = classes.size();
    const double a = smoothing * unit;
    if (by == Scores::multinomial) {
        double total = unknown;
        for (size_t i = 0; i < row.n; ++i) total += row.value[i];
        for (size_t c = 0; c < C; ++c) {
            double s = unknown == 0.0 ? 0.0 : unknown * std::log(a);
            for (size_t i = 0; i < row.n; ++i)
                if (row.value[i] != 0.0) s += row.value[i] * std::log(classes[c].count[row.at(i)] + a);
            const bool says_nothing = total == 0.0 || features == 0;  // of a row, or of all rows so far
            out[c] = says_nothing ? 0.0 : s - total * std::log(classes[c].total + a * double(features));
        }
        return;
    }
    if (by == Scores::gaussian) {
        if (stale) cache.assign(1, largest_variance()), stale = false;
        const double floor = smoothing * cache[0];
        constexpr double tau = 6.283185307179586476925286766559;
        for (size_t c = 0; c < C; ++c) {
            double s = 0.0;
            size_t next = 0;
            for (size_t j = 0; j < features; ++j) {
                double x = 0.0, mean, square;
                if (next < row.n && row.at(next) == j) x = row.value[next++];
                with_zeros(classes[c], j, mean, square);
                const double spread = (classes[c].mass > 0.0 ? square / classes[c].mass : 0.0) + floor;
                const double variance = std::max(spread, smallest_variance);
                s -= 0.5 * (std::log(tau * variance) + std::min((x - mean) * (x - mean) / variance, farthest));
            }
            out[c] = s;
        }
        return;
    }
    if (by == Scores::bernoulli) {
        if (stale) {
            cache.assign(C, 0.0);
            for (size_t c = 0; c < C; ++c) {
                const double all = classes[c].mass + a;
                for (size_t j = 0; j < features; ++j) cache[c] += std::log(std::max(all - classes[c].count[j], a));
                cache[c] -= double(features) * std::log(classes[c].mass + 2.0 * a);
            }
            stale = false;
        }
        for (size_t c = 0; c < C; ++c) {
            out[c] = cache[c];
            const double all = classes[c].mass + a;
            for (size_t i = 0; i < row.n; ++i) {
                if (!(row.value[i] > threshold)) continue;
                const double count = classes[c].count[row.at(i)];
                out[c] += std::log(count + a) - std::log(std::max(all - count, a));
            }
        }
        return;
    }
    const auto others = [&](size_t c, size_t j) {
        double sum = a;
        for (size_t other = 0; other < C; ++other)
            if (other != c) sum += classes[other].count[j];
        return sum;
    };
    if (features == 0 || (by == Scores::normed_complement && features == 1)) {  // no class differs from the others
        std::fill_n(out, C, 0.0);
        return;
    }
    if (by == Scores::normed_complement && stale) {
        cache.assign(C, 0.0);
        for (size_t c = 0; c < C; ++c) {
            const double whole = std::log(complement_sum(c, a));
            for (size_t j = 0; j < features; ++j) cache[c] += std::log(others(c, j)) - whole;
        }
        stale = false;
    }
    for (size_t c = 0; c < C; ++c) {
        const double whole = std::log(complement_sum(c, a));
        double s = unknown == 0.0 ? 0.0 : unknown * (std::log(a) - whole);
        for (size_t i = 0; i < row.n; ++i)
            if (row.value[i] != 0.0) s += row.value[i] * (std::log(others(c, row.at(i))) - whole);
        out[c] = by == Scores::normed_complement ? s / cache[c] : -s;
    }
}

}  // namespace onepass
