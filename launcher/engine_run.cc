// How a line is executed: hand_over.h.
#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <iterator>
#include <poll.h>
#include <signal.h>
#include <string>
#include <string_view>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <vector>

#include "hand_over.h"
#include "rank_environment.h"
#include "say.h"
#include "srun_codes.h"

namespace headway::launcher {
namespace {

constexpr int64_t patience_ms = 20'000;  // of an engine that was told to end
constexpr int64_t rest_ms = 1'000;       // for its last lines, which others may hold open
constexpr int64_t ranks_ms = 300;        // for ranks to end in their own way
constexpr int64_t echo_ms = 50;          // between an interrupt and its copy

// Of variables with the names of an outer job's, those are the user's own.
constexpr std::string_view for_engines[] = {"PRTE_MCA_", "PMIX_MCA_", "PRTE_PREFIX", "PMIX_PREFIX"};

int64_t now_ms() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<int64_t>(now.tv_sec) * 1000 + now.tv_nsec / 1'000'000;
}

// A file that only the engine sees, under a name that it can open; false, with the sentence told.
bool place_file(EngineLine& line) {
  const int file = memfd_create("mpiexec", 0);
  const std::string& text = line.file;
  if (file < 0 || write(file, text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    say(format("cannot write the file for the engine: %s", strerror(errno)));
    return false;
  }
  line.words[line.file_at] = format("/proc/self/fd/%d", file);
  return true;
}

// What a launcher around us has left, of which the engine's own ranks are no part; and the time
// limit, which is ours to keep: engines would read it, too.
void drop_outer_job() {
  std::vector<std::string> names = {"MPIEXEC_TIMEOUT"};
  for (char** entry = environ; *entry; ++entry) {
    const std::string_view text = *entry;
    const std::string_view name = text.substr(0, text.find('='));
    const bool is_users =
        std::any_of(std::begin(for_engines), std::end(for_engines),
                    [&](std::string_view head) { return name.starts_with(head); });
    if (is_foreign(name) && !is_users) names.emplace_back(name);
  }
  for (const std::string& name : names) unsetenv(name.c_str());
}

// Before anything is executed: file, stdin, environment.
bool prepare(EngineLine& line) {
  if (line.file_at > 0 && !place_file(line)) return false;
  if (line.no_input) {
    const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (null < 0 || dup2(null, STDIN_FILENO) < 0) {
      say(format("cannot open /dev/null: %s", strerror(errno)));
      return false;
    }
  }
  drop_outer_job();
  for (const std::string& name : line.dropped) unsetenv(name.c_str());
  for (const Assignment& variable : line.environment) {
    setenv(variable.first.c_str(), variable.second.c_str(), 1);
  }
  return true;
}

std::vector<char*> as_list(const std::vector<std::string>& words) {
  std::vector<char*> list;
  list.reserve(words.size() + 1);
  for (const std::string& word : words) list.push_back(const_cast<char*>(word.c_str()));
  list.push_back(nullptr);
  return list;
}

int cannot_execute(const EngineLine& line) {
  const int code = errno == ENOENT ? exit_not_found : exit_cannot_execute;
  say(format("cannot execute %s: %s", line.words[0].c_str(), strerror(errno)));
  return code;
}

// mpiexec beside its engine.
class Parent {
 public:
  Parent(const Plan& plan, EngineKind kind, bool merged)
      : plan_(plan), kind_(kind), target_(merged ? STDOUT_FILENO : STDERR_FILENO) {}
  ~Parent() {
    if (signals_ >= 0) close(signals_);
    if (errors_ >= 0) close(errors_);
  }
  Parent(const Parent&) = delete;
  Parent& operator=(const Parent&) = delete;

  int run(const EngineLine& line);

 private:
  bool start(const EngineLine& line);
  [[noreturn]] void become_engine(const std::vector<char*>& words, int errors, pid_t parent);
  void read_signals();
  void read_errors();
  void write_rest();
  void write_sentences(bool waits);
  bool can_tell() const;
  bool wait_for(int ms);
  void pass_on(const signalfd_siginfo& info);
  void end(int code, int number);
  void on_time();
  int patience() const;
  void drain();
  void tell(const std::string& sentence);
  int exit_code() const;

  const Plan& plan_;
  const EngineKind kind_;
  const int target_;  // where its stderr goes
  pid_t engine_ = -1;
  bool running_ = false;
  int status_ = 0;
  int signals_ = -1;
  int errors_ = -1;                     // srun's stderr, which is read on its way
  std::string rest_;                    // what of it is not written yet; until then no more is read
  bool in_line_ = false;                // the last that was written of it was no whole line
  std::vector<std::string> sentences_;  // ours, until there is room: the end waits for no reader
  SrunCodes codes_;
  int ended_with_ = 0;  // the code, once it was told to end; 0: it was not
  int64_t interrupted_at_ = -1, timeout_at_ = -1, end_at_ = -1, kill_at_ = -1;
  sigset_t original_ = {};
};

void Parent::become_engine(const std::vector<char*>& words, int errors, pid_t parent) {
  // To be told, not killed: an engine that is killed leaves the ranks where they are.
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(128 + SIGTERM);
  if (errors >= 0) {
    dup2(errors, STDERR_FILENO);
  } else if (target_ == STDOUT_FILENO) {
    dup2(STDOUT_FILENO, STDERR_FILENO);
  }
  sigprocmask(SIG_SETMASK, &original_, nullptr);
  execv(words[0], words.data());
  dprintf(STDERR_FILENO, "mpiexec: cannot execute %s: %s\n", words[0], strerror(errno));
  _exit(errno == ENOENT ? exit_not_found : exit_cannot_execute);
}

bool Parent::start(const EngineLine& line) {
  struct sigaction plain = {};
  plain.sa_handler = SIG_DFL;  // an ignored SIGCHLD would reap the engine behind our back
  sigaction(SIGCHLD, &plain, nullptr);
  sigset_t handled;
  sigemptyset(&handled);
  for (const int number : {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2}) {
    sigaddset(&handled, number);
  }
  sigprocmask(SIG_BLOCK, &handled, &original_);
  signals_ = signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK);
  int ends[2] = {-1, -1};
  const bool reads = kind_ == EngineKind::srun;
  if (signals_ < 0 || (reads && pipe2(ends, O_CLOEXEC) != 0)) {
    say(format("cannot stay beside %s: %s", line.words[0].c_str(), strerror(errno)));
    return false;
  }
  errors_ = ends[0];
  const std::vector<char*> words = as_list(line.words);
  const pid_t own = getpid();
  engine_ = fork();
  if (engine_ == 0) become_engine(words, ends[1], own);
  if (ends[1] >= 0) close(ends[1]);
  if (engine_ < 0) {
    say(format("cannot make a process for %s: %s", line.words[0].c_str(), strerror(errno)));
    return false;
  }
  running_ = true;
  // Flux keeps the time itself.
  if (plan_.timeout_s && kind_ != EngineKind::flux) {
    timeout_at_ = now_ms() + static_cast<int64_t>(*plan_.timeout_s * 1000);
  }
  return true;
}

bool can_be_written(int file) {
  pollfd ready = {file, POLLOUT, 0};
  return poll(&ready, 1, 0) == 1;
}

// A sentence of ours between srun's lines.
void Parent::tell(const std::string& sentence) {
  sentences_.push_back(sentence);
  write_sentences(false);
}

// Behind the lines that were read before them, unless those go elsewhere. `waits`: for a reader
// that has stopped, too.
void Parent::write_sentences(bool waits) {
  for (; !sentences_.empty(); sentences_.erase(sentences_.begin())) {
    if (!waits && !(can_tell() && can_be_written(STDERR_FILENO))) return;
    if (in_line_ && can_be_written(target_) && write(target_, "\n", 1) == 1) in_line_ = false;
    say(sentences_.front());
  }
}

// No line that was read before it is in the way of a sentence.
bool Parent::can_tell() const { return rest_.empty() || target_ != STDERR_FILENO; }

// The engine is told to end, and the job has this code. srun kills its ranks at once when it is
// told so: an interrupt, which it passes on, goes before.
void Parent::end(int code, int number) {
  if (ended_with_ == 0) ended_with_ = code;
  if (!running_) return;
  if (kind_ == EngineKind::srun && interrupted_at_ < 0 && end_at_ < 0) {
    kill(engine_, SIGINT);
    end_at_ = now_ms() + ranks_ms;
  } else {
    kill(engine_, number);
  }
  if (kill_at_ < 0) kill_at_ = now_ms() + patience_ms;
}

void Parent::pass_on(const signalfd_siginfo& info) {
  const int number = static_cast<int>(info.ssi_signo);
  // What the terminal sends, it sends to the engine, too.
  const bool has_it = info.ssi_code == SI_KERNEL;
  if (number == SIGUSR1 || number == SIGUSR2) {
    if (running_ && !has_it) kill(engine_, number);
    return;
  }
  if (number != SIGINT) return end(128 + number, SIGTERM);
  // A wrapper passes on what the terminal has sent already.
  if (interrupted_at_ >= 0 && now_ms() - interrupted_at_ < echo_ms) return;
  if (interrupted_at_ >= 0) return end(128 + number, SIGTERM);
  // The ranks get the first interrupt, and may end in their own way.
  interrupted_at_ = now_ms();
  ended_with_ = 128 + SIGINT;
  if (running_ && !has_it) kill(engine_, SIGINT);
}

void Parent::read_signals() {
  signalfd_siginfo info;
  while (read(signals_, &info, sizeof info) == ssize_t(sizeof info)) {
    if (info.ssi_signo != SIGCHLD) {
      pass_on(info);
      continue;
    }
    if (running_ && waitpid(engine_, &status_, WNOHANG) == engine_) running_ = false;
  }
}

void Parent::read_errors() {
  char piece[65536];
  const ssize_t n = read(errors_, piece, sizeof piece);
  if (n < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (n <= 0) {
    close(errors_);
    errors_ = -1;
    return;
  }
  const std::string_view text(piece, static_cast<size_t>(n));
  codes_.take(text);
  rest_ = text;
}

// What poll says can be written without waiting: a reader that has stopped must not stop us.
void Parent::write_rest() {
  const ssize_t written = write(target_, rest_.data(), std::min<size_t>(rest_.size(), PIPE_BUF));
  if (written < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (written > 0) in_line_ = rest_[static_cast<size_t>(written) - 1] != '\n';
  rest_.erase(0, written > 0 ? static_cast<size_t>(written) : std::string::npos);  // nobody reads
  write_sentences(false);
}

void Parent::on_time() {
  if (!running_) return;  // it ended by itself, and its number may be another's
  const int64_t now = now_ms();
  if (timeout_at_ >= 0 && now >= timeout_at_) {
    timeout_at_ = -1;
    tell(format("the time of %g s (%s) is over; %s is told to end the job", *plan_.timeout_s,
                plan_.timeout_by, name_of(kind_)));
    ended_with_ = exit_timeout;
    end(exit_timeout, SIGTERM);
  }
  if (end_at_ >= 0 && now >= end_at_) {
    end_at_ = -1;
    interrupted_at_ = now;
    kill(engine_, SIGTERM);
  }
  if (kill_at_ >= 0 && now >= kill_at_) {
    kill_at_ = -1;
    tell(format("%s does not end, and is killed; ranks may go on on other machines",
                name_of(kind_)));
    kill(engine_, SIGKILL);
  }
}

// ms until something is due; -1: nothing is.
int Parent::patience() const {
  int64_t first = -1;
  for (const int64_t at : {timeout_at_, end_at_, kill_at_}) {
    if (at >= 0 && (first < 0 || at < first)) first = at;
  }
  if (first < 0) return -1;
  return static_cast<int>(std::clamp<int64_t>(first - now_ms() + 1, 0, 3'600'000));
}

// What the engine has written last; a process that it has left behind may keep the pipe.
void Parent::drain() {
  read_signals();
  sigprocmask(SIG_SETMASK, &original_, nullptr);  // from now on a signal ends us as it ends anybody
  int64_t until = now_ms() + rest_ms;
  while (errors_ >= 0 || !rest_.empty()) {
    // Written lines wait for their reader, as those of any program do.
    if (!rest_.empty() || !sentences_.empty()) until = now_ms() + rest_ms;
    const int64_t left = until - now_ms();
    if (left <= 0) break;
    wait_for(static_cast<int>(left));
  }
  write_sentences(true);
}

// Until something can be read or written; false where it cannot be waited for. A sentence that
// waits for its reader goes before the lines that would come to the same one.
bool Parent::wait_for(int ms) {
  const bool writes = !rest_.empty(), tells = !sentences_.empty() && can_tell();
  const bool reads = !writes && !(tells && target_ == STDERR_FILENO);
  pollfd ready[3] = {{running_ ? signals_ : -1, POLLIN, 0},  // -1 is passed over
                     {writes  ? target_
                      : reads ? errors_
                              : -1,
                      short(writes ? POLLOUT : POLLIN), 0},
                     {tells ? STDERR_FILENO : -1, POLLOUT, 0}};
  if (poll(ready, 3, ms) < 0) return errno == EINTR;
  if (ready[2].revents) write_sentences(false);
  if (ready[1].revents && writes) {
    write_rest();
  } else if (ready[1].revents) {
    read_errors();
  }
  if (ready[0].revents) read_signals();
  return true;
}

int Parent::exit_code() const {
  if (ended_with_ != 0) return ended_with_;
  const int own = WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_);
  return own != 0 && codes_.code() != 0 ? codes_.code() : own;
}

int Parent::run(const EngineLine& line) {
  if (!start(line)) return exit_cannot_execute;
  while (running_) {
    if (!wait_for(patience())) {
      say(format("cannot wait for %s: %s", name_of(kind_), strerror(errno)));
      end(exit_cannot_execute, SIGTERM);
      write_sentences(true);
      return exit_cannot_execute;
    }
    on_time();
  }
  drain();
  return exit_code();
}

}  // namespace

int run_engine(const Plan& plan, const Engine& engine, EngineLine& line) {
  if (!prepare(line)) return exit_cannot_execute;
  const bool stays =
      engine.kind == EngineKind::srun || (plan.timeout_s && engine.kind != EngineKind::flux);
  if (stays) return Parent(plan, engine.kind, line.merged).run(line);
  if (line.merged) dup2(STDOUT_FILENO, STDERR_FILENO);
  execv(line.words[0].c_str(), as_list(line.words).data());
  return cannot_execute(line);
}

}  // namespace headway::launcher
