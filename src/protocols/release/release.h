// Release: a receive returns before its data are there, which lie in closed pages until they are.
// At the match: the edges of the buffer are there, the pages between are closed. Before the match:
// all pages are, with whatever else they hold. Source: early-release paper, sections 2.2, 2.3
// and 2.5; the edges are ours. Thread: holder of the engine, except where it says otherwise. Owner:
// the engine. Invariants: no page is closed while another operation may touch it at its home
// address (Reach); what has not come is closed, or its user waits.
#pragma once
#include <cstdint>

#include "base/counter.h"
#include "guard/choice.h"
#include "guard/dispatch.h"
#include "guard/guard.h"
#include "protocols/beside.h"
#include "protocols/peer.h"
#include "protocols/release/costs.h"
#include "protocols/release/event.h"
#include "protocols/release/profit.h"
#include "protocols/release/unseen.h"
#include "protocols/request.h"
#include "settings/options.h"

namespace headway::protocols {

class Messages;

// What it counts: settings/counters.h tells the user what each means.
struct ReleaseCounters {
  base::Counter released;   // receives whose user went on before the data had come
  base::Counter foreseen;   // those of them that had not been matched
  base::Counter shared;     // ranges that were not closed, since other operations work there
  base::Counter untrapped;  // ranges that were not closed, since not all threads could be trapped
};

class Release final : public guard::Pages {
 public:
  Release(Messages& messages, base::Pool<Request>& requests)
      : messages_(messages), rows_(requests) {}

  // --- may it? ---
  // Off where nothing can be closed, where system calls cannot be trapped, and without a message
  // thread: then the plain way is taken.
  void start(const settings::Settings& settings, uint32_t rank);
  // Opens what is closed. No receive is released from now on.
  void stop();
  bool may_release() const { return may_release_; }
  bool may_foresee() const { return may_foresee_; }  // also before the match
  // Microseconds: shorter waits are not worth it.
  uint64_t patience_us() const { return release_us_; }

  // Long enough for pages of its own. A shorter receive is never closed, so its user waits for it.
  static bool may_have_pages(const Request& request) {
    return request.kind == RequestKind::receive && request.memory.bytes() >= release_from;
  }

  // --- at the match ---
  // A receive is matched, and so much of it is still to come that its user had better not wait.
  bool is_ready(const Request* receive) const {
    return may_release_ && (receive->is_redirected() ? receive->stage() != Stage::posted
                                                     : is_worth_closing(*receive));
  }
  // What has not arrived of a ready receive is closed to the program. False: wait for it. `whole`:
  // the schedule of which it is a step, and which does nothing but receive any more.
  bool close_rest(Request* receive, const Request* whole = nullptr) {
    return receive->is_redirected() || close_now(receive, whole);
  }
  // The user may go on from what has been closed. Source, tag and count are in the request. `call`:
  // the one that lets him go, for the launcher; null: it is told nothing of a receive without
  // match.
  void let_user_go(Request* request, const char* call = nullptr);
  // For a recorder: the user of that closed receive returns now, by itself or with a whole.
  void note_return(const Request& receive) {
    if (!base::event_listener()) [[likely]]
      return;
    Row& row = rows_[receive];
    row.event.begin(row.noted, row.region->closing);
  }

  // --- before the match, or before the edges ---
  // All pages of a posted receive are closed, those of its edges too, and the posted receives that
  // share pages with it are closed with it.
  bool is_foreseeable(const Request* receive) const;
  // No other thread, shared memory or operation that needs this thread could notice.
  bool is_alone();
  // False: wait for its match.
  bool foresee(Request* receive);
  // Before that, what the same call waits for: a receive that it does not wait for may depend on
  // what the program does next, and must not keep a page closed.
  // The number of that call, which ends when another one begins.
  uint32_t begin_call() { return ++wait_; }
  uint32_t call() const { return wait_; }
  void waits_for(Request* receive) {
    if (may_have_pages(*receive)) rows_.of(*receive).wait = wait_;
  }
  // Released receives that have no message yet. While there are any, nothing may leave this process
  // that was not begun before (section 2.5 of the paper). Any thread.
  const Unseen& unseen() const { return unseen_; }

  // --- the message's way ---
  // This thread begins to wait for that receive, at base::call_site.
  void note_wait(Request* receive) {
    if (learns_ && may_have_pages(*receive)) [[unlikely]]
      learn_site(receive);
  }
  // Before its user waits for it, the place where he last waited for that buffer stands in.
  bool is_profitable(Request* receive, uint64_t bytes);
  // What is still to come takes long, and twice as long as closing and opening its pages.
  bool is_long_enough(const Request& receive) const;
  // Before a message is asked for: where its edges are, if a release may follow. They cost a frame
  // each. `some_came`: some of it did so before its send.
  void find_edges(Request* receive, Way way, bool some_came = false);
  // A receive that has been closed before is matched now.
  void note_match(Request* receive);
  // Bytes [offset, offset + n) of its message are in their place, and its pages are closed.
  void open_pages(Request* receive, uint64_t offset, uint64_t n);
  // The calling thread has copied n bytes into closed pages, or opened these, for so long. If it is
  // one of the program, that is time which a release does not win, but puts off.
  void note_work(uint64_t ns, uint64_t n);
  // Whoever dozes until its receive may be released is told once, since that wakes all of them.
  void tell_dozers(Request* receive);
  // The receive is over: copied in one piece, perhaps, or cancelled. Its pages open.
  void end_release(Request* receive);

