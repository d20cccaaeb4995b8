// Naive Bayes, and single examples as dense rows, for Python.
#include "bind/learners.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "bind/arrays.hpp"
#include "bind/features.hpp"
#include "learners/naive_bayes.hpp"
#include "loops/learner_loops.hpp"

namespace onepass {

using namespace nb::literals;

const LearnerLoops* learner_loops = learner_loops_scalar();

namespace {

// The sum of the squares of larger numbers could overflow in a long stream.
constexpr double largest_number = 1e100;

void require_moderate(const double* x, size_t n, bool negative = true) {
    bool large = false;
    for (size_t j = 0; j < n; ++j) {
        if (std::fabs(x[j]) <= largest_number && (negative || x[j] >= 0.0)) continue;
        if (!std::isfinite(x[j]))
            raise("InputError", "x must hold finite numbers, but x[" + std::to_string(j) + "] is " +
                                    (std::isnan(x[j]) ? "NaN" : "infinite") +
                                    "; drop or impute the row. Nothing of this call was learned");
        if (!negative && x[j] < 0.0)
            raise("InputError", "x must hold counts >= 0, but x[" + std::to_string(j) + "] is negative");
        large = true;  // look on: a NaN further on is the worse error
    }
    if (large)
        raise("NumericalError", "row 0: a number above 1e100 in size, whose squares overflow; scale the features down");
}

bool is_mapping(nb::handle x) {
    return PyDict_Check(x.ptr()) ||
           (PyMapping_Check(x.ptr()) && PyObject_HasAttrString(x.ptr(), "items") && !PySequence_Check(x.ptr()));
}

// The first example decides the form of all: mappings, whose names may grow, or rows of a fixed number of columns.
struct Shape {
    enum class Form { unknown, named, positional };
    Features names{-1};
    Form form = Form::unknown;
    size_t columns = 0;

    bool named() const { return form == Form::named; }
    void require_named() const {
        if (form == Form::positional)
            raise("FeatureError",
                  "this model has learned rows of " + std::to_string(columns) + " numbers; give rows, not mappings");
    }
    void require_columns(size_t n) const {
        if (form == Form::named)
            raise("FeatureError", "this model has learned named features; give mappings of names to numbers");
        if (form == Form::positional && n != columns)
            raise("FeatureError", "x has " + std::to_string(n) + " features, but this model has learned rows of " +
                                      std::to_string(columns) + " features");
    }
    void settle(size_t n) {
        require_few(n, 0, "FeatureError");
        form = Form::positional;
        columns = n;
    }
};

// Converts single examples for learners with dense tables. The names of mappings become columns.
class RowReader {
 public:
    // The example as a vector; None if x is neither a mapping nor a float64 vector. With `learn`, new names are
    // registered; otherwise they are left out.
    nb::object row(nb::handle x, bool learn) {
        if (In1<double> vector; nb::try_cast(x, vector, false)) {
            if (vector.shape(0) == 0) return nb::none();  // the caller refuses it
            shape.require_columns(vector.shape(0));
            require_moderate(vector.data(), vector.shape(0));
            if (learn) shape.settle(vector.shape(0));
            return nb::borrow(x);
        }
        if (!is_mapping(x)) return nb::none();
        shape.require_named();
        shape.names.read(x, row_, nullptr, 0);
        require_moderate(row_.value.data(), row_.value.size());
        if (learn) {
            require_few(shape.names.size() + row_.new_names.size(), 0, "FeatureError");
            shape.form = Shape::Form::named;
            shape.names.register_names(row_);
        }
        std::vector<double> out(shape.names.size(), 0.0);
        for (size_t i = 0; i < row_.index.size(); ++i)
            if (row_.index[i] >= 0) out[size_t(row_.index[i])] += row_.value[i];
        const size_t size = out.size();
        return array<double>({size}, std::move(out));
    }

    Shape shape;

 private:
    NamedRow row_;
};

class Counter {
 public:
    Counter(const std::string& keeps, double threshold, double forgetting)
        : bayes(kind(keeps), threshold, forgetting) {}

