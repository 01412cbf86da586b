// Sending: straight from push() into the socket. Only a frame that the socket does not take whole
// leaves something behind.
#include <cerrno>
#include <linux/tcp.h>  // newer than libc's: tcpi_delivery_rate
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/check.h"
#include "base/heap.h"
#include "transports/tcp/detail/impl.h"

namespace headway::tcp {
namespace {

constexpr size_t small_frame = 2048;   // copied behind its header: one plain send
constexpr size_t copied_rest = 16384;  // a shorter rest is copied, so that the frame is done
constexpr uint32_t lowat_max = 1 << 20;
constexpr uint64_t widest_flight = 4 << 20;  // asked for; the system gives what it allows

// Bytes taken by the socket; 0: none now; -1: errno.
ssize_t write_parts(int fd, const iovec* parts, size_t count) {
  msghdr message = {};
  message.msg_iov = const_cast<iovec*>(parts);
  message.msg_iovlen = count;
  for (;;) {
    const ssize_t n = sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n >= 0) return n;
    if (errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM) return 0;
    if (errno != EINTR) return -1;
  }
}

ssize_t write_plain(int fd, const void* data, size_t bytes) {
  for (;;) {
    const ssize_t n = send(fd, data, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n >= 0) return n;
    if (errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM) return 0;
    if (errno != EINTR) return -1;
  }
}

void free_block(Link& link) {
  base::heap_free(link.block, link.block_size);
  link.block = nullptr;
  link.block_size = link.block_head = link.block_tail = 0;
}

}  // namespace

Push Tcp::Impl::push(uint32_t peer, const FrameHeader& header, const void* head, size_t n,
                     const Feed* feed, uint64_t cookie) {
  if (peer >= config.size) return Push::full;
  Link* link = peers[peer].link;
  if (!link) [[unlikely]] {
    want(peer);
    return Push::full;
  }
  if (link->busy() || link->state != LinkState::open) return Push::full;
  HEADWAY_CHECK(n + (feed ? feed->length : 0) == header.length);
  const size_t whole = sizeof header + header.length;
  if (feed && !feed->length) feed = nullptr;
  if (feed && !feed->flat) return push_packed(*link, header, head, n, *feed, cookie);
  if (whole > small_frame) return push_flat(*link, header, head, n, feed, cookie);
  char frame[small_frame];
  memcpy(frame, &header, sizeof header);
  if (n) memcpy(frame + sizeof header, head, n);
  if (feed) memcpy(frame + sizeof header + n, feed->flat, feed->length);
  const ssize_t took = write_plain(link->fd, frame, whole);
  ++counters.writes;
  if (took == ssize_t(whole)) [[likely]] {
    ++counters.frames_out;
    counters.bytes_out += whole;
    return Push::done;
  }
  if (took < 0) {
    break_link(*link, errno);
    return Push::full;
  }
  counters.bytes_out += size_t(took);
  return keep(*link, frame + took, whole - size_t(took)) ? half_written(*link, nullptr, 0, 0)
                                                         : Push::full;
}

Push Tcp::Impl::push_flat(Link& link, const FrameHeader& header, const void* head, size_t n,
                          const Feed* feed, uint64_t cookie) {
  const uint64_t fed = feed ? feed->length : 0;
  const size_t front = sizeof header + n;
  const iovec parts[3] = {{const_cast<FrameHeader*>(&header), sizeof header},
                          {const_cast<void*>(head), n},
                          {fed ? const_cast<char*>(feed->flat) : nullptr, fed}};
  const ssize_t took = write_parts(link.fd, parts, 3);
  ++counters.writes;
  if (took < 0) {
    break_link(link, errno);
    return Push::full;
  }
  counters.bytes_out += size_t(took);
  const size_t rest = front + fed - size_t(took);
  note_written(link, uint64_t(took));
  if (!rest) {
    ++counters.frames_out;
    return Push::done;
  }
  // What must be copied: all of a short rest, and of a frame that nobody would be told the end of;
  // else only what is not the feed's.
  const bool hold = fed && rest > copied_rest && cookie;
  size_t skip = size_t(took);
  for (int i = 0; i < (hold ? 2 : 3); ++i) {
    const size_t length = parts[i].iov_len;
    const char* base = static_cast<const char*>(parts[i].iov_base);
    if (skip < length && !keep(link, base + skip, length - skip)) return Push::full;
    skip -= skip < length ? skip : length;
  }
  return half_written(link, hold ? feed : nullptr, skip, cookie);
}

