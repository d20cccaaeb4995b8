// Threads that parse blocks ahead of whoever takes them, in order. They know no Python, so they never wait for its
// lock.
#pragma once
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

#include "core/checksum.hpp"
#include "parse/file.hpp"

namespace onepass {

// A block: text in memory, or a part of a file.
struct Work {
    const char* text;
    const TextFile* file;
    size_t offset, size;
    LineParser line;
    ParseOptions options;

    void parse(Rows& rows) const {
        if (file) file->parse(offset, size, line, options, rows);
        else parse_block(text, size, line, options, rows), rows.crc = crc32c(text, size);
        rows.close();
    }
};

class ParseAhead {
 public:
    // Makes as many threads as the system allows, which may be none.
    explicit ParseAhead(size_t threads);
    // Waits for what is being parsed now; what was only submitted is dropped.
    ~ParseAhead();
    size_t threads() const { return threads_.size(); }
    // In a forked child the threads are gone: then nothing may be called, and this must never be destroyed.
    bool forked() const;
    ParseAhead(const ParseAhead&) = delete;
    ParseAhead& operator=(const ParseAhead&) = delete;

    // The text or file and what the options point to must stay until the rows are taken or this is destroyed.
    void submit(const Work& work);
    // The rows of the oldest block that was submitted and not taken. There must be one. Whoever would have to wait for
    // it parses another meanwhile: so many threads as there are cores, none of which is ever in another's way.
    std::unique_ptr<Rows> take();

 private:
    struct Job {
        Work work;
        std::unique_ptr<Rows> rows;
        std::exception_ptr error;
        bool done = false;
    };
    void parse_next(std::unique_lock<std::mutex>& guard);
    void run();

    std::mutex lock_;
    std::condition_variable more_, done_;
    std::deque<std::unique_ptr<Job>> jobs_;
    size_t next_ = 0;  // the first job that nobody has begun
    bool closing_ = false;
    const int process_;
    std::vector<std::thread> threads_;
};

}  // namespace onepass
