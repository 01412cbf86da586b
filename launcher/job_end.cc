// Job, third part: deaths and signals.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sys/wait.h>
#include <unistd.h>

#include "channel.h"
#include "hints.h"
#include "hosts.h"
#include "job.h"
#include "say.h"

namespace headway::launcher {
namespace {

constexpr int64_t polite_ms = 300;  // between SIGTERM and SIGKILL
constexpr int64_t notice_ms = 1000;
// The same signal once more, so soon after, is the same wish: timeout(1) sends its signal to its
// child, and at once to the group in which the child is.
constexpr int64_t echo_ms = 50;

std::string name_of_signal(int number) {
  const char* name = sigabbrev_np(number);
  const char* text = sigdescr_np(number);
  if (!name || !text) return format("signal %d", number);
  return format("signal %d (SIG%s, %s)", number, name, text);
}

}  // namespace

int Job::running() const {
  return static_cast<int>(
      std::count_if(ranks_.begin(), ranks_.end(), [](const Rank& r) { return r.running; }));
}

std::string Job::describe(int number) const {
  const Rank& rank = ranks_[size_t(number)];
  const std::string& path = paths_[rank.section];
  return format("rank %d (%s, process %d on %s)", number, path.c_str(), rank.pid,
                host_name().c_str());
}

std::string Job::others_ended(int number) const {
  const int others = running() - ranks_[size_t(number)].running;
  if (others == 0) return "";
  return others == 1 ? "; the other rank is ended"
                     : format("; the other %d ranks are ended", others);
}

// How often the kernel has killed for want of memory since it started, on the whole machine.
uint64_t Job::out_of_memory_kills() {
  std::ifstream file("/proc/vmstat");
  std::string name;
  uint64_t value;
  while (file >> name >> value) {
    if (name == "oom_kill") return value;
  }
  return 0;
}

void Job::read_signals() {
  signalfd_siginfo info;
  bool children = false;
  while (read(signals_, &info, sizeof info) == ssize_t(sizeof info)) {
    if (info.ssi_signo == SIGCHLD) {
      children = true;
    } else {
      on_signal(info);
    }
  }
  if (children) reap();
}

void Job::on_signal(const signalfd_siginfo& info) {
  const int number = static_cast<int>(info.ssi_signo);
  // A rank that shares our terminal and our group has had the terminal's signals already, and it
  // decides what they mean: Ctrl-C in a debugger ends nothing.
  const bool shared = !ranks_[0].own_group && info.ssi_code == SI_KERNEL;
  switch (number) {
    case SIGINT:
    case SIGTERM:
    case SIGHUP:
      if (shared && number != SIGHUP) return;
      if (number == interrupted_by_ && now_ms() - interrupted_at_ < echo_ms) return;
      if (interrupted_by_ != 0 || ending_) {
        if (!ending_) begin_ending(128 + number, "");
        pass_on_at_ = -1;
        kill_at_ = now_ms();
        return;
      }
      interrupted_by_ = number;
      if (number == SIGINT && sink_for(STDERR_FILENO).is_terminal()) {
        notice_at_ = now_ms() + notice_ms;
      }
      if (!tells_before(number)) signal_ranks(number);
      interrupted_at_ = now_ms();  // what came while many ranks were looked at is its echo, too
      return;
    case SIGTSTP:
      if (!shared) signal_ranks(SIGTSTP);
      return stop_with_ranks();
    case SIGWINCH:
      for (Rank& rank : ranks_) {
        if (rank.output.is_open()) copy_window_size(STDOUT_FILENO, rank.output.fd());
        if (rank.errors.is_open()) copy_window_size(STDERR_FILENO, rank.errors.fd());
      }
      return;
    default:
      if (!shared) signal_ranks(number);
  }
}

// Stops; whoever continues us continues the ranks too (SIGCONT is passed on like other signals).
void Job::stop_with_ranks() {
  output_->flush();
  if (errors_) errors_->flush();
  raise(SIGSTOP);
}

void Job::signal_ranks(int number, bool also_ended) {
  for (const Rank& rank : ranks_) {
    if (rank.pid <= 0 || !(rank.running || (also_ended && rank.own_group))) continue;
    kill(rank.own_group ? -rank.pid : rank.pid, number);
  }
}

void Job::reap() {
  int status;
  pid_t pid;
  while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
    for (int number = 0; number < size_; ++number) {
      Rank& rank = ranks_[size_t(number)];
      if (rank.pid != pid || !rank.running) continue;
      rank.running = false;
      on_end(number, status);
      break;
    }
  }
  if (running() != 0 || input_.active()) {
    const int reader = plan_.stdin_rank;
    if (reader >= 0 && !ranks_[size_t(reader)].running) input_.stop();
  }
}

