#include "core/planes.hpp"

namespace onepass {

bool Planes::start_at_zero() const {
    for (size_t p = 0; p < count(); ++p)
        if (kinds[p].start != 0.0) return false;
    return true;
}

void Planes::start(size_t some, size_t stride, double* planes) const {
    for (size_t p = 0; p < some; ++p)
        for (size_t r = 0; r < stride; ++r) planes[p * stride + r] = kinds[p].start;
}

}  // namespace onepass
