// Where the records of CSV text begin and end.
//
// A quote has a meaning only at the beginning of a field. The field then ends at the next quote that is not doubled; a
// separator or the end of the line must follow. A line ends at \n, \r\n or \r. If an opened quote is not closed in this
// way within `longest` bytes of its record, the record ends with the line of that quote, and is malformed: the lines
// after it are read as other records, so that none of them is lost.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/name_lists.hpp"

namespace onepass {

ONEPASS_ENUM(RecordKind, row, text_after_quote, open_quote, too_long)

struct CsvDialect {
    char separator;
    size_t longest;  // bytes of a record, without the end of its line
};

struct CsvRecord {
    size_t begin, end, next;  // `end`: the end of the line; `next`: where the next record begins
    size_t lines;             // physical lines
    RecordKind kind;
    size_t size() const { return end - begin; }
};

enum class RecordFound : uint8_t {
    record,
    nothing,  // there is no more text, or more text is needed to find the end
    endless,  // the record is too long, and its end is not in the text
};

// One record after another, in linear time: text that is read again after an unclosed quote has only doubled quotes,
// so that no quote is unclosed there a second time.
class CsvRecords {
 public:
    // `whole`: no more text follows.
    CsvRecords(std::string_view text, CsvDialect dialect, bool whole);
    RecordFound next(CsvRecord& record);
    size_t at() const { return at_; }

 private:
    // Quotes and ends of lines, one after another; 64 bytes are searched at once.
    class Marks {
     public:
        explicit Marks(std::string_view text) : text_(text) {}
        // The first at or after a place, or the end of the text.
        size_t from(size_t at);

     private:
        void search(size_t at);
        const std::string_view text_;
        size_t base_ = SIZE_MAX;
        uint64_t found_ = 0;  // a bit for each byte from `base_` on
    };

    struct Quoted {
        size_t closing;    // the quote that closes the field
        size_t first_end;  // the first end of a line within the field
    };

    Quoted read_quoted(size_t quote);
    size_t line_end(size_t from);
    RecordFound end_record(CsvRecord& record, size_t end, RecordKind kind, bool one_line);
    RecordFound end_malformed(CsvRecord& record, Quoted field);

    const std::string_view text_;
    const CsvDialect dialect_;
    const bool whole_;
    size_t at_ = 0;
    Marks marks_;
};

// Ends of lines in the text: \n, \r\n or \r.
size_t count_line_ends(std::string_view text);

}  // namespace onepass
