#include "child.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "watchdog.h"

namespace headway::launcher {
namespace {

// All that the child needs, laid out beforehand: between vfork and exec nothing may be allocated.
struct Prepared {
  const ChildRecipe* recipe;
  const OriginalState* original;
  char* const* arguments;
  char* const* environment;
  pid_t parent;
};

struct Failure {
  volatile int error = 0;
  const char* volatile step = "";
};

bool place(int fd, int target) {
  if (fd < 0) return true;
  if (fd == target) return fcntl(fd, F_SETFD, 0) == 0;
  return dup2(fd, target) == target;
}

// Runs in the child, on the parent's memory. Returns only if a step failed, and tells which.
const char* become_rank(const Prepared& p) {
  const ChildRecipe& r = *p.recipe;
  if (r.own_group && setpgid(0, 0) != 0) return "make a process group";
  // Told here and not by the parent: mpiexec may be killed before it runs again.
  if (r.own_group) Watchdog::watch(r.watchdog, getpid());
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return "follow its parent's death";
  if (getppid() != p.parent) _exit(128 + SIGKILL);  // it died in between
  if (!r.cores.empty()) {
    // A set that has become invalid (a core went away) is no reason not to run.
    sched_setaffinity(0, r.cores.size(), reinterpret_cast<const cpu_set_t*>(r.cores.data()));
  }
  if (!place(r.input, STDIN_FILENO)) return "set up its stdin";
  if (!place(r.output, STDOUT_FILENO)) return "set up its stdout";
  if (!place(r.errors, STDERR_FILENO)) return "set up its stderr";
  if (r.pmi >= 0 && fcntl(r.pmi, F_SETFD, 0) != 0) return "hand over its PMI descriptor";
  if (!r.directory.empty() && chdir(r.directory.c_str()) != 0) return entering;
  setrlimit(RLIMIT_NOFILE, &p.original->descriptors);
  sigaction(SIGPIPE, &p.original->broken_pipe, nullptr);
  sigprocmask(SIG_SETMASK, &p.original->signal_mask, nullptr);
  execve(r.path.c_str(), p.arguments, p.environment);
  return "execute it";
}

[[gnu::noinline]] pid_t fork_and_become(const Prepared& prepared, Failure& failure) {
  const pid_t pid = vfork();
  if (pid == 0) {
    failure.step = become_rank(prepared);
    failure.error = errno;
    if (prepared.recipe->own_group) Watchdog::release(prepared.recipe->watchdog, getpid());
    _exit(127);
  }
  return pid;
}

std::vector<char*> as_c_array(const std::vector<std::string>& texts) {
  std::vector<char*> result;
  result.reserve(texts.size() + 1);
  for (const std::string& text : texts) result.push_back(const_cast<char*>(text.c_str()));
  result.push_back(nullptr);
  return result;
}

}  // namespace

StartedChild start_child(const ChildRecipe& recipe, const OriginalState& original) {
  const std::vector<char*> arguments = as_c_array(recipe.arguments);
  const std::vector<char*> environment = as_c_array(recipe.environment);
  const Prepared prepared{&recipe, &original, arguments.data(), environment.data(), getpid()};
  Failure failure;
  StartedChild child;
  child.pid = fork_and_become(prepared, failure);
  if (child.pid < 0) {
    child.error = errno;
    child.failed = "make another process";
  } else if (failure.error != 0) {
    child.error = failure.error;
    child.failed = failure.step;
    child.pid = -1;  // the caller's reaping drops a pid that it does not know
  }
  return child;
}

}  // namespace headway::launcher
