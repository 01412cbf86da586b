#include "binding.h"

#include <algorithm>
#include <cmath>
#include <hwloc.h>
#include <hwloc/glibc-sched.h>
#include <sched.h>
#include <unistd.h>

#include "base/machine.h"
#include "hosts.h"
#include "reservations.h"
#include "say.h"

namespace headway::launcher {
namespace {

// hwloc's sets are plain pointers; this one frees itself.
struct CpuSet {
  hwloc_bitmap_t bits = hwloc_bitmap_alloc();
  CpuSet() = default;
  CpuSet(CpuSet&& other) noexcept : bits(other.bits) { other.bits = nullptr; }
  CpuSet(const CpuSet&) = delete;
  CpuSet& operator=(const CpuSet&) = delete;
  ~CpuSet() {
    if (bits) hwloc_bitmap_free(bits);
  }
};

struct Core {
  CpuSet threads;   // all hardware threads of the core
  CpuSet allowed;   // those of them that our own mask holds
  unsigned number;  // the same in all jobs of the machine, for reservations
  unsigned package;
};

struct Machine {
  hwloc_topology_t topology = nullptr;
  std::vector<Core> cores;
  std::vector<size_t> usable;  // indices into cores
  Machine() = default;
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;
  ~Machine() {
    if (topology) hwloc_topology_destroy(topology);
  }
};

bool load(Machine& machine) {
  if (hwloc_topology_init(&machine.topology) != 0) return false;
  hwloc_topology_set_all_types_filter(machine.topology, HWLOC_TYPE_FILTER_KEEP_NONE);
  hwloc_topology_set_type_filter(machine.topology, HWLOC_OBJ_CORE, HWLOC_TYPE_FILTER_KEEP_ALL);
  hwloc_topology_set_type_filter(machine.topology, HWLOC_OBJ_PACKAGE, HWLOC_TYPE_FILTER_KEEP_ALL);
  if (hwloc_topology_load(machine.topology) != 0) return false;
  CpuSet own;
  if (hwloc_get_cpubind(machine.topology, own.bits, HWLOC_CPUBIND_PROCESS) != 0) return false;
  const bool has_cores = hwloc_get_nbobjs_by_type(machine.topology, HWLOC_OBJ_CORE) > 0;
  const hwloc_obj_type_t kind = has_cores ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;
  for (hwloc_obj_t object = nullptr;
       (object = hwloc_get_next_obj_by_type(machine.topology, kind, object));) {
    Core core;
    hwloc_bitmap_copy(core.threads.bits, object->cpuset);
    hwloc_bitmap_and(core.allowed.bits, object->cpuset, own.bits);
    // The system's own number of its first thread: control groups that see other parts of the
    // machine count its cores differently.
    core.number = static_cast<unsigned>(hwloc_bitmap_first(object->complete_cpuset));
    const hwloc_obj_t package =
        hwloc_get_ancestor_obj_by_type(machine.topology, HWLOC_OBJ_PACKAGE, object);
    core.package = package ? package->logical_index : 0;
    if (!hwloc_bitmap_iszero(core.allowed.bits)) machine.usable.push_back(machine.cores.size());
    machine.cores.push_back(std::move(core));
  }
  return !machine.usable.empty();
}

// Takes every usable core, or none of them.
bool take_all(Reservations& reservations, const Machine& machine) {
  for (size_t i = 0; i < machine.usable.size(); ++i) {
    if (reservations.take(machine.cores[machine.usable[i]].number)) continue;
    while (i-- > 0) reservations.give_back(machine.cores[machine.usable[i]].number);
    return false;
  }
  return true;
}

std::vector<unsigned char> as_mask(const Machine& machine, hwloc_const_bitmap_t set) {
  const size_t size =
      std::max(sizeof(cpu_set_t), CPU_ALLOC_SIZE(static_cast<size_t>(hwloc_bitmap_last(set)) + 1));
  std::vector<unsigned char> mask(size);
  hwloc_cpuset_to_glibc_sched_affinity(machine.topology, set,
                                       reinterpret_cast<cpu_set_t*>(mask.data()), size);
  return mask;
}

// `#` the rank may run there, `.` it may not, `-` no rank may; cores apart, packages by `|`.
std::string draw(const Machine& machine, hwloc_const_bitmap_t set) {
  std::string text = "[";
  for (size_t i = 0; i < machine.cores.size(); ++i) {
    const Core& core = machine.cores[i];
    if (i > 0) text += core.package != machine.cores[i - 1].package ? " | " : " ";
    unsigned thread;
    hwloc_bitmap_foreach_begin(thread, core.threads.bits) {
      const bool usable = hwloc_bitmap_isset(core.allowed.bits, thread);
      text += !usable ? '-' : hwloc_bitmap_isset(set, thread) ? '#' : '.';
    }
    hwloc_bitmap_foreach_end();
  }
  return text + "]";
}

// Hardware threads that this process may run on.
int processors() {
  cpu_set_t mask;
  if (sched_getaffinity(0, sizeof mask, &mask) == 0) return CPU_COUNT(&mask);
  return static_cast<int>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));  // more than a mask holds
}

// What there is for all ranks together. A quota of time counts as so many cores: which ones it is
// spent on is the system's choice, for there are others that want them.
struct Room {
  int threads = processors();
  double quota = base::cpu_quota();
  bool is_rationed() const { return quota < threads; }
  double least() const { return std::min(static_cast<double>(threads), quota); }
};

