// Threads that are started while this lives get no signals: these are for the thread that takes what they make, which
// must be woken by Ctrl-C even where it waits for a pipe.
#pragma once
#include <signal.h>

namespace onepass {

class WithoutSignals {
 public:
    WithoutSignals() {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~WithoutSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    WithoutSignals(const WithoutSignals&) = delete;
    WithoutSignals& operator=(const WithoutSignals&) = delete;

 private:
    sigset_t before_;
};

}  // namespace onepass
