// Handoff: who owns the engine. A rank inside MPI owns it and polls; a rank that leaves with work
// pending arms the doorbell, and the message thread sleeps until somebody rings or a socket is
// readable. Thread: any application thread, and the message thread. Owner: the engine.
// Invariants: one owner at a time (the lock); `armed` is only set by the owner, after which it
// looks once more; the message thread allocates nothing and runs no user code.
// Races: whoever rings writes its data, then fences, then reads `armed`; who arms writes `armed`,
// then fences, then looks at the data. One of the two sees the other.
#pragma once
#include <atomic>
#include <cstdint>
#include <pthread.h>

#include "base/check.h"
#include "base/counter.h"
#include "base/doorbell.h"
#include "base/events.h"
#include "base/list.h"
#include "base/outcome.h"
#include "base/selector.h"
#include "progress/engine_lock.h"
#include "progress/patrol.h"
#include "progress/patrol_timer.h"
#include "progress/shield.h"
#include "progress/user_calls.h"

namespace headway::progress {

// Who drives the engine at this moment; rendezvous chooses by it which side copies.
enum class Driver : uint8_t {
  nobody,
  passing,  // an application thread in a call that does not wait
  waiting,  // an application thread that waits
  thread    // the message thread
};

// What is moved. The engine implements it; all calls come with the engine owned.
class Work {
 public:
  // One round over everything that can move. True if something did.
  virtual bool advance() = 0;
  // A rank leaves MPI: the message thread is reminded of copies that lie begun. True: there are
  // any.
  virtual bool hand_on() = 0;
  // Events that a sleeper has to wake for (a mask that peers compare with what they publish).
  virtual uint32_t wanted() = 0;
  // The sleeper is up: from now on advance() looks also at what wanted() let the kernel hold back.
  virtual void awake() = 0;
  // The descriptor of watch_hosts() is readable: called without the engine, by the message thread.
  virtual void hosts() {}
  // The message thread begins.
  virtual void thread_begins() = 0;
  // Somebody touched a closed page, or its address space moves: called without the engine, by the
  // message thread, when the descriptor of watch_faults() is readable.
  virtual void faults() = 0;
  // A thread waits for a closed page.
  virtual bool is_awaited() = 0;

 protected:
  ~Work() = default;
};

struct Counters {
  base::Counter thread_wakes;
  base::Counter thread_useful;  // wakes that moved something
  base::Counter thread_busy;    // found the engine taken
  base::Counter arms;
  base::Counter patrols;
  base::Counter patrol_looks;  // by the message thread, without the engine
  base::Counter self_rings;
  base::Counter sleeps;
  // Dozes that their safety net ended although what they wait for had come: must stay 0.
  base::Counter late_wakes;
};

// What a thread that parks waits for, for whoever completes a request: whether its wait may be over
// by that. Asked with the engine owned, by any thread.
struct Awaited {
  bool (*is_there)(void* what) = nullptr;  // null: only the thread itself can tell
  void* what = nullptr;
};

class Handoff {
 public:
  // `armed`: the word that peers look at. `sockets`: an epoll to sleep on beside the bell, or -1.
  // `patrol_after`: so many short absences in a row, and the thread goes on patrol; 0: never.
  Outcome start(Work* work, std::atomic<uint32_t>* armed, int sockets, bool with_thread,
                uint32_t patrol_after = 0);
  void stop();
  // Sockets that came later than start(); and once more, beside those. Engine held, if there are
  // threads already.
  Outcome watch(int sockets);
  // The message thread looks at this one always, also while the engine is taken.
  Outcome watch_faults(int fd);
  // And at this one, which is about hosts that vanish.
  Outcome watch_hosts(int fd);
  // `notice` is called when this one is readable: by the message thread, without the engine, also
  // while it is taken; where there is none, by a thread that sleeps, with it.
  Outcome watch_deaths(int fd, void (*notice)());
  // Others may call this name where they cannot open the bell; before threads of the program come.
  // False: that way is not to be had.
  bool listen(const char* name);
  // From now on the program's system calls may be trapped, but never inside MPI. Before threads
  // come.
  void expect_traps() { traps_ = true; }
  // What tells that pages of the program are closed, and that it has signal handlers. Before
  // threads come.
  void watch_closed(const std::atomic<uint32_t>* closed, const std::atomic<uint64_t>* handlers) {
    shield_.watch(closed, handlers);
  }
  // Pages are about to be closed, with the engine owned: from here on no handler of the program
  // interrupts who owns it.
  void closes();
  // The armed word moves when the shared segment is mapped; from then on `waiting` tells peers
  // whether a thread of ours polls.
  void publish(std::atomic<uint32_t>* armed, std::atomic<uint32_t>* waiting) {
    armed_ = armed;
    waiting_ = waiting;
  }
  // In a forked child: the thread does not exist there.
  void abandon();

