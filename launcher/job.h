// Job: starts the ranks, serves them while they run, and ends them together. One thread, one epoll
// loop. Owner: main. Invariants: the first failure decides the exit code and gets the one line,
// which waits for 2 s at most where another rank was dying already (blame.h); after it every rank
// is gone within a second; no rank's process outlives run().
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <signal.h>
#include <string>
#include <sys/signalfd.h>
#include <vector>

#include "binding.h"
#include "blame.h"
#include "causes.h"
#include "child.h"
#include "hang_watch.h"
#include "input.h"
#include "inquiries.h"
#include "output.h"
#include "plan.h"
#include "pmi_server.h"
#include "poller.h"
#include "watchdog.h"

namespace headway::launcher {

class Job {
 public:
  // `paths` has the program of each section.
  Job(const Plan& plan, std::vector<std::string> paths, Binding binding);
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  // Runs to the end and returns mpiexec's exit code.
  int run();

 private:
  struct Rank {
    pid_t pid = -1;  // -1: never started
    size_t section = 0;
    bool running = false;
    bool own_group = true;
    int pmi = -1;
    std::string unsent;  // answers that did not fit into the socket
    Stream output;
    Stream errors;
  };

  // job_start.cc
  bool prepare_signals();
  bool prepare_descriptors();
  bool prepare_sinks();
  bool start_ranks();
  bool start_rank(int rank, const std::vector<std::string>& environment,
                  const std::vector<std::string>& arguments);
  bool open_channels(Rank& rank, int number, ChildRecipe& recipe);
  std::string file_for(int rank, int fd) const;
  Sink* sink_of(int rank, int fd);
  bool open_stream(int rank, int fd, int& theirs);
  int input_for(int rank);
  bool passes_through() const;
  std::string expand(const std::string& pattern, int rank) const;
  std::string tag_of(int rank, const Sink& sink, bool to_file) const;

  // job.cc: the loop
  void loop();
  void dispatch(const Ready& ready);
  void read_stream(int rank, Source source);
  void read_pmi(int rank);
  void send_pmi(int rank, std::string_view text);
  void watch_sinks();
  void watch_input();
  void pause_streams(Sink& sink, bool pause);
  void check_lost_output(Sink& sink);
  bool finished();
  bool has_spawned() const;
  int timeout() const;
  void on_time();
  void close_streams();

  // job_look.cc: where the ranks stand when the job is ended from outside
  std::vector<Seen> look(bool with_comms) const;
  std::string where() const;
  bool tells_before(int signal);
  void pass_interrupt_on();

  // job_end.cc: deaths, signals
  void read_signals();
  void on_signal(const signalfd_siginfo& info);
  void reap();
  void on_end(int rank, int status);
  void on_pmi_event(int rank, const PmiEvent& event);
  void check_waiting();
  void suspect(Failure failure);
  void decide();
  void end_for(const Failure& failure);
  std::vector<int> dying_ranks() const;
  void begin_ending(int code, const std::string& sentence);
  void end_by_timeout();
  void stop_with_ranks();
  void signal_ranks(int number, bool also_ended = false);
  int running() const;
  static uint64_t out_of_memory_kills();
  std::string describe(int rank) const;
  std::string others_ended(int rank) const;

  Sink& sink_for(int fd) { return fd == 1 || !errors_ ? *output_ : *errors_; }
  int64_t now_ms() const;
  static void speak(void* self, std::string_view line);

  const Plan& plan_;
  const std::vector<std::string> paths_;
  const Binding binding_;
  const int size_;
  OriginalState original_;
  Watchdog watchdog_;
  Poller poller_;
  int signals_ = -1;
  std::vector<Rank> ranks_;
  std::unique_ptr<PmiServer> pmi_;
  std::unique_ptr<Sink> output_;
  std::unique_ptr<Sink> errors_;  // null where stdout and stderr are the same place
  std::map<std::string, std::unique_ptr<Sink>> files_;  // of ranks; several may share one
  bool output_watched_ = false, errors_watched_ = false;
  bool output_paused_ = false, errors_paused_ = false;
  Input input_;
  bool terminal_watched_ = false, pipe_watched_ = false;

  Blame blame_;
  bool ending_ = false;
  bool killed_ = false;
  int exit_code_ = 0;
  int interrupted_by_ = 0;
  bool output_lost_ = false;
  uint64_t out_of_memory_before_ = 0;
  // Times in ms of the monotonic clock, -1 for never.
  int64_t decide_at_ = -1;
  int64_t kill_at_ = -1;
  int64_t give_up_at_ = -1;
  int64_t timeout_at_ = -1;
  int64_t drain_until_ = -1;
  int64_t notice_at_ = -1;
  int64_t look_at_ = -1;     // a first look at the ranks, some time before the time limit
  int64_t pass_on_at_ = -1;  // an interrupt that waits for the second look
  int64_t interrupted_at_ = -1;
  int more_looks_ = 0;  // that may follow before the interrupt is passed on
  // The first look: the second one shows who has moved since.
  std::vector<Seen> seen_;
  int64_t seen_at_ = -1;
  HangWatch hang_watch_;
  Inquiries inquiries_;
};

}  // namespace headway::launcher