    void learn(In2<double> X, In1<int64_t> codes, In1<double> w) {
        const size_t n = X.shape(0), d = X.shape(1);
        require_size(codes.shape(0), n, "codes");
        require_size(w.shape(0), n, "w");
        require_codes(codes);
        shape.require_columns(d);
        shape.settle(d);
        bayes.widen(d);
        for (size_t i = 0; i < n; ++i)
            bayes.learn({X.data() + i * d, nullptr, d}, size_t(codes.data()[i]), w.data()[i]);
    }

    // The column indices of each row rise strictly.
    void learn_csr(In1<double> data, In1<int64_t> indices, In1<int64_t> starts, size_t columns, In1<int64_t> codes,
                   In1<double> w, bool named) {
        const size_t n = codes.shape(0);
        check_csr(data, indices, starts, columns);
        require_size(starts.shape(0), n + 1, "codes");
        require_size(w.shape(0), n, "w");
        require_codes(codes);
        if (named) shape.require_named(), shape.form = Shape::Form::named;
        else shape.require_columns(columns), shape.settle(columns);
        bayes.widen(columns);
        for (size_t i = 0; i < n; ++i) {
            const size_t start = size_t(starts.data()[i]), stop = size_t(starts.data()[i + 1]);
            bayes.learn({data.data() + start, indices.data() + start, stop - start}, size_t(codes.data()[i]),
                        w.data()[i]);
        }
    }

    // Returns false if x is neither a mapping nor a float64 vector. The code after the last class is a new class.
    bool learn_one(nb::handle x, size_t code, double w) {
        if (code > bayes.classes.size()) raise("ParameterError", "a class code beyond the next");
        if (!(w >= 0.0 && w <= largest_number)) raise("InputError", "importance must be a finite number >= 0");
        if (!read(x)) return false;
        const size_t columns = names_ ? shape.names.size() + row_.new_names.size() : n_;
        if (columns > bayes.features || code == bayes.classes.size()) {
            require_few(columns, 0, "FeatureError");
            const size_t classes = bayes.classes.size() + (code == bayes.classes.size());
            require_memory(8.0 * double(bayes.planes()) * double(columns) * double(classes),
                           std::to_string(columns) + " features x " + std::to_string(classes) + " classes",
                           "use fewer features or classes", columns > bayes.features ? "FeatureError" : "LabelError");
        }
        if (names_) {
            shape.form = Shape::Form::named;
            shape.names.register_names(row_);
            sort();
            bayes.widen(shape.names.size());
        } else {
            shape.settle(n_);
            bayes.widen(n_);
        }
        if (code == bayes.classes.size()) bayes.add_class();
        bayes.learn(current(), code, w);
        return true;
    }

    // The scores of the classes; None if x is neither a mapping nor a float64 vector.
    nb::object score_one(nb::handle x, const std::string& by, double smoothing) {
        if (!read(x)) return nb::none();
        double unknown = 0.0;
        // Names that were never learned have no column. Counts take them for words that no class has.
        if (names_) {
            size_t kept = 0;
            for (size_t i = 0; i < row_.index.size(); ++i)
                if (row_.index[i] >= 0) row_.index[kept] = row_.index[i], row_.value[kept++] = row_.value[i];
                else unknown += row_.value[i];
            row_.index.resize(kept);
            row_.value.resize(kept);
            sort();
        }
        // The same holds for columns beyond the learned ones: classes may be declared before the first example.
        while (!names_ && n_ > bayes.features) unknown += vector_.data()[--n_];
        std::vector<double> out(bayes.classes.size());
        bayes.score(current(), scores(by), smoothing, out.data(), unknown);
        const size_t size = out.size();
        return array<double>({size}, std::move(out));
    }

    nb::dict state() const {
        const size_t C = bayes.classes.size(), d = bayes.features;
        std::vector<double> mass, total, count, mean, square;
        for (const NaiveBayes::Class& c : bayes.classes) {
            mass.push_back(c.mass);
            total.push_back(c.total);
            count.insert(count.end(), c.count.begin(), c.count.end());
            mean.insert(mean.end(), c.mean.begin(), c.mean.end());
            square.insert(square.end(), c.square.begin(), c.square.end());
        }
        nb::dict out;
        out["mass"] = array<double>({C}, std::move(mass));
        out["total"] = array<double>({C}, std::move(total));
        out["count"] = array<double>({C, d}, std::move(count));
        if (bayes.statistics == NaiveBayes::Statistics::moments) {
            out["mean"] = array<double>({C, d}, std::move(mean));
            out["square"] = array<double>({C, d}, std::move(square));
        }
        return out;
    }