Push Tcp::Impl::push_packed(Link& link, const FrameHeader& header, const void* head, size_t n,
                            const Feed& feed, uint64_t cookie) {
  if (!scratch) scratch = static_cast<char*>(base::heap_allocate(block_bytes));
  if (!scratch) return Push::full;
  const size_t front = sizeof header + n;
  size_t packed = 0;
  iovec parts[2] = {{const_cast<FrameHeader*>(&header), sizeof header},
                    {const_cast<void*>(head), n}};
  if (front < block_bytes) {
    packed = block_bytes - front < feed.length ? block_bytes - front : size_t(feed.length);
    memcpy(scratch, &header, sizeof header);
    if (n) memcpy(scratch + sizeof header, head, n);
    feed.copy(0, scratch + front, packed);
    parts[0] = {scratch, front + packed};
    parts[1] = {nullptr, 0};
  }
  const ssize_t took = write_parts(link.fd, parts, 2);
  ++counters.writes;
  if (took < 0) {
    break_link(link, errno);
    return Push::full;
  }
  counters.bytes_out += size_t(took);
  if (size_t(took) == front + feed.length) {
    ++counters.frames_out;
    return Push::done;
  }
  // What is packed stays packed and is copied; the feed goes on behind it.
  size_t skip = size_t(took);
  for (const iovec& part : parts) {
    const char* base = static_cast<const char*>(part.iov_base);
    if (skip < part.iov_len && !keep(link, base + skip, part.iov_len - skip)) return Push::full;
    skip -= skip < part.iov_len ? skip : part.iov_len;
  }
  return half_written(link, packed < feed.length ? &feed : nullptr, packed, cookie);
}

void Tcp::Impl::set_busy(Link& link, bool busy) {
  if (busy == link.counted_busy) return;
  link.counted_busy = busy;
  busy_links += busy ? 1 : -1;
  receiver->unsent(busy ? 1 : -1);
}

// The rest of a frame waits: in the block, and in `feed` from byte `from` on.
Push Tcp::Impl::half_written(Link& link, const Feed* feed, uint64_t from, uint64_t cookie) {
  ++counters.frames_out;
  set_busy(link, true);
  if (feed) {
    link.feeding = true;
    link.feed = *feed;
    link.feed_from = from;
    link.cookie = cookie;
  }
  if (!link.rate) measure(link);
  if (!link.in_flush) set_interest(link, link.interest | EPOLLOUT);
  return feed ? Push::started : Push::done;
}

// Appends a copy to the block that goes out first. False: no memory, and the frame is torn, so
// the link is broken.
bool Tcp::Impl::keep(Link& link, const void* data, size_t n) {
  if (link.block_tail + n > link.block_size) {
    const size_t kept = link.block_tail - link.block_head;
    const size_t size = kept + n > copied_rest ? kept + n : copied_rest;
    char* bigger = static_cast<char*>(base::heap_allocate(size));
    if (!bigger) {
      break_link(link, ENOMEM);
      return false;
    }
    if (kept) memcpy(bigger, link.block + link.block_head, kept);
    free_block(link);
    link.block = bigger;
    link.block_size = uint32_t(size);
    link.block_tail = uint32_t(kept);
  }
  memcpy(link.block + link.block_tail, data, n);
  link.block_tail += uint32_t(n);
  return true;
}

// Packs the next piece of a feed that is not contiguous. False: no memory.
bool Tcp::Impl::refill(Link& link) {
  const uint64_t rest = link.feed.length - link.feed_from;
  const size_t piece = rest < block_bytes ? size_t(rest) : block_bytes;
  if (link.block_size < piece) {
    free_block(link);
    link.block = static_cast<char*>(base::heap_allocate(piece));
    if (!link.block) return false;
    link.block_size = uint32_t(piece);
  }
  link.feed.copy(link.feed_from, link.block, piece);
  link.feed_from += piece;
  link.block_head = 0;
  link.block_tail = uint32_t(piece);
  return true;
}

// One write of what is half written. Bytes moved, 0, or -1 with errno.
ssize_t Tcp::Impl::write_more(Link& link) {
  const bool packed = link.feeding && !link.feed.flat;
  if (packed && link.block_head == link.block_tail && !refill(link)) {
    errno = ENOMEM;
    return -1;
  }
  const size_t kept = link.block_tail - link.block_head;
  const size_t fed = link.feeding && !packed ? size_t(link.feed.length - link.feed_from) : 0;
  const iovec parts[2] = {{link.block + link.block_head, kept},
                          {const_cast<char*>(link.feed.flat) + link.feed_from, fed}};
  const ssize_t took = kept && fed ? write_parts(link.fd, parts, 2)
                       : kept      ? write_plain(link.fd, parts[0].iov_base, kept)
                                   : write_plain(link.fd, parts[1].iov_base, fed);
  ++counters.writes;
  if (took <= 0) return took;
  const size_t from_block = size_t(took) < kept ? size_t(took) : kept;
  link.block_head += uint32_t(from_block);
  if (!packed) link.feed_from += size_t(took) - from_block;
  counters.bytes_out += size_t(took);
  note_written(link, uint64_t(took));
  return took;
}

