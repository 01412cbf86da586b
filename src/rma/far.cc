#include "rma/far.h"

#include <cstring>
#include <sched.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "protocols/links.h"
#include "rma/carry_out.h"

namespace headway::rma {
namespace {

// A page that is moved for a moment, such as one whose writes are followed, is refused like one
// that is not there: so we ask again for a while, in which whoever moves it may lose its core.
template <class Copy>
Outcome insist(Copy&& copy) {
  constexpr uint64_t patience_ns = 1'000'000'000;
  constexpr int soon = 1000, pause_us = 50;
  Outcome outcome = copy();
  const uint64_t end = outcome == Outcome::refused ? base::now_ns() + patience_ns : 0;
  for (int tries = 0; outcome == Outcome::refused && base::now_ns() < end; ++tries) {
    if (tries < soon) {
      sched_yield();
    } else {
      usleep(pause_us);
    }
    outcome = copy();
  }
  return outcome;
}

Outcome read(shm::Node& node, const Far& far, int64_t at, char* to, uint64_t n) {
  return insist([&] {
    iovec piece{to, n};
    uint64_t done = 0;
    return node.pull(far.process, far.base + uint64_t(at), &piece, 1, done);
  });
}

Outcome write(shm::Node& node, const Far& far, int64_t at, const char* from, uint64_t n) {
  return insist([&] {
    iovec piece{const_cast<char*>(from), n};
    uint64_t done = 0;
    return node.push(far.process, far.base + uint64_t(at), &piece, 1, done);
  });
}

// Elements of one block, and those that reach into the next.
constexpr size_t most_at_once = Stripes::block + 2 * most_element;

}  // namespace

bool may_reach(shm::Node& node, const Far& far) {
  char byte;
  iovec piece{&byte, 1};
  uint64_t done = 0;
  return far.size == 0 || node.pull(far.process, far.base, &piece, 1, done) == Outcome::ok;
}

Outcome move(shm::Node& node, const Far& far, int64_t at, const protocols::UserMemory& here,
             bool out) {
  constexpr size_t most_pieces = 64;
  iovec pieces[most_pieces];
  for (uint64_t from = 0; from < here.bytes();) {
    uint64_t covered = 0;
    const Outcome moved = insist([&] {
      uint64_t done = 0;
      const size_t n = here.vectors(from, here.bytes() - from, pieces, most_pieces, covered);
      HEADWAY_CHECK(n != 0 && covered != 0);
      const uint64_t remote = far.base + uint64_t(at) + from;
      return out ? node.push(far.process, remote, pieces, n, done)
                 : node.pull(far.process, remote, pieces, n, done);
    });
    if (moved != Outcome::ok) return moved;
    from += covered;
  }
  return Outcome::ok;
}

Outcome put(shm::Node& node, const Far& far, const Places& places) {
  const char* from = places.data();
  for (uint32_t i = 0; i < places.count(); ++i) {
    const Run run = places.run(i);
    if (const Outcome done = write(node, far, run.at, from, run.bytes); done != Outcome::ok) {
      return done;
    }
    from += run.bytes;
  }
  return Outcome::ok;
}

Outcome get(shm::Node& node, const Far& far, const Places& places, char* out) {
  for (uint32_t i = 0; i < places.count(); ++i) {
    const Run run = places.run(i);
    if (const Outcome done = read(node, far, run.at, out, run.bytes); done != Outcome::ok) {
      return done;
    }
    out += run.bytes;
  }
  return Outcome::ok;
}

Outcome accumulate(shm::Node& node, const Far& far, const Places& places, const Work& work,
                   char* before) {
  const uint64_t size = work.size(), extent = work.extent();
  alignas(64) char here[most_at_once];
  Outcome outcome = Outcome::ok;
  const char* operands = places.data();
  for (uint32_t i = 0; i < places.count() && outcome == Outcome::ok; ++i) {
    const Run run = places.run(i);
    far.stripes->each(uint64_t(run.at), run.bytes / size, extent, [&](uint64_t first, uint64_t n) {
      if (outcome != Outcome::ok) return;
      const int64_t at = run.at + int64_t(first * extent);
      const uint64_t span = (n - 1) * extent + work.span();
      HEADWAY_CHECK(span <= sizeof here);
      outcome = read(node, far, at, here, span);
      if (outcome != Outcome::ok) return;
      apply(work, here, operands + first * size, before ? before + first * size : nullptr, n);
      if (work.has_operand()) outcome = write(node, far, at, here, span);
    });
    operands += run.bytes;
    if (before) before += run.bytes;
  }
  return outcome;
}

Outcome swap(shm::Node& node, const Far& far, const Places& places, const Work& work,
             char* before) {
  const Run run = places.run(0);
  const uint64_t size = work.size();
  Outcome outcome = Outcome::ok;
  far.stripes->each(uint64_t(run.at), 1, size, [&](uint64_t, uint64_t) {
    outcome = read(node, far, run.at, before, size);
    if (outcome != Outcome::ok || memcmp(before, places.data(), size) != 0) return;
    outcome = write(node, far, run.at, places.data() + size, size);
  });
  return outcome;
}

}  // namespace headway::rma
