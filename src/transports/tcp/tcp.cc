#include "transports/tcp/tcp.h"

#include <cerrno>
#include <linux/sockios.h>
#include <new>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/check.h"
#include "base/descriptors.h"
#include "base/heap.h"
#include "transports/garbage.h"
#include "transports/tcp/detail/impl.h"

namespace headway::tcp {
namespace {

// What epoll gives back: these, or the address of a Link.
constexpr uint64_t listener_mark = 1;
constexpr uint64_t timer_mark = 2;
constexpr uint64_t hosts_mark = 3;
constexpr int events_at_once = 32;
constexpr uint64_t least_enough = 32 << 10;
constexpr uint32_t longest_frame = 64 << 10;  // others wait behind it
constexpr uint32_t expect_min = 4096;
constexpr uint64_t expect_max = 256 << 10;

void close_fd(int& fd) {
  if (fd >= 0) close(fd);
  fd = -1;
}

bool watch(int epoll, int fd, uint64_t mark) {
  epoll_event in = {};
  in.events = EPOLLIN;
  in.data.u64 = mark;
  return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &in) == 0;
}

}  // namespace

Outcome Tcp::Impl::open(const Config& c, Receiver* r) {
  config = c;
  receiver = r;
  key = key_of(config.secret, config.job);
  if (!list_own(config.interface, own, scope, explanation)) return Outcome::no_route;
  explanation = Line();
  own.host = host_identity();
  const size_t table = sizeof(Peer) * config.size;
  peers = static_cast<Peer*>(base::heap_allocate(table));
  if (!peers) return Outcome::no_memory;
  memset(static_cast<void*>(peers), 0, table);
  if (const Outcome done = listen_on(); done != Outcome::ok) return done;
  epoll = base::with_room([] { return epoll_create1(EPOLL_CLOEXEC); });
  timer =
      base::with_room([] { return timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK); });
  if (epoll < 0 || timer < 0 || !watch(epoll, listener, listener_mark) ||
      !watch(epoll, timer, timer_mark) || !keep_reserve()) {
    explanation.add("no descriptors for TCP: ").add(error_words(errno));
    return Outcome::no_resource;
  }
  return Outcome::ok;
}

// One socket for both families where the system can; bound to the only address if there is one.
Outcome Tcp::Impl::listen_on() {
  constexpr int families[] = {AF_INET6, AF_INET};
  for (const int family : families) {
    SocketAddress where;
    if (own.count == 1) {
      if (own.addresses[0].family != family) continue;
      where = socket_address(own.addresses[0], 0, scope);
    } else {
      Address any;
      any.family = uint8_t(family);
      where = socket_address(any, 0, 0);
    }
    listener = base::with_room(
        [&] { return socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP); });
    if (listener < 0) continue;
    const int off = 0;
    if (family == AF_INET6) setsockopt(listener, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    // For all_cards_set(), which may want a second one at the same port.
    const int on = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
    if (bind(listener, where.raw(), where.length) == 0 && listen(listener, 4096) == 0) {
      SocketAddress bound;
      bound.length = sizeof bound.storage;
      if (getsockname(listener, bound.raw(), &bound.length) == 0) {
        from_socket(bound, &own.port);
        if (family == AF_INET) {  // no IPv6 here: do not promise it
          size_t kept = 0;
          for (size_t i = 0; i < own.count; ++i) {
            if (own.addresses[i].family == AF_INET) own.addresses[kept++] = own.addresses[i];
          }
          own.count = uint8_t(kept);
        }
        if (own.count) return Outcome::ok;
      }
    }
    explanation = Line();
    explanation.add("cannot listen for TCP connections: ").add(error_words(errno));
    close_fd(listener);
  }
  if (!explanation.length) explanation.add("no TCP socket: ").add(error_words(errno));
  return Outcome::no_resource;
}

