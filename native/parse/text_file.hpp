// A file of lines that is read and parsed in pieces: the text of a piece is still in the processor's cache when it is
// parsed. Knows no Python.
#pragma once
#include "parse/lines.hpp"

namespace onepass {

// A file cannot be read; why.
struct Unreadable {
    std::string what;
};

constexpr size_t usual_piece = size_t(1) << 18;  // with its rows it fits the cache of a core

class TextFile {
 public:
    // Opens the file once more for itself. The name is for error messages.
    TextFile(int descriptor, std::string name);
    ~TextFile();
    TextFile(const TextFile&) = delete;
    TextFile& operator=(const TextFile&) = delete;

    // All lines of the `size` bytes from `offset` on, which begin where a line begins and end where one ends.
    void parse(size_t offset, size_t size, LineParser line, const ParseOptions& options, ParsedRows& rows,
               size_t piece = usual_piece) const;

 private:
    void read(char* into, size_t size, size_t offset) const;
    [[noreturn]] void changed() const;

    const std::string name_;
    const int descriptor_;
};

}  // namespace onepass
