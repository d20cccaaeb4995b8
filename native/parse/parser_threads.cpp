#include "parse/parser_threads.hpp"

#include <unistd.h>

#include <system_error>

#include "core/without_signals.hpp"

namespace onepass {

ParserThreads::ParserThreads(size_t threads) : process_(int(getpid())) {
    const WithoutSignals here;
    try {
        for (size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { run(); });
    } catch (const std::system_error&) {
        // Go on with the threads that there are.
    }
}

ParserThreads::~ParserThreads() {
    {
        std::lock_guard guard(lock_);
        closing_ = true;
    }
    more_.notify_all();
    for (std::thread& thread : threads_) thread.join();
}

bool ParserThreads::forked() const { return int(getpid()) != process_; }

void ParserThreads::submit(const Work& work) {
    {
        std::lock_guard guard(lock_);
        jobs_.push_back(std::make_unique<Job>(Job{work, nullptr, nullptr, false}));
    }
    more_.notify_one();
}

std::unique_ptr<ParsedRows> ParserThreads::take() {
    std::unique_lock guard(lock_);
    while (!jobs_.front()->done) {
        if (next_ < jobs_.size()) parse_next(guard);
        else done_.wait(guard);
    }
    const std::unique_ptr<Job> job = std::move(jobs_.front());
    jobs_.pop_front();
    --next_;
    guard.unlock();
    if (job->error) std::rethrow_exception(job->error);
    return std::move(job->rows);
}

void ParserThreads::parse_next(std::unique_lock<std::mutex>& guard) {
    Job& job = *jobs_[next_++];
    guard.unlock();
    try {
        job.rows = std::make_unique<ParsedRows>();
        job.work.parse(*job.rows);
    } catch (...) {
        job.error = std::current_exception();
    }
    guard.lock();
    job.done = true;
}

void ParserThreads::run() {
    std::unique_lock guard(lock_);
    while (true) {
        more_.wait(guard, [this] { return closing_ || next_ < jobs_.size(); });
        if (closing_) return;
        parse_next(guard);
        done_.notify_one();
    }
}

}  // namespace onepass
