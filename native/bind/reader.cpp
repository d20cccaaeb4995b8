// The text parsers as Python sees them: a block of lines in, arrays out, without the interpreter lock.
#include "bind/reader.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <bit>
#include <map>
#include <memory>
#include <optional>

#include "bind/arrays.hpp"
#include "bind/features.hpp"
#include "core/checksum.hpp"
#include "parse/ahead.hpp"
#include "parse/check_ahead.hpp"

namespace onepass {

using namespace nb::literals;

static const std::map<std::string, LineParser> line_parsers = {{"vw", parse_vw}, {"svmlight", parse_svmlight}};

// The array of a Rows, which it keeps alive.
template <class T>
static nb::object view(nb::handle_t<Rows> self, const Stack<T>& stack) {
    return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(stack.data(), {stack.size()}, self));
}

// One that nobody may write to: rows are known to be well formed.
template <class T>
static nb::object read_only(nb::handle_t<Rows> self, const Stack<T>& stack) {
    return nb::cast(nb::ndarray<nb::numpy, const T, nb::ndim<1>>(stack.data(), {stack.size()}, self));
}

// Arrays of ones that are kept for the next Rows are not longer than this.
constexpr size_t longest_kept = size_t(1) << 22;

// Ones, lent to Rows whose values are 1 but for a few, which stand in their places meanwhile.
class Ones {
 public:
    static nb::object lent_to(const Rows& rows) {
        const size_t n = rows.index.size();
        if (spare().empty()) spare().push_back(std::make_unique<Ones>());
        std::unique_ptr<Ones> ones = std::move(spare().back());
        spare().pop_back();
        ones->put(rows.others, n);
        const double* const all = ones->all_.data();
        nb::capsule owner(ones.release(), [](void* p) noexcept { take_back(static_cast<Ones*>(p)); });
        return nb::cast(nb::ndarray<nb::numpy, const double, nb::ndim<1>>(all, {n}, owner));
    }

 private:
    static constexpr size_t most_spare = 2;

    // Those that nobody has. The interpreter lock is held; never destroyed, since arrays may outlive this module.
    static std::vector<std::unique_ptr<Ones>>& spare() {
        static auto& all = *new std::vector<std::unique_ptr<Ones>>();
        all.reserve(most_spare);
        return all;
    }

    void put(const Stack<ValueAt>& others, size_t n) {
        if (all_.size() < n) all_ = std::vector<double>(n + n / 16, 1.0);  // the next block may be a little longer
        places_.reserve(others.size());
        for (size_t i = 0; i < others.size(); ++i) {
            all_[size_t(others.data()[i].at)] = others.data()[i].value;
            places_.push_back(others.data()[i].at);
        }
    }

    static void take_back(Ones* lent) noexcept {
        std::unique_ptr<Ones> ones(lent);
        for (const int32_t at : ones->places_) ones->all_[size_t(at)] = 1.0;
        ones->places_.clear();
        if (spare().size() < most_spare && ones->all_.size() <= longest_kept) spare().push_back(std::move(ones));
    }

    std::vector<double> all_;
    std::vector<int32_t> places_;  // of what is not 1
};

// Where all values are 1 they are the same memory for all Rows: as many ones as were ever wanted.
static nb::object shared_ones(size_t n) {
    using Shared = std::shared_ptr<const std::vector<double>>;
    static Shared longest = std::make_shared<const std::vector<double>>();  // the interpreter lock is held
    Shared ones = longest;
    if (ones->size() < n) ones = std::make_shared<const std::vector<double>>(std::bit_ceil(n), 1.0);
    if (n <= longest_kept) longest = ones;
    nb::capsule owner(new Shared(ones), [](void* p) noexcept { delete static_cast<Shared*>(p); });
    return nb::cast(nb::ndarray<nb::numpy, const double, nb::ndim<1>>(ones->data(), {n}, owner));
}

static nb::object values_of(nb::handle_t<Rows> self) {
    const Rows* rows = nb::inst_ptr<Rows>(self);
    if (rows->value.size() == rows->index.size()) return read_only(self, rows->value);
    return rows->others.size() == 0 ? shared_ones(rows->index.size()) : Ones::lent_to(*rows);
}

