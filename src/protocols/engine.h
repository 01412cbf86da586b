// Engine: moves messages between this process and its peers: matching, eager messages, handshakes,
// streams and one-copy transfers. Thread: every member needs the engine (Handoff::enter), except
// where it says otherwise. Owner: runtime. Invariants: envelopes to one peer leave in the order of
// start_send(); a request is in at most one of the lists below; nothing here calls malloc, stdio
// or user code.
#pragma once
#include <cstdint>

#include "base/check.h"
#include "base/counter.h"
#include "base/list.h"
#include "base/pool.h"
#include "base/vec.h"
#include "guard/choice.h"
#include "guard/dispatch.h"
#include "guard/guard.h"
#include "guard/versions.h"
#include "matching/matcher.h"
#include "progress/handoff.h"
#include "protocols/arrived.h"
#include "protocols/copies/copies.h"
#include "protocols/engine_counters.h"
#include "protocols/frames.h"
#include "protocols/peer.h"
#include "protocols/prefetch.h"
#include "protocols/profit.h"
#include "protocols/reach.h"
#include "protocols/request.h"
#include "protocols/ways/order.h"
#include "protocols/ways/pieces.h"
#include "protocols/wire.h"
#include "settings/options.h"
#include "transports/shm/node.h"
#include "transports/shm/rings.h"
#include "transports/transport.h"

namespace headway::protocols {

// Told when a peer is gone for good or the engine cannot go on; does not return to the engine's
// work (runtime ends the process with the story).
using FatalHandler = void (*)(Outcome why, uint32_t peer, const char* story);

class Engine final : public progress::Work, public transports::Receiver, public guard::Pages {
 public:
  Outcome prepare(const settings::Settings& settings, uint32_t rank, uint32_t size,
                  FatalHandler fatal);
  // Ranks of this node share memory from now on: peers[local_ranks[i]] is number i there.
  Outcome use_node(const uint32_t* local_ranks, uint32_t count);
  // All others are reached by this transport, by their ranks. It has been started.
  Outcome use(transports::Transport& transport);

  Peer& peer(uint32_t rank) { return peers_[rank]; }
  Copies& copies() { return copies_; }
  const Copies& copies() const { return copies_; }
  uint32_t rank() const { return rank_; }
  uint32_t size() const { return size_; }

  // Requests. take() is null without memory.
  Request* take_request() { return requests_.take(); }
  void give_request(Request* request);
  Request* find_request(uint32_t index, uint32_t generation) {
    return requests_.find(index, generation);
  }

  // --- sending ---
  // Now and then before a send from outside the engine: whoever does nothing but send over a socket
  // would never hear that the other side has had enough (unexpected.cc).
  void hear(Peer& peer) {
    if (!peer.on_this_host() && peer.sequence % hear_every == hear_every - 1) [[unlikely]]
      peer.transport->reap_peer(peer.number, reap_budget);
  }
  // The whole message in one frame, now, without a request. False: not possible, nothing was done.
  bool send_now(Peer& peer, const FrameHeader& envelope, const UserMemory& memory);
  // Starts request->memory as a message with request->key (source: own rank in the communicator).
  void start_send(Request* request);
  uint64_t unexpected_bytes() const { return unexpected_bytes_; }
  // --- receiving ---
  // Starts a receive for request->key into request->memory.
  void start_receive(Request* request);
  // A small message that comes at this very moment, without a request. False: look for it in the
  // ordinary way, nothing was done. `bytes`: what it brought.
  bool receive_now(Peer& peer, const matching::Key& key, const UserMemory& memory, uint64_t& bytes);
  // The same for one that lies here already. False, too, if more is to be done than to copy it.
  // `source`, `tag`: whose it is.
  bool receive_arrived(const matching::Key& key, const UserMemory& memory, uint64_t& bytes,
                       int& source, int& tag);
  // The receive of a message that a matched probe took out of the queue.
  void start_matched_receive(Request* request, Arrived* message);
  // The oldest unexpected message with that (maybe wild) key; stays in the queue.
  Arrived* probe(const matching::Key& key);
  // The same, taken out of the queue for a later start_matched_receive().
  Arrived* take_message(const matching::Key& key);
  Arrived* find_message(uint32_t index, uint32_t generation) {
    return arrived_.find(index, generation);
  }
  // Takes a receive or send back if it still can; it is complete then, and marked cancelled. A send
  // may first ask its peer: its request completes either way.
  void cancel(Request* request);

