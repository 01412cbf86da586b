#include "hosts.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
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
  return name == own || until(name, '.') == until(own, '.');
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

std::string quoted(const std::string& word) {
  constexpr const char* plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=:,+@%";
  if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) return word;
  std::string result = "'";
  for (const char c : word) result += c == '\'' ? "'\\''" : std::string(1, c);
  return result + "'";
}

// "-n 4 ./solver input.txt", the programs of a job apart by colons.
std::string ranks_and_programs(const Plan& plan) {
  std::string text;
  for (const Section& section : plan.sections) {
    text += format("%s-n %d", text.empty() ? "" : " : ", section.ranks);
    for (const std::string& word : section.command) text += " " + quoted(word);
  }
  return text;
}

int number_in(const char* variable) {
  const char* text = getenv(variable);
  return text ? atoi(text) : 0;
}

// Who list the machines of a job in a file, one or more lines each.
struct NodeFile {
  const char* variable;
  const char* system;  // null: whoever set the variable, as Kubernetes' MPI operator does
  const char* engine;  // what starts ranks there
  const char* option;  // names the file; null: it finds the hosts without being told
};
constexpr const char* hydra = "mpiexec.hydra";
constexpr NodeFile node_files[] = {
    {"PBS_NODEFILE", "PBS", hydra, "-f"},
    {"OAR_NODEFILE", "OAR", hydra, "-f"},
    {"COBALT_NODEFILE", "Cobalt", hydra, "-f"},
    {"PE_HOSTFILE", "Grid Engine", hydra, nullptr},
    {"HYDRA_HOST_FILE", nullptr, hydra, "-f"},
    {"PRTE_MCA_prte_default_hostfile", nullptr, "prterun", "--hostfile"},
    {"OMPI_MCA_prte_default_hostfile", nullptr, "prterun", "--hostfile"},
    {"OMPI_MCA_orte_default_hostfile", nullptr, "prterun", "--hostfile"},
};

// The file that the variable names, or null.
const char* path_in(const NodeFile& file) {
  const char* path = getenv(file.variable);
  return path && *path ? path : nullptr;
}

// LSF writes "host slots host slots ..."; older releases a host for each slot.
std::vector<std::string> hosts_of_lsf() {
  std::vector<std::string> names;
  const char* pairs = getenv("LSB_MCPU_HOSTS");
  const char* list = pairs ? pairs : getenv("LSB_HOSTS");
  std::istringstream words(list ? list : "");
  std::string slots;
  for (std::string name; words >> name && (!pairs || words >> slots);) names.push_back(name);
  return names;
}

// What a batch system gave to this job.
struct Allocation {
  std::string whose;  // for people; empty: none is known
  size_t machines = 1;
  std::string elsewhere;  // its only machine, which is not this one
};

// Steps that Slurm makes itself (batch script, shell of salloc) have numbers near the largest; they
// stand for the whole allocation. Others were placed by srun.
bool is_placed_step() {
  const char* step = getenv("SLURM_STEP_ID");
  constexpr unsigned long long first_special = 0xfffffff0;
  return step && *step && strtoull(step, nullptr, 10) < first_special &&
         getenv("SLURM_STEP_NUM_NODES");
}

Allocation slurm_allocation() {
  Allocation result{"this Slurm job", 1, ""};
  const int machines = is_placed_step()
                           ? number_in("SLURM_STEP_NUM_NODES")
                           : std::max(number_in("SLURM_JOB_NUM_NODES"), number_in("SLURM_NNODES"));
  result.machines = static_cast<size_t>(std::max(machines, 1));
  // The shell of salloc may be on the login node, where slurmd has set nothing.
  const char* list = getenv("SLURM_JOB_NODELIST");
  if (result.machines == 1 && list && *list && !getenv("SLURMD_NODENAME") && !strpbrk(list, "[,") &&
      !is_this_machine(list)) {
    result.elsewhere = list;
  }
  return result;
}

Allocation allocation_of(const NodeFile& file, const char* path) {
  std::vector<std::string> names;
  if (!names_in_file(path, names) || names.empty()) return {};
  const size_t machines = std::set<std::string>(names.begin(), names.end()).size();
  if (file.system) return {format("this %s job", file.system), machines, ""};
  // A batch system starts us on one of the machines; here we may be beside them.
  const bool is_elsewhere = machines == 1 && !is_this_machine(names[0]);
  return {format("the host file %s, which %s names,", path, file.variable), machines,
          is_elsewhere ? names[0] : ""};
}

Allocation find_allocation() {
  if (getenv("SLURM_JOB_ID")) return slurm_allocation();
  for (const NodeFile& file : node_files) {
    if (const char* path = path_in(file)) return allocation_of(file, path);
  }
  if (getenv("FLUX_JOB_ID")) {
    return {"this Flux job", static_cast<size_t>(std::max(number_in("FLUX_JOB_NNODES"), 1)), ""};
  }
  if (getenv("LSB_JOBID") || getenv("LSB_HOSTS")) {
    const std::vector<std::string> names = hosts_of_lsf();
    return {"this LSF job", std::set<std::string>(names.begin(), names.end()).size(), ""};
  }
  return {};
}

// The command that serves several machines here; `hosts` are those that the user named, or "".
std::string right_command(const Plan& plan, const std::string& hosts) {
  const std::string rest = ranks_and_programs(plan);
  if (getenv("SLURM_JOB_ID")) {
    const std::string where = hosts.empty() ? "" : "-w " + hosts + " ";
    if (plan.sections.size() > 1) {
      return format("srun --mpi=pmi2 %s-n %d --multi-prog FILE (man srun)", where.c_str(),
                    plan.ranks());
    }
    return "srun --mpi=pmi2 " + where + rest;
  }
  if (getenv("FLUX_JOB_ID")) return "flux run -o pmi=simple " + rest;
  if (!hosts.empty()) {
    return format("mpiexec.hydra -hosts %s %s (MPICH's launcher), or prterun --host %s %s",
                  hosts.c_str(), rest.c_str(), hosts.c_str(), rest.c_str());
  }
  for (const NodeFile& file : node_files) {
    const char* path = path_in(file);
    if (!path) continue;
    const std::string option = file.option ? format("%s %s ", file.option, path) : "";
    return format("%s %s%s (%s launcher)", file.engine, option.c_str(), rest.c_str(),
                  file.engine == hydra ? "MPICH's" : "Open MPI's");
  }
  return "mpiexec.hydra " + rest + " (MPICH's launcher, which asks the batch system)";
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
  const Allocation allocation = find_allocation();
  const std::string here =
      right_command(plan, "") + ", or add --host localhost to start them here, on " + host_name();
  if (!allocation.elsewhere.empty()) {
    return format("%s has the machine %s, and this mpiexec starts ranks on %s only; use %s",
                  allocation.whose.c_str(), allocation.elsewhere.c_str(), host_name().c_str(),
                  here.c_str());
  }
  if (allocation.machines <= 1) return "";
  return format("%s has %zu machines, and this mpiexec starts ranks on one only; use %s",
                allocation.whose.c_str(), allocation.machines, here.c_str());
}

}  // namespace headway::launcher