  void enter() {
    if (traps_) [[unlikely]]
      base::pass_calls();
    if (!take_free()) [[unlikely]]
      enter_contended();
    driver = Driver::passing;
    if (is_armed_) [[unlikely]]
      come_back();
  }
  // For a call that is over at once as a rule: peers go on ringing for what is pending, so that the
  // word they look at is not written twice a call. Whoever then stays, and moves anything but one
  // message that nothing pending has to do with, calls stay() first.
  void enter_briefly() {
    if (traps_) [[unlikely]]
      base::pass_calls();
    if (!take_free()) [[unlikely]]
      enter_contended();
    driver = Driver::passing;
  }
  // A wait that has not found at once what it waits for stays, too.
  void stay() {
    if (is_armed_ | patrol_.is_away()) [[unlikely]]
      come_back();
  }
  void leave() {
    HEADWAY_CHECK(is_mine() && passive >= 0 && pending >= passive);
    driver = Driver::nobody;
    if ((pending == passive || !with_thread_) && quiet_) [[likely]] {
      HEADWAY_CHECK(!shield_.any_closed() && !shield_.held.up);
      patrol_.rests();
      lock_.unlock();
    } else {
      leave_pending();
    }
    if (traps_) [[unlikely]]
      base::resume_calls();
  }

  // Another thread of the program is at the door: whoever looks at one thing for long breaks off.
  bool is_wanted() const { return contenders_.load(std::memory_order_relaxed) != 0; }
  // In a wait loop. Gives the engine to other threads that want it, and lets in handlers that were
  // kept out. Call often.
  void breathe() {
    if (is_wanted()) [[unlikely]]
      give_way();
    admit_handlers();
  }
  // The same for handlers alone, where something moves in each round.
  void admit_handlers() {
    if (shield_.closes) [[unlikely]]
      admit_handlers_slowly();
  }
  // Gives the core away for a moment, and the engine to whoever wants it meanwhile. Nobody is told
  // to ring: this thread is back soon.
  void yield();
  // True if another application thread already polls: the caller should park(), or where threads
  // have to share cores, poll in turns with it.
  bool is_polled() const { return poller_ != 0; }
  bool is_polled_in_turns() const { return poller_ > 1; }
  // Threads that wait, however they do.
  int waits() const { return poller_ + int(parked_.size()); }
  void set_poller(bool here) {
    poller_ += here ? 1 : -1;
    show_waiting(poller_ != 0);
    refresh_quiet();
  }
  // A thread that waits has looked in vain a few times: packets need not wake the message thread,
  // nor walk through the epolls on their way, while this one reads the sockets itself.
  void attend() {
    if (sockets_ >= 0) attend_slowly();
  }
  // A thread dozes while it parks or sleeps: it sees nothing by itself. Whoever does what one may
  // wait for tells it: completed(), came(), came_far(). A doze of long_sleep_ms or more is to be
  // ended by that: its time-out is a safety net. Shorter ones are waits for the clock.
  static constexpr int long_sleep_ms = 100;
  bool has_dozers() const { return !quiet_ && (!parked_.empty() || sleepers_ != 0); }
  // Waits (engine not owned meanwhile) until it is told, or is to poll. False: its safety net ended
  // it, so what it waits for must not be there.
  bool park(int timeout_ms, const Awaited& awaited = {});
  // A request is over: told to who sleeps, and to those who park and whose wait it may end.
  void completed() {
    if (!quiet_) [[unlikely]]
      tell_dozers(News::completion);
  }
  // A message has come that no receive waits for: told to those who wait for no request.
  void came() {
    if (!quiet_) [[unlikely]]
      tell_dozers(News::message);
  }
  // Something came so far that any wait may end: told to all.
  void came_far() {
    if (!quiet_) [[unlikely]]
      tell_dozers(News::other);
  }
  // Sleeps (engine not owned meanwhile) until rung, a socket is readable, or the time is up. False:
  // as park().
  bool sleep(int timeout_ms);

