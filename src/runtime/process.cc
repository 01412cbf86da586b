#include "runtime/process.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <sched.h>
#include <sys/stat.h>
#include <type_traits>
#include <unistd.h>

#include "base/call_site.h"
#include "base/clock.h"
#include "base/machine.h"
#include "base/signals.h"
#include "base/text.h"
#include "collectives/schedule.h"
#include "guard/versions.h"
#include "objects/context.h"
#include "rma/windows.h"
#include "runtime/card_file.h"
#include "runtime/counters.h"
#include "runtime/host_ring.h"
#include "runtime/landmarks.h"
#include "runtime/leftovers.h"
#include "runtime/locked.h"
#include "runtime/neighbours.h"
#include "spawn/junction.h"
#include "spawn/talk.h"
#include "waiting/waiter.h"

namespace headway::runtime {
namespace {

// Never torn down: other threads may still be inside when exit() runs.
constinit Process instance;
static_assert(std::is_trivially_destructible_v<Process>);
alignas(protocols::Engine) char engine_memory[sizeof(protocols::Engine)];
alignas(base::Vec<uint32_t>) char node_ranks_memory[sizeof(base::Vec<uint32_t>)];
alignas(waiting::Waiter) char waiter_memory[sizeof(waiting::Waiter)];

constexpr unsigned launcher_first_us = 300'000;
constexpr char cards_key[] = "headway-cards-";  // and the first rank of a machine
constexpr int least_for_cards = 8;  // ranks of a job: fewer ask sooner than a file is made

// What a rank has published: from the file of this machine's first rank, where it stands in the
// order in which it is asked for here, or from the launcher, and then into the file.
bool read_published(bootstrap::Bootstrap& launcher, CardFile& cards, const char* key, int owner,
                    char* text, size_t room) {
  if (cards.reads()) return cards.next(text, room);
  if (launcher.get(key, text, room, owner) != bootstrap::Outcome::ok) return false;
  cards.add(text);
  return true;
}

// Opens that file, if the launcher knows its place. Whatever is wrong with it: there is none.
void find_cards(bootstrap::Bootstrap& launcher, int first, CardFile& cards) {
  base::Text<bootstrap::key_max> key;
  key << cards_key << first;
  char place[bootstrap::value_max];
  if (launcher.get(key.c_str(), place, sizeof place, first) != bootstrap::Outcome::ok) return;
  (void)cards.open(place);
}

}  // namespace

Process& process() { return instance; }

Outcome Process::fail(Outcome outcome, const char* sentence) {
  base::Text<sizeof story_> text;
  text << sentence;
  memcpy(story_, text.c_str(), text.size() + 1);
  return outcome;
}

Outcome Process::read_settings() {
  settings::OptionError errors[4];
  const size_t refused = settings::parse_environment(settings, errors, 4);
  for (size_t i = 0; i < refused && i < 4 && rank() == 0; ++i) {  // all ranks were told the same
    const settings::OptionInfo& option = *errors[i].option;
    base::Text<512> line;
    line << "headway: HEADWAY_" << option.name << "=" << errors[i].value
         << " is not understood or out of range; using " << option.default_text
         << " (it means: " << option.help << ")\n";
    line.write_to(2);
  }
  if (base::under_valgrind()) fit_valgrind();
  return Outcome::ok;
}

// Closed pages and their versions take system calls that valgrind does not run. What another rank
// copies into our memory is unknown to memcheck, which would call it never written: so messages
// come through the segment. Others may still read ours.
void Process::fit_valgrind() {
  const bool asked = settings::given("EARLY_RELEASE") || settings::given("PREFETCH") ||
                     settings::given("GUARD") || settings::given("ONE_COPY");
  settings.early_release = settings.prefetch = settings.one_copy = 0;
  if (!asked && settings.verbose == 0) return;
  base::Text<200> line;
  line << "headway: rank " << rank()
       << " runs in valgrind: without early release, prefetching and copies between ranks\n";
  line.write_to(2);
}

Outcome Process::open(int level) {
  const State now = state.load(std::memory_order_acquire);
  if (now == State::running) return Outcome::ok;
  if (now == State::after) return fail(Outcome::no_resource, "the program is ending");
  if (now == State::resting) {
    wake();
  } else if (const Outcome outcome = init(); outcome != Outcome::ok) {
    state.store(State::after, std::memory_order_release);
    return outcome;
  }
  thread_level = level;
  main_thread = pthread_self();
  return Outcome::ok;
}

Outcome Process::open_world(int level) {
  const Locked locked(lifecycle_);
  if (const Outcome opened = open(level); opened != Outcome::ok) return opened;
  thread_level = level;
  main_thread = pthread_self();
  registry.world = registry.everyone;
  registry.self = registry.alone;
  world.store(State::running, std::memory_order_release);
  return Outcome::ok;
}

Outcome Process::open_session(int level) {
  const Locked locked(lifecycle_);
  if (const Outcome opened = open(level); opened != Outcome::ok) return opened;
  ++sessions_;
  __atomic_store_n(&had_sessions_, true, __ATOMIC_RELAXED);
  return Outcome::ok;
}

Outcome Process::init() {
  registry.prepare();
  base::find_wrappers();
  if (gethostname(host_, sizeof host_ - 1) != 0) host_[0] = '\0';
  if (bootstrap.open() != bootstrap::Outcome::ok) {
    return fail(Outcome::no_route, bootstrap.explanation());
  }
  if (const Outcome read = read_settings(); read != Outcome::ok) return read;
  if (!settings.progress) settings.send_ahead = 0;  // nobody would send what is left behind
  node_ranks_ = new (node_ranks_memory) base::Vec<uint32_t>;
  engine_ = new (engine_memory) protocols::Engine;
  requests_ = &engine_->requests();
  closed_ = &engine_->release().closed_regions();
  job_ = objects::job_number(bootstrap.job().job_id);
  const Outcome prepared = engine_->prepare(settings, uint32_t(bootstrap.rank()),
                                            uint32_t(bootstrap.size()), on_fatal, job_);
  if (prepared != Outcome::ok) {
    return fail(prepared,
                "the engine could not start: no memory, descriptors or threads left "
                "(see ulimit -n and ulimit -u)");
  }
  // A page whose writes are followed by signals refuses what another process writes.
  const bool by_signals =
      guard::Versions::Wish(settings.prefetch_writes) == guard::Versions::Wish::signal;
  rma::start(*engine_, settings.one_copy != 0 && !by_signals);
  spawn::junctions().prepare(*engine_, *engine_, tcp_config(settings, 0, 1), on_lost_abroad);
  tell_whereabouts();
  if (const Outcome found = find_neighbours(); found != Outcome::ok) return found;
  // A quota is that of this rank's own control group, and so of the ranks beside it in a container.
  const double quota = base::cpu_quota();
  const bool crowded = machine_ranks_ > machine_cores_ || double(beside_) > quota;
  engine_->set_crowded(crowded);
  engine_->reach().ask_schedules(collectives::Schedule::reach);
  waiter_ = new (waiter_memory) waiting::Waiter(*engine_,
                                                {.crowded = crowded,
                                                 .spin_ns = settings.spin_us * 1000,
                                                 .yield_ns = yield_us(crowded) * 1000},
                                                whereabouts);
  if (const Outcome made = make_world(); made != Outcome::ok) return made;
  if (atexit(at_exit) != 0) return fail(Outcome::no_memory, "no memory at the start");
  base::on_fork(before_fork, after_fork_in_child);
  base::on_dump_signal(dump_state);
  note_landmarks(landmarks, *engine_, network(), registry);
  whereabouts.landmarks.store(&landmarks, std::memory_order_release);  // the launcher reads them
  state.store(State::running, std::memory_order_release);
  if (settings.verbose >= 1) {
    base::Text<512> line;
    line << "headway: rank " << rank() << " of " << bootstrap.size() << " on " << host_ << ", "
         << node_ranks_->size() << " ranks share its memory, " << machine_ranks_
         << " ranks on this machine, " << machine_cores_ << " cores, ";
    if (quota < machine_cores_) {
      line << "time for " << uint64_t(quota) << "." << uint64_t(quota * 10) % 10 << " of them, ";
    }
    line << "waiting " << (crowded ? "yields at once" : "spins first") << "\n";
    line.write_to(2);
  }
  return Outcome::ok;
}

// Where ranks share cores and every message comes over TCP, the kernel wakes a sleeper as soon as
// a yield would have come back to it (bench/collective.c, 8 and 32 ranks on 2 cores: no difference
// in any call). Yields would take all cores: 32 waiting ranks 86 % of two, sleeping ones 14 %.
uint64_t Process::yield_us(bool crowded) const {
  const bool only_tcp = node_ranks_->size() == 1;
  return crowded && only_tcp && !settings::given("YIELD") ? 0 : settings.yield_us;
}

void Process::expect_threads() {
  const uint32_t share = machine_cores_ / machine_ranks_;
  // One thread's call may hide another's.
  whereabouts.many_threads.store(1, std::memory_order_relaxed);
  engine_->handoff().enter();
  waiter_->expect_threads(share > 0 ? share : 1);
  engine_->handoff().leave();
}

// A launcher that knows the key can say where each rank stood when it ends a job; to others it is
// one more text. Nothing depends on it.
void Process::tell_whereabouts() {
  if (bootstrap.job().launcher != bootstrap::Launcher::pmi1) return;
  base::Text<bootstrap::key_max> key;
  key << base::whereabouts_key << rank();
  base::Text<64> value;
  value << base::whereabouts_layout;
  value.hex(uint64_t(reinterpret_cast<uintptr_t>(&whereabouts)));
  (void)bootstrap.put(key.c_str(), value.c_str());
}

Outcome Process::find_neighbours() {
  if (bootstrap.size() == 1) {
    cpu_set_t cores;
    machine_cores_ =
        sched_getaffinity(0, sizeof cores, &cores) == 0 ? uint32_t(CPU_COUNT(&cores)) : 1;
    return node_ranks_->push(0) ? Outcome::ok : Outcome::no_memory;
  }
  bootstrap::Beside beside;
  if (bootstrap.size() >= least_for_cards) beside = bootstrap.beside();
  CardFile cards;
  if (const Outcome done = publish(beside, cards); done != Outcome::ok) return done;
  if (bootstrap.fence() != bootstrap::Outcome::ok) {
    return fail(Outcome::no_route, bootstrap.explanation());
  }
  if (const Outcome done = read_cards(beside, cards); done != Outcome::ok) return done;
  // Where memory is shared there is a fence behind which all have read the file.
  if (!some_node_shares_) cards.leave_open();
  if (const Outcome done = share_memory(); done != Outcome::ok) return done;
  return connect_network();
}

// Puts this rank's card: machine, node, cores, TCP addresses; rank 0 adds the job's secret, and the
// first rank of a machine where all cards will stand for the others there.
Outcome Process::publish(const bootstrap::Beside& beside, CardFile& cards) {
  if (bootstrap.rank() == 0) {
    char text[2 * sizeof secret_ + 1];
    if (!make_secret(secret_, text)) {
      return fail(Outcome::no_resource, "the system gives no random bytes for the job's secret");
    }
    if (bootstrap.put("headway-secret", text) != bootstrap::Outcome::ok) {
      return fail(Outcome::no_route, bootstrap.explanation());
    }
  }
  char network[600] = "-";
  tcp::Config config = tcp_config(settings, uint32_t(bootstrap.rank()), uint32_t(bootstrap.size()));
  network_ = tcp_.start(config, engine_) == Outcome::ok;
  if (network_) tcp_.card(network, sizeof network);
  if (network_ && settings.verbose >= 2) {
    base::Text<200> line;
    line << "headway: rank " << bootstrap.rank() << " listens on " << Place(network).text.c_str()
         << "\n";
    line.write_to(2);
  }
  char card[bootstrap::value_max];
  write_card(card, sizeof card, settings.shm != 0, network);
  base::Text<bootstrap::key_max> key;
  key << "headway-card-" << bootstrap.rank();
  if (bootstrap.put(key.c_str(), card) != bootstrap::Outcome::ok) {
    return fail(Outcome::no_route, bootstrap.explanation());
  }
  if (beside.count < 2 || beside.first != rank()) return Outcome::ok;
  char place[128];
  cards.make(place, sizeof place);
  key.clear();
  key << cards_key << rank();
  // Always put: some launchers wait for a key that is not there.
  if (bootstrap.put(key.c_str(), place) != bootstrap::Outcome::ok) {
    return fail(Outcome::no_route, bootstrap.explanation());
  }
  return Outcome::ok;
}

Outcome Process::read_cards(const bootstrap::Beside& beside, CardFile& cards) {
  Neighbourhood neighbours;
  HostRing hosts;
  char text[bootstrap::value_max];
  if (beside.count > 1 && beside.first != rank()) find_cards(bootstrap, beside.first, cards);
  for (int i = 0; i < bootstrap.size(); ++i) {
    base::Text<bootstrap::key_max> key;
    key << "headway-card-" << i;
    if (!read_published(bootstrap, cards, key.c_str(), i, text, sizeof text)) {
      return fail(Outcome::no_route,
                  cards.reads() ? "this machine's file of cards is cut" : bootstrap.explanation());
    }
    Card card;
    if (!read_card(text, card))
      return fail(Outcome::bad_data,
                  "a rank published a broken card; do "
                  "all ranks run the same version of Headway MPI?");
    if (!hosts.add(tcp::host_of(card.network)) || !neighbours.add(card)) {
      return fail(Outcome::no_memory, "no memory at the start");
    }
    if (i != bootstrap.rank() && !(settings.shm && neighbours.is_on_my_node(card))) {
      if (const Outcome done = reach_by_network(i, card.network); done != Outcome::ok) return done;
    } else {
      if (i == bootstrap.rank()) node_place_ = uint32_t(node_ranks_->size());
      if (!node_ranks_->push(uint32_t(i)))
        return fail(Outcome::no_memory, "no memory at the start");
    }
  }
  next_host_ = hosts.next(uint32_t(rank()));
  previous_host_ = hosts.previous(uint32_t(rank()));
  machine_ranks_ = neighbours.machine_ranks();
  machine_cores_ = neighbours.machine_cores();
  beside_ = uint32_t(node_ranks_->size());
  if (remote_peers_ && !engine_->links().peers().place(neighbours.nodes())) {
    return fail(Outcome::no_memory, "no memory at the start");
  }
  some_node_shares_ = neighbours.some_node_shares();
  if (settings.shm && memory_is_closed() && neighbours.first_apart() == uint32_t(rank())) {
    tell_that_closed();
  }
  if (!read_published(bootstrap, cards, "headway-secret", 0, text, sizeof text) ||
      !read_secret(text, secret_)) {
    return fail(Outcome::no_route, "the job's secret could not be read from the launcher");
  }
  cards.finish();
  if (network_) tcp_.set_secret(secret_, bootstrap.job().job_id);
  return Outcome::ok;
}

Outcome Process::reach_by_network(int peer, const char* network) {
  remote_peers_ = true;
  const Outcome told = network_ ? tcp_.set_card(uint32_t(peer), network) : Outcome::ok;
  if (told == Outcome::ok) return told;
  if (told == Outcome::no_memory) {
    return fail(told, "no memory for the addresses of the other ranks");
  }
  base::Text<200> text;
  text << "rank " << peer << " has no address to be reached at: it could not open a network"
       << " socket, perhaps for want of descriptors (see ulimit -n there)";
  return fail(Outcome::no_route, text.c_str());
}

void Process::tell_that_closed() {
  if (machine_ranks_ == 1) return;
  base::Text<700> line;
  line << "headway: rank " << rank() << " on " << host_
       << ": the system lets no other process look into this one, so it shares no memory with the "
          "other ranks here: their messages go over TCP, which is slower. Likely cause: the "
          "program's file has a setuid bit or capabilities, or may not be read (chmod a+r), or the "
          "program asked for it by prctl(PR_SET_DUMPABLE).\n";
  line.write_to(2);
}

Outcome Process::connect_network() {
  if (!remote_peers_) {
    if (network_) tcp_.abandon();
    network_ = false;
    return Outcome::ok;
  }
  if (!network_) {
    base::Text<400> text;
    text << "this rank has peers that share no memory with it but could not open a network socket ("
         << tcp_.explanation() << "); see ulimit -n for descriptors, ip link for interfaces";
    return fail(Outcome::no_route, text.c_str());
  }
  tcp_.all_cards_set();
  if (const Outcome used = engine_->use(tcp_); used != Outcome::ok) return used;
  return watch_hosts();
}

Outcome Process::make_world() {
  const int size = bootstrap.size();
  objects::Group* everyone = objects::Group::make(size);
  objects::Group* alone = objects::Group::make(1);
  registry.empty_group = objects::Group::make(0);
  if (!everyone || !alone || !registry.empty_group) return Outcome::no_memory;
  for (int i = 0; i < size; ++i) everyone->members[i] = uint32_t(i);
  everyone->find_self(uint32_t(rank()));
  alone->members[0] = uint32_t(rank());
  alone->find_self(uint32_t(rank()));
  registry.empty_group->handle = abi::k_GROUP_EMPTY;
  registry.everyone = objects::make_comm(objects::make_context(job_, objects::world_number),
                                         everyone, &registry.errors_are_fatal);
  registry.alone = objects::make_comm(objects::make_context(job_, objects::self_number), alone,
                                      &registry.errors_are_fatal);
  everyone->release();
  alone->release();
  if (!registry.everyone || !registry.alone) return Outcome::no_memory;
  registry.everyone->lasts = registry.alone->lasts = true;
  registry.everyone->handle = abi::k_COMM_WORLD;
  registry.alone->handle = abi::k_COMM_SELF;
  strcpy(registry.everyone->name, "MPI_COMM_WORLD");
  strcpy(registry.alone->name, "MPI_COMM_SELF");
  return Outcome::ok;
}

uint64_t Process::new_context() {
  const uint64_t before = __atomic_fetch_add(&contexts_, 1, __ATOMIC_RELAXED);
  const uint64_t number =
      objects::context_number(before, uint32_t(rank()), uint32_t(bootstrap.size()));
  if (!objects::is_context_number(number)) {
    abort(1, "there are no numbers left for more communicators. The job ends.");
  }
  const bool late = __atomic_load_n(&had_sessions_, __ATOMIC_RELAXED);
  return (late ? objects::late_context : 0) | objects::make_context(job_, number);
}

void Process::abort(int code, const char* story, const char* reason) {
  if (story) {
    base::Text<1024> line;
    line << "headway: rank " << rank() << " on " << host_ << ": " << story << "\n";
    line.write_to(2);
  }
  // After MPI_Finalize the launcher hears of it by the exit code, and says it once.
  const State now = state.load(std::memory_order_acquire);
  const bool has_left = now == State::resting || now == State::after;
  // Where the launcher does not end them, the others of this node see this rank's end.
  if (!forked && !has_left && engine_ && engine_->node().active()) {
    engine_->node().tell_end({uint32_t(rank()), code & 255 ? code & 255 : 1, true});
    if (story) (void)engine_->node().claim_story();
  }
  if (!forked && !has_left) bootstrap.abort(code, reason);
  _exit(code & 255 ? code & 255 : 1);
}

// Behind "Likely ".
constexpr const char* no_room =
    "cause: a low limit of open files at one of the two ranks, each of which needs a descriptor "
    "for every rank that it talks to over TCP. Likely remedy: ulimit -n in the shell that starts "
    "the job, or in its batch system's settings (fs.file-max, where all processes together have "
    "too many).";

void Process::on_fatal(Outcome why, uint32_t peer, const char* story) {
  // What happens to others while this rank has left MPI is no business of its program, as long as
  // that does not come back.
  if (instance.state.load(std::memory_order_acquire) == State::resting) {
    instance.lost_at_rest_.store(true, std::memory_order_release);  // pairs with wake
    return;
  }
  // A connection often breaks because its rank just died or aborted: the launcher knows better who
  // was first, and ends this rank, too.
  if (why == Outcome::peer_lost) usleep(launcher_first_us);
  base::Text<700> text;
  text << (why == Outcome::no_memory   ? "out of memory"
           : why == Outcome::truncated ? "too late to return an error"
                                       : "lost contact")
       << " while talking to rank " << peer << ": " << story << ". Likely "
       << (why == Outcome::no_memory     ? "remedy: see the machine's memory and ulimit -v."
           : why == Outcome::no_resource ? no_room
           : why == Outcome::truncated
               ? "remedy: receive with the count that is sent, or set HEADWAY_EARLY_RELEASE=off to "
                 "get the error from the receive itself."
               : "cause: that rank's process has ended, or the network between the hosts is "
                 "interrupted. Likely remedy: look for what that rank said last; the launcher's "
                 "line names the rank that ended first.")
       << " The job ends.";
  base::Text<80> reason;
  reason << "headway: lost contact with rank " << peer;
  instance.abort(1, text.c_str(), why == Outcome::peer_lost ? reason.c_str() : "");
}

// A process of another job: the launcher here knows nothing of it, but may have had to end it, too.
void Process::on_lost_abroad(Outcome why, const spawn::Row& who, const char* story) {
  if (instance.state.load(std::memory_order_acquire) == State::resting) return;
  if (why == Outcome::peer_lost) usleep(launcher_first_us);
  base::Text<900> text;
  text << "lost contact with rank " << who.rank << " of the other job " << who.job_name
       << ", with which this one is connected: " << story << ". Likely "
       << (why == Outcome::no_resource
               ? no_room
               : "cause: that job has died, or a process of it has ended before "
                 "MPI_Comm_disconnect or MPI_Finalize. Likely remedy: see what that job said last.")
       << " The job ends.";
  base::Text<120> reason;
  reason << "headway: lost contact with rank " << who.rank << " of another job";
  instance.abort(1, text.c_str(), reason.c_str());
}

// What a child would find in closed pages is nothing. The message thread opens them meanwhile.
void Process::before_fork() {
  while (instance.is_running() && instance.engine_->release().any_closed()) sched_yield();
}

void Process::after_fork_in_child() {
  const State now = instance.state.load(std::memory_order_acquire);
  if (now != State::running && now != State::resting) return;
  instance.forked = true;
  instance.engine_->stop_guard();
  instance.engine_->handoff().abandon();
  instance.deaths_.stop();
  if (instance.network_) instance.tcp_.abandon();
  spawn::junctions().abandon();
  spawn::ports().close_all();
  instance.state.store(State::after, std::memory_order_release);
  instance.world.store(State::after, std::memory_order_release);
}

// Of an inter-communicator the sides, as a peer's rank is one of the other side. Signal context:
// the call that the signal has met keeps `comm`.
static void tell_sides(base::Text<512>& line, const objects::Comm& comm) {
  if (!comm.is_inter()) return;
  line << " as rank " << comm.own.self << " of " << comm.own.size << " on its side, with "
       << comm.others.size << " on the other";
}

// On SIGUSR1: one line on stderr that says where this rank stands, and the file of its counters if
// there is to be one. Signal context: only reads what it tells.
void Process::dump_state(int) {
  const int kept = errno;  // whom it interrupts may be about to look
  const char* call = instance.whereabouts.call.load(std::memory_order_relaxed);
  base::Text<512> line;
  line << "headway: rank " << instance.rank() << " on " << instance.host_ << " pid " << getpid()
       << ": " << (call ? "in " : "computing") << (call ? call : "");
  const int peer = instance.whereabouts.peer.load(std::memory_order_relaxed);
  const int tag = instance.whereabouts.tag.load(std::memory_order_relaxed);
  // A call on many requests, or a collective, has no single peer.
  if (call && peer != INT32_MIN) line << " (peer " << peer << ", tag " << tag << ")";
  const void* comm = instance.whereabouts.comm.load(std::memory_order_relaxed);
  if (call && comm) tell_sides(line, *static_cast<const objects::Comm*>(comm));
  if (instance.engine_) {
    line << "; " << instance.engine_->posted().size() << " receives posted, "
         << instance.engine_->unexpected().count() << " messages unexpected, "
         << instance.engine_->handoff().pending << " operations pending";
    const uint32_t closed = instance.engine_->release().closed_regions();
    if (closed) line << ", " << closed << " ranges of memory closed (docs/early-release.md)";
    line << "\n";
  }
  line.write_to(2);
  if (instance.is_running() && *instance.settings.counters_file) {
    write_counters_file(*instance.engine_, instance.rank(), instance.settings.counters_file);
  }
  errno = kept;
}

uint64_t Process::counter(size_t index) const {
  return state.load(std::memory_order_acquire) == State::before ? 0 : read_counter(*engine_, index);
}

settings::Settings Process::options() const {
  if (state.load(std::memory_order_acquire) != State::before) return settings;
  settings::Settings expected;
  (void)settings::parse_environment(expected, nullptr, 0);
  return expected;
}

void Process::write_counters() {
  if (settings.verbose >= 1) write_summary(*engine_, rank());
  if (!*settings.counters_file) return;
  write_counters_file(*engine_, rank(), settings.counters_file);
}

}  // namespace headway::runtime
