#include "protocols/prefetch/fetch.h"

#include "base/check.h"
#include "base/clock.h"
#include "protocols/messages/messages.h"
#include "protocols/ways/order.h"
#include "protocols/ways/pieces.h"
#include "settings/events.h"

namespace headway::protocols {
namespace {

using guard::page_bytes;

constexpr uint32_t most_vain = 4;
// A request that brought less of its message, or more that had to be sent again, was in vain.
constexpr uint64_t least_useful = 16;
// Messages before requests are tried again, to tell when a pattern changed. Two at a time: the
// first one may only begin to follow the buffer.
constexpr uint32_t first_rest = 32, longest_rest = 4096;
constexpr uint64_t shortly = 8;  // before the send: for less than that part of the time between two
constexpr uint64_t old_ns = 1'000'000'000;  // of a request: it may have to make room

}  // namespace

void Fetches::add_frames(Frames& frames) {
  const auto add = [&](Kind kind, FrameKind what) {
    what.owner = this;
    what.needs = transports::early;
    frames.add(uint8_t(kind), what);
  };
  add(Kind::refuse, {.name = "refuse", .whole = by<&Fetches::deliver_refuse>});
  add(Kind::presend, {.name = "presend",
                      .whole = by<&Fetches::deliver_presend>,
                      .begin = by<&Fetches::begin_presend>,
                      .least = 1,
                      .most = any_length});
  add(Kind::confirm, {.name = "confirm",
                      .whole = by<&Fetches::deliver_confirm>,
                      .least = sizeof(ConfirmWhole),
                      .most = sizeof(ConfirmWhole),
                      .envelope = true});
}

Store* Fetches::store_of(Peer& peer, uint32_t origin) {
  Store* store = peer.early.stores.first();
  while (store && store->origin != origin) store = store->list_next;
  return store;
}

// The receive is posted, and its user waits for it, or has gone on without it.
void Fetches::ask_early(Request* receive) {
  if (const Prediction* known = prediction_of(*receive)) ask_for_next(*receive, *known);
}

// Where a collective puts what comes from one rank may depend on what comes from others: the blocks
// of an Alltoallv follow one another, and move with the first one's size. So what is known of the
// messages from there stands in for a buffer that little is known of.
Prediction* Fetches::prediction_of(const Request& receive) {
  const uint32_t peer = receive.peer->process;
  Prediction* known = predictions_.find(receive.buffer(), receive.key, receive.traffic, peer);
  if (!receive.traffic.collective || (known && known->seen >= Prediction::sure)) return known;
  return prediction_for_any(receive.key, receive.traffic, peer);
}

// Of a collective; null for others.
Prediction* Fetches::prediction_for_any(const matching::Key& key, matching::Traffic traffic,
                                        uint32_t peer) {
  return traffic.collective ? predictions_.find(nullptr, key, traffic, peer) : nullptr;
}

// The next message into the buffer of that receive. `leaving`: of the message before; it is given
// back at once, before anything comes of the next.
void Fetches::ask_for_next(const Request& receive, const Prediction& known, const Store* leaving) {
  Peer& peer = *receive.peer;
  const uint64_t room = receive.memory.bytes();
  const bool fits = known.size <= room || (receive.traffic.collective && is_near(known.size, room));
  if (known.seen < Prediction::sure || known.rest ||
      known.size < messages_.settings().prefetch_threshold || !fits ||
      store_of(peer, known.origin)) {
    return;
  }
  Store* store = make_store(known.size, leaving);
  if (!store) {
    ++messages_.counters().prefetch_no_room;
    withdraw_oldest();
    return;
  }
  store->stands = true;
  store->peer = &peer;
  store->origin = known.origin;
  store->buffer = known.buffer;
  store->key = receive.key;
  store->traffic = receive.traffic;
  store->asked_at = base::now_ns();
  store->asked = base::begin_event();
  peer.early.stores.push_back(store);
  tell_wanted(*store, true);
  ++messages_.counters().prefetches;
}

void Fetches::tell_wanted(const Store& store, bool yes) {
  FrameHeader header;
  header.kind = uint8_t(Kind::prefetch);
  header.flags = yes ? 0 : flag_yes;
  header.word = store.origin;
  header.context = store.grid.size;
  messages_.links().control(*store.peer, header, nullptr);
}

// There is no room for another request. One whose message has not come for long may stand for a
// buffer that is never sent from again: it makes room, once its sender has answered.
void Fetches::withdraw_oldest() {
  Store* oldest = nullptr;
  for (uint32_t i = 0; i < stores_.capacity(); ++i) {
    Store* store = stores_.at(i);
    if (!store->taken || !store->stands) continue;
    if (store->withdrawn) return;  // the answer is on its way
    if (!oldest || store->asked_at < oldest->asked_at) oldest = store;
  }
  if (!oldest || base::now_ns() - oldest->asked_at < old_ns) return;
  oldest->withdrawn = true;
  tell_wanted(*oldest, false);
}

Store* Fetches::make_store(uint64_t size, const Store* leaving) {
  const uint64_t pages = (size + size / nearly) / Grid::page + 2, words = PageSet::words(pages);
  const uint64_t data = (size + 7) / 8 * 8, bytes = data + 2 * words * sizeof(uint64_t);
  const uint64_t kept = stored_bytes_ - (leaving ? leaving->bytes : 0);
  if (kept > messages_.settings().prefetch_max || bytes > messages_.settings().prefetch_max - kept)
    return nullptr;
  Store* store = stores_.take();
  char* block = store ? static_cast<char*>(base::heap_allocate(bytes)) : nullptr;
  if (!block) {
    if (store) stores_.give(store);
    return nullptr;
  }
  stored_bytes_ += bytes;
  store->shift = 0;
  store->late = store->hurried = store->stands = store->withdrawn = false;
  store->grid = {0, size};
  store->data = block;
  store->got = reinterpret_cast<uint64_t*>(block + data);
  store->sure = store->got + words;
  store->most_pages = pages;
  memset(store->got, 0, words * sizeof(uint64_t));
  store->bytes = bytes;
  store->come = store->rest = store->confirmed = 0;
  return store;
}

void Fetches::drop_store(Store* store) {
  HEADWAY_CHECK(store->data && !store->stands && stored_bytes_ >= store->bytes);
  stored_bytes_ -= store->bytes;
  base::heap_free(store->data, store->bytes);
  store->data = nullptr;
  stores_.give(store);
  HEADWAY_CHECK(stored_bytes_ <= messages_.settings().prefetch_max);
}

// A message has come so soon after the request that one at the match before would bring more.
bool Fetches::is_hurried(const Store& store, const Prediction& known) {
  const uint64_t now = base::now_ns();
  return (now - store.asked_at) * shortly < now - known.matched_at;
}

Prediction* Fetches::prediction_of(const Store& store) {
  return predictions_.find(store.buffer, store.key, store.traffic, store.peer->process);
}

// The request is over. What it brought has been confirmed by now, or never will be.
void Fetches::end_asking(Store* store, Answer answer) {
  HEADWAY_CHECK(store->stands && store_of(*store->peer, store->origin) == store);
  store->peer->early.stores.remove(store);
  store->stands = false;
  Prediction* known = prediction_of(*store);
  if (known && !store->withdrawn && known->origin == store->origin) {
    const uint64_t early = store->come - store->rest;
    const bool useful =
        store->confirmed >= store->grid.size / least_useful && store->confirmed * 2 >= early;
    // One that brought nothing may have found the link taken by others, or have come too shortly
    // before the send; the next one is to be earlier.
    if (useful ? store->hurried : answer == Answer::message && is_hurried(*store, *known)) {
      known->ahead = true;
    }
    if (useful) {
      known->vain = 0;
    } else if (answer == Answer::never) {
      known->rest = longest_rest;
    } else if (++known->vain >= most_vain && known->vain % 2 == 0) {
      const uint32_t shift = (known->vain - most_vain) / 2;
      known->rest = shift < 7 ? first_rest << shift : longest_rest;
    }
    if (known->rest) known->ahead = false;
    // Whether a collective is in a hurry does not hang on where its blocks lie.
    if (Prediction* any = prediction_for_any(store->key, store->traffic, store->peer->process)) {
      any->ahead = !known->rest && (any->ahead || known->ahead);
    }
  }
  const uint64_t rate = store->peer->flow.arrival_rate;
  const uint64_t spared_ns = rate ? store->confirmed * 1'000'000'000 / rate : 0;
  tell_prefetch(*store, spared_ns);
  if (!store->confirmed) {
    drop_store(store);
    return;
  }
  ++messages_.counters().prefetch_hits;
  messages_.counters().prefetch_used_bytes += store->confirmed;
  messages_.counters().prefetch_saved_ns += spared_ns;
}

// To a recorder, and to tools.
void Fetches::tell_prefetch(const Store& store, uint64_t spared_ns) {
  using settings::EventKind;
  if (store.confirmed) {
    settings::tell<EventKind::prefetch_hit>(store.peer->process, store.confirmed, spared_ns);
  } else {
    settings::tell<EventKind::prefetch_missed>(store.peer->process, store.grid.size);
  }
  if (!store.asked) [[likely]]
    return;
  base::end_event(store.asked, {.kind = headway_event_prefetch,
                                .bytes = store.confirmed,
                                .peer = int32_t(store.peer->process),
                                .spared_ns = spared_ns});
}

// --- what comes before the send ---

// Null: these are no bytes that were asked for.
Store* Fetches::place_early(Peer& peer, const FrameHeader& header) {
  Store* store = store_of(peer, header.word);
  if (!store || header.source < 0 || uint64_t(header.source) >= Grid::page) {
    return nullptr;
  }
  Grid grid{uint32_t(header.source), store->grid.size};
  if (store->come && grid.first != store->grid.first) return nullptr;
  if (header.context >= grid.size || header.length > grid.size - header.context ||
      !grid.is_boundary(header.context) || !grid.is_boundary(header.context + header.length)) {
    return nullptr;
  }
  store->grid = grid;
  return store;
}

void Fetches::note_early(Store* store, const FrameHeader& header) {
  const uint64_t end = store->grid.page_of(header.context + header.length - 1);
  HEADWAY_CHECK(end < store->most_pages);
  for (uint64_t page = store->grid.page_of(header.context); page <= end; ++page) {
    PageSet::set(store->got, page);
  }
  store->come += header.length;
  messages_.counters().presend_received_bytes += header.length;
}

bool Fetches::deliver_presend(Peer& peer, const FrameHeader& header, const char* body) {
  Store* store = place_early(peer, header);
  if (!store) return false;
  memcpy(store->data + header.context, body, header.length);
  note_early(store, header);
  return true;
}

bool Fetches::begin_presend(Peer& peer, const FrameHeader& header, Landing& landing) {
  static constexpr Lander lander{.landed = nullptr, .end = by<&Fetches::end_presend>};
  Store* store = place_early(peer, header);
  if (!store) return false;
  landing = {.flat = store->data + header.context,
             .length = header.length,
             .token = store,
             .lander = &lander};
  return true;
}

void Fetches::end_presend(uint32_t, const FrameHeader& header, const Landing& landing) {
  note_early(static_cast<Store*>(landing.token), header);
}

bool Fetches::deliver_refuse(Peer& peer, const FrameHeader& header, const char*) {
  if (Store* store = store_of(peer, header.word)) {
    ++messages_.counters().prefetch_refused;
    end_asking(store, header.flags & flag_yes ? Answer::never : Answer::not_now);
  }
  return true;
}

// --- envelopes ---

bool Fetches::note_envelope(Peer& peer, const Told& told, Store*& store) {
  store = nullptr;
  if (!told.origin) return !told.asked && !told.confirmed.grain;
  if (!peer.can(transports::early)) return false;
  Store* asking = peer.early.stores.empty() ? nullptr : store_of(peer, told.origin);
  if (!told.asked) {
    if (asking && !asking->late) {
      // Sent before the request was seen, or before its pages were followed: that stands for the
      // next one.
      asking->late = true;
      const Prediction* known = prediction_of(*asking);
      asking->hurried = known && is_hurried(*asking, *known);
      ++messages_.counters().prefetch_late;
    }
    return !told.confirmed.grain;
  }
  if (!asking || !take_told(*asking, told)) return false;
  const bool any = asking->confirmed != 0;
  end_asking(asking, Answer::message);
  if (any) store = asking;
  return true;
}

// Of a message that has not the size, or not the place, of the one that was asked for, whole pages
// are confirmed, by their places in the message. False: nothing has been taken.
bool Fetches::take_told(Store& store, const Told& told) {
  const Confirmed& confirmed = told.confirmed;
  if (!told.all && !confirmed.grain) return true;
  const Grid grid{told.all ? store.grid.first : confirmed.first, told.size};
  const bool moved = confirmed.shift != 0 || told.size != store.grid.size;
  if (grid.first >= Grid::page || grid.first > told.size ||
      (!moved && grid.first != store.grid.first)) {
    return false;
  }
  const uint64_t pages = grid.pages();
  if (pages > store.most_pages) return false;
  if (!told.all) {
    const uint64_t bits = confirmed_bits(pages);
    if (confirmed.grain != grain_of(pages) || told.words != PageSet::words(bits)) return false;
    if (PageSet::find(told.bits, told.words * 64, bits, true) != told.words * 64) return false;
  }
  memset(store.sure, 0, PageSet::words(pages) * sizeof(uint64_t));
  uint64_t bytes = 0;
  for (uint64_t page = 0; page < pages; ++page) {
    if (!told.all && !PageSet::has(told.bits, page / confirmed.grain)) continue;
    const bool come =
        moved ? has_kept(store, grid, page, confirmed.shift) : PageSet::has(store.got, page);
    if (!come) return false;
    PageSet::set(store.sure, page);
    bytes += grid.begin(page + 1) - grid.begin(page);
  }
  if (told.rest > bytes) return false;
  store.grid = grid;
  store.shift = confirmed.shift;
  store.rest = told.rest;
  store.confirmed = bytes - told.rest;
  return true;
}

// A page of a message that lies `shift` bytes behind the one that was asked for.
bool Fetches::has_kept(const Store& store, const Grid& grid, uint64_t page, int64_t shift) {
  const uint64_t from = grid.begin(page), limit = store.grid.size;
  if (limit < Grid::page || grid.begin(page + 1) - from != Grid::page || shift > int64_t(limit) ||
      shift < -int64_t(from) || from + uint64_t(shift) > limit - Grid::page) {
    return false;
  }
  const uint64_t at = from + uint64_t(shift);
  return store.grid.is_boundary(at) && store.grid.is_boundary(at + Grid::page) &&
         PageSet::has(store.got, store.grid.page_of(at));
}

bool Fetches::note_eager(Peer& peer, const FrameHeader& header) {
  const bool asked = header.flags & flag_asked;
  const uint32_t origin = origin_told(header);
  if (!asked && (!origin || peer.early.stores.empty())) [[likely]]
    return true;
  Store* store;
  return note_envelope(peer, {.origin = origin, .asked = asked, .size = header.length}, store);
}

bool Fetches::deliver_confirm(Peer& peer, const FrameHeader& header, const char* body) {
  ConfirmWhole whole;
  memcpy(&whole, body, sizeof whole);
  Store* asking = store_of(peer, header.word);
  if (!asking || asking->grid.size != whole.size || !whole.early || whole.early > whole.size) {
    return false;
  }
  Store* store;
  if (!note_envelope(peer,
                     {.origin = header.word,
                      .asked = true,
                      .size = whole.size,
                      .rest = whole.size - whole.early,
                      .all = true},
                     store) ||
      !store) {
    return false;
  }
  if (Request* receive = messages_.match(header)) {
    messages_.describe(receive, key_of(header), whole.size, peer);
    note_origin(receive, header.word, store);
    land_store(receive, store);
    return true;
  }
  Arrived* message = messages_.unexpected().make(peer, header, whole.size, false);
  if (!message) return true;
  message->remote = header.word;
  message->have = whole.size;
  message->store = store;
  return true;
}

void Fetches::note_origin(Request* receive, uint32_t origin, const Store* store, bool waited) {
  if (!origin || !presends_.is_on() || receive->key.is_wild()) return;
  const uint32_t peer = receive->peer->process;
  const uint64_t now = base::now_ns();
  const auto note = [&](const char* buffer) {
    Prediction* noted = predictions_.note(buffer, receive->key, receive->traffic, peer, origin,
                                          receive->sent_bytes);
    if (noted) noted->matched_at = now;
  };
  note(receive->buffer());
  if (receive->traffic.collective) note(nullptr);
  Prediction* known = prediction_of(*receive);
  if (!known || !receive->peer->can(transports::early)) return;
  // Who comes after the messages never waits for one, and would never ask.
  if (waited && !known->rest) known->ahead = true;
  const Prediction* any =
      known->ahead ? known : prediction_for_any(receive->key, receive->traffic, peer);
  if (any && any->ahead) ask_for_next(*receive, *known, store);
}

// --- what the send has confirmed ---

void Fetches::land_early(Request* receive, const Store& store, uint64_t from, uint64_t n) {
  receive->memory.write(from, store.data + (int64_t(from) + store.shift), n);
  messages_.note_arrival(receive, from, n);
}

void Fetches::land_store(Request* receive, Store* store) {
  const uint64_t bytes = receive->status_bytes();
  if (bytes) land_early(receive, *store, 0, bytes);
  drop_store(store);
  messages_.note_received(bytes);
  messages_.complete(receive, Outcome::ok);
}

bool Fetches::holds_all(const Store& store, uint64_t total) {
  return store.grid.begin(PageSet::find(store.sure, store.grid.pages(), 0, false)) >= total;
}

void Fetches::land_some(Request* receive, Store* store) {
  Transfer& transfer = messages_.transfer(*receive);
  if (!cover(transfer, store->grid, store->sure)) {
    messages_.links().fail(Outcome::no_memory, *receive->peer,
                           "no memory for what came before its send");
    return;
  }
  const Order& order = *transfer.order;
  for (uint64_t page = 0; page < order.pages(); ++page) {
    if (order.is_taken(page)) {
      land_early(receive, *store, transfer.head + page * page_bytes, page_bytes);
    }
  }
  drop_store(store);
}

void Fetches::choose_pages(Request* receive, const Grid& grid, bool opens) {
  Transfer& transfer = messages_.transfer(*receive);
  if (!opens) {
    transfer.stays = true;
    transfer.head = uint32_t(grid.first < transfer.total ? grid.first : transfer.total);
  }
  transfer.tail = uint32_t((transfer.total - transfer.head) % guard::page_bytes);
}

}  // namespace headway::protocols
