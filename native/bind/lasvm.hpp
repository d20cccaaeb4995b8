// LASVM for Python: tables as arguments, refusals as errors.
#pragma once
#include <nanobind/nanobind.h>

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "bind/arrays.hpp"
#include "bind/errors.hpp"
#include "bind/kernels.hpp"
#include "bind/lock.hpp"
#include "kernels/lasvm.hpp"

namespace onepass {

// A table from Python: float64 or float32 rows, or the three arrays of a CSR matrix whose indices rise.
class LasvmTable {
 public:
    explicit LasvmTable(nb::handle given);

    bool sparse() const { return starts_ != nullptr; }
    bool indices_rise() const;
    bool finite() const;
    // Row i. `room` holds the converted numbers of a float32 row.
    Query query(size_t i, size_t selves, std::vector<double>& room) const;

    size_t rows = 0, columns = 0;

 private:
    void require_csr(size_t indices, size_t values) const;

    nb::object arrays_;  // keeps them alive
    const double* f64_ = nullptr;
    const float* f32_ = nullptr;
    const int64_t *index_ = nullptr, *starts_ = nullptr;
};

class LasvmEngine {
 public:
    LasvmEngine(nb::dict kernel, bool sparse, size_t columns, nb::dict options);

    // Learns the rows `order`, or all rows. With `identify`, a row that is in S already is known by its number. Stops
    // early at `most_support` support vectors or after so many seconds. Returns the number of learned rows.
    size_t learn(nb::handle given, In1<int64_t> labels, In1<double> weights, std::optional<In1<int64_t>> order,
                 bool identify, size_t most_support, double seconds, bool seeding);
    void score(nb::handle given, Out2 out, bool counted);
    // REPROCESS until convergence. Returns the number of machines whose violation stayed above tau.
    size_t finish();
    void reprocess(size_t machine);

    nb::dict state();
    void set_state(nb::dict state);

 private:
    struct Examples;
    struct SavedArrays;
    static constexpr size_t group = 8;  // rows whose kernel values are computed in one pass over the stored vectors

    bool fits(const LasvmTable& X) const {
        return X.sparse() == svm.points.sparse() && (X.sparse() || X.columns == svm.points.columns());
    }
    Query query(const LasvmTable& X, size_t row, std::vector<double>& room) const;
    size_t prepare_group(const Examples& examples, size_t from);
    LasvmStatus learn_prepared(const Examples& examples, size_t at, size_t in_group, bool seeding);
    void put_vectors(nb::dict& out);

    OneCall one_call() { return {lock_, running_, "a model cannot be used from inside its own kernel"}; }
    [[noreturn]] static void refuse(LasvmStatus status, size_t row);

    KernelHolder holder_;
    Lock lock_;
    bool running_ = false;
    Query queries_[group];
    CachedRow rows_[group];
    std::vector<double> rooms_[group];

 public:
    Lasvm svm;
};

void bind_lasvm(nb::module_& module);

}  // namespace onepass
