// Vectors as NumPy arrays that own them.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <vector>

namespace onepass {

template <class T>
nanobind::object array(std::vector<size_t> shape, std::vector<T>&& values) {
    namespace nb = nanobind;
    auto* owned = new std::vector<T>(std::move(values));
    nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return nb::cast(nb::ndarray<nb::numpy, T>(owned->data(), shape.size(), shape.data(), owner));
}

}  // namespace onepass
