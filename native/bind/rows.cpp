// Parsed rows as NumPy arrays: class ParsedRows of onepass._native.
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <bit>
#include <memory>
#include <stdexcept>

#include "bind/arrays.hpp"
#include "bind/errors.hpp"
#include "bind/reader.hpp"
#include "parse/row_builder.hpp"

namespace onepass {

using namespace nb::literals;

namespace {

// An array of the rows' own memory: it keeps the ParsedRows alive.
template <class T>
nb::object view(nb::handle_t<ParsedRows> self, const GrowingArray<T>& stack) {
    return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(stack.data(), {stack.size()}, self));
}

// The same, read-only: the rows are validated and must stay as they are.
template <class T>
nb::object read_only(nb::handle_t<ParsedRows> self, const GrowingArray<T>& stack) {
    return nb::cast(nb::ndarray<nb::numpy, const T, nb::ndim<1>>(stack.data(), {stack.size()}, self));
}

// Longer arrays of ones are freed after use.
constexpr size_t longest_reused = size_t(1) << 22;

// The values of rows that are 1 but for a few: an array of ones in which these few are overwritten. When Python frees
// the array, they become 1 again and the next rows use it.
class Ones {
 public:
    static nb::object values_of(const ParsedRows& rows) {
        const size_t n = rows.index.size();
        if (spare().empty()) spare().push_back(std::make_unique<Ones>());
        std::unique_ptr<Ones> ones = std::move(spare().back());
        spare().pop_back();
        ones->write(rows.not_ones, n);
        const double* const all = ones->all_.data();
        nb::capsule owner(ones.release(), [](void* p) noexcept { reuse(static_cast<Ones*>(p)); });
        return nb::cast(nb::ndarray<nb::numpy, const double, nb::ndim<1>>(all, {n}, owner));
    }

 private:
    static constexpr size_t most_spare = 2;

    // Arrays that are not in use. The interpreter lock protects them; they are never destroyed, since an array may
    // live longer than this module.
    static std::vector<std::unique_ptr<Ones>>& spare() {
        static auto& all = *new std::vector<std::unique_ptr<Ones>>();
        all.reserve(most_spare);
        return all;
    }

    void write(const GrowingArray<ValueAt>& not_ones, size_t n) {
        if (all_.size() < n) all_ = std::vector<double>(n + n / 16, 1.0);  // the next block may be a little longer
        changed_.reserve(not_ones.size());
        for (size_t i = 0; i < not_ones.size(); ++i) {
            all_[size_t(not_ones.data()[i].at)] = not_ones.data()[i].value;
            changed_.push_back(not_ones.data()[i].at);
        }
    }

    static void reuse(Ones* used) noexcept {
        std::unique_ptr<Ones> ones(used);
        for (const int32_t at : ones->changed_) ones->all_[size_t(at)] = 1.0;
        ones->changed_.clear();
        if (spare().size() < most_spare && ones->all_.size() <= longest_reused) spare().push_back(std::move(ones));
    }

