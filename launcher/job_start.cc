// Job, first part: everything until the ranks run.
#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "channel.h"
#include "hosts.h"
#include "job.h"
#include "program.h"
#include "rank_environment.h"
#include "say.h"

namespace headway::launcher {
namespace {

constexpr int handled_signals[] = {SIGCHLD, SIGINT,  SIGTERM, SIGHUP,  SIGQUIT,
                                   SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT, SIGWINCH};

bool is_ignored(int number) {
  struct sigaction action;
  return sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

bool same_place(int a, int b) {
  struct stat first, second;
  return fstat(a, &first) == 0 && fstat(b, &second) == 0 && first.st_dev == second.st_dev &&
         first.st_ino == second.st_ino;
}

// A name that a library of ours has drawn for a job that it spawns; "": it has not.
std::string spawned_job_name() {
  const char* given = getenv("HEADWAY_SPAWN_JOB");
  const std::string name = given ? given : "";
  const bool is_plain = std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
  return is_plain && name.size() < 64 ? name : "";
}

// Unique among jobs that run at the same time anywhere: libraries make names of it.
std::string new_job_name() {
  if (std::string given = spawned_job_name(); !given.empty()) return given;
  uint64_t random = 0;
  if (getrandom(&random, sizeof random, GRND_NONBLOCK) != ssize_t(sizeof random)) {
    timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    random = static_cast<uint64_t>(now.tv_sec) << 30 ^ static_cast<uint64_t>(now.tv_nsec);
  }
  return format("headway_%d_%016llx", getpid(), static_cast<unsigned long long>(random));
}

void close_all(std::initializer_list<int> descriptors) {
  for (const int fd : descriptors) {
    if (fd >= 0) close(fd);
  }
}

}  // namespace

bool Job::prepare_signals() {
  sigset_t handled;
  sigemptyset(&handled);
  for (const int number : handled_signals) {
    // What nohup or a shell has switched off stays off, for us and for the ranks.
    if (number == SIGCHLD || !is_ignored(number)) sigaddset(&handled, number);
  }
  sigset_t blocked = handled;
  // In the background: writing to the terminal is fine, and reading fails instead of stopping us.
  sigaddset(&blocked, SIGTTIN);
  sigaddset(&blocked, SIGTTOU);
  sigprocmask(SIG_BLOCK, &blocked, &original_.signal_mask);
  struct sigaction ignore = {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &ignore, &original_.broken_pipe);
  struct sigaction plain = {};
  plain.sa_handler = SIG_DFL;  // an ignored SIGCHLD would reap the ranks behind our back
  sigaction(SIGCHLD, &plain, nullptr);
  signals_ = signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK);
  if (signals_ < 0) {
    say(format("cannot receive signals: %s", strerror(errno)));
    return false;
  }
  poller_.add(signals_, EPOLLIN, Source::signals);
  prctl(PR_SET_CHILD_SUBREAPER, 1);  // see has_spawned()
  return true;
}

// Each rank costs descriptors here: its PMI socket, its streams, its files.
bool Job::prepare_descriptors() {
  if (getrlimit(RLIMIT_NOFILE, &original_.descriptors) != 0) return true;
  const rlim_t per_rank = passes_through() ? 1
                          : plan_.output_directory.empty() && plan_.output_pattern.empty() &&
                                  plan_.errors_pattern.empty()
                              ? 3
                              : 5;
  constexpr rlim_t own = 24;  // ours, what we were given, and the other ends while a rank starts
  const rlim_t needed = static_cast<rlim_t>(size_) * per_rank + own + binding_.descriptors;
  rlimit limit = original_.descriptors;
  if (needed <= limit.rlim_cur) return true;
  if (needed > limit.rlim_max) {
    const rlim_t most = limit.rlim_max > own + binding_.descriptors
                            ? (limit.rlim_max - own - binding_.descriptors) / per_rank
                            : 0;
    const std::string fewer =
        most > 0 ? format(", or start at most %llu rank%s", static_cast<unsigned long long>(most),
                          most == 1 ? "" : "s")
                 : "";
    say(format(
        "%d rank%s need%s %llu file descriptors here and the hard limit is %llu (ulimit "
        "-Hn): raise it (ulimit -Hn %llu as root, nofile in /etc/security/limits.conf, "
        "docker's --ulimit nofile, LimitNOFILE of systemd)%s",
        size_, size_ == 1 ? "" : "s", size_ == 1 ? "s" : "",
        static_cast<unsigned long long>(needed), static_cast<unsigned long long>(limit.rlim_max),
        static_cast<unsigned long long>(needed), fewer.c_str()));
    return false;
  }
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  return true;
}

bool Job::prepare_sinks() {
  output_ = std::make_unique<Sink>(STDOUT_FILENO, "stdout");
  if (!same_place(STDOUT_FILENO, STDERR_FILENO)) {
    errors_ = std::make_unique<Sink>(STDERR_FILENO, "stderr");
  }
  if (plan_.output_directory.empty()) return true;
  if (mkdir(plan_.output_directory.c_str(), 0777) != 0 && errno != EEXIST) {
    say(format("cannot make the folder %s for the output: %s", plan_.output_directory.c_str(),
               strerror(errno)));
    return false;
  }
  return true;
}

// One rank whose output nobody needs to sort gets our own streams: a debugger works in it.
bool Job::passes_through() const { return size_ == 1 && !plan_.sorts_output(); }

// The name or tag that a pattern means for a rank, with the letters that Hydra knows.
std::string Job::expand(const std::string& pattern, int rank) const {
  std::string text;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char letter = pattern[i] == '%' && i + 1 < pattern.size() ? pattern[i + 1] : '\0';
    if (letter == 'r') {
      text += std::to_string(rank);
    } else if (letter == 'h') {
      text += host_name();
    } else if (letter == 'g' || letter == 'p') {
      text += '0';  // the only group of ranks, and the only machine
    } else if (letter == '%') {
      text += '%';
    } else {
      text += pattern[i];
      continue;
    }
    ++i;
  }
  return text;
}

