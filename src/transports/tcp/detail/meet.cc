// Meeting: dialling, and the clock of it and of accepting (accept.cc). Connections come up without
// anybody waiting for them; the only limits are counted in ticks of a timer that runs while one is
// half made. A tick counts once however late it is noticed, so a rank that computes does not time
// out.
#include <cerrno>
#include <netinet/tcp.h>
#include <new>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/check.h"
#include "base/descriptors.h"
#include "base/heap.h"
#include "transports/tcp/detail/impl.h"

namespace headway::tcp {
namespace {

constexpr uint16_t pause_between_rounds = 3;
constexpr uint16_t pause_for_crossing = 20;
constexpr uint8_t hangups_allowed = 10;

void set_number(int fd, int level, int option, int value) {
  setsockopt(fd, level, option, &value, sizeof value);
}

}  // namespace

void set_link_options(int fd) {
  set_number(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set_number(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, 16 << 10);
  // A host that vanishes is noticed by HostWatch; a way to one peer alone that is interrupted,
  // after two minutes, where nothing is under way.
  set_number(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_number(fd, IPPROTO_TCP, TCP_KEEPIDLE, 60);
  set_number(fd, IPPROTO_TCP, TCP_KEEPINTVL, 10);
  set_number(fd, IPPROTO_TCP, TCP_KEEPCNT, 6);
}

namespace {

// Whether time matters to it. A peer that took our Hello may compute for as long as it likes.
bool ticking(const Meeting& meeting) {
  if (meeting.incoming || !meeting.wanted) return false;
  return !(meeting.outgoing && meeting.patient);
}

// Trying again soon cannot help.
bool is_final(const Candidate& candidate) {
  const Verdict answer = Verdict(candidate.reject);
  if (candidate.reject) return answer != Verdict::crossed && answer != Verdict::starved;
  switch (candidate.error) {
    case ECONNREFUSED:
    case ENETUNREACH:
    case EAFNOSUPPORT:
    case EADDRNOTAVAIL:
    case EACCES:
    case EPERM:
    case EINVAL: return true;
    default: return false;
  }
}

// Somebody answered who is no rank, or not this one.
bool is_stranger(const Candidate& candidate) {
  if (candidate.error == EPROTO) return true;
  if (!candidate.reject) return false;
  switch (Verdict(candidate.reject)) {
    case Verdict::other_job:
    case Verdict::other_rank:
    case Verdict::other_version:
    case Verdict::stranger: return true;
    default: return false;
  }
}

// True if a rank of this host, to be reached at its own address, has kept silent, and there was no
// loopback address to try: the system carries both through that device.
bool misses_loopback(const Candidate* candidates, size_t count) {
  bool silent = false;
  for (size_t i = 0; i < count; ++i) {
    const Candidate& each = candidates[i];
    if (each.address.reach == Reach::loopback) return false;
    silent |=
        each.error == ETIMEDOUT && each.local.family && same_address(each.local, each.address);
  }
  return silent;
}

}  // namespace

const char* verdict_words(Verdict verdict) {
  switch (verdict) {
    case Verdict::accept: return "accepted";
    case Verdict::crossed: return "it said that its own connection was on the way, but none came";
    case Verdict::other_job: return "a process of another job answered";
    case Verdict::other_rank: return "another rank answered";
    case Verdict::other_version: return "another version of the library answered";
    case Verdict::gone: return "it has given up this rank";
    case Verdict::starved: return "that rank has no descriptor left for one more connection";
    case Verdict::stranger:
      return "who answered does not know this job's secret, so it is no rank of it";
  }
  return "unknown answer";
}

Link* Tcp::Impl::make_link(int fd, LinkState state) {
  void* memory = base::heap_allocate(sizeof(Link));
  if (!memory) {
    ::close(fd);
    errno = ENOMEM;
    return nullptr;
  }
  Link* link = new (memory) Link();
  link->fd = fd;
  link->state = state;
  link->send_lowat = 16 << 10;
  return link;
}

Meeting* Tcp::Impl::meeting_of(uint32_t peer) {
  if (Meeting* there = peers[peer].meeting) return there;
  void* memory = base::heap_allocate(sizeof(Meeting));
  if (!memory) return nullptr;
  Meeting* meeting = new (memory) Meeting();
  meeting->peer = peer;
  meeting->next = meetings;
  if (meetings) meetings->previous = meeting;
  meetings = meeting;
  peers[peer].meeting = meeting;
  return meeting;
}

void Tcp::Impl::end_meeting(Meeting& meeting) {
  (meeting.previous ? meeting.previous->next : meetings) = meeting.next;
  if (meeting.next) meeting.next->previous = meeting.previous;
  peers[meeting.peer].meeting = nullptr;
  base::heap_free(&meeting, sizeof(Meeting));
}

Pair Tcp::Impl::pair_state(uint32_t peer) const {
  const Peer& each = peers[peer];
  if (each.lost) return Pair::gone;
  if (each.link) return Pair::open;
  if (!each.meeting) return Pair::idle;
  if (each.meeting->incoming) return Pair::tentative;
  if (!each.meeting->outgoing) return Pair::idle;
  return each.meeting->outgoing->state == LinkState::connecting ? Pair::dialling : Pair::committed;
}

// A frame wants to go to a peer without a connection.
void Tcp::Impl::want(uint32_t peer) {
  if (peers[peer].lost) return;
  Meeting* meeting = meeting_of(peer);
  if (!meeting || meeting->wanted) return;
  meeting->wanted = true;
  if (meeting->incoming || meeting->outgoing) return;
  Card card;
  if (peers[peer].card && read_card(peers[peer].card, card)) {
    meeting->port = card.port;
    meeting->count = uint8_t(order_candidates(card, own.host, scope, meeting->candidates));
  }
  dial(*meeting);
  arm_timer();
}

// Tries the candidates from `index` on until one is under way.
void Tcp::Impl::dial(Meeting& meeting) {
  for (; meeting.index < meeting.count; ++meeting.index) {
    if (start_attempt(meeting)) return;
  }
  round_over(meeting);
}

void Tcp::Impl::round_over(Meeting& meeting) {
  bool futile = true;
  for (size_t i = 0; i < meeting.count; ++i) futile &= is_final(meeting.candidates[i]);
  meeting.futile_rounds = futile ? uint8_t(meeting.futile_rounds + 1) : uint8_t(0);
  meeting.index = 0;
  meeting.pause = pause_between_rounds;
  arm_timer();
}

bool Tcp::Impl::start_attempt(Meeting& meeting) {
  Candidate& candidate = meeting.candidates[meeting.index];
  candidate.reject = 0;  // what was answered before is old
  const SocketAddress to = socket_address(candidate.address, meeting.port, scope);
  // What is lent to a stranger who has gone is no place for a dial.
  const int fd = !keep_reserve() ? -1 : base::with_room([&] {
    return socket(to.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
  });
  if (fd < 0) {
    candidate.error = errno;
    return false;
  }
  set_link_options(fd);
  if (::connect(fd, to.raw(), to.length) != 0 && errno != EINPROGRESS) {
    candidate.error = errno;
    ::close(fd);
    return false;
  }
  Link* link = make_link(fd, LinkState::connecting);
  if (!link) {
    candidate.error = errno;
    return false;
  }
  link->peer = meeting.peer;
  link->remote = candidate.address;
  link->remote_port = meeting.port;
  meeting.outgoing = link;
  meeting.attempt_ticks = 0;
  set_interest(*link, EPOLLOUT);
  return true;
}

// Gives up our dial by a reset: the peer may be closing its end of it at this moment, and two ends
// closed in order keep state and timers for a connection that nobody trusted yet.
void Tcp::Impl::drop_outgoing(Meeting& meeting) {
  if (!meeting.outgoing) return;
  const linger at_once = {1, 0};
  setsockopt(meeting.outgoing->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  close_link(*meeting.outgoing);
  meeting.outgoing = nullptr;
  meeting.patient = false;
}

void Tcp::Impl::attempt_failed(Meeting& meeting, int error, Verdict answer) {
  drop_outgoing(meeting);
  Candidate& candidate = meeting.candidates[meeting.index];
  candidate.error = error;
  candidate.reject = answer == Verdict::accept ? uint8_t(0) : uint8_t(answer);
  arm_timer();
  if (answer == Verdict::crossed) {
    // The peer dials us. Should nothing come of that, we try again.
    meeting.index = 0;
    meeting.pause = pause_for_crossing;
    return;
  }
  ++meeting.index;
  dial(meeting);
}

// connecting -> answer_wait, if the kernel has made the connection.
bool Tcp::Impl::greet(Link& link) {
  Meeting& meeting = *peers[link.peer].meeting;
  int error = 0;
  socklen_t length = sizeof error;
  if (getsockopt(link.fd, SOL_SOCKET, SO_ERROR, &error, &length) != 0) error = errno;
  Hello hello;
  if (!error) {
    hello.magic = hello_magic;
    hello.version = protocol_version;
    hello.from = config.rank;
    hello.to = link.peer;
    hello.size = config.size;
    hello.attempt = ++attempts;
    hello.nonce = make_nonce(key, config.rank, attempts);
    hello.seal = seal_hello(key, hello);
    link.hello = hello;
    const ssize_t n = send(link.fd, &hello, sizeof hello, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n != ssize_t(sizeof hello)) error = n < 0 ? errno : EPIPE;
  }
  if (error) {
    attempt_failed(meeting, error, Verdict::accept);
    return true;
  }
  link.state = LinkState::answer_wait;
  set_interest(link, EPOLLIN);
  return true;
}

// Reads on until `bytes` of a greeting are there, and never a byte more: what follows belongs to
// the frames. 1: whole, 0: not yet, -1: ended or failed, errno says why (0: ended).
int Tcp::Impl::hear(Link& link, size_t bytes) {
  while (link.greeting_have < bytes) {
    const ssize_t n =
        recv(link.fd, link.greeting + link.greeting_have, bytes - link.greeting_have, MSG_DONTWAIT);
    if (n == 0) {
      errno = 0;
      return -1;
    }
    if (n < 0) {
      if (errno == EINTR) continue;
      return errno == EAGAIN ? 0 : -1;
    }
    link.greeting_have = uint8_t(link.greeting_have + n);
  }
  return 1;
}

bool Tcp::Impl::hear_answer(Link& link) {
  Meeting& meeting = *peers[link.peer].meeting;
  const int heard = hear(link, sizeof(Answer));
  if (heard == 0) return false;
  const int error = heard < 0 && errno ? errno : ECONNRESET;
  if (heard < 0 && link.greeting_have < oldest_answer) {
    // Somebody is there: a full acceptor closes whom it does not know yet.
    if (meeting.hangups < hangups_allowed) {
      ++meeting.hangups;
      meeting.ticks = 0;
    }
    attempt_failed(meeting, error, Verdict::accept);
    return true;
  }
  Answer answer;
  memcpy(static_cast<void*>(&answer), link.greeting, heard < 0 ? oldest_answer : sizeof answer);
  if (answer.magic != answer_magic) {
    ++counters.garbage;
    attempt_failed(meeting, EPROTO, Verdict::accept);
    return true;
  }
  switch (answer.verdict) {
    // Nobody need prove that we are none of his.
    case Verdict::other_job:
    case Verdict::other_rank:
    case Verdict::other_version: attempt_failed(meeting, 0, answer.verdict); return true;
    default: break;
  }
  if (heard < 0 || !base::same_digest(answer.seal, seal_answer(key, link.hello, answer))) {
    ++counters.rejected;
    attempt_failed(meeting, 0, Verdict::stranger);
    return true;
  }
  if (answer.verdict != Verdict::accept) {
    attempt_failed(meeting, 0, answer.verdict);
    return true;
  }
  Confirm confirm;
  confirm.magic = confirm_magic;
  confirm.seal = seal_confirm(key, link.hello, answer.nonce);
  const ssize_t n = send(link.fd, &confirm, sizeof confirm, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (n != ssize_t(sizeof confirm)) {
    attempt_failed(meeting, n < 0 ? errno : EPIPE, Verdict::accept);
    return true;
  }
  return promote(link);
}

// The connection stands.
bool Tcp::Impl::promote(Link& link) {
  HEADWAY_CHECK(link.state == LinkState::answer_wait || link.state == LinkState::confirm_wait);
  Meeting& meeting = *peers[link.peer].meeting;
  link.rx = static_cast<char*>(base::heap_allocate(rx_bytes));
  if (!link.rx) {
    if (meeting.incoming == &link) {
      lose_tentative(link);
    } else {
      attempt_failed(meeting, ENOMEM, Verdict::accept);
    }
    return true;
  }
  end_meeting(meeting);
  SocketAddress end;
  end.length = sizeof end.storage;
  if (getsockname(link.fd, end.raw(), &end.length) == 0) link.local = from_socket(end);
  link.state = LinkState::open;
  HEADWAY_CHECK(!peers[link.peer].link);
  peers[link.peer].link = &link;
  links.push_back(&link);
  ++counters.connections;
  set_interest(link, EPOLLIN);
  say_whether_resting(link);
  return true;
}

void Tcp::Impl::arm_timer() {
  if (timer_armed || timer < 0) return;
  itimerspec every = {};
  every.it_interval.tv_nsec = long(tick_us * 1000);
  every.it_value = every.it_interval;
  timer_armed = timerfd_settime(timer, 0, &every, nullptr) == 0;
}

uint32_t Tcp::Impl::tick_limit() const {
  const uint64_t ticks = (config.connect_timeout_us + tick_us - 1) / tick_us;
  return ticks > UINT32_MAX ? UINT32_MAX : ticks ? uint32_t(ticks) : 1;
}

void Tcp::Impl::tick() {
  uint64_t expired;
  if (read(timer, &expired, sizeof expired) != sizeof expired) return;
  if (listener_paused) {
    epoll_event in = {};
    in.events = EPOLLIN;
    in.data.u64 = 1;
    listener_paused = epoll_ctl(epoll, EPOLL_CTL_MOD, listener, &in) != 0;
  }
  for (Link *link = strangers, *next; link; link = next) {
    next = link->next;
    if (++link->ticks >= stranger_ticks) dismiss(*link, false);
  }
  for (Meeting *meeting = meetings, *next; meeting; meeting = next) {
    next = meeting->next;
    tick_meeting(*meeting);
  }
  bool again = strangers || listener_paused || broken_links || !keep_reserve();
  for (const Meeting* each = meetings; each && !again; each = each->next) again = ticking(*each);
  if (again) return;
  const itimerspec never = {};
  timerfd_settime(timer, 0, &never, nullptr);
  timer_armed = false;
}

void Tcp::Impl::tick_meeting(Meeting& meeting) {
  if (!ticking(meeting)) return;
  ++meeting.ticks;
  if (meeting.outgoing) {
    tick_attempt(meeting);
  } else if (meeting.pause && --meeting.pause == 0) {
    if (meeting.futile_rounds >= 2) {
      give_up(meeting);
      return;
    }
    dial(meeting);
  }
  if (meeting.ticks < tick_limit() || meeting.patient) return;
  if (meeting.silent == 0xff) {
    give_up(meeting);
    return;
  }
  // All were tried, and one took our Hello: a rank without a message thread that computes.
  drop_outgoing(meeting);
  meeting.index = meeting.silent;
  meeting.silent = 0xff;
  if (start_attempt(meeting)) {
    meeting.patient = true;
  } else {
    give_up(meeting);
  }
}

// One attempt gets its share of the whole time.
void Tcp::Impl::tick_attempt(Meeting& meeting) {
  uint32_t slice = tick_limit() / meeting.count;
  if (slice > 30) slice = 30;
  if (slice < 3) slice = 3;
  if (++meeting.attempt_ticks < slice) return;
  const bool answered = meeting.outgoing->state == LinkState::answer_wait;
  if (answered) meeting.silent = meeting.index;
  if (meeting.count == 1) {  // nothing else to try: the time is its own
    meeting.patient = answered;
    return;
  }
  attempt_failed(meeting, ETIMEDOUT, Verdict::accept);
}

// Every way was tried; one line tells the user which.
void Tcp::Impl::give_up(Meeting& meeting) {
  const uint32_t peer = meeting.peer;
  if (meeting.outgoing) meeting.candidates[meeting.index].error = ETIMEDOUT;
  drop_outgoing(meeting);
  Line story;
  story.add("no TCP connection from ").add(config.whom).number(config.rank);
  story.add(" to ").add(config.whom).number(peer);
  if (!meeting.count) story.add(": it has told no address that can be reached from here");
  bool no_room_here = meeting.count > 0, no_room_there = false;
  bool strangers_answered = false, refused = meeting.count > 0;
  for (size_t i = 0; i < meeting.count; ++i) {
    const Candidate& each = meeting.candidates[i];
    no_room_here &= !each.reject && (each.error == EMFILE || each.error == ENFILE);
    // That rank's own word: other addresses may lead nowhere, since it listens at its loopback.
    no_room_there |= each.reject == uint8_t(Verdict::starved);
    strangers_answered |= is_stranger(each);
    refused &= each.error == ECONNREFUSED;
    story.add(i ? "; " : ": tried ");
    add_address(story, each.address);
    story.add(" port ").number(meeting.port);
    if (each.local.family) {
      story.add(" from ");
      add_address(story, each.local);
    }
    story.add(" (");
    story.add(each.reject            ? verdict_words(Verdict(each.reject))
              : each.error == EPROTO ? "something else listens there"
                                     : error_words(each.error ? each.error : ETIMEDOUT));
    story.add(")");
  }
  const bool starved = no_room_here || no_room_there;
  story.add(starved ? "; raise the limit of open files (ulimit -n)"
            : misses_loopback(meeting.candidates, meeting.count)
                ? "; the loopback device is down, through which a host reaches itself (ip link set "
                  "lo up)"
            : strangers_answered
                ? "; no firewall is in the way, but who answers is not that rank: from here the "
                  "address leads to another machine or container, or another program has taken the "
                  "port. HEADWAY_TCP_INTERFACE must name the network that joins the hosts"
            : refused
                ? "; the host answers, but nothing listens there: that rank has perhaps ended, or "
                  "a firewall refuses, or HEADWAY_TCP_INTERFACE must name the network that joins "
                  "the hosts"
                : "; a firewall may be in the way, or HEADWAY_TCP_INTERFACE must name the "
                  "network that joins the hosts");
  peers[peer].lost = true;
  end_meeting(meeting);
  HEADWAY_CHECK(reaping);
  receiver->lost(peer, starved ? Outcome::no_resource : Outcome::no_route, story.text);
}

}  // namespace headway::tcp