// The labels: whole numbers where all are, in memory of their own.
static nb::object labels_of(nb::handle_t<Rows> self) {
    const Rows* rows = nb::inst_ptr<Rows>(self);
    if (rows->whole.size() < rows->rows()) return view(self, rows->label);
    return array({rows->whole.size()}, std::vector<int64_t>(rows->whole));
}

// A block of Python's that stays where it is while it is parsed.
class Text {
 public:
    Text(nb::handle buffer, size_t size) {
        if (PyObject_GetBuffer(buffer.ptr(), &text_, PyBUF_SIMPLE) != 0) throw nb::python_error();
        if (size + padding > size_t(text_.len) || (size > 0 && data()[size - 1] != '\n')) {
            PyBuffer_Release(&text_);
            raise("ParameterError", "a block must be whole lines and padded");
        }
    }
    ~Text() { PyBuffer_Release(&text_); }
    Text(const Text&) = delete;
    Text& operator=(const Text&) = delete;
    const char* data() const { return static_cast<const char*>(text_.buf); }

 private:
    Py_buffer text_;
};

// How text becomes rows, and the threads that do it.
class Parser {
 public:
    Parser(const std::string& format, int hash_bits, uint32_t base, bool keep_going, nb::object expansion,
           size_t threads, bool sets, size_t longest)
        : line_(line_parsers.at(format)), expansion_(expansion) {
        options_.hash_bits = hash_bits;
        options_.base = base;
        options_.keep_going = keep_going;
        options_.sets = sets;
        options_.longest = longest;
        if (!expansion.is_none()) options_.expansion = nb::cast<const Expansion*>(expansion);
        if (threads > 1) ahead_ = std::make_unique<ParseAhead>(threads - 1);  // and the one that takes
        if (ahead_ && ahead_->threads() == 0) ahead_.reset();
    }
    ~Parser() { close(); }

    // Whole lines: the first `size` bytes of a buffer, or as many of a TextFile, from `offset` on.
    void submit(nb::object source, size_t offset, size_t size, nb::object names) {
        require_threads();
        auto block = std::make_unique<Waiting>();
        block->source = source;
        block->names = names;
        block->work = {nullptr, nullptr, offset, size, line_, options_};
        if (!nb::try_cast(source, block->work.file)) {
            block->text.emplace(source, size);
            block->work.text = block->text->data();
        }
        if (!names.is_none()) block->work.options.names = nb::cast<Names*>(names);
        if (ahead_) ahead_->submit(block->work);
        waiting_.push_back(std::move(block));
    }

    Rows* take() {
        if (waiting_.empty()) raise("ParameterError", "no block was submitted");
        require_threads();
        const std::unique_ptr<Waiting> first = std::move(waiting_.front());
        waiting_.pop_front();
        std::unique_ptr<Rows> rows;
        try {
            nb::gil_scoped_release unlocked;
            if (ahead_) {
                rows = ahead_->take();
            } else {
                rows = std::make_unique<Rows>();
                first->work.parse(*rows);
            }
        } catch (const Unreadable& unreadable) {
            raise("InputError", unreadable.what);
        }
        return rows.release();
    }

    void close() {
        {
            nb::gil_scoped_release unlocked;
            if (ahead_ && ahead_->forked()) (void)ahead_.release();
            ahead_.reset();
        }
        waiting_.clear();
    }

 private:
    struct Waiting {
        nb::object source, names;
        std::optional<Text> text;
        Work work;
    };

    void require_threads() const {
        if (ahead_ && ahead_->forked())
            raise("InputError", "a stream that was begun does not go on in a forked process: begin it there");
    }

    const LineParser line_;
    const nb::object expansion_;
    ParseOptions options_;
    std::deque<std::unique_ptr<Waiting>> waiting_;
    std::unique_ptr<ParseAhead> ahead_;
};

template <class V>
using Vector = nb::ndarray<const V, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

static std::string_view utf8(nb::handle name) {
    Py_ssize_t length = 0;
    const char* text = PyUnicode_AsUTF8AndSize(name.ptr(), &length);
    if (!text) throw nb::python_error();
    return {text, size_t(length)};
}

