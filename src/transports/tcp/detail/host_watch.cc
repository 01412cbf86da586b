#include "transports/tcp/detail/host_watch.h"

#include <cerrno>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/descriptors.h"
#include "base/heap.h"
#include "transports/tcp/detail/handshake.h"

namespace headway::tcp {
namespace {

constexpr uint64_t calm_us = 1'000'000;  // between two looks while everybody answers
constexpr uint64_t eager_us = 250'000;   // and while somebody does not
// Systems ask each other every second. A queue of 3 s is no end, and no reason to be eager for
// long.
constexpr uint32_t quiet_ms = 2'000;
constexpr uint32_t fewest_looks = 4;
constexpr uint32_t dial_every = 4;  // looks between two attempts
constexpr uint32_t rest_ended = 5;  // looks after a connection that ended: its rank has, or will
constexpr uint32_t rest_unanswered = 30;  // after a search for a host that never answered
// The system itself would give up a connection after so many questions: never before we do.
constexpr int most_questions = 127;

enum TcpState : uint8_t { established = 1, syn_sent = 2, syn_received = 3 };  // of tcpi_state

void set_number(int fd, int level, int option, int value) {
  setsockopt(fd, level, option, &value, sizeof value);
}

void set_watch_options(int fd) {
  set_number(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_number(fd, IPPROTO_TCP, TCP_KEEPIDLE, 1);
  set_number(fd, IPPROTO_TCP, TCP_KEEPINTVL, 1);
  set_number(fd, IPPROTO_TCP, TCP_KEEPCNT, most_questions);
  set_number(fd, IPPROTO_TCP, TCP_NODELAY, 1);
}

// Has the system ask at once: told how long a silence it may bear, it finds that so much is over.
void ask_now(int fd) { set_number(fd, IPPROTO_TCP, TCP_KEEPIDLE, 1); }

bool read_info(int fd, tcp_info& info) {
  socklen_t length = sizeof info;
  return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) == 0;
}

void close_fd(int& fd) {
  if (fd >= 0) ::close(fd);
  fd = -1;
}

}  // namespace

Outcome HostWatch::start(const HostPlan& plan, const Config& config, const base::HmacKey& key,
                         const Card& target, uint64_t own_host, uint32_t scope) {
  stopped_.store(false, std::memory_order_relaxed);  // nobody looks yet
  pace_us_ = 0;
  known_ = false;
  rest(1);
  plan_ = plan;
  config_ = config;
  key_ = key;
  scope_ = scope;
  port_ = target.port;
  count_ = uint8_t(order_candidates(target, own_host, scope, candidates_));
  timer_ =
      base::with_room([] { return timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK); });
  if (timer_ < 0) return Outcome::no_resource;
  set_pace(calm_us);
  return Outcome::ok;
}

void HostWatch::set_pace(uint64_t us) {
  if (us == pace_us_) return;
  itimerspec every = {};
  every.it_interval = {time_t(us / 1'000'000), long(us % 1'000'000 * 1000)};
  every.it_value = every.it_interval;
  if (timerfd_settime(timer_, 0, &every, nullptr) == 0) pace_us_ = us;
}

void HostWatch::go_on() {
  if (timer_ < 0) return;
  stopped_.store(false, std::memory_order_seq_cst);  // pairs with look
  itimerspec now = {};
  if (timerfd_gettime(timer_, &now) != 0 || now.it_interval.tv_sec || now.it_interval.tv_nsec) {
    return;  // it was never disarmed
  }
  now.it_interval = {time_t(calm_us / 1'000'000), long(calm_us % 1'000'000 * 1000)};
  now.it_value = now.it_interval;
  timerfd_settime(timer_, 0, &now, nullptr);
}

void HostWatch::look() {
  uint64_t times;  // one look, however many are due
  if (timer_ < 0 || read(timer_, &times, sizeof times) != sizeof times) return;
  if (stopped_.load(std::memory_order_acquire)) {  // pairs with stop
    const itimerspec never = {};
    timerfd_settime(timer_, 0, &never, nullptr);
    pace_us_ = 0;
    // Whoever goes on meanwhile may have armed it before us.
    if (!stopped_.load(std::memory_order_seq_cst)) set_pace(calm_us);  // pairs with go_on
    return;
  }
  adopt_taken();
  const bool silent = look_at_taken();
  set_pace(look_at_target() || silent ? eager_us : calm_us);
}

