#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace onepass {

// Where a line has blanks, control characters, ':' or '|', and where it ends. They are found before anything else is
// read: the place of a name or number then does not depend on reading the one before it, and the processor works on
// several at once.
class Separators {
 public:
    const uint32_t* find(const char* line, size_t length);
    // May there be a '^' in the line? Names then have namespaces of their own.
    bool carets() const { return carets_; }

 private:
    bool carets_ = false;
    std::vector<uint32_t> at_;
};

}  // namespace onepass
