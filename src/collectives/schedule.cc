#include "collectives/schedule.h"

#include <cstddef>
#include <cstring>
#include <new>

#include "base/check.h"
#include "base/heap.h"
#include "collectives/algorithms.h"
#include "settings/events.h"
#include "waiting/holding.h"
#include "waiting/many.h"

namespace headway::collectives {

using protocols::Engine;
using protocols::RequestKind;
using protocols::Stage;

// --- building ---

Schedule* Schedule::make(Engine& engine, objects::Comm* comm, Kind kind) {
  void* memory = base::heap_allocate(sizeof(Schedule));
  if (!memory) return nullptr;
  auto* schedule = new (memory) Schedule;
  schedule->engine_ = &engine;
  schedule->comm_ = comm;
  schedule->kind_ = kind;
  comm->retain();
  return schedule;
}

void Schedule::destroy() {
  for (const Block& block : blocks_) base::heap_free(block.memory, block.size);
  for (const datatypes::Type* type : types_) type->release();
  if (op_) objects::release(op_);
  objects::release(comm_);
  this->~Schedule();
  base::heap_free(this, sizeof *this);
}

StepId Schedule::add(const Step& step, StepId after) {
  HEADWAY_CHECK(!request_);  // steps do not change once it may run
  const StepId id = StepId(steps_.size());
  if (!steps_.push(step)) {
    failed_ = true;
    return no_step;
  }
  if (after != no_step) depends(id, after);
  return id;
}

bool Schedule::is_own_side(Team team) const {
  return comm_->is_inter() && team.members == comm_->own.members;
}

StepId Schedule::send(Team team, int rank, const UserMemory& memory, StepId after) {
  Step step;
  step.kind = Step::Kind::send;
  step.own_side = is_own_side(team);
  step.process = team.process(rank);
  step.source = comm_->own.self;
  step.from = memory;
  return add(step, after);
}

StepId Schedule::receive(Team team, int rank, const UserMemory& memory, StepId after) {
  Step step;
  step.kind = Step::Kind::receive;
  step.own_side = is_own_side(team);
  step.process = team.process(rank);
  step.source = rank;
  step.to = memory;
  return add(step, after);
}

StepId Schedule::copy(const UserMemory& from, const UserMemory& to, StepId after) {
  Step step;
  step.kind = Step::Kind::copy;
  step.from = from;
  step.to = to;
  return add(step, after);
}

StepId Schedule::reduce(const void* in, void* inout, uint64_t count, bool swapped, StepId after) {
  Step step;
  step.kind = Step::Kind::reduce;
  step.from = UserMemory(const_cast<void*>(in), 0);
  step.to = UserMemory(inout, 0);
  step.count = count;
  step.swapped = swapped;
  return add(step, after);
}

StepId Schedule::act(Act does, uint64_t what, StepId after) {
  Step step;
  step.kind = Step::Kind::act;
  step.act = does;
  step.count = what;
  return add(step, after);
}

StepId Schedule::join() { return add(Step{}, no_step); }

void Schedule::depends(StepId step, StepId on) {
  HEADWAY_CHECK(!request_);
  if (failed_ || step == no_step || on == no_step) return;
  if (!dependents_.push({step, steps_[on].first_dependent})) {
    failed_ = true;
    return;
  }
  steps_[on].first_dependent = uint32_t(dependents_.size() - 1);
  ++steps_[step].needs;
}

char* Schedule::scratch(uint64_t bytes, int times) {
  uint64_t size = 0;
  const bool fits = !__builtin_mul_overflow(bytes, uint64_t(times), &size);
  if (size == 0) size = 1;
  void* memory = fits ? base::heap_allocate(size) : nullptr;
  if (!memory || !blocks_.push({memory, size})) {
    base::heap_free(memory, size);
    failed_ = true;
    return nullptr;
  }
  return static_cast<char*>(memory);
}

void Schedule::keep(const datatypes::Type* type) {
  if (type->predefined()) return;
  type->retain();
  if (!types_.push(type)) failed_ = true;
}

void Schedule::keep(objects::Op* op) {
  if (op->builtin != datatypes::ReduceOp::none) return;
  op->retain();
  op_ = op;
}

// --- running; the engine is held ---

Request* Schedule::make_request() {
  // What runs later must not need memory: the message thread may run it.
  if (failed_ || !ready_.reserve(steps_.size() + 1)) return nullptr;
  Request* request = engine_->take_request();
  if (!request) return nullptr;
  request->kind = RequestKind::schedule;
  request->held_by_user = true;
  request->peer = nullptr;
  request->memory = {};
  request->key = {};
  request->communicator = comm_;
  request->owner = this;
  request->on_give = destroy_of;
  request->status_source = matching::any;
  request->status_tag = -2;  // MPI_ANY_TAG is told as this by read_status
  request->sent_bytes = 0;
  request_ = request;
  for (Step& step : steps_) step.schedule = this;
  return request;
}

// Calls visit(extent) for what each step reads and writes, until it returns false; false then.
template <class Visit>
bool Schedule::each_extent(Visit&& visit) const {
  const auto vector = [this](const UserMemory& memory, uint64_t count) {
    return UserMemory(memory.base(), count, *reduction.type).extent();
  };
  for (const Step& step : steps_) {
    switch (step.kind) {
      case Step::Kind::send:
        if (!visit(step.from.extent())) return false;
        break;
      case Step::Kind::receive:
        if (!visit(step.to.extent())) return false;
        break;
      case Step::Kind::copy:
        if (!visit(step.from.extent()) || !visit(step.to.extent())) return false;
        break;
      case Step::Kind::reduce:
        if (step.count &&
            (!visit(vector(step.from, step.count)) || !visit(vector(step.to, step.count)))) {
          return false;
        }
        break;
      case Step::Kind::act:
      case Step::Kind::nothing: break;
    }
  }
  return true;
}

// Steps run with the engine held, whoever holds it, and must never wait for a closed page.
void Schedule::await_open(waiting::Waiter& waiter) const {
  const auto is_open = [this](UserMemory::Extent extent) {
    return extent.from >= extent.to ||
           !engine_->release().is_closed(extent.from, size_t(extent.to - extent.from));
  };
  const auto are_open = [&] { return each_extent(is_open); };
  if (!are_open()) waiter.until_open(are_open);
}

// Blocks side by side are told of as one.
void Schedule::reach(const Request& request, protocols::Reach& reach) {
  const auto& schedule = *static_cast<const Schedule*>(request.owner);
  UserMemory::Extent known;
  (void)schedule.each_extent([&](UserMemory::Extent extent) {
    if (extent.from >= extent.to) return true;
    for (const Block& block : schedule.blocks_) {
      const char* from = static_cast<const char*>(block.memory);
      if (extent.from >= from && extent.from < from + block.size) return true;
    }
    if (known.from == known.to || extent.from > known.to || extent.to < known.from) {
      reach.touch(known);
      known = extent;
    } else {
      if (extent.from < known.from) known.from = extent.from;
      if (extent.to > known.to) known.to = extent.to;
    }
    return true;
  });
  reach.touch(known);
}

void Schedule::begin(waiting::Waiter& waiter) {
  if (engine_->release().any_closed()) [[unlikely]]
    await_open(waiter);
  if (!request_->persistent) tag_ = next_tag(comm_);
  set_off();
}

void Schedule::set_off() {
  Request* request = request_;
  outcome = Outcome::ok;
  engine_->begin(*request);
  engine_->set_stage(*request, Stage::running);
  if (engine_->reach().is_kept()) [[unlikely]]
    engine_->reach().note(*request);
  engine_->schedule_begins();
  ++engine_->counters().collectives;
  HEADWAY_CHECK(!is_running_ && !working_ && ready_.empty() && left_ == 0);
  left_ = uint32_t(steps_.size());
  for (StepId i = 0; i < steps_.size(); ++i) {
    steps_[i].waits = steps_[i].needs;
    steps_[i].request = nullptr;
    if (steps_[i].waits == 0) (void)ready_.push(i);
  }
  is_running_ = true;
  work();
}

// Launches what is ready. Steps that finish at once make others ready: a loop, not a recursion.
void Schedule::work() {
  if (working_) return;
  working_ = true;
  for (size_t next = 0; next < ready_.size(); ++next) launch(ready_[next]);
  ready_.clear();
  working_ = false;
  if (left_ > 0 || !is_running_) return;
  is_running_ = false;
  engine_->schedule_ends();
  engine_->complete(request_, outcome);  // may free this schedule
}

void Schedule::done(StepId id) {
  HEADWAY_CHECK(left_ > 0);
  --left_;
  for (uint32_t at = steps_[id].first_dependent; at != ~0u; at = dependents_[at].next) {
    // Room was reserved for every step, and each becomes ready once.
    HEADWAY_CHECK(steps_[dependents_[at].to].waits != 0);
    if (--steps_[dependents_[at].to].waits == 0) (void)ready_.push(dependents_[at].to);
  }
}

void Schedule::launch(StepId id) {
  Step& step = steps_[id];
  HEADWAY_CHECK(step.waits == 0 && !step.request && left_ != 0);
  const bool is_message = step.kind == Step::Kind::send || step.kind == Step::Kind::receive;
  settings::tell<settings::EventKind::schedule_step>(step.kind, function_of(kind_),
                                                     is_message ? int64_t(step.process) : -1);
  switch (step.kind) {
    case Step::Kind::send:
    case Step::Kind::receive: launch_message(step); return;
    case Step::Kind::copy: {
      const uint64_t n = step.from.bytes() < step.to.bytes() ? step.from.bytes() : step.to.bytes();
      if (step.from.bytes() != step.to.bytes()) outcome = Outcome::truncated;
      // A send buffer that is already the block in the receive buffer is well defined.
      if (!step.from.flat() || step.from.flat() != step.to.flat()) {
        UserMemory::copy(step.from, step.to, n);
      }
      break;
    }
    case Step::Kind::reduce: launch_reduce(id); return;
    case Step::Kind::act:
      if (!step.act(*this, id, step.count)) return;
      break;
    case Step::Kind::nothing: break;
  }
  done(id);
}

void Schedule::end_act(StepId step) {
  HEADWAY_CHECK(steps_[step].kind == Step::Kind::act);
  done(step);
  work();
}

void Schedule::launch_message(Step& step) {
  protocols::Peer* peer = engine_->peer(step.process);
  Request* request = peer ? engine_->take_request() : nullptr;
  if (!request) {
    outcome = Outcome::no_memory;
    done(StepId(&step - steps_.data()));
    return;
  }
  const bool sends = step.kind == Step::Kind::send;
  request->kind = sends ? RequestKind::send : RequestKind::receive;
  request->notify = message_done;
  request->owner = &step;
  request->memory = sends ? step.from : step.to;
  const int ranks = comm_->own.size > comm_->others.size ? comm_->own.size : comm_->others.size;
  request->traffic =
      matching::Traffic::of(uint8_t(kind_), request->memory.bytes(), uint32_t(ranks));
  request->peer = peer;
  const uint64_t context = step.own_side ? comm_->own_side_context() : comm_->collective_context();
  const int tag = step.lane ? (tag_ + step.lane) & int(persistent_tag - 1) : tag_;
  request->key = {context, step.source, tag};
  step.request = request;  // before it may be over
  if (sends) {
    engine_->start_send(request);
  } else {
    engine_->start_receive(request);
  }
}

void Schedule::message_done(Request* request) {
  auto* step = static_cast<Step*>(request->owner);
  Schedule& schedule = *step->schedule;
  if (request->outcome != Outcome::ok) schedule.outcome = request->outcome;
  // A shorter message than was expected is a mismatch that can be seen, too.
  if (request->kind == RequestKind::receive && request->sent_bytes < request->memory.bytes()) {
    schedule.outcome = Outcome::truncated;
  }
  schedule.engine_->give_request(request);
  step->request = nullptr;
  schedule.done(StepId(step - schedule.steps_.data()));
  schedule.work();
}

void Schedule::launch_reduce(StepId id) {
  Step& step = steps_[id];
  const auto* in = step.from.flat();
  auto* inout = step.to.flat();
  if (step.count == 0) {
    done(id);
    return;
  }
  if (!reduction.kernel) {
    step.call.run = run_user_function;
    step.call.finished = user_function_done;
    engine_->call_user(step.call);
    return;
  }
  if (step.swapped) {
    // inout OP in: the kernels leave the result in their second argument.
    datatypes::find_reducer3(reduction.op->builtin, reduction.type->basic())(inout, in, inout,
                                                                             step.count);
  } else {
    reduction.kernel(in, inout, step.count);
  }
  done(id);
}

namespace {

// An MPI_User_function or MPI_User_function_c; handles are pointers in this ABI.
using UserFunction = void (*)(void*, void*, int*, void**);
using UserFunctionLarge = void (*)(void*, void*, int64_t*, void**);

// The user may free the datatype while the reduction runs, but the function still has to be able to
// ask about it: then it gets a handle for the time of the call.
class TypeHandle {
 public:
  explicit TypeHandle(const Reduction& reduction) : registry_(reduction.registry) {
    auto* type = const_cast<datatypes::Type*>(reduction.type);
    value_ = reduction.type_handle;
    if (!registry_ || registry_->find_type(value_) == type) return;
    own_ = registry_->types.add(type);
    if (own_) value_ = own_;
  }
  ~TypeHandle() {
    if (own_) registry_->types.remove(own_);
  }
  TypeHandle(const TypeHandle&) = delete;
  TypeHandle& operator=(const TypeHandle&) = delete;
  void* get() const { return reinterpret_cast<void*>(value_); }

