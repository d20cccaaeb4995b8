// A thread that checks the records of a cache of rows ahead of whoever takes them. It knows no Python, so it never
// waits for its lock, and never keeps anybody waiting for it. streams/cache.py describes and writes the file.
#pragma once
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

namespace onepass {

// As fast as memory: four lanes of multiply and rotate over words of 8 bytes. It tells damage, not malice.
uint64_t checksum(const char* bytes, size_t size);

// Where a record's head is, and the shape of its rows: `starts`, `index` and `value` lie one after the other behind it.
struct Record {
    enum class Kind { rows, closing, damaged } kind = Kind::damaged;
    std::shared_ptr<const char> bytes;  // which it is in, from its beginning on, where it was read from a file
    size_t head = 0, head_length = 0, end = 0;
    uint64_t starts = 0, nonzeros = 0, value_bytes = 0, width = 0;
};

// The record at `at` of bytes in memory. One of rows is whole, and its rows are well formed: starts rise within the
// arrays, every index is below the width, every value finite.
Record check_record(const char* file, size_t size, size_t at);

class CheckAhead {
 public:
    // Keeps the file open for itself. The records begin at `start`.
    CheckAhead(int descriptor, size_t start);
    ~CheckAhead();
    CheckAhead(const CheckAhead&) = delete;
    CheckAhead& operator=(const CheckAhead&) = delete;
    // In a forked child the thread is gone: then nothing may be called, and this must never be destroyed.
    bool forked() const;

    // The next record; after one that holds no rows, the same again.
    Record take();

 private:
    // So many bytes ahead it waits, until half of them are left: waking somebody costs more than checking some.
    static constexpr size_t most = size_t(16) << 20;
    static constexpr uint64_t largest = uint64_t(1) << 34;  // bytes of a record: ours are of at most 1 GiB of text
    void run();
    Record read_record(size_t at) const;
    bool read(void* into, size_t size, size_t offset) const;

    const int descriptor_;
    std::mutex lock_;
    std::condition_variable room_, ready_;
    std::deque<Record> checked_;
    size_t at_, taken_, handed_;  // all before `at_` is checked, before `taken_` used, before `handed_` given out
    bool closing_ = false;
    const int process_;
    std::thread thread_;
};

}  // namespace onepass
