// Receiving: one read takes the header and, where it fits, the body and the frames behind it; the
// rest of a longer body goes straight to its place.
#include <cerrno>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <utility>

#include "base/check.h"

#include "transports/tcp/detail/impl.h"

namespace headway::tcp {
namespace {

// Read into the buffer where a long body is expected next: what lands there is copied once more.
constexpr uint32_t beside_bodies = 4096;
constexpr char cut_short[] =
    "the connection ended in the middle of the job; its process has probably died";

}  // namespace

// Reads until the socket is empty, the turn is over or the link has ended. True if a byte came.
bool Tcp::Impl::read_link(Link& link, uint64_t& budget) {
  uint64_t turn = budget < turn_bytes ? budget : turn_bytes;
  bool moved = false, again = false;
  while (turn && (link.state == LinkState::open || link.state == LinkState::broken)) {
    size_t asked;
    const ssize_t n = read_once(link, asked);
    ++counters.reads;
    if (n == 0) {
      stream_ended(link, cut_short, 0);
      return true;
    }
    if (n < 0) {
      const int error = errno;
      if (error == EINTR) continue;
      if (error == EAGAIN) break;
      // Once more in any case: a thread of the program may have made the page writable since.
      if (error == EFAULT && (make_room(link) || !std::exchange(again, true))) continue;
      read_failed(link, error);
      return true;
    }
    moved = true;
    again = false;
    counters.bytes_in += size_t(n);
    turn -= turn < size_t(n) ? turn : size_t(n);
    budget -= budget < size_t(n) ? budget : size_t(n);
    parse(link);
    if (size_t(n) < asked) break;  // the socket is empty: level-triggered epoll tells of more
  }
  // Not before: what lay below the mark would wake a sleeper whose work has just been done.
  if (link.receive_lowat != 1 && link.state == LinkState::open) reset_lowat(link);
  return moved;
}

// One read. In a contiguous body: to its place first, what follows into the buffer.
ssize_t Tcp::Impl::read_once(Link& link, size_t& asked) {
  const Landing& to = link.landing;
  if (!link.in_body || !to.flat || link.arrived >= to.length) {
    asked = rx_bytes - link.rx_tail;
    if (link.receive_lowat > beside_bodies && asked > beside_bodies) asked = beside_bodies;
    const ssize_t n = recv(link.fd, link.rx + link.rx_tail, asked, MSG_DONTWAIT);
    if (n > 0) link.rx_tail += uint32_t(n);
    return n;
  }
  HEADWAY_CHECK(link.rx_head == link.rx_tail);  // while a body is read the buffer is empty
  const uint64_t wanted = to.length < link.header.length ? to.length : link.header.length;
  const size_t rest = size_t(wanted - link.arrived);
  const size_t direct = rest < turn_bytes ? rest : turn_bytes;
  const iovec parts[2] = {{to.flat + link.arrived, direct},
                          {link.rx, direct == rest ? size_t(beside_bodies) : 0}};
  asked = direct + parts[1].iov_len;
  const ssize_t n = readv(link.fd, parts, 2);
  if (n <= 0) return n;
  const size_t placed = size_t(n) < direct ? size_t(n) : direct;
  link.rx_head = 0;
  link.rx_tail = uint32_t(size_t(n) - placed);
  body_arrived(link, placed);
  return n;
}

// `bytes` more of the body are in place.
void Tcp::Impl::body_arrived(Link& link, uint64_t bytes) {
  link.arrived += bytes;
  HEADWAY_CHECK(link.in_body && link.arrived <= link.header.length);
  const bool whole = link.arrived == link.header.length;
  if (whole) {
    link.in_body = false;
    ++counters.frames_in;
  }
  // Copies: the receiver may push, and what it hears must not change under it.
  const FrameHeader header = link.header;
  const Landing landing = link.landing;
  receiver->landed(link.peer, header, landing, link.arrived);
  if (whole) receiver->end(link.peer, header, landing);
}

// Hands on all that lies in the buffer.
void Tcp::Impl::parse(Link& link) {
  while (link.state == LinkState::open || link.state == LinkState::broken) {
    const uint32_t have = link.rx_tail - link.rx_head;
    if (link.in_body) {
      if (!have) break;
      const uint64_t rest = link.header.length - link.arrived;
      const uint32_t n = have < rest ? have : uint32_t(rest);
      link.landing.store(link.arrived, link.rx + link.rx_head, n);
      link.rx_head += n;
      body_arrived(link, n);
      continue;
    }
    if (have < sizeof(FrameHeader) || !take_frame(link)) break;
  }
  if (link.state == LinkState::closed) return;
  const uint32_t left = link.rx_tail - link.rx_head;
  if (left && link.rx_head) memmove(link.rx, link.rx + link.rx_head, left);
  link.rx_head = 0;
  link.rx_tail = left;
}

// A header lies in the buffer. False: more bytes are needed, or the link is closed.
bool Tcp::Impl::take_frame(Link& link) {
  FrameHeader header;
  memcpy(&header, link.rx + link.rx_head, sizeof header);
  const uint32_t have = link.rx_tail - link.rx_head - uint32_t(sizeof header);
  const bool own = header.kind == rest_kind || header.kind == return_kind;
  if (header.length > config.max_body || (own && header.length)) {
    fail_garbage(link, header);
    return false;
  }
  if (own) {
    link.rx_head += uint32_t(sizeof header);
    link.peer_rests = header.kind == rest_kind;
    // It waits for the acknowledgement before it ends: MPI_Finalize shall not take 40 ms for that.
    const int now = 1;
    if (link.peer_rests) setsockopt(link.fd, IPPROTO_TCP, TCP_QUICKACK, &now, sizeof now);
    return true;
  }
  if (have >= header.length) {
    const char* body = link.rx + link.rx_head + sizeof header;
    link.rx_head += uint32_t(sizeof header) + header.length;
    ++counters.frames_in;
    if (receiver->frame(link.peer, header, body)) return true;
    fail_garbage(link, header);
    return false;
  }
  if (header.length <= always_whole) return false;
  Landing landing;
  if (!receiver->begin(link.peer, header, landing)) {
    fail_garbage(link, header);
    return false;
  }
  link.rx_head += uint32_t(sizeof header);
  link.header = header;
  link.landing = landing;
  link.arrived = 0;
  link.in_body = true;
  return true;
}

// False: nothing has changed since a read found that it may not write to the body's place.
bool Tcp::Impl::make_room(Link& link) {
  const Landing& to = link.landing;
  return link.in_body && to.flat && link.arrived < to.length &&
         receiver->make_writable(to.flat + link.arrived, to.length - link.arrived);
}

// Is its end no loss? A peer that rests may end at any time, but not with a message of ours on its
// way to it.
bool Tcp::Impl::may_end(const Link& link) const {
  if (!link.peer_rests || link.in_body || link.rx_tail != link.rx_head) return false;
  const bool unsaid = link.state == LinkState::broken || link.busy();
  return !unsaid || !receiver->needs(link.peer);
}

void Tcp::Impl::end_link(Link& link) {
  const uint32_t peer = link.peer;
  close_link(link);
  receiver->left(peer);
}

// Nothing more can be read.
void Tcp::Impl::stream_ended(Link& link, const char* what, int error) {
  if (may_end(link)) {
    end_link(link);
    return;
  }
  const bool rests = link.peer_rests && !link.in_body;
  fail_link(link, Outcome::peer_lost,
            rests ? "it has finished and ended while a message to it was under way" : what, error);
}

void Tcp::Impl::read_failed(Link& link, int error) {
  if (error == EFAULT) {
    fail_link(link, Outcome::bad_argument, "the receive buffer cannot be written", error);
  } else {
    stream_ended(link, "the connection broke", error);
  }
}

void Tcp::Impl::reset_lowat(Link& link) {
  const int one = 1;
  setsockopt(link.fd, SOL_SOCKET, SO_RCVLOWAT, &one, sizeof one);
  link.receive_lowat = 1;
}

}  // namespace headway::tcp
