// Naive Bayes and prototypes without Python, meant for AddressSanitizer and UndefinedBehaviorSanitizer (scripts/check
// runs it so): every instruction set gives the same bits, features and classes grow, nothing is read beyond its end.
#include <algorithm>
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

static void append(std::vector<double>& out, const std::vector<double>& numbers) {
    out.insert(out.end(), numbers.begin(), numbers.end());
}

// n rows of d features, with importances; and what the learners have computed from them.
struct Examples {
    size_t n, d;
    std::vector<double> X = normal(n * d, d), w = std::vector<double>(n, 1.0);

    Examples(size_t rows, size_t columns) : n(rows), d(columns) {
        for (size_t i = 0; i < n; i += 3) w[i] = i % 2 ? 0.0 : 2.5;
    }
};

// The centres that sequential k-means ends with.
static std::vector<double> learn_centers(const Examples& rows, size_t K, std::vector<double>& out) {
    std::vector<double> centers = normal(K * rows.d, 7), counts(K, 0.0);
    out.push_back(kmeans_steps(rows.X.data(), rows.w.data(), rows.n, rows.d, 4, 0.9, centers.data(), counts.data(), K));
    append(out, centers);
    return centers;
}

static void learn_prototypes(const Examples& rows, size_t K, std::vector<double>& out) {
    std::vector<int64_t> label(rows.n), owner(K);
    for (size_t i = 0; i < rows.n; ++i) label[i] = int64_t(i % 2);
    for (size_t k = 0; k < K; ++k) owner[k] = int64_t(k % 2);
    for (Lvq variant : {Lvq::lvq1, Lvq::olvq1, Lvq::lvq21}) {
        std::vector<double> prototypes = normal(K * rows.d, 9), rate(K, 0.1);
        lvq_learn(rows.X.data(), label.data(), rows.w.data(), rows.n, rows.d, prototypes.data(), owner.data(),
                  rate.data(), K, {variant, 0.1, 0.3});
        append(out, prototypes);
    }
}

// Triangular scales of K components, with positive diagonals.
static std::vector<double> make_scales(size_t K, size_t d) {
    std::vector<double> scales = normal(K * d * d, 11);
    for (double& scale : scales) scale = 0.1 + std::fabs(scale);
    for (size_t k = 0; k < K; ++k)
        for (size_t i = 0; i < d; ++i)
            for (size_t j = i + 1; j < d; ++j) scales[(k * d + i) * d + j] = 0.0;
    return scales;
}

static size_t wide(size_t d) { return (d + 7) / 8 * 8; }

static std::vector<double> make_room(size_t d, size_t K) {
    return std::vector<double>(16 * (2 * d + K) + 16 * wide(d) + 16);
}

// The responsibilities of all forms of components; one row alone has the same bits as among others. Returns those of
// the last form.
static std::vector<double> find_responsibilities(const Examples& rows, const std::vector<double>& centers, size_t K,
                                                 std::vector<double>& out) {
    const size_t n = rows.n, d = rows.d;
    std::vector<double> constants = normal(K, 12), likelihood(n), R(n * K), room = make_room(d, K);
    const std::vector<double> scales = make_scales(K, d);
    constants[0] = -INFINITY;  // a component without weight
    using Form = Components::Form;
    for (Form form : {Form::linear, Form::diagonal, Form::triangular}) {
        const Components c{form, K, d, rows.X.data(), centers.data(), scales.data(), constants.data()};
        learner_loops->responsibilities(c, rows.X.data(), n, room.data(), likelihood.data(), R.data());
        append(out, likelihood);
        append(out, R);
        std::vector<double> alone(K), own(1);
        learner_loops->responsibilities(c, rows.X.data() + (n - 1) * d, 1, room.data(), own.data(), alone.data());
        expect(own[0] == likelihood[n - 1] && std::memcmp(alone.data(), &R[(n - 1) * K], K * sizeof(double)) == 0,
               "a row alone has the same responsibilities as among others");
        expect(R[0] == 0.0, "a component without weight is responsible for nothing");
    }
    return R;
}

static void add_up_statistics(const Examples& rows, const std::vector<double>& R, size_t K, std::vector<double>& out) {
    const size_t n = rows.n, d = rows.d;
    std::vector<double> room = make_room(d, K);
    for (Second second : {Second::none, Second::diagonal, Second::full}) {
        std::vector<double> s1(K * wide(d), 0.0), s2(K * d * wide(d), 0.0);
        learner_loops->statistics(rows.X.data(), n, d, mean_of(rows.X, n, d).data(), R.data(), K, second, room.data(),
                                  s1.data(), s2.data());
        append(out, s1);
        append(out, s2);
    }
}

static void learn_components(const Examples& rows, std::vector<double>& out) {
    const size_t d = rows.d;
    std::vector<double> mean(d, 0.0), square(d, 0.0), V(2 * d, 0.0);
    double count = 0.0;
    ccipca_learn(rows.X.data(), rows.w.data(), rows.n, d, mean.data(), square.data(), V.data(), 2, 2.0, &count);
    append(out, V);
}

