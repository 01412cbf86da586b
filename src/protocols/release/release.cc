#include "protocols/release/release.h"

#include <cstring>
#include <ctime>

#include "base/call_site.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/machine.h"
#include "base/selector.h"
#include "base/text.h"
#include "protocols/messages/messages.h"
#include "protocols/ways/order.h"
#include "protocols/ways/pieces.h"
#include "protocols/ways/rate.h"
#include "settings/events.h"

namespace headway::protocols {
namespace {

using guard::page_bytes;

constexpr size_t most_members = 64;  // receives that share pages, one with the next

uint32_t to_boundary(const char* address) {
  return uint32_t(-reinterpret_cast<uintptr_t>(address) % page_bytes);
}

void pause_a_little() {
  const timespec pause{0, 50'000};
  nanosleep(&pause, nullptr);
}

}  // namespace

void Release::start(const settings::Settings& settings, uint32_t rank) {
  if (!settings.early_release || !settings.progress) return;
  const char* why = nullptr;
  if (choice_.start(guard::Wish(settings.guard)) != Outcome::ok) {
    why = choice_.why();
  } else if (!guard_.start(choice_.mechanism()) ||
             dispatch_.start(this, choice_.kind() == guard::Kind::trap) != Outcome::ok) {
    why = "system calls cannot be trapped (it takes Linux 5.11), or no memory";
  }
  if (why) {
    stop();
    // Who asked for nothing is not told that this machine cannot give it.
    const bool asked = settings::given("EARLY_RELEASE") || settings::given("GUARD");
    if (rank != 0 || !(asked || settings.verbose)) return;
    base::Text<400> line;
    line << "headway: no receive is released early: " << why << "\n";
    line.write_to(2);
    return;
  }
#if defined(HEADWAY_DEBUG)
  check_touches(
      [](void* self, const char* from, size_t n) {
        auto* release = static_cast<Release*>(self);
        return release->messages_.handoff().is_mine() && release->is_closed(from, n);
      },
      this);
#endif
  release_us_ = settings.release_threshold_us;
  if (settings.release_batch) guard_.batch_pages = settings.release_batch;
  may_release_ = true;
  messages_.handoff().expect_traps();
  messages_.handoff().watch_closed(&guard_.closed_regions(), &dispatch_.handlers());
  may_foresee_ = settings.early_release >= 2;
  learns_ = settings.early_release == 3;
}

void Release::stop() {
#if defined(HEADWAY_DEBUG)
  check_touches(nullptr, nullptr);
#endif
  may_release_ = may_foresee_ = false;
  dispatch_.stop();
  guard_.stop();
  choice_.stop();
}

void Release::learn_site(Request* receive) {
  Row& row = rows_.of(*receive);
  const uintptr_t site = base::outer_call_site();
  if (row.site != site && row.worth == Row::Worth::yes) {
    row.worth = Row::Worth::unasked;  // it stood for another place
  }
  row.site = site;
  profit_.note_wait(receive->buffer(), row.site);
}

bool Release::is_profitable(Request* receive, uint64_t bytes) {
  if (!learns_) return true;
  Row& row = rows_.of(*receive);
  if (row.worth == Row::Worth::unasked) {
    const char* buffer = receive->buffer();
    if (!row.site) row.site = profit_.last_wait(buffer);
    const bool yes = profit_.is_worth(row.site, buffer, bytes, row.profit);
    row.worth = yes ? Row::Worth::yes : Row::Worth::no;
  }
  return row.worth == Row::Worth::yes;
}

// From here on the program's system calls wait for closed pages.
bool Release::may_close() {
  if (dispatch_.enroll() && dispatch_.arm()) return true;
  ++counters.untrapped;
  return false;
}

// Null: it is all open.
guard::Region* Release::close(Request* receive, guard::Range range, bool keep) {
  const uint64_t began = base::now_ns();
  guard::Region* region = nullptr;
  if (may_close()) {
    messages_.handoff().closes();
    region = keep ? guard_.close_with_contents(range) : guard_.close(range);
  }
  if (!region) {
    end_traps();
    return nullptr;
  }
  HEADWAY_CHECK(base::calls_armed.load(std::memory_order_relaxed) == base::armed);
  const uint64_t closing_ns = base::now_ns() - began;
  costs_.note_closing(range.pages, closing_ns);
  const uint32_t profit = rows_.of(*receive).profit;
  region->owner = {
      .token = profit,
      .settles = learns_ && profit_.settles(profit),
      .closing_ns = closing_ns,
      .traps = traps().traps.load(std::memory_order_relaxed),
      .moving_ns = learns_ ? messages_.handoff().thread_ns() + costs_.working_ns() : 0};
  if (region->owner.settles) settles_.store(true, std::memory_order_relaxed);
  return region;
}

// Nothing else works in these pages: whoever holds the engine must never wait for a closed one.
// `whole`: as in close_rest(). False: its user waits for it.
bool Release::is_alone_in(Request* receive, guard::Range range, const Request* whole) {
  if (messages_.reach().is_free(range, receive, whole)) [[likely]]
    return true;
  ++counters.shared;
  messages_.transfer(*receive).stays = true;
  return false;
}

void Release::end_traps() {
  if (guard_.any_closed()) return;
  dispatch_.disarm();
  settles_.store(false, std::memory_order_relaxed);
}

// Of the message thread all that it does is known, and a wait for closed pages is no gain already.
void Release::note_work(uint64_t ns, uint64_t n) {
  if (messages_.handoff().is_message_thread() || guard_.is_awaited_inside()) return;
  costs_.note_work(ns, n);
}

void Release::arrived(guard::Region* region, size_t offset, uint64_t n) {
  const uint64_t began = learns_ ? base::now_ns() : 0;
  const bool is_over = guard_.arrived(region, offset, n);
  if (learns_) note_work(base::now_ns() - began, n);
  if (guard_.is_awaited_inside()) [[unlikely]]
    messages_.handoff().came_far();
  if (!is_over) return;
  const guard::Guard::End& end = guard_.ended;
  if (learns_) {
    profit_.learn(
        end.owner.token,
        {.closed_ns = end.closed_ns,
         .touched_ns = end.waited_ns,
         .inside_ns = end.inside_ns,
         .share_ns = end.share_ns,
         .closing_ns = end.owner.closing_ns,
         .moving_ns = messages_.handoff().thread_ns() + costs_.working_ns() - end.owner.moving_ns,
         .traps = traps().traps.load(std::memory_order_relaxed) - end.owner.traps,
         .touches = end.touches,
         .settles = end.owner.settles});
  }
  end_traps();
}

void Release::find_edges(Request* receive, Way way, bool some_came) {
  Transfer& transfer = messages_.transfer(*receive);
  if (Row* row = rows_.find(*receive)) row->in_runs = false;
  if (transfer.moved) return;  // some of it has been pulled, in the order of then
  transfer.head = transfer.tail = 0;
  const bool may_follow = receive->peer->can(transports::in_place) || transfer.alone;
  if (way != Way::stream || !may_follow || !may_release_ || transfer.stays ||
      transfer.total < release_from ||
      !(receive->memory.is_flat() || is_made_of_runs(receive->memory, transfer.total))) {
    return;
  }
  if (!receive->is_redirected() && (expected_us(*receive->peer, transfer) < release_us_ ||
                                    !is_profitable(receive, transfer.total))) {
    transfer.stays = true;
    return;
  }
  if (!receive->memory.is_flat()) {
    rows_.of(*receive).in_runs = true;
    transfer.stays = some_came;  // of each run, perhaps
    return;
  }
  const char* base = receive->buffer();
  transfer.head = to_boundary(base);
  transfer.tail = uint32_t((reinterpret_cast<uintptr_t>(base) + transfer.total) % page_bytes);
}

void Release::let_user_go(Request* request, const char* call) {
  HEADWAY_CHECK(request->kind != RequestKind::receive || request->is_redirected());
  const bool foreseen = request->stage() == Stage::posted;
  if (foreseen) {
    Row& row = rows_[*request];
    HEADWAY_CHECK(!row.unseen);
    row.unseen = true;
    row.released = {.request = request, .call = call, .site = base::outer_call_site()};
    unseen_.add(row.released);
    ++counters.foreseen;
  }
  if (request->kind == RequestKind::receive) note_return(*request);
  settings::tell<settings::EventKind::receive_released>(
      request->peer ? int64_t(request->peer->process) : -1, foreseen);
  request->awaited = false;
  messages_.note_gone(request);
  request->done.store(Done::released, std::memory_order_release);
  ++counters.released;
}

// --- at the match ---

bool Release::is_worth_closing(const Request& receive) const {
  const bool lands = receive.stage() == Stage::landing;
  if (!lands && receive.stage() != Stage::pulling) return false;
  const Transfer& transfer = messages_.transfer(receive);
  // An eager message on its way is short, and brings no edges first.
  const bool edges_first = lands ? transfer.expected : transfer.alone;
  if (!edges_first || receive.cancelling) return false;
  // Bytes in the order of the stream: the edges must be there, and the middle not nearly.
  const uint64_t come = transfer.moved + transfer.partial;
  return come - transfer.covered >= edges_of(transfer) && transfer.total - come >= page_bytes &&
         is_long_enough(receive);
}

bool Release::is_long_enough(const Request& receive) const {
  const Transfer& transfer = messages_.transfer(receive);
  if (!may_release_ || transfer.stays || !(receive.memory.is_flat() || is_in_runs(receive)) ||
      receive.outcome != Outcome::ok || transfer.total < release_from) {
    return false;
  }
  if (release_us_ == 0) return true;
  const uint64_t us = expected_us(*receive.peer, transfer);
  return us >= release_us_ && us * 1000 >= 2 * costs_.page_ns() * (transfer.total / page_bytes);
}

bool Release::close_now(Request* receive, const Request* whole) {
  Transfer& transfer = messages_.transfer(*receive);
  const uint64_t come = transfer.moved + transfer.partial;
  const uint64_t next = come - transfer.tail, end = transfer.total - transfer.tail;
  char* base = receive->memory.flat();
  if (!receive->awaited) messages_.note_wait(receive);
  if (!is_profitable(receive, transfer.total)) {
    transfer.stays = true;
    return false;
  }
  if (is_in_runs(*receive)) return close_runs(receive, whole);
  if (transfer.order) return close_left(receive, whole);
  // The page that is filled at this moment is closed with the others; what it has is kept aside.
  const size_t kept = (reinterpret_cast<uintptr_t>(base) + next) % page_bytes;
  char there[page_bytes];
  char* first = base + next - kept;
  const guard::Range range{first, size_t(base + end - first) / page_bytes};
  if (!is_alone_in(receive, range, whole)) return false;
  memcpy(there, first, kept);
  guard::Region* region = close(receive, range, false);
  if (!region) {
    memcpy(first, there, kept);
    transfer.stays = true;
    return false;
  }
  if (kept) {
    memcpy(region->view, there, kept);
    arrived(region, 0, kept);
  }
  attach(receive, region).noted = come;
  return true;
}

// The same of a message some of which came before its send, in pages that lie anywhere: from the
// first to the last one that has not.
bool Release::close_left(Request* receive, const Request* whole) {
  Transfer& transfer = messages_.transfer(*receive);
  const Order& order = *transfer.order;
  const uint64_t coming = transfer.begun - streamed(transfer);  // the frame that is on its way
  const uint64_t from = coming ? (transfer.begun_at - transfer.head) / page_bytes : 0;
  const uint64_t to = from + coming / page_bytes;
  const auto is_there = [&](uint64_t page) {
    return order.is_taken(page) && (page < from || page >= to);
  };
  uint64_t first = 0, end = order.pages(), there = 0;
  while (first < end && is_there(first)) ++first;
  while (end > first && is_there(end - 1)) --end;
  for (uint64_t page = first; page < end; ++page) there += is_there(page);
  const guard::Range range{receive->memory.flat() + transfer.head + first * page_bytes,
                           end - first};
  if (!is_alone_in(receive, range, whole)) return false;
  guard::Region* region = there <= range.pages / 2 ? close(receive, range, true) : nullptr;
  if (!region) {
    transfer.stays = true;
    return false;
  }
  attach(receive, region).noted = transfer.moved + transfer.partial;
  for (uint64_t page = first; page < end; ++page) {
    if (is_there(page)) arrived(region, (page - first) * page_bytes, page_bytes);
  }
  if (coming) arrived(region, (from - first) * page_bytes, transfer.partial);
  return true;
}

// From here on all that comes is put into the view.
Release::Row& Release::attach(Request* receive, guard::Region* region) {
  HEADWAY_CHECK(!receive->is_redirected() && receive->memory.is_flat());
  receive->set(Mark::redirected);
  receive->home = receive->memory.flat();
  Row& row = rows_.of(*receive);
  row.region = region;
  row.noted = 0;
  receive->memory = UserMemory(region->view - start_of(*region, *receive), receive->memory.bytes());
  if (receive->stage() == Stage::landing) {
    receive->peer->transport->redirect(receive->peer->number, receive,
                                       receive->memory.flat() - receive->home);
  }
  return row;
}

// --- before the match, or before the edges ---

// It could not be closed, and nothing has changed since.
bool Release::is_mixed(const Request& receive) const {
  const Row* row = rows_.find(receive);
  return row && row->mixed_at == messages_.changes();
}

bool Release::is_foreseeable(const Request* receive) const {
  // Posted; or matched, and its sender has others to serve before it sends the edges.
  const auto is_announced = [this](const Request& matched) {
    const Transfer& transfer = messages_.transfer(matched);
    return transfer.expected && !transfer.stays && transfer.moved + transfer.partial == 0 &&
           matched.outcome == Outcome::ok && expected_us(*matched.peer, transfer) >= release_us_;
  };
  const bool may = receive->stage() == Stage::posted    ? !receive->key.is_wild()
                   : receive->stage() == Stage::landing ? is_announced(*receive)
                                                        : false;
  return receive->kind == RequestKind::receive && may &&
         receive->done.load(std::memory_order_relaxed) == Done::no && !is_mixed(*receive) &&
         receive->memory.is_flat() && receive->memory.bytes() >= release_from && receive->peer &&
         receive->peer->transport && !receive->cancelling && !receive->cancelled;
}

bool Release::is_alone() {
  if (messages_.has_schedules() || !messages_.handoff().user_calls.empty() ||
      !base::has_one_thread())
    return false;
  const auto ours = [](const void* start, void* self) {
    return static_cast<const shm::Node*>(self)->owns(start);
  };
  return !guard_.shares_memory(ours, &messages_.node());
}

bool Release::foresee(Request* receive) {
  if (receive->is_redirected()) return true;
  // Since its wait looked, closing others may have told that pages cost more than this one's are
  // worth. Then its edges are there, and nobody would tell of them again.
  if (!is_foreseeable(receive)) return false;
  Request* members[most_members] = {receive};
  size_t count = 1;
  guard::Range range{};
  rows_.of(*receive).mixed_at =
      messages_.changes();  // not again before one of its neighbours may have changed
  if (!is_profitable(receive, receive->memory.bytes())) return false;
  if (!gather_neighbours(members, count, range)) return false;
  for (size_t i = 0; i < count; ++i) {
    if (!messages_.take_back(members[i])) return false;  // its sender fills it from now on
  }
  guard::Region* region = close(receive, range, true);
  if (!region) return false;
  const char* end = range.base;  // of what is told
  for (size_t i = 0; i < count; ++i) {
    char* from = members[i]->memory.flat();
    arrived(region, size_t(end - range.base), size_t(from - end));
    end = from + members[i]->memory.bytes();
    // Of one without a match these are its last message's.
    HEADWAY_CHECK(members[i]->stage() == Stage::posted ||
                  messages_.transfer(*members[i]).moved + messages_.transfer(*members[i]).partial ==
                      0);
    attach(members[i], region).mixed_at = 0;
    const bool is_short = members[i]->stage() == Stage::landing &&
                          members[i]->status_bytes() < members[i]->memory.bytes();
    if (is_short) keep_rest(members[i], members[i]->status_bytes());
  }
  arrived(region, size_t(end - range.base), size_t(range.end() - end));
  guard_.mixed(region);
  return true;
}

// What is still to come of it lies in other pages than these.
bool Release::has_come(const Request& receive, guard::Range range) const {
  if (receive.kind != RequestKind::receive || receive.stage() != Stage::landing) return false;
  const Transfer& transfer = messages_.transfer(receive);
  if (!transfer.expected || transfer.stays || !receive.memory.is_flat() ||
      transfer.total < release_from || receive.outcome != Outcome::ok ||
      receive.status_bytes() != receive.memory.bytes() ||
      to_boundary(receive.memory.flat()) != transfer.head ||
      streamed(transfer) + transfer.partial < edges_of(transfer)) {
    return false;
  }
  const char* from = receive.memory.flat() + transfer.head;
  const char* to = receive.memory.flat() + transfer.total - transfer.tail;
  return to <= range.base || range.end() <= from;
}

// All posted receives of this wait that share pages with the first one, or with one another, in the
// order of their addresses, and the range that they lie in. False: something else works in these
// pages.
bool Release::gather_neighbours(Request** members, size_t& count, guard::Range& range) {
  const auto around_all = [&] {
    char* from = members[0]->memory.flat();
    char* to = members[count - 1]->memory.flat() + members[count - 1]->memory.bytes();
    return guard::Guard::around(from, size_t(to - from));
  };
  size_t known;
  do {
    known = count;
    range = around_all();
    const bool are_all = messages_.reach().visit(range, [&](Request* other) {
      for (size_t i = 0; i < count; ++i) {
        if (members[i] == other) return true;
      }
      if (has_come(*other, range)) return true;
      if (!is_foreseeable(other) || !is_waited_for(*other) || count == most_members) return false;
      size_t place = count++;
      for (; place > 0 && members[place - 1]->memory.flat() > other->memory.flat(); --place) {
        members[place] = members[place - 1];
      }
      members[place] = other;
      return true;
    });
    if (!are_all) return false;
  } while (count > known);  // they may have neighbours of their own
  for (size_t i = 1; i < count; ++i) {
    const UserMemory& before = members[i - 1]->memory;
    if (before.flat() + before.bytes() > members[i]->memory.flat()) return false;
  }
  return true;
}

void Release::note_match(Request* receive) {
  if (Row& row = rows_[*receive]; row.unseen) {
    row.unseen = false;
    unseen_.remove(row.released);
    messages_.handoff().came_far();  // somebody may doze until none is left
    if (receive->outcome == Outcome::truncated) {
      messages_.links().fail(
          Outcome::truncated, *receive->peer,
          "a message is longer than the buffer of a receive that had returned already");
      return;
    }
  }
  // Of a shorter message: what lies beyond it stays as it is.
  const uint64_t room = receive->memory.bytes();
  if (receive->status_bytes() < room) keep_rest(receive, receive->status_bytes());
}

void Release::keep_rest(Request* receive, uint64_t from) {
  guard::Region* region = rows_[*receive].region;
  arrived(region, size_t(int64_t(from) - start_of(*region, *receive)),
          receive->memory.bytes() - from);
}

// --- trapped system calls ---

// Whoever touches it waits in the kernel, or in our handler, until it is open.
void Release::await_open(const void* from, size_t n) {
  const auto* at = static_cast<const volatile char*>(from);
  const auto* end = at + n;
  while (at < end) {
    (void)*at;
    at += page_bytes - reinterpret_cast<uintptr_t>(at) % page_bytes;
  }
}

void Release::await_matched() {
  guard_.begin_wait();
  while (unseen_.count()) pause_a_little();
  guard_.end_wait();
}

void Release::await_all() {
  guard_.begin_wait();
  while (guard_.any_closed()) pause_a_little();
  guard_.end_wait();
}

// --- what comes ---

void Release::open_pages(Request* receive, uint64_t offset, uint64_t n) {
  if (!n) return;
  Row& row = rows_[*receive];
  row.noted += n;
  if (!receive->memory.is_flat()) {
    open_runs(receive, offset, n);
    return;
  }
  arrived(row.region, size_t(int64_t(offset) - start_of(*row.region, *receive)), n);
}

void Release::tell_dozers(Request* receive) {
  const bool ready = receive->done.load(std::memory_order_relaxed) == Done::no && is_ready(receive);
  Row* row = ready ? &rows_.of(*receive) : rows_.find(*receive);
  if (!row) return;
  if (ready && !row->told) messages_.handoff().came_far();
  row->told = ready;
}

void Release::end_release(Request* receive) {
  if (!receive->is_redirected()) return;
  Row& row = rows_[*receive];
  if (row.unseen) [[unlikely]]
    unseen_.remove(row.released);
  row.unseen = false;
  if (receive->cancelled) {
    keep_rest(receive, 0);
  } else if (row.noted == 0) {
    open_pages(receive, 0, receive->status_bytes());
  }
  HEADWAY_CHECK(receive->cancelled || row.noted == receive->status_bytes());
  row.event.end(*receive);
  row.region = nullptr;
  receive->clear(Mark::redirected);
  receive->memory.shift(receive->home - receive->memory.base());
  if (const datatypes::Type* type = receive->memory.type()) type->release();
}

}  // namespace headway::protocols
