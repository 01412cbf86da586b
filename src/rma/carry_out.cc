#include "rma/carry_out.h"

#include <cstring>

#include "base/copy.h"
#include "protocols/user_memory.h"

namespace headway::rma {
namespace {

Carried outside(const Memory& memory) {
  // An origin knows the size of every other window, and looks before it sends.
  return memory.attached ? Carried::refused : Carried::garbage;
}

// All runs are in the window: bytes as they are.
bool are_inside(const Memory& memory, const Places& places) {
  for (uint32_t i = 0; i < places.count(); ++i) {
    const Run run = places.run(i);
    if (!memory.place(run.at, run.bytes)) return false;
  }
  return true;
}

// Bytes of memory from the first to behind the last of n elements; 0: none, or no memory has them.
uint64_t span_of(const Work& work, uint64_t bytes) {
  if (bytes == 0 || bytes % work.size() != 0) return 0;
  return (bytes / work.size() - 1) * work.extent() + work.span();
}

// One load or store where the length is that of a word, for others that look at it meanwhile.
void move(char* to, const char* from, uint64_t n) {
  if (n == 8) {
    memcpy(to, from, 8);
  } else if (n == 4) {
    memcpy(to, from, 4);
  } else {
    base::copy_piece(to, from, n);
  }
}

}  // namespace

bool Places::read(const char* body, uint32_t length) {
  if (length < sizeof head_) return false;
  memcpy(&head_, body, sizeof head_);
  if (head_.runs == 0 || head_.runs > (length - sizeof head_) / sizeof(Run)) return false;
  runs_ = body + sizeof head_;
  data_ = runs_ + head_.runs * sizeof(Run);
  data_bytes_ = length - sizeof head_ - head_.runs * sizeof(Run);
  bytes_ = 0;
  for (uint32_t i = 0; i < head_.runs; ++i) {
    const Run one = run(i);
    if (one.bytes == 0 || one.bytes > most_body - bytes_) return false;
    bytes_ += one.bytes;
  }
  return true;
}

Run Places::run(uint32_t i) const {
  Run one;
  memcpy(&one, runs_ + i * sizeof one, sizeof one);  // a body may begin anywhere
  return one;
}

Carried put(const Memory& memory, const Places& places) {
  if (places.data_bytes() != places.bytes()) return Carried::garbage;
  if (!are_inside(memory, places)) return outside(memory);
  const char* from = places.data();
  for (uint32_t i = 0; i < places.count(); ++i) {
    const Run run = places.run(i);
    char* const to = memory.place(run.at, run.bytes);
    protocols::check_open(to, run.bytes);
    move(to, from, run.bytes);
    from += run.bytes;
  }
  return Carried::done;
}

Carried get(const Memory& memory, const Places& places, char* out) {
  if (places.data_bytes() != 0) return Carried::garbage;
  if (!are_inside(memory, places)) return outside(memory);
  for (uint32_t i = 0; i < places.count(); ++i) {
    const Run run = places.run(i);
    const char* const from = memory.place(run.at, run.bytes);
    protocols::check_open(from, run.bytes);
    move(out, from, run.bytes);
    out += run.bytes;
  }
  return Carried::done;
}

Carried accumulate(const Memory& memory, const Places& places, const Work& work, char* before) {
  if (places.data_bytes() != (work.has_operand() ? places.bytes() : 0)) return Carried::garbage;
  for (uint32_t i = 0; i < places.count(); ++i) {
    const Run run = places.run(i);
    const uint64_t span = span_of(work, run.bytes);
    if (span == 0) return Carried::garbage;
    if (!memory.place(run.at, span)) return outside(memory);
  }
  const char* operands = places.data();
  for (uint32_t i = 0; i < places.count(); ++i) {
    const Run run = places.run(i);
    const uint64_t span = span_of(work, run.bytes);
    char* const target = memory.place(run.at, span);
    protocols::check_open(target, span);
    memory.by_stripes(target, run.bytes / work.size(), work.extent(),
                      [&](uint64_t first, uint64_t n) {
                        apply(work, target + first * work.extent(), operands + first * work.size(),
                              before ? before + first * work.size() : nullptr, n);
                      });
    operands += run.bytes;
    if (before) before += run.bytes;
  }
  return Carried::done;
}

Carried swap(const Memory& memory, const Places& places, const Work& work, char* before) {
  const uint64_t size = work.size();
  if (!may_swap(work.basic) || places.count() != 1 || places.bytes() != size ||
      places.data_bytes() != 2 * size) {
    return Carried::garbage;
  }
  char* const target = memory.place(places.run(0).at, size);
  if (!target) return outside(memory);
  protocols::check_open(target, size);
  memory.by_stripes(target, 1, size, [&](uint64_t, uint64_t) {
    swap(work, target, places.data(), places.data() + size, before);
  });
  return Carried::done;
}

}  // namespace headway::rma