  // A request is under way from begin() to complete(); both are the only ways.
  void begin(Request& request) {
    HEADWAY_CHECK(request.taken && request.stage() == Stage::idle);
    ++handoff.pending;
    request.done.store(Done::no, std::memory_order_relaxed);
    request.outcome = Outcome::ok;
  }
  void complete(Request* request, Outcome outcome);
  void set_stage(Request& request, Stage next) {
    HEADWAY_CHECK(may_follow(request.stage_, next));
    --stages_[size_t(request.stage_)];
    ++stages_[size_t(next)];
    request.stage_ = next;
  }
  uint32_t in_stage(Stage stage) const { return stages_[size_t(stage)]; }

  // --- early release (release.cc) ---
  // A receive is matched, and so much of it is still to come that its user had better not wait.
  bool is_ready(const Request* receive) const {
    return may_release_ &&
           (receive->region ? receive->stage() != Stage::posted : is_worth_closing(*receive));
  }
  // What has not arrived of a ready receive is closed to the program. False: wait for it. `whole`:
  // the schedule of which it is a step, and which does nothing but receive any more.
  bool close_rest(Request* receive, const Request* whole = nullptr) {
    return receive->region || close_now(receive, whole);
  }
  // The user may go on from what has been closed. Source, tag and count are in the request.
  void let_user_go(Request* request);
  bool may_release() const { return may_release_; }
  // This thread begins to wait for that receive, at base::call_site.
  void note_wait(Request* receive) {
    receive->awaited = true;
    if (withheld_) [[unlikely]]
      grant_next();
    if (learns_) [[unlikely]]
      learn_site(receive);
    prefetch(receive);
  }
  // This thread looks what has come, and does not wait.
  void note_look() {
    if (withheld_) [[unlikely]]
      grant_open();
  }

  // --- prefetching (fetch.cc, presend.cc) ---
  // Its user waits for that receive, or has gone on without it: what its sender has ready of the
  // message is asked for, if it is known from where it will come.
  void prefetch(Request* receive) {
    if (may_prefetch_ && receive->kind == RequestKind::receive &&
        receive->stage() == Stage::posted && receive->peer &&
        receive->peer->can(transports::early) && !receive->key.is_wild()) [[unlikely]] {
      ask_early(receive);
    }
  }
  bool prefetches() const { return may_prefetch_; }
  void stop_prefetching();
  const guard::Versions::Counters& tracked() const { return versions_.counters; }

  // Before its match: the same for a posted receive. All its pages are closed, those of its edges
  // too, and the posted receives that share pages with it are closed with it.
  bool may_foresee() const { return may_foresee_; }
  const Profit& profit() const { return profit_; }
  const guard::TrapCounters& traps() const { return dispatch_.counters(); }
  uint64_t patience_us() const { return release_us_; }
  bool is_foreseeable(const Request* receive) const;
  // No other thread, shared memory or operation that needs this thread could notice.
  bool is_alone();
  // False: wait for its match.
  bool foresee(Request* receive);
  // Before that, what the same call waits for: a receive that it does not wait for may depend on
  // what the program does next, and must not keep a page closed.
  void begin_wait() { ++wait_; }
  void waits_for(Request* receive) { receive->wait = wait_; }
  // Released receives that have no message yet. While there are any, nothing may leave this process
  // that was not begun before (section 2.5 of the paper).
  uint32_t unseen() const { return unseen_.load(std::memory_order_acquire); }

  // guard::Pages: asked by trapped system calls, on application threads, without the engine.
  bool is_closed(const void* from, size_t n) override { return guard.is_closed(from, n); }
  void await_open(const void* from, size_t n) override;
  bool is_unmatched() override { return unseen() != 0; }
  void await_matched() override;
  void await_all() override;
  bool settles() override { return settles_.load(std::memory_order_relaxed); }
  void stop_guard();

  // --- progress ---
  bool advance() override;
  void hand_on() override;
  uint32_t wanted() override;
  void awake() override { overlooks_ = expects_; }
  void thread_begins() override { dispatch_.exempt(); }
  void faults() override { guard.serve(); }
  void hosts() override;
  bool is_awaited() override { return guard.is_awaited(); }
  // The same as advance(), but looks at one peer's ring or socket first (null: all).
  bool advance_for(Peer* peer);
  // True when something could be moved by this thread without waiting for anybody.
  bool has_runnable() const { return !pulls_.empty() || !pushes_.empty(); }

