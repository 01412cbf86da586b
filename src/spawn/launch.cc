#include "spawn/launch.h"

#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/spin_lock.h"
#include "base/vec.h"

namespace headway::spawn {
namespace {

constexpr const char* from_library[] = {"/../bin/mpiexec", "/../../bin/mpiexec"};
// Of this process alone: two are set anew, and the files of the third have this job's ranks in
// their names, which the new ones would write over.
constexpr const char* kept_back[] = {port_for_launcher, job_for_launcher, "HEADWAY_COUNTERS"};

// Words, one behind the other, that stay where they are once all are in.
class Words {
 public:
  bool add(const char* word) { return starts_.push(uint32_t(text_.size())) && append(word); }
  bool add(const char* name, const char* value) {  // as one word: name=value
    return add(name) && (text_.pop(), append("=")) && (text_.pop(), append(value));
  }
  bool add(int number) {
    base::Text<16> text;
    text << number;
    return add(text.c_str());
  }
  // For exec; null without memory.
  char** pointers() {
    if (!pointers_.resize(starts_.size() + 1)) return nullptr;
    for (size_t i = 0; i < starts_.size(); ++i) pointers_[i] = text_.data() + starts_[i];
    pointers_[starts_.size()] = nullptr;
    return pointers_.data();
  }

 private:
  bool append(const char* word) {  // with its NUL
    const size_t n = strlen(word) + 1, at = text_.size();
    if (!text_.reserve(at + n > 2 * at ? at + n : 2 * at) || !text_.resize(at + n)) return false;
    memcpy(text_.data() + at, word, n);
    return true;
  }

  base::Vec<char> text_;
  base::Vec<uint32_t> starts_;
  base::Vec<char*> pointers_;
};

bool find_mpiexec(char (&path)[PATH_MAX]) {
  Dl_info self;
  if (dladdr(reinterpret_cast<const void*>(&find_mpiexec), &self) == 0 || !self.dli_fname) {
    return false;
  }
  char library[PATH_MAX];
  if (!realpath(self.dli_fname, library)) return false;
  char* const slash = strrchr(library, '/');
  if (!slash) return false;
  *slash = '\0';
  for (const char* relative : from_library) {
    base::Text<PATH_MAX> text;
    text << library << relative;
    if (access(text.c_str(), X_OK) == 0 && realpath(text.c_str(), path)) return true;
  }
  return false;
}

// What mpiexec would take for a word of its own.
const char* refuse(const Program& program) {
  if (*program.command == '-' || strcmp(program.command, ":") == 0) {
    return "the command begins with '-', or is ':'";
  }
  for (char* const* at = program.arguments; at && *at; ++at) {
    if (strcmp(*at, ":") == 0) return "one of the arguments is ':'";
  }
  return nullptr;
}

// Whether that variable goes along.
bool is_passed(const char* entry) {
  for (const char* name : kept_back) {
    const size_t n = strlen(name);
    if (strncmp(entry, name, n) == 0 && entry[n] == '=') return false;
  }
  return true;
}

bool add_program(Words& words, const Program& program) {
  const auto option = [&](const char* name, const char* value) {
    return !value || (words.add(name) && words.add(value));
  };
  bool all = words.add("-n") && words.add(program.ranks) && option("--wdir", program.directory) &&
             option("--path", program.path) && option("--host", program.host) &&
             option("--soft", program.soft) && words.add(program.command);
  for (char* const* at = program.arguments; all && at && *at; ++at) all = words.add(*at);
  return all;
}

// Without what this thread holds back just now, which may be all signals, and without the program's
// descriptors, whose other ends would not see the end of this process.
int start_process(pid_t& pid, const char* path, char** words, char** variables) {
  posix_spawnattr_t attributes;
  if (const int error = posix_spawnattr_init(&attributes)) return error;
  posix_spawn_file_actions_t files;
  int error = posix_spawn_file_actions_init(&files);
  if (!error) {
    sigset_t none;
    sigemptyset(&none);
    error = posix_spawnattr_setsigmask(&attributes, &none);
    if (!error) error = posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    if (!error) error = posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);
    if (!error) error = posix_spawn(&pid, path, &files, &attributes, words, variables);
    posix_spawn_file_actions_destroy(&files);
  }
  posix_spawnattr_destroy(&attributes);
  return error;
}

// Those that were started here, to be asked for when they have ended. A program that waits for
// children of its own may have taken one: then the system does not know it any more.
struct Started {
  base::SpinLock lock;
  pid_t pids[256] = {};
};
constinit Started started;

void note(pid_t pid) {
  base::SpinGuard guard(started.lock);
  for (pid_t& one : started.pids) {
    if (one != 0) continue;
    one = pid;
    return;
  }
}

void take_ended() {
  base::SpinGuard guard(started.lock);
  for (pid_t& one : started.pids) {
    if (one != 0 && waitpid(one, nullptr, WNOHANG) != 0) one = 0;
  }
}

void forget(pid_t pid) {
  base::SpinGuard guard(started.lock);
  for (pid_t& one : started.pids) {
    if (one == pid) one = 0;
  }
}

}  // namespace

Trouble Launch::start(const Program* programs, size_t count, const char* port, const char* job) {
  take_ended();
  char path[PATH_MAX];
  if (!find_mpiexec(path)) {
    story_ << "there is no mpiexec in the folder bin beside that of this library";
    return Trouble::no_launcher;
  }
  Words arguments, environment;
  bool all = arguments.add(path) && arguments.add("--stdin") && arguments.add("none");
  for (size_t i = 0; i < count; ++i) {
    if (const char* why = refuse(programs[i])) {
      story_ << why << ", which mpiexec would take for a word of its own";
      return Trouble::not_started;
    }
    all = all && (i == 0 || arguments.add(":")) && add_program(arguments, programs[i]);
  }
  for (char** entry = environ; all && entry && *entry; ++entry) {
    if (is_passed(*entry)) all = environment.add(*entry);
  }
  all = all && environment.add(port_for_launcher, port) && environment.add(job_for_launcher, job);
  char** const words = all ? arguments.pointers() : nullptr;
  char** const variables = all ? environment.pointers() : nullptr;
  if (!words || !variables) return Trouble::no_memory;
  const int error = start_process(pid_, path, words, variables);
  if (error != 0) {
    pid_ = -1;
    const char* text = strerrordesc_np(error);
    story_ << "the system does not start " << path << " (" << (text ? text : "unknown error")
           << ")";
    return Trouble::not_started;
  }
  note(pid_);
  return Trouble::none;
}

bool Launch::has_ended() {
  if (pid_ < 0) return true;
  int status = 0;
  const pid_t got = waitpid(pid_, &status, WNOHANG);
  if (got == 0 || (got < 0 && errno == EINTR)) return false;
  if (got < 0 && kill(pid_, 0) == 0) return false;  // the program does not keep what has ended
  forget(pid_);
  pid_ = -1;
  if (got < 0) {
    story_ << "mpiexec, which was to start it, has ended";
  } else if (WIFSIGNALED(status)) {
    story_ << "mpiexec, which was to start it, was killed by signal " << WTERMSIG(status);
  } else if (WEXITSTATUS(status) == 0) {
    story_ << "all its processes have ended well, and none has called MPI_Init";
  } else {
    story_ << "mpiexec, which was to start it, has ended with code " << WEXITSTATUS(status)
           << ", and has said why";
  }
  return true;
}

}  // namespace headway::spawn
