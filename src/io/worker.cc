#include "io/worker.h"

#include "base/own_thread.h"

#include <atomic>
#include <csignal>
#include <pthread.h>

#include "io/counters.h"
#include "waiting/holding.h"

namespace headway::io {
namespace {

using progress::UserCall;
using progress::UserCalls;

constexpr size_t stack_bytes = 256 << 10;

class Worker {
 public:
  void start(protocols::Engine& engine);
  bool is_there() const { return started_.load(std::memory_order_acquire); }
  void give(UserCall& job);

 private:
  void make_thread(protocols::Engine& engine);
  static void* main(void* self);
  [[noreturn]] void run();
  UserCall* next();

  protocols::Engine* engine_ = nullptr;
  std::atomic<bool> started_{false};
  pthread_mutex_t starting_ = PTHREAD_MUTEX_INITIALIZER;
  // Held for a few instructions, by the worker and by who holds the engine: so nobody waits for one
  // whom a handler of the program has interrupted.
  pthread_mutex_t lock_ = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t given_ = PTHREAD_COND_INITIALIZER;
  UserCalls jobs_;
};
constinit Worker worker;

// Where no thread can be made, that is tried again by the next one.
void Worker::start(protocols::Engine& engine) {
  if (is_there()) return;
  pthread_mutex_lock(&starting_);
  if (!is_there()) make_thread(engine);
  pthread_mutex_unlock(&starting_);
}

void Worker::make_thread(protocols::Engine& engine) {
  engine_ = &engine;
  pthread_t thread;
  const bool made = base::start_own_thread(thread, stack_bytes, true, main, this);
  started_.store(made, std::memory_order_release);
}

void Worker::give(UserCall& job) {
  pthread_mutex_lock(&lock_);
  jobs_.push_back(&job);
  pthread_cond_signal(&given_);
  pthread_mutex_unlock(&lock_);
}

void* Worker::main(void* self) {
  pthread_setname_np(pthread_self(), "headway disk");
  static_cast<Worker*>(self)->run();
}

UserCall* Worker::next() {
  pthread_mutex_lock(&lock_);
  while (jobs_.empty()) pthread_cond_wait(&given_, &lock_);
  UserCall* const job = jobs_.pop_front();
  pthread_mutex_unlock(&lock_);
  return job;
}

void Worker::run() {
  engine_->thread_begins();  // it is no thread of the program's: its calls are never trapped
  for (;;) {
    UserCall* const job = next();
    job->run(job);
    const waiting::Holding holding(*engine_);
    job->finished(job);
  }
}

}  // namespace

void prepare_worker(protocols::Engine& engine) { worker.start(engine); }

void give_job(protocols::Engine& engine, UserCall& job, By by) {
  if (by == By::worker && worker.is_there()) {
    count(counters.jobs);
    worker.give(job);
  } else {
    engine.call_user(job);
  }
}

}  // namespace headway::io
