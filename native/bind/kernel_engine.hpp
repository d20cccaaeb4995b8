// The native half of KernelModel: an Engine whose weights are an expansion.
#pragma once
#include <memory>
#include <optional>

#include "bind/arrays.hpp"
#include "bind/engine.hpp"
#include "bind/kernels.hpp"
#include "bind/rows_ahead.hpp"
#include "kernels/kernel_round.hpp"

namespace onepass {

struct KernelTable;
class SavedState;
class SignalWatch;

class KernelEngine : public Engine {
 public:
    // make_kernel(d) returns the kernel's native form for d features.
    KernelEngine(const std::string& task, nb::dict rule, nb::dict options, nb::object make_kernel, nb::dict budget);

    void learn(const KernelTable& X, nb::object y, nb::object importance, nb::object scores);
    void score(const KernelTable& X, Out scores);
    void check(const KernelTable& X);

    std::string why_no_base(size_t) const override { return "but a kernel learner begins at 0; leave it out"; }
    bool risky() const override { return !(f.ww < 1e100); }
    void set_features(size_t d) override;
    void register_names(nb::list names) override;
    void unregister_names(size_t count) override;
    void flip_classes() override;
    void begin_growth(size_t coming) override;
    void roll_back_growth() override;
    nb::dict state(bool met_only) override;  // whole in any case: there are no tables of features
    void set_state(nb::dict state) override;
    void flush() override {}
    std::vector<nb::object*> held() override;
    void require_memory(size_t count, size_t known, const char* error) const override;
    nb::object gram() const;

    Expansion f;
    Budget budget;
    size_t width = 0;            // number of features: columns, or names so far
    size_t kernel_features = 0;  // the d that the kernel was made for; 0: it is not made yet

 protected:
    void scores_of(nb::handle x, double base, double* out) override;
    void set_outputs() override;
    void teach(Read& row, double y, double importance, double target, const uint8_t* set, double base) override;

 private:
    // What is restored after a refused example or batch.
    struct Before {
        bool positional, started;
        size_t columns, width, names;
        double t;
    };
    Before before() const;
    void roll_back(const Before& before);
    void undo_from(const KernelTable& X, size_t row, const Before& before);

    void start(bool sparse, size_t d);
    const Kernel& any_kernel();

    void require_vectors(size_t columns, size_t outputs, const char* error) const;
    void widen_vectors();
    void require_inside(const KernelTable& X) const;
    void check_row(const double* x, const int64_t* index, size_t n, size_t row);
    Answers read_answers(size_t rows, const nb::object& y, const nb::object& importance, const nb::object& scores,
                         std::vector<Vector<double>>& arrays);
    void set_width(const KernelTable& X, size_t rows, size_t width_before);
    void prepare_batch(const KernelTable& X);
    void learn_rows(const KernelTable& X, const Answers& in, SignalWatch& watch, Outcome& outcome);
    bool in_groups(const KernelTable& X) const;
    void compute_group(const KernelTable& X, size_t from);
    size_t work(const KernelTable& X, size_t row) const;

    Query as_query(const double* x, const int64_t* index, size_t n);
    Query prepared_row(const KernelTable& X, size_t i);
    Query query_to_learn(const Read& row);
    void sort_scratch(bool admitted);
    Query query_of_scratch();
    [[noreturn]] void refuse_row(const Outcome& outcome) const;

    // True if the rule or the kernel is written in Python.
    bool calls_python() const { return python_ || (holder_ && holder_->calls_python()); }

    nb::object save_scalars() const;
    void restore_columns(const std::vector<double>& scalars);
    void restore_numbers(const std::vector<double>& scalars);
    void restore_vector(const double* x, const int64_t* index, size_t n);
    void restore_sparse_vectors(const SavedState& saved, size_t n);
    void restore_vectors(const SavedState& saved, size_t n);
    void restore_coefficients(const In2<double>& saved);

    // The one output of two classes, before a third class came.
    struct OneOutput {
        std::vector<double> coef, values;
        double ww;
    };
    std::optional<OneOutput> one_output_;

    nb::object make_kernel_;
    std::unique_ptr<KernelHolder> holder_;  // the kernel, made for `kernel_features`
    std::unique_ptr<KernelHolder> sample_;  // the kernel for one feature, to check rows before the first is learned
    std::vector<double> values_;            // of a row that `as_query` converted
    std::vector<int64_t> indices_;
    RowsAhead ahead_;
};

void bind_kernel_engine(nb::module_& module);

}  // namespace onepass
