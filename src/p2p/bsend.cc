#include "p2p/bsend.h"

#include <new>

#include "base/check.h"
#include "base/heap.h"
#include "base/list.h"
#include "objects/session.h"
#include "waiting/holding.h"

namespace headway::p2p {
namespace {

using protocols::Engine;

// One message in a buffer.
struct Block {
  Block* list_next = nullptr;
  Block* list_prev = nullptr;
  Engine* engine;
  SendBuffer* buffer;
  char* memory;
  uint64_t size;
  Request* user = nullptr;  // persistent request that is done when the bytes are copied
};

}  // namespace

struct SendBuffer {
  char* memory;  // null: automatic
  uint64_t size;
  base::List<Block> blocks;     // in order of address
  base::List<Request> flushes;  // complete when it is empty
};

namespace {

constinit SendBuffer* of_process = nullptr;
constexpr int any_tag_of_user = -2;  // MPI_ANY_TAG, for a status without a message

SendBuffer*& slot_of(void** place) {
  return place ? reinterpret_cast<SendBuffer*&>(*place) : of_process;
}

// The communicator's own, else that of the session it comes from, else the process's.
SendBuffer* buffer_for(objects::Comm* comm) {
  if (comm->buffer) return slot_of(&comm->buffer);
  objects::Session* session = comm->group->session;
  return session && session->buffer ? slot_of(&session->buffer) : of_process;
}

uint64_t round(uint64_t n) { return (n + 15) & ~uint64_t(15); }

// First gap that fits. Null if there is none.
Block* take_block(SendBuffer& buffer, uint64_t bytes) {
  auto* block = static_cast<Block*>(base::heap_allocate(sizeof(Block)));
  if (!block) return nullptr;
  new (block) Block{};
  block->buffer = &buffer;
  block->size = round(bytes ? bytes : 1);
  if (!buffer.memory) {
    block->memory = static_cast<char*>(base::heap_allocate(block->size));
    if (block->memory) {
      buffer.blocks.push_back(block);
      return block;
    }
    base::heap_free(block, sizeof *block);
    return nullptr;
  }
  char* at = buffer.memory;
  Block* next = buffer.blocks.first();
  while (next && uint64_t(next->memory - at) < block->size) {
    at = next->memory + next->size;
    next = next->list_next;
  }
  // The last block may do without the rounding.
  if (!next && bytes > buffer.size - uint64_t(at - buffer.memory)) {
    base::heap_free(block, sizeof *block);
    return nullptr;
  }
  block->memory = at;
  if (!next) {
    buffer.blocks.push_back(block);
  } else if (next == buffer.blocks.first()) {
    buffer.blocks.push_front(block);
  } else {
    buffer.blocks.insert_before(next, block);
  }
  return block;
}

// Engine held.
void await_empty(waiting::Waiter& waiter, SendBuffer& buffer) {
  waiter.until([&buffer] { return buffer.blocks.empty(); }, nullptr);
}

void block_sent(Request* request) {
  auto* block = static_cast<Block*>(request->owner);
  SendBuffer& buffer = *block->buffer;
  Engine* engine = block->engine;
  buffer.blocks.remove(block);
  if (!buffer.memory) base::heap_free(block->memory, block->size);
  base::heap_free(block, sizeof *block);
  engine->give_request(request);
  if (!buffer.blocks.empty()) return;
  while (Request* flush = buffer.flushes.pop_front()) engine->complete(flush, Outcome::ok);
}

// Copies and starts one message; engine held.
Outcome send_copy(waiting::Waiter& waiter, const UserMemory& memory, const Address& to) {
  Engine& engine = waiter.engine;
  SendBuffer* buffer = buffer_for(to.comm);
  if (!buffer) return Outcome::bad_argument;
  Block* block = take_block(*buffer, memory.bytes());
  if (!block) {
    waiter.glance();  // what has left meanwhile makes room
    block = take_block(*buffer, memory.bytes());
  }
  if (!block) return Outcome::bad_argument;
  const uint64_t bytes = memory.bytes();
  const UserMemory kept(block->memory, bytes);
  waiter.open(memory, kept);
  if (bytes) memory.read(0, block->memory, bytes);
  Request* request = make_send(engine, kept, to, Mode::buffered);
  if (!request) {
    buffer->blocks.remove(block);
    if (!buffer->memory) base::heap_free(block->memory, block->size);
    base::heap_free(block, sizeof *block);
    return Outcome::no_memory;
  }
  request->held_by_user = false;
  request->owner = block;
  block->engine = &engine;
  request->notify = block_sent;
  engine.start_send(request);
  return Outcome::ok;
}

}  // namespace

Outcome send_buffered(waiting::Waiter& waiter, const UserMemory& memory, const Address& to) {
  const waiting::Holding holding(waiter.engine);
  return send_copy(waiter, memory, to);
}

void restart_buffered(waiting::Waiter& waiter, Request* request) {
  auto* comm = static_cast<objects::Comm*>(request->communicator);
  request->started = true;
  request->outcome =
      send_copy(waiter, request->memory, {comm, request->status_source, request->key.tag});
  request->done.store(1, std::memory_order_release);
}

Outcome attach_buffer(waiting::Waiter& waiter, void** place, void* memory, uint64_t size) {
  auto* buffer = static_cast<SendBuffer*>(base::heap_allocate(sizeof(SendBuffer)));
  if (!buffer) return Outcome::no_memory;
  new (buffer) SendBuffer{static_cast<char*>(memory), size, {}, {}};
  bool taken = false;
  {
    const waiting::Holding holding(waiter.engine);
    SendBuffer*& slot = slot_of(place);
    taken = slot != nullptr;
    if (!taken) slot = buffer;
  }
  if (taken) base::heap_free(buffer, sizeof *buffer);
  return taken ? Outcome::bad_argument : Outcome::ok;
}

Outcome flush_buffer(waiting::Waiter& waiter, void** place) {
  const waiting::Holding holding(waiter.engine);
  if (SendBuffer* buffer = slot_of(place)) await_empty(waiter, *buffer);
  return Outcome::ok;
}

Request* start_flush(waiting::Waiter& waiter, void** place) {
  Engine& engine = waiter.engine;
  const waiting::Holding holding(engine);
  Request* request = engine.take_request();
  if (request) {
    request->held_by_user = true;
    request->status_source = matching::any;
    request->status_tag = any_tag_of_user;
    request->sent_bytes = 0;
    request->peer = nullptr;
    engine.begin(*request);
    engine.set_stage(*request, protocols::Stage::running);
    SendBuffer* buffer = slot_of(place);
    if (buffer && !buffer->blocks.empty()) {
      buffer->flushes.push_back(request);
    } else {
      engine.complete(request, Outcome::ok);
    }
  }
  return request;
}

Outcome detach_buffer(waiting::Waiter& waiter, void** place, void*& memory, uint64_t& size,
                      bool& automatic) {
  SendBuffer* buffer;
  {
    // In one hold, or another thread's message might lie in it when it goes.
    const waiting::Holding holding(waiter.engine);
    buffer = slot_of(place);
    if (!buffer) return Outcome::bad_argument;
    await_empty(waiter, *buffer);
    slot_of(place) = nullptr;
  }
  HEADWAY_CHECK(buffer->blocks.empty() && buffer->flushes.empty());
  memory = buffer->memory;
  size = buffer->size;
  automatic = !buffer->memory;
  base::heap_free(buffer, sizeof *buffer);
  return Outcome::ok;
}

void finish_buffers(waiting::Waiter& waiter) {
  void* memory;
  uint64_t size;
  bool automatic;
  if (of_process) (void)detach_buffer(waiter, nullptr, memory, size, automatic);
}

}  // namespace headway::p2p
