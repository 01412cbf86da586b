// Frames: what each kind of frame is, and who takes it. A mechanism adds its kinds, and nothing
// else has to know them. Thread: holder of the engine. Owner: the engine. Invariants: a kind has
// one owner, added before the first frame comes; no frame reaches its owner from a peer that has
// not the caps that the kind needs, or with a body of a length that the kind cannot have.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "base/feed.h"
#include "base/frame.h"

namespace headway::protocols {

struct Peer;

struct FrameKind {
  const char* name = nullptr;  // in what is told of garbage
  void* owner = nullptr;       // first argument of the two below
  // A frame whose body has wholly come. False: it makes no sense.
  bool (*whole)(void* owner, Peer& peer, const FrameHeader& header, const char* body) = nullptr;
  // The head of one whose body is still coming: says where it goes, and who is told (Lander).
  // Null: this kind is so short that it comes whole (transports::always_whole).
  bool (*begin)(void* owner, Peer& peer, const FrameHeader& header, Landing& landing) = nullptr;
  uint32_t needs = 0;            // transports::Cap of its peer
  uint32_t least = 0, most = 0;  // bytes of its body
  bool envelope = false;         // it has a place in the order of what can be matched
};

// A member function as FrameKind and Lander want it, called on the kind's owner.
namespace detail {
template <auto member>
struct By;
template <class Owner, class Result, class... Arguments, Result (Owner::*member)(Arguments...)>
struct By<member> {
  static Result call(void* owner, Arguments... arguments) {
    return (static_cast<Owner*>(owner)->*member)(arguments...);
  }
};
}  // namespace detail
template <auto member>
inline constexpr auto by = &detail::By<member>::call;

// Of a body: as long as its transport takes.
inline constexpr uint32_t any_length = ~0u;

class Frames {
 public:
  // 1 to 31: messages and what moves them (wire.h). The rest is for what comes: windows from 32,
  // spawned jobs from 48.
  static constexpr size_t most_kinds = 64;

  // A kind once, before the first frame. `name` and `whole` are there.
  void add(uint8_t kind, const FrameKind& what) {
    HEADWAY_CHECK(kind != 0 && kind < most_kinds && !kinds_[kind].whole);
    HEADWAY_CHECK(what.name && what.whole && what.least <= what.most);
    kinds_[kind] = what;
  }
  // Who takes a frame from a peer that can do `caps`; null: nobody, it makes no sense.
  const FrameKind* find(const FrameHeader& header, uint32_t caps) const {
    if (header.kind >= most_kinds) return nullptr;
    const FrameKind& kind = kinds_[header.kind];
    const bool fits = kind.whole && header.length >= kind.least && header.length <= kind.most &&
                      (kind.needs & ~caps) == 0;
    return fits ? &kind : nullptr;
  }
  // Of a kind that find() gave before.
  void* owner_of(uint8_t kind) const {
    HEADWAY_CHECK(kind < most_kinds && kinds_[kind].whole);
    return kinds_[kind].owner;
  }
  // Null: there is no such kind.
  const char* name_of(uint8_t kind) const {
    return kind < most_kinds ? kinds_[kind].name : nullptr;
  }

 private:
  FrameKind kinds_[most_kinds];
};

}  // namespace headway::protocols
