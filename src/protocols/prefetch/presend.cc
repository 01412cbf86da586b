// What is final (looks.cc) is sent. First the look that makes the next write visible, then the
// copy. The copy is made by the kernel, since the program may have given the memory back; it never
// reads what was not sent to that peer before.
#include "protocols/prefetch/presend.h"

#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/heap.h"
#include "base/machine.h"
#include "base/text.h"
#include "protocols/core.h"

namespace headway::protocols {
namespace {

constexpr uint64_t piece = 32 << 10;  // of a message, before its send: so long do others wait
constexpr uint32_t fading =
    8;  // messages, then what was learnt of a single page (looks.cc) is less
constexpr uint64_t most_times = 2;  // that its bytes go for one request
// Sends of a buffer that nobody asked for, then it is left alone: if the last one that was asked
// for had pages that came early, and if it had none. While one is followed each packet may wake the
// message thread.
constexpr uint32_t most_idle = 32, most_idle_in_vain = 4;
constexpr uint64_t most_prefetched = 1ull << 30;  // bytes of a message
constexpr uint64_t early_cookie = ~0ull;

// False: not all of it is readable.
bool read_safely(const char* from, char* to, uint64_t n) {
  const iovec here{to, n}, there{const_cast<char*>(from), n};
  return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == ssize_t(n);
}

}  // namespace

void Presends::start(guard::Mechanism* mechanism) {
  if (!core_.settings().prefetch || !core_.settings().progress) return;
  const auto wish = guard::Versions::Wish(core_.settings().prefetch_writes);
  may_prefetch_ = versions_.start(mechanism, wish) == Outcome::ok;
  const bool asked =
      settings::given("PREFETCH") || settings::given("PREFETCH_WRITES") || core_.settings().verbose;
  if (may_prefetch_ || core_.rank() != 0 || !asked) return;
  base::Text<400> line;
  line << "headway: no message travels before its send: " << versions_.why();
  if (wish != guard::Versions::Wish::signal) {
    line << ". If no system call of the program writes into what it sends, "
            "HEADWAY_PREFETCH_WRITES=signal is another way";
  }
  line << "\n";
  line.write_to(2);
}

void Presends::add_frames(Frames& frames) {
  frames.add(uint8_t(Kind::prefetch), {.name = "prefetch",
                                       .owner = this,
                                       .whole = by<&Presends::deliver_prefetch>,
                                       .needs = transports::early});
}

// --- which buffers there are ---

// Of a message that is about to be sent. Null: it is never sent early. One that is followed may
// still lie where its last message did.
Origin* Presends::origin_at(Peer& peer, matching::Traffic traffic, const char* address,
                            uint64_t bytes) {
  // Without an address: packed from a type with gaps, and copied aside.
  if (!address || bytes < core_.settings().prefetch_threshold || bytes > most_prefetched)
    return nullptr;
  if (!traffic.collective) return origins_.take(address, bytes, peer.process);
  uint32_t& last = peer.early.collective_origins[traffic.collective % Early::collective_kinds];
  Origin* origin = origins_.find(address, bytes, peer.process);
  if (!origin) {
    origin = origins_.find(last, peer.process);
    if (!origin || !is_near(origin->size, bytes) ||
        !is_near(uint64_t(origin->address - address) + origin->size, origin->size)) {
      origin = origins_.take(address, bytes, peer.process);
    } else if (!origin->watched) {
      Origins::place(*origin, address, bytes);
    }
  }
  if (origin) last = origins_.id_of(*origin);
  return origin;
}

void Presends::note_period(Origin& origin) {
  const uint64_t now = base::now_ns();
  origin.period_ns = origin.sent_at ? now - origin.sent_at : 0;
  origin.sent_at = now;
}

bool Presends::note_sent_now(Peer& peer, FrameHeader& envelope, const char* address,
                             uint64_t bytes) {
  Origin* origin = origin_at(peer, traffic_of(envelope), address, bytes);
  if (!origin) return true;
  if (origin->watched || origin->wanted) return false;
  envelope.word = origins_.id_of(*origin);
  note_period(*origin);
  return true;
}

void Presends::note_send(Request* send) {
  const char* address = send->buffer();
  const uint64_t bytes = send->memory.bytes();
  if (!send->memory.is_flat() || send->mode == Mode::buffered) return;
  Origin* origin = origin_at(*send->peer, send->traffic, address, bytes);
  if (!origin) return;
  Row& row = rows_.begin(*send, {.origin = origins_.id_of(*origin)});
  note_period(*origin);
  if (origin->watched) row.confirm = confirm_origin(*origin, address, bytes);
  if (origin->address != address || origin->size != bytes) {
    if (origin->watched) {
      move_origin(*origin, address, bytes);
    } else {
      Origins::place(*origin, address, bytes);  // given up just now
    }
  }
  if (!origin->watched && origin->wanted && may_watch()) {
    origin->wanted = false;
    (void)watch(*origin);
  }
  if (origin->kept) take_up(*origin);
}

// The request that came while the buffer was not followed is for the message after this one.
void Presends::take_up(Origin& origin) {
  const bool same = origin.kept == origin.size;
  origin.kept = 0;
  if (origin.watched && same) {
    begin_asked(origin);
  } else {
    refuse(core_.links().peers()[origin.peer], origins_.id_of(origin), origin.useless);
  }
}

// It is followed where it lies now, and all of it counts as sent.
void Presends::move_origin(Origin& origin, const char* address, uint64_t size) {
  Origin moved = origin;
  Origins::place(moved, address, size);
  // Most of its pages are followed: only new ones are looked at closely.
  if (may_watch() && take_records(moved)) {
    if (versions_.use(address, size)) {
      versions_.drop(origin.address, origin.size);
      keep_wary(origin, moved);
      give_records(origin);
      origin = moved;
      if (versions_.look(address, size)) {
        count_as_sent(origin);
        return;
      }
      leave_alone(origin);  // as watch() does
      origin.useless = true;
      return;
    }
    give_records(moved);
  }
  leave_alone(origin);
  Origins::place(origin, address, size);
  origin.wanted = true;
}

// What was learnt of the pages that lie in both.
void Presends::keep_wary(const Origin& from, const Origin& to) {
  for (uint64_t page = 0, pages = to.grid.pages(); page < pages; ++page) {
    const char* at = to.address + to.grid.begin(page);
    if (at < from.address || at >= from.address + from.size) continue;
    to.wary[page] = from.wary[from.grid.page_of(uint64_t(at - from.address))];
  }
}

// The probe for pinned pages moves them for some microseconds. Where the kernel answers a system
// call that meets them with an error, instead of waiting, no thread of the program may be in one.
bool Presends::may_watch() const {
  return core_.handoff().driver != progress::Driver::thread &&
         (versions_.sees_kernel() || base::has_one_thread());
}

bool Presends::watch(Origin& origin) {
  if (origin.useless) return false;
  if (!early_piece_) early_piece_ = static_cast<char*>(base::heap_allocate(piece));
  const bool room = early_piece_ && take_records(origin);
  if (!room || !versions_.use(origin.address, origin.size)) {
    if (room) give_records(origin);
    origin.useless = true;
    return false;
  }
  origin.watched = true;
  origin.idle = 0;
  origin.calm_ns = 0;
  if (watched_++ == 0) listen(true);
  if (!versions_.look(origin.address, origin.size)) {
    leave_alone(origin);
    origin.useless = true;
    return false;
  }
  count_as_sent(origin);
  return true;
}

// What is kept of each page. False: there is no memory.
bool Presends::take_records(Origin& origin) {
  const uint64_t pages = origin.grid.pages();
  auto* block = static_cast<char*>(base::heap_allocate(pages * Origin::bytes_a_page));
  if (!block) return false;
  origin.still = reinterpret_cast<uint64_t*>(block);
  origin.sent = reinterpret_cast<uint32_t*>(origin.still + pages);
  origin.seen = origin.sent + pages;
  origin.early = origin.seen + pages;
  origin.wary = reinterpret_cast<uint8_t*>(origin.early + pages);
  memset(origin.wary, 0, pages);
  return true;
}

void Presends::give_records(Origin& origin) {
  base::heap_free(origin.still, origin.grid.pages() * Origin::bytes_a_page);
  origin.still = nullptr;
}

// Nothing is known of when it was written: all of it counts as sent.
void Presends::count_as_sent(Origin& origin) {
  for (uint64_t page = 0, pages = origin.grid.pages(); page < pages; ++page) {
    origin.sent[page] = origin.seen[page] = version_of(origin, page);
    origin.early[page] = 0;
    origin.still[page] = 0;
  }
  origin.counted = true;
}

void Presends::leave_alone(Origin& origin) {
  HEADWAY_CHECK(origin.watched && watched_ != 0);
  if (origin.asked) end_asked(origin);
  versions_.drop(origin.address, origin.size);
  give_records(origin);
  origin.watched = false;
  if (--watched_ == 0) listen(false);
}

uint32_t Presends::version_of(const Origin& origin, uint64_t page) const {
  return versions_.version(origin.address + origin.grid.begin(page));
}

// --- requests ---

bool Presends::deliver_prefetch(Peer& peer, const FrameHeader& header, const char*) {
  Origin* origin = origins_.find(header.word, peer.process);
  const bool known = origin && origin->size == header.context && may_prefetch_;
  if (header.flags & flag_yes) {
    // If its message or our refusal has crossed this, there is nothing to end.
    if (known && (origin->asked || origin->kept)) {
      if (origin->asked) end_asked(*origin);
      origin->kept = 0;
      origin->wanted = false;
      refuse(peer, header.word, false);
    }
    return true;
  }
  if (known && (origin->asked || origin->kept)) return false;
  if (!known || origin->useless) {
    refuse(peer, header.word, known);
    return true;
  }
  if (!origin->watched) {
    // It is followed from its next send on: the program may be anywhere now.
    origin->wanted = true;
    origin->kept = origin->size;
    return true;
  }
  begin_asked(*origin);
  if (!origin->counted && versions_.look(origin->address, origin->size)) count_as_sent(*origin);
  presend_some();
  return true;
}

void Presends::begin_asked(Origin& origin) {
  HEADWAY_CHECK(origin.watched && !origin.asked && !origin.kept);
  origin.asked = true;
  memset(origin.early, 0, origin.grid.pages() * sizeof *origin.early);  // nothing has gone for it
  origin.looked_at = origin.early_bytes = origin.mistaken = origin.pauses = 0;
  origin.pauses_since = base::now_ns();
  begin_looks(origin);
  asked_.push_back(&origin);
  nothing_until_ = 0;
}

void Presends::end_asked(Origin& origin) {
  asked_.remove(&origin);
  origin.asked = false;
}

void Presends::refuse(Peer& peer, uint32_t origin, bool for_good) {
  ++core_.counters().presend_refused;
  FrameHeader header;
  header.kind = uint8_t(Kind::refuse);
  header.flags = for_good ? flag_yes : 0;
  header.word = origin;
  core_.links().control(peer, header, nullptr);
}

// --- before the send ---

// True if something went. What is sent goes before what may be, and one piece is on its way at a
// time: the links that lead to several peers are often one. In turn, a piece each: whoever got
// nothing would think that there is nothing.
bool Presends::presend_some() {
  if (presending_ || core_.links().is_busy()) return false;
  const uint64_t now = base::now_ns();
  if (now >= nothing_until_) nothing_until_ = now + others_leave(now);
  if (now < nothing_until_) return false;
  uint64_t until = now + most_rest_ns;
  bool moved = false;
  for (uint64_t left = asked_.size(); left > 0 && !presending_; --left) {
    Origin& origin = *asked_.first();
    Peer& peer = core_.links().peers()[origin.peer];
    asked_.remove(&origin);
    asked_.push_back(&origin);
    if (!look_again(origin, now)) {
      const uint32_t id = origins_.id_of(origin);
      leave_alone(origin);
      refuse(peer, id, false);
    } else if (peer.connected && peer.transport->writable(peer.number)) {
      moved |= presend_piece(peer, origin);
      const bool all = origin.next == origin.grid.pages();
      const uint64_t at = all ? origin.looked_at + origin.pace_ns : 0;
      if (at < until) until = at;
    } else {
      until = 0;
    }
  }
  nothing_until_ = presending_ ? 0 : until;
  return moved;
}

// The next pages that look final. False: there are none before the next look, or no room for them.
bool Presends::presend_piece(Peer& peer, Origin& origin) {
  HEADWAY_CHECK(origin.watched && origin.asked && origin.peer == peer.process);
  const Grid& grid = origin.grid;
  const uint64_t pages = grid.pages();
  if (origin.early_bytes >= most_times * origin.size) origin.next = pages;
  while (origin.next < pages && !is_final(origin, origin.next)) ++origin.next;
  const uint64_t begin = origin.next;
  if (begin == pages) return false;
  uint64_t end = begin + 1;
  while (end < pages && grid.begin(end + 1) - grid.begin(begin) <= piece && is_final(origin, end)) {
    ++end;
  }
  const uint64_t offset = grid.begin(begin), length = grid.begin(end) - offset;
  // Closed since the last look, with a receive that shares a page: this would wait for itself.
  if (core_.is_closed(origin.address + offset, length)) {
    origin.next = pages;
    return false;
  }
  if (!read_safely(origin.address + offset, early_piece_, length)) {
    origin.looked_at = 0;
    origin.next = pages;
    return false;  // it is going away: the next look will tell
  }
  FrameHeader header;
  header.kind = uint8_t(Kind::presend);
  header.word = origins_.id_of(origin);
  header.source = int32_t(grid.first);
  header.context = offset;
  header.length = uint32_t(length);
  const Feed feed{.flat = early_piece_, .length = length};
  const Push pushed = core_.links().push_frame(peer, header, nullptr, 0, &feed, early_cookie,
                                               transports::Urgency::control);
  if (pushed == Push::full) return false;
  presending_ = pushed == Push::started;
  for (uint64_t page = begin; page < end; ++page) origin.early[page] = origin.seen[page];
  origin.next = end;
  origin.early_bytes += length;
  core_.counters().presend_bytes += length;
  return true;
}

// A frame that was not a request's has left.
bool Presends::note_left(uint64_t cookie) {
  if (cookie != early_cookie) return false;
  presending_ = false;
  return true;
}

// --- with the send ---

// What of a watched buffer's message, which lies there, went before. Null: it was not asked for.
// From now on its pages are those of the next message, also if the message itself has to wait: what
// is written from here on must not be told to be part of it.
Confirm* Presends::confirm_origin(Origin& origin, const char* address, uint64_t size) {
  if (!origin.asked) {
    // To look would cost the program a fault for each page that it writes next.
    origin.counted = false;
    if (++origin.idle > (origin.paid ? most_idle : most_idle_in_vain)) leave_alone(origin);
    return nullptr;
  }
  end_asked(origin);
  origin.idle = 0;
  Origin now;
  Origins::place(now, address, size);
  Confirm* confirm = make_confirm(origin, now.grid, address - origin.address);
  if (!confirm || !versions_.look(origin.address, origin.size)) {
    leave_alone(origin);
    return confirm;
  }
  uint64_t again = 0;
  for (uint64_t page = 0, pages = origin.grid.pages(); page < pages; ++page) {
    if (!origin.early[page]) continue;
    if (origin.early[page] == version_of(origin, page)) {
      confirm_page(*confirm, origin.grid, page);
    } else {
      again += origin.grid.begin(page + 1) - origin.grid.begin(page);
    }
  }
  coarsen(*confirm);
  count_as_sent(origin);
  if (++origin.asked_count % fading == 0) {
    for (uint64_t page = 0; page < origin.grid.pages(); ++page) {
      origin.wary[page] -= origin.wary[page] != 0;
    }
  }
  core_.counters().presend_again_bytes += again;
  origin.paid = confirm->bytes != 0;
  learn_calm(origin, *confirm, again);
  return confirm;
}

// MPI is about to end: nothing more is given early.
void Presends::stop() {
  may_prefetch_ = false;
  versions_.stop();
}

void Presends::rest() {
  prefetches_again_ |= may_prefetch_;
  may_prefetch_ = false;
  origins_.for_each([this](Origin& origin) {
    if (origin.asked || origin.kept)
      refuse(core_.links().peers()[origin.peer], origins_.id_of(origin), true);
    origin.kept = 0;
    if (origin.watched) leave_alone(origin);
    origin.wanted = false;
  });
}

}  // namespace headway::protocols
