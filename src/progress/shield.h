// Shield: keeps the program's signal handlers out of a thread that owns the engine while pages are
// closed. A handler that touches such a page waits for data that only the engine can bring: its own
// thread would hold the engine for ever. Programs without handlers, and all while nothing is
// closed, pay nothing. Thread: the one that owns the engine, or is about to; watch() before
// threads come. Owner: the handoff. Invariant: up only between taking the engine and letting it go;
// what a thread does to itself (base::own_faults) is never held back.
#pragma once
#include <atomic>
#include <cstdint>

namespace headway::progress {

class Shield {
 public:
  // The signals of one thread that are held back: where `up` is false, none.
  struct Held {
    bool up = false;
    uint64_t before = 0;  // its mask
    uint64_t since = 0;   // ns
  };

  // `closed`: how many ranges are; `handlers`: signals for which the program has handlers, known
  // while any is.
  void watch(const std::atomic<uint32_t>* closed, const std::atomic<uint64_t>* handlers) {
    closed_ = closed;
    handlers_ = handlers;
  }
  bool any_closed() const { return closed_ && closed_->load(std::memory_order_relaxed) != 0; }
  bool has_handlers() const { return handlers_ && handlers_->load(std::memory_order_relaxed) != 0; }

  static Held raise();
  // Handlers of what came meanwhile run in here.
  static void lower(const Held& held);
  // A signal waits for that.
  static bool is_awaited(const Held& held);

  bool closes = false;  // pages may be closed: the lock is left as guarded
  Held held;            // by the owner of the engine

 private:
  const std::atomic<uint32_t>* closed_ = nullptr;
  const std::atomic<uint64_t>* handlers_ = nullptr;
};

}  // namespace headway::progress