static nb::list bad_lines(const Rows& rows) {
    nb::list out;
    for (const Bad& bad : rows.bad)
        out.append(
            nb::make_tuple(bad.row, bad.line, bad.column, nb::bytes(bad.text.data(), bad.text.size()),
                           nb::steal(PyUnicode_DecodeUTF8(bad.what.data(), Py_ssize_t(bad.what.size()), "replace"))));
    return out;
}

static nb::list tags(const Rows& rows) {
    nb::list out;
    size_t begin = 0;
    for (size_t i = 0; i < rows.tag_ends.size(); ++i) {
        const size_t end = size_t(rows.tag_ends.data()[i]);
        out.append(nb::str(rows.tags.data() + begin, end - begin));
        begin = end;
    }
    return out;
}

static nb::list names_between(const Names& names, size_t from, size_t to) {
    nb::list out;
    for (size_t i = from; i < to && i < names.size(); ++i) out.append(nb::str(names[i].data(), names[i].size()));
    return out;
}

// Rows over codes become rows over columns: columns[code], equal ones of a row added up.
static Rows* gather(Vector<int32_t> starts, Vector<int32_t> codes, Vector<double> values, Vector<int32_t> columns) {
    const size_t n = starts.shape(0) - 1;
    if (starts.shape(0) == 0 || codes.shape(0) != values.shape(0))
        raise("ParameterError", "the rows do not fit together");
    auto rows = std::make_unique<Rows>();
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

static nb::object hash_names(nb::list names, int bits) {
    const uint32_t mask = uint32_t((uint64_t(1) << bits) - 1);
    auto* out = new std::vector<int32_t>();
    nb::capsule owner(out, [](void* p) noexcept { delete static_cast<std::vector<int32_t>*>(p); });
    for (nb::handle name : names) {
        const std::string_view text = utf8(name);
        out->push_back(int32_t(hash_name(text.data(), text.size()) & mask));
    }
    return nb::cast(nb::ndarray<nb::numpy, int32_t, nb::ndim<1>>(out->data(), {out->size()}, owner));
}

// The records of a cache, checked ahead: an open file of Python's, which may be closed at once.
class Checker {
 public:
    Checker(int descriptor, size_t start) : ahead_(std::make_unique<CheckAhead>(descriptor, start)) {}
    ~Checker() { close(); }

    // (the bytes, where in them the head begins, its length, starts, nonzeros, bytes of a value, width); () if it is
    // damaged, None after the last.
    nb::object take() {
        if (!ahead_ || ahead_->forked())
            raise("InputError", "a stream that was begun does not go on in a forked process: begin it there");
        Record record;
        {
            nb::gil_scoped_release unlocked;
            record = ahead_->take();
        }
        if (record.kind == Record::Kind::damaged) return nb::make_tuple();
        if (record.kind == Record::Kind::closing) return nb::none();
        using Bytes = std::shared_ptr<const char>;
        const auto* const data = reinterpret_cast<const uint8_t*>(record.bytes.get());
        nb::capsule owner(new Bytes(record.bytes), [](void* p) noexcept { delete static_cast<Bytes*>(p); });
        nb::object bytes = nb::cast(nb::ndarray<nb::numpy, const uint8_t, nb::ndim<1>>(data, {record.end}, owner));
        return nb::make_tuple(bytes, record.head, record.head_length, record.starts, record.nonzeros,
                              record.value_bytes, record.width);
    }

    void close() {
        if (!ahead_) return;
        if (ahead_->forked()) (void)ahead_.release();
        ahead_.reset();
    }

 private:
    std::unique_ptr<CheckAhead> ahead_;
};

template <class Sum>
static auto sum_of(nb::handle buffer, Sum sum) {
    Py_buffer bytes;
    if (PyObject_GetBuffer(buffer.ptr(), &bytes, PyBUF_SIMPLE) != 0) throw nb::python_error();
    decltype(sum("", 0)) result;
    {
        nb::gil_scoped_release unlocked;
        result = sum(static_cast<const char*>(bytes.buf), size_t(bytes.len));
    }
    PyBuffer_Release(&bytes);
    return result;
}

static uint64_t checksum_of(nb::object buffer) { return sum_of(buffer, checksum); }

static uint32_t crc32c_of(nb::object buffer, uint32_t before) {
    return sum_of(buffer, [before](const char* bytes, size_t size) { return crc32c(bytes, size, before); });
}

void bind_reader(nb::module_& module) {
    module.attr("PADDING") = padding;
    nb::class_<Names>(module, "Names")
        .def(nb::init<>())
        .def("__len__", &Names::size)
        .def("names", names_between, "start"_a, "stop"_a)
        .def(
            "intern",
            [](Names& self, nb::list names) {
                nb::list out;
                for (nb::handle name : names) {
                    const std::string_view text = utf8(name);
                    out.append(self.intern(text, hash_name(text.data(), text.size())));
                }
                return out;
            },
            "names"_a);
    nb::class_<Rows>(module, "Rows")
        .def("__len__", [](const Rows& self) { return self.rows(); })
        .def(
            "settle",
            [](Rows& self, Names* names) {
                nb::gil_scoped_release unlocked;
                Names none;
                self.settle(names ? *names : none);
            },
            "names"_a.none())
        .def_prop_ro("columns", [](const Rows& self) { return self.columns; })
        .def_prop_ro("value", values_of)
        .def_prop_ro("label", labels_of)
        .def_prop_ro("lines", [](const Rows& self) { return self.lines; })
        .def_prop_ro("crc", [](const Rows& self) { return self.crc; })
        .def_prop_ro("bad", bad_lines)
        .def_prop_ro("tags", [](const Rows& self) { return self.tags.empty() ? nb::none() : nb::object(tags(self)); })
#define ONEPASS_ARRAY(name) \
    .def_prop_ro(#name, [](nb::handle_t<Rows> self) { return view(self, nb::inst_ptr<Rows>(self)->name); })
            ONEPASS_ARRAY(members)
#undef ONEPASS_ARRAY
#define ONEPASS_ARRAY(name) \
    .def_prop_ro(#name, [](nb::handle_t<Rows> self) { return read_only(self, nb::inst_ptr<Rows>(self)->name); })
                ONEPASS_ARRAY(starts) ONEPASS_ARRAY(index)
#undef ONEPASS_ARRAY
#define ONEPASS_ARRAY(name, flag)                                            \
    .def_prop_ro(#name, [](nb::handle_t<Rows> self) {                        \
        const Rows* rows = nb::inst_ptr<Rows>(self);                         \
        return rows->flag ? view(self, rows->name) : nb::object(nb::none()); \
    })
                    ONEPASS_ARRAY(weight, weighted) ONEPASS_ARRAY(base, based) ONEPASS_ARRAY(query, queried);
#undef ONEPASS_ARRAY
    module.def("gather", gather, "starts"_a, "codes"_a, "values"_a, "columns"_a, nb::rv_policy::take_ownership);
    module.def("checksum", checksum_of, "data"_a);
    module.def("crc32c", crc32c_of, "data"_a, "before"_a = 0);
    module.def("join_crc32c", join_crc32c, "first"_a, "second"_a, "size_of_second"_a);
    nb::class_<Checker>(module, "CheckAhead")
        .def(nb::init<int, size_t>(), "descriptor"_a, "start"_a)
        .def("take", &Checker::take)
        .def("close", &Checker::close);
    module.def("hash_names", hash_names, "names"_a, "bits"_a);
    module.attr("HASH_VERSION") = hash_version;
    nb::class_<TextFile>(module, "TextFile")
        .def(
            "__init__",
            [](TextFile* self, int descriptor, std::string name) {
                try {
                    new (self) TextFile(descriptor, std::move(name));
                } catch (const Unreadable& unreadable) {
                    raise("InputError", unreadable.what);
                }
            },
            "descriptor"_a, "name"_a);
    nb::class_<Parser>(module, "Parser")
        .def(nb::init<const std::string&, int, uint32_t, bool, nb::object, size_t, bool, size_t>(), "format"_a,
             "hash_bits"_a, "base"_a, "keep_going"_a, "expansion"_a.none(), "threads"_a, "sets"_a, "longest"_a)
        .def("submit", &Parser::submit, "source"_a, "offset"_a, "size"_a, "names"_a.none())
        .def("take", &Parser::take, nb::rv_policy::take_ownership)
        .def("close", &Parser::close);
}

}  // namespace onepass