std::string Job::tag_of(int rank, const Sink& sink, bool to_file) const {
  if (!plan_.tag_output) return "";
  const int width = static_cast<int>(std::to_string(size_ - 1).size());
  std::string tag =
      plan_.tag_pattern.empty() ? format("[%*d] ", width, rank) : expand(plan_.tag_pattern, rank);
  if (to_file) return tag;
  const size_t end = tag.find_last_not_of(' ') + 1;
  return paint_tag(sink.fd(), tag.substr(0, end), rank) + tag.substr(end);
}

// The file for a stream of a rank, 1 or 2; "" if it goes to ours.
std::string Job::file_for(int rank, int fd) const {
  const bool errors = fd == STDERR_FILENO;
  const std::string& pattern = errors ? plan_.errors_pattern : plan_.output_pattern;
  if (!pattern.empty()) return expand(pattern, rank);
  if (plan_.output_directory.empty()) return "";
  const int width = static_cast<int>(std::to_string(size_ - 1).size());
  return format("%s/rank.%0*d.%s", plan_.output_directory.c_str(), width, rank,
                errors ? "err" : "out");
}

// Where that stream goes; null, with the sentence told, if its file cannot be made.
Sink* Job::sink_of(int rank, int fd) {
  const std::string path = file_for(rank, fd);
  if (path.empty()) return &sink_for(fd);
  std::unique_ptr<Sink>& file = files_[path];
  if (!file) {
    const int target = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (target < 0) {
      say(format("cannot write %s: %s", path.c_str(), strerror(errno)));
      files_.erase(path);
      errno = 0;
      return nullptr;
    }
    file = std::make_unique<Sink>(target, path);
  }
  return file.get();
}

bool Job::open_stream(int number, int fd, int& theirs) {
  Sink* sink = sink_of(number, fd);
  if (!sink) return false;
  const Channel channel = make_channel(sink->is_terminal() ? sink->fd() : -1);
  if (channel.ours < 0) return false;
  Rank& rank = ranks_[size_t(number)];
  Stream& stream = fd == STDERR_FILENO ? rank.errors : rank.output;
  stream.open(channel.ours, sink, tag_of(number, *sink, !file_for(number, fd).empty()),
              plan_.timestamp);
  theirs = channel.theirs;
  poller_.add(channel.ours, EPOLLIN, fd == STDERR_FILENO ? Source::errors : Source::output, number);
  return true;
}

