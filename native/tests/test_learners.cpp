// Naive Bayes and prototypes without Python, meant for AddressSanitizer and UndefinedBehaviorSanitizer (scripts/check
// runs it so): the instruction set changes no bit, names and classes grow, nothing is read beyond its end.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <random>
#include <vector>

#include "learners/naive_bayes.hpp"
#include "learners/prototypes.hpp"
#include "loops/learner_loops.hpp"

using namespace onepass;

namespace onepass {
const LearnerLoops* learner_loops = learner_loops_scalar();
}  // namespace onepass

static int passed = 0, failed = 0;

static void expect(bool holds, const char* what) {
    holds ? ++passed : ++failed;
    if (!holds) std::printf("FAILED: %s\n", what);
}

static std::vector<const LearnerLoops*> instruction_sets() {
    std::vector<const LearnerLoops*> out = {learner_loops_scalar()};
#ifdef ONEPASS_X86
    if (__builtin_cpu_supports("avx2")) out.push_back(learner_loops_avx2());
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        out.push_back(learner_loops_avx512());
#endif
    return out;
}

static std::vector<double> normal(size_t n, uint64_t seed) {
    std::mt19937_64 random(seed);
    std::normal_distribution<double> draw;
    std::vector<double> out(n);
    for (double& x : out) x = random() % 5 == 0 ? 0.0 : draw(random);
    return out;
}

static std::vector<double> mean_of(const std::vector<double>& X, size_t n, size_t d) {
    std::vector<double> out(d, 0.0);
    for (size_t i = 0; i < n * d; ++i) out[i % d] += X[i] / double(n);
    return out;
}

// All numbers that some learners end with.
static std::vector<double> run(size_t n, size_t d, size_t K) {
    const std::vector<double> X = normal(n * d, d);
    std::vector<double> w(n, 1.0), centers = normal(K * d, 7), counts(K, 0.0), out;
    for (size_t i = 0; i < n; i += 3) w[i] = i % 2 ? 0.0 : 2.5;
    out.push_back(kmeans_steps(X.data(), w.data(), n, d, 4, 0.9, centers.data(), counts.data(), K));
    out.insert(out.end(), centers.begin(), centers.end());

    std::vector<int64_t> label(n), owner(K);
    for (size_t i = 0; i < n; ++i) label[i] = int64_t(i % 2);
    for (size_t k = 0; k < K; ++k) owner[k] = int64_t(k % 2);
    for (Lvq variant : {Lvq::lvq1, Lvq::olvq1, Lvq::lvq21}) {
        std::vector<double> prototypes = normal(K * d, 9), rate(K, 0.1);
        lvq_learn(X.data(), label.data(), w.data(), n, d, prototypes.data(), owner.data(), rate.data(), K,
                  {variant, 0.1, 0.3});
        out.insert(out.end(), prototypes.begin(), prototypes.end());
    }

    // Mixtures: all forms of components, all statistics; one row alone has the bits it has among others.
    std::vector<double> scales = normal(K * d * d, 11), constants = normal(K, 12), likelihood(n), R(n * K);
    for (double& scale : scales) scale = 0.1 + std::fabs(scale);
    for (size_t k = 0; k < K; ++k)
        for (size_t i = 0; i < d; ++i)
            for (size_t j = i + 1; j < d; ++j) scales[(k * d + i) * d + j] = 0.0;
    constants[0] = -INFINITY;  // a component without weight
    const size_t wide = (d + 7) / 8 * 8;
    std::vector<double> room(16 * (2 * d + K) + 16 * wide + 16);
    using Form = Components::Form;
    for (Form form : {Form::linear, Form::diagonal, Form::triangular}) {
        const Components c{form, K, d, X.data(), centers.data(), scales.data(), constants.data()};
        learner_loops->responsibilities(c, X.data(), n, room.data(), likelihood.data(), R.data());
        out.insert(out.end(), likelihood.begin(), likelihood.end());
        out.insert(out.end(), R.begin(), R.end());
        std::vector<double> alone(K), own(1);
        learner_loops->responsibilities(c, X.data() + (n - 1) * d, 1, room.data(), own.data(), alone.data());
        expect(own[0] == likelihood[n - 1] && std::memcmp(alone.data(), &R[(n - 1) * K], K * sizeof(double)) == 0,
               "a row alone has the responsibilities it has among others");
        expect(R[0] == 0.0, "a component without weight is responsible for nothing");
    }
    for (Second second : {Second::none, Second::diagonal, Second::full}) {
        std::vector<double> s1(K * wide, 0.0), s2(K * d * wide, 0.0);
        learner_loops->statistics(X.data(), n, d, mean_of(X, n, d).data(), R.data(), K, second, room.data(), s1.data(),
                                  s2.data());
        out.insert(out.end(), s1.begin(), s1.end());
        out.insert(out.end(), s2.begin(), s2.end());
    }

    std::vector<double> mean(d, 0.0), square(d, 0.0), V(2 * d, 0.0);
    double count = 0.0;
    ccipca_learn(X.data(), w.data(), n, d, mean.data(), square.data(), V.data(), 2, 2.0, &count);
    out.insert(out.end(), V.begin(), V.end());

    for (NaiveBayes::Keeps keeps :
         {NaiveBayes::Keeps::counts, NaiveBayes::Keeps::presence, NaiveBayes::Keeps::moments}) {
        NaiveBayes bayes(keeps, 0.5, 0.99);
        for (size_t i = 0; i < n; ++i) {
            bayes.widen(std::min(d, 1 + i));  // names that grow
            if (i % 2 == bayes.classes.size()) bayes.add_class();
            std::vector<double> row(X.begin() + long(i * d), X.begin() + long(i * d + bayes.features));
            for (double& x : row) x = std::fabs(x);
            bayes.learn({row.data(), nullptr, row.size()}, i % 2, w[i]);
        }
        using S = NaiveBayes::Scores;
        std::vector<int64_t> index = {0};
        if (d > 2) index.push_back(int64_t(d) - 1);
        std::vector<double> value(index.size(), 1.5), scores(bayes.classes.size());
        for (S by : {S::multinomial, S::complement, S::normed_complement, S::bernoulli, S::gaussian}) {
            if ((by == S::gaussian) != (keeps == NaiveBayes::Keeps::moments)) continue;
            bayes.forget_cache();
            bayes.score({value.data(), index.data(), index.size()}, by, 1.0, scores.data());
            out.insert(out.end(), scores.begin(), scores.end());
        }
    }
    return out;
}

