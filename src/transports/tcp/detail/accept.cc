// Accepting: strangers, who become peers by a Hello with the right seal and a Confirm that answers
// our nonce. Whatever they say changes nothing for others before that.
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/descriptors.h"
#include "transports/tcp/detail/impl.h"

namespace headway::tcp {

bool Tcp::Impl::keep_reserve() {
  if (reserve < 0) {
    reserve = base::with_room([&] { return fcntl(timer, F_DUPFD_CLOEXEC, 0); });
  }
  return reserve >= 0;
}

int Tcp::Impl::accept_one(SocketAddress& from) {
  from.length = sizeof from.storage;
  return base::with_room(
      [&] { return accept4(listener, from.raw(), &from.length, SOCK_NONBLOCK | SOCK_CLOEXEC); });
}

bool Tcp::Impl::accept_all() {
  bool moved = false;
  for (int round = 0; round < 64; ++round) {
    SocketAddress from;
    int fd = accept_one(from);
    if (fd < 0 && (errno == EMFILE || errno == ENFILE) && reserve >= 0) {
      close(reserve);
      reserve = -1;
      arm_timer();  // until it is back
      fd = accept_one(from);
      if (fd < 0 && errno == EAGAIN && keep_reserve()) break;  // the system asks for room first
    }
    if (fd < 0) {
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        // The listener would stay readable: look away until the next tick.
        epoll_event none = {};
        none.data.u64 = 1;
        epoll_ctl(epoll, EPOLL_CTL_MOD, listener, &none);
        listener_paused = true;
        arm_timer();
      }
      break;
    }
    moved = true;
    if (stranger_count >= max_strangers) make_room();
    Link* link = make_link(fd, LinkState::hello_wait);
    if (!link) break;
    set_link_options(fd);
    link->remote = from_socket(from, &link->remote_port);
    link->next = strangers;
    if (strangers) strangers->previous = link;
    strangers = link;
    ++stranger_count;
    set_interest(*link, EPOLLIN);
    hear_hello(*link);  // it usually lies there already
  }
  if (strangers) arm_timer();
  return moved;
}

// The oldest stranger goes. A rank among them sees the end and dials again.
void Tcp::Impl::make_room() {
  Link* oldest = strangers;
  while (oldest->next) oldest = oldest->next;
  dismiss(*oldest, false);
}

void Tcp::Impl::forget_stranger(Link& link) {
  (link.previous ? link.previous->next : strangers) = link.next;
  if (link.next) link.next->previous = link.previous;
  link.next = link.previous = nullptr;
  --stranger_count;
}

void Tcp::Impl::dismiss(Link& stranger, bool garbage) {
  ++(garbage ? counters.garbage : counters.rejected);
  drop(stranger);
}

void Tcp::Impl::drop(Link& stranger) {
  forget_stranger(stranger);
  close_link(stranger);
}

// A courtesy to who has not proved to be a rank.
bool Tcp::Impl::answer(Link& link, Verdict verdict) {
  Answer answer;
  answer.magic = answer_magic;
  answer.verdict = verdict;
  return send(link.fd, &answer, sizeof answer, MSG_NOSIGNAL | MSG_DONTWAIT) ==
         ssize_t(sizeof answer);
}

// To one that has.
bool Tcp::Impl::answer_sealed(Link& link, Verdict verdict) {
  Answer answer;
  answer.magic = answer_magic;
  answer.verdict = verdict;
  answer.nonce = link.answered = make_nonce(key, config.rank, (uint64_t(1) << 63) | ++nonces);
  answer.seal = seal_answer(key, link.hello, answer);
  return send(link.fd, &answer, sizeof answer, MSG_NOSIGNAL | MSG_DONTWAIT) ==
         ssize_t(sizeof answer);
}

