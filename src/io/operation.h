// Operation: one access to the data of a file: by one rank alone, or this rank's part of a
// collective one. Its request, if it has one, stands for it to the engine, which closes no page
// that it may touch, and to the program. Thread: made by an application thread; `run` and its kin
// without the engine, the rest with it. Owner: reference counted: its request, and who waits for
// it. Invariants: at most one job of it is under way at a time; `moved` and `failure` do not change
// once the request is complete; the program hears of every byte that a write did not put.
#pragma once
#include <atomic>
#include <cstdint>

#include "io/file.h"
#include "io/transfer.h"
#include "io/worker.h"
#include "progress/user_calls.h"
#include "protocols/request.h"

namespace headway::io {

class TwoPhase;

// A job of an operation, for who does it (io/worker.h).
struct Work : progress::UserCall {
  Operation* of = nullptr;
  void (*over)(Operation& of) = nullptr;  // with the engine
  void (*does)(Operation& of) = nullptr;  // without it
};

class Operation {
 public:
  // Keeps the file, its view and the data's type. `at`: byte of the view. Null without memory.
  // `bytes`: of the file, as file_bytes() says. The view is the file's at this moment.
  static Operation* make(File& file, View* view, bool writes, uint64_t at, const Data& data,
                         uint64_t bytes);
  void retain() { references_.fetch_add(1, std::memory_order_relaxed); }
  void release();

  // By this thread, now, without a request.
  void run();
  // By a request that its user holds; null without memory. `by`: who waits for the disk. All take
  // the engine themselves, and wait until the memory is open.
  protocols::Request* start(waiting::Waiter& waiter, By by);
  // The same where the shared pointer says, which goes on by `etypes`.
  protocols::Request* start_shared(waiting::Waiter& waiter, By by, int64_t etypes);
  // The same with all ranks of the file.
  protocols::Request* start_collective(waiting::Waiter& waiter, By by);
  // The same without a request: of a rank that has no data, since its arguments are wrong. The
  // others need not wait for it.
  void take_part(waiting::Waiter& waiter);
  // The same as start() by this thread, now: complete when it returns.
  protocols::Request* start_here(waiting::Waiter& waiter);
  // The operation that a request of RequestKind::file stands for.
  static Operation& of(const protocols::Request* request) {
    return *static_cast<Operation*>(request->owner);
  }

  File& file() const { return *file_; }
  const View& view() const { return *view_; }
  bool writes() const { return writes_; }
  uint64_t at() const { return at_; }
  uint64_t bytes() const { return bytes_; }
  const Data& data() const { return data_; }
  uint64_t moved() const { return moved_; }
  const Failure& failure() const { return failure_; }
  protocols::Request* request() const { return request_; }  // if it was started
  // The program has been told how it ended, by an error: else its file tells of a failure, at the
  // next sync or at the close.
  void note_told() const { told_ = true; }

 private:
  friend class TwoPhase;

  protocols::Request* begin(waiting::Waiter& waiter, By by);
  void give(void (*does)(Operation&), void (*over)(Operation&));
  // Engine held; the request is complete, and the operation perhaps gone.
  void end();
  bool needs_lock() const;
  Failure run_locked();
  void look_ahead() const;
  static void run_job(Operation& of);
  static void shared_told(void* self, Outcome outcome, int64_t before);
  static void let_go(protocols::Request* request);

  std::atomic<uint32_t> references_{1};
  File* file_ = nullptr;
  View* view_ = nullptr;
  Data data_;
  uint64_t at_ = 0, bytes_ = 0, moved_ = 0;
  bool writes_ = false;
  mutable bool told_ = false;
  By by_ = By::waiting;
  Failure failure_;
  Work work_;
  TwoPhase* phases_ = nullptr;  // of a collective access, while it goes on
  protocols::Engine* engine_ = nullptr;
  protocols::Request* request_ = nullptr;
};

// Waits until such a request is over.
void wait_for(waiting::Waiter& waiter, protocols::Request* request);
// One whose end its user has seen.
void give_back(waiting::Waiter& waiter, protocols::Request* request);

}  // namespace headway::io