std::string rounded(double cores) { return format("%g", std::floor(cores * 10) / 10); }

// Why no rank is to be bound, as far as that is known without the machine's cores; "" if it is not.
std::string why_free(Bind wish, int ranks, const Room& room) {
  if (wish == Bind::none) return "not bound: as asked";
  if (ranks > room.least()) {
    return format("not bound: %d rank%s, %s cores", ranks, ranks == 1 ? "" : "s",
                  rounded(room.least()).c_str());
  }
  if (wish == Bind::core) return "";
  if (room.is_rationed()) {
    return format("not bound: a quota gives the time of %s cores, on any of %d",
                  rounded(room.quota).c_str(), room.threads);
  }
  return ranks == 1 ? "not bound: one rank has all cores" : "";
}

// Shares of all usable cores, one behind the other, none larger than another by more than one core.
std::vector<CpuSet> share_out(size_t ranks, const Machine& machine) {
  std::vector<CpuSet> shares;
  const size_t cores = machine.usable.size();
  for (size_t rank = 0; rank < ranks; ++rank) {
    CpuSet share;
    for (size_t i = cores * rank / ranks; i < cores * (rank + 1) / ranks; ++i) {
      hwloc_bitmap_or(share.bits, share.bits, machine.cores[machine.usable[i]].allowed.bits);
    }
    shares.push_back(std::move(share));
  }
  return shares;
}

// The cores of each rank, or nothing and a note.
std::vector<CpuSet> choose(Bind wish, int ranks, const Machine& machine, Reservations& reservations,
                           std::string& note) {
  std::vector<CpuSet> chosen;
  const size_t cores = machine.usable.size();
  const size_t count = static_cast<size_t>(ranks);
  if (count > cores) {
    note = format("not bound: %d ranks, %zu cores", ranks, cores);
    return chosen;
  }
  if (!reservations.is_open()) {
    note = "not bound: cores cannot be reserved (" + reservations.why_not() + ")";
    return chosen;
  }
  if (wish == Bind::automatic) {
    if (take_all(reservations, machine)) return share_out(count, machine);
    note = "not bound: another job has bound its ranks to some of these cores";
    return chosen;
  }
  for (const size_t index : machine.usable) {
    if (chosen.size() == count) break;
    if (!reservations.take(machine.cores[index].number)) continue;
    CpuSet one;
    hwloc_bitmap_copy(one.bits, machine.cores[index].allowed.bits);
    chosen.push_back(std::move(one));
  }
  if (chosen.size() < count) {
    note = format("not bound: other jobs have left %zu of %zu cores free, for %d ranks",
                  chosen.size(), cores, ranks);
    chosen.clear();
  }
  return chosen;
}

// How many threads each rank should have where its mask does not say it: all ranks the same number.
int threads_of_a_rank(int ranks, const Room& room, const std::vector<CpuSet>& chosen) {
  if (chosen.empty()) {
    if (ranks == 1 && !room.is_rationed()) return 0;
    return std::max(1, static_cast<int>(room.least() / ranks));
  }
  int least = room.threads, most = 0;
  for (const CpuSet& set : chosen) {
    const int weight = hwloc_bitmap_weight(set.bits);
    least = std::min(least, weight);
    most = std::max(most, weight);
  }
  return least == most ? 0 : least;
}

void draw_all(Binding& result, const Machine& machine, const std::vector<CpuSet>& chosen) {
  result.picture = format(
      "%s: %zu cores, %zu of them usable here (# may run there, . may not, - "
      "not usable)\n",
      host_name().c_str(), machine.cores.size(), machine.usable.size());
  CpuSet everything;
  for (const size_t index : machine.usable) {
    hwloc_bitmap_or(everything.bits, everything.bits, machine.cores[index].allowed.bits);
  }
  for (size_t rank = 0; rank < chosen.size(); ++rank) {
    result.picture += format("rank %zu  %s\n", rank, draw(machine, chosen[rank].bits).c_str());
  }
  if (chosen.empty()) {
    result.picture +=
        format("all ranks  %s  %s\n", draw(machine, everything.bits).c_str(), result.note.c_str());
  }
  if (result.threads > 0) {
    result.picture +=
        format("OMP_NUM_THREADS=%d for each rank, unless it is set\n", result.threads);
  }
}

}  // namespace

Binding plan_binding(Bind wish, int ranks, bool want_picture) {
  Binding result;
  const Room room;
  // The cheap test first: most jobs on a small machine have more ranks than it has threads.
  result.note = why_free(wish, ranks, room);
  result.threads = threads_of_a_rank(ranks, room, {});
  if (!result.note.empty() && !want_picture) return result;
  Machine machine;
  if (!load(machine)) {
    result.note = "not bound: hwloc cannot see this machine's cores";
    return result;
  }
  std::vector<CpuSet> chosen;
  static Reservations reservations;  // until mpiexec ends
  if (result.note.empty()) {
    reservations.open();
    chosen = choose(wish, ranks, machine, reservations, result.note);
  }
  result.descriptors = reservations.descriptors();
  result.threads = threads_of_a_rank(ranks, room, chosen);
  for (const CpuSet& set : chosen) result.cores.push_back(as_mask(machine, set.bits));
  if (want_picture) draw_all(result, machine, chosen);
  return result;
}

}  // namespace headway::launcher