void Job::on_end(int number, int status) {
  Rank& rank = ranks_[size_t(number)];
  read_pmi(number);  // its last words, such as the good-bye of MPI_Finalize
  if (rank.own_group && !ending_) Watchdog::release(watchdog_.pipe(), rank.pid);
  pmi_->ended(number);
  if (ending_) return;
  const Stage stage = pmi_->stage(number);
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    std::string what = "was killed by " + name_of_signal(signal);
    if (WCOREDUMP(status)) what += ", core dumped";
    const char* hint = hint_for_signal(signal);
    if (signal == SIGKILL && out_of_memory_kills() > out_of_memory_before_) {
      what += ", and the kernel has just killed for want of memory (see dmesg)";
      hint = hint_out_of_memory;
    }
    suspect({number, 128 + signal, true, what, hint});
  } else if (WEXITSTATUS(status) != 0) {
    const int code = WEXITSTATUS(status);
    if (stage == Stage::left) {
      // Its part of the communication is complete, and so the others may finish theirs.
      if (exit_code_ == 0) {
        exit_code_ = code;
        say(format("%s ended with code %d after MPI_Finalize", describe(number).c_str(), code));
      }
    } else {
      suspect({number, code, false,
               format("ended with code %d%s", code,
                      stage == Stage::inside ? " before MPI_Finalize" : ""),
               ""});
    }
  } else if (stage == Stage::inside) {
    suspect({number, 1, false, "ended without MPI_Finalize", hint_no_finalize});
  }
  check_waiting();
}

// Ranks that wait in a barrier for one that has ended would wait for ever.
void Job::check_waiting() {
  if (ending_ || running() == size_) return;
  const auto missing = pmi_->missing();
  if (!missing) return;
  const bool joined = pmi_->stage(*missing) != Stage::outside;
  suspect({*missing, 1, false,
           joined ? "has ended, while other ranks wait for it in MPI"
                  : "ended without MPI_Init, while other ranks wait for it there",
           joined ? hint_no_finalize : hint_no_init});
}

void Job::on_pmi_event(int number, const PmiEvent& event) {
  if (ending_) return;
  if (event.kind == PmiEvent::Kind::garbage) {
    suspect(
        {number, 1, false,
         "wrote to the descriptor that belongs to the launcher (PMI_FD): \"" + event.text + "\"",
         ""});
    return;
  }
  // A shell sees eight bits of a code, and a job that was aborted must never look well.
  const int code = event.code & 0xff;
  // Our library says so when it was not the program that called MPI_Abort.
  constexpr std::string_view own = "headway: ";
  const bool by_library = event.text.starts_with(own);
  std::string what = format(
      by_library ? "ended the job with code %d" : "called MPI_Abort with code %d", event.code);
  if (!event.text.empty()) what += ": " + event.text.substr(by_library ? own.size() : 0);
  suspect({number, code == 0 ? 1 : code, false, what, ""});
}

void Job::suspect(Failure failure) {
  if (ending_) return;
  // Deaths that follow a signal to all ranks are its effect.
  if (interrupted_by_ != 0) {
    const char* name = sigabbrev_np(interrupted_by_);
    return begin_ending(128 + interrupted_by_, format("ended by SIG%s", name ? name : "?"));
  }
  blame_.suspect(std::move(failure), now_ms(), [this] { return dying_ranks(); });
  decide();
}

// Without those that have left MPI, whose end concerns nobody.
std::vector<int> Job::dying_ranks() const {
  std::vector<int> dying;
  for (int number = 0; number < size_; ++number) {
    const Rank& rank = ranks_[size_t(number)];
    if (rank.running && pmi_->stage(number) != Stage::left && may_be_killed(rank.pid)) {
      dying.push_back(number);
    }
  }
  return dying;
}

void Job::decide() {
  decide_at_ = -1;
  if (!blame_.failure() || ending_) return;
  const auto is_dying = [this](int number) {
    const Rank& rank = ranks_[size_t(number)];
    return rank.running && may_be_killed(rank.pid);
  };
  if (blame_.is_final(now_ms(), is_dying, decide_at_)) end_for(*blame_.failure());
}

void Job::end_for(const Failure& failure) {
  begin_ending(failure.code, describe(failure.rank) + " " + failure.what +
                                 others_ended(failure.rank) +
                                 (*failure.hint ? std::string(".") + failure.hint : ""));
}

void Job::begin_ending(int code, const std::string& sentence) {
  if (ending_) return;
  ending_ = true;
  if (exit_code_ == 0) exit_code_ = code;
  if (!sentence.empty()) say(sentence);
  signal_ranks(SIGTERM);
  signal_ranks(SIGCONT);  // a stopped rank would not hear it
  kill_at_ = now_ms() + polite_ms;
}

void Job::end_by_timeout() {
  if (blame_.failure()) return end_for(*blame_.failure());  // what ends it is known
  std::string who;
  int shown = 0;
  for (int number = 0; number < size_; ++number) {
    if (!ranks_[size_t(number)].running) continue;
    if (++shown > 8) {
      who += ", ...";
      break;
    }
    who += (who.empty() ? "" : ", ") + std::to_string(number);
  }
  const std::string places = where();  // before they are asked to end
  begin_ending(exit_timeout,
               format("the time of %g s (%s) is over; still running: rank%s %s", *plan_.timeout_s,
                      plan_.timeout_by, running() == 1 ? "" : "s", who.c_str()));
  if (!places.empty()) say(places);
}

}  // namespace headway::launcher
