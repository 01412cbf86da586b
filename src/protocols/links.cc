#include "protocols/links.h"

#include <cstring>
#include <new>

#include "base/heap.h"

namespace headway::protocols {

using transports::Urgency;

Outcome Links::use_node(const uint32_t* local_ranks, uint32_t count, uint32_t self,
                        transports::Receiver* receiver) {
  if (!rings_.prepare(count, receiver)) return Outcome::no_memory;
  for (uint32_t i = 0; i < count; ++i) {
    Peer* peer = peers_.get(local_ranks[i]);
    if (!peer) return Outcome::no_memory;
    rings_.add(peer->process, peer->out, peer->in);
    peer->number = i;
    if (peer->process == self) continue;
    peer->transport = &rings_;
    peer->caps = rings_.caps();
  }
  return Outcome::ok;
}

void Links::use(transports::Transport& transport) {
  look_at(transport);
  peers_.reach_by(transport);
}

void Links::look_at(transports::Transport& transport) {
  HEADWAY_CHECK(other_count_ < most_transports);
  others_[other_count_++] = &transport;
}

void Links::connect(Peer& peer) {
  peer.connected = true;
  if (!peer.transport || peer.transport->connect(peer.number, peer.limits.chunk) != Outcome::ok)
    return;
  const uint64_t eager = peer.on_this_host() ? settings_.eager_max_shm : settings_.eager_max_tcp;
  peer.limits.eager = eager < peer.limits.chunk ? eager : peer.limits.chunk;
}

// --- what goes out ---

Push Links::push_frame(Peer& peer, const FrameHeader& header, const void* head, uint32_t n,
                       const Feed* feed, uint64_t cookie, Urgency urgency) {
  HEADWAY_CHECK(peer.backlog.controls.empty() || &peer.backlog.controls.first()->header == &header);
  if (peer.out.attached()) return rings_.push(peer.number, header, head, n, feed, cookie, urgency);
  const Push pushed = peer.transport->push(peer.number, header, head, n, feed, cookie, urgency);
  if (watch_ && pushed != Push::full) [[unlikely]]
    watch_(watcher_, peer, header);
  return pushed;
}

// A head of a few bytes is all that a transport takes beside a Feed.
Push Links::push_control(Peer& peer, const FrameHeader& header, const void* body, Urgency urgency) {
  if (header.length <= sizeof(ClearSend)) {
    return push_frame(peer, header, body, header.length, nullptr, 0, urgency);
  }
  const Feed feed{.flat = static_cast<const char*>(body), .length = header.length};
  return push_frame(peer, header, nullptr, 0, &feed, 0, urgency);
}

void Links::control(Peer& peer, const FrameHeader& header, const void* body, Urgency urgency) {
  HEADWAY_CHECK(header.length <= transports::always_whole);
  if (peer.left) [[unlikely]]
    return;
  if (!peer.connected) connect(peer);
  if (peer.backlog.controls.empty() && push_control(peer, header, body, urgency) != Push::full) {
    return;
  }
  void* memory = base::heap_allocate(sizeof(ControlFrame) + header.length);
  if (!memory) {
    fail(Outcome::no_memory, peer, "no memory for a control frame");
    return;
  }
  auto* frame = new (memory) ControlFrame;
  frame->header = header;
  if (body) memcpy(frame->body(), body, header.length);
  peer.backlog.controls.push_back(frame);
  mark_busy(peer);
}

bool Links::flush_controls(Peer& peer, bool& moved) {
  while (ControlFrame* frame = peer.backlog.controls.first()) {
    const Push pushed = push_control(peer, frame->header, frame->body(), Urgency::control);
    if (pushed == Push::full) return false;
    peer.backlog.controls.remove(frame);
    base::heap_free(frame, frame->block_bytes());
    moved = true;
  }
  return true;
}

void Links::drop_controls(Peer& peer) {
  while (ControlFrame* frame = peer.backlog.controls.first()) {
    peer.backlog.controls.remove(frame);
    base::heap_free(frame, frame->block_bytes());
  }
}

void Links::mark_busy(Peer& peer) {
  if (peer.backlog.listed) return;
  peer.backlog.listed = true;
  if (!busy_.push(&peer)) fail(Outcome::no_memory, peer, "no memory for the list of busy peers");
}

// --- what comes in, beside the rings ---

bool Links::reap_others(bool all) {
  bool moved = false;
  for (uint32_t i = 0; i < other_count_; ++i) {
    if (all || others_[i]->descriptor() < 0) moved |= others_[i]->reap(reap_budget);
  }
  return moved;
}

void Links::look_at_hosts() {
  for (uint32_t i = 0; i < other_count_; ++i) others_[i]->look_at_hosts();
}

// --- the end ---

void Links::fail(Outcome why, Peer& peer, const char* story) {
  if (peer.lost) return;
  peer.lost = true;
  fatal_(why, peer.rank, story);
}

void Links::lost(uint32_t process, Outcome why, const char* story) {
  if (Peer* peer = peers_.find(process)) return fail(why, *peer, story);
  fatal_(why, process, story);
}

void Links::rest() {
  for (uint32_t i = 0; i < other_count_; ++i) others_[i]->rest();
}

bool Links::is_delivered() const {
  for (uint32_t i = 0; i < other_count_; ++i) {
    if (!others_[i]->is_delivered()) return false;
  }
  return true;
}

void Links::wake() {
  for (uint32_t i = 0; i < other_count_; ++i) others_[i]->wake();
}

}  // namespace headway::protocols
