#include "bind/errors.hpp"

#include <nanobind/stl/string.h>

namespace onepass {

void raise(const char* kind, const std::string& message) {
    nb::object type = nb::module_::import_("onepass.errors").attr(kind);
    PyErr_SetString(type.ptr(), message.c_str());
    throw nb::python_error();
}

void raise_row(const char* kind, size_t row, const std::string& why) {
    const std::string message = "row " + std::to_string(row) + ": " + why;
    nb::object error = nb::module_::import_("onepass.errors").attr(kind)(message, row);
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
    throw nb::python_error();
}

std::string text_of(nb::handle object) { return nb::cast<std::string>(nb::repr(object)); }

std::string_view utf8(nb::handle string) {
    Py_ssize_t length = 0;
    const char* text = PyUnicode_AsUTF8AndSize(string.ptr(), &length);
    if (!text) throw nb::python_error();
    return {text, size_t(length)};
}

}  // namespace onepass
