// The native half of LinearModel: a Model, its feature names and labels, one writer at a time.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "bind/features.hpp"
#include "bind/lock.hpp"
#include "bind/python_rule.hpp"
#include "core/model.hpp"

namespace onepass {

class SignalWatch;

extern const Loops* loops;  // the instruction set in use

template <class V>
using Matrix = nb::ndarray<const V, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class V>
using Vector = nb::ndarray<const V, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Out = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Count = nb::ndarray<int64_t, nb::shape<1>, nb::c_contig, nb::device::cpu>;
using LabelSets = nb::ndarray<const uint8_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// A column of numbers, one for each row; null if none was given. `arrays` keeps it alive.
const double* numbers(const nb::object& given, size_t rows, const char* name, std::vector<Vector<double>>& arrays);

// The arguments of a batch that is learned, besides its rows; each may be None. y: class indices or real numbers.
struct BatchArguments {
    nb::object y, importance, target, sets, scores, base;
};

// Holds references to the arrays of BatchArguments.
struct BatchArrays {
    std::vector<Vector<double>> columns;
    LabelSets sets;
};

class Engine {
 public:
    // Without `tables` there are no tables of weights: a KernelEngine has an expansion instead.
    Engine(const std::string& task, nb::dict rule, nb::dict options, bool tables = true);
    virtual ~Engine() = default;

    // Batches.
    template <class Batch>
    void learn(Batch X, const BatchArguments& given);
    template <class Batch>
    void score(const Batch& X, Out scores, nb::object base);
    template <class Batch>
    void check(const Batch& X);
    // Stores examples until `forget_set`. The pocket with ratchet counts the errors of weights on them. `arrays` holds
    // references to their arrays.
    template <class Batch>
    void keep_set(const Batch& X, nb::object arrays, Vector<double> y, nb::object importance);
    void forget_set();
    virtual void flush();  // applies the mini-batch so far

    // x' Sigma x of rows, one number for each Sigma.
    template <class Batch>
    void variance(const Batch& X, Out variances);
    nb::object variance_one(nb::handle x);
    size_t variances() const { return model.w.sigma.shared ? 1 : model.w.outputs; }

    // Ranking: the rows of queries, of which those before `first` were learned earlier. Writes to learned[0] how many
    // rows were learned. An exception refuses the next one, and counts it from `first`.
    template <class Batch>
    void learn_pairs(const Batch& X, Vector<double> relevance, Vector<double> importance, Vector<int64_t> begin,
                     size_t first, nb::object scores, Count learned);

    // One example: a mapping of names, or a row of numbers.
    void learn_one(nb::handle x, nb::handle y, nb::handle importance, double base = 0.0);
    void learn_direction(nb::handle x, double target, double importance);
    // Directions as mappings, each with target 1: learns all or none.
    void learn_together(nb::list directions, Vector<double> importance);
    nb::object score_one(nb::handle x, double base = 0.0);
    nb::object predict_one(nb::handle x, double base = 0.0);
    void check_one(nb::handle x);
    nb::list row_of(nb::handle x);  // (index, value) pairs, for explanations

    // True if the weights are so large, or the memory so full, that an ordinary example might be refused.
    virtual bool risky() const;
    // Why an example cannot have an initial prediction if so many classes are known; empty if it can.
    virtual std::string why_no_base(size_t known) const;
    static double read_base(nb::handle given);

    virtual void set_features(size_t d);
    virtual void register_names(nb::list names);  // registers names before a batch that has them
    void hold_back(size_t known);                 // names from `known` on are registered with their first rows instead
    virtual void unregister_names(size_t count);  // unregisters the newest names, which no learned row has
    // Refuses tables beyond the limit of memory, by an error of class `error`, before they are allocated.
    virtual void require_memory(size_t features, size_t classes, const char* error) const;
    // Refuses a file if the number of columns of its rows does not fit its features.
    void require_columns(double width, double features) const;
    size_t max_features = 0;  // of a model that is not hashed; 0: the limit of the environment
    size_t table_bytes() const { return sizeof(double) * (model.w.numbers() + model.w.sigma.numbers()); }

    void set_classes(nb::list classes);
    void add_class(nb::handle label);
    virtual void flip_classes();
    // A transaction around an example or a batch that may bring new classes: `coming` of them at most.
    virtual void begin_growth(size_t coming);
    virtual void roll_back_growth();
    void commit_growth();

    // With `met_only`, the tables hold only features whose numbers have changed, and "kept" says which.
    virtual nb::dict state(bool met_only = false);
    virtual void set_state(nb::dict state);

