// The native half of LinearModel: a Model, its feature names and labels, one writer at a time.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bind/features.hpp"
#include "bind/lock.hpp"
#include "core/model.hpp"

namespace onepass {

extern const Loops* loops;  // the instruction set in use

template <class V>
using Matrix = nb::ndarray<const V, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class V>
using Vector = nb::ndarray<const V, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Out = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Count = nb::ndarray<int64_t, nb::shape<1>, nb::c_contig, nb::device::cpu>;

// A rule written in Python, called back from the loop (which then keeps the interpreter lock).
struct PythonRule {
    nb::object step, solve;  // onepass.callback.step / solve bound to the rule
    int slots;
};
inline thread_local const PythonRule* python_rule = nullptr;

// The rule that callbacks of this thread go to, for as long as a call lasts: a step may run another model. Null for a
// rule that calls nobody back.
struct RuleScope {
    const PythonRule *rule, *outer = nullptr;
    explicit RuleScope(const PythonRule* rule) : rule(rule) {
        if (rule) outer = std::exchange(python_rule, rule);
    }
    ~RuleScope() {
        if (rule) python_rule = outer;
    }
};

inline void python_step(const Scalars* s, const double*, double* state, Step* step) {
    step->add = std::nan("");  // what remains if the call fails: the round is refused
    if (PyErr_Occurred()) return;
    try {
        nb::list slots;
        for (int i = 0; i < python_rule->slots; ++i) slots.append(state[i]);
        nb::tuple answer = nb::cast<nb::tuple>(python_rule->step(s->m, s->target, s->xx, s->ww, s->importance, s->t,
                                                                 s->k, s->side, s->regression, s->base, slots));
        *step = {nb::cast<double>(answer[0]), nb::cast<double>(answer[1]), nb::cast<double>(answer[2]),
                 nb::cast<double>(answer[3]), nb::cast<double>(answer[4]), nb::cast<double>(answer[5]),
                 nb::cast<double>(answer[6])};
        for (int i = 0; i < python_rule->slots; ++i) state[i] = nb::cast<double>(slots[size_t(i)]);
    } catch (nb::python_error& error) {
        error.restore();
    }
}

inline void python_solve(const Scalars* s, const double* scores, int64_t classes, int64_t y, const double*,
                         double* state, double* coefficients, Step* step) {
    step->add = std::nan("");
    if (PyErr_Occurred()) return;
    try {
        nb::list slots, all;
        for (int i = 0; i < python_rule->slots; ++i) slots.append(state[i]);
        for (int64_t r = 0; r < classes; ++r) all.append(scores[r]);
        nb::tuple answer = nb::cast<nb::tuple>(python_rule->solve(all, y, s->m, s->target, s->xx, s->ww, s->importance,
                                                                  s->t, s->k, s->side, s->regression, slots));
        nb::list row = nb::cast<nb::list>(answer[0]);
        for (int64_t r = 0; r < classes; ++r) coefficients[r] = nb::cast<double>(row[size_t(r)]);
        *step = {1.0,
                 nb::cast<double>(answer[1]),
                 nb::cast<double>(answer[2]),
                 nb::cast<double>(answer[3]),
                 nb::cast<double>(answer[4]),
                 nb::cast<double>(answer[5]),
                 nb::cast<double>(answer[6])};
        for (int i = 0; i < python_rule->slots; ++i) state[i] = nb::cast<double>(slots[size_t(i)]);
    } catch (nb::python_error& error) {
        error.restore();
    }
}

// A column of numbers, one for each row; null where none was given. `keep` holds it as long as it is read.
inline const double* numbers(const nb::object& given, size_t rows, const char* name,
                             std::vector<Vector<double>>& keep) {
    if (given.is_none()) return nullptr;
    keep.push_back(nb::cast<Vector<double>>(given));
    if (keep.back().shape(0) != rows)
        raise("InputError", std::string(name) + " has " + std::to_string(keep.back().shape(0)) + " entries, X has " +
                                std::to_string(rows) + " rows");
    return keep.back().data();
}

class Engine {
 public:
    // Without `tables` there are no weights of features: KernelEngine has its own.
    Engine(const std::string& task, nb::dict rule, nb::dict options, bool tables = true);
    virtual ~Engine() = default;

    // Batches. y: class indices or reals; importance, target, scores may be None.
    template <class Batch>
    void learn(Batch X, nb::object y, nb::object importance, nb::object target, nb::object sets, nb::object scores,
               nb::object base);
    // The set that the ratchet judges by, until `forget_set`; `arrays` are kept alive as long.
    template <class Batch>
    void keep_set(const Batch& X, nb::object arrays, Vector<double> y, nb::object importance);
    void forget_set();
    virtual void flush();
    template <class Batch>
    void score(const Batch& X, Out scores, nb::object base);

    // x' Sigma x of rows, one for each Sigma.
    template <class Batch>
    void variance(const Batch& X, Out variances);
    nb::object variance_one(nb::handle x);
    size_t variances() const { return model.w.sigma.shared ? 1 : model.w.outputs; }

    // Ranking: rows of queries, of which those before `first` are remembered. Counts in learned[0] the rows that were
    // learned whole; the next one is refused by an exception, its row counted from `first`.
    template <class Batch>
    void learn_pairs(const Batch& X, Vector<double> relevance, Vector<double> importance, Vector<int64_t> begin,
                     size_t first, nb::object scores, Count learned);