  // --- closed pages ---
  bool any_closed() const { return guard_.any_closed(); }
  const std::atomic<uint32_t>& closed_regions() const { return guard_.closed_regions(); }
  // Pages of receives without a match, which hold other data of the program, too.
  bool any_mixed() const { return guard_.any_mixed(); }
  // Somebody waits for one: which, null: nobody. And whose message thread opens it.
  bool is_awaited() const { return guard_.is_awaited(); }
  const char* awaited() const { return guard_.awaited(); }
  // Readable when the kernel tells of a touch; -1: it tells otherwise.
  int touches() const { return guard_.descriptor(); }
  void serve_touches() { guard_.serve(); }
  // This thread waits inside MPI until pages are open.
  void wait_begins() { guard_.begin_wait(); }
  void wait_ends() { guard_.end_wait(); }
  // The calling thread is the library's: its system calls are not trapped.
  void exempt_thread() { dispatch_.exempt(); }
  guard::Mechanism* mechanism() const { return choice_.mechanism(); }

  ReleaseCounters counters;
  const guard::Counters& closings() const { return guard_.counters; }
  const guard::TrapCounters& traps() const { return dispatch_.counters(); }
  const Profit& profit() const { return profit_; }

  // guard::Pages: asked by trapped system calls, on application threads, without the engine.
  bool is_closed(const void* from, size_t n) override { return guard_.is_closed(from, n); }
  void await_open(const void* from, size_t n) override;
  bool is_unmatched() override { return unseen_.count() != 0; }
  void await_matched() override;
  void await_all() override;
  bool settles() override { return settles_.load(std::memory_order_relaxed); }

 private:
  // Beside a receive.
  struct Row {
    guard::Region* region = nullptr;  // closed: what is still to come goes through this
    uintptr_t site = 0;               // where its user waits for it, as far as is known
    uint64_t mixed_at = 0;            // others worked in its pages at so many Core::changes()
    uint64_t noted = 0;               // bytes that have been put into the region's view
    uint32_t profit = 0;              // what is learned by it (Profit)
    uint32_t wait = 0;                // the last call that wanted to go on without it
    Unseen::Receive released;         // while it is unseen
    // Whether a release is worth it; asked once for each message.
    enum class Worth : uint8_t { unasked, yes, no } worth = Worth::unasked;
    bool in_runs : 1 = false;  // of a type made of few large runs, which can be closed
    bool unseen : 1 = false;   // its user was released before it was matched
    bool told : 1 = false;     // who dozes has been told that it may be released
    ReleaseEvent event;
  };
  // From the beginning of its message.
  static int64_t start_of(const guard::Region& region, const Request& receive) {
    return region.range.base - receive.home;
  }

  bool is_in_runs(const Request& receive) const {
    const Row* row = rows_.find(receive);
    return row && row->in_runs;
  }
  bool is_mixed(const Request& receive) const;
  bool is_waited_for(const Request& receive) const {
    const Row* row = rows_.find(receive);
    return row && row->wait == wait_;
  }
  void learn_site(Request* receive);
  bool may_close();
  guard::Region* close(Request* receive, guard::Range range, bool keep);
  bool is_alone_in(Request* receive, guard::Range range, const Request* whole);
  void end_traps();
  void arrived(guard::Region* region, size_t offset, uint64_t n);
  Row& attach(Request* receive, guard::Region* region);
  void keep_rest(Request* receive, uint64_t from);
  bool gather_neighbours(Request** members, size_t& count, guard::Range& range);
  bool has_come(const Request& receive, guard::Range range) const;
  bool is_worth_closing(const Request& receive) const;
  bool close_now(Request* receive, const Request* whole);
  bool close_left(Request* receive, const Request* whole);

  // runs.cc
  static bool is_made_of_runs(const UserMemory& memory, uint64_t total);
  bool close_runs(Request* receive, const Request* whole);
  void open_runs(Request* receive, uint64_t offset, uint64_t n);

  static constexpr uint64_t release_from = 3 * guard::page_bytes;  // one page inside, surely

  Messages& messages_;
  Beside<Row, Mark::release> rows_;
  bool may_release_ = false;
  bool may_foresee_ = false;
  Unseen unseen_;
  uint32_t wait_ = 0;
  uint64_t release_us_ = 0;  // shorter waits are not worth it
  Profit profit_;
  bool learns_ = false;               // releases where it pays
  std::atomic<bool> settles_{false};  // while closed: trapped calls wait for all pages
  Costs costs_;
  guard::Guard guard_;
  guard::Choice choice_;
  guard::Dispatch dispatch_;
};

}  // namespace headway::protocols
