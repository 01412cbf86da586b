#include "transports/shm/rings.h"

#include <cstring>

#include "base/check.h"
#include "transports/garbage.h"

namespace headway::shm {
namespace {

using transports::Urgency;

// Who is woken for a frame, and how many cells it leaves to frames that others wait for.
struct Manner {
  uint32_t events, reserve;
};
constexpr Manner manner_of(Urgency urgency) {
  switch (urgency) {
    case Urgency::envelope: return {event_envelope, reserved_cells};
    case Urgency::rendezvous: return {event_rendezvous | event_envelope, reserved_cells};
    case Urgency::data: return {event_control, reserved_cells};
    case Urgency::control: return {event_control, 0};
    case Urgency::done: return {event_done, 0};
  }
  return {event_any, 0};
}

}  // namespace

bool Rings::prepare(uint32_t ranks, transports::Receiver* receiver) {
  receiver_ = receiver;
  return ends_.reserve(ranks) && open_.reserve(ranks);
}

void Rings::add(uint32_t peer, Producer& out, Consumer& in) {
  (void)ends_.push({peer, &out, &in});  // has its room
}

Outcome Rings::connect(uint32_t local, uint32_t& frame_max) {
  const Outcome opened = node_.open_to(local, *ends_[local].out);
  if (opened != Outcome::ok) {
    receiver_->lost(ends_[local].peer, Outcome::no_memory,
                    "no shared memory left for a ring to this rank");
    return opened;
  }
  frame_max = ends_[local].out->shape().frame_max();
  return Outcome::ok;
}

Push Rings::push(uint32_t local, const FrameHeader& header, const void* head, uint32_t n,
                 const Feed* feed, uint64_t, Urgency urgency) {
  Producer& out = *ends_[local].out;
  const auto [events, reserve] = manner_of(urgency);
  Push pushed;
  if (header.length > inline_max) {
    pushed = out.push_payload(header, head, n, *feed, reserve);
  } else {
    char body[inline_max];
    const void* from = head;
    if (feed && n == 0 && feed->flat) {
      from = feed->flat;
    } else if (feed) {
      if (n) memcpy(body, head, n);
      feed->copy(0, body + n, feed->length);
      from = body;
    }
    pushed = out.push_inline(header, from, reserve);
  }
  // A receiver that is away is woken by a full ring whatever it waits for.
  node_.wake(local, pushed == Push::full ? uint32_t(event_any) : events);
  return pushed;
}

bool Rings::writable(uint32_t local) const {
  return ends_[local].out->attached() && ends_[local].out->has_room(inline_max, reserved_cells);
}

void Rings::press(bool on) {
  if (node_.active()) node_.own().pressure.store(on, std::memory_order_relaxed);
}

void Rings::meet_newcomers() {
  if (!node_.has_newcomers()) [[likely]]
    return;
  uint64_t fresh[max_ranks / 64] = {};
  if (!node_.take_newcomers(fresh)) return;
  for (uint32_t i = 0; i < node_.ranks(); ++i) {
    if (!(fresh[i / 64] >> (i % 64) & 1)) continue;
    HEADWAY_CHECK(!ends_[i].in->attached());
    node_.attach_from(i, *ends_[i].in);
    (void)open_.push(i);  // has its room: each comes once
  }
}

void Rings::refuse(uint32_t local, const FrameHeader& header) {
  const auto story = transports::garbage_story(
      *receiver_, header, "a frame in shared memory makes no sense", "; was it overwritten?");
  receiver_->lost(ends_[local].peer, Outcome::bad_data, story.c_str());
}

bool Rings::take(uint32_t local, const Cell& cell) {
  const auto& [peer, out, in] = ends_[local];
  const char* body = in->body(cell);
  if (!body || !receiver_->frame(peer, cell.header, body)) [[unlikely]] {
    refuse(local, cell.header);
  }
  drop(local, *in, cell);
  return true;
}

bool Rings::reap(uint64_t) {
  if (!node_.active()) return false;
  meet_newcomers();
  bool moved = false;
  for (const uint32_t local : open_) {
    const Consumer& in = *ends_[local].in;
    HEADWAY_CHECK(in.attached());
    for (int frames = 0; frames < frames_a_turn; ++frames) {
      const Cell* cell = in.peek();
      if (!cell) break;
      if (frames != 0) in.fetch_ahead(*cell);
      moved = take(local, *cell);
    }
  }
  return moved;
}

}  // namespace headway::shm