  // What is not finished, for MPI_Finalize and the state dump.
  bool is_idle() const;
  // The same for the operations that have `communicator`, or its point-to-point context. Looks at
  // every request: for rare calls.
  bool is_idle(const void* communicator, uint64_t context) const;
  // Nothing but receives that no message came for.
  bool only_receives_left() const {
    return under_way() == int64_t(in_stage(Stage::posted)) && busy_.empty();
  }
  size_t posted_count() const { return posted.size(); }
  size_t unexpected_count() const { return unexpected.size(); }

  // This rank has nothing left to do in MPI and may end at any time, which is no loss to its peers
  // once is_delivered(); until wake().
  void rest();
  bool is_delivered() const;
  void wake();

  progress::Handoff handoff;
  shm::Node node;
  // The program will not use some wildcards with this context.
  void promise(uint64_t context, bool no_any_source, bool no_any_tag) {
    promises_.note(context, no_any_source, no_any_tag);
  }
  // The communicator with this context and the next one is gone.
  void forget(uint64_t context);

  matching::PostedQueue posted;
  matching::UnexpectedQueue unexpected;
  guard::Guard guard;
  // What may not be closed. Whoever begins an operation has looked, with the engine held, that its
  // memory is open (waiting::Waiter::open).
  Reach reach{requests_};
  EngineCounters counters;
  Frames frames;
  bool crowded = false;  // more ranks than cores on this machine
  // Schedules that want every message to wake the message thread.
  uint32_t schedules = 0;

  // transports::Receiver
  bool frame(uint32_t peer, const FrameHeader& header, const char* body) override;
  bool begin(uint32_t peer, const FrameHeader& header, Landing& landing) override;
  void landed(uint32_t peer, const FrameHeader& header, const Landing& landing,
              uint64_t arrived) override;
  void end(uint32_t peer, const FrameHeader& header, const Landing& landing) override;
  bool make_writable(const char* from, size_t n) override;
  void sent(uint32_t peer, uint64_t cookie) override;
  void unsent(int by) override;
  bool needs(uint32_t peer) override;
  void left(uint32_t peer) override;
  void lost(uint32_t peer, Outcome why, const char* story) override;
  const char* kind_name(uint8_t kind) const override { return frames.name_of(kind); }

 private:
  friend class Copies;
  static constexpr int hot_looks = 128;  // at the ring that a rank waits for
  // The same where the ordinary way has to tell peers twice who is inside.
  static constexpr int hotter_looks = 1024;
  static constexpr uint32_t most_in_a_row = 16;  // receives that look at nothing else
  static constexpr uint64_t release_from = 3 * guard::page_bytes;  // one page inside, surely
  static constexpr uint64_t reap_budget = 1 << 20;  // bytes taken in by one look at a transport
  static constexpr uint32_t most_transports = 3;    // beside shared memory
  static constexpr uint32_t hear_every = 64;        // sends

  // release.cc
  void start_guard();
  bool may_close();
  guard::Region* close(Request* receive, guard::Range range, bool keep);
  bool is_alone_in(Request* receive, guard::Range range, const Request* whole);
  void end_traps();
  static bool has_one_thread();
  void learn_site(Request* receive);
  bool is_profitable(Request* receive, uint64_t bytes);
  void arrived(guard::Region* region, size_t offset, uint64_t n);
  void find_edges(Request* receive, Way way);
  bool is_long_enough(const Request& receive) const;
  void note_received(uint64_t bytes) {
    ++counters.messages_received;
    counters.bytes_received += bytes;
  }
  void note_sent(uint64_t bytes) {
    ++counters.messages_sent;
    counters.bytes_sent += bytes;
  }
  void note_arrival(Request* receive, uint64_t offset, uint64_t n) {
    if (may_foresee_ && !receive->region) ++changes_;
    if (receive->region) [[unlikely]]
      open_pages(receive, offset, n);
  }
  void open_pages(Request* receive, uint64_t offset, uint64_t n);
  void end_release(Request* receive);
  void attach(Request* receive, guard::Region* region);
  void keep_rest(Request* receive, uint64_t from);
  void note_match(Request* receive);
  bool gather_neighbours(Request** members, size_t& count, guard::Range& range);
  static bool has_come(const Request& receive, guard::Range range);
  bool is_worth_closing(const Request& receive) const;
  void ask_for_awaited();
  bool ask_for(Request* receive, const char* page);
  bool may_come(Request* receive, const FrameHeader& header);
  void note_cost(guard::Range range, uint64_t closing_ns);
  bool close_now(Request* receive, const Request* whole);
  bool close_left(Request* receive, const Request* whole);

