#include "hosts.h"

#include <arpa/inet.h>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <set>
#include <sstream>
#include <unistd.h>

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

// By name and number only: no resolver is asked, which may be slow, wrong, or not there.
bool is_this_machine(const std::string& name) {
  if (name == "localhost" || name == "localhost.localdomain") return true;
  const std::string own = host_name();
  if (name == own || until(name, '.') == until(own, '.')) return true;
  return is_local_address(name);
}

// The machine of `name`, `name:slots` or `[v6]:slots`.
std::string strip_slots(const std::string& text) {
  if (text.starts_with("[")) return until(text.substr(1), ']');
  const size_t colon = text.find(':');
  const bool one_colon =
      colon != std::string::npos && text.find(':', colon + 1) == std::string::npos;
  return one_colon ? text.substr(0, colon) : text;
}

std::vector<std::string> names_in_list(const std::string& text) {
  std::vector<std::string> names;
  std::istringstream list(text);
  for (std::string entry; std::getline(list, entry, ',');) {
    if (!entry.empty()) names.push_back(strip_slots(entry));
  }
  return names;
}

// The first word of each line; what follows (slots=4, binding) means nothing on one machine.
bool names_in_file(const std::string& path, std::vector<std::string>& names) {
  std::ifstream file(path);
  if (!file) return false;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(until(line, '#'));
    std::string word;
    if (words >> word) names.push_back(strip_slots(word));
  }
  return true;
}

std::string command_of(const Plan& plan) {
  return plan.sections.empty() ? "PROGRAM" : plan.sections[0].command[0];
}

std::string right_command(const Plan& plan, const std::string& hosts) {
  const int ranks = plan.ranks();
  const std::string program = command_of(plan);
  if (getenv("SLURM_JOB_ID")) {
    return format("srun --mpi=pmi2 -n %d %s", ranks, program.c_str());
  }
  if (const char* nodes = getenv("PBS_NODEFILE")) {
    return format("mpiexec.hydra -f %s -n %d %s", nodes, ranks, program.c_str());
  }
  if (getenv("FLUX_URI") && getenv("FLUX_JOB_ID")) {
    return format("flux run -n %d %s", ranks, program.c_str());
  }
  return format(
      "mpiexec.hydra -hosts %s -n %d %s (MPICH's launcher), or prterun --host %s -n %d %s",
      hosts.c_str(), ranks, program.c_str(), hosts.c_str(), ranks, program.c_str());
}

int number_in(const char* variable) {
  const char* text = getenv(variable);
  return text ? atoi(text) : 0;
}

// The number of machines that a batch system gave to this job, 1 if it is not known.
int machines_in_allocation(std::string& system) {
  if (getenv("SLURM_JOB_ID")) {
    system = "Slurm";
    return std::max(number_in("SLURM_JOB_NUM_NODES"), number_in("SLURM_NNODES"));
  }
  if (const char* path = getenv("PBS_NODEFILE")) {
    system = "PBS";
    std::vector<std::string> names;
    if (!names_in_file(path, names)) return 1;
    return static_cast<int>(std::set<std::string>(names.begin(), names.end()).size());
  }
  if (getenv("FLUX_JOB_ID")) {
    system = "Flux";
    return number_in("FLUX_JOB_NNODES");
  }
  if (const char* hosts = getenv("LSB_HOSTS")) {
    system = "LSF";
    std::istringstream words(hosts);
    std::set<std::string> names;
    for (std::string name; words >> name;) names.insert(name);
    return static_cast<int>(names.size());
  }
  return 1;
}

}  // namespace

std::string host_name() {
  char name[256] = "";
  if (gethostname(name, sizeof name - 1) != 0) return "localhost";
  return name;
}

std::string check_hosts(const std::vector<std::string>& host_lists,
                        const std::vector<std::string>& host_files, const Plan& plan) {
  std::vector<std::string> names;
  for (const std::string& list : host_lists) {
    const std::vector<std::string> more = names_in_list(list);
    names.insert(names.end(), more.begin(), more.end());
  }
  for (const std::string& path : host_files) {
    if (!names_in_file(path, names)) {
      return format("cannot read the host file %s: %s", path.c_str(), strerror(errno));
    }
  }
  std::string all;
  const std::string* foreign = nullptr;
  for (const std::string& name : names) {
    all += (all.empty() ? "" : ",") + name;
    if (!foreign && !is_this_machine(name)) foreign = &name;
  }
  if (foreign) {
    return format("%s is not this machine (%s), and this mpiexec starts ranks here only; use %s",
                  foreign->c_str(), host_name().c_str(), right_command(plan, all).c_str());
  }
  if (!names.empty()) return "";  // the user wants this machine, allocation or not
  std::string system;
  const int machines = machines_in_allocation(system);
  if (machines <= 1) return "";
  return format(
      "this %s job has %d machines, and this mpiexec starts ranks on one only; use %s, or "
      "add --host localhost to stay here",
      system.c_str(), machines, right_command(plan, "HOSTS").c_str());
}

}  // namespace headway::launcher
