// The text parsers: a block of lines in, sparse rows out. Knows no Python.
//
// A block is whole lines, the last one ended too, followed by `padding` readable bytes, so that scans may read ahead.
#pragma once
#include "parse/row_builder.hpp"

namespace onepass {

// The members of a label such as 1,3,5 between p and end, in their order; throws Malformed, also where one is repeated.
std::vector<double> read_members(const char* p, const char* end);

using LineParser = void (*)(const char* p, const char* end, RowBuilder& row, ParsedRows& rows,
                            const ParseOptions& options);

// p is a line without its line end. Appends at most one row; throws Malformed, and then appends none.
void parse_vw(const char* p, const char* end, RowBuilder& row, ParsedRows& rows, const ParseOptions& options);
void parse_svmlight(const char* p, const char* end, RowBuilder& row, ParsedRows& rows, const ParseOptions& options);

// All lines of a block. Stops after the first malformed line, unless the options say to keep going.
void parse_block(const char* text, size_t size, LineParser line, const ParseOptions& options, ParsedRows& rows);
// The same for a part of a block.
void parse_lines(const char* text, size_t size, LineParser line, const ParseOptions& options, RowBuilder& builder,
                 ParsedRows& rows);

}  // namespace onepass
