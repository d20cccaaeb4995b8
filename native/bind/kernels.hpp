// How Python hands over a kernel, and what keeps its arrays and functions alive.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <deque>

#include "kernels/kernels.hpp"

namespace onepass {

namespace nb = nanobind;

struct KernelHolder {
    std::vector<nb::object> keep;    // gram matrices
    std::deque<nb::object> callees;  // foreign kernels point at these, so they must not move
    Kernel kernel;                   // made from the two
    size_t slots = 0;

    KernelHolder() = default;
    KernelHolder(const KernelHolder&) = delete;
    explicit KernelHolder(nb::dict config);  // Kernel.native() of kernels.py
    bool calls_python() const { return !callees.empty(); }

 private:
    Kernel read(nb::dict config);
};

void bind_kernels(nb::module_& module);

}  // namespace onepass
