#include "bootstrap/environment.h"

#include <cstdlib>
#include <cstring>
#include <fcntl.h>

#include "bootstrap/pmi_wire.h"

namespace headway::bootstrap {
namespace {

constexpr const char* used_marker = "HEADWAY_INSIDE";

// Launchers that are recognised by a variable with the number of ranks, or by a bare mark.
struct Foreign {
  const char* mark;  // set in every process that it starts
  const char* size;  // variable with the number of ranks; "" where there is none
  const char* name;
  const char* remedy;
};

constexpr Foreign foreign_launchers[] = {
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "Open MPI's mpirun",
     "use Headway's own mpiexec"},
    {"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MVAPICH's mpirun_rsh",
     "use Headway's own mpiexec, or mpiexec.hydra"},
    {"FLUX_TASK_RANK", "FLUX_JOB_SIZE", "flux run without PMI", "use flux run -o pmi=simple"},
    {"JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE", "jsrun without PMIx",
     "put libpmix.so.2 on the library path"},
    {"PALS_RANKID", "PMI_SIZE", "Cray's PALS launcher", "use mpiexec.hydra inside the allocation"},
    {"SLURM_STEP_ID", "SLURM_STEP_NUM_TASKS", "srun without PMI",
     "use srun --mpi=pmi2 or srun --mpi=pmix"},
};

bool is_set(const char* variable) {
  const char* value = getenv(variable);
  return value && *value;
}

int number_of(const char* variable, int otherwise) {
  const char* text = getenv(variable);
  int number = 0;
  if (!text || !pmi::Line::parse_number({text, strlen(text)}, number)) return otherwise;
  return number;
}

Environment unspeakable(const char* name, const char* remedy) {
  Environment result;
  result.seen = Seen::unspeakable;
  result.name = name;
  result.remedy = remedy;
  return result;
}

Environment read_pmi_fd() {
  Environment result;
  result.fd = number_of("PMI_FD", -1);
  result.rank = number_of("PMI_RANK", -1);
  result.size = number_of("PMI_SIZE", -1);
  if (result.fd < 0 || result.rank < 0 || result.size <= result.rank) {
    return unspeakable("a launcher whose PMI_FD, PMI_RANK or PMI_SIZE makes no sense",
                       "start it with mpiexec -n N");
  }
  if (fcntl(result.fd, F_GETFD) >= 0) {
    result.seen = Seen::pmi_fd;
    return result;
  }
  if (result.size == 1) return Environment{};
  return unspeakable(
      "mpiexec, but a wrapper script in between closed the descriptor PMI_FD",
      "let the wrapper keep it open (in Python: subprocess with close_fds=False) or exec the "
      "program");
}

// Who stands behind a PMIx server, for messages.
const char* pmix_launcher_name() {
  if (is_set("OMPI_COMM_WORLD_SIZE")) return "Open MPI's mpirun";
  if (is_set("SLURM_STEP_ID")) return "srun --mpi=pmix";
  if (is_set("FLUX_TASK_RANK")) return "flux run -o pmi=pmix";
  if (is_set("JSM_NAMESPACE_RANK")) return "jsrun";
  return "a PMIx launcher (prterun, prun)";
}

// The number of ranks as far as the variables tell, -1 if they do not.
int pmix_job_size() {
  for (const char* variable :
       {"OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS", "FLUX_JOB_SIZE", "JSM_NAMESPACE_SIZE"}) {
    const int size = number_of(variable, -1);
    if (size > 0) return size;
  }
  return -1;
}

}  // namespace

Environment read_environment() {
  if (is_set("PMI_FD")) return read_pmi_fd();
  Environment result;
  if (is_set("PMI_PORT")) {
    result.seen = Seen::pmi_port;
    result.port = getenv("PMI_PORT");
    result.rank = number_of("PMI_ID", number_of("PMI_RANK", -1));
    if (result.rank >= 0) return result;
    return unspeakable("a launcher that set PMI_PORT but neither PMI_ID nor PMI_RANK",
                       "start it with mpiexec -n N");
  }
  if (is_set("PMIX_NAMESPACE") && is_set("PMIX_RANK")) {
    result.seen = Seen::pmix;
    result.name = pmix_launcher_name();
    result.remedy = is_set("SLURM_STEP_ID")
                        ? "use srun --mpi=pmi2, or put libpmix.so.2 on the library path"
                        : "use Headway's own mpiexec on one machine, or put libpmix.so.2 on the "
                          "library path";
    result.size = pmix_job_size();
    return result;
  }
  // A program that a rank started with system() inherits these variables but is no rank.
  if (is_set(used_marker)) return result;
  for (const Foreign& launcher : foreign_launchers) {
    if (!is_set(launcher.mark)) continue;
    // One task, or a shell in an allocation, which has no number of tasks: really alone.
    if (number_of(launcher.size, 1) > 1) return unspeakable(launcher.name, launcher.remedy);
  }
  return result;
}

void mark_environment_used() {
  for (const char* variable : {"PMI_FD", "PMI_PORT", "PMIX_NAMESPACE"}) unsetenv(variable);
  setenv(used_marker, "1", 1);
}

}  // namespace headway::bootstrap