// What the system knows of the other one. While data of ours is under way it asks no questions, but
// sends that again, ever more seldom: on a bad network too seldom to tell an end.
HostWatch::Seen HostWatch::examine(int fd, uint32_t& looks) const {
  tcp_info info = {};
  if (!read_info(fd, info) || info.tcpi_state != established) return Seen::ended;
  if (info.tcpi_last_ack_recv < quiet_ms) {
    looks = 0;
    return Seen::answered;
  }
  if (++looks >= fewest_looks && info.tcpi_unacked) return Seen::unheard;
  const uint64_t limit_ms = plan_.silence_us / 1000;
  const uint64_t before = quiet_ms + calm_us / 1000;
  uint64_t due = limit_ms > before ? (limit_ms - before) * 1000 / eager_us : 0;
  if (due < fewest_looks) due = fewest_looks;
  if (looks > due && info.tcpi_last_ack_recv >= limit_ms) return Seen::dead;
  ask_now(fd);
  return Seen::silent;
}

void HostWatch::tell(uint32_t peer, const Address& remote, const char* name) {
  Line story;
  story.add("the system of host ").add(*name ? name : "(unnamed)").add(" (");
  add_address(story, remote);
  story.add("), where rank ").number(peer).add(" runs, has not answered for ");
  story.number(plan_.silence_us / 1'000'000).add(" s");
  stop();
  plan_.silent(peer, story.text);
}

// --- others that watch us ---

void HostWatch::take(int fd, uint32_t peer, const Address& remote) {
  void* memory = timer_ < 0 ? nullptr : base::heap_allocate(sizeof(Taken));
  if (!memory) {
    ::close(fd);
    return;
  }
  set_watch_options(fd);
  Taken* taken = static_cast<Taken*>(memory);
  *taken = {fd, peer, 0, remote, fresh_.load(std::memory_order_relaxed)};
  while (!fresh_.compare_exchange_weak(taken->next, taken,
                                       std::memory_order_release,  // adopt_taken
                                       std::memory_order_relaxed)) {
  }
}

// The newest of a rank stays.
void HostWatch::adopt_taken() {
  Taken* fresh = fresh_.exchange(nullptr, std::memory_order_acquire);  // pairs with take
  while (Taken* each = fresh) {
    fresh = each->next;
    for (Taken** at = &taken_; *at; at = &(*at)->next) {
      if ((*at)->peer != each->peer) continue;
      Taken* older = *at;
      *at = older->next;
      ::close(older->fd);
      base::heap_free(older, sizeof *older);
      break;
    }
    each->next = taken_;
    taken_ = each;
  }
}

// True if somebody does not answer.
bool HostWatch::look_at_taken() {
  bool silent = false;
  for (Taken** at = &taken_; *at;) {
    Taken& each = **at;
    const Seen seen = examine(each.fd, each.looks);
    if (seen == Seen::dead) tell(each.peer, each.remote, plan_.previous_name);
    silent |= seen == Seen::silent;
    if (seen != Seen::ended) {
      at = &each.next;
      continue;
    }
    *at = each.next;
    ::close(each.fd);
    base::heap_free(&each, sizeof each);
  }
  return silent;
}

// --- the one that we watch ---

void HostWatch::rest(uint32_t looks) {
  state_ = State::resting;
  rest_ = looks;
  looks_ = 0;
}

// True if it does not answer.
bool HostWatch::look_at_target() {
  switch (state_) {
    case State::resting:
      if (rest_ && --rest_) return false;
      state_ = State::dialling;
      looks_ = 0;
      dialled_ = 0;
      dial();
      return true;
    case State::dialling: return look_at_attempts();
    case State::linked: break;
  }
  switch (examine(link_, looks_)) {
    case Seen::answered: return false;
    case Seen::silent: return true;
    case Seen::unheard:  // our greeting was lost: whoever is there answers one of several attempts
      close_fd(link_);
      state_ = State::dialling;
      looks_ += uint32_t(quiet_ms * 1000 / eager_us);
      dialled_ = 0;
      dial();
      return true;
    case Seen::dead: tell(plan_.target, candidates_[best_].address, plan_.next_name); return true;
    case Seen::ended: break;
  }
  // Its process has ended, perhaps in peace, and then its host may go, too. If it was no peace,
  // those who need that rank hear of it.
  known_ = false;
  close_fd(link_);
  rest(rest_ended);
  return false;
}