// The stdin of a rank; -1 leaves it ours.
int Job::input_for(int rank) {
  if (rank == plan_.stdin_rank) {
    if (passes_through() || isatty(STDIN_FILENO) != 1) return -1;
    return input_.start(plan_.stdin_named);
  }
  return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

bool Job::open_channels(Rank& rank, int number, ChildRecipe& recipe) {
  recipe.input = input_for(number);
  if (recipe.input < 0 && number != plan_.stdin_rank) return false;
  int sockets[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) return false;
  rank.pmi = sockets[0];
  recipe.pmi = sockets[1];
  fcntl(rank.pmi, F_SETFL, O_NONBLOCK);
  poller_.add(rank.pmi, EPOLLIN, Source::pmi, number);
  if (passes_through()) {
    const bool terminal = isatty(0) == 1 || isatty(1) == 1 || isatty(2) == 1;
    recipe.own_group = !terminal;  // the terminal serves one group only
    if (plan_.merge_stderr) recipe.errors = STDOUT_FILENO;
    return true;
  }
  if (!open_stream(number, STDOUT_FILENO, recipe.output)) return false;
  recipe.errors = recipe.output;
  return plan_.merge_stderr || open_stream(number, STDERR_FILENO, recipe.errors);
}

bool Job::start_rank(int number, const std::vector<std::string>& environment,
                     const std::vector<std::string>& arguments) {
  Rank& rank = ranks_[size_t(number)];
  const Section& section = plan_.sections[rank.section];
  ChildRecipe recipe;
  recipe.path = paths_[rank.section];
  recipe.arguments = arguments;
  recipe.environment = environment;
  recipe.directory = section.directory;
  errno = 0;
  if (!open_channels(rank, number, recipe)) {
    if (errno != 0) say(format("cannot start rank %d: %s", number, strerror(errno)));
    exit_code_ = exit_cannot_execute;
    return false;
  }
  if (!binding_.cores.empty()) recipe.cores = binding_.cores[size_t(number)];
  add_rank_variables(recipe.environment, number, size_, recipe.pmi);
  recipe.watchdog = watchdog_.pipe();
  const StartedChild child = start_child(recipe, original_);
  close_all({recipe.input, recipe.pmi});
  if (!passes_through()) {
    close_all({recipe.output, recipe.errors == recipe.output ? -1 : recipe.errors});
  }
  if (child.pid < 0) {
    const char* hint = child.error == EAGAIN    ? " (the limit on processes, ulimit -u?)"
                       : child.error == ENOEXEC ? " (a script needs a first line such as #!/bin/sh)"
                                                : "";
    const std::string& object = child.failed == entering ? recipe.directory : recipe.path;
    say(format("cannot start rank %d: cannot %s, %s: %s%s", number, child.failed, object.c_str(),
               strerror(child.error), hint));
    exit_code_ = child.error == ENOENT ? exit_not_found : exit_cannot_execute;
    return false;
  }
  rank.pid = child.pid;
  rank.running = true;
  rank.own_group = recipe.own_group;
  if (plan_.verbose) {
    say(format("rank %d is process %d: %s", number, rank.pid, recipe.path.c_str()));
  }
  return true;
}

bool Job::start_ranks() {
  std::vector<int> appnums;
  for (size_t s = 0; s < plan_.sections.size(); ++s) {
    for (int i = 0; i < plan_.sections[s].ranks; ++i) {
      ranks_[appnums.size()].section = s;
      appnums.push_back(static_cast<int>(s));
    }
  }
  pmi_ = std::make_unique<PmiServer>(
      new_job_name(), std::move(appnums),
      [this](int rank, std::string_view text) { send_pmi(rank, text); });
  const std::string folder = plan_.library == Library::ours ? library_folder() : "";
  int number = 0;
  for (size_t s = 0; s < plan_.sections.size(); ++s) {
    const Section& section = plan_.sections[s];
    const std::vector<std::string> environment =
        section_environment(plan_, section, folder, binding_.threads);
    for (int i = 0; i < section.ranks; ++i) {
      if (!start_rank(number, environment, section.command)) return false;
      ++number;
    }
  }
  return true;
}

}  // namespace headway::launcher
