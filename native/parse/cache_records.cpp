#include "parse/cache_records.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <new>
#include <system_error>

#include "core/clones.hpp"
#include "core/without_signals.hpp"
#include "parse/growing_array.hpp"

namespace onepass {

uint64_t checksum(const char* bytes, size_t size) {
    uint64_t lanes[4] = {1, 2, 3, 4};
    auto mix = [](uint64_t lane, uint64_t word) {
        lane = (lane ^ word) * 0x9E3779B97F4A7C15u;
        return lane << 31 | lane >> 33;
    };
    size_t i = 0;
    for (; i + 32 <= size; i += 32)
        for (size_t lane = 0; lane < 4; ++lane) {
            uint64_t word;
            std::memcpy(&word, bytes + i + 8 * lane, 8);
            lanes[lane] = mix(lanes[lane], word);
        }
    for (; i < size; ++i) lanes[i & 3] = mix(lanes[i & 3], uint8_t(bytes[i]));
    for (size_t lane = 1; lane < 4; ++lane) lanes[0] = mix(lanes[0], lanes[lane]);
    return mix(lanes[0], size);
}

ONEPASS_CLONES static bool starts_rise(const int32_t* starts, size_t n, size_t nonzeros) {
    uint32_t falls = starts[0] < 0 || size_t(starts[n - 1]) > nonzeros;
    for (size_t i = 1; i < n; ++i) falls |= starts[i] < starts[i - 1];
    return falls == 0;
}
ONEPASS_CLONES static uint32_t largest_index(const int32_t* index, size_t n) {
    uint32_t largest = 0;  // a negative one is very large
    for (size_t i = 0; i < n; ++i) largest = uint32_t(index[i]) > largest ? uint32_t(index[i]) : largest;
    return largest;
}
ONEPASS_CLONES static bool all_finite(const double* value, size_t n) {
    uint64_t bad = 0;
    for (size_t i = 0; i < n; ++i) bad |= (~std::bit_cast<uint64_t>(value[i]) & 0x7FF0000000000000u) == 0;
    return bad == 0;
}
ONEPASS_CLONES static bool all_finite(const float* value, size_t n) {
    uint32_t bad = 0;
    for (size_t i = 0; i < n; ++i) bad |= (~std::bit_cast<uint32_t>(value[i]) & 0x7F800000u) == 0;
    return bad == 0;
}

static constexpr uint64_t padded(uint64_t length) { return (length + 7) / 8 * 8; }

static bool rows_well_formed(const char* at, uint64_t size, const Record& record) {
    const uint64_t n = record.nonzeros, bytes = record.value_bytes;
    if (record.starts > size / 4 || n > size / 4 || (bytes != 4 && bytes != 8)) return false;
    if (record.width > uint64_t(1) << 31) return false;  // from there on indices would be negative
    const uint64_t index = padded(4 * record.starts), value = index + padded(4 * n);
    if (value + padded(bytes * n) > size) return false;
    const auto* indices = reinterpret_cast<const int32_t*>(at + index);
    return starts_rise(reinterpret_cast<const int32_t*>(at), record.starts, n) &&
           (n == 0 || largest_index(indices, n) < record.width) &&
           (bytes == 8 ? all_finite(reinterpret_cast<const double*>(at + value), n)
                       : all_finite(reinterpret_cast<const float*>(at + value), n));
}

Record check_record(const char* file, size_t size, size_t at) {
    Record record;
    uint64_t front[3], shape[4];  // lengths of the head and of the arrays, checksum; the shape
    if (at % 8 != 0 || at > size || size - at < sizeof front + sizeof shape) return record;
    std::memcpy(front, file + at, sizeof front);
    const char* const body = file + at + sizeof front;
    std::memcpy(shape, body, sizeof shape);
    const uint64_t left = size - at - sizeof front - sizeof shape;
    if (front[0] > left || front[1] > left || front[1] % 8 != 0 || padded(front[0]) + front[1] > left) return record;
    const uint64_t whole = sizeof shape + padded(front[0]) + front[1];
    if (checksum(body, whole) != front[2]) return record;
    record.head = at + sizeof front + sizeof shape;
    record.head_length = front[0];
    record.end = at + sizeof front + whole;
    record.starts = shape[0];
    record.nonzeros = shape[1];
    record.value_bytes = shape[2];
    record.width = shape[3];
    if (record.starts == 0) record.kind = Record::Kind::closing;
    else if (rows_well_formed(file + record.head + padded(front[0]), front[1], record))
        record.kind = Record::Kind::rows;
    return record;
}

CacheRecords::CacheRecords(int descriptor, size_t start)
    : descriptor_(fcntl(descriptor, F_DUPFD_CLOEXEC, 0)),
      at_(start),
      taken_(start),
      handed_(start),
      process_(int(getpid())) {
    const WithoutSignals here;
    try {
        thread_ = std::thread([this] { run(); });
    } catch (const std::system_error&) {
        // `take` checks the records itself.
    }
}

CacheRecords::~CacheRecords() {
    {
        std::lock_guard guard(lock_);
        closing_ = true;
    }
    room_.notify_one();
    if (thread_.joinable()) thread_.join();
    if (descriptor_ >= 0) close(descriptor_);
}

bool CacheRecords::forked() const { return int(getpid()) != process_; }

Record CacheRecords::take() {
    std::unique_lock guard(lock_);
    taken_ = handed_;
    if (at_ - taken_ <= most / 2) room_.notify_one();
    if (thread_.joinable()) ready_.wait(guard, [this] { return !checked_.empty(); });
    else if (checked_.empty()) checked_.push_back(read_record(handed_));
    const Record record = checked_.front();
    if (record.kind == Record::Kind::rows) {
        checked_.pop_front();
        handed_ += record.end;
    }
    return record;
}

void CacheRecords::run() {
    std::unique_lock guard(lock_);
    while (checked_.empty() || checked_.back().kind == Record::Kind::rows) {
        if (at_ - taken_ >= most) room_.wait(guard, [this] { return closing_ || at_ - taken_ <= most / 2; });
        if (closing_) return;
        const size_t at = at_;
        guard.unlock();
        const Record record = read_record(at);
        guard.lock();
        checked_.push_back(record);
        at_ += record.end;
        ready_.notify_one();
    }
}

Record CacheRecords::read_record(size_t at) const {
    struct stat status;
    uint64_t front[3];  // as in check_record
    const size_t least = sizeof front + 4 * sizeof(uint64_t);
    if (fstat(descriptor_, &status) != 0 || !read(front, sizeof front, at)) return {};
    const uint64_t size = uint64_t(status.st_size), left = size > at ? size - at : 0;
    if (left < least || front[0] > left || front[1] > left) return {};
    const uint64_t whole = least + padded(front[0]) + padded(front[1]);
    if (whole > left || whole > largest) return {};
    try {
        const size_t room = std::bit_ceil(size_t(whole));
        const std::shared_ptr<char> bytes(static_cast<char*>(acquire_memory(room)),
                                          [room](char* memory) { release_memory(memory, room); });
        if (!read(bytes.get(), size_t(whole), at)) return {};
        Record record = check_record(bytes.get(), size_t(whole), 0);
        record.bytes = bytes;
        return record;
    } catch (const std::bad_alloc&) {
        return {};  // a damaged file, or one with holes, may claim any size
    }
}

bool CacheRecords::read(void* into, size_t size, size_t offset) const {
    char* to = static_cast<char*>(into);
    while (size > 0) {
        const ssize_t got = pread(descriptor_, to, size, off_t(offset));
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        to += got;
        offset += size_t(got);
        size -= size_t(got);
    }
    return true;
}

}  // namespace onepass
