// Points that move towards rows, or away: mini-batch k-means, learning vector quantisation; neighbours that vote;
// sparse codes; components.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace onepass {

// The rows of a K x d table as the columns of a d x stride one, as the loops read them.
struct Columns {
    size_t K = 0, d = 0, stride = 0;
    std::vector<double> table;
    Columns(const double* points, size_t K, size_t d);
    void set(size_t k, const double* point);
};

// The nearest point and its squared distance, with the bits of the loop over tables: for a row or two, which would not
// pay for turning the points into columns.
size_t nearest_row(const double* x, const double* points, size_t K, size_t d, double* distance);

// A window of examples: the class and importance of each slot; the k nearest vote, all alike or by 1/distance.
struct Neighbours {
    size_t size;
    const int64_t* owner;
    const double* weight;
    size_t k;
    bool by_distance;
};

// Each class's part of the votes, from the squared distances to all slots.
void neighbour_votes(const double* distance, const Neighbours& window, double* votes, size_t classes);

// Mini-batches of `batch` rows in turn, n of them in all (Sculley 2010): rows go to the nearest centre with all centres
// frozen, then v_k += sum of w, c_k += sum of w (x - c_k) / v_k over the rows of k. Every v is multiplied by `decay`
// first. Returns the sum of w |x - c|^2 of the last mini-batch that weighs something, before the move; -1 where none
// does.
double kmeans_steps(const double* X, const double* w, size_t n, size_t d, size_t batch, double decay, double* centers,
                    double* counts, size_t K);

enum class Lvq { lvq1, olvq1, lvq21 };

struct LvqOptions {
    Lvq variant;
    double eta, window;
};

// Learning vector quantisation, row by row (Kohonen 1990). `label` has a class for every row, `owner` for every
// prototype; `rate` is the step of every prototype (used and changed by olvq1 alone).
void lvq_learn(const double* X, const int64_t* label, const double* w, size_t n, size_t d, double* prototypes,
               const int64_t* owner, double* rate, size_t K, const LvqOptions& options);

// min_u 1/2 |x - D'u|^2 + alpha |u|_1 for every row by coordinate descent, from G = DD' and Q = XD'.
// Ends when no coordinate moved by more than tol times the largest. Returns the most sweeps that a row took.
size_t lasso(const double* G, const double* Q, size_t n, size_t K, double alpha, double tol, size_t sweeps, double* U);

// Candid covariance-free incremental PCA (Weng, Zhang and Hwang 2003), row by row. `mean` and the components `V` (each
// as long as its variance) move; `count` is the sum of importances. `amnesic` >= 0 favours later rows.
void ccipca_learn(const double* X, const double* w, size_t n, size_t d, double* mean, double* square, double* V,
                  size_t K, double amnesic, double* count);

}  // namespace onepass
