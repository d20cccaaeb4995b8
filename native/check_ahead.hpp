// A thread that checks the records of a cache of rows ahead of whoever takes them. It knows no Python, so it never
// waits for its lock, and never keeps anybody waiting for it. streams/cache.py describes and writes the file.
#pragma once
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <thread>

namespace onepass {

// As fast as memory: four lanes of multiply and rotate over words of 8 bytes. It tells damage, not malice.
uint64_t checksum(const char* bytes, size_t size);

// Where a record's head is, and the shape of its rows: `starts`, `index` and `value` lie one after the other behind it.
struct Record {
    enum class Kind { rows, closing, damaged } kind = Kind::damaged;
    size_t head = 0, head_length = 0, end = 0;
    uint64_t starts = 0, nonzeros = 0, value_bytes = 0, width = 0;
};

// The record at `at`. One of rows is whole, and its rows are well formed: starts rise within the arrays, every index is
// below the width, every value finite.
Record check_record(const char* file, size_t size, size_t at);

class CheckAhead {
 public:
    CheckAhead(const char* file, size_t size, size_t start);
    ~CheckAhead();
    CheckAhead(const CheckAhead&) = delete;
    CheckAhead& operator=(const CheckAhead&) = delete;
    // In a forked child the thread is gone: then nothing may be called, and this must never be destroyed.
    bool forked() const;

    // The next record; after one that holds no rows, the same again. The records before it have been read: their pages
    // need not count as this process's memory, and whoever looks at them again finds them in the file.
    Record take();

 private:
    // So many bytes ahead it waits, until half of them are left: waking somebody costs more than checking some.
    static constexpr size_t most = size_t(16) << 20;
    void run();
    void give_back(size_t until);

    const char* const file_;
    const size_t size_;
    std::mutex lock_;
    std::condition_variable room_, ready_;
    std::deque<Record> checked_;
    size_t at_, taken_, handed_;  // all before `at_` is checked, before `taken_` read, before `handed_` given out
    size_t given_back_ = 0;
    bool closing_ = false;
    const int process_;
    std::thread thread_;
};

}  // namespace onepass
