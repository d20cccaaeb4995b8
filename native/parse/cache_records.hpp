// The records of a cache of rows, which a thread reads and checks before they are needed. It knows no Python, so it
// neither waits for its lock nor holds it. streams/cache.py describes and writes the file.
#pragma once
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

namespace onepass {

// As fast as memory: four lanes of multiply and rotate over words of 8 bytes. Finds damage, but not forgery.
uint64_t checksum(const char* bytes, size_t size);

// Where a record's head is, and the shape of its rows. The arrays `starts`, `index` and `value` follow the head.
struct Record {
    enum class Kind { rows, closing, damaged } kind = Kind::damaged;
    std::shared_ptr<const char> bytes;  // the whole record, where it was read from a file
    size_t head = 0, head_length = 0, end = 0;
    uint64_t starts = 0, nonzeros = 0, value_bytes = 0, width = 0;
};

// The record at place `at` of a file in memory. If its kind is `rows`, it is complete and its rows are well formed:
// starts rise within the arrays, every index is below the width, every value is finite.
Record check_record(const char* file, size_t size, size_t at);

class CacheRecords {
 public:
    // Opens the file once more for itself. The records begin at `start`.
    CacheRecords(int descriptor, size_t start);
    ~CacheRecords();
    CacheRecords(const CacheRecords&) = delete;
    CacheRecords& operator=(const CacheRecords&) = delete;
    // In a forked child the thread does not exist: there, no other method may be called, nor the destructor.
    bool forked() const;

    // The next record. After a record without rows, that record again.
    Record take();

 private:
    // The thread stops when it has checked so many bytes ahead, and goes on when half of them are used: waking a thread
    // costs more than checking some records.
    static constexpr size_t most = size_t(16) << 20;
    static constexpr uint64_t largest = uint64_t(1) << 34;  // bytes of a record: ours are of at most 1 GiB of text
    void run();
    Record read_record(size_t at) const;
    bool read(void* into, size_t size, size_t offset) const;

    const int descriptor_;
    std::mutex lock_;
    std::condition_variable room_, ready_;
    std::deque<Record> checked_;
    size_t at_, taken_, handed_;  // what is before `at_` is checked, before `handed_` handed out, before `taken_` used
    bool closing_ = false;
    const int process_;
    std::thread thread_;
};

}  // namespace onepass
