// Presends: the sender's side of prefetching. Sends pages of a buffer before the send that was
// asked for, as soon as they look final, and tells with the send which of them are as they were.
// Source: message-prefetching paper, section 2.2. Thread: holder of the engine. Owner: the engine.
// Invariants: nothing is sent that the program has not sent to that peer before; a page that was
// written since is never confirmed.
#pragma once
#include <cstdint>

#include "base/list.h"
#include "base/vec.h"
#include "guard/versions.h"
#include "protocols/beside.h"
#include "protocols/frames.h"
#include "protocols/peer.h"
#include "protocols/prefetch/prefetch.h"
#include "protocols/request.h"

namespace headway::protocols {

class Core;

class Presends {
 public:
  Presends(Core& core, base::Pool<Request>& requests) : core_(core), rows_(requests) {}
  // HEADWAY_PREFETCH. Off, too, where writes into what is sent cannot be seen: that is told to
  // whoever has asked for it. `mechanism`: which closes pages here, or null.
  void start(guard::Mechanism* mechanism);
  // Watches no memory any more, for good.
  void stop();
  // This rank has nothing left to send: whoever asked is told so. Until wake().
  void rest();
  void wake() { may_prefetch_ = prefetches_again_; }
  bool is_on() const { return may_prefetch_; }
  void add_frames(Frames& frames);

  // --- a send ---
  // It is about to start: where it comes from is noted, and what of it came early is to be
  // confirmed.
  void note_send(Request* send);
  // The same of one that leaves without a request; `envelope` is told where it comes from. False:
  // it is to have one, since its buffer is followed.
  bool note_sent_now(Peer& peer, FrameHeader& envelope, const char* address, uint64_t bytes);
  // The buffer that it comes from, by its number; 0: it has none.
  uint32_t origin_of(const Request& send) const {
    const Row* row = rows_.find(send);
    return row ? row->origin : 0;
  }
  // It was asked for before.
  bool was_asked(const Request& send) const { return confirm_of(send) != nullptr; }
  // Its message is to be received whole from what came early: then push_confirm() sends its
  // envelope.
  bool confirms_all(const Request& send) const;
  Push push_confirm(Request* send, FrameHeader& header);
  // Else what came early is told behind its RequestSend, in the bytes that this gives.
  uint32_t tell_confirmed(const Request& send, char* out) const;
  // Its receiver has asked for the rest; false: that makes no sense beside what was confirmed.
  bool fits_confirmed(const Request& send, const ClearSend& clear) const;
  // The rest goes without it. False without memory, which ends the job.
  bool leave_out_confirmed(Request* send);
  // It is complete.
  void end_confirm(Request* send);
  // It is cancelled before its envelope has left.
  void take_back(const Request& send) {
    if (was_asked(send)) refuse(*send.peer, origin_of(send), false);
  }
  // The peer has asked for what will not be sent early now, or never will be.
  void refuse(Peer& peer, uint32_t origin, bool for_good);

  // --- what is sent early ---
  bool is_asked() const { return !asked_.empty(); }
  // One turn: looks at what was asked for, and sends a page. True if anything moved.
  bool presend_some();
  uint32_t next_look_us() const;
  // A thread that has waited goes back to the program, and may write.
  void end_wait() {
    if (looks_seldom_) [[unlikely]]
      look_often();
  }
  // Something that was pushed with this cookie has left. False: it is none of ours.
  bool note_left(uint64_t cookie);
  // A send was announced to a peer of another host.
  void note_announced(Peer& peer, const Request& send) {
    if (watched_) [[unlikely]]
      expect_answer(peer, send);
  }
  // Buffers are followed: the engine listens for requests then, which counts as an operation.
  bool follows() const { return watched_ != 0; }
  // Our own system calls write there. The engine is held: no look comes before they do.
  bool make_writable(const char* from, size_t n) { return versions_.make_writable(from, n); }
  const guard::Versions::Counters& tracked() const { return versions_.counters; }

 private:
  // Beside a send from a buffer that is known.
  struct Row {
    uint32_t origin = 0;         // its number (Origins)
    Confirm* confirm = nullptr;  // what of the message came before, if it was asked for
  };
  Confirm* confirm_of(const Request& send) const {
    const Row* row = rows_.find(send);
    return row ? row->confirm : nullptr;
  }
  // What of it came before, if any did.
  Confirm* told_of(const Request& send) const {
    Confirm* confirm = confirm_of(send);
    return confirm && confirm->has_any() ? confirm : nullptr;
  }

  Origin* origin_at(Peer& peer, matching::Traffic traffic, const char* address, uint64_t bytes);
  static void note_period(Origin& origin);
  [[nodiscard]] static bool take_records(Origin& origin);
  static void give_records(Origin& origin);
  void move_origin(Origin& origin, const char* address, uint64_t size);
  bool may_watch() const;
  bool watch(Origin& origin);
  void count_as_sent(Origin& origin);
  void leave_alone(Origin& origin);
  uint32_t version_of(const Origin& origin, uint64_t page) const;
  bool deliver_prefetch(Peer& peer, const FrameHeader& header, const char*);
  void end_asked(Origin& origin);
  static void keep_wary(const Origin& from, const Origin& to);
  void begin_asked(Origin& origin);
  void take_up(Origin& origin);
  bool presend_piece(Peer& peer, Origin& origin);
  Confirm* confirm_origin(Origin& origin, const char* address, uint64_t size);
  // looks.cc
  void begin_looks(Origin& origin);
  bool look_again(Origin& origin, uint64_t now);
  void look_often();
  static uint64_t calm_of(const Origin& origin, uint64_t page);
  static bool is_final(const Origin& origin, uint64_t page);
  static void be_patient(Origin& origin);
  static void halve_calm(Origin& origin);
  void learn_calm(Origin& origin, const Confirm& confirm, uint64_t again);
  // confirm.cc
  Confirm* make_confirm(const Origin& origin, const Grid& grid, int64_t shift);
  static void confirm_page(Confirm& confirm, const Grid& asked, uint64_t page);
  static void coarsen(Confirm& confirm);
  Push push_rest(const Request& send);
  // leaving.cc
  void listen(bool on);
  void note_pushed(Peer& peer, const FrameHeader& header);
  void note_leaving(Peer& peer, uint64_t bytes);
  void expect_answer(Peer& peer, const Request& send);
  uint64_t others_leave(uint64_t now);

  static constexpr uint64_t most_rest_ns = 50'000'000;  // between two looks while nothing changes

  Core& core_;
  Beside<Row, Mark::presend> rows_;
  bool may_prefetch_ = false;
  bool prefetches_again_ = false;  // after a rest
  bool presending_ = false;        // early_piece_ is on its way
  bool looks_seldom_ = false;      // at some origin
  uint64_t nothing_until_ = 0;  // ns: before it no look is due, and no page waits to be sent early
  base::Vec<Peer*> draining_;   // by whose links messages leave
  struct {
    const char* address = nullptr;
    uint64_t size = 0;
    uint64_t at = 0;      // ns
  } look_;                // the last one at a buffer that was asked for
  uint32_t watched_ = 0;  // origins
  guard::Versions versions_;
  Origins origins_;
  base::List<Origin> asked_;  // whose turn is next comes first
  char* early_piece_ = nullptr;
};

}  // namespace headway::protocols
