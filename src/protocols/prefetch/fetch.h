// Fetches: the receiver's side of prefetching. Asks for the message that it waits for before it is
// sent, keeps aside what comes of it, and gives a receive what its send confirms; and has long
// messages come that nobody waits for yet. Nothing of it is put into the receive's buffer before: a
// shorter message leaves the bytes beyond it alone. Source: message-prefetching paper, section 2.2.
// Thread: holder of the engine. Owner: the engine. Invariants: one request for an origin at a time;
// what is kept takes at most HEADWAY_PREFETCH_MAX bytes, and while a message is put into its place
// also what the next one takes.
#pragma once
#include <cstdint>

#include "base/check.h"
#include "base/pool.h"
#include "protocols/frames.h"
#include "protocols/messages/arrived.h"
#include "protocols/peer.h"
#include "protocols/prefetch/prefetch.h"
#include "protocols/prefetch/presend.h"
#include "protocols/request.h"

namespace headway::protocols {

class Messages;

class Fetches {
 public:
  Fetches(Messages& messages, const Presends& presends)
      : messages_(messages), presends_(presends) {}
  void add_frames(Frames& frames);

  // Its user waits for that receive, or has gone on without it: what its sender has ready of the
  // message is asked for, if it is known from where it will come.
  void note_wait(Request* receive) {
    if (receive->stage() == Stage::posted && receive->peer &&
        receive->peer->can(transports::early) && presends_.is_on() && !receive->key.is_wild())
        [[unlikely]] {
      ask_early(receive);
    }
  }

  // --- envelopes ---
  // What an envelope tells of what came before it. False: it makes no sense. `store`: what came of
  // its message, or null.
  bool note_envelope(Peer& peer, const Told& told, Store*& store);
  // The same of an eager message; those of this node have no origins.
  bool note_eager(Peer& peer, const FrameHeader& header);
  // A message that was sent from there has been matched. `store`: what came of it early, or null;
  // `waited`: there was no receive when its envelope came.
  void note_origin(Request* receive, uint32_t origin, const Store* store, bool waited = false);

  // --- what the send has confirmed ---
  static bool holds_all(const Store& store, uint64_t total);
  // All of the message has come: the receive is complete.
  void land_store(Request* receive, Store* store);
  // Some of it has come. The rest is about to be asked for, with the pages of the stream as they
  // are now: what lies in whole ones of these goes to its place, and does not come again.
  void land_some(Request* receive, Store* store);
  // Before that: which pages a message without edges comes in. Unless its own are to
  // open one by one, they are the sender's: otherwise some of each run would come again.
  void choose_pages(Request* receive, const Grid& grid, bool opens);
  void drop_store(Store* store);

  // --- unexpected messages (fetch_unexpected.cc) ---
  // Of a handshake that nobody waits for. What had come of it before its send goes with it.
  void fetch(Arrived* message);
  // Any that something came of before its time is received, or thrown away.
  void note_given(const Arrived& message);

 private:
  enum class Answer : uint8_t { message, not_now, never };  // to a request

  void ask_early(Request* receive);
  Prediction* prediction_of(const Request& receive);
  Prediction* prediction_of(const Store& store);
  Prediction* prediction_for_any(const matching::Key& key, matching::Traffic traffic,
                                 uint32_t peer);
  static bool is_hurried(const Store& store, const Prediction& known);
  void ask_for_next(const Request& receive, const Prediction& known,
                    const Store* leaving = nullptr);
  void tell_wanted(const Store& store, bool yes);
  void withdraw_oldest();
  static Store* store_of(Peer& peer, uint32_t origin);
  Store* make_store(uint64_t size, const Store* leaving);
  void end_asking(Store* store, Answer answer);
  [[gnu::cold]] static void tell_prefetch(const Store& store, uint64_t spared_ns);
  static Store* place_early(Peer& peer, const FrameHeader& header);
  void note_early(Store* store, const FrameHeader& header);
  bool deliver_presend(Peer& peer, const FrameHeader& header, const char* body);
  bool deliver_refuse(Peer& peer, const FrameHeader& header, const char*);
  bool begin_presend(Peer& peer, const FrameHeader& header, Landing& landing);
  void end_presend(uint32_t from, const FrameHeader& header, const Landing& landing);
  bool deliver_confirm(Peer& peer, const FrameHeader& header, const char* body);
  static bool take_told(Store& store, const Told& told);
  static bool has_kept(const Store& store, const Grid& grid, uint64_t page, int64_t shift);
  void land_early(Request* receive, const Store& store, uint64_t from, uint64_t n);
  bool may_fetch(const Arrived& message) const;
  void end_fetch(Request* fetch);

  Messages& messages_;
  const Presends& presends_;  // off: requests are not made either
  Predictions predictions_;
  base::Pool<Store> stores_;
  uint64_t stored_bytes_ = 0;
};

}  // namespace headway::protocols
