#include "learners/prototypes.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "loops/learner_loops.hpp"

namespace onepass {

Columns::Columns(const double* points, size_t K_, size_t d_)
    : K(K_), d(d_), stride((K_ + 15) / 16 * 16), table(d_ * stride, 0.0) {
    for (size_t k = 0; k < K; ++k) set(k, points + k * d);
}

void Columns::set(size_t k, const double* point) {
    for (size_t j = 0; j < d; ++j) table[j * stride + k] = point[j];
}

size_t nearest_row(const double* x, const double* points, size_t K, size_t d, double* distance) {
    size_t best = 0;
    for (size_t k = 0; k < K; ++k, points += d) {
        double sum = 0.0;
        for (size_t j = 0; j < d; ++j) sum += (x[j] - points[j]) * (x[j] - points[j]);
        if (k == 0 || sum < *distance) best = k, *distance = sum;
    }
    return best;
}

double kmeans_steps(const double* X, const double* w, size_t n, size_t d, size_t batch, double decay, double* centers,
                    double* counts, size_t K) {
    const bool few = n < 4;  // the transpose would take longer than the search
    std::optional<Columns> frozen;
    if (!few) frozen.emplace(centers, K, d);
    batch = std::clamp<size_t>(n, 1, batch);
    std::vector<int64_t> at(batch);
    std::vector<double> distance(batch), moved(K * d), mass(K);
    double inertia = -1.0;
    for (size_t start = 0; start < n; start += batch, X += batch * d, w += batch) {
        const size_t rows = std::min(batch, n - start);
        std::fill(moved.begin(), moved.end(), 0.0);
        std::fill(mass.begin(), mass.end(), 0.0);
        if (frozen)
            learner_loops->nearest(X, rows, d, frozen->table.data(), K, frozen->stride, at.data(), distance.data());
        else
            for (size_t i = 0; i < rows; ++i) at[i] = int64_t(nearest_row(X + i * d, centers, K, d, &distance[i]));
        bool any = false;
        double sum = 0.0;
        for (size_t i = 0; i < rows; ++i) {
            if (w[i] == 0.0) continue;
            any = true;
            const size_t k = size_t(at[i]);
            sum += w[i] * distance[i];
            mass[k] += w[i];
            learner_loops->towards(moved.data() + k * d, X + i * d, centers + k * d, w[i], d);
        }
        if (!any) continue;  // no step without weight
        inertia = sum;
        for (size_t k = 0; k < K; ++k) {
            counts[k] = counts[k] * decay + mass[k];
            if (mass[k] == 0.0) continue;
            learner_loops->add(centers + k * d, moved.data() + k * d, 1.0 / counts[k], d);
            if (frozen) frozen->set(k, centers + k * d);
        }
    }
    return inertia;
}

void neighbour_votes(const double* distance, const Neighbours& window, double* votes, size_t classes) {
    using Near = std::pair<double, size_t>;  // distance and slot: of equal distances the lower slot is nearer
    std::vector<Near> near;
    near.reserve(std::min(window.k, window.size) + 1);
    for (size_t i = 0; i < window.size; ++i) {
        if (near.size() == window.k && !(distance[i] < near.front().first)) continue;
        near.emplace_back(distance[i], i);
        std::push_heap(near.begin(), near.end());
        if (near.size() <= window.k) continue;
        std::pop_heap(near.begin(), near.end());
        near.pop_back();
    }
    std::sort_heap(near.begin(), near.end());
    std::fill(votes, votes + classes, 0.0);
    const bool exact = near.front().first == 0.0;  // if there are equal examples, only they vote
    double total = 0.0;
    for (const auto& [squared, i] : near) {
        if (window.by_distance && exact && squared > 0.0) break;
        const double vote = window.by_distance && !exact ? window.weight[i] / std::sqrt(squared) : window.weight[i];
        votes[window.owner[i]] += vote;
        total += vote;
    }
    for (size_t c = 0; c < classes; ++c) votes[c] = total > 0.0 ? votes[c] / total : 1.0 / double(classes);
}

namespace {

// LVQ2.1: the nearest prototype of x's class and the nearest of another class. `none` where one does not exist.
struct Opponents {
    size_t own, other, none;
};

Opponents nearest_opponents(const double* distance, const int64_t* owner, int64_t label, size_t K) {
    Opponents out{K, K, K};
    for (size_t k = 0; k < K; ++k) {
        size_t& best = owner[k] == label ? out.own : out.other;
        if (best == K || distance[k] < distance[best]) best = k;
    }
    return out;
}

// LVQ2.1: whether x lies in the window between two prototypes.
bool inside_window(double squared_a, double squared_b, double window) {
    const double a = std::sqrt(squared_a), b = std::sqrt(squared_b), s = (1.0 - window) / (1.0 + window);
    return std::min(a, b) > s * std::max(a, b);
}

}  // namespace

void lvq_learn(const double* X, const int64_t* label, const double* w, size_t n, size_t d, double* prototypes,
               const int64_t* owner, double* rate, size_t K, const LvqOptions& options) {
    Columns columns(prototypes, K, d);
    std::vector<double> distance(columns.stride);
    const auto move = [&](size_t k, const double* x, double step) {
        double* const p = prototypes + k * d;
        learner_loops->towards(p, x, p, step, d);
        columns.set(k, p);
    };
    for (size_t i = 0; i < n; ++i) {
        if (w[i] == 0.0) continue;
        const double* const x = X + i * d;
        learner_loops->distances(x, 1, d, columns.table.data(), columns.stride, distance.data());
        if (options.variant == Lvq::lvq21) {
            const auto [own, other, none] = nearest_opponents(distance.data(), owner, label[i], K);
            if (own == none || other == none) continue;
            if (!inside_window(distance[own], distance[other], options.window)) continue;
            const double step = std::min(1.0, options.eta * w[i]);
            move(own, x, step);
            move(other, x, -step);
            continue;
        }
        size_t k = 0;
        for (size_t other = 1; other < K; ++other)
            if (distance[other] < distance[k]) k = other;
        const double sign = owner[k] == label[i] ? 1.0 : -1.0;
        double eta = options.eta;
        if (options.variant == Lvq::olvq1) {
            // The optimised rate (Kohonen 1992): in the end every example has the same weight.
            const double next = rate[k] / (1.0 + sign * rate[k]);
            rate[k] = std::min(next, options.eta);
            eta = rate[k];
        }
        move(k, x, sign * std::min(1.0, eta * w[i]));
    }
}

size_t lasso(const double* G, const double* Q, size_t n, size_t K, double alpha, double tol, size_t sweeps, double* U) {
    std::vector<double> rest(K);
    size_t most = 0;
    for (size_t i = 0; i < n; ++i) {
        double* const u = U + i * K;
        std::fill(u, u + K, 0.0);
        std::copy(Q + i * K, Q + (i + 1) * K, rest.begin());  // D(x - D'u)
        size_t sweep = 0;
        for (bool moving = true; moving && sweep < sweeps; ++sweep) {
            double largest = 0.0, change = 0.0;
            for (size_t j = 0; j < K; ++j) {
                const double g = G[j * K + j];
                if (g <= 0.0) continue;
                const double z = rest[j] + g * u[j];
                const double now = std::copysign(std::max(std::fabs(z) - alpha, 0.0), z) / g, step = now - u[j];
                if (step != 0.0) {
                    learner_loops->add(rest.data(), G + j * K, -step, K);
                    u[j] = now;
                }
                change = std::max(change, std::fabs(step));
                largest = std::max(largest, std::fabs(now));
            }
            moving = change > tol * largest;
        }
        most = std::max(most, sweep);
    }
    return most;
}

void ccipca_learn(const double* X, const double* w, size_t n, size_t d, double* mean, double* square, double* V,
                  size_t K, double amnesic, double* count) {
    std::vector<double> u(d);
    for (size_t i = 0; i < n; ++i) {
        if (w[i] == 0.0) continue;
        *count += w[i];
        const double part = w[i] / *count;
        // The amnesic parameter is at most count - 2: the weights of old and new rows must lie within 0 and 1.
        const double fresh = std::min(1.0, part * (1.0 + std::min(amnesic, std::max(0.0, *count - 2.0))));
        for (size_t j = 0; j < d; ++j) u[j] = X[i * d + j] - mean[j];
        learner_loops->add(mean, u.data(), part, d);
        for (size_t j = 0; j < d; ++j) {
            const double before = u[j];
            u[j] = X[i * d + j] - mean[j];
            square[j] += w[i] * before * u[j];
        }
        for (size_t k = 0; k < K; ++k) {
            double* const v = V + k * d;
            double length = std::sqrt(learner_loops->dot(v, v, d));
            if (length == 0.0) {  // the first row that the other components do not explain becomes this one
                const double left = std::sqrt(learner_loops->dot(u.data(), u.data(), d));
                if (left > 0.0) std::copy(u.begin(), u.end(), v);
                break;
            }
            const double along = learner_loops->dot(u.data(), v, d) / length;
            for (size_t j = 0; j < d; ++j) v[j] = (1.0 - fresh) * v[j] + fresh * along * u[j];
            length = std::sqrt(learner_loops->dot(v, v, d));
            if (length == 0.0) break;
            const double explained = learner_loops->dot(u.data(), v, d) / (length * length);
            learner_loops->add(u.data(), v, -explained, d);
        }
    }
}

}  // namespace onepass
