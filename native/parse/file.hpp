// A file of lines that is read in pieces, each parsed at once: its text is still in the processor's cache then.
// Knows no Python.
#pragma once
#include "parse/rows.hpp"

namespace onepass {

// Why a file could not be read.
struct Unreadable {
    std::string what;
};

constexpr size_t usual_piece = size_t(1) << 18;  // with its rows it fits the cache of a core

class TextFile {
 public:
    // Keeps the file open for itself. The name is for errors.
    TextFile(int descriptor, std::string name);
    ~TextFile();
    TextFile(const TextFile&) = delete;
    TextFile& operator=(const TextFile&) = delete;

    // All lines of the `size` bytes from `offset` on, which begin and end with lines of their own.
    void parse(size_t offset, size_t size, LineParser line, const ParseOptions& options, Rows& rows,
               size_t piece = usual_piece) const;

 private:
    void read(char* into, size_t size, size_t offset) const;
    [[noreturn]] void changed() const;

    const std::string name_;
    const int descriptor_;
};

}  // namespace onepass
