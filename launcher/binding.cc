#include "binding.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <hwloc.h>
#include <hwloc/glibc-sched.h>
#include <sched.h>
#include <sstream>
#include <sys/stat.h>
#include <unistd.h>

#include "hosts.h"
#include "say.h"

namespace headway::launcher {
namespace {

constexpr const char* reservations_path = "/tmp/headway-mpiexec-cores";

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
  unsigned number;  // on the machine, for reservations
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
    core.number = object->logical_index;
    const hwloc_obj_t package =
        hwloc_get_ancestor_obj_by_type(machine.topology, HWLOC_OBJ_PACKAGE, object);
    core.package = package ? package->logical_index : 0;
    if (!hwloc_bitmap_iszero(core.allowed.bits)) machine.usable.push_back(machine.cores.size());
    machine.cores.push_back(std::move(core));
  }
  return !machine.usable.empty();
}

// Cores that a container's time quota amounts to; a large number where there is none.
double quota_from(const std::string& text_of_v2) {
  std::istringstream words(text_of_v2);
  std::string quota;
  double period = 0;
  if (!(words >> quota >> period) || quota == "max" || period <= 0) return 1e9;
  return atof(quota.c_str()) / period;
}

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

double cpu_quota() {
  double quota = 1e9;
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const size_t path_at = line.find(':', line.find(':') + 1);
    if (path_at == std::string::npos) continue;
    std::string path = line.substr(path_at + 1);
    const bool version_2 = line.starts_with("0::");
    const bool holds_cpu =
        line.find("cpu,") != std::string::npos || line.find(":cpu:") != std::string::npos;
    if (!version_2 && !holds_cpu) continue;
    // A limit of any group above us holds as well.
    while (true) {
      if (version_2) {
        quota = std::min(quota, quota_from(first_line("/sys/fs/cgroup" + path + "/cpu.max")));
      } else {
        const std::string folder = "/sys/fs/cgroup/cpu" + path;
        const std::string text = first_line(folder + "/cpu.cfs_quota_us");
        if (!text.empty() && text[0] != '-') {
          quota =
              std::min(quota, quota_from(text + " " + first_line(folder + "/cpu.cfs_period_us")));
        }
      }
      if (path.empty() || path == "/") break;
      path.erase(path.rfind('/'));
    }
  }
  return quota;
}

// Reservations of cores among all jobs of the machine: a lock on one byte a core. The kernel drops
// them with the process, however it ends.
class Reservations {
 public:
  Reservations() {
    // Containers that share cores but no /tmp can name a file that they do share.
    const char* given = getenv("HEADWAY_CORES_FILE");
    const char* const path = given && *given ? given : reservations_path;
    fd_ = ::open(path, O_RDWR | O_CLOEXEC);
    if (fd_ >= 0) return;
    fd_ = ::open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd_ >= 0) static_cast<void>(fchmod(fd_, 0666));  // other users' jobs count too
  }
  bool open() const { return fd_ >= 0; }
  bool take(unsigned core) { return lock(core, F_WRLCK); }
  void give_back(unsigned core) { lock(core, F_UNLCK); }

 private:
  bool lock(unsigned core, short kind) {
    struct flock request = {};
    request.l_type = kind;
    request.l_whence = SEEK_SET;
    request.l_start = core;
    request.l_len = 1;
    return fcntl(fd_, F_OFD_SETLK, &request) == 0;
  }
  int fd_ = -1;  // stays open, and with it the locks, until mpiexec ends
};

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

// The cores of each rank, or nothing and a note.
std::vector<CpuSet> choose(Bind wish, int ranks, const Machine& machine, std::string& note) {
  std::vector<CpuSet> chosen;
  const size_t cores = machine.usable.size();
  const double room = std::min(static_cast<double>(cores), cpu_quota());
  if (ranks > room) {
    note = format("not bound: %d ranks, %g cores", ranks, std::floor(room * 10) / 10);
    return chosen;
  }
  static Reservations reservations;
  if (wish == Bind::automatic) {
    if (!reservations.open() || !take_all(reservations, machine)) {
      note = "not bound: another job has bound its ranks to some of these cores";
      return chosen;
    }
    for (int rank = 0; rank < ranks; ++rank) {
      CpuSet share;
      const size_t count = static_cast<size_t>(ranks);
      const size_t first = cores * static_cast<size_t>(rank) / count;
      const size_t last = cores * static_cast<size_t>(rank + 1) / count;
      for (size_t i = first; i < last; ++i) {
        hwloc_bitmap_or(share.bits, share.bits, machine.cores[machine.usable[i]].allowed.bits);
      }
      chosen.push_back(std::move(share));
    }
    return chosen;
  }
  for (const size_t index : machine.usable) {
    if (chosen.size() == static_cast<size_t>(ranks)) break;
    if (reservations.open() && !reservations.take(machine.cores[index].number)) continue;
    CpuSet one;
    hwloc_bitmap_copy(one.bits, machine.cores[index].allowed.bits);
    chosen.push_back(std::move(one));
  }
  if (chosen.size() < static_cast<size_t>(ranks)) {
    note = format("not bound: other jobs have left %zu of %zu cores free, for %d ranks",
                  chosen.size(), cores, ranks);
    chosen.clear();
  }
  return chosen;
}

}  // namespace

Binding plan_binding(Bind wish, int ranks, bool want_picture) {
  Binding result;
  cpu_set_t mask;
  // The cheap test first: most jobs on a small machine have more ranks than it has threads.
  const bool surely_free = wish == Bind::none || (wish == Bind::automatic && ranks == 1) ||
                           (sched_getaffinity(0, sizeof mask, &mask) == 0 &&
                            ranks > CPU_COUNT(&mask) && wish == Bind::automatic);
  if (surely_free && !want_picture) return result;
  Machine machine;
  if (!load(machine)) {
    result.note = "not bound: hwloc cannot see this machine's cores";
    return result;
  }
  std::vector<CpuSet> chosen;
  if (surely_free) {
    result.note = wish == Bind::none ? "not bound: as asked"
                  : ranks == 1       ? "not bound: one rank has all cores"
                                     : "not bound: more ranks than cores";
  } else {
    chosen = choose(wish, ranks, machine, result.note);
  }
  for (const CpuSet& set : chosen) result.cores.push_back(as_mask(machine, set.bits));
  if (!want_picture) return result;
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
  return result;
}

}  // namespace headway::launcher
