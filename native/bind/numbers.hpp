// Numbers from Python.
#pragma once
#include <Python.h>

#include <cstring>
#include <string>

namespace onepass {

// True for NumPy's dates, durations and complex numbers, and arrays of them: Python converts them to floats, but such a
// float has no meaning.
inline bool is_no_real(PyObject* value) {
    if (PyComplex_Check(value)) return true;
    const char* name = Py_TYPE(value)->tp_name;
    if (std::strncmp(name, "numpy.", 6) != 0) return false;
    name += 6;
    for (const char* odd : {"datetime64", "timedelta64", "complex64", "clongdouble", "complex256"})
        if (std::strcmp(name, odd) == 0) return true;
    if (std::strcmp(name, "ndarray") != 0) return false;
    PyObject* dtype = PyObject_GetAttrString(value, "dtype");
    PyObject* kind = dtype ? PyObject_GetAttrString(dtype, "kind") : nullptr;
    const char* text = kind ? PyUnicode_AsUTF8(kind) : nullptr;
    const bool odd = !text || std::strchr("mMc", *text);
    Py_XDECREF(kind);
    Py_XDECREF(dtype);
    PyErr_Clear();
    return odd;
}

// Like PyFloat_AsDouble, without a function call for a float. Returns -1 and sets a TypeError if `value` is no number.
inline double real_of(PyObject* value) {
    if (PyFloat_CheckExact(value)) return PyFloat_AS_DOUBLE(value);
    if (!PyFloat_Check(value) && is_no_real(value)) {
        PyErr_SetString(PyExc_TypeError, "not a real number");
        return -1.0;
    }
    return PyFloat_AsDouble(value);
}

}  // namespace onepass
