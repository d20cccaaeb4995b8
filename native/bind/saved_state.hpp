// The arrays of a saved state, checked while they are read: ModelFileError refuses a state that is not consistent.
#pragma once
#include <nanobind/nanobind.h>

#include <cstdint>
#include <string>
#include <vector>

#include "bind/arrays.hpp"
#include "bind/errors.hpp"

namespace onepass {

class SavedState {
 public:
    explicit SavedState(nb::dict arrays) : arrays_(arrays) {}

    bool has(const std::string& name) const { return arrays_.contains(name.c_str()); }
    nb::object at(const std::string& name) const { return nb::object(arrays_[name.c_str()]); }

    template <class T>
    In1<T> vector(const std::string& name) const {
        return nb::cast<In1<T>>(at(name));
    }
    template <class T>
    In1<T> vector(const std::string& name, size_t length) const {
        const auto given = vector<T>(name);
        require_shape(name, {length}, {given.shape(0)});
        return given;
    }
    std::vector<double> numbers(const std::string& name) const;
    std::vector<double> numbers(const std::string& name, size_t length) const;
    double number(const std::string& name) const { return vector<double>(name, 1).data()[0]; }
    // Whole numbers from 0 to below `end`, saved as float64.
    std::vector<int64_t> indices(const std::string& name, double end) const;

    In2<double> table(const std::string& name) const { return nb::cast<In2<double>>(at(name)); }
    In2<double> table(const std::string& name, size_t rows, size_t columns) const;

    using Shape = std::vector<size_t>;
    static void require_shape(const std::string& name, const Shape& expected, const Shape& got);

 private:
    nb::dict arrays_;
};

}  // namespace onepass
