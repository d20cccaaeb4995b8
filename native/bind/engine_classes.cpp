// The classes of an engine: declared ones, new ones, and the memory for them.
#include <algorithm>
#include <optional>
#include <stdexcept>

#include "bind/engine.hpp"
#include "core/memory.hpp"
#include "core/rules.hpp"

namespace onepass {

void Engine::require_memory(size_t count, size_t known, const char* error) const {
    if (!features.hashed()) require_few(count, max_features, error);
    if (count > most_columns)
        raise(error, std::to_string(count) + " features, but a linear model can have " + std::to_string(most_columns) +
                         ", as many as 32-bit indices can name; hash them (hash_bits, in the command -b)");
    const double bytes = model.w.bytes_for(count, known);
    if (bytes <= small_tables || bytes <= double(table_bytes())) return;
    std::string classes_too;
    if (known > 2) classes_too = " x " + std::to_string(known) + " classes";
    onepass::require_memory(bytes, std::to_string(count) + " features" + classes_too + " of " + rule_text,
                            "use fewer features (hash_bits, in the command -b), fewer classes or a rule that stores "
                            "less of each weight",
                            error);
}

void Engine::set_outputs() {
    if (model.task == Task::classify || model.task == Task::multilabel) model.w.set_outputs(nb::len(classes));
}

void Engine::set_classes(nb::list all) {
    require_memory(model.w.features, nb::len(all), "ParameterError");
    classes = nb::list();
    labels = nb::dict();
    for (nb::handle label : all) {
        labels[label] = nb::int_(classes.size());
        classes.append(label);
    }
    set_outputs();
    model.size_scratch();
    loops->derive(model);
}

void Engine::add_class(nb::handle label) {
    const size_t known = nb::len(classes);
    require_memory(model.w.features, known + 1, "LabelError");
    labels[label] = nb::int_(known);
    classes.append(label);
    const bool one_row = model.w.stride == 1;
    set_outputs();
    if (model.scores.size() < model.w.stride) model.size_scratch();
    if (one_row) loops->derive(model);
}

void Engine::flip_classes() {
    model.w.negate();
    if (model.coordinates == Coordinates::vowpal) {  // the least and the greatest label trade places
        double &least = model.state[VWSlots::low], &greatest = model.state[VWSlots::high];
        const double low = least;
        least = 0.0 - greatest;
        greatest = 0.0 - low;
    }
    nb::list swapped;
    swapped.append(classes[1]);
    swapped.append(classes[0]);
    set_classes(swapped);
}

void Engine::begin_growth(size_t coming) {
    const size_t known = nb::len(classes);
    model.transaction.begin_growth(model, known, coming);
    growth_ = {known, nb::object()};
    if (known < 3) growth_.labels = nb::list(nb::tuple(classes));
}

void Engine::commit_growth() {
    model.transaction.commit();
    growth_ = {};
}

void Engine::roll_back_growth() {
    model.transaction.roll_back(model);
    if (growth_.labels.is_valid()) {
        set_classes(nb::cast<nb::list>(growth_.labels));
    } else {
        for (size_t known = nb::len(classes); known > growth_.classes; --known) {
            PyObject* last = PyList_GET_ITEM(classes.ptr(), Py_ssize_t(known - 1));
            if (PyDict_DelItem(labels.ptr(), last) != 0) throw nb::python_error();
            if (PyList_SetSlice(classes.ptr(), Py_ssize_t(known - 1), Py_ssize_t(known), nullptr) != 0)
                throw nb::python_error();
        }
    }
    growth_ = {};
}

void Engine::touch(const int64_t* index, size_t n) {
    if (model.coordinates == Coordinates::adam) index = nullptr, n = model.w.features;  // moves every weight
    for (size_t i = 0; i < n; ++i) model.w.touched.mark(index ? size_t(index[i]) : i);
}

// Multilabel: y is a collection of labels. A new label adds an output, as a new class does.
void Engine::learn_set(nb::handle x, nb::handle y, double importance) {
    if (PyUnicode_Check(y.ptr()) || PyBytes_Check(y.ptr()))
        raise("LabelError", "y must be a collection of labels, got " + text_of(y) + "; put a single label in a list");
    nb::object members = nb::steal(PySequence_List(y.ptr()));
    if (!members.is_valid()) {
        PyErr_Clear();
        raise("LabelError", "y must be a collection of labels, got " + text_of(y));
    }
    auto lock = own();
    Read row;
    read(x, row, true);
    size_t fresh = 0;
    for (nb::handle label : members) {
        const int known = PyDict_Contains(labels.ptr(), label.ptr());
        if (known < 0) throw nb::python_error();
        fresh += known == 0;
    }
    std::optional<Growing> growing;
    if (fresh) growing.emplace(*this, fresh);
    std::vector<size_t> in;
    for (nb::handle label : members) in.push_back(size_t(answer(label)));
    std::vector<uint8_t> set(std::max<size_t>(model.w.outputs, 1), 0);
    for (size_t r : in) set[r] = 1;
    teach(row, 0.0, importance, 1.0, set.data());
    if (growing) growing->commit();
}

}  // namespace onepass
