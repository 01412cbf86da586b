// For tests: a thread of a program that touches a closed page, and waits in the kernel until it is
// open. Thread: that of the test. Owner: the world. Invariant: its own calls are not trapped, since
// the thread of the test, which opens the page, works beside it.
#pragma once
#include <unistd.h>

#include <atomic>
#include <thread>

#include "protocols/release/release.h"

namespace headway::protocols {

class Toucher {
 public:
  explicit Toucher(Release& release) : thread_([this, &release] { run(release); }) {}
  ~Toucher() {
    wait();
    set(&end_);
    thread_.join();
  }
  Toucher(const Toucher&) = delete;
  Toucher& operator=(const Toucher&) = delete;

  // Until it goes on.
  void wait() const {
    while (!is_idle_.load()) usleep(5);
  }
  void touch(const char* at) {
    is_idle_.store(false);
    set(at);
  }

 private:
  void set(const char* at) {
    wish_.store(at);
    wish_.notify_one();
  }
  void run(Release& release) {
    release.exempt_thread();
    for (;;) {
      wish_.wait(nullptr);
      const char* at = wish_.load();
      if (at == &end_) return;
      (void)*static_cast<const volatile char*>(at);
      wish_.store(nullptr);
      is_idle_.store(true);
    }
  }

  static constexpr char end_ = 0;
  std::atomic<const char*> wish_{nullptr};
  std::atomic<bool> is_idle_{true};
  std::thread thread_;
};

}  // namespace headway::protocols
