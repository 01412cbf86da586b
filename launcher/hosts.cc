#include "hosts.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cstdlib>
#include <cstring>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <unistd.h>

#include "allocation.h"
#include "say.h"

namespace headway::launcher {
namespace {

std::string until(const std::string& text, char c) { return text.substr(0, text.find(c)); }

bool is_local_address(const std::string& text) {
  unsigned char wanted[sizeof(in6_addr)];
  int family = 0;
  size_t size = 0;
  if (inet_pton(AF_INET, text.c_str(), wanted) == 1) {
    family = AF_INET;
    size = sizeof(in_addr);
    if (wanted[0] == 127) return true;
  } else if (inet_pton(AF_INET6, text.c_str(), wanted) == 1) {
    family = AF_INET6;
    size = sizeof(in6_addr);
    if (IN6_IS_ADDR_LOOPBACK(reinterpret_cast<const in6_addr*>(wanted))) return true;
  } else {
    return false;
  }
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return false;
  bool found = false;
  for (const ifaddrs* entry = list; entry && !found; entry = entry->ifa_next) {
    if (!entry->ifa_addr || entry->ifa_addr->sa_family != family) continue;
    const void* address =
        family == AF_INET ? static_cast<const void*>(
                                &reinterpret_cast<const sockaddr_in*>(entry->ifa_addr)->sin_addr)
                          : &reinterpret_cast<const sockaddr_in6*>(entry->ifa_addr)->sin6_addr;
    found = memcmp(address, wanted, size) == 0;
  }
  freeifaddrs(list);
  return found;
}

bool is_address(const std::string& text) {
  unsigned char bytes[sizeof(in6_addr)];
  return inet_pton(AF_INET, text.c_str(), bytes) == 1 ||
         inet_pton(AF_INET6, text.c_str(), bytes) == 1;
}

// By name and number only: no resolver is asked, which may be slow, wrong, or not there.
bool is_this_machine(const std::string& name) {
  if (is_address(name)) return is_local_address(name);
  if (name == "localhost" || name == "localhost.localdomain") return true;
  const std::string own = host_name();
  // One may be written without its domain; two of different domains are two machines.
  const bool is_short = name.find('.') == std::string::npos || own.find('.') == std::string::npos;
  return name == own || (is_short && until(name, '.') == until(own, '.'));
}

// A rank's library has started this mpiexec. The rank may be one of a job on several machines,
// which an engine has put here; what it spawns stays with it.
bool is_spawned() { return getenv("HEADWAY_SPAWN_PORT") != nullptr; }

// "localhost" and the like are another machine on each.
bool is_alias(const std::string& name) {
  if (name == "localhost" || name == "localhost.localdomain") return true;
  return is_address(name) && (name.starts_with("127.") || name == "::1");
}

// The same list with this machine by the name that others know it by.
HostList without_aliases(const std::vector<Host>& hosts) {
  const char* slurms = getenv("SLURMD_NODENAME");
  const std::string own = slurms && *slurms ? slurms : host_name();
  HostList list;
  for (const Host& host : hosts) list.add(is_alias(host.name) ? own : host.name, host.slots);
  return list;
}

// What a host file says and no engine would be told.
std::string lost_words(const HostList& list) {
  if (list.unknown().empty()) return "";
  return format(
      "a host file says %s, which is not handed over; leave it out, or give the engine its own "
      "file in HEADWAY_ENGINE_OPTIONS",
      list.unknown().c_str());
}

}  // namespace

std::string host_name() {
  char name[256] = "";
  if (gethostname(name, sizeof name - 1) != 0) return "localhost";
  return name;
}

std::string find_place(const std::vector<std::string>& host_lists,
                       const std::vector<std::string>& host_files, Place& place) {
  HostList list;
  for (const std::string& text : host_lists) {
    if (!list.add_list(text)) return list.error();
  }
  for (const std::string& path : host_files) {
    if (!list.add_file(path)) return list.error();
  }
  place = {};
  const std::vector<Host> named = list.hosts();
  if (named.empty() && !host_files.empty()) {
    return format("the host file %s names no machine", host_files[0].c_str());
  }
  if (named.empty() && !host_lists.empty()) return "--hosts names no machine";
  if (!named.empty()) {
    const auto foreign = std::find_if(named.begin(), named.end(),
                                      [](const Host& host) { return !is_this_machine(host.name); });
    // The user wants this machine, allocation or not.
    if (foreign == named.end()) return "";
    if (is_spawned()) {
      return format(
          "a job that a rank spawns runs on the machine of that rank, %s, and the info "
          "key host names another one, %s; leave the key out",
          host_name().c_str(), foreign->name.c_str());
    }
    place.elsewhere = true;
    place.whose = foreign->name;
    place.named = true;
    place.hosts = without_aliases(named).hosts();
    place.machines = static_cast<int>(place.hosts.size());
    place.manager = manager_here();
    place.slots = place.manager == Manager::slurm ? slots_of_slurm() : 0;
    return lost_words(list);
  }
  if (is_spawned()) return "";
  Allocation allocation = find_allocation();
  if (!allocation.refusal.empty()) {
    return allocation.refusal + ", or add --host localhost to start them here, on " + host_name();
  }
  // A batch system starts us on one of its machines; on others we may be beside them.
  const bool beside =
      allocation.machines == 1 && !allocation.only.empty() && !is_this_machine(allocation.only);
  if (allocation.machines <= 1 && !beside) return "";
  place.elsewhere = true;
  place.whose =
      allocation.machines > 1
          ? format("%s has %d machines", allocation.whose.c_str(), allocation.machines)
          : format("%s has the machine %s", allocation.whose.c_str(), allocation.only.c_str());
  place.manager = allocation.manager;
  place.hosts = allocation.list.hosts();
  place.machines = allocation.machines;
  place.slots = allocation.slots;
  return lost_words(allocation.list);
}

}  // namespace headway::launcher
