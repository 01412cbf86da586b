// Streams: messages that come in frames, and in which order. Their edges first; the rest when its
// turn has come, if the link is slow (grants.cc); a page that somebody waits for before others
// (demand.cc); the line of copies of sends (line.cc); how much of one is worth a wake-up
// (expect.cc). Thread: holder of the engine. Owner: the engine. Invariant: what is withheld goes
// before the others when a user waits for it, at once when a page of it is touched, and is granted
// when nothing before it is left to come.
#pragma once
#include <algorithm>
#include <cstdint>

#include "base/list.h"
#include "protocols/frames.h"
#include "protocols/peer.h"
#include "protocols/request.h"
#include "protocols/transfer.h"
#include "protocols/ways/spare.h"

namespace headway::protocols {

class Core;
class OneCopy;

class Streams {
 public:
  static constexpr int most_copies = 4;  // side by side

  Streams(Core& core, OneCopy& one_copy);
  // So many closed pages are opened at once; 0: as the link suggests.
  void prepare(uint64_t batch_pages) { batch_pages_ = batch_pages; }
  void add_frames(Frames& frames);

  // Sends data frames of the messages that were asked for, while there is room. True if any left.
  bool stream_some(Peer& peer);

  // A thread that has waited goes on, or is about to sleep: what is streamed between the two latter
  // is enough for longer.
  bool has_spared() const { return spare_.has_spared(); }
  void thread_goes() { spare_.thread_goes(); }
  void thread_is_gone() { spare_.thread_is_gone(); }

  // A receive whose message comes over a transport that brings bytes in place, until its end.
  void begin_stream(Request* receive);
  // It is complete; or a send is whose rest was not granted.
  void end_stream(Request* request);
  // A frame of data begins to come in. False: not these bytes, or not now.
  static bool may_come(Transfer& transfer, const FrameHeader& header);

  // Before its clear-to-send, of one whose pages may be closed: whether the rest of the message
  // waits for a grant.
  bool withhold(Request* receive);
  // To be told with what asks for it: how many ranks, up to `most_copies`, send to this one now,
  // its sender among them; and what was told.
  int32_t sharers_of(const Request& receive) const;
  static uint8_t sharers_in(const FrameHeader& header) {
    return uint8_t(std::clamp<int32_t>(header.source, 1, most_copies));
  }
  // Its user has gone on without it: its turn is a later one.
  void note_gone(const Request* receive) {
    if (withheld_) [[unlikely]]
      change_turn(receive);
  }
  // Its user begins to wait for it: its turn is a sooner one, and may have come.
  void note_wait(const Request* receive) {
    if (!withheld_) [[likely]]
      return;
    change_turn(receive);
    grant_turns();
  }
  // Whatever may have changed whose turn it is: those whose turn has come are granted.
  void grant_next() {
    if (withheld_) [[unlikely]]
      grant_turns();
  }
  // This rank looks for whatever has come, and may look at any of them.
  void note_look() {
    if (withheld_) [[unlikely]]
      grant_open();
  }
  // Of all receives with closed pages: whose page this is, which is awaited, is asked for it.
  void ask_for_awaited(const char* page);

  // Before the message thread sleeps. `is_awaited`: somebody waits for a closed page.
  void before_sleep(bool is_awaited) {
    if (!landings_.empty()) expect_streams(is_awaited);
  }
  // A rank inside MPI looks at everything, past the marks too.
  void look_again() { overlooks_ = expects_; }
  bool overlooks() const { return overlooks_; }
  // The links that have a mark, past the epoll that does not tell of them. True if anything moved.
  bool look_at_expected();

  // A frame of data. The engine calls it past the table of kinds.
  bool deliver_data(Peer& peer, const FrameHeader& header, const char* body);

 private:
  bool begin_data(Peer& peer, const FrameHeader& header, Landing& landing);
  void data_landed(const FrameHeader& header, const Landing& landing, uint64_t arrived);
  void end_data(uint32_t from, const FrameHeader& header, const Landing& landing);
  // ways/grants.cc
  Request* next_granted();
  void line_up(Turn& turn, Need need);
  void change_turn(const Request* receive);
  void grant_turns();
  uint32_t count_withheld() const;  // for checks: it looks at all
  void grant(Request* receive);
  void grant_open();
  bool deliver_grant(Peer& peer, const FrameHeader& header, const char*);
  // ways/demand.cc
  bool ask_for(Request* receive, const char* page);
  bool deliver_demand(Peer& peer, const FrameHeader& header, const char*);
  // ways/expect.cc
  void expect_streams(bool is_awaited);
  uint64_t batch_of(const Request& receive, bool is_awaited) const;
  // ways/line.cc
  void queue_copy(Request* send);
  void put_back(Request* send);
  void take_from_line();
  void copy_is_gone(const Request* send);
  bool goes_now(const Request* send) const;

  Core& core_;
  OneCopy& one_copy_;
  Spare spare_;
  uint64_t batch_pages_ = 0;
  base::List<Request> landings_;  // streams that come in place
  uint32_t withheld_ = 0;         // of them
  // Of all of them, by need; of what is withheld in the order of the receives.
  base::List<Turn> turns_[int(Need::ending) + 1];
  uint32_t expect_round_ = 0;
  bool expects_ = false;                   // expect_streams() has set marks
  bool overlooks_ = false;                 // and what lies below them is to be seen again
  Request* copies_now_[most_copies] = {};  // that stream, each to another peer
  base::List<Request> copies_cleared_;     // the others, in the order of their sends
};

}  // namespace headway::protocols
