// Blocks of text to rows, without the interpreter lock: Parser and CacheRecords of onepass._native, and checksums.
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <map>
#include <memory>
#include <optional>

#include "bind/errors.hpp"
#include "bind/reader.hpp"
#include "core/checksum.hpp"
#include "parse/cache_records.hpp"
#include "parse/parser_threads.hpp"

namespace onepass {

using namespace nb::literals;

namespace {

const std::map<std::string, LineParser> line_parsers = {{"vw", parse_vw}, {"svmlight", parse_svmlight}};

// Streams refuse to go on in a forked process before they get here (streams/parts.py).
template <class Threads>
void require_same_process(const Threads& threads) {
    if (threads.forked()) throw std::runtime_error("the threads of this parser do not exist in a forked process");
}

// A block in a buffer of Python's, which cannot be moved or resized while it is parsed.
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

// How text becomes rows, and the threads that parse it.
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
        if (!expansion.is_none()) options_.expansion = nb::cast<const FeatureExpansion*>(expansion);
        if (threads > 1) ahead_ = std::make_unique<ParserThreads>(threads - 1);  // the caller's thread parses, too
        if (ahead_ && ahead_->threads() == 0) ahead_.reset();
    }
    ~Parser() { close(); }

    // Whole lines: the first `size` bytes of a buffer, or `size` bytes of a TextFile from `offset` on.
    void submit(nb::object source, size_t offset, size_t size, nb::object names) {
        if (ahead_) require_same_process(*ahead_);
        auto block = std::make_unique<Block>();
        block->source = source;
        block->names = names;
        block->work = {nullptr, nullptr, offset, size, line_, options_};
        if (!nb::try_cast(source, block->work.file)) {
            block->text.emplace(source, size);
            block->work.text = block->text->data();
        }
        if (!names.is_none()) block->work.options.names = nb::cast<Names*>(names);
        if (ahead_) ahead_->submit(block->work);
        submitted_.push_back(std::move(block));
    }

    // The rows of the oldest block.
    ParsedRows* take() {
        if (submitted_.empty()) raise("ParameterError", "no block was submitted");
        if (ahead_) require_same_process(*ahead_);
        const std::unique_ptr<Block> first = std::move(submitted_.front());
        submitted_.pop_front();
        std::unique_ptr<ParsedRows> rows;
        try {
            nb::gil_scoped_release unlocked;
            if (ahead_) {
                rows = ahead_->take();
            } else {
                rows = std::make_unique<ParsedRows>();
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
        submitted_.clear();
    }

 private:
    // The work, and what it needs to stay alive.
    struct Block {
        nb::object source, names;
        std::optional<Text> text;
        Work work;
    };

    const LineParser line_;
    const nb::object expansion_;
    ParseOptions options_;
    std::deque<std::unique_ptr<Block>> submitted_;
    std::unique_ptr<ParserThreads> ahead_;
};

// A thread that checks the records of a cache ahead. Python may close its file: the thread has its own descriptor.
class Checker {
 public:
    Checker(int descriptor, size_t start) : ahead_(std::make_unique<CacheRecords>(descriptor, start)) {}
    ~Checker() { close(); }

    // (the bytes, the place of the head in them, its length, starts, nonzeros, bytes of a value, width); () for a
    // damaged record, None after the last.
    nb::object take() {
        if (!ahead_) throw std::runtime_error("the checker is closed");
        require_same_process(*ahead_);
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
    std::unique_ptr<CacheRecords> ahead_;
};

template <class Sum>
auto sum_of(nb::handle buffer, Sum sum) {
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

uint64_t checksum_of(nb::object buffer) { return sum_of(buffer, checksum); }

uint32_t crc32c_of(nb::object buffer, uint32_t before) {
    return sum_of(buffer, [before](const char* bytes, size_t size) { return crc32c(bytes, size, before); });
}

void open_text_file(TextFile* self, int descriptor, std::string name) {
    try {
        new (self) TextFile(descriptor, std::move(name));
    } catch (const Unreadable& unreadable) {
        raise("InputError", unreadable.what);
    }
}

}  // namespace

void bind_parser(nb::module_& module) {
    module.attr("PADDING") = padding;
    nb::class_<TextFile>(module, "TextFile").def("__init__", open_text_file, "descriptor"_a, "name"_a);
    nb::class_<Parser>(module, "Parser")
        .def(nb::init<const std::string&, int, uint32_t, bool, nb::object, size_t, bool, size_t>(), "format"_a,
             "hash_bits"_a, "base"_a, "keep_going"_a, "expansion"_a.none(), "threads"_a, "sets"_a, "longest"_a)
        .def("submit", &Parser::submit, "source"_a, "offset"_a, "size"_a, "names"_a.none())
        .def("take", &Parser::take, nb::rv_policy::take_ownership)
        .def("close", &Parser::close);
    nb::class_<Checker>(module, "CacheRecords")
        .def(nb::init<int, size_t>(), "descriptor"_a, "start"_a)
        .def("take", &Checker::take)
        .def("close", &Checker::close);
    module.def("checksum", checksum_of, "data"_a);
    module.def("crc32c", crc32c_of, "data"_a, "before"_a = 0);
    module.def("join_crc32c", join_crc32c, "first"_a, "second"_a, "size_of_second"_a);
}

}  // namespace onepass