// Whether a rank of this job has said that, now, and to us.
Verdict Tcp::Impl::examine(const Hello& hello) {
  if (hello.version != protocol_version) return Verdict::other_version;
  if (!base::same_digest(hello.seal, seal_hello(key, hello))) return Verdict::other_job;
  if (hello.to != config.rank || hello.from == config.rank || hello.from >= config.size ||
      hello.size != config.size || uint32_t(hello.purpose) >= purposes) {
    return Verdict::other_rank;
  }
  // One that was heard before is said again by who has read it. One that is older than another
  // belongs to a dial that was given up.
  uint64_t& heard = peers[hello.from].heard[uint32_t(hello.purpose)];
  if (hello.attempt <= heard) return Verdict::stranger;
  heard = hello.attempt;
  return Verdict::accept;
}

bool Tcp::Impl::hear_hello(Link& link) {
  int heard = hear(link, oldest_hello);
  const size_t have = link.greeting_have < 8 ? link.greeting_have : 8;
  if (memcmp(link.greeting, &hello_magic, have) != 0) {
    dismiss(link, true);
    return true;
  }
  Hello hello;
  memcpy(static_cast<void*>(&hello), link.greeting, oldest_hello);
  // What another version says further on is not known.
  if (heard == 1 && hello.version == protocol_version) heard = hear(link, sizeof(Hello));
  if (heard == 0) return false;
  if (heard < 0) {
    // One that left without a word is a dial that was given up, or a probe of the network.
    if (link.greeting_have) ++counters.rejected;
    drop(link);
    return true;
  }
  memcpy(static_cast<void*>(&hello), link.greeting, link.greeting_have);
  const Verdict verdict = examine(hello);
  if (verdict != Verdict::accept) {
    if (verdict != Verdict::stranger) (void)answer(link, verdict);
    dismiss(link, false);
    return true;
  }
  link.hello = hello;
  link.peer = hello.from;
  forget_stranger(link);
  if (hello.purpose == Purpose::watch) {
    hand_to_watch(link);
  } else {
    welcome(link);
  }
  return true;
}

// Its connection carries no frames, and nobody need answer but the system.
void Tcp::Impl::hand_to_watch(Link& link) {
  set_interest(link, 0);
  if (hosts.descriptor() >= 0 && keep_reserve()) {
    hosts.take(link.fd, link.peer, link.remote);
    link.fd = -1;
  }
  close_link(link);
}

// A rank of the job, and no stranger any more.
void Tcp::Impl::welcome(Link& link) {
  const Verdict verdict = judge(pair_state(link.peer), config.rank, link.peer);
  Meeting* meeting = verdict == Verdict::accept ? meeting_of(link.peer) : nullptr;
  if (!meeting) {
    (void)answer_sealed(link, verdict == Verdict::accept ? Verdict::gone : verdict);
    close_link(link);
    return;
  }
  drop_outgoing(*meeting);
  if (meeting->incoming) close_link(*meeting->incoming);
  meeting->incoming = &link;
  link.state = LinkState::confirm_wait;
  link.greeting_have = 0;
  const Verdict said = keep_reserve() ? Verdict::accept : Verdict::starved;
  if (!answer_sealed(link, said) || said == Verdict::starved) lose_tentative(link);
}

bool Tcp::Impl::hear_confirm(Link& link) {
  const int heard = hear(link, sizeof(Confirm));
  if (heard == 0) return false;
  Confirm confirm;
  memcpy(&confirm, link.greeting, sizeof confirm);
  const bool right = heard > 0 && confirm.magic == confirm_magic &&
                     base::same_digest(confirm.seal, seal_confirm(key, link.hello, link.answered));
  if (right) return promote(link);
  if (heard > 0) ++counters.rejected;
  lose_tentative(link);
  return true;
}

// The peer gave up a connection before it confirmed it: nothing has been sent on it.
void Tcp::Impl::lose_tentative(Link& link) {
  Meeting& meeting = *peers[link.peer].meeting;
  close_link(link);
  meeting.incoming = nullptr;
  if (!meeting.wanted) {
    end_meeting(meeting);
    return;
  }
  meeting.wanted = false;
  meeting.index = 0;
  meeting.pause = 0;
  want(meeting.peer);
}

}  // namespace headway::tcp