bool HostWatch::look_at_attempts() {
  for (Attempt& each : attempts_) {
    if (each.fd >= 0 && look_at_attempt(each)) return false;
  }
  ++looks_;
  const uint64_t due = plan_.silence_us / eager_us;
  if (looks_ >= due && looks_ >= fewest_looks) {
    drop_attempts();
    // Perhaps a firewall that lets only others dial us: then they watch.
    if (known_) tell(plan_.target, candidates_[best_].address, plan_.next_name);
    rest(rest_unanswered);
    return false;
  }
  if (looks_ % dial_every == 0) dial();
  return true;
}

// True: its host is there, and the search is over.
bool HostWatch::look_at_attempt(Attempt& attempt) {
  tcp_info info = {};
  const bool known = read_info(attempt.fd, info);
  if (known && info.tcpi_state == established) {
    greet(attempt);
    return true;
  }
  if (known && (info.tcpi_state == syn_sent || info.tcpi_state == syn_received)) return false;
  int error = 0;
  socklen_t length = sizeof error;
  (void)getsockopt(attempt.fd, SOL_SOCKET, SO_ERROR, &error, &length);
  close_fd(attempt.fd);
  if (error != ECONNREFUSED && error != ECONNRESET) return false;  // our own system says it
  // The host lives; the rank listens no more, or a firewall refuses.
  best_ = attempt.candidate;
  drop_attempts();
  rest(rest_ended);
  return true;
}

// One attempt more, at the next address. What was begun before goes on: a slow network answers it
// late, and a lossy one may have lost it.
void HostWatch::dial() {
  if (count_ == 0) return;
  Attempt& attempt = attempts_[dialled_ % most_attempts];
  close_fd(attempt.fd);
  attempt.candidate = uint8_t((best_ + dialled_) % count_);
  ++dialled_;
  const SocketAddress to = socket_address(candidates_[attempt.candidate].address, port_, scope_);
  attempt.fd = base::with_room([&] {
    return socket(to.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
  });
  if (attempt.fd < 0) return;
  set_watch_options(attempt.fd);
  if (connect(attempt.fd, to.raw(), to.length) != 0 && errno != EINPROGRESS &&
      errno != ECONNREFUSED) {
    close_fd(attempt.fd);
  }
}

// Says who we are, so that the other side watches us, too. An answer is not awaited: its system
// answers for it.
void HostWatch::greet(Attempt& attempt) {
  best_ = attempt.candidate;
  link_ = attempt.fd;
  attempt.fd = -1;
  drop_attempts();
  state_ = State::linked;
  known_ = true;
  looks_ = 0;
  Hello hello;
  hello.magic = hello_magic;
  hello.version = protocol_version;
  hello.from = config_.rank;
  hello.to = plan_.target;
  hello.size = config_.size;
  hello.purpose = Purpose::watch;
  hello.attempt = ++hellos_;
  hello.nonce = make_nonce(key_, config_.rank, hellos_);
  hello.seal = seal_hello(key_, hello);
  (void)send(link_, &hello, sizeof hello, MSG_NOSIGNAL | MSG_DONTWAIT);  // else it ends soon
}

void HostWatch::drop_attempts() {
  for (Attempt& each : attempts_) close_fd(each.fd);
}

void HostWatch::close() {
  stop();
  adopt_taken();
  while (Taken* each = taken_) {
    taken_ = each->next;
    ::close(each->fd);
    base::heap_free(each, sizeof *each);
  }
  drop_attempts();
  close_fd(link_);
  close_fd(timer_);
}

// The message thread, which may have been at work on the list, does not exist here: what the list
// holds closes when the child runs another program, or ends.
void HostWatch::abandon() { close_fd(timer_); }

}  // namespace headway::tcp
