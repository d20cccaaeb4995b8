// Threads that are started while this object lives receive no signals. Signals go to the thread that consumes their
// work: Ctrl-C must wake it even while it waits for a pipe.
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
