#include "allocation.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <unistd.h>

#include "ask.h"
#include "say.h"

namespace headway::launcher {
namespace {

constexpr std::chrono::seconds patience{5};  // for Flux to tell its size

int number_in(const char* variable) {
  const char* text = getenv(variable);
  return text ? atoi(text) : 0;
}

// Who list the machines of a job in a file, one or more lines each.
struct NodeFile {
  const char* variable;
  const char* system;  // null: whoever set the variable, as Kubernetes' MPI operator does
  Manager manager;
};
constexpr NodeFile node_files[] = {
    {"PBS_NODEFILE", "PBS", Manager::other},
    {"OAR_NODEFILE", "OAR", Manager::other},
    {"COBALT_NODEFILE", "Cobalt", Manager::other},
    {"PE_HOSTFILE", "Grid Engine", Manager::other},
    {"HYDRA_HOST_FILE", nullptr, Manager::other},
    {"PRTE_MCA_prte_default_hostfile", nullptr, Manager::prrte},
    {"OMPI_MCA_prte_default_hostfile", nullptr, Manager::prrte},
    {"OMPI_MCA_orte_default_hostfile", nullptr, Manager::prrte},
};

// Steps that Slurm makes itself (batch script, shell of salloc) have numbers near the largest; they
// stand for the whole allocation. Others were placed by srun.
bool is_placed_step() {
  const char* step = getenv("SLURM_STEP_ID");
  constexpr unsigned long long first_special = 0xfffffff0;
  // The shell of srun --pty is one process, whatever its step has.
  return step && *step && strtoull(step, nullptr, 10) < first_special &&
         getenv("SLURM_STEP_NUM_NODES") && !getenv("SLURM_PTY_PORT");
}

bool in_slurm() { return getenv("SLURM_JOB_ID") && !is_placed_step(); }

// The shell or the script of a Flux job, which has FLUX_URI alone; its tasks have FLUX_JOB_ID, too.
bool in_flux() { return getenv("FLUX_URI") && !getenv("FLUX_JOB_ID"); }

// mpiexec was itself started on several machines, and each of its copies would start the job.
std::string started_often(const char* whose, int machines, const char* by) {
  return format(
      "%s has %d machines, and %s has started mpiexec on each, which would make as many jobs; "
      "leave %s out, since mpiexec hands over to it",
      whose, machines, by, by);
}

Allocation slurm_allocation() {
  Allocation result;
  result.whose = "this Slurm job";
  if (is_placed_step()) {
    const int machines = number_in("SLURM_STEP_NUM_NODES");
    if (machines > 1) result.refusal = started_often("this Slurm step", machines, "srun");
    return result;
  }
  result.manager = Manager::slurm;
  result.machines = std::max({number_in("SLURM_JOB_NUM_NODES"), number_in("SLURM_NNODES"), 1});
  result.slots = slots_of_slurm();
  // The shell of salloc may be on the login node, where slurmd has set nothing.
  const char* list = getenv("SLURM_JOB_NODELIST");
  if (result.machines == 1 && list && *list && !getenv("SLURMD_NODENAME") && !strpbrk(list, "[,")) {
    result.only = list;
  }
  return result;
}

Allocation flux_allocation() {
  Allocation result;
  result.whose = "this Flux job";
  if (getenv("FLUX_JOB_ID")) {
    const int machines = number_in("FLUX_JOB_NNODES");
    if (machines > 1) result.refusal = started_often("this Flux job", machines, "flux run");
    return result;
  }
  result.manager = Manager::flux;
  bool found = false;
  const std::string told =
      output_of({"flux", "getattr", "size"}, std::chrono::steady_clock::now() + patience, found);
  result.machines = std::max(found ? atoi(told.c_str()) : 1, 1);
  return result;
}

Allocation allocation_of(const NodeFile& file, const char* path) {
  Allocation result;
  if (access(path, R_OK) != 0 && file.system) {
    result.refusal = format("%s=%s, the list of machines of this %s job, cannot be read here: %s",
                            file.variable, path, file.system, strerror(errno));
    return result;
  }
  if (!result.list.add_file(path, strcmp(file.variable, "PE_HOSTFILE") == 0)) {
    result.refusal = result.list.error();
    return result;
  }
  const std::vector<Host> hosts = result.list.hosts();
  if (hosts.empty()) return result;
  result.manager = file.manager;
  result.machines = static_cast<int>(hosts.size());
  if (file.system) {
    result.whose = format("this %s job", file.system);
    return result;
  }
  result.whose = format("the host file %s, which %s names,", path, file.variable);
  result.only = hosts[0].name;
  return result;
}

// LSF writes "host slots host slots ..."; older releases a host for each slot.
Allocation lsf_allocation() {
  Allocation result;
  const char* pairs = getenv("LSB_MCPU_HOSTS");
  const char* list = pairs ? pairs : getenv("LSB_HOSTS");
  std::istringstream words(list ? list : "");
  std::string slots;
  for (std::string name; words >> name && (!pairs || words >> slots);) {
    result.list.add(name, pairs ? std::max(atoi(slots.c_str()), 1) : 0);
  }
  result.whose = "this LSF job";
  result.manager = Manager::other;
  result.machines = static_cast<int>(std::max<size_t>(result.list.hosts().size(), 1));
  return result;
}

}  // namespace

Manager manager_here() {
  return in_slurm() ? Manager::slurm : in_flux() ? Manager::flux : Manager::none;
}

int slots_of_slurm() {
  const int ranks = number_in("SLURM_NTASKS");
  if (ranks > 0) return ranks;
  // "16(x3),8": that many cores on each.
  const char* cores = getenv("SLURM_JOB_CPUS_PER_NODE");
  std::istringstream parts(cores ? cores : "");
  int sum = 0;
  for (std::string part; std::getline(parts, part, ',');) {
    const size_t times = part.find("(x");
    const int count = times == std::string::npos ? 1 : atoi(part.c_str() + times + 2);
    sum += atoi(part.c_str()) * count;
  }
  return std::max(sum, 0);
}

Allocation find_allocation() {
  if (getenv("SLURM_JOB_ID")) return slurm_allocation();
  for (const NodeFile& file : node_files) {
    const char* path = getenv(file.variable);
    // Others than a batch system's may be left from elsewhere.
    if (path && *path && (file.system || access(path, R_OK) == 0)) return allocation_of(file, path);
  }
  if (getenv("FLUX_JOB_ID") || getenv("FLUX_URI")) return flux_allocation();
  if (getenv("LSB_JOBID") || getenv("LSB_HOSTS")) return lsf_allocation();
  return {};
}

}  // namespace headway::launcher
