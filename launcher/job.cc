// Job, second part: the loop that serves the ranks.
#include "job.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "channel.h"
#include "say.h"

namespace headway::launcher {
namespace {

// How long output may still come from what ranks have left behind when they are gone.
constexpr int64_t drain_ms = 1000;
constexpr int64_t drain_after_failure_ms = 200;
// Between the first look at the ranks and the time limit.
constexpr int64_t look_before_ms = 500;

}  // namespace

Job::Job(const Plan& plan, std::vector<std::string> paths, Binding binding)
    : plan_(plan),
      paths_(std::move(paths)),
      binding_(std::move(binding)),
      size_(plan.ranks()),
      ranks_(static_cast<size_t>(size_)) {
  watchdog_.start();
}

Job::~Job() { route_sentences(nullptr, nullptr); }

int64_t Job::now_ms() const {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<int64_t>(now.tv_sec) * 1000 + now.tv_nsec / 1'000'000;
}

// A sentence of ours, in its place among the lines of stderr.
void Job::speak(void* self, std::string_view line) {
  Job& job = *static_cast<Job*>(self);
  job.sink_for(STDERR_FILENO).write(line, self);
}

int Job::run() {
  if (!prepare_descriptors() || !prepare_sinks() || !prepare_signals()) return 1;
  route_sentences(speak, this);
  out_of_memory_before_ = out_of_memory_kills();
  if (plan_.timeout_s) {
    const auto limit_ms = static_cast<int64_t>(*plan_.timeout_s * 1000);
    timeout_at_ = now_ms() + limit_ms;
    look_at_ = timeout_at_ - std::min(look_before_ms, limit_ms / 2);
  }
  if (!start_ranks()) begin_ending(exit_code_, "");
  if (plan_.library == Library::ours) {
    hang_watch_.begin(now_ms());
    inquiries_.begin();
    if (inquiries_.fd() >= 0) poller_.add(inquiries_.fd(), EPOLLIN, Source::inquiry);
  }
  loop();
  close_streams();
  watchdog_.dismiss();
  if (exit_code_ == 0 && blame_.failure()) exit_code_ = blame_.failure()->code;
  if (exit_code_ == 0 && interrupted_by_ != 0) exit_code_ = 128 + interrupted_by_;
  if (exit_code_ == 0 && output_lost_) exit_code_ = 1;
  return exit_code_;
}

void Job::loop() {
  Ready ready[64];
  while (!finished()) {
    watch_sinks();
    watch_input();
    const int count = poller_.wait(ready, timeout());
    // Deaths first: a peer that noticed the death must not be taken for the first to fail.
    for (int i = 0; i < count; ++i) {
      if (ready[i].source == Source::signals) read_signals();
    }
    for (int i = 0; i < count; ++i) {
      if (ready[i].source != Source::signals) dispatch(ready[i]);
    }
    on_time();
  }
}

void Job::dispatch(const Ready& ready) {
  switch (ready.source) {
    case Source::signals: break;
    case Source::output:
    case Source::errors: read_stream(ready.rank, ready.source); break;
    case Source::pmi:
      read_pmi(ready.rank);
      check_waiting();
      break;
    case Source::terminal:
      input_.read_terminal(ranks_[size_t(plan_.stdin_rank)].pid, now_ms());
      break;
    case Source::input_pipe:
      // A pipe without a reader reports an error, and writing finds that out.
      if (input_.wants_pipe()) {
        input_.write_pipe();
      } else {
        input_.stop();
      }
      break;
    case Source::our_output:
      output_->flush();
      if (errors_) errors_->flush();
      break;
    case Source::inquiry:
      inquiries_.answer([this] {
        return hang_watch_.as_json(now_ms(), [this](bool with_comms) { return look(with_comms); });
      });
      break;
  }
}

void Job::read_stream(int number, Source source) {
  Rank& rank = ranks_[size_t(number)];
  Stream& stream = source == Source::output ? rank.output : rank.errors;
  if (!stream.is_open()) return;
  if (stream.read_some(now_ms()) == Stream::State::ended) {
    poller_.remove(stream.fd());
    stream.finish();
  }
  if (stream.sink()) check_lost_output(*stream.sink());
}

void Job::check_lost_output(Sink& sink) {
  if (sink.reader_gone() && !ending_ && (&sink == output_.get() || &sink == errors_.get())) {
    begin_ending(128 + SIGPIPE, "");  // as any program whose reader has left
  }
  if (sink.error() == 0) return;
  const bool first = !output_lost_;
  output_lost_ = true;
  if (first && &sink != &sink_for(STDERR_FILENO)) {
    const bool full = sink.error() == ENOSPC || sink.error() == EDQUOT;
    say(format("cannot write %s: %s; output is being lost, the job goes on%s", sink.name().c_str(),
               strerror(sink.error()),
               full ? ". Likely remedy: make room there, or choose another folder with --output-dir"
                    : ""));
  }
}

void Job::read_pmi(int number) {
  Rank& rank = ranks_[size_t(number)];
  while (rank.pmi >= 0) {
    char buffer[4096];
    const ssize_t got = read(rank.pmi, buffer, sizeof buffer);
    if (got > 0) {
      const auto event = pmi_->receive(number, {buffer, static_cast<size_t>(got)});
      if (event) on_pmi_event(number, *event);
      continue;
    }
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) break;
    poller_.remove(rank.pmi);
    close(rank.pmi);
    rank.pmi = -1;
  }
  if (rank.pmi >= 0 && !rank.unsent.empty()) send_pmi(number, "");
}

