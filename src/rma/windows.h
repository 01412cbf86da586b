// Windows: all windows of this process by number, and the frames about them: each is carried out
// when it comes, by whoever holds the engine, so by the message thread while the program computes.
// Thread: holder of the engine. Owner: the room; there is one. Invariants: a frame names a window
// that is open here and comes from a rank of it, or it is garbage; frames of one origin are carried
// out in the order in which they were sent.
#pragma once
#include <cstdint>

#include "base/counter.h"
#include "base/vec.h"
#include "protocols/messages/messages.h"
#include "rma/carry_out.h"
#include "rma/window.h"

namespace headway::rma {

struct Counters {
  base::Counter begun;    // operations of this rank
  base::Counter direct;   // those that it carried out itself in the target's memory
  base::Counter served;   // frames of operations that were carried out for others
  base::Counter refused;  // of those, the ones whose memory was not in the window
};

class Windows {
 public:
  // Its frames get their kinds. Before the first frame comes. `may_copy`: the system may copy
  // between the memory of two processes (Far).
  void prepare(protocols::Messages& engine, bool may_copy);
  protocols::Messages& engine() const { return *engine_; }
  bool may_copy() const { return may_copy_; }

  // A number for the window, which frames may name from now on. False without memory.
  [[nodiscard]] bool add(Window& window);
  void remove(Window& window);
  uint32_t count() const { return count_; }

  // The peer behind a target; null: no memory.
  protocols::Peer* peer_of(Target& target) const;
  // Puts a small operation without an answer beside those that leave together. False: without
  // memory, or if it is too long for that.
  bool batch(Target& target, Kind kind, int32_t tag, const Run* runs, uint32_t count,
             const char* data, uint64_t bytes);
  // Those that wait for others to leave with leave now.
  void send_batch(Target& target);
  // The same as the body of a frame, which somebody carries out instead: its length.
  uint32_t take_batch(Target& target, char (&body)[most_body]);
  // A frame to a target's window, behind these. What finds no room waits in a copy.
  void send(Target& target, Kind kind, FrameHeader header, const void* body = nullptr);

  Counters counters;

 private:
  struct Slot {
    Window* window;
    uint32_t generation;
  };
  static constexpr uint32_t index_bits = 16;
  static constexpr uint32_t most_windows = 1u << index_bits;

  // Whose frame it is: the sender, as the window's rank. Null: garbage.
  Target* find(const protocols::Peer& peer, const FrameHeader& header) const;
  void reply(protocols::Peer& peer, FrameHeader header, const void* body);
  bool note(Carried carried);
  bool finish(Target& origin, Carried carried);
  bool answer(Target& origin, const Places& places, Carried carried, const char* out);
  void tell_flushed(Target& origin);
  void tell_waiters() { engine_->handoff().came_far(); }

  bool take_put(protocols::Peer& peer, const FrameHeader& header, const char* body);
  bool take_get(protocols::Peer& peer, const FrameHeader& header, const char* body);
  bool take_accumulate(protocols::Peer& peer, const FrameHeader& header, const char* body);
  bool take_swap(protocols::Peer& peer, const FrameHeader& header, const char* body);
  bool take_answer(protocols::Peer& peer, const FrameHeader& header, const char* body);
  bool take_flush(protocols::Peer& peer, const FrameHeader& header, const char*);
  bool take_flushed(protocols::Peer& peer, const FrameHeader& header, const char*);
  bool take_lock(protocols::Peer& peer, const FrameHeader& header, const char*);
  bool take_locked(protocols::Peer& peer, const FrameHeader& header, const char*);
  bool take_unlock(protocols::Peer& peer, const FrameHeader& header, const char*);
  bool take_post(protocols::Peer& peer, const FrameHeader& header, const char*);
  bool take_complete(protocols::Peer& peer, const FrameHeader& header, const char*);
  bool take_look(protocols::Peer& peer, const FrameHeader& header, const char*);
  void tell_locked(Window& window, uint32_t rank) { send(window.targets[rank], Kind::locked, {}); }

  protocols::Messages* engine_ = nullptr;
  base::Vec<Slot> slots_;
  uint32_t count_ = 0;
  bool may_copy_ = false;
};

// The one of this process, from start() on: once, before the engine takes its first frame.
Windows& windows();
void start(protocols::Messages& engine, bool may_copy);

}  // namespace headway::rma