// The port stays, and so do those who have dialled already: the new listener stands before the old
// one goes, and what waits at the old one is taken first.
void Tcp::Impl::keep_to_loopback() {
  if (own.count <= 1 || peers_elsewhere) return;  // a single address is bound to already
  const Address* here = nullptr;
  for (size_t i = 0; i < own.count && !here; ++i) {
    if (own.addresses[i].reach == Reach::loopback) here = &own.addresses[i];
  }
  if (!here) return;
  const SocketAddress where = socket_address(*here, own.port, 0);
  int narrow = base::with_room([&] {
    return socket(here->family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
  });
  const int on = 1;
  if (narrow < 0 || setsockopt(narrow, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) != 0 ||
      bind(narrow, where.raw(), where.length) != 0 || listen(narrow, 4096) != 0 ||
      !watch(epoll, narrow, listener_mark)) {
    close_fd(narrow);
    return;
  }
  while (accept_all()) {
  }
  close_fd(listener);
  listener = narrow;
}

bool Tcp::Impl::reap(uint64_t budget) {
  reaping = true;
  bool moved = broken_links && collect_broken();
  epoll_event events[events_at_once];
  const int n = epoll_wait(epoll, events, events_at_once, 0);
  for (int i = 0; i < n; ++i) {
    const uint64_t mark = events[i].data.u64;
    if (mark == listener_mark) {
      moved |= accept_all();
    } else if (mark == timer_mark) {
      tick();
    } else if (mark == hosts_mark) {
      hosts.look();
    } else {
      moved |= serve(*reinterpret_cast<Link*>(mark), events[i].events, budget);
    }
  }
  if (graveyard) bury();
  reaping = false;
  return moved;
}

bool Tcp::Impl::reap_peer(uint32_t peer, uint64_t budget) {
  Link* link = peer < config.size ? peers[peer].link : nullptr;
  if (!link || broken_links) return reap(budget);
  reaping = true;
  bool moved = link->busy() && flush(*link);
  if (link->state == LinkState::open) moved |= read_link(*link, budget);
  if (graveyard) bury();
  reaping = false;
  return moved;
}

bool Tcp::Impl::serve(Link& link, uint32_t events, uint64_t& budget) {
  switch (link.state) {
    case LinkState::connecting: return greet(link);
    case LinkState::answer_wait:
      if (!hear_answer(link)) return false;
      break;
    case LinkState::hello_wait: return hear_hello(link);
    case LinkState::confirm_wait:
      if (!hear_confirm(link)) return false;
      break;
    case LinkState::open: {
      bool moved = (events & EPOLLOUT) && flush(link);
      if (link.state == LinkState::open && (events & ~uint32_t(EPOLLOUT))) {
        moved |= read_link(link, budget);
      }
      return moved;
    }
    case LinkState::broken:
    case LinkState::closed: return false;
  }
  // Just made: the first frames may follow closely.
  if (link.state == LinkState::open) read_link(link, budget);
  return true;
}

void Tcp::Impl::set_interest(Link& link, uint32_t events) {
  if (events == link.interest) return;
  epoll_event wanted = {};
  wanted.events = events;
  wanted.data.u64 = reinterpret_cast<uint64_t>(&link);
  // Without interest a dead connection would still report itself for ever: take it out.
  const int change = !events ? EPOLL_CTL_DEL : !link.interest ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
  if (epoll_ctl(epoll, change, link.fd, &wanted) == 0) link.interest = events;
}

void Tcp::Impl::close_link(Link& link) {
  if (link.state == LinkState::closed) return;
  HEADWAY_CHECK((link.state != LinkState::open && link.state != LinkState::broken) ||
                peers[link.peer].link == &link);
  if (link.state == LinkState::broken) --broken_links;
  set_busy(link, false);
  if ((link.state == LinkState::open || link.state == LinkState::broken) &&
      peers[link.peer].link == &link) {
    peers[link.peer].link = nullptr;
    links.remove(&link);
  }
  close_fd(link.fd);
  (void)keep_reserve();  // before anybody else takes that room
  link.state = LinkState::closed;
  base::heap_free(link.rx, rx_bytes);
  base::heap_free(link.block, link.block_size);
  link.rx = link.block = nullptr;
  link.next = graveyard;
  graveyard = &link;
}

void Tcp::Impl::bury() {
  while (Link* link = graveyard) {
    graveyard = link->next;
    base::heap_free(link, sizeof(Link));
  }
}

// An open connection is over before its time; the Receiver is told once.
void Tcp::Impl::fail_link(Link& link, Outcome why, const char* what, int error) {
  const uint32_t peer = link.peer;
  Line story;
  story.add(config.whom).number(config.rank).add(" (");
  add_address(story, link.local);
  story.add(") lost its connection to ").add(config.whom).number(peer).add(" (");
  add_address(story, link.remote);
  story.add(" port ").number(link.remote_port).add("): ").add(what);
  if (error) story.add(": ").add(error_words(error));
  peers[peer].lost = true;
  close_link(link);
  HEADWAY_CHECK(reaping);
  receiver->lost(peer, why, story.text);
}

void Tcp::Impl::fail_garbage(Link& link, const FrameHeader& header) {
  ++counters.garbage;
  fail_link(link, Outcome::bad_data,
            garbage_story(*receiver, header, "it sent a frame that makes no sense", "").c_str(), 0);
}

// Connections on which a write failed. What the peer said before is still read.
bool Tcp::Impl::collect_broken() {
  for (Link *link = links.first(), *next; link && broken_links; link = next) {
    next = link->list_next;
    if (link->state != LinkState::broken) continue;
    uint64_t budget;
    do {
      budget = turn_bytes;
    } while (link->state == LinkState::broken && read_link(*link, budget));
    if (link->state == LinkState::broken && may_end(*link)) {
      end_link(*link);
    } else if (link->state == LinkState::broken) {
      const bool memory = link->error == ENOMEM;
      fail_link(*link, memory ? Outcome::no_memory : Outcome::peer_lost, "sending failed",
                link->error);
    }
  }
  return true;
}

void Tcp::Impl::set_resting(bool on) {
  resting = on;
  if (!on) hosts.go_on();
  for (Link* link = links.first(); link; link = link->list_next) say_whether_resting(*link);
}

// An open link without that word has just been made, or waits to write it.
bool Tcp::Impl::is_delivered() const {
  for (const Link* link = links.first(); link; link = link->list_next) {
    if (link->state != LinkState::open) continue;
    int queued = 0;
    if (!link->said_rest || link->busy()) return false;
    if (ioctl(link->fd, SIOCOUTQ, &queued) == 0 && queued > 0) return false;
  }
  return true;
}

void Tcp::Impl::release_all() {
  for (Meeting *meeting = meetings, *next; meeting; meeting = next) {
    next = meeting->next;
    drop_outgoing(*meeting);
    if (meeting->incoming) close_link(*meeting->incoming);
    end_meeting(*meeting);
  }
  while (Link* link = links.first()) close_link(*link);
  for (uint32_t peer = 0; peers && peer < config.size; ++peer) {
    base::heap_free(peers[peer].card, peers[peer].card_size);
  }
  while (strangers) dismiss(*strangers, false);
  bury();
  base::heap_free(peers, sizeof(Peer) * config.size);
  base::heap_free(scratch, block_bytes);
  peers = nullptr;
  scratch = nullptr;
  config.size = 0;
  close_fd(listener);
  close_fd(epoll);
  close_fd(timer);
  close_fd(reserve);
}

Outcome Tcp::start(const Config& config, Receiver* receiver) {
  if (impl_ && impl_->epoll >= 0) return Outcome::bad_argument;
  if (!impl_) {
    void* memory = base::heap_allocate(sizeof(Impl));
    if (!memory) return Outcome::no_memory;
    impl_ = static_cast<Impl*>(memory);
  }
  new (impl_) Impl();
  const Outcome done = impl_->open(config, receiver);
  if (done != Outcome::ok) impl_->release_all();
  return done;
}

const char* Tcp::explanation() const { return impl_ ? impl_->explanation.text : ""; }

size_t Tcp::card(char* out, size_t room) const {
  size_t length = 0;
  return impl_ && write_card(impl_->own, out, room, length) ? length : 0;
}

Outcome Tcp::set_card(uint32_t peer, const char* card) {
  Card read;
  if (!impl_ || peer >= impl_->config.size || !read_card(card, read)) return Outcome::bad_argument;
  impl_->peers_elsewhere |= !read.host || read.host != impl_->own.host;
  Peer& each = impl_->peers[peer];
  const size_t size = strlen(card) + 1;
  char* copy = static_cast<char*>(base::heap_allocate(size));
  if (!copy) return Outcome::no_memory;
  memcpy(copy, card, size);
  base::heap_free(each.card, each.card_size);
  each.card = copy;
  each.card_size = uint16_t(size);
  return Outcome::ok;
}

uint64_t host_of(const char* card) {
  Card read;
  return read_card(card, read) ? read.host : 0;
}

Outcome Tcp::watch_hosts(const HostPlan& plan, bool in_reap) {
  Card target;
  if (!active() || plan.target >= impl_->config.size || !impl_->peers[plan.target].card ||
      !read_card(impl_->peers[plan.target].card, target)) {
    return Outcome::bad_argument;
  }
  HostWatch& hosts = impl_->hosts;
  const Outcome started =
      hosts.start(plan, impl_->config, impl_->key, target, impl_->own.host, impl_->scope);
  if (started != Outcome::ok || !in_reap) return started;
  impl_->hosts_in_reap = watch(impl_->epoll, hosts.descriptor(), hosts_mark);
  return impl_->hosts_in_reap ? Outcome::ok : Outcome::no_resource;
}

int Tcp::hosts_fd() const { return impl_ ? impl_->hosts.descriptor() : -1; }

void Tcp::look_at_hosts() {
  if (impl_) impl_->hosts.look();
}

void Tcp::pause_watch() {
  if (impl_) impl_->hosts.stop();
}

void Tcp::end_watch() {
  if (impl_) impl_->hosts.close();
}

void Tcp::all_cards_set() {
  if (active()) impl_->keep_to_loopback();
}

Outcome Tcp::connect(uint32_t, uint32_t& frame_max) {
  frame_max = longest_frame;
  return Outcome::ok;
}

Push Tcp::push(uint32_t peer, const FrameHeader& header, const void* head, uint32_t n,
               const Feed* feed, uint64_t cookie, transports::Urgency) {
  return impl_->push(peer, header, head, n, feed, cookie);
}

bool Tcp::writable(uint32_t peer) const {
  const Link* link = peer < impl_->config.size ? impl_->peers[peer].link : nullptr;
  return link && link->state == LinkState::open && !link->busy();
}

uint64_t Tcp::rate(uint32_t peer) const {
  const Link* link = peer < impl_->config.size ? impl_->peers[peer].link : nullptr;
  return link ? link->rate : 0;
}

// What has left is on its way until the far end's answer is here: a quarter of that for chance.
uint64_t Tcp::enough(uint32_t peer, uint64_t us, uint64_t fastest) const {
  const Link* link = peer < impl_->config.size ? impl_->peers[peer].link : nullptr;
  if (!link || link->best_rate > fastest || !link->best_rate) return 0;
  const uint64_t rtt_us = link->least_rtt_us;
  const uint64_t bytes = link->best_rate * (rtt_us + rtt_us / 4 + us) / 1'000'000;
  return bytes < least_enough ? least_enough : bytes;
}

uint64_t Tcp::in_flight(uint32_t peer) const {
  const Link* link = peer < impl_->config.size ? impl_->peers[peer].link : nullptr;
  if (!link || link->state != LinkState::open) return 0;
  int queued = 0;
  if (ioctl(link->fd, SIOCOUTQ, &queued) != 0 || queued < 0) queued = 0;
  const uint64_t fed = link->feeding ? link->feed.length - link->feed_from : 0;
  return uint64_t(queued) + (link->block_tail - link->block_head) + fed;
}

bool Tcp::reap(uint64_t budget) { return active() && impl_->reap(budget); }

bool Tcp::reap_peer(uint32_t peer, uint64_t budget) {
  return active() && impl_->reap_peer(peer, budget);
}

bool Tcp::active() const { return impl_ && impl_->epoll >= 0; }

bool Tcp::writing() const { return active() && (impl_->busy_links || impl_->meetings); }

void Tcp::expect(uint32_t peer, uint64_t rest) {
  Link* link = peer < impl_->config.size ? impl_->peers[peer].link : nullptr;
  if (!link || link->state != LinkState::open) return;
  const uint32_t lowat = rest < expect_min ? 1 : uint32_t(rest < expect_max ? rest : expect_max);
  if (lowat == link->receive_lowat) return;
  const int value = int(lowat);
  if (setsockopt(link->fd, SOL_SOCKET, SO_RCVLOWAT, &value, sizeof value) == 0) {
    link->receive_lowat = lowat;
  }
}

void Tcp::hurry(uint32_t peer, bool on) {
  Link* link = peer < impl_->config.size ? impl_->peers[peer].link : nullptr;
  if (!link || link->state != LinkState::open || link->hurried == on) return;
  link->hurried = on;
  impl_->bound_flight(*link);
}

void Tcp::redirect(uint32_t peer, const void* token, ptrdiff_t by) {
  Link* link = peer < impl_->config.size ? impl_->peers[peer].link : nullptr;
  if (link && link->in_body && link->landing.token == token) link->landing.flat += by;
}

int Tcp::descriptor() const { return impl_ ? impl_->epoll : -1; }

void Tcp::rest() {
  if (active()) impl_->set_resting(true);
}

void Tcp::wake() {
  if (active()) impl_->set_resting(false);
}

bool Tcp::is_delivered() const { return !active() || impl_->is_delivered(); }

void Tcp::finish() {
  if (active()) impl_->release_all();
}

void Tcp::abandon() {
  if (!active()) return;
  // The epoll instance is the parent's too: nothing may be taken out of it, only closed.
  for (Link* link = impl_->links.first(); link; link = link->list_next) close_fd(link->fd);
  for (const Meeting* meeting = impl_->meetings; meeting; meeting = meeting->next) {
    if (meeting->incoming) close_fd(meeting->incoming->fd);
    if (meeting->outgoing) close_fd(meeting->outgoing->fd);
  }
  for (Link* link = impl_->strangers; link; link = link->next) close_fd(link->fd);
  impl_->hosts.abandon();
  close_fd(impl_->listener);
  close_fd(impl_->epoll);
  close_fd(impl_->timer);
  close_fd(impl_->reserve);
  impl_->config.size = 0;  // push() and the others find nobody any more
}

const Counters& Tcp::counters() const { return impl_->counters; }
const void* Tcp::first_meeting() const { return &impl_->meetings; }

}  // namespace headway::tcp
