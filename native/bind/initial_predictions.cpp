// Initial predictions (`base`): which models and examples can have one.
#include "bind/engine.hpp"

namespace onepass {

std::string Engine::why_no_base(size_t known) const {
    std::string why;
    switch (model.task) {
        case Task::multilabel: why = "every label of a set has a score of its own"; break;
        case Task::oneclass: why = "a distance begins at 0"; break;
        case Task::direction: why = "it cancels in a difference"; break;
        case Task::classify:
            if (known > 2) why = "with more than two classes there is no one score to begin there";
            if (known < 2)
                return "which speaks for the greater of two labels, of which only one has come yet: both must be "
                       "known, or declared (classes=), to learn from it";
            break;
        case Task::regress: break;
    }
    if (why.empty() && model.w.pocket.ratchet) why = "the set that the ratchet judges by has none";
    return why.empty() ? "" : "but " + why + "; leave it out";
}

// A prediction counts two classes at least: labels that are unknown do not matter to it.
size_t Engine::known_classes(bool learning) const {
    const size_t known = nb::len(classes);
    return learning || known > 2 ? known : 2;
}

double Engine::read_base(nb::handle given) {
    const double base = real_of(given.ptr());
    if (std::isfinite(base) && !(base == -1.0 && PyErr_Occurred())) return base;
    PyErr_Clear();
    raise("InputError", "base must be a finite number, got " + text_of(given));
}

void Engine::require_base(double base, bool learning) const {
    if (base == 0.0) return;
    if (const std::string why = why_no_base(known_classes(learning)); !why.empty())
        raise("InputError", "base=" + text_of(nb::float_(base)) + " is an initial prediction, " + why);
}

const double* Engine::read_bases(const nb::object& given, size_t rows, size_t known,
                                 std::vector<Vector<double>>& keep) const {
    const double* base = numbers(given, rows, "base", keep);
    const std::string why = base ? why_no_base(known) : "";
    for (size_t i = 0; base && i < rows; ++i) {
        const bool finite = std::isfinite(base[i]);
        if (finite && (base[i] == 0.0 || why.empty())) continue;
        raise("InputError", "base[" + std::to_string(i) + "]=" + text_of(nb::float_(base[i])) + " is " +
                                (finite ? "an initial prediction, " + why : "not a finite number"));
    }
    return base;
}

}  // namespace onepass