 private:
  objects::Registry* registry_;
  uintptr_t value_ = 0;
  uintptr_t own_ = 0;
};

void call_user(const Reduction& reduction, void* in, void* inout, uint64_t count) {
  const TypeHandle handle(reduction);
  void* type = handle.get();
  if (reduction.op->large) {
    int64_t n = int64_t(count);
    reinterpret_cast<UserFunctionLarge>(reduction.op->function)(in, inout, &n, &type);
    return;
  }
  const int64_t extent = reduction.type->extent();
  while (count > 0) {
    const int now = count > INT32_MAX ? INT32_MAX : int(count);
    const int64_t bytes = int64_t(now) * extent;
    int n = now;  // the function may change it
    void* told = type;
    reinterpret_cast<UserFunction>(reduction.op->function)(in, inout, &n, &told);
    in = base::moved(in, bytes);
    inout = base::moved(inout, bytes);
    count -= uint64_t(now);
  }
}

}  // namespace

void apply(const Reduction& reduction, void* in, void* inout, uint64_t count) {
  if (reduction.kernel) {
    reduction.kernel(in, inout, count);
  } else {
    call_user(reduction, in, inout, count);
  }
}

void Schedule::run_user_function(progress::UserCall* call) {
  Step* step = reinterpret_cast<Step*>(reinterpret_cast<char*>(call) - offsetof(Step, call));
  const Reduction& reduction = step->schedule->reduction;
  if (!step->swapped) {
    call_user(reduction, step->from.flat(), step->to.flat(), step->count);
    return;
  }
  // inout OP in: run it the other way round, into `in`, and copy back.
  call_user(reduction, step->to.flat(), step->from.flat(), step->count);
  const UserMemory from(step->from.flat(), step->count, *reduction.type);
  UserMemory to(step->to.flat(), step->count, *reduction.type);
  UserMemory::copy(from, to, from.bytes());
}

void Schedule::user_function_done(progress::UserCall* call) {
  Step* step = reinterpret_cast<Step*>(reinterpret_cast<char*>(call) - offsetof(Step, call));
  Schedule& schedule = *step->schedule;
  schedule.done(StepId(step - schedule.steps_.data()));
  schedule.work();
}

void Schedule::destroy_of(Request* request) { static_cast<Schedule*>(request->owner)->destroy(); }

// --- as an operation ---

Request* Schedule::start(waiting::Waiter& waiter) {
  Request* request = nullptr;
  {
    const waiting::Holding holding(*engine_);
    request = make_request();
    if (request) begin(waiter);
  }
  if (!request) destroy();
  return request;
}

Request* Schedule::prepare() {
  Request* request = nullptr;
  {
    const waiting::Holding holding(*engine_);
    request = make_request();
    if (request) {
      request->persistent = true;
      request->done.store(1, std::memory_order_relaxed);
      // Ranks may start their persistent collectives in different orders, but make them in one.
      tag_ = int(persistent_tag | (comm_->persistent_count++ & (persistent_tag - 1)));
    }
  }
  if (!request) destroy();
  return request;
}

void Schedule::restart(waiting::Waiter& waiter, Request* request) {
  request->started = true;
  static_cast<Schedule*>(request->owner)->begin(waiter);
}

bool Schedule::start_inside(int tag, void (*notify)(Request*), void* operation) {
  Request* request = make_request();
  if (!request) {
    destroy();
    return false;
  }
  request->held_by_user = false;
  request->notify = notify;
  part_of = operation;
  tag_ = tag;
  set_off();
  return true;
}

// For its wait: what is left are receives that nothing waits for, and all of them may go: nothing
// is read from the user's buffers any more, and nothing is forwarded from closed pages. In the
// place of what must not go stands the schedule itself.
Request* Schedule::left_at(const void* self, uint32_t place) {
  const auto& schedule = *static_cast<const Schedule*>(self);
  Request* const whole = schedule.request_;
  if (schedule.outcome != Outcome::ok) return whole;  // a step has failed: that is still to be told
  const base::Vec<Step>& steps = schedule.steps_;
  if (place == steps.size()) {
    uint32_t running = 0;
    for (const Step& step : steps) running += step.request != nullptr;
    return running < schedule.left_ ? whole : nullptr;  // some wait for others
  }
  const Step& step = steps[place];
  if (!step.request) return nullptr;
  // A message that is too short is an error, which can still be told now.
  const bool goes = step.kind == Step::Kind::receive && step.first_dependent == ~0u &&
                    step.request->sent_bytes >= step.request->memory.bytes();
  return goes ? step.request : whole;
}

Outcome Schedule::run(waiting::Waiter& waiter) {
  Engine& engine = *engine_;
  waiting::Holding holding(engine);
  holding.waits();
  Request* request = make_request();
  if (!request) {
    destroy();
    return Outcome::no_memory;
  }
  begin(waiter);
  const uint32_t places = uint32_t(steps_.size()) + 1;
  waiting::Many(waiter, this, places, left_at, {.whole = request}).until_all();
  const Outcome result = request->outcome;
  engine.give_request(request);
  return result;
}

}  // namespace headway::collectives