void Job::send_pmi(int number, std::string_view text) {
  Rank& rank = ranks_[size_t(number)];
  if (rank.pmi < 0) return;
  const bool waited = !rank.unsent.empty();
  rank.unsent += text;
  while (!rank.unsent.empty()) {
    const ssize_t sent = send(rank.pmi, rank.unsent.data(), rank.unsent.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      rank.unsent.erase(0, static_cast<size_t>(sent));
    } else if (sent < 0 && errno == EINTR) {
      continue;
    } else if (sent < 0 && errno == EAGAIN) {
      break;
    } else {
      rank.unsent.clear();  // it is gone; its death is told by its process
    }
  }
  if (waited != !rank.unsent.empty()) {
    const uint32_t events = rank.unsent.empty() ? EPOLLIN : EPOLLIN | EPOLLOUT;
    poller_.add(rank.pmi, events, Source::pmi, number);
  }
}

void Job::watch_sinks() {
  const auto watch = [this](Sink* sink, bool& watched, bool& paused) {
    if (!sink) return;
    if (sink->pending() != watched) {
      watched = sink->pending();
      if (watched) {
        poller_.add(sink->fd(), EPOLLOUT, Source::our_output);
      } else {
        poller_.remove(sink->fd());
      }
    }
    if (sink->full() != paused) {
      paused = sink->full();
      pause_streams(*sink, paused);
    }
    check_lost_output(*sink);
  };
  watch(output_.get(), output_watched_, output_paused_);
  watch(errors_.get(), errors_watched_, errors_paused_);
}

void Job::pause_streams(Sink& sink, bool pause) {
  for (int number = 0; number < size_; ++number) {
    Rank& rank = ranks_[size_t(number)];
    for (const Source source : {Source::output, Source::errors}) {
      Stream& stream = source == Source::output ? rank.output : rank.errors;
      if (!stream.is_open() || stream.sink() != &sink) continue;
      if (pause) {
        poller_.remove(stream.fd());
      } else {
        poller_.add(stream.fd(), EPOLLIN, source, number);
      }
    }
  }
}

void Job::watch_input() {
  const bool terminal = input_.wants_terminal(now_ms());
  if (terminal != terminal_watched_) {
    terminal_watched_ = terminal;
    if (terminal) {
      poller_.add(STDIN_FILENO, EPOLLIN, Source::terminal);
    } else {
      poller_.remove(STDIN_FILENO);
    }
  }
  const bool pipe = input_.wants_pipe();
  if (pipe == pipe_watched_) return;
  pipe_watched_ = pipe;
  if (pipe) {
    poller_.add(input_.pipe(), EPOLLOUT, Source::input_pipe);
  } else if (input_.active()) {
    poller_.remove(input_.pipe());
  }
}

// A rank that has spawned (MPI_Comm_spawn) has started a mpiexec for that, which is a child of ours
// once the rank has ended.
bool Job::has_spawned() const {
  struct stat own, other;
  if (stat("/proc/self/exe", &own) != 0) return false;
  std::ifstream children(format("/proc/self/task/%d/children", getpid()));
  for (pid_t pid = 0; children >> pid;) {
    const bool ours = stat(format("/proc/%d/exe", pid).c_str(), &other) == 0 &&
                      own.st_dev == other.st_dev && own.st_ino == other.st_ino;
    const bool is_rank = std::any_of(ranks_.begin(), ranks_.end(),
                                     [pid](const Rank& rank) { return rank.pid == pid; });
    std::string name;  // our watchdog has the same file, and a name of its own
    std::getline(std::ifstream(format("/proc/%d/comm", pid)), name);
    if (ours && !is_rank && name == "mpiexec") return true;
  }
  return false;
}

