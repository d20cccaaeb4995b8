// Where the records of CSV text begin and end.
//
// A quote is special only where a field begins; the field then ends at the next quote that is not doubled, which a
// separator or the end of the line must follow. A line ends at \n, \r\n or \r. Where a quote is opened and not closed
// so within `longest` bytes of its record, the record ends with the line of that quote, and is malformed: the lines
// after it are read on their own, so that none of them is lost.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace onepass {

enum class RecordKind : uint8_t { row, text_after_quote, open_quote, too_long };

struct CsvDialect {
    char separator;
    size_t longest;  // bytes of a record, without the end of its line
};

struct CsvRecord {
    size_t begin, end, next;  // `end` is the end of the line, `next` where the next record begins
    size_t lines;             // physical lines of it
    RecordKind kind;
    size_t size() const { return end - begin; }
};

enum class RecordFound : uint8_t {
    record,
    nothing,  // no more text, or it has to be longer to tell
    endless,  // this record is too long, and its end is further on than the text
};

// One record after the other. Their work is linear in the text: what is read again after an open quote has only
// doubled quotes in it, so that no quote is left open there a second time.
class CsvRecords {
 public:
    // Without `whole`, more text may follow.
    CsvRecords(std::string_view text, CsvDialect dialect, bool whole);
    RecordFound next(CsvRecord& record);
    size_t at() const { return at_; }

 private:
    // Quotes and ends of lines, one after the other: 64 bytes are looked at together.
    class Marks {
     public:
        explicit Marks(std::string_view text) : text_(text) {}
        // The first at or after a place; the end of the text where there is none.
        size_t from(size_t at);

     private:
        void look(size_t at);
        const std::string_view text_;
        size_t base_ = SIZE_MAX;
        uint64_t found_ = 0;  // a bit for each byte from `base_` on
    };

    struct Quoted {
        size_t closing;    // the quote that closes the field
        size_t first_end;  // of a line, at or after the quote that opens it and before the closing one
    };

    Quoted quoted(size_t quote);
    size_t line_end(size_t from);
    RecordFound ended(CsvRecord& record, size_t end, RecordKind kind, bool one_line);
    RecordFound broken(CsvRecord& record, Quoted field);

    const std::string_view text_;
    const CsvDialect dialect_;
    const bool whole_;
    size_t at_ = 0;
    Marks marks_;
};

// Ends of lines in the text: \n, \r\n or \r.
size_t count_line_ends(std::string_view text);

}  // namespace onepass
