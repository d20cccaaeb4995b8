// A kernel from Python, with the arrays and functions that it refers to.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <deque>

#include "kernels/kernels.hpp"

namespace onepass {

namespace nb = nanobind;

struct KernelHolder {
    std::vector<nb::object> keep;    // gram matrices
    std::deque<nb::object> callees;  // kernels written in Python: the kernel holds their addresses
    Kernel kernel;                   // refers to both
    size_t slots = 0;

    KernelHolder() = default;
    KernelHolder(const KernelHolder&) = delete;
    explicit KernelHolder(nb::dict config);  // what Kernel.native() returns
    bool calls_python() const { return !callees.empty(); }

 private:
    Kernel read(nb::dict config);
};

void bind_kernels(nb::module_& module);

}  // namespace onepass