int main() {
    for (size_t d : {1, 7, 8, 16, 33})
        for (size_t K : {2, 16, 17}) {
            std::vector<double> first;
            for (const LearnerLoops* loops : instruction_sets()) {
                learner_loops = loops;
                const std::vector<double> now = run(61, d, K);
                if (first.empty()) first = now;
                expect(now.size() == first.size() &&
                           std::memcmp(now.data(), first.data(), now.size() * sizeof(double)) == 0,
                       "the same bits in every instruction set");
            }
        }
    learner_loops = learner_loops_scalar();
    // 0 and 10 take 1 and 12: means 1 and 12 of what came, the first centres weigh nothing.
    std::vector<double> X = {1.0, 12.0}, w = {1.0, 1.0}, centers = {0.0, 10.0}, counts = {0.0, 0.0};
    kmeans_steps(X.data(), w.data(), 2, 1, 1, 1.0, centers.data(), counts.data(), 2);
    expect(centers[0] == 1.0 && centers[1] == 12.0 && counts[0] == 1.0, "a centre is the mean of what came to it");
    std::vector<double> G = {1.0}, Q = {3.0}, U = {0.0};
    lasso(G.data(), Q.data(), 1, 1, 1.0, 1e-9, 10, U.data());
    expect(U[0] == 2.0, "one atom: soft thresholding");
    // One row at a time, or all at one go: the table of columns changes no bit.
    const std::vector<double> rows = normal(40 * 5, 3), ones(40, 1.0), start = normal(3 * 5, 4);
    std::vector<double> at_once = start, singly = start, count(3, 0.0), counted(3, 0.0);
    kmeans_steps(rows.data(), ones.data(), 40, 5, 1, 0.9, at_once.data(), count.data(), 3);
    for (size_t i = 0; i < 40; ++i)
        kmeans_steps(rows.data() + 5 * i, ones.data(), 1, 5, 1, 0.9, singly.data(), counted.data(), 3);
    expect(at_once == singly && count == counted, "sequential k-means is the same row by row");
    // Five neighbours at 0, 1, 1, 2, 4 of the classes 0, 1, 1, 0, 1.
    const std::vector<double> distance = {0.0, 1.0, 1.0, 4.0, 16.0}, weight = {1.0, 1.0, 2.0, 1.0, 1.0};
    const std::vector<int64_t> classes = {0, 1, 1, 0, 1};
    std::vector<double> votes(2);
    neighbour_votes(distance.data(), {5, classes.data(), weight.data(), 3, false}, votes.data(), 2);
    expect(votes[0] == 0.25 && votes[1] == 0.75, "the three nearest vote by importance");
    neighbour_votes(distance.data(), {5, classes.data(), weight.data(), 3, true}, votes.data(), 2);
    expect(votes[0] == 1.0 && votes[1] == 0.0, "an example at the very place decides alone");
    neighbour_votes(distance.data() + 1, {4, classes.data() + 1, weight.data() + 1, 9, true}, votes.data(), 2);
    expect(votes[0] == 0.5 / 3.75 && votes[1] == (1.0 + 2.0 + 0.25) / 3.75, "votes by 1/distance");
    std::printf("learners: %d passed, %d failed\n", passed, failed);
    return failed == 0 ? 0 : 1;
}
