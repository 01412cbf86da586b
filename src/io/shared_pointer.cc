#include "io/shared_pointer.h"

#include <new>

#include "base/check.h"
#include "base/heap.h"
#include "io/counters.h"
#include "p2p/p2p.h"
#include "waiting/holding.h"

namespace headway::io {

using protocols::Request;
using protocols::UserMemory;

namespace {

constexpr int question_tag = 1, first_answer_tag = 2;
constexpr int32_t answer_tags = 1 << 24;  // so many of one rank may be under way

}  // namespace

// A question of ours under way: its message and the answer's receive.
struct SharedPointer::Ask {
  SharedPointer* of;
  Told told;
  void* context;
  Question question;
  int64_t before;
  uint32_t left;
  Outcome outcome;
};

// On its way to who has asked. The file may be closed before its send is over.
struct SharedPointer::Answer {
  protocols::Engine* engine;
  int64_t before;
};

bool SharedPointer::open(protocols::Engine& engine, objects::Comm* comm) {
  engine_ = &engine;
  comm_ = comm;
  if (!is_here() || comm->own.size == 1) return true;
  const waiting::Holding holding(engine);
  listen();
  return listening_ != nullptr;
}

void SharedPointer::close() {
  closed_ = true;
  if (listening_) engine_->cancel(listening_);
}

// Questions that have come already are answered as soon as the receive for them is posted: a loop,
// not a recursion.
void SharedPointer::listen() {
  if (in_listen_) {
    again_ = true;
    return;
  }
  in_listen_ = true;
  do {
    again_ = false;
    if (!closed_ && !post()) break;
  } while (again_);
  in_listen_ = false;
}

bool SharedPointer::post() {
  Request* request = p2p::make_receive(*engine_, UserMemory(&question_, sizeof question_),
                                       {comm_, matching::any, question_tag});
  if (!request) return false;
  request->held_by_user = false;
  request->notify = asked;
  request->owner = this;
  listening_ = request;
  engine_->start_receive(request);
  return true;
}

void SharedPointer::asked(Request* request) {
  auto& self = *static_cast<SharedPointer*>(request->owner);
  const bool cancelled = request->cancelled;
  const int from = request->status_source;
  const Question question = self.question_;
  self.listening_ = nullptr;
  self.engine_->give_request(request);
  if (cancelled) return;
  self.answer(from, question);
  self.listen();
  if (!self.in_listen_ && !self.listening_ && !self.closed_) self.no_answer(from);
}

// Who asks would wait for ever: so the job ends, and says why.
void SharedPointer::no_answer(int rank) {
  engine_->links().lost(comm_->own.process(rank), Outcome::no_memory,
                        "the shared pointer of a file cannot be told");
}

void SharedPointer::answer(int rank, const Question& question) {
  const int64_t before = add_here(question.by);
  auto* said = static_cast<Answer*>(base::heap_allocate(sizeof(Answer)));
  if (!said) return no_answer(rank);
  *said = {engine_, before};
  Request* request = p2p::make_send(*engine_, UserMemory(&said->before, sizeof said->before),
                                    {comm_, rank, int(question.tag)}, protocols::Mode::standard);
  if (!request) {
    base::heap_free(said, sizeof *said);
    return no_answer(rank);
  }
  request->held_by_user = false;
  request->notify = answered;
  request->owner = said;
  protocols::Peer& peer = *request->peer;
  engine_->start_send(request);
  engine_->links().rouse(peer);
}

void SharedPointer::answered(Request* request) {
  auto* said = static_cast<Answer*>(request->owner);
  said->engine->give_request(request);
  base::heap_free(said, sizeof *said);
}

void SharedPointer::add(int64_t by, Told told, void* context) {
  if (is_here()) {
    told(context, Outcome::ok, add_here(by));
    return;
  }
  count(counters.shared_asks);
  const int tag = first_answer_tag + next_tag_;
  next_tag_ = (next_tag_ + 1) % answer_tags;
  void* memory = base::heap_allocate(sizeof(Ask));
  Ask* ask = nullptr;
  if (memory) ask = new (memory) Ask{this, told, context, {by, tag}, 0, 2, Outcome::ok};
  Request* receive = ask ? p2p::make_receive(*engine_, UserMemory(&ask->before, sizeof ask->before),
                                             {comm_, 0, tag})
                         : nullptr;
  Request* send = receive ? p2p::make_send(*engine_, UserMemory(&ask->question, sizeof(Question)),
                                           {comm_, 0, question_tag}, protocols::Mode::standard)
                          : nullptr;
  if (!send) {
    if (receive) engine_->give_request(receive);
    base::heap_free(memory, sizeof(Ask));
    told(context, Outcome::no_memory, 0);
    return;
  }
  for (Request* request : {receive, send}) {
    request->held_by_user = false;
    request->notify = part_done;
    request->owner = ask;
  }
  protocols::Peer& peer = *send->peer;
  engine_->start_receive(receive);
  engine_->start_send(send);
  engine_->links().rouse(peer);
}

void SharedPointer::part_done(Request* request) {
  auto* ask = static_cast<Ask*>(request->owner);
  if (request->outcome != Outcome::ok) ask->outcome = request->outcome;
  ask->of->engine_->give_request(request);
  if (--ask->left > 0) return;
  const Ask over = *ask;
  base::heap_free(ask, sizeof *ask);
  over.told(over.context, over.outcome, over.before);
}

}  // namespace headway::io
