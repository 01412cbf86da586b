#include "rma/create.h"

#include <climits>
#include <new>

#include "base/address.h"
#include "base/check.h"
#include "base/heap.h"
#include "collectives/collectives.h"
#include "rma/sync.h"
#include "rma/windows.h"
#include "waiting/holding.h"

namespace headway::rma {
namespace {

using protocols::Segment;
using waiting::Holding;
using waiting::Waiter;

constexpr uint64_t page = 4096;

// What each rank tells of its part of a window, in this order.
enum Told : size_t { told_id, told_size, told_unit, told_base, told_ways, told_numbers };
// What it may do, as its settings and hints have it: done where all ranks may.
constexpr int64_t way_direct = 1, way_copies = 2, way_gaps = 4;

uint64_t whole_pages(uint64_t bytes) { return (bytes + page - 1) / page * page; }

// Every rank gives `width` numbers; afterwards all have those of all.
Outcome exchange(Waiter& waiter, objects::Comm* comm, base::Vec<int64_t>& all, size_t width,
                 const int64_t* own) {
  if (!all.resize(width * size_t(comm->own.size))) return Outcome::no_memory;
  for (size_t i = 0; i < width; ++i) all[size_t(comm->own.self) * width + i] = own[i];
  const auto blocks = collectives::Blocks::even(
      all.data(), width, &datatypes::predefined(datatypes::BasicType::int64_t));
  collectives::Schedule* schedule =
      collectives::allgather({waiter.engine, comm, collectives::nothing_forced}, {}, blocks);
  return schedule ? schedule->run(waiter) : Outcome::no_memory;
}

// Whether all ranks have given `true`.
Outcome agree(Waiter& waiter, objects::Comm* comm, base::Vec<int64_t>& all, bool own,
              bool& agreed) {
  const int64_t number = own;
  const Outcome told = exchange(waiter, comm, all, 1, &number);
  agreed = told == Outcome::ok;
  for (size_t i = 0; agreed && i < all.size(); ++i) agreed = all[i] != 0;
  return told;
}

Window* allocate(objects::Comm* comm, const Wish& wish, objects::Errhandler* errhandler) {
  void* memory = base::heap_allocate(sizeof(Window));
  if (!memory) return nullptr;
  auto* window = new (memory) Window{};
  const auto size = size_t(comm->own.size);
  window->comm = comm;
  window->errhandler = errhandler;
  errhandler->retain();
  window->hints = wish.hints;
  window->follows = wish.follows;
  window->flavor = wish.flavor;
  window->size = wish.size;
  window->disp_unit = wish.unit > INT_MAX ? INT_MAX : int(wish.unit);
  window->self = uint32_t(comm->own.self);
  if (!window->targets.resize(size) || !window->locks.prepare(size)) {
    objects::release(errhandler);
    window->~Window();
    base::heap_free(window, sizeof *window);
    return nullptr;
  }
  for (uint32_t rank = 0; rank < size; ++rank) {
    window->targets[rank].window = window;
    window->targets[rank].rank = rank;
  }
  return window;
}

// Engine held. No page of its memory is closed from now on.
void open_memory(Waiter& waiter, Window& window) {
  const protocols::UserMemory memory(window.base, uint64_t(window.size));
  waiter.open(memory);
  waiter.engine.reach().begin(window.use, memory.extent());
}

void use_stripes(Window& window, Stripes* stripes) {
  window.own.stripes = stripes;
  window.locks.use(stripes ? &stripes->lock : nullptr);
}

void use_memory(Waiter& waiter, Window& window, void* base, Stripes* stripes) {
  window.base = base;
  window.own = {static_cast<char*>(base), uint64_t(window.size), nullptr, nullptr};
  use_stripes(window, stripes);
  open_memory(waiter, window);
}

void leave_memory(Waiter& waiter, Window& window) {
  waiter.engine.reach().end(window.use);
  window.own = {};
  use_stripes(window, nullptr);
  window.base = nullptr;
}

// The window's ranks on this host, and where each one's memory lies in what they share.
struct House {
  base::Vec<uint32_t> ranks;    // in order; the first one makes the segment
  base::Vec<uint64_t> offsets;  // of each one's memory
  uint64_t bytes = 0;
  size_t self = 0;  // place among them