bool Job::finished() {
  if (running() != 0) return give_up_at_ >= 0 && now_ms() >= give_up_at_;
  // The jobs that were spawned end before this one, or with it.
  if (!ending_ && !blame_.failure() && has_spawned()) {
    if (interrupted_by_ == 0) return false;
    signal_ranks(SIGKILL, true);
  }
  decide();
  if (ending_ && !killed_) {
    killed_ = true;
    signal_ranks(SIGKILL, true);  // what the ranks had started goes with them
  }
  bool open = false;
  for (const Rank& rank : ranks_) open |= rank.output.is_open() || rank.errors.is_open();
  if (open) {
    if (drain_until_ < 0) {
      drain_until_ = now_ms() + (ending_ ? drain_after_failure_ms : drain_ms);
    }
    const bool stuck = output_->pending() || (errors_ && errors_->pending());
    if (now_ms() < drain_until_ || (stuck && interrupted_by_ == 0)) return false;
    close_streams();
  }
  if (interrupted_by_ != 0 || output_->reader_gone()) return true;
  return !output_->pending() && !(errors_ && errors_->pending());
}

int Job::timeout() const {
  int64_t next = -1;
  const auto consider = [&next](int64_t time) {
    if (time >= 0 && (next < 0 || time < next)) next = time;
  };
  for (const int64_t time :
       {decide_at_, kill_at_, give_up_at_, drain_until_, notice_at_, pass_on_at_}) {
    consider(time);
  }
  if (!ending_) {
    consider(timeout_at_);
    consider(look_at_);
    consider(hang_watch_.due_at());
  }
  if (output_->is_terminal() || (errors_ && errors_->is_terminal())) {
    for (const Rank& rank : ranks_) {
      consider(rank.output.prompt_due());
      consider(rank.errors.prompt_due());
    }
  }
  // Whether the terminal is ours changes without notice.
  if (input_.active() && !terminal_watched_) {
    consider(input_.look_again_at() > now_ms() ? input_.look_again_at() : now_ms() + 300);
  }
  if (next < 0) return -1;
  return static_cast<int>(std::clamp<int64_t>(next - now_ms(), 0, 60'000));
}

void Job::on_time() {
  const int64_t now = now_ms();
  const auto due = [now](int64_t& time) {
    if (time < 0 || now < time) return false;
    time = -1;
    return true;
  };
  if (due(decide_at_)) decide();
  if (!ending_ && due(look_at_)) {
    seen_ = look(false);
    seen_at_ = now;
  }
  if (!ending_ && hang_watch_.due_at() >= 0 && now >= hang_watch_.due_at()) {
    const auto seen = [this](bool with_comms) { return look(with_comms); };
    if (const std::string text = hang_watch_.look(now, seen); !text.empty()) say(text);
  }
  if (!ending_ && due(timeout_at_)) end_by_timeout();
  if (due(pass_on_at_)) pass_interrupt_on();
  if (due(notice_at_) && running() != 0) {
    say("waiting for the ranks to end; a second Ctrl-C kills them");
  }
  if (due(kill_at_)) {
    killed_ = true;
    signal_ranks(SIGKILL, true);
    give_up_at_ = now + 5000;
  }
  for (Rank& rank : ranks_) {
    rank.output.show_prompt(now);
    rank.errors.show_prompt(now);
  }
}

void Job::close_streams() {
  for (Rank& rank : ranks_) {
    for (Stream* stream : {&rank.output, &rank.errors}) {
      if (!stream->is_open()) continue;
      poller_.remove(stream->fd());
      stream->finish();
      check_lost_output(*stream->sink());
    }
  }
  for (const auto& [path, file] : files_) {
    if (file->error() == 0) continue;
    say(format("%s is not complete: %llu bytes could not be written (%s)", path.c_str(),
               static_cast<unsigned long long>(file->lost_bytes()), strerror(file->error())));
  }
  files_.clear();
}

}  // namespace headway::launcher
