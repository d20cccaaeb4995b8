// Counts and moments of features by class, and the scores that naive Bayes reads from them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace onepass {

// A row: n numbers at `index`, or the first n features where it is null. Columns rise strictly.
struct FeatureRow {
    const double* value;
    const int64_t* index;
    size_t n;
    size_t at(size_t i) const { return index ? size_t(index[i]) : i; }
};

class NaiveBayes {
 public:
    // counts: sums of x; presence: how often x > threshold; moments: mean and variance of x.
    enum class Keeps { counts, presence, moments };
    enum class Scores { multinomial, complement, normed_complement, bernoulli, gaussian };

    struct Class {
        double mass = 0.0;   // sum of importances
        double total = 0.0;  // of `count`
        std::vector<double> count, mean, square;
    };

    NaiveBayes(Keeps keeps, double threshold, double forgetting)
        : keeps(keeps), threshold(threshold), forgetting(forgetting) {}

    void add_class();
    void widen(size_t columns);
    void learn(const FeatureRow& row, size_t c, double w);
    // The class's log joint density of the row, but for its prior. `smoothing` is added to counts (or variances).
    // `unknown` is the sum of what the row counts beyond `features`: of that no class has seen anything.
    void score(const FeatureRow& row, Scores by, double smoothing, double* out, double unknown = 0.0);
    // The largest variance of a feature over all classes: what the smoothing of variances is relative to.
    double largest_variance() const;
    size_t planes() const { return keeps == Keeps::moments ? 3 : 1; }  // numbers for each feature and class
    void forget_cache() { stale = true; }

    Keeps keeps;
    double threshold, forgetting;
    size_t features = 0;
    double unit = 1.0;  // a weight of 1 now: with forgetting, later rows weigh more instead of earlier ones less
    uint64_t t = 0;
    std::vector<Class> classes;

 private:
    // A feature's mean and summed squares in a class, the zeros of rows that lack it included.
    void with_zeros(const Class& c, size_t j, double& mean, double& square) const;
    double complement_sum(size_t c, double smoothing) const;

    std::vector<double> cache;  // per class, what a score sums over all features
    bool stale = true;
};

}  // namespace onepass