  // False without memory.
  bool find(const Window& window, const base::Vec<uint32_t>& neighbours) {
    for (const Target& target : window.targets) {
      const uint32_t process = window.comm->own.process(int(target.rank));
      bool is_here = false;
      for (const uint32_t neighbour : neighbours) is_here |= neighbour == process;
      if (!is_here) continue;
      if (target.rank == window.self) self = ranks.size();
      if (!ranks.push(target.rank)) return false;
    }
    return offsets.reserve(ranks.size());
  }
  // What lies behind the stripes of all: each one's memory from a page of its own on, or without
  // gaps between them; or nothing.
  enum class Holds : uint8_t { pages, row, nothing };
  // False: no memory is so large.
  bool plan(const Window& window, Holds holds) {
    bytes = whole_pages(ranks.size() * sizeof(Stripes));
    for (const uint32_t rank : ranks) {
      (void)offsets.push(bytes);  // has its room
      const uint64_t size = holds == Holds::nothing ? 0 : window.targets[rank].size;
      if (__builtin_add_overflow(bytes, holds == Holds::row ? size : whole_pages(size), &bytes) ||
          bytes > base::most_bytes) {
        return false;
      }
    }
    bytes = whole_pages(bytes);
    return true;
  }
  Stripes* stripes(const Segment& segment, size_t place) const {
    return reinterpret_cast<Stripes*>(segment.memory()) + place;
  }
};

// Memory that nobody else sees.
Outcome take_own_memory(Waiter& waiter, Window& window) {
  Segment::Key key;
  const auto size = uint64_t(window.size);
  Outcome outcome = window.segment.create(size, key);
  if (outcome == Outcome::ok) outcome = window.segment.reserve(0, size);
  if (outcome != Outcome::ok) return outcome;
  window.segment.settle();
  const Holding holding(waiter.engine);
  use_memory(waiter, window, window.segment.memory(), nullptr);
  return Outcome::ok;
}

// This rank's part of what its host shares: reserved, and the window's memory. The place of the
// first one reserves the stripes, too.
Outcome move_in(Waiter& waiter, Window& window, const House& house) {
  Segment& segment = window.segment;
  const uint64_t offset = house.offsets[house.self];
  Outcome outcome = segment.reserve(offset, uint64_t(window.size));
  if (outcome == Outcome::ok && house.self == 0) outcome = segment.reserve(0, house.offsets[0]);
  if (outcome != Outcome::ok) return outcome;
  const Holding holding(waiter.engine);
  use_memory(waiter, window, segment.memory() + offset, house.stripes(segment, house.self));
  return Outcome::ok;
}

// The others' memory, as far as it is in the segment. `direct`: operations work in it, too.
void meet_neighbours(Window& window, const House& house, bool direct) {
  for (size_t i = 0; i < house.ranks.size(); ++i) {
    Target& target = window.targets[house.ranks[i]];
    target.shown = window.segment.memory() + house.offsets[i];
    if (!direct) continue;
    target.direct = {target.shown, target.size, nullptr, house.stripes(window.segment, i)};
  }
}

// The first rank of the host makes the segment, the others open it. `own`: what this rank has done
// so far, and then what came of it; the outcome is that of the exchange.
Outcome open_segment(Waiter& waiter, Window& window, const House& house, Outcome& own) {
  base::Vec<int64_t> all;
  Segment::Key key;
  if (own == Outcome::ok && house.self == 0) own = window.segment.create(house.bytes, key);
  const int64_t told[] = {own == Outcome::ok ? key.pid : 0, key.file, key.cookie};
  if (const Outcome done = exchange(waiter, window.comm, all, 3, told); done != Outcome::ok) {
    return done;
  }
  if (own == Outcome::ok && house.self != 0) {
    const int64_t* first = &all[size_t(house.ranks[0]) * 3];
    own = window.segment.attach({first[0], first[1], first[2]}, house.bytes);
  }
  return Outcome::ok;
}

// All ranks of this host are there.
bool is_whole(const House& house, const base::Vec<int64_t>& all, bool own) {
  bool whole = own;
  for (const uint32_t rank : house.ranks) whole = whole && all[rank] != 0;
  return whole;
}

// Of a window that is made of the program's memory the stripes alone are shared, so that the ranks
// of a host can work in it by the system's copies. Where that cannot be, frames do.
Outcome share_stripes(Waiter& waiter, Window& window, const base::Vec<uint32_t>& neighbours,
                      const base::Vec<int64_t>& told) {
  House house;
  const bool found = house.find(window, neighbours);
  Outcome own =
      found && house.plan(window, House::Holds::nothing) ? Outcome::ok : Outcome::no_memory;
  if (const Outcome done = open_segment(waiter, window, house, own); done != Outcome::ok) {
    return done;
  }
  if (own == Outcome::ok && house.self == 0) own = window.segment.reserve(0, house.bytes);
  if (own == Outcome::ok) {
    const Holding holding(waiter.engine);
    use_stripes(window, house.stripes(window.segment, house.self));
  }
  base::Vec<int64_t> all;
  bool agreed = false;
  if (const Outcome done = agree(waiter, window.comm, all, own == Outcome::ok, agreed);
      done != Outcome::ok) {
    return done;
  }
  const Holding holding(waiter.engine);
  window.segment.settle();
  // Ranks of other hosts may have begun by now, so what was taken stays in use: by this rank alone.
  if (!is_whole(house, all, found)) return Outcome::ok;
  for (size_t i = 0; i < house.ranks.size(); ++i) {
    Target& target = window.targets[house.ranks[i]];
    const auto base = uint64_t(told[size_t(target.rank) * told_numbers + told_base]);
    const protocols::Peer* peer = windows().peer_of(target);
    if (i == house.self || base == 0 || !peer || !peer->can(transports::copies)) continue;
    const Far far{peer->number, base, target.size, house.stripes(window.segment, i)};
    if (may_reach(waiter.engine.node(), far)) target.far = far;
  }
  return Outcome::ok;
}

// The memory of a window that brings it: shared on each host, and where that cannot be, each rank's
// own, unless it has to be shared.
Outcome take_memory(Waiter& waiter, Window& window, const base::Vec<uint32_t>& neighbours,
                    bool direct) {
  const bool must_share = window.flavor == abi::k_WIN_FLAVOR_SHARED;
  House house;
  base::Vec<int64_t> all;
  const bool found = house.find(window, neighbours);
  if (found && must_share && house.ranks.size() != window.targets.size()) {
    return Outcome::unsupported;  // on all ranks: no host has them all
  }
  const auto holds =
      must_share && !window.hints.noncontig ? House::Holds::row : House::Holds::pages;
  Outcome own = found && house.plan(window, holds) ? Outcome::ok : Outcome::no_memory;
  if (const Outcome done = open_segment(waiter, window, house, own); done != Outcome::ok) {
    return done;
  }
  if (own == Outcome::ok) own = move_in(waiter, window, house);
  bool agreed = false;
  if (const Outcome done = agree(waiter, window.comm, all, own == Outcome::ok, agreed);
      done != Outcome::ok) {
    return done;
  }
  const bool here = is_whole(house, all, found);
  if (here) {
    window.segment.settle();
    meet_neighbours(window, house, direct);
  }
  if (agreed) return Outcome::ok;
  if (must_share) return Outcome::no_memory;
  // Some host has no segment: all ranks of it go on without.
  if (!here) {
    if (own == Outcome::ok) {
      const Holding holding(waiter.engine);
      leave_memory(waiter, window);
    }
    window.segment.detach();
    own = take_own_memory(waiter, window);
  }
  if (const Outcome done = agree(waiter, window.comm, all, own == Outcome::ok, agreed);
      done != Outcome::ok) {
    return done;
  }
  return agreed ? Outcome::ok : Outcome::no_memory;
}

// What the window has of the process; engine not held.
void dismantle(Waiter& waiter, Window* window) {
  {
    const Holding holding(waiter.engine);
    if (window->id) windows().remove(*window);
    for (Target& target : window->targets) {
      if (target.batch) base::heap_free(target.batch, sizeof(Batch));
    }
    protocols::Reach& reach = waiter.engine.reach();
    while (Attached* one = window->attached.pop_front()) {
      reach.end(one->use);
      base::heap_free(one, sizeof *one);
    }
    if (window->base) leave_memory(waiter, *window);
    waiter.engine.forget(window->comm->context);
  }
  window->segment.detach();
  window->attributes.drop();
  objects::release(window->errhandler);
  objects::release(window->comm);
  window->~Window();
  base::heap_free(window, sizeof *window);
}

}  // namespace

Outcome make(Waiter& waiter, objects::Comm* comm, const Wish& wish,
             const base::Vec<uint32_t>& neighbours, objects::Errhandler* errhandler,
             Window*& made) {
  made = nullptr;
  Window* window = allocate(comm, wish, errhandler);
  const bool is_dynamic = wish.flavor == abi::k_WIN_FLAVOR_DYNAMIC;
  const bool is_given = wish.flavor == abi::k_WIN_FLAVOR_CREATE;
  uint32_t id = 0;
  if (window) {
    const Holding holding(waiter.engine);
    if (is_given && wish.base) use_memory(waiter, *window, wish.base, nullptr);
    if (is_dynamic) window->own.attached = &window->attached;
    if (windows().add(*window)) id = window->id;
  }
  // Others may name it from here on.
  const int64_t own[] = {int64_t(id), int64_t(wish.size), wish.unit,
                         int64_t(reinterpret_cast<uintptr_t>(is_given ? wish.base : nullptr)),
                         (wish.direct ? way_direct : 0) | (windows().may_copy() ? way_copies : 0) |
                             (wish.hints.noncontig ? way_gaps : 0)};
  base::Vec<int64_t> all;
  Outcome outcome = exchange(waiter, comm, all, told_numbers, own);
  int64_t ways = way_direct | way_copies | way_gaps;
  for (size_t i = 0; outcome == Outcome::ok && i < all.size(); i += told_numbers) {
    if (all[i + told_id] == 0) outcome = Outcome::no_memory;
    ways &= all[i + told_ways];
  }
  if (outcome == Outcome::ok) {
    for (uint32_t rank = 0; rank < window->targets.size(); ++rank) {
      Target& target = window->targets[rank];
      const int64_t* told = &all[size_t(rank) * told_numbers];
      target.id = uint32_t(told[told_id]);
      target.size = uint64_t(told[told_size]);
      target.unit = told[told_unit];
    }
    window->hints.noncontig = (ways & way_gaps) != 0;
    const bool is_direct = (ways & way_direct) != 0;
    // Whoever sends a frame has to be answered, by the number that it has told: so nobody goes on
    // before all have the numbers of all, which each of these sees to.
    if (!is_dynamic && !is_given) {
      outcome = take_memory(waiter, *window, neighbours, is_direct);
    } else if (is_given && is_direct && (ways & way_copies) != 0 && comm->own.size > 1) {
      outcome = share_stripes(waiter, *window, neighbours, all);
    } else {
      outcome = meet(waiter, *window);
    }
  }
  if (outcome == Outcome::ok) {
    if (!is_dynamic) {
      Target& self = window->target(int(window->self));
      self.direct = window->own;
      self.shown = self.direct.base;
    }
    made = window;
    return Outcome::ok;
  }
  if (window) {
    dismantle(waiter, window);
  } else {
    objects::release(comm);
  }
  return outcome;
}

Outcome dissolve(Waiter& waiter, Window* window) {
  const Outcome outcome = part(waiter, *window);
  dismantle(waiter, window);
  return outcome;
}

Outcome attach(Waiter& waiter, Window& window, void* base, uint64_t size) {
  const Holding holding(waiter.engine);
  const protocols::UserMemory memory(base, size);
  waiter.open(memory);
  const auto from = reinterpret_cast<uintptr_t>(base);
  for (const Attached* one = window.attached.first(); one; one = one->list_next) {
    const auto other = reinterpret_cast<uintptr_t>(one->base);
    if (size != 0 && from < other + one->size && other < from + size) {
      return Outcome::bad_argument;
    }
  }
  void* block = base::heap_allocate(sizeof(Attached));
  if (!block) return Outcome::no_memory;
  auto* made = new (block) Attached{};
  made->base = static_cast<char*>(base);
  made->size = size;
  waiter.engine.reach().begin(made->use, memory.extent());
  window.attached.push_back(made);
  return Outcome::ok;
}

Outcome detach(Waiter& waiter, Window& window, const void* base) {
  const Holding holding(waiter.engine);
  for (Attached* one = window.attached.first(); one; one = one->list_next) {
    if (one->base != base) continue;
    window.attached.remove(one);
    waiter.engine.reach().end(one->use);
    base::heap_free(one, sizeof *one);
    return Outcome::ok;
  }
  return Outcome::bad_argument;
}

}  // namespace headway::rma
