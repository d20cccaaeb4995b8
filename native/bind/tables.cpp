// The columns of a table as sparse rows over codes, without zeros and missing values; the records of CSV text.
#include <nanobind/ndarray.h>

#include <cmath>

#include "bind/arrays.hpp"
#include "bind/errors.hpp"
#include "bind/reader.hpp"
#include "parse/csv_records.hpp"
#include "parse/row_builder.hpp"

namespace onepass {

using namespace nb::literals;

namespace {

// A numerical column is one feature. A categorical column has the code of a feature with the value 1 in each row, or a
// code below 0 for a missing value.
struct Column {
    const double* numbers;
    const int32_t* codes;
    int32_t base;  // the feature of the numbers; or the number that is added to the codes
};

template <class T>
nb::object array_of(std::vector<T>&& values) {
    const size_t size = values.size();
    return array({size}, std::move(values));
}

void fill(const std::vector<Column>& columns, size_t n, ParsedRows& rows) {
    rows.starts.push(0);
    for (size_t i = 0; i < n; ++i) {
        int32_t* const index = rows.index.reserve(columns.size() + 1);
        double* const value = rows.value.reserve(columns.size() + 1);
        size_t count = 0;
        for (const Column& column : columns) {
            if (column.numbers) {
                const double number = column.numbers[i];
                index[count] = column.base;
                value[count] = number;
                count += number == number && number != 0.0;
            } else {
                const int32_t code = column.codes[i];
                index[count] = column.base + code;
                value[count] = 1.0;
                count += code >= 0;
            }
        }
        rows.index.commit(count);
        rows.value.commit(count);
        rows.starts.push(int32_t(rows.index.size()));
    }
}

// Every column is (float64 numbers, their feature) or (int32 codes, the number to add to them).
ParsedRows* tabulate(nb::list given, size_t n) {
    std::vector<Column> columns;
    std::vector<nb::object> keep;
    for (nb::handle each : given) {
        const nb::tuple pair = nb::cast<nb::tuple>(each);
        Column column{nullptr, nullptr, nb::cast<int32_t>(pair[1])};
        In1<double> numbers;
        In1<int32_t> codes;
        size_t length;
        if (nb::try_cast(pair[0], numbers, false)) column.numbers = numbers.data(), length = numbers.shape(0);
        else codes = nb::cast<In1<int32_t>>(pair[0], false), column.codes = codes.data(), length = codes.shape(0);
        if (length != n) raise("ParameterError", "the columns of a table must be of one length");
        keep.push_back(pair[0]);
        columns.push_back(column);
    }
    if (columns.size() * n > size_t(INT32_MAX)) raise("InputError", "too many values in one batch of a table");
    auto rows = std::make_unique<ParsedRows>();
    {
        nb::gil_scoped_release unlocked;
        fill(columns, n, *rows);
    }
    return rows.release();
}

// The different codes, all below `count`, in the order of their first places.
nb::object first_met(In1<int32_t> codes, size_t count) {
    std::vector<int32_t> met;
    std::vector<uint8_t> seen(count, 0);
    {
        nb::gil_scoped_release unlocked;
        for (size_t i = 0; i < codes.shape(0) && met.size() < count; ++i) {
            const int32_t code = codes.data()[i];
            if (code < 0 || size_t(code) >= count) throw std::out_of_range("codes");
            if (seen[size_t(code)]) continue;
            seen[size_t(code)] = 1;
            met.push_back(code);
        }
    }
    return array_of(std::move(met));
}

// The first `size` bytes of a buffer of Python's, which cannot be moved or resized meanwhile.
class Bytes {
 public:
    Bytes(nb::handle buffer, size_t size) : size_(size) {
        if (PyObject_GetBuffer(buffer.ptr(), &bytes_, PyBUF_SIMPLE) != 0) throw nb::python_error();
        if (size <= size_t(bytes_.len)) return;
        PyBuffer_Release(&bytes_);
        raise("ParameterError", "a buffer must hold the text that is to be read");
    }
    ~Bytes() { PyBuffer_Release(&bytes_); }
    Bytes(const Bytes&) = delete;
    Bytes& operator=(const Bytes&) = delete;
    std::string_view text() const { return {static_cast<const char*>(bytes_.buf), size_}; }

 private:
    Py_buffer bytes_;
    const size_t size_;
};

// (the end of the last complete record, records, their lines, whether all are rows, whether the next record is too long
// and does not end here). Empty lines do not count as records.
nb::tuple cut_records(nb::handle buffer, size_t size, char separator, size_t longest, bool whole) {
    const Bytes bytes(buffer, size);
    size_t records = 0, lines = 0, cut = 0;
    bool rows = true, endless = false;
    {
        nb::gil_scoped_release unlocked;
        CsvRecords reader(bytes.text(), {separator, longest}, whole);
        CsvRecord record;
        RecordFound found;
        while ((found = reader.next(record)) == RecordFound::record) {
            records += record.size() > 0;
            lines += record.lines;
            rows &= record.kind == RecordKind::row;
        }
        cut = reader.at();
        endless = found == RecordFound::endless;
    }
    return nb::make_tuple(cut, records, lines, rows, endless);
}

// The first `most` records that are not empty: arrays of their begins, ends, lines (from 0) and kinds.
nb::tuple list_records(nb::handle buffer, size_t size, char separator, size_t longest, bool whole, size_t most) {
    std::vector<int64_t> begins, ends, lines;
    std::vector<uint8_t> kinds;
    const Bytes bytes(buffer, size);
    {
        nb::gil_scoped_release unlocked;
        CsvRecords reader(bytes.text(), {separator, longest}, whole);
        CsvRecord record;
        for (int64_t line = 0; kinds.size() < most && reader.next(record) == RecordFound::record;
             line += int64_t(record.lines)) {
            if (record.size() == 0) continue;
            begins.push_back(int64_t(record.begin));
            ends.push_back(int64_t(record.end));
            lines.push_back(line);
            kinds.push_back(uint8_t(record.kind));
        }
    }
    return nb::make_tuple(array_of(std::move(begins)), array_of(std::move(ends)), array_of(std::move(lines)),
                          array_of(std::move(kinds)));
}

}  // namespace

void bind_tables(nb::module_& module) {
    module.def("tabulate", tabulate, "columns"_a, "rows"_a, nb::rv_policy::take_ownership);
    module.def("cut_records", cut_records, "buffer"_a, "size"_a, "separator"_a, "longest"_a, "whole"_a);
    module.def("list_records", list_records, "buffer"_a, "size"_a, "separator"_a, "longest"_a, "whole"_a, "most"_a);
    module.def(
        "count_line_ends", [](nb::handle buffer, size_t size) { return count_line_ends(Bytes(buffer, size).text()); },
        "buffer"_a, "size"_a);
    module.def("first_met", first_met, "codes"_a, "count"_a);
}

}  // namespace onepass