    // One example: a mapping of names, or a row of numbers.
    void learn_one(nb::handle x, nb::handle y, nb::handle importance, double base = 0.0);
    void learn_direction(nb::handle x, double target, double importance);
    void learn_together(nb::list directions, Vector<double> importance);  // mappings, each to reach 1: all or none
    template <class Batch>
    void check(const Batch& X);
    nb::object score_one(nb::handle x, double base = 0.0);
    nb::object predict_one(nb::handle x, double base = 0.0);
    void check_one(nb::handle x);
    nb::list row_of(nb::handle x);  // (index, value) pairs, for explanations

    // What is wrong with an example that begins at an initial prediction where so many classes are known; empty where
    // nothing is.
    // Might an ordinary example be refused, for what the weights have become?
    virtual bool risky() const;
    virtual std::string why_no_base(size_t known) const;
    static double read_base(nb::handle given);

    virtual void set_features(size_t d);
    virtual void admit_names(nb::list names);  // features by name, before rows that have them come as a batch
    void hold_back(size_t known);              // names after these count from their first rows on
    virtual void forget_names(size_t count);   // the newest, about which nothing was learned
    // Refuses tables beyond the limit on memory, by an error of that name, before they are made.
    virtual void require_memory(size_t features, size_t classes, const char* error) const;
    // Refuses a file whose rows have other columns than its features: before tables are made, which have their size.
    void require_columns(double width, double features) const;
    size_t max_features = 0;  // of those that are not hashed; 0: what the environment says
    size_t table_bytes() const { return sizeof(double) * (model.w.numbers() + model.w.sigma.numbers()); }
    void set_classes(nb::list classes);
    void add_class(nb::handle label);
    virtual void flip_classes();
    // A transaction around an example that brings new classes, at most so many.
    virtual void begin_growth(size_t coming);
    virtual void roll_back_growth();
    void commit_growth();
    // With `met_only`, tables hold the features that are not as they started alone, and "kept" says which these are.
    virtual nb::dict state(bool met_only = false);
    virtual void set_state(nb::dict state);

    // The callbacks, which may lead back to whoever owns this engine.
    virtual std::vector<nb::object*> held() { return {&on_new_label, &to_row, &callback_.step, &callback_.solve}; }

    std::shared_ptr<Lock> lock = std::make_shared<Lock>();  // of the learner: its names and labels are of one moment
    Model model;
    Features features;
    nb::list classes;         // index -> label
    nb::dict labels;          // label -> index
    nb::object on_new_label;  // called with a label that is not in `labels`; registers it or raises
    nb::object to_row;        // called with an x that is neither a mapping nor a plain float64 vector
    bool positional = false;  // rows, not names, came first
    size_t columns = 0;       // of those rows
    std::string rule_text;    // for messages

 protected:
    struct Read {
        const double* x = nullptr;
        size_t n = 0;
        bool dense = false;
        size_t columns = 0;     // of a sparse row of a matrix: its width
        bool streamed = false;  // a row of a stream with numbers for names: as wide as it reaches, and more may come
        size_t added = 0;       // names that are new with this row
        Py_buffer view{};
        nb::object keep;
        ~Read() {
            if (view.obj) PyBuffer_Release(&view);
        }
    };

    void take_formula(nb::dict rule);
    nb::object save_scalars() const;
    void restore_scalars(const std::vector<double>& scalars);
    void read(nb::handle x, Read& row, bool learning);
    template <class Known>
    void leave_out(const Known& known, Read& row);
    bool read_vector(PyObject* x, Read& row);
    // What depends on the representation: KernelEngine has another.
    virtual void scores_of(nb::handle x, double base, double* out);
    virtual void teach(Read& row, double y, double importance, double target, const uint8_t* set = nullptr,
                       double base = 0.0);
    void learn_set(nb::handle x, nb::handle y, double importance);
    // Drops new classes at the end of its scope, unless their example was learned.
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
    virtual void set_outputs();                  // rows of weights for the classes there are
    void touch(const int64_t* index, size_t n);  // before a row is learned; null for the first n features
    double answer(nb::handle y);
    // One writer or reader at a time; a rule's step that comes back to its own model is refused, not left to hang.
    struct Owned {
        Engine& engine;
        Lock& lock;  // the engine's when it was taken
        Owned(Engine& engine) : engine(engine), lock(*engine.lock) {
            lock.acquire();
            if (engine.inside_) refuse();
            engine.inside_ = true;
        }
        Owned(const Owned&) = delete;
        ~Owned() {
            engine.inside_ = false;
            lock.release();
        }

     private:
        [[noreturn]] void refuse();
    };
    Owned own() { return Owned(*this); }
    [[noreturn]] void refuse(const Outcome& outcome) const;
    // A row that cannot be learned, though nothing is wrong with its form.
    [[noreturn]] static void raise_row(const char* kind, size_t row, const std::string& why);

    size_t known_classes(bool learning) const;
    void require_base(double base, bool learning) const;
    const double* read_bases(const nb::object& given, size_t rows, size_t known,
                             std::vector<Vector<double>>& keep) const;
    void require_judge() const;
    void require_room(size_t features) const;
    void require_spread() const;

    std::shared_ptr<const void> set_;
    nb::object set_arrays_;
    PythonRule callback_;
    bool python_ = false;
    struct Growth {
        size_t classes = 0;  // before it
        nb::object labels;   // of these, where they may change places; else null
    } growth_;
    NamedRow scratch_;
    Zeroed<uint32_t> places_;  // see Difference; between calls all are 0
    bool inside_ = false;      // is some thread at work, which holds the lock?
};

// Type slots by which Python's garbage collector sees Engine::held().
extern PyType_Slot* const garbage_collection;

void bind_engine(nb::module_& module);

}  // namespace onepass
