// Naive Bayes: counts or moments of the features of each class, and the scores that follow from them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace onepass {

// A row of n numbers: of the features `index`, which rise strictly, or of the first n features where it is null.
struct FeatureRow {
    const double* value;
    const int64_t* index;
    size_t n;
    size_t at(size_t i) const { return index ? size_t(index[i]) : i; }
};

class NaiveBayes {
 public:
    // The statistics of each feature and class. counts: the sum of x; presence: how often x > threshold; moments: mean
    // and variance of x.
    enum class Statistics { counts, presence, moments };
    enum class Scores { multinomial, complement, normed_complement, bernoulli, gaussian };

    struct Class {
        double mass = 0.0;   // the sum of importances
        double total = 0.0;  // the sum of `count`
        std::vector<double> count, mean, square;
    };

    NaiveBayes(Statistics statistics, double threshold, double forgetting)
        : statistics(statistics), threshold(threshold), forgetting(forgetting) {}

    void add_class();
    void widen(size_t columns);
    void learn(const FeatureRow& row, size_t c, double w);
    // ln p(x | c) of the row for each class. `smoothing` is added to counts, or to variances as a part of the largest
    // one. `unknown` is the sum of the row's counts of features that no class has seen.
    void score(const FeatureRow& row, Scores by, double smoothing, double* out, double unknown = 0.0);
    // The largest variance of a feature over all classes.
    double largest_variance() const;
    size_t planes() const {
        return statistics == Statistics::moments ? 3 : 1;
    }  // how many numbers per feature and class
    void forget_cache() { stale = true; }

    Statistics statistics;
    double threshold, forgetting;
    size_t features = 0;
    double unit = 1.0;  // what a new row of importance 1 weighs; see `forget`
    uint64_t t = 0;
    std::vector<Class> classes;

 private:
    double forget(double w);
    void learn_moments(const FeatureRow& row, Class& to, double w);
    // The mean and the sum of squared deviations of feature j in a class. Rows without the feature count as zeros.
    void with_zeros(const Class& c, size_t j, double& mean, double& square) const;
    // Sums over all classes but c: of all counts, or of the counts of feature j.
    double complement_sum(size_t c, double smoothing) const;
    double count_of_others(size_t c, size_t j, double smoothing) const;
    void score_multinomial(const FeatureRow& row, double a, double* out, double unknown) const;
    void score_gaussian(const FeatureRow& row, double smoothing, double* out);
    void score_bernoulli(const FeatureRow& row, double a, double* out);
    void score_complement(const FeatureRow& row, double a, bool normed, double* out, double unknown);
    void cache_absent_features(double a);
    void cache_complement_norms(double a);

    std::vector<double> cache;  // the part of each class's score that is the same for all rows
    bool stale = true;          // the cache must be computed again
};

}  // namespace onepass
