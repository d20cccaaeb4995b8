#include "parse/text_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/checksum.hpp"

namespace onepass {

TextFile::TextFile(int descriptor, std::string name)
    : name_(std::move(name)), descriptor_(fcntl(descriptor, F_DUPFD_CLOEXEC, 0)) {
    if (descriptor_ < 0) throw Unreadable{"cannot read " + name_ + ": " + std::strerror(errno)};
}

TextFile::~TextFile() { close(descriptor_); }

void TextFile::changed() const {
    throw Unreadable{name_ + " was changed while it was read: files may grow, but not shrink or be written over"};
}

void TextFile::read(char* into, size_t size, size_t offset) const {
    while (size > 0) {
        const ssize_t got = pread(descriptor_, into, size, off_t(offset));
        if (got == 0) changed();
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) throw Unreadable{"cannot read " + name_ + ": " + std::strerror(errno)};
        into += got;
        offset += size_t(got);
        size -= size_t(got);
    }
}

void TextFile::parse(size_t offset, size_t size, LineParser line, const ParseOptions& options, ParsedRows& rows,
                     size_t piece) const {
    RowBuilder builder(rows, options);
    rows.reserve_for(size);
    bool stopped = false;
    GrowingArray<char> text;  // between pieces: the beginning of a line whose end is not read yet
    while (size > 0) {
        const size_t more = std::min(piece, size);
        read(text.reserve(more + padding), more, offset);
        rows.crc = crc32c(text.data() + text.size(), more, rows.crc);
        text.commit(more);
        offset += more;
        size -= more;
        if (stopped) {
            text.clear();
            continue;
        }
        const size_t held = text.size() - more, last = std::string_view(text.data() + held, more).rfind('\n');
        const size_t lines = last == std::string_view::npos ? 0 : held + last + 1;
        parse_lines(text.data(), lines, line, options, builder, rows);
        stopped = !rows.bad.empty() && !options.keep_going;  // the rest is only read for the checksum
        text.remove_front(lines);
    }
    if (text.size() > 0 && !stopped) changed();
}

}  // namespace onepass
