#include "whereabouts.h"

#include <cctype>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fstream>
#include <iterator>
#include <memory>
#include <sys/uio.h>

#include "base/whereabouts.h"
#include "say.h"

namespace headway::launcher {
namespace {

constexpr size_t longest_name = 64;
constexpr int most_readings = 8;
constexpr uint32_t most_comms = 64, most_slots = 4096;
constexpr int most_members = 1 << 16;

// Another process's memory. What it says is trusted in nothing: it may be in the middle of a
// change.
class Memory {
 public:
  explicit Memory(pid_t pid) : pid_(pid) {}
  bool read(uint64_t address, void* out, size_t size) const {
    iovec here = {out, size};
    iovec there = {reinterpret_cast<void*>(address), size};
    return address && process_vm_readv(pid_, &here, 1, &there, 1, 0) == static_cast<ssize_t>(size);
  }
  // 0 if it cannot be read.
  template <class T>
  T value(uint64_t address) const {
    T value{};
    return read(address, &value, sizeof value) ? value : T{};
  }
  // Text whose memory may end right behind it, so it is read in small pieces.
  std::string text(uint64_t address) const {
    std::string text;
    while (text.size() < longest_name) {
      char piece[8];
      // A piece that does not cross into the next page can be read if its first byte can.
      const size_t size = sizeof piece - address % sizeof piece;
      if (!read(address, piece, size)) return "";
      for (size_t i = 0; i < size; ++i) {
        if (piece[i] == '\0') return text;
        text += piece[i];
      }
      address += size;
    }
    return "";
  }
  std::string call_name(const char* there) const {
    const std::string name = there ? text(reinterpret_cast<uintptr_t>(there)) : "";
    for (const char c : name) {
      if (!isalnum(static_cast<unsigned char>(c)) && c != '_') return "";
    }
    return name.starts_with("MPI_") ? name : "";
  }

