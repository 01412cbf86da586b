// Job, first part: everything until the ranks run.
#include <cerrno>
#include <climits>
#include <cstring>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "channel.h"
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

// Unique among jobs that run at the same time anywhere: libraries make names of it.
std::string new_job_name() {
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
  return true;
}

// Each rank costs descriptors here: its PMI socket, its streams, its files.
bool Job::prepare_descriptors() {
  if (getrlimit(RLIMIT_NOFILE, &original_.descriptors) != 0) return true;
  const rlim_t per_rank = passes_through() ? 1 : plan_.output_directory.empty() ? 3 : 5;
  constexpr rlim_t own = 40;
  const rlim_t needed = static_cast<rlim_t>(size_) * per_rank + own + binding_.descriptors;
  rlimit limit = original_.descriptors;
  if (needed <= limit.rlim_cur) return true;
  if (needed > limit.rlim_max) {
    const rlim_t most = limit.rlim_max > own ? (limit.rlim_max - own) / per_rank : 0;
    say(format(
        "%d ranks need %llu file descriptors here and the limit is %llu (ulimit -Hn): raise "
        "it, or start at most %llu ranks",
        size_, static_cast<unsigned long long>(needed),
        static_cast<unsigned long long>(limit.rlim_max), static_cast<unsigned long long>(most)));
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
bool Job::passes_through() const {
  return size_ == 1 && !plan_.tag_output && plan_.output_directory.empty();
}

std::string Job::tag_of(int rank, const Sink& sink) const {
  if (!plan_.tag_output) return "";
  const int width = static_cast<int>(std::to_string(size_ - 1).size());
  const std::string tag = format("[%*d]", width, rank);
  const bool to_file = !plan_.output_directory.empty();
  return (to_file ? tag : paint_tag(sink.fd(), tag, rank)) + " ";
}

bool Job::open_file(std::unique_ptr<Sink>& sink, int rank, const char* suffix) {
  const int width = static_cast<int>(std::to_string(size_ - 1).size());
  const std::string path =
      format("%s/rank.%0*d.%s", plan_.output_directory.c_str(), width, rank, suffix);
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) {
    say(format("cannot write %s: %s", path.c_str(), strerror(errno)));
    return false;
  }
  sink = std::make_unique<Sink>(fd, path);
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
  const bool to_files = !plan_.output_directory.empty();
  if (to_files && !open_file(rank.output_file, number, "out")) return false;
  Sink& output_sink = to_files ? *rank.output_file : *output_;
  const Channel output = make_channel(output_sink.is_terminal() ? output_sink.fd() : -1);
  if (output.ours < 0) return false;
  rank.output.open(output.ours, &output_sink, tag_of(number, output_sink));
  recipe.output = recipe.errors = output.theirs;
  poller_.add(output.ours, EPOLLIN, Source::output, number);
  if (plan_.merge_stderr) return true;
  if (to_files && !open_file(rank.errors_file, number, "err")) return false;
  Sink& errors_sink = to_files ? *rank.errors_file : sink_for(STDERR_FILENO);
  const Channel errors = make_channel(errors_sink.is_terminal() ? errors_sink.fd() : -1);
  if (errors.ours < 0) return false;
  rank.errors.open(errors.ours, &errors_sink, tag_of(number, errors_sink));
  recipe.errors = errors.theirs;
  poller_.add(errors.ours, EPOLLIN, Source::errors, number);
  return true;
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
  const StartedChild child = start_child(recipe, original_);
  close_all({recipe.input, recipe.pmi});
  if (!passes_through()) {
    close_all({recipe.output, recipe.errors == recipe.output ? -1 : recipe.errors});
  }
  if (child.pid < 0) {
    const char* hint = child.error == EAGAIN    ? " (the limit on processes, ulimit -u?)"
                       : child.error == ENOEXEC ? " (a script needs a first line such as #!/bin/sh)"
                                                : "";
    say(format("cannot start rank %d: cannot %s, %s: %s%s", number, child.failed,
               recipe.path.c_str(), strerror(child.error), hint));
    exit_code_ = child.error == ENOENT ? exit_not_found : exit_cannot_execute;
    return false;
  }
  rank.pid = child.pid;
  rank.running = true;
  rank.own_group = recipe.own_group;
  if (rank.own_group) watchdog_.watch(rank.pid);
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
