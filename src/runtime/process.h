// Process: this process as an MPI process: builds, lists and owns the rooms; init, finalize, fork,
// abort, state dump. No message logic. Thread: init and finalize under their lock, the rest any.
// Owner: itself (one static object without a constructor that runs). Invariant: the engine exists
// from the first MPI_Init or MPI_Session_init to the end of the process; the process rests whenever
// neither the world nor a session is open, and then may end in any way: launcher and peers know.
#pragma once
#include <atomic>
#include <cstdint>
#include <pthread.h>

#include "base/whereabouts.h"
#include "bootstrap/bootstrap.h"
#include "objects/registry.h"
#include "protocols/requests.h"
#include "runtime/deaths.h"
#include "settings/options.h"
#include "transports/tcp/tcp.h"

namespace headway::protocols {
class Engine;
}
namespace headway::spawn {
struct Row;
}
namespace headway::waiting {
class Waiter;
}

namespace headway::runtime {

class CardFile;
class Leftovers;

// Of the rooms, and of the world model (MPI_Init to MPI_Finalize), which sessions outlive. Resting:
// nobody uses MPI, but a session may come. After: of the rooms, the program is ending.
enum class State : uint8_t { before, running, resting, after };

class Process {
 public:
  // MPI_Init, MPI_Session_init: the first one joins the job and builds the rooms. On failure
  // `story` is one sentence for the user, and there is no second try.
  Outcome open_world(int level);
  Outcome open_session(int level);
  // Several threads of the program may call at once.
  void expect_threads();
  // MPI_Finalize: waits for the other ranks. Whoever closes last, the world or a session, finishes
  // what is pending and says good-bye; a session may still come back.
  void close_world();
  void close_session();
  // Ends the whole job. Does not return. `story`: a sentence on stderr, or null; `reason`: a few
  // words for the launcher's own sentence.
  [[noreturn]] void abort(int code, const char* story, const char* reason = "");

  bool is_running() const { return state.load(std::memory_order_acquire) == State::running; }
  protocols::Engine& engine() { return *engine_; }
  waiting::Waiter& waiter() { return *waiter_; }
  // What nearly every call asks the engine, for callers that need not see all of it.
  protocols::Request* find_request(uint32_t index, uint32_t generation) const {
    return requests_->find(index, generation);
  }
  bool any_closed() const { return closed_->load(std::memory_order_relaxed) != 0; }
  // Ranks of world that share this node's memory, in order; own place among them.
  const base::Vec<uint32_t>& node_ranks() const { return *node_ranks_; }
  // A context that no other communicator has or had.
  uint64_t new_context();
  const char* host() const { return host_; }
  const char* story() const { return story_; }
  int rank() const { return int(bootstrap.rank()); }
  // What leads to other hosts; null: nobody is there.
  const tcp::Tcp* network() const { return network_ ? &tcp_ : nullptr; }
  // Row `index` of settings::counter_table: 0 before the first start, the last value after the end.
  // On any thread.
  uint64_t counter(size_t index) const;
  // The options as they were taken at the start; before it, as they would be taken now. On any
  // thread.
  settings::Settings options() const;

  std::atomic<State> state{State::before};
  std::atomic<State> world{State::before};
  int thread_level = 0;
  pthread_t main_thread{};
  bool forked = false;
  settings::Settings settings;
  bootstrap::Bootstrap bootstrap;
  objects::Registry registry;
  base::Whereabouts whereabouts;
  base::Landmarks landmarks;

 private:
  Outcome open(int level);
  Outcome init();
  // process_end.cc
  bool is_last_session();
  void drain(Leftovers& leftovers);
  void rest();
  void wake();
  static void at_exit();
  void take_down();
  Outcome read_settings();
  void fit_valgrind();
  void tell_whereabouts();
  uint64_t yield_us(bool crowded) const;
  Outcome find_neighbours();
  Outcome publish(const bootstrap::Beside& beside, CardFile& cards);
  Outcome read_cards(const bootstrap::Beside& beside, CardFile& cards);
  Outcome reach_by_network(int peer, const char* network);
  void tell_that_closed();
  // process_node.cc
  Outcome share_memory();
  Outcome open_memory();
  Outcome agree_on_memory(Outcome opened);
  Outcome go_on_without(uint32_t local);
  void tell_missing(uint32_t missing, uint32_t first);
  // process_hosts.cc
  Outcome watch_hosts();
  void name_host(uint32_t rank, char* out, size_t room);
  static void on_silent_host(uint32_t peer, const char* story);
  // process_deaths.cc
  void watch_neighbours();
  void say_goodbye();
  void take_back_goodbye();
  static void notice_death();
  [[noreturn]] void end_after(uint32_t local);
  Outcome connect_network();
  Outcome make_world();
  void barrier(Leftovers& leftovers);
  Outcome fail(Outcome outcome, const char* sentence);
  static void on_fatal(Outcome why, uint32_t peer, const char* story);
  static void on_lost_abroad(Outcome why, const spawn::Row& who, const char* story);
  static void before_fork();
  static void after_fork_in_child();
  static void dump_state(int signal);
  void write_counters();

  pthread_mutex_t lifecycle_ = PTHREAD_MUTEX_INITIALIZER;  // held by open_x and close_x
  uint32_t sessions_ = 0;                                  // open ones
  bool had_sessions_ = false;
  // A peer; told when this rank comes back. Set by whoever notices, read under the lock.
  std::atomic<bool> lost_at_rest_{false};

  protocols::Engine* engine_ = nullptr;
  // The engine's.
  const protocols::Requests* requests_ = nullptr;
  const std::atomic<uint32_t>* closed_ = nullptr;  // regions of memory
  tcp::Tcp tcp_;
  waiting::Waiter* waiter_ = nullptr;
  base::Vec<uint32_t>* node_ranks_ = nullptr;  // a pointer: nothing here has a destructor
  uint32_t node_place_ = 0;
  uint32_t beside_ = 1;            // ranks of this node, whether or not they share memory
  bool some_node_shares_ = false;  // somewhere in the job; all ranks agree
  uint32_t machine_ranks_ = 1;     // ranks on this machine, all simulated hosts together
  uint32_t machine_cores_ = 1;
  Deaths deaths_;
  uint32_t next_host_ = 0;  // HostRing's
  uint32_t previous_host_ = 0;
  std::atomic<bool> watches_{false};  // an end without goodbye is a death
  bool network_ = false;              // the listener is up
  bool remote_peers_ = false;
  unsigned char secret_[16] = {};
  uint32_t job_ = 0;       // its number in contexts
  uint64_t contexts_ = 0;  // made here
  char host_[256] = {};
  char story_[512] = {};
};

// The one process object. Usable at any time; look at is_running() first.
Process& process();

}  // namespace headway::runtime
