// Learners that represent data by points: mini-batch k-means, learning vector quantisation, nearest neighbours. Also
// sparse codes and principal components.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace onepass {

// The transpose of a K x d table, padded to d x stride: the form that the loops read.
struct Columns {
    size_t K = 0, d = 0, stride = 0;
    std::vector<double> table;
    Columns(const double* points, size_t K, size_t d);
    void set(size_t k, const double* point);
};

// The nearest point and its squared distance, with the same bits as the loop over tables. For few rows, where the
// transpose would take longer than the search.
size_t nearest_row(const double* x, const double* points, size_t K, size_t d, double* distance);

// A window of stored examples: the class and the importance of each slot. The k nearest vote, with equal weights or
// with 1/distance.
struct Neighbours {
    size_t size;
    const int64_t* owner;
    const double* weight;
    size_t k;
    bool by_distance;
};

// The share of the votes of each class, from the squared distances to all slots.
void neighbour_votes(const double* distance, const Neighbours& window, double* votes, size_t classes);

// Learns n rows in mini-batches of `batch` rows (Sculley 2010). Each row is assigned to its nearest centre; the centres
// do not move meanwhile. Then v_k <- decay v_k + sum of w, and c_k += sum of w (x - c_k) / v_k over the rows of k.
// Returns the sum of w |x - c|^2 of the last mini-batch before its step, or -1 if all weights are 0.
double kmeans_steps(const double* X, const double* w, size_t n, size_t d, size_t batch, double decay, double* centers,
                    double* counts, size_t K);

enum class Lvq { lvq1, olvq1, lvq21 };

struct LvqOptions {
    Lvq variant;
    double eta, window;
};

// Learning vector quantisation, row by row (Kohonen 1990). `label` is the class of each row, `owner` the class of each
// prototype. `rate` is the step size of each prototype; only olvq1 uses and changes it.
void lvq_learn(const double* X, const int64_t* label, const double* w, size_t n, size_t d, double* prototypes,
               const int64_t* owner, double* rate, size_t K, const LvqOptions& options);

// Minimises 1/2 |x - D'u|^2 + alpha |u|_1 over u for each row by coordinate descent, from G = DD' and Q = XD'. A row
// ends when no coordinate of a sweep changes by more than tol times the largest one. Returns the most sweeps of a row.
size_t lasso(const double* G, const double* Q, size_t n, size_t K, double alpha, double tol, size_t sweeps, double* U);

// Candid covariance-free incremental PCA (Weng, Zhang and Hwang 2003), row by row. Updates `mean`, the components `V`,
// whose lengths are their variances, and `count`, the sum of importances. `amnesic` > 0 gives later rows more weight.
void ccipca_learn(const double* X, const double* w, size_t n, size_t d, double* mean, double* square, double* V,
                  size_t K, double amnesic, double* count);

}  // namespace onepass