    // The callbacks, for Python's garbage collector: they may refer to the owner of this engine.
    virtual std::vector<nb::object*> held() { return {&on_new_label, &to_row, &callback_.step, &callback_.solve}; }

    std::shared_ptr<Lock> lock = std::make_shared<Lock>();  // the learner's, which also protects its names and labels
    Model model;
    Features features;
    nb::list classes;         // index -> label
    nb::dict labels;          // label -> index
    nb::object on_new_label;  // called with a label that is not in `labels`; registers it or raises
    nb::object to_row;        // called with an x that is neither a dict nor a float64 vector
    bool positional = false;  // rows of numbers came first, not names
    size_t columns = 0;       // of these rows
    std::string rule_text;    // for messages

 protected:
    // An example while it is read. A sparse one is in `scratch_`.
    struct Read {
        const double* x = nullptr;
        size_t n = 0;
        bool dense = false;
        size_t columns = 0;     // of a sparse row: the columns of its matrix
        bool streamed = false;  // of a sparse row from a stream with column numbers: the next may have more columns
        size_t added = 0;       // names that were registered with it
        Py_buffer view{};
        nb::object keep;
        bool has_columns() const { return dense || columns || streamed; }
        ~Read() {
            if (view.obj) PyBuffer_Release(&view);
        }
    };
    // What is restored after a refused example or batch.
    struct Registered {
        size_t features, columns;
        bool positional;
        double t;
    };

    void read(nb::handle x, Read& row, bool learning);
    // These depend on the representation: KernelEngine has others.
    virtual void scores_of(nb::handle x, double base, double* out);
    virtual void teach(Read& row, double y, double importance, double target, const uint8_t* set = nullptr,
                       double base = 0.0);
    virtual void set_outputs();  // as many as the classes need

    // Removes new classes at the end of its scope, unless their example was learned.
    struct Growing {
        Engine& engine;
        bool open = true;
        Growing(Engine& engine, size_t coming) : engine(engine) { engine.begin_growth(coming); }
        Growing(const Growing&) = delete;
        void commit() {
            engine.commit_growth();
            open = false;
        }
        ~Growing() {
            nb::error_scope keep_error;
            if (open) engine.roll_back_growth();
        }
    };
    OneCall own() { return {*lock, running_, "a model cannot be used from inside its own step or its own input"}; }
    [[noreturn]] void refuse(const Outcome& outcome) const;

    size_t known_classes(bool learning) const;
    void require_base(double base, bool learning) const;
    const double* read_bases(const nb::object& given, size_t rows, size_t known,
                             std::vector<Vector<double>>& arrays) const;
    void require_judge() const;
    void require_room(size_t features) const;
    void require_spread() const;

    PythonRule callback_;
    bool python_ = false;  // the rule is written in Python
    NamedRow scratch_;

 private:
    void take_formula(nb::dict rule);
    void take_rule(nb::dict rule);
    void take_options(nb::dict options);
    nb::object save_scalars() const;
    void restore_scalars(const std::vector<double>& scalars);

    bool read_vector(PyObject* x, Read& row);
    void read_mapping(nb::handle x, Read& row);
    void read_converted(nb::handle x, Read& row);
    void require_finite(const Read& row) const;
    void require_same_width(const Read& row) const;
    template <class Unknown>
    void leave_out(const Unknown& unknown, Read& row);
    double answer(nb::handle y);
    void learn_set(nb::handle x, nb::handle y, double importance);
    void register_features(Read& row);
    void touch(const int64_t* index, size_t n);

    Answers read_answers(size_t rows, const BatchArguments& given, BatchArrays& arrays) const;
    void require_valid(const Answers& in, size_t rows) const;
    template <class Batch>
    void register_columns(const Batch& X);
    template <class Batch>
    void unregister_columns(const Batch& X, size_t row, const Registered& before);
    template <class Batch>
    Outcome learn_rows(const Batch& X, const Answers& in, SignalWatch& watch);
    template <class Batch>
    Outcome learn_all_or_none(const Batch& X, const Answers& in, SignalWatch& watch);

    std::shared_ptr<const void> set_;
    nb::object set_arrays_;
    struct Growth {
        size_t classes = 0;  // before it
        nb::object labels;   // of these classes, if they may change places; otherwise null
    } growth_;
    Zeroed<uint32_t> places_;  // see Difference; all 0 between calls
    bool running_ = false;     // a call is running, in the thread that holds the lock
};

// Type slots by which Python's garbage collector sees Engine::held().
extern PyType_Slot* const garbage_collection;

void bind_engine(nb::module_& module);

}  // namespace onepass