  // Runs what waits in user_calls, one after the other, without the engine. True if any ran. Who
  // runs them must not be the one who polls: they may take long, or wait for another thread.
  bool run_user_calls() { return user_calls.empty() ? false : run_user_calls_slowly(); }

  enum class While : uint8_t { away, always };  // `away`: if no thread of the program comes back
  // Wakes the message thread after `us` microseconds (less than a second), or sooner if it was told
  // so before.
  void remind(uint32_t us, While on = While::always);
  // Wakes the message thread, or who sleeps, as soon as the engine is free.
  void call_thread();

  const base::Doorbell& bell() const { return bell_; }
  // For the launcher: not 0 while whatever comes rings; and the message thread's id, 0: it has not
  // begun.
  const std::atomic<uint32_t>& armed() const { return *armed_; }
  const std::atomic<int>& thread_id() const { return thread_id_; }
  bool has_thread() const { return with_thread_; }
  // Processor time that the message thread has taken; 0 without one.
  uint64_t thread_ns() const;
  // The calling one is it. `driver` is nobody in its last look, as in that of a leaving thread.
  bool is_message_thread() const {
    return message_thread_.load(std::memory_order_relaxed) == __builtin_thread_pointer();
  }
  bool is_held() const { return lock_.is_held(); }
  // By this thread; for checks only.
#if defined(HEADWAY_DEBUG)
  bool is_mine() const { return lock_.is_mine(); }
#else
  bool is_mine() const;
#endif

  Driver driver = Driver::nobody;
  // Operations that go on without their user; maintained by the engine.
  int64_t pending = 0;
  // Those of them for which the message thread can do nothing: they wait for an acknowledgement
  // that only their user asks for.
  int64_t passive = 0;
  UserCalls user_calls;
  Counters counters;

 private:
  // A thread that parks, on its stack.
  struct Parked {
    Parked* list_next = nullptr;
    Parked* list_prev = nullptr;
    Awaited awaited;
    std::atomic<uint32_t> told{0};  // its futex
  };
  enum class News : uint8_t { completion, message, other };
  // Whose descriptor is readable.
  enum Source : uint64_t {
    source_bell = 1,
    source_sockets = 2,
    source_timer = 3,
    source_faults = 4,
    source_deaths = 5,
    source_hosts = 6,
    source_patrol = 7
  };

