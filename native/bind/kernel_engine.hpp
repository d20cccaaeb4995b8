// The native half of KernelModel: an Engine whose weights are an expansion.
#pragma once
#include <array>
#include <memory>
#include <optional>

#include "bind/engine.hpp"
#include "bind/kernels.hpp"
#include "kernels/kernel_round.hpp"

namespace onepass {

class KernelEngine : public Engine {
 public:
    // make_kernel(d) gives the kernel's native form once the number of features is known.
    KernelEngine(const std::string& task, nb::dict rule, nb::dict options, nb::object make_kernel, nb::dict budget);

    void learn_dense(Matrix<double> X, nb::object y, nb::object importance, nb::object scores);
    void learn_csr(Vector<double> data, Vector<int64_t> indices, Vector<int64_t> starts, size_t columns, nb::object y,
                   nb::object importance, nb::object scores, bool distinct = false, bool named = false);
    void score_dense(Matrix<double> X, Out scores);
    void score_csr(Vector<double> data, Vector<int64_t> indices, Vector<int64_t> starts, size_t columns, Out scores);
    void check_dense(Matrix<double> X);
    void check_csr(Vector<double> data, Vector<int64_t> indices, Vector<int64_t> starts, size_t columns);

    std::string why_no_base(size_t) const override { return "but a kernel learner begins at 0; leave it out"; }
    bool risky() const override { return !(f.ww < 1e100); }
    void set_features(size_t d) override;
    void admit_names(nb::list names) override;
    void forget_names(size_t count) override;
    void flip_classes() override;
    void begin_growth(size_t coming) override;
    void roll_back_growth() override;
    nb::dict state(bool met_only) override;  // there are no tables of features: the same for both
    void set_state(nb::dict state) override;
    void flush() override {}
    std::vector<nb::object*> held() override;
    void require_memory(size_t count, size_t known, const char* error) const override;

    Expansion f;
    Budget budget;
    size_t width = 0;            // features there may be: columns, or names so far
    size_t kernel_features = 0;  // the d that the kernel was made for

 protected:
    void scores_of(nb::handle x, double base, double* out) override;
    void set_outputs() override;
    void teach(Read& row, double y, double importance, double target, const uint8_t* set, double base) override;

 private:
    nb::object save_scalars() const;
    void restore_columns(const std::vector<double>& scalars);
    void restore_numbers(const std::vector<double>& scalars);
    struct Table;
    void require_vectors(size_t columns, size_t outputs, const char* error) const;
    void widen_vectors();  // to `width`, where memory allows it
    void start(bool sparse, size_t d);
    void unstart();
    const Kernel& any_kernel();  // the kernel, or before the first example one for another d
    void require_inside(const Table& X) const;
    void check(const Table& X);
    void check_row(const double* x, const int64_t* index, size_t n, size_t row);
    void learn(const Table& X, nb::object y, nb::object importance, nb::object scores);
    // Kernel rows of some dense rows to come, all at once. What became of the slots meanwhile is looked up (one of
    // those rows has come in, another slot's vector has moved) or evaluated again: K(x, z) is a pure function, so the
    // bits are those of row after row.
    static constexpr size_t ahead = 2 * Points::line;
    void look_ahead(const Table& X, size_t from);
    const double* looked_up(size_t q);
    double among_themselves(size_t q, size_t earlier);  // K of two of them
    void score(const Table& X, Out scores);
    size_t work(const Table& X, size_t row) const;  // multiplications, roughly
    // A row in the form that the support vectors have.
    Query as_query(const double* x, const int64_t* index, size_t n);
    void sort_named(bool admitted);
    [[noreturn]] void refuse_row(const Outcome& outcome) const;
    bool in_python() const { return python_ || (holder_ && holder_->calls_python()); }

    // As it was before new classes came.
    struct OneOutput {
        std::vector<double> coef, values;
        double ww;
    };
    std::optional<OneOutput> one_output_;

    nb::object make_kernel_;
    std::unique_ptr<KernelHolder> holder_, sample_;
    std::vector<double> values_;
    std::vector<int64_t> indices_;
    std::vector<Query> coming_;
    std::vector<double> coming_rows_;
    size_t coming_stride_ = 0;
    Points coming_points_;  // the same rows as points, for K among themselves
    double among_[ahead * ahead];
    std::array<bool, ahead / Points::line> met_{};  // is `among_` of these rows? A line and those that come after it
    const double* then_ = nullptr;                  // the rows that come after these, where there are as many
    std::vector<size_t> unknown_;
};

void bind_kernel_engine(nb::module_& module);

}  // namespace onepass