  // release_runs.cc
  static bool is_made_of_runs(const Request& receive);
  bool close_runs(Request* receive, const Request* whole);
  void open_runs(Request* receive, uint64_t offset, uint64_t n);

  // engine.cc
  void connect(Peer& peer);
  bool ready(Peer& peer) {
    if (!peer.connected) [[unlikely]]
      connect(peer);
    return peer.controls.empty() && peer.held.empty();
  }
  void mark_busy(Peer& peer);
  bool flush_busy();
  bool flush(Peer& peer);
  bool take_frame(Peer& peer, const shm::Cell& cell);
  bool reap_others();
  void fail(Outcome why, Peer& peer, const char* story);
  Request* by_wire_id(uint32_t id);

  // send.cc
  Push push_frame(Peer& peer, const FrameHeader& header, const void* head, uint32_t n,
                  const Feed* feed, uint64_t cookie, transports::Urgency urgency);
  void control(Peer& peer, const FrameHeader& header, const void* body,
               transports::Urgency urgency = transports::Urgency::control);
  Push push_envelope(Request* request);
  bool wants_handshake(const Peer& peer, const Request* request) const;
  bool stream_some(Peer& peer);
  void start_send_to_self(Request* request);
  bool deliver_clear_send(Peer& peer, const FrameHeader& header, const char* body);
  void finish_push(Request* request);
  void retire_send(Request* request);

  // ways/line.cc
  void queue_aside(Request* send);
  void next_aside();

  // grants.cc
  bool withhold(Request* receive);
  Request* next_granted() const;
  void grant_next();
  void grant(Request* receive);
  void grant_open();

  // onecopy.cc
  bool can_push(const Request* request) const;
  bool copy_some();
  bool may_copy(Request* request);
  bool stays_away(Request* request);
  void stream_instead(Request* request);
  void start_push(Request* request);
  void start_pull(Request* request);
  void pull_alone(Request* receive);
  void share(Request* request);
  void unshare(Request* request);
  bool next_piece(Request* request, shm::Piece& piece);
  Outcome copy(Request* request, uint64_t remote, const shm::Piece& piece, bool push,
               uint64_t& done);
  bool copy_on(Request* request);
  void expect_help(Request* request);
  void stop_helping(Request* request);
  void end_one_copy(Request* request);
  bool help_some();
  void advertise(Request* receive);
  bool withdraw(Request* receive);
  void land_claimed(Request* receive);
  Request* landing(uint32_t id, Peer& peer);
  bool claim(Request* send);

  // fetch.cc
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
  void drop_store(Store* store);
  enum class Answer : uint8_t { message, not_now, never };
  void end_asking(Store* store, Answer answer);
  static Store* place_early(Peer& peer, const FrameHeader& header);
  void note_early(Store* store, const FrameHeader& header);
  bool deliver_presend(Peer& peer, const FrameHeader& header, const char* body);
  bool deliver_refuse(Peer& peer, const FrameHeader& header, const char*);
  bool begin_presend(Peer& peer, const FrameHeader& header, Landing& landing);
  void end_presend(uint32_t from, const FrameHeader& header, const Landing& landing);
  bool deliver_confirm(Peer& peer, const FrameHeader& header, const char* body);
  bool note_envelope(Peer& peer, const Told& told, Store*& store);
  bool note_eager(Peer& peer, const FrameHeader& header);
  static bool take_told(Store& store, const Told& told);
  void note_origin(Request* receive, uint32_t origin, const Store* store, bool waited = false);
  static bool has_come(const Store& store, const Grid& grid, uint64_t page, int64_t shift);
  void land_early(Request* receive, const Store& store, uint64_t from, uint64_t n);
  void land_store(Request* receive, Store* store);
  static bool holds_all(const Store& store, uint64_t total);
  void land_some(Request* receive, Store* store);
  static bool cover(Request* request, const Grid& grid, const uint64_t* pages);

