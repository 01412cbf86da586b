#include "io/operation.h"

#include <new>

#include "base/check.h"
#include "base/heap.h"
#include "io/counters.h"
#include "io/two_phase.h"
#include "waiting/holding.h"

namespace headway::io {

using protocols::Request;
using protocols::RequestKind;

namespace {

constexpr int any_tag_of_user = -2;  // MPI_ANY_TAG, for a status without a message

void run_work(progress::UserCall* call) {
  const auto* work = static_cast<Work*>(call);
  work->does(*work->of);
}

void end_work(progress::UserCall* call) {
  const auto* work = static_cast<Work*>(call);
  work->over(*work->of);
}

}  // namespace

Operation* Operation::make(File& file, View* view, bool writes, uint64_t at, const Data& data,
                           uint64_t bytes) {
  void* memory = base::heap_allocate(sizeof(Operation));
  if (!memory) return nullptr;
  auto* made = new (memory) Operation;
  made->file_ = &file;
  made->view_ = view;
  made->writes_ = writes;
  made->at_ = at;
  made->data_ = data;
  made->bytes_ = bytes;
  file.retain();
  view->retain();
  data.type->retain();
  return made;
}

void Operation::release() {
  const uint32_t before = references_.fetch_sub(1, std::memory_order_acq_rel);
  HEADWAY_CHECK(before != 0);
  if (before != 1) return;
  data_.type->release();
  view_->release();
  io::release(file_);
  this->~Operation();
  base::heap_free(this, sizeof *this);
}

// A client of NFS writes whole pages, and what others have written to the rest of one with them,
// unless it has a lock there.
bool Operation::needs_lock() const {
  return file_->atomic.load(std::memory_order_relaxed) ||
         (writes_ && file_->disk.is_remote() && !file_->no_locks.load(std::memory_order_relaxed));
}

// In atomic mode nobody writes between the first and the last byte of an access, and nobody reads
// there while it writes.
Failure Operation::run_locked() {
  int64_t low = 0, high = 0;
  view_->bounds(at_, bytes_, low, high);
  pthread_mutex_lock(&file_->atomic_lock);
  Failure failed = file_->disk.lock(low, high, writes_);
  const bool has_lock = !failed;
  if (failed && !file_->atomic.load(std::memory_order_relaxed)) {
    // The best that this file system can do.
    file_->no_locks.store(true, std::memory_order_relaxed);
    failed = {};
  }
  if (!failed) {
    failed = writes_ ? write_data(file_->disk, *view_, at_, data_, moved_)
                     : read_data(file_->disk, *view_, at_, data_, moved_);
    const Failure unlocked = has_lock ? file_->disk.unlock(low, high) : Failure{};
    if (!failed) failed = unlocked;
  }
  pthread_mutex_unlock(&file_->atomic_lock);
  return failed;
}

// The system fetches what is likely to be read next, while this read and the program go on.
void Operation::look_ahead() const {
  int64_t low = 0, high = 0, next = 0;
  view_->bounds(at_, bytes_, low, high);
  if (file_->ahead.note(low, high, next)) file_->disk.expect(next, uint64_t(high - low));
}

void Operation::run() {
  if (bytes_ == 0) return;
  if (writes_) file_->written.store(true, std::memory_order_relaxed);
  if (view_->is_empty() || !view_->reaches(at_, bytes_)) {
    // A read of a view without bytes brings none; a write would lose all of them.
    if (writes_ || !view_->is_empty()) {
      failure_ = {.error = beyond_view, .act = writes_ ? "write" : "read"};
    }
    return;
  }
  if (!writes_ && view_->is_monotone()) look_ahead();
  if (needs_lock()) {
    failure_ = run_locked();
  } else {
    failure_ = writes_ ? write_data(file_->disk, *view_, at_, data_, moved_)
                       : read_data(file_->disk, *view_, at_, data_, moved_);
  }
}

void Operation::run_job(Operation& of) { of.run(); }

// The engine is held. A request may be freed before it is complete, or after, and nobody looks.
void Operation::let_go(Request* request) {
  Operation& operation = of(request);
  Failure& unheard = operation.file_->unheard;
  if (operation.failure_ && !operation.told_ && !unheard) unheard = operation.failure_;
  operation.release();
}

// --- with the engine ---

Request* Operation::begin(waiting::Waiter& waiter, By by) {
  engine_ = &waiter.engine;
  by_ = by;
  waiter.open(data_.memory());
  Request* request = engine_->take_request();
  if (!request) return nullptr;
  request->kind = RequestKind::file;
  request->held_by_user = true;
  request->peer = nullptr;
  request->key = {};
  request->memory = data_.memory();
  request->communicator = file_->comm;
  request->owner = this;
  request->on_give = let_go;
  request->status_source = matching::any;
  request->status_tag = any_tag_of_user;
  request->sent_bytes = 0;
  request_ = request;
  retain();
  ++file_->pending;
  engine_->begin(*request);
  engine_->set_stage(*request, protocols::Stage::running);
  if (engine_->reach().is_kept()) [[unlikely]]
    engine_->reach().note(*request);
  return request;
}

void Operation::give(void (*does)(Operation&), void (*over)(Operation&)) {
  work_.of = this;
  work_.does = does;
  work_.over = over;
  work_.run = run_work;
  work_.finished = end_work;
  give_job(*engine_, work_, by_);
}

void Operation::end() {
  Request* const request = request_;
  request->sent_bytes = moved_;
  --file_->pending;
  engine_->complete(request, failure_ ? Outcome::file_failed : Outcome::ok);
}

Request* Operation::start(waiting::Waiter& waiter, By by) {
  if (by == By::worker) prepare_worker(waiter.engine);
  const waiting::Holding holding(waiter.engine);
  Request* request = begin(waiter, by);
  if (request) give(run_job, [](Operation& of) { of.end(); });
  return request;
}

Request* Operation::start_here(waiting::Waiter& waiter) {
  Request* request = nullptr;
  {
    const waiting::Holding holding(waiter.engine);
    request = begin(waiter, By::waiting);
  }
  if (!request) return nullptr;
  run();
  const waiting::Holding holding(waiter.engine);
  end();
  return request;
}

void Operation::shared_told(void* self, Outcome outcome, int64_t before) {
  auto& of = *static_cast<Operation*>(self);
  if (outcome != Outcome::ok) {
    of.failure_ = {.error = outcome == Outcome::no_memory ? ENOMEM : peer_failed,
                   .act = "ask for the shared pointer of"};
    of.end();
    return;
  }
  if (before < 0 || __builtin_mul_overflow(uint64_t(before), of.view_->etype_bytes(), &of.at_)) {
    of.failure_ = {.error = beyond_view, .act = of.writes_ ? "write" : "read"};
    of.end();
    return;
  }
  of.give(run_job, [](Operation& one) { one.end(); });
}

Request* Operation::start_shared(waiting::Waiter& waiter, By by, int64_t etypes) {
  if (by == By::worker) prepare_worker(waiter.engine);
  const waiting::Holding holding(waiter.engine);
  Request* request = begin(waiter, by);
  if (request) file_->shared.add(etypes, shared_told, this);
  return request;
}

Request* Operation::start_collective(waiting::Waiter& waiter, By by) {
  if (by == By::worker) prepare_worker(waiter.engine);
  const Part part = TwoPhase::part_of(*this);
  const waiting::Holding holding(waiter.engine);
  Request* request = begin(waiter, by);
  if (request) {
    TwoPhase::start(*this, part);
  } else {
    TwoPhase::end_job(*this);
  }
  return request;
}

void Operation::take_part(waiting::Waiter& waiter) {
  HEADWAY_CHECK(bytes_ == 0);
  prepare_worker(waiter.engine);
  const Part part = TwoPhase::part_of(*this);
  const waiting::Holding holding(waiter.engine);
  Request* request = begin(waiter, By::worker);
  if (!request) return TwoPhase::end_job(*this);
  request->held_by_user = false;  // it goes when it is over
  TwoPhase::start(*this, part);
}

void wait_for(waiting::Waiter& waiter, Request* request) {
  const waiting::Holding holding(waiter.engine);
  waiter.request(request);
}

void give_back(waiting::Waiter& waiter, Request* request) {
  const waiting::Holding holding(waiter.engine);
  waiter.engine.give_request(request);
}

}  // namespace headway::io
