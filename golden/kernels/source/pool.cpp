#include "pool.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>

#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#endif

namespace {

using Work = std::function<void(int64_t)>;

class Pool {
public:
    void run(int helpers, int64_t pieces, const Work &work) {
        {
            std::lock_guard<std::mutex> lock(mutex_);
            while (started_ < helpers && start()) started_++;
            work_ = &work;
            pieces_ = pieces;
            next_ = 0;
            places_ = helpers;
        }
        wake_.notify_all();
        take_pieces(work);
        std::unique_lock<std::mutex> lock(mutex_);
        places_ = 0;  // a helper that has not come by now finds nothing to do
        done_.wait(lock, [this] { return inside_ == 0; });
    }

private:
    bool start() {
        try {
            std::thread([this] { help(); }).detach();
            return true;
        } catch (const std::system_error &) {  // the system gives no more threads: do with fewer
            return false;
        }
    }

    void help() {
        std::unique_lock<std::mutex> lock(mutex_);
        for (;;) {
            wake_.wait(lock, [this] { return places_ > 0; });
            places_--;
            inside_++;
            const Work &work = *work_;
            lock.unlock();
            take_pieces(work);
            lock.lock();
            if (--inside_ == 0) done_.notify_one();
        }
    }

    void take_pieces(const Work &work) {
        for (int64_t piece = next_++; piece < pieces_; piece = next_++) work(piece);
    }

    std::mutex mutex_;
    std::condition_variable wake_, done_;
    const Work *work_ = nullptr;
    int64_t pieces_ = 0;
    std::atomic<int64_t> next_{0};
    int started_ = 0, places_ = 0, inside_ = 0;
};

// Never destroyed: helpers wait on it until the process ends. Its threads do not live on in a forked child, which
// therefore starts from a new one.
std::atomic<Pool *> pool{nullptr};
std::atomic_flag in_use = ATOMIC_FLAG_INIT;

void forget_pool() {
    pool = nullptr;
    in_use.clear();
}

Pool &the_pool() {  // called by whoever holds in_use
    if (!pool) {
#if defined(__unix__) || defined(__APPLE__)
        static const int registered = pthread_atfork(nullptr, nullptr, forget_pool);
        (void)registered;
#endif
        pool = new Pool;
    }
    return *pool;
}

}  // namespace

void run_pieces(int threads, int64_t pieces, const Work &work) {
    const int64_t most = threads < pieces ? threads : pieces;
    if (most > 1 && !in_use.test_and_set()) {
        the_pool().run(static_cast<int>(most - 1), pieces, work);
        in_use.clear();
        return;
    }
    for (int64_t piece = 0; piece < pieces; piece++) work(piece);
}
