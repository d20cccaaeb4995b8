// Threads that parse blocks before they are needed; the rows are taken in the order of the blocks. They know no Python,
// so they never wait for its lock.
#pragma once
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

#include "core/checksum.hpp"
#include "parse/text_file.hpp"

namespace onepass {

// A block to parse: text in memory, or a part of a file.
struct Work {
    const char* text;
    const TextFile* file;
    size_t offset, size;
    LineParser line;
    ParseOptions options;

    void parse(ParsedRows& rows) const {
        if (file) file->parse(offset, size, line, options, rows);
        else parse_block(text, size, line, options, rows), rows.crc = crc32c(text, size);
        rows.close();
    }
};

class ParserThreads {
 public:
    // Starts so many threads, or fewer (perhaps none) where the system refuses more.
    explicit ParserThreads(size_t threads);
    // Waits for blocks that are being parsed; other submitted blocks are dropped.
    ~ParserThreads();
    size_t threads() const { return threads_.size(); }
    // In a forked child the threads do not exist: there, no other method may be called, nor the destructor.
    bool forked() const;
    ParserThreads(const ParserThreads&) = delete;
    ParserThreads& operator=(const ParserThreads&) = delete;

    // The text or file, and what the options point to, must live until the rows are taken or this is destroyed.
    void submit(const Work& work);
    // The rows of the oldest block that was submitted and not taken. There must be one. If its rows are not ready, the
    // caller parses another block meanwhile: together with the threads, it then uses all cores.
    std::unique_ptr<ParsedRows> take();

 private:
    struct Job {
        Work work;
        std::unique_ptr<ParsedRows> rows;
        std::exception_ptr error;
        bool done = false;
    };
    void parse_next(std::unique_lock<std::mutex>& guard);
    void run();

    std::mutex lock_;
    std::condition_variable more_, done_;
    std::deque<std::unique_ptr<Job>> jobs_;
    size_t next_ = 0;  // the first job that no thread has begun
    bool closing_ = false;
    const int process_;
    std::vector<std::thread> threads_;
};

}  // namespace onepass