// Goes on with what is half written. True if a byte moved.
bool Tcp::Impl::flush(Link& link) {
  bool moved = false;
  link.in_flush = true;
  while (link.busy() && link.state == LinkState::open) {
    const ssize_t took = write_more(link);
    if (took < 0) break_link(link, errno);
    if (took <= 0) break;
    moved = true;
    if (link.block_head != link.block_tail) continue;
    if (link.feeding && link.feed_from < link.feed.length) continue;
    const bool report = link.feeding;
    link.feeding = false;
    free_block(link);
    set_busy(link, false);
    if (report) receiver->sent(link.peer, link.cookie);  // it may push the next frame
    break;
  }
  link.in_flush = false;
  if (link.state != LinkState::open) return true;
  set_interest(link, uint32_t(link.busy() ? EPOLLIN | EPOLLOUT : EPOLLIN));
  say_whether_resting(link);
  return moved;
}

// While it is the link that bounds what goes, the kernel knows its rate. What may lie unsent in the
// socket follows it: two milliseconds' worth. More would keep urgent frames waiting behind it, less
// would wake the message thread too often.
void Tcp::Impl::measure(Link& link) {
  link.unmeasured = 0;
  tcp_info info = {};
  socklen_t length = sizeof info;
  if (getsockopt(link.fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) return;
  if (!info.tcpi_delivery_rate) return;
  if (!info.tcpi_delivery_rate_app_limited) {
    const uint64_t faded = link.best_rate - link.best_rate / 16;
    link.best_rate = info.tcpi_delivery_rate > faded ? info.tcpi_delivery_rate : faded;
    link.least_rtt_us = info.tcpi_min_rtt;
  } else if (!link.busy()) {
    return;  // it was not the link
  }
  link.rate = info.tcpi_delivery_rate;
  if (link.hurried) {
    bound_flight(link);
    return;
  }
  uint64_t lowat = link.rate / 500;
  if (lowat < lowat_min) lowat = lowat_min;
  if (lowat > lowat_max) lowat = lowat_max;
  if (lowat * 4 >= link.send_lowat * 3ull && lowat * 4 <= link.send_lowat * 5ull) return;
  set_send_lowat(link, uint32_t(lowat));
}

void Tcp::Impl::set_send_lowat(Link& link, uint32_t bytes) {
  const int value = int(bytes);
  if (setsockopt(link.fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &value, sizeof value) == 0) {
    link.send_lowat = bytes;
  }
}

// What a frame waits for is not only what lies unsent in the socket: a window that has grown over
// many messages goes out at once when the next one begins, and fills the queues of the network (at
// 100 Mbit/s 20 ms were seen). The system doubles what it is given: two milliseconds' worth.
void Tcp::Impl::bound_flight(Link& link) {
  uint64_t bytes = widest_flight;
  if (link.hurried) {
    if (link.send_lowat != lowat_min) set_send_lowat(link, lowat_min);
    bytes = link.rate / 1000 < lowat_min / 2 ? lowat_min / 2 : link.rate / 1000;
  }
  const int value = int(bytes < widest_flight ? bytes : widest_flight);
  (void)setsockopt(link.fd, SOL_SOCKET, SO_SNDBUF, &value, sizeof value);
}

// A write failed. The Receiver hears of it from the next reap(); the socket itself stays readable
// until then, for the peer's last frames may be in it.
void Tcp::Impl::break_link(Link& link, int error) {
  if (link.state != LinkState::open) return;
  set_busy(link, false);
  link.feeding = false;
  link.block_head = link.block_tail = 0;
  link.state = LinkState::broken;
  link.error = error;
  ++broken_links;
  arm_timer();  // wakes a sleeper even if the socket itself stays quiet
}

// A word that waits for a half-written frame: flush() comes back here.
void Tcp::Impl::say_whether_resting(Link& link) {
  if (link.said_rest == resting || link.busy() || link.state != LinkState::open) return;
  link.said_rest = resting;
  FrameHeader word;
  word.kind = resting ? rest_kind : return_kind;
  const ssize_t took = write_plain(link.fd, &word, sizeof word);
  if (took < 0) {
    break_link(link, errno);
    return;
  }
  const char* rest = reinterpret_cast<const char*>(&word) + took;
  if (size_t(took) < sizeof word && keep(link, rest, sizeof word - size_t(took))) {
    (void)half_written(link, nullptr, 0, 0);
  }
}

}  // namespace headway::tcp
