#include "core/memory.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <stdexcept>

namespace onepass {

static const char letters[] = " KMGT";

// The limit of a control group, version 2 or 1; infinity if there is none.
static double group_limit() {
    for (const char* path : {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
        std::ifstream file(path);
        double bytes;
        if (file >> bytes) return bytes;
    }
    return HUGE_VAL;
}

double memory_limit() {
    if (const char* text = std::getenv("ONEPASS_MAX_MEMORY"); text && *text) {
        char* end = nullptr;
        double bytes = std::strtod(text, &end);
        for (size_t power = 1; power < 5; ++power)
            if (*end == letters[power]) {
                bytes *= std::pow(1024.0, double(power));
                ++end;
                break;
            }
        if (*end == 0 && bytes > 0.0 && std::isfinite(bytes)) return bytes;
        throw std::invalid_argument("ONEPASS_MAX_MEMORY=" + std::string(text) +
                                    ": expected bytes, or a number with K, M, G or T, as in 8G");
    }
    static const double machine = double(sysconf(_SC_PHYS_PAGES)) * double(sysconf(_SC_PAGE_SIZE));
    static const double group = group_limit();
    return std::min(machine > 0.0 ? machine : HUGE_VAL, group);
}

double memory_limit_of_rows() noexcept {
    try {
        return memory_limit();
    } catch (const std::invalid_argument&) {
        return 0.0;
    }
}

std::string no_vector_more(const std::string& advice) {
    try {
        const double most = memory_limit();
        return "one more stored vector would take more memory than the limit, " + text_of_bytes(most) + "; " + advice +
               ", or raise the limit, as in ONEPASS_MAX_MEMORY=" + text_of_bytes(2.0 * most, true);
    } catch (const std::invalid_argument& wrong) {
        return wrong.what();
    }
}

std::string too_large(double bytes, const std::string& what, const std::string& advice) {
    const double most = memory_limit();
    if (bytes <= most) return "";
    return what + " would take " + text_of_bytes(bytes) + ", but the limit is " + text_of_bytes(most) + "; " + advice +
           ", or raise the limit, as in ONEPASS_MAX_MEMORY=" + text_of_bytes(bytes, true);
}

size_t most_features() {
    const char* text = std::getenv("ONEPASS_MAX_FEATURES");
    if (!text || !*text) return size_t(1) << 26;
    char* end = nullptr;
    const double most = std::strtod(text, &end);
    if (*end == 0 && most >= 1.0 && most <= 9007199254740992.0 && most == std::floor(most)) return size_t(most);
    throw std::invalid_argument("ONEPASS_MAX_FEATURES=" + std::string(text) + ": expected a whole number >= 1");
}

std::string too_many_features(size_t count, size_t most) {
    if (most == 0) most = most_features();
    if (count <= most) return "";
    return std::to_string(count) + " features, but max_features is " + std::to_string(most) +
           "; hash them (hash_bits, in the command -b), give sparse ones as names, or raise the limit (in the command "
           "--max-features, in the environment ONEPASS_MAX_FEATURES)";
}

std::string text_of_bytes(double bytes, bool short_form) {
    const double unit = short_form ? 1024.0 : 1000.0;
    size_t power = 0;
    while (power < 4 && bytes >= unit) bytes /= unit, ++power;
    char text[32];
    if (short_form) std::snprintf(text, sizeof text, "%.0f%c", std::ceil(bytes), letters[power]);
    else std::snprintf(text, sizeof text, "%.3g %.*sB", bytes, power > 0, letters + power);
    return text;
}

}  // namespace onepass