  bool run_user_calls_slowly();
  // The engine, if it is free and nothing is closed.
  bool take_free() {
    if (!lock_.try_lock()) return false;
    HEADWAY_CHECK(!shield_.any_closed() && !shield_.closes && !shield_.held.up);
    return true;
  }
  void enter_contended();
  Shield::Held unlock();
  void enter_again(Driver as);
  void admit_handlers_slowly();
  void give_way();
  void come_back();
  void disarm();
  void drain();
  void let_go();
  void take_reminder();
  void forget_reminder();
  [[gnu::noinline]] void leave_pending();
  void leave_slowly();
  bool leave_to_patrol();
  void rest();
  void look_after();
  bool serve_watched(uint64_t source);
  bool glance_at_watched();
  bool arm_and_unlock();
  void leave_to_thread();
  bool unlock_armed();
  bool join_sockets(int more);
  void attend_slowly();
  void arm_outer(bool armed) const;
  void set_sockets_armed(bool armed);
  void set_sockets_watched(bool watched);
  void watch_sockets();
  void tell_dozers(News news);
  static void tell(Parked& one);
  // Before the engine is given away. Where nobody polls, one of those who park has to: it polls, or
  // it has what it waited for, and the next one is told when it leaves.
  void let_poll() {
    if (!parked_.empty() && poller_ == 0 && !successor_) [[unlikely]]
      call_successor();
  }
  void call_successor();
  // Somebody else polls, and is awake.
  bool is_worked_for() const { return poller_ != 0 && !sleepers_ && !shield_.closes; }
  void show_waiting(bool waits) {
    if (waiting_) waiting_->store(waits, std::memory_order_relaxed);
  }
  // The message thread is on patrol, and this one leaves it nothing but what is pending.
  bool is_on_patrol() const {
    return patrol_.is_on() && quiet_ && !is_armed_ && !called_ && poller_ == 0 &&
           !patrol_timer_.is_slow();
  }
  void refresh_quiet() { quiet_ = parked_.empty() && sleepers_ == 0 && !shield_.closes; }
  void run_thread();
  bool take_as_thread();
  bool sleeper_may_be_held_up();
  void work_as_thread();
  void work_as_owner();
  void note_help(const base::EventBegin& began, uint64_t began_ns);
  void tell_help();
  static void* thread_main(void* self);

  EngineLock lock_;
  bool is_armed_ = false;         // our armed word may be set
  bool sockets_armed_ = false;    // the outer epoll will fire once
  bool sockets_watched_ = false;  // stand in the inner epoll
  uint32_t attended_ = 0;         // waits since the sockets were last armed or slept on
  bool rung_ = false;             // somebody rang, or is about to
  bool called_ = false;           // call_thread() until the engine is free
  bool with_thread_ = false;
  bool traps_ = false;
  bool quiet_ = true;  // nobody parks or sleeps, and no page is closed
  Patrol patrol_;
  int poller_ = 0;
  base::List<Parked> parked_;
  const Parked* successor_ = nullptr;  // is on its way to poll
  int sleepers_ = 0;
  std::atomic<uint32_t>* armed_ = nullptr;
  std::atomic<uint32_t>* waiting_ = nullptr;
  Work* work_ = nullptr;
  void (*notice_death_)() = nullptr;
  alignas(64) std::atomic<uint32_t> contenders_{0};
  std::atomic<uint32_t> kick_{0};
  std::atomic<bool> stop_{false};
  base::Doorbell bell_;
  int timer_ = -1;
  bool reminding_ = false;
  While reminds_while_ = While::always;
  uint64_t remind_at_ = 0;    // ns
  PatrolTimer patrol_timer_;  // in the outer epoll: runs while the thread is on patrol
  int sockets_ = -1;          // the transport's epoll, or joint_
  int joint_ = -1;            // the epolls of two transports
  int inner_ = -1;  // bell and sockets, level-triggered: an application thread sleeps on it
  int outer_ = -1;  // inner_, one shot: the message thread sleeps on it
  pthread_t thread_{};
  std::atomic<const void*> message_thread_{nullptr};  // its control block
  std::atomic<int> thread_id_{0};
  // For a recorder, the message thread's own: the last stretch in which it moved data, which goes
  // on if the next one follows at once.
  struct Help {
    base::EventBegin began, ended;
    uint64_t ended_ns = 0;
  } help_;
  Shield shield_;
};

}  // namespace headway::progress