 private:
  pid_t pid_;
};

// A rank in a loop of short calls may be read in the middle of a change: three readings in a row
// that are equal. What this lets through is no proof of anything: that a rank stands is shown by
// what it counts in its waits.
bool read_steady(const Memory& memory, uint64_t address, base::WhereaboutsCopy& out) {
  const auto same = [](const base::WhereaboutsCopy& a, const base::WhereaboutsCopy& b) {
    return a.waits == b.waits && a.call == b.call && a.peer == b.peer && a.tag == b.tag &&
           a.comm == b.comm;
  };
  base::WhereaboutsCopy before;
  int equal = 0;
  for (int i = 0; i < most_readings; ++i) {
    if (!memory.read(address, &out, sizeof out)) return false;
    equal = i > 0 && same(before, out) ? equal + 1 : 0;
    if (equal == 2) return true;
    before = out;
  }
  return false;
}

// Appends the ranks of a group.
bool read_ranks(const Memory& memory, const base::Landmarks& marks, uint64_t group,
                std::vector<int>& ranks) {
  const int size = memory.value<int>(group + marks.size);
  if (group == 0 || size <= 0 || size > most_members) return false;
  const size_t before = ranks.size();
  ranks.resize(before + static_cast<size_t>(size));
  const uint64_t members = memory.value<uint64_t>(group + marks.members);
  return memory.read(members, ranks.data() + before, static_cast<size_t>(size) * sizeof(int));
}

bool read_comm(const Memory& memory, const base::Landmarks& marks, uint64_t address,
               SeenComm& comm) {
  comm.context = memory.value<uint64_t>(address + marks.context);
  comm.collectives = memory.value<uint32_t>(address + marks.collectives);
  const uint64_t group = memory.value<uint64_t>(address + marks.group);
  std::vector<int> ranks;
  if (comm.context == 0 || !read_ranks(memory, marks, group, ranks)) return false;
  const uint64_t peers = marks.peers ? memory.value<uint64_t>(address + marks.peers) : group;
  if (peers != group) {
    comm.own = ranks.size();
    if (!read_ranks(memory, marks, peers, ranks)) return false;
  }
  comm.members = std::move(ranks);
  comm.name = memory.text(address + marks.name);
  for (const char c : comm.name) {
    if (!isprint(static_cast<unsigned char>(c))) comm.name = "";
  }
  return true;
}

// Of a call that waits for one of several ranks, or for all of them.
bool read_comm_of_call(const Memory& memory, const base::WhereaboutsCopy& there,
                       const base::Landmarks& marks, Spot& spot) {
  SeenComm comm;
  if (there.peer >= 0 || !read_comm(memory, marks, reinterpret_cast<uintptr_t>(there.comm), comm)) {
    return false;
  }
  spot.comms.push_back(std::move(comm));
  return true;
}

void read_comms(const Memory& memory, const base::Landmarks& marks, Spot& spot) {
  SeenComm everyone;
  if (read_comm(memory, marks, memory.value<uint64_t>(marks.everyone), everyone)) {
    spot.comms.push_back(everyone);
  }
  if (marks.comm_slab_size == 0) return;
  const uint32_t slots = memory.value<uint32_t>(marks.comm_slots);
  for (uint32_t i = 0; i < slots && i < most_slots && spot.comms.size() < most_comms; ++i) {
    const uint64_t slab =
        memory.value<uint64_t>(marks.comm_slabs + i / marks.comm_slab_size * sizeof(uint64_t));
    if (slab == 0) return;
    const uint64_t slot = slab + i % marks.comm_slab_size * marks.slot_size;
    if (memory.value<uint64_t>(slot + marks.slot_handle) == 0) continue;
    SeenComm comm;
    if (read_comm(memory, marks, memory.value<uint64_t>(slot + marks.slot_object), comm)) {
      spot.comms.push_back(comm);
    }
  }
}

void read_signs(const Memory& memory, const base::Landmarks& marks, Spot& spot) {
  for (const uint64_t sign : marks.signs) {
    spot.signs.push_back(sign ? memory.value<uint64_t>(sign) : 0);
  }
  spot.frames_out = memory.value<uint64_t>(marks.frames_out);
  spot.frames_in = memory.value<uint64_t>(marks.frames_in);
  spot.connecting = memory.value<uint64_t>(marks.connecting) != 0;
}

// False: it has changed while it was read.
bool read_unmatched(const Memory& memory, const base::Landmarks& marks, Spot& spot) {
  base::UnmatchedCopy there, again;
  if (!marks.unmatched || !memory.read(marks.unmatched, &there, sizeof there)) return true;
  if (there.serial == 0) return true;
  if (!memory.read(marks.unmatched, &again, sizeof again)) return true;
  if (again.serial != there.serial) return false;
  SeenUnmatched& found = spot.unmatched;
  found.call = memory.call_name(there.call);
  if (found.call.empty()) return true;
  found.serial = there.serial;
  found.peer = there.peer;
  found.tag = there.tag;
  found.awaited = there.awaited == base::nobody ? -1 : there.awaited;
  found.context = there.context;
  found.site.address = there.site;
  return true;
}

// What follows the name in /proc/.../stat, from the third field on; the name may hold anything.
std::string stat_of(const std::string& path) {
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const size_t end = text.rfind(')');
  return end == std::string::npos || end + 2 > text.size() ? "" : text.substr(end + 2);
}

// Threads beside the library's own.
int threads_of(pid_t pid) {
  const std::string folder = format("/proc/%d/task", pid);
  const std::unique_ptr<DIR, int (*)(DIR*)> all(opendir(folder.c_str()), closedir);
  int count = 0;
  while (const dirent* entry = all ? readdir(all.get()) : nullptr) {
    if (entry->d_name[0] == '.') continue;
    std::string name;
    std::getline(std::ifstream(folder + "/" + entry->d_name + "/comm"), name);
    count += name != "headway";
  }
  return count;
}

void take_call(const Memory& memory, const base::WhereaboutsCopy& there, Spot& spot) {
  spot.waits = there.waits;
  spot.vain = there.vain;
  spot.moves = there.moves;
  spot.awaited = there.awaited == base::nobody ? -1 : there.awaited;
  spot.polls = there.polls;
  spot.poll = memory.call_name(there.poll);
  spot.poll_peer = there.poll_peer;
  spot.poll_tag = there.poll_tag;
  if (!there.call) {
    spot.kind = Spot::Kind::computing;
    return;
  }
  spot.call = memory.call_name(there.call);
  if (spot.call.empty()) return;
  if (there.site_waits == there.waits) spot.site.address = there.site;
  spot.kind = Spot::Kind::in_call;
  spot.peer = there.peer;
  spot.tag = there.tag;
}

bool is_asleep(pid_t pid, int thread) {
  return thread != 0 && stat_of(format("/proc/%d/task/%d/stat", pid, thread)).starts_with('S');
}

void look_at_threads(pid_t pid, const Memory& memory, const base::WhereaboutsCopy& there,
                     const base::Landmarks& marks, Spot& spot) {
  spot.asleep = is_asleep(pid, there.asleep);
  if (spot.unmatched.serial == 0) return;
  spot.one_thread = threads_of(pid) == 1;
  spot.listens = memory.value<uint32_t>(marks.armed) != 0 &&
                 is_asleep(pid, memory.value<int>(marks.thread)) &&
                 memory.value<uint32_t>(marks.armed) != 0;
}

}  // namespace

void look_at_process(pid_t pid, Spot& spot) {
  const std::string stat = stat_of(format("/proc/%d/stat", pid));
  if (stat.empty()) return;
  spot.state = stat[0];
  unsigned long user = 0, system = 0;
  if (sscanf(stat.c_str(), "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system) ==
      2) {
    spot.cpu_ticks = user + system;
  }
}

Spot look_at(pid_t pid, const std::string& told, bool with_comms) {
  Spot spot;
  const std::string_view layout = base::whereabouts_layout;
  if (!told.starts_with(layout)) return spot;
  char* rest = nullptr;
  const uint64_t address = strtoull(told.c_str() + layout.size(), &rest, 16);
  const Memory memory(pid);
  base::WhereaboutsCopy there;
  if (*rest != '\0' || !memory.read(address, &there, sizeof there)) return spot;
  spot.unsteady = !read_steady(memory, address, there);
  take_call(memory, there, spot);
  if (spot.kind == Spot::Kind::unknown) return spot;
  look_at_process(pid, spot);
  spot.abroad = there.abroad != 0;
  spot.many_threads = there.many_threads != 0 && threads_of(pid) > 1;
  base::Landmarks marks;
  if (!memory.read(reinterpret_cast<uintptr_t>(there.landmarks), &marks, sizeof marks)) {
    spot.asleep = is_asleep(pid, there.asleep);
    return spot;
  }
  if (!read_unmatched(memory, marks, spot)) spot.unsteady = true;
  look_at_threads(pid, memory, there, marks, spot);
  read_signs(memory, marks, spot);
  if (spot.unsteady) return spot;
  if (there.call && there.comm) {
    spot.context = memory.value<uint64_t>(reinterpret_cast<uintptr_t>(there.comm) + marks.context);
    if (!with_comms) (void)read_comm_of_call(memory, there, marks, spot);
  }
  if (with_comms) read_comms(memory, marks, spot);
  return spot;
}

}  // namespace headway::launcher