// The scores of a naive Bayes model whose features and classes grow while it learns.
static void learn_naive_bayes(const Examples& rows, NaiveBayes::Statistics statistics, std::vector<double>& out) {
    const size_t d = rows.d;
    NaiveBayes bayes(statistics, 0.5, 0.99);
    for (size_t i = 0; i < rows.n; ++i) {
        bayes.widen(std::min(d, 1 + i));
        if (i % 2 == bayes.classes.size()) bayes.add_class();
        std::vector<double> row(rows.X.begin() + long(i * d), rows.X.begin() + long(i * d + bayes.features));
        for (double& x : row) x = std::fabs(x);
        bayes.learn({row.data(), nullptr, row.size()}, i % 2, rows.w[i]);
    }
    using S = NaiveBayes::Scores;
    std::vector<int64_t> index = {0};
    if (d > 2) index.push_back(int64_t(d) - 1);
    std::vector<double> value(index.size(), 1.5), scores(bayes.classes.size());
    for (S by : {S::multinomial, S::complement, S::normed_complement, S::bernoulli, S::gaussian}) {
        if ((by == S::gaussian) != (statistics == NaiveBayes::Statistics::moments)) continue;
        bayes.forget_cache();
        bayes.score({value.data(), index.data(), index.size()}, by, 1.0, scores.data());
        append(out, scores);
    }
}

// All numbers that the learners end with.
static std::vector<double> run(size_t n, size_t d, size_t K) {
    const Examples rows(n, d);
    std::vector<double> out;
    const std::vector<double> centers = learn_centers(rows, K, out);
    learn_prototypes(rows, K, out);
    add_up_statistics(rows, find_responsibilities(rows, centers, K, out), K, out);
    learn_components(rows, out);
    for (auto statistics :
         {NaiveBayes::Statistics::counts, NaiveBayes::Statistics::presence, NaiveBayes::Statistics::moments})
        learn_naive_bayes(rows, statistics, out);
    return out;
}

// Small cases, computed by hand.
static void check_values() {
    // The centres 0 and 10 get 1 and 12. A centre is the mean of its rows; its first place has no weight.
    std::vector<double> X = {1.0, 12.0}, w = {1.0, 1.0}, centers = {0.0, 10.0}, counts = {0.0, 0.0};
    kmeans_steps(X.data(), w.data(), 2, 1, 1, 1.0, centers.data(), counts.data(), 2);
    expect(centers[0] == 1.0 && centers[1] == 12.0 && counts[0] == 1.0, "a centre is the mean of its rows");
    std::vector<double> G = {1.0}, Q = {3.0}, U = {0.0};
    lasso(G.data(), Q.data(), 1, 1, 1.0, 1e-9, 10, U.data());
    expect(U[0] == 2.0, "one atom: soft thresholding");
    // One row at a time gives the same bits as all rows at once.
    const std::vector<double> rows = normal(40 * 5, 3), ones(40, 1.0), start = normal(3 * 5, 4);
    std::vector<double> at_once = start, singly = start, count(3, 0.0), counted(3, 0.0);
    kmeans_steps(rows.data(), ones.data(), 40, 5, 1, 0.9, at_once.data(), count.data(), 3);
    for (size_t i = 0; i < 40; ++i)
        kmeans_steps(rows.data() + 5 * i, ones.data(), 1, 5, 1, 0.9, singly.data(), counted.data(), 3);
    expect(at_once == singly && count == counted, "sequential k-means is the same row by row");
    // Five neighbours at distances 0, 1, 1, 2, 4, of classes 0, 1, 1, 0, 1.
    const std::vector<double> distance = {0.0, 1.0, 1.0, 4.0, 16.0}, weight = {1.0, 1.0, 2.0, 1.0, 1.0};
    const std::vector<int64_t> classes = {0, 1, 1, 0, 1};
    std::vector<double> votes(2);
    neighbour_votes(distance.data(), {5, classes.data(), weight.data(), 3, false}, votes.data(), 2);
    expect(votes[0] == 0.25 && votes[1] == 0.75, "the three nearest vote by importance");
    neighbour_votes(distance.data(), {5, classes.data(), weight.data(), 3, true}, votes.data(), 2);
    expect(votes[0] == 1.0 && votes[1] == 0.0, "an example at distance 0 decides alone");
    neighbour_votes(distance.data() + 1, {4, classes.data() + 1, weight.data() + 1, 9, true}, votes.data(), 2);
    expect(votes[0] == 0.5 / 3.75 && votes[1] == (1.0 + 2.0 + 0.25) / 3.75, "votes by 1/distance");
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
    check_values();
    std::printf("learners: %d passed, %d failed\n", passed, failed);
    return failed == 0 ? 0 : 1;
}