    void set_state(nb::dict state) {
        const auto mass = nb::cast<In1<double>>(state["mass"]), total = nb::cast<In1<double>>(state["total"]);
        const auto count = nb::cast<In2<double>>(state["count"]);
        const size_t C = mass.shape(0), d = count.shape(1);
        bool fits = total.shape(0) == C && count.shape(0) == C;
        std::vector<In2<double>> more;
        if (bayes.statistics == NaiveBayes::Statistics::moments)
            for (const char* name : {"mean", "square"}) {
                more.push_back(nb::cast<In2<double>>(state[name]));
                fits = fits && more.back().shape(0) == C && more.back().shape(1) == d;
            }
        const auto finite = [](const double* p, size_t n) {
            return std::all_of(p, p + n, [](double x) { return std::isfinite(x); });
        };
        fits = fits && finite(mass.data(), C) && finite(total.data(), C) && finite(count.data(), C * d);
        for (const auto& table : more) fits = fits && finite(table.data(), C * d);
        if (!fits) raise("DamagedFileError", "the classes' arrays do not fit together; restore a copy of the file");
        bayes.classes.clear();
        bayes.features = d;
        for (size_t c = 0; c < C; ++c) {
            bayes.add_class();
            NaiveBayes::Class& made = bayes.classes.back();
            made.mass = mass.data()[c];
            made.total = total.data()[c];
            std::copy_n(count.data() + c * d, d, made.count.begin());
            if (more.empty()) continue;
            std::copy_n(more[0].data() + c * d, d, made.mean.begin());
            std::copy_n(more[1].data() + c * d, d, made.square.begin());
        }
        bayes.forget_cache();
    }

    NaiveBayes bayes;
    Shape shape;

 private:
    static NaiveBayes::Statistics kind(const std::string& name) {
        if (name == "counts") return NaiveBayes::Statistics::counts;
        if (name == "presence") return NaiveBayes::Statistics::presence;
        if (name == "moments") return NaiveBayes::Statistics::moments;
        raise("ParameterError",
              "naive Bayes expected counts, presence or moments as its statistics, got '" + name + "'");
    }
    static NaiveBayes::Scores scores(const std::string& name) {
        using S = NaiveBayes::Scores;
        if (name == "multinomial") return S::multinomial;
        if (name == "complement") return S::complement;
        if (name == "normed_complement") return S::normed_complement;
        if (name == "bernoulli") return S::bernoulli;
        if (name == "gaussian") return S::gaussian;
        raise("ParameterError", "no scores of the kind '" + name + "'");
    }
    void require_codes(const In1<int64_t>& codes) const {
        for (size_t i = 0; i < codes.shape(0); ++i)
            if (codes.data()[i] < 0 || size_t(codes.data()[i]) >= bayes.classes.size())
                raise("ParameterError", "a class code without a class");
    }
    static void check_csr(const In1<double>& data, const In1<int64_t>& indices, const In1<int64_t>& starts,
                          size_t columns) {
        require_size(indices.shape(0), data.shape(0), "indices");
        const size_t rows = starts.shape(0) - 1, size = data.shape(0);
        bool valid = starts.shape(0) > 0 && starts.data()[0] == 0 && size_t(starts.data()[rows]) == size;
        for (size_t i = 0; valid && i < rows; ++i) {
            valid = starts.data()[i] <= starts.data()[i + 1] && size_t(starts.data()[i + 1]) <= size;
            int64_t last = -1;
            for (int64_t at = starts.data()[i]; valid && at < starts.data()[i + 1]; ++at) {
                valid = indices.data()[at] > last && indices.data()[at] < int64_t(columns);
                last = indices.data()[at];
            }
        }
        if (!valid) raise("ParameterError", "the rows' columns must rise within their table");
    }