    std::vector<double> all_;
    std::vector<int32_t> changed_;  // the places of values other than 1
};

// If all values are 1, all ParsedRows share one array of ones: the longest so far.
nb::object shared_ones(size_t n) {
    using Shared = std::shared_ptr<const std::vector<double>>;
    static Shared longest = std::make_shared<const std::vector<double>>();  // protected by the interpreter lock
    Shared ones = longest;
    if (ones->size() < n) ones = std::make_shared<const std::vector<double>>(std::bit_ceil(n), 1.0);
    if (n <= longest_reused) longest = ones;
    nb::capsule owner(new Shared(ones), [](void* p) noexcept { delete static_cast<Shared*>(p); });
    return nb::cast(nb::ndarray<nb::numpy, const double, nb::ndim<1>>(ones->data(), {n}, owner));
}

nb::object values_of(nb::handle_t<ParsedRows> self) {
    const ParsedRows* rows = nb::inst_ptr<ParsedRows>(self);
    if (rows->value.size() == rows->index.size()) return read_only(self, rows->value);
    return rows->not_ones.size() == 0 ? shared_ones(rows->index.size()) : Ones::values_of(*rows);
}

// int64 if all labels are whole numbers, otherwise float64.
nb::object labels_of(nb::handle_t<ParsedRows> self) {
    const ParsedRows* rows = nb::inst_ptr<ParsedRows>(self);
    if (rows->whole_labels.size() < rows->rows()) return view(self, rows->label);
    return array({rows->whole_labels.size()}, std::vector<int64_t>(rows->whole_labels));
}

nb::list bad_lines(const ParsedRows& rows) {
    nb::list out;
    for (const BadLine& bad : rows.bad)
        out.append(
            nb::make_tuple(bad.row, bad.line, bad.column, nb::bytes(bad.text.data(), bad.text.size()),
                           nb::steal(PyUnicode_DecodeUTF8(bad.what.data(), Py_ssize_t(bad.what.size()), "replace"))));
    return out;
}

nb::object tags(const ParsedRows& rows) {
    if (rows.tags.empty()) return nb::none();
    nb::list out;
    size_t begin = 0;
    for (size_t i = 0; i < rows.tag_ends.size(); ++i) {
        const size_t end = size_t(rows.tag_ends.data()[i]);
        out.append(nb::str(rows.tags.data() + begin, end - begin));
        begin = end;
    }
    return out;
}

void assign_columns(ParsedRows& self, Names* names) {
    nb::gil_scoped_release unlocked;
    Names none;
    self.assign_columns(names ? *names : none);
}

// Replaces the codes of rows by columns[code]. Equal columns of a row are added up.
ParsedRows* gather(In1<int32_t> starts, In1<int32_t> codes, In1<double> values, In1<int32_t> columns) {
    const size_t n = starts.shape(0) - 1;
    if (starts.shape(0) == 0 || codes.shape(0) != values.shape(0))
        raise("ParameterError", "the rows do not fit together");
    auto rows = std::make_unique<ParsedRows>();
    nb::gil_scoped_release unlocked;
    RowBuilder builder(*rows, ParseOptions{});
    for (size_t i = 0; i < n; ++i) {
        const int32_t begin = starts.data()[i], end = starts.data()[i + 1];
        if (begin < 0 || end < begin || size_t(end) > codes.shape(0)) throw std::out_of_range("starts");
        builder.begin(size_t(end - begin));
        for (int32_t at = begin; at < end; ++at) {
            const int32_t code = codes.data()[at];
            if (code < 0 || size_t(code) >= columns.shape(0)) throw std::out_of_range("codes");
            builder.add(columns.data()[code], values.data()[at]);
        }
        builder.finish();
    }
    return rows.release();
}

template <auto column>
nb::object read_only_column(nb::handle_t<ParsedRows> self) {
    return read_only(self, nb::inst_ptr<ParsedRows>(self)->*column);
}

// None if no row has such a number.
template <auto column, auto given>
nb::object optional_column(nb::handle_t<ParsedRows> self) {
    const ParsedRows* rows = nb::inst_ptr<ParsedRows>(self);
    return rows->*given ? view(self, rows->*column) : nb::object(nb::none());
}

}  // namespace

void bind_rows(nb::module_& module) {
    nb::class_<ParsedRows>(module, "ParsedRows")
        .def("__len__", [](const ParsedRows& self) { return self.rows(); })
        .def("assign_columns", assign_columns, "names"_a.none())
        .def_prop_ro("columns", [](const ParsedRows& self) { return self.columns; })
        .def_prop_ro("starts", read_only_column<&ParsedRows::starts>)
        .def_prop_ro("index", read_only_column<&ParsedRows::index>)
        .def_prop_ro("value", values_of)
        .def_prop_ro("label", labels_of)
        .def_prop_ro("members",
                     [](nb::handle_t<ParsedRows> self) { return view(self, nb::inst_ptr<ParsedRows>(self)->members); })
        .def_prop_ro("weight", optional_column<&ParsedRows::weight, &ParsedRows::weighted>)
        .def_prop_ro("base", optional_column<&ParsedRows::base, &ParsedRows::based>)
        .def_prop_ro("query", optional_column<&ParsedRows::query, &ParsedRows::queried>)
        .def_prop_ro("tags", tags)
        .def_prop_ro("lines", [](const ParsedRows& self) { return self.lines; })
        .def_prop_ro("crc", [](const ParsedRows& self) { return self.crc; })
        .def_prop_ro("bad", bad_lines);
    module.def("gather", gather, "starts"_a, "codes"_a, "values"_a, "columns"_a, nb::rv_policy::take_ownership);
}

}  // namespace onepass