  // presend.cc
  static constexpr uint64_t most_prefetched = 1ull << 30;
  void start_prefetching();
  Origin* origin_of(Peer& peer, matching::Traffic traffic, const char* address, uint64_t bytes);
  static void note_period(Origin& origin);
  [[nodiscard]] static bool take_records(Origin& origin);
  static void give_records(Origin& origin);
  void move_origin(Origin& origin, const char* address, uint64_t size);
  void note_send(Request* send);
  static bool fits_confirmed(const Request& send, const ClearSend& clear);
  bool leave_out_confirmed(Request* send);
  bool may_watch() const;
  bool watch(Origin& origin);
  void count_as_sent(Origin& origin);
  void leave_alone(Origin& origin);
  uint32_t version_of(const Origin& origin, uint64_t page) const;
  bool deliver_prefetch(Peer& peer, const FrameHeader& header, const char*);
  void end_asked(Origin& origin);
  void refuse(Peer& peer, uint32_t origin, bool for_good);
  static uint64_t calm_of(const Origin& origin, uint64_t page);
  static void keep_wary(const Origin& from, const Origin& to);
  void begin_asked(Origin& origin);
  void take_up(Origin& origin);
  void begin_looks(Origin& origin);
  bool presend_some();
  bool look_again(Origin& origin, uint64_t now);
  static bool is_final(const Origin& origin, uint64_t page);
  bool presend_piece(Peer& peer, Origin& origin);
  bool note_left(uint64_t cookie);
  uint32_t next_look_us() const;
  Confirm* confirm_origin(Origin& origin, const char* address, uint64_t size);
  static void be_patient(Origin& origin);
  static void halve_calm(Origin& origin);
  void learn_calm(Origin& origin, const Confirm& confirm, uint64_t again);
  Confirm* make_confirm(const Origin& origin, const Grid& grid, int64_t shift);
  static void confirm_page(Confirm& confirm, const Grid& asked, uint64_t page);
  static void coarsen(Confirm& confirm);
  static void end_confirm(Request* send);
  static bool confirms_all(const Request& send);
  Push push_rest(const Request& send);
  Push push_confirm(Request* send, FrameHeader& header);
  static uint32_t tell_confirmed(const Request& send, char* out);
  // Without the one that stands for listening to requests.
  int64_t under_way() const { return handoff.pending - (watched_ != 0); }

  // receive.cc
  Request* match(const FrameHeader& header);
  void begin_receive(Request* request);
  void expect_streams();
  uint64_t batch_of(const Request& receive) const;
  bool look_at_expected();
  void add_frames();
  bool deliver(Peer& peer, const FrameHeader& header, const char* body);
  void note_seen(Peer& peer, const FrameHeader& header);
  bool deliver_eager(Peer& peer, const FrameHeader& header, const char* body);
  bool deliver_request_send(Peer& peer, const FrameHeader& header, const char* body);
  bool deliver_data(Peer& peer, const FrameHeader& header, const char* body);
  bool deliver_finished(Peer& peer, const FrameHeader& header, const char*);
  bool deliver_acknowledge(Peer& peer, const FrameHeader& header, const char*);
  bool deliver_cancel(Peer& peer, const FrameHeader& header, const char*);
  bool deliver_cancel_answer(Peer& peer, const FrameHeader& header, const char*);
  bool deliver_pressure(Peer& peer, const FrameHeader& header, const char*);
  bool deliver_demand(Peer& peer, const FrameHeader& header, const char*);
  bool deliver_grant(Peer& peer, const FrameHeader& header, const char*);
  bool begin_data(Peer& peer, const FrameHeader& header, Landing& landing);
  bool begin_eager(Peer& peer, const FrameHeader& header, Landing& landing);
  void receive_landed(const FrameHeader& header, const Landing& landing, uint64_t arrived);
  void end_data(uint32_t from, const FrameHeader& header, const Landing& landing);
  void end_eager(uint32_t from, const FrameHeader& header, const Landing& landing);
  void end_unexpected(uint32_t from, const FrameHeader& header, const Landing& landing);
  void describe(Request* receive, const matching::Key& key, uint64_t size, Peer& peer);
  void accept(Request* receive, Arrived* message);
  void finish_eager(Request* receive, Arrived* message);
  void answer_request(Request* receive, Peer& peer, const RequestSend& asked, uint32_t send,
                      bool sender_waits, Store* store);
  void choose_pages(Request* receive, const Grid& grid);
  void clear_to_send(Request* receive, Way way, Store* store = nullptr);

