#include "parse/csv_records.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace onepass {

// A bit for each of 64 bytes: is it a quote, or part of an end of a line?
static uint64_t marks_of(const char* text) {
    uint64_t found = 0;
#ifdef __SSE2__
    for (size_t i = 0; i < 64; i += 16) {
        const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(text + i));
        const __m128i ends =
            _mm_or_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('\n')), _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\r')));
        const __m128i any = _mm_or_si128(ends, _mm_cmpeq_epi8(bytes, _mm_set1_epi8('"')));
        found |= uint64_t(uint32_t(_mm_movemask_epi8(any))) << i;
    }
#else
    for (size_t i = 0; i < 64; ++i) found |= uint64_t(text[i] == '"' || text[i] == '\n' || text[i] == '\r') << i;
#endif
    return found;
}

void CsvRecords::Marks::search(size_t at) {
    base_ = at;
    const size_t left = text_.size() - at;
    if (left >= 64) {
        found_ = marks_of(text_.data() + at);
        return;
    }
    char rest[64] = {};
    std::memcpy(rest, text_.data() + at, left);
    found_ = marks_of(rest);
}

size_t CsvRecords::Marks::from(size_t at) {
    if (at < base_ || at - base_ >= 64) {
        if (at >= text_.size()) return text_.size();
        search(at / 64 * 64);
    }
    uint64_t found = found_ & (~uint64_t(0) << (at - base_));
    while (found == 0) {
        if (text_.size() - base_ <= 64) return text_.size();
        search(base_ + 64);
        found = found_;
    }
    return base_ + size_t(std::countr_zero(found));
}

CsvRecords::CsvRecords(std::string_view text, CsvDialect dialect, bool whole)
    : text_(text), dialect_(dialect), whole_(whole), marks_(text) {}

size_t CsvRecords::line_end(size_t from) {
    size_t end = marks_.from(from);
    while (end < text_.size() && text_[end] == '"') end = marks_.from(end + 1);
    return end;
}

// The field that a quote opens: up to the next quote that is not doubled, or to the end of the text.
CsvRecords::Quoted CsvRecords::read_quoted(size_t quote) {
    Quoted field{text_.size(), text_.size()};
    for (size_t mark = marks_.from(quote + 1); mark < text_.size(); mark = marks_.from(mark + 1)) {
        if (text_[mark] != '"') {
            field.first_end = std::min(field.first_end, mark);
        } else if (mark + 1 < text_.size() && text_[mark + 1] == '"') {
            ++mark;
        } else {
            field.closing = mark;
            break;
        }
    }
    return field;
}

RecordFound CsvRecords::next(CsvRecord& record) {
    if (at_ == text_.size()) return RecordFound::nothing;
    record.begin = at_;
    bool one_line = true;
    for (size_t from = at_;;) {  // the beginning of the record, or the place after a quote
        const size_t mark = marks_.from(from);
        if (mark == text_.size() || text_[mark] != '"') return end_record(record, mark, RecordKind::row, one_line);
        from = mark + 1;
        const bool begins = mark == at_ || text_[mark - 1] == dialect_.separator;
        if (!begins) continue;
        const Quoted field = read_quoted(mark);
        if (field.closing - at_ > dialect_.longest) return end_malformed(record, field);
        from = field.closing + 1;
        if (from >= text_.size()) {  // the quote is not closed, or the next character is not known
            if (!whole_) return RecordFound::nothing;
            if (field.closing == text_.size()) return end_malformed(record, field);
        } else if (const char after = text_[from]; after != dialect_.separator && after != '\n' && after != '\r') {
            return end_malformed(record, field);
        }
        one_line = one_line && field.first_end == text_.size();
    }
}

// Ends the record with the line of a quote that is not closed as it should be.
RecordFound CsvRecords::end_malformed(CsvRecord& record, Quoted field) {
    const bool closed = field.closing < field.first_end;  // on the same line
    const size_t end = closed ? line_end(field.closing + 1) : field.first_end;
    return end_record(record, end, closed ? RecordKind::text_after_quote : RecordKind::open_quote, false);
}

RecordFound CsvRecords::end_record(CsvRecord& record, size_t end, RecordKind kind, bool one_line) {
    const bool has_end = end < text_.size();
    const bool known = has_end && (text_[end] == '\n' || end + 1 < text_.size());  // \n may follow \r
    const bool too_long = end - at_ > dialect_.longest;
    if (!known && !whole_) return too_long ? RecordFound::endless : RecordFound::nothing;
    record.end = end;
    record.next = end + has_end + (end + 1 < text_.size() && text_[end] == '\r' && text_[end + 1] == '\n');
    record.kind = too_long ? RecordKind::too_long : kind;
    record.lines = one_line ? 1 : count_line_ends(text_.substr(at_, record.next - at_));
    at_ = record.next;
    return RecordFound::record;
}

size_t count_line_ends(std::string_view text) {
    size_t count = 0;
    for (size_t i = 0; i + 1 < text.size(); ++i)
        count += (text[i] == '\n') | ((text[i] == '\r') & (text[i + 1] != '\n'));
    return count + (!text.empty() && (text.back() == '\n' || text.back() == '\r'));
}

}  // namespace onepass