    bool read(nb::handle x) {
        const bool negative = bayes.statistics != NaiveBayes::Statistics::counts;
        if (nb::try_cast(x, vector_, false)) {
            if (vector_.shape(0) == 0) return false;  // the caller refuses it
            names_ = false;
            n_ = vector_.shape(0);
            shape.require_columns(n_);
            require_moderate(vector_.data(), n_, negative);
            return true;
        }
        if (!is_mapping(x)) return false;
        names_ = true;
        shape.require_named();
        shape.names.read(x, row_, nullptr, 0);
        require_moderate(row_.value.data(), row_.value.size(), negative);
        return true;
    }
    void sort() {
        if (std::is_sorted(row_.index.begin(), row_.index.end())) return;
        order_.resize(row_.index.size());
        std::iota(order_.begin(), order_.end(), size_t(0));
        std::sort(order_.begin(), order_.end(), [&](size_t a, size_t b) { return row_.index[a] < row_.index[b]; });
        std::vector<int64_t> index(order_.size());
        std::vector<double> value(order_.size());
        for (size_t i = 0; i < order_.size(); ++i) index[i] = row_.index[order_[i]], value[i] = row_.value[order_[i]];
        row_.index.swap(index);
        row_.value.swap(value);
    }
    FeatureRow current() const {
        if (names_) return {row_.value.data(), row_.index.data(), row_.index.size()};
        return {vector_.data(), nullptr, n_};
    }

    NamedRow row_;
    In1<double> vector_;
    std::vector<size_t> order_;
    size_t n_ = 0;
    bool names_ = false;
};

template <class C>
void bind_shape(nb::class_<C>& bound) {
    bound
        .def_prop_rw(
            "names", [](C& self) { return self.shape.names.names(); },
            [](C& self, nb::list names) {
                self.shape.names.set_names(names);
                self.shape.form = Shape::Form::named;
            })
        .def("admit",
             [](C& self, nb::list names) {
                 self.shape.require_named();
                 self.shape.form = Shape::Form::named;
                 for (nb::handle name : names)
                     if (self.shape.names.find(name.ptr()) < 0) self.shape.names.register_name(name.ptr());
             })
        .def("settle", [](C& self, size_t columns) { self.shape.require_columns(columns), self.shape.settle(columns); })
        .def(
            "find", [](C& self, nb::handle name) { return self.shape.names.find(name.ptr()); }, "name"_a)
        .def_prop_ro("named", [](C& self) { return self.shape.named(); })
        .def(
            "require_few", [](C&, size_t count) { require_few(count, 0, "FeatureError"); }, "count"_a)
        .def_prop_ro("columns",
                     [](C& self) { return self.shape.named() ? self.shape.names.size() : self.shape.columns; });
}

}  // namespace

void bind_learners(nb::module_& module) {
    nb::class_<RowReader> reader(module, "RowReader");
    reader.def(nb::init<>()).def("row", &RowReader::row, "x"_a.none(), "learn"_a);
    bind_shape(reader);

    nb::class_<Counter> counter(module, "Counter");
    counter.def(nb::init<const std::string&, double, double>(), "statistics"_a, "threshold"_a, "forgetting"_a)
        .def("learn", &Counter::learn, "X"_a, "codes"_a, "w"_a)
        .def("learn_csr", &Counter::learn_csr, "data"_a, "indices"_a, "starts"_a, "columns"_a, "codes"_a, "w"_a,
             "named"_a = false)
        .def("learn_one", &Counter::learn_one, "x"_a.none(), "code"_a, "w"_a)
        .def("score_one", &Counter::score_one, "x"_a.none(), "by"_a, "smoothing"_a)
        .def("add_class", [](Counter& self) { self.bayes.add_class(); })
        .def("largest_variance", [](Counter& self) { return self.bayes.largest_variance(); })
        .def("state", &Counter::state)
        .def("set_state", &Counter::set_state, "state"_a)
        .def_prop_ro("classes", [](Counter& self) { return self.bayes.classes.size(); })
        .def_prop_ro("features", [](Counter& self) { return self.bayes.features; })
        .def("masses",
             [](Counter& self) {
                 std::vector<double> out;
                 for (const NaiveBayes::Class& c : self.bayes.classes) out.push_back(c.mass);
                 return out;
             })
        .def_prop_rw(
            "unit", [](Counter& self) { return self.bayes.unit; },
            [](Counter& self, double unit) { self.bayes.unit = unit; })
        .def_prop_rw(
            "t", [](Counter& self) { return self.bayes.t; }, [](Counter& self, uint64_t t) { self.bayes.t = t; });
    bind_shape(counter);
}

}  // namespace onepass
