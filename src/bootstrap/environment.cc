#include "bootstrap/environment.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/descriptors.h"
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

// What those variables say, as a number: it changes when another launcher starts something.
uint64_t foreign_traces() {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  const auto mix = [&hash](const char* variable) {
    const char* value = *variable ? getenv(variable) : nullptr;
    for (const char* c = value ? value : "-"; *c; ++c) {
      hash = (hash ^ static_cast<unsigned char>(*c)) * 0x100000001b3;
    }
    hash = (hash ^ '\n') * 0x100000001b3;
  };
  for (const Foreign& launcher : foreign_launchers) {
    mix(launcher.mark);
    mix(launcher.size);
  }
  return hash;
}

// The text of the marker in a rank that has been started here.
struct Marker {
  char text[24];
  Marker() {
    snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(foreign_traces()));
  }
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

// Reads a file of another process into `out`, as text. False if there is none.
bool read_proc(long pid, const char* name, char* out, size_t room) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%ld/%s", pid, name);
  const int file = base::with_room([&] { return open(path, O_RDONLY | O_CLOEXEC); });
  if (file < 0) return false;
  const ssize_t got = read(file, out, room - 1);
  close(file);
  out[got > 0 ? got : 0] = '\0';
  return got > 0;
}

// True if the process was started with NAME=value.
bool was_started_with(long pid, const char* entry) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%ld/environ", pid);
  const int file = base::with_room([&] { return open(path, O_RDONLY | O_CLOEXEC); });
  if (file < 0) return false;
  const size_t length = strlen(entry) + 1;  // with the zero that ends each entry
  bool found = false, same = true;
  size_t at = 0;
  char text[4096];
  for (ssize_t got; !found && (got = read(file, text, sizeof text)) > 0;) {
    for (ssize_t i = 0; i < got && !found; ++i) {
      same = same && at < length && text[i] == entry[at];
      ++at;
      if (text[i] != '\0') continue;
      found = same && at == length;
      same = true;
      at = 0;
    }
  }
  close(file);
  return found;
}

// A socket that is closed when another program is executed.
bool is_own_socket(long pid, int fd) {
  char name[32], text[256];
  snprintf(name, sizeof name, "fdinfo/%d", fd);
  if (!read_proc(pid, name, text, sizeof text)) return false;
  const char* const flags = strstr(text, "flags:");
  if (!flags || !(strtoul(flags + strlen("flags:"), nullptr, 8) & O_CLOEXEC)) return false;
  char path[64];
  struct stat status;
  snprintf(path, sizeof path, "/proc/%ld/fd/%d", pid, fd);
  return stat(path, &status) == 0 && S_ISSOCK(status.st_mode);
}

// True in a program that a rank has started with variables from before its MPI_Init, as Python does
// with a copy of os.environ. Such a rank has made its descriptor its own, which a wrapper script
// around a rank never does.
bool was_started_by_rank(int fd) {
  constexpr int most_between = 32;
  char entry[32];
  snprintf(entry, sizeof entry, "PMI_FD=%d", fd);
  long pid = getppid();
  for (int i = 0; i < most_between && pid > 1; ++i, pid = parent_of(pid)) {
    if (!was_started_with(pid, entry)) return false;  // the launcher, or who started that
    if (is_own_socket(pid, fd)) return true;
  }
  return false;
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
  if (result.size == 1 || was_started_by_rank(result.fd)) return Environment{};
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

long parent_of(long pid) {
  char text[512];
  if (!read_proc(pid, "stat", text, sizeof text)) return 0;
  const char* const behind_name = strrchr(text, ')');  // "PID (NAME) STATE PARENT ..."
  return behind_name && strlen(behind_name) > 4 ? strtol(behind_name + 4, nullptr, 10) : 0;
}

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
  // A program that a rank started with system() inherits these variables but is no rank; if they
  // differ from those of that rank, another launcher stands in between.
  if (is_set(used_marker) && !strcmp(getenv(used_marker), Marker().text)) return result;
  for (const Foreign& launcher : foreign_launchers) {
    if (!is_set(launcher.mark)) continue;
    // One task, or a shell in an allocation, which has no number of tasks: really alone.
    if (number_of(launcher.size, 1) > 1) return unspeakable(launcher.name, launcher.remedy);
  }
  return result;
}

void mark_environment_used() {
  for (const char* variable : {"PMI_FD", "PMI_PORT", "PMIX_NAMESPACE"}) unsetenv(variable);
  setenv(used_marker, Marker().text, 1);
}

}  // namespace headway::bootstrap