  // leaving.cc
  void note_leaving(Peer& peer, uint64_t bytes);
  void note_announced(Peer& peer, const Request& send);
  bool others_leave(uint64_t now);

  // fetch_unexpected.cc
  bool may_fetch(const Arrived& message) const;
  void fetch(Arrived* message);
  void end_fetch(Request* fetch);

  // unexpected.cc
  Arrived* make_arrived(Peer& peer, const FrameHeader& header, uint64_t size, bool with_data);
  void give_arrived(Arrived* message);
  static uint64_t bytes_of(const Arrived& message);
  void press(Peer& from);
  void relax();
  void tell_pressure(Peer& peer, bool on);
  void warn_of_flood();
  Arrived* find_unexpected(const matching::Key& key, matching::Traffic traffic) {
    return static_cast<Arrived*>(unexpected.find(key, traffic));
  }
  template <class Is>
  Arrived* unexpected_where(Is&& is);

  settings::Settings settings_;
  uint32_t rank_ = 0;
  uint32_t size_ = 1;
  Peer* peers_ = nullptr;
  FatalHandler fatal_ = nullptr;
  std::atomic<uint32_t> own_armed_{0};  // stands in until the segment is there

  matching::Promises promises_;
  base::Pool<Request> requests_;
  base::Pool<Arrived> arrived_;
  base::Vec<Peer*> busy_;  // peers with something to flush
  shm::Rings rings_{node};
  transports::Transport* others_[most_transports] = {};  // beside it
  uint32_t other_count_ = 0;
  base::List<Request> landings_;  // streams that come over TCP
  base::List<Request> pulls_;
  base::List<Request> pushes_;
  base::List<Request> helpable_;
  base::List<Request> asides_cleared_;  // in the order of their sends, behind the one that streams
  Request* aside_now_ = nullptr;        // the one that streams
  base::Counter unexpected_bytes_;
  uint64_t receives_begun_ = 0;
  uint32_t withheld_ = 0;              // of landings_
  uint32_t stages_[stage_count] = {};  // requests in each; idle: how many less than at first
  uint32_t reap_round_ = 0;
  uint32_t expect_round_ = 0;
  uint32_t in_a_row_ = 0;   // receive_now() beside other receives
  bool expects_ = false;    // expect_streams() has set marks
  bool overlooks_ = false;  // and what lies below them is to be seen again
  bool may_pull_ = true;
  bool may_release_ = false;
  bool may_foresee_ = false;
  std::atomic<uint32_t> unseen_{0};
  uint32_t wait_ = 0;
  uint64_t changes_ = 1;     // grows with whatever may make room for a release before the match
  uint64_t release_us_ = 0;  // shorter waits are not worth it
  Profit profit_;
  bool learns_ = false;               // releases where it pays
  std::atomic<bool> settles_{false};  // while closed: trapped calls wait for all pages
  uint64_t page_cost_ns_ = 1700;      // of closing and opening; a first guess is what MISSING takes
  guard::Choice choice_;
  guard::Dispatch dispatch_;

  bool may_prefetch_ = false;
  bool prefetches_again_ = false;  // after a rest
  bool presending_ = false;        // early_piece_ is on its way
  uint64_t nothing_until_ = 0;  // ns: before it no look is due, and no page waits to be sent early
  base::Vec<Peer*> draining_;   // by whose links messages leave
  struct {
    const char* address = nullptr;
    uint64_t size = 0;
    uint64_t at = 0;      // ns
  } look_;                // the last one at a buffer that was asked for
  uint32_t watched_ = 0;  // origins
  guard::Versions versions_;
  Predictions predictions_;
  Origins origins_;
  base::Pool<Store> stores_;
  base::List<Origin> asked_;  // whose turn is next comes first
  uint64_t stored_bytes_ = 0;
  char* early_piece_ = nullptr;
  bool pressure_ = false;
  bool flood_told_ = false;  // warn_of_flood()
  Copies copies_{*this};
};

}  // namespace headway::protocols
