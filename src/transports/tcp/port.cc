#include "transports/tcp/port.h"

#include <cerrno>
#include <new>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/descriptors.h"
#include "base/heap.h"
#include "transports/tcp/detail/address.h"
#include "transports/tcp/detail/impl.h"

namespace headway::tcp {
namespace {

constexpr int waiting_room = 128;  // who has come and was not taken in yet

// One socket for both families where the system can.
int listen_at(int family, const Card& card, uint32_t scope, uint16_t& port) {
  SocketAddress where;
  if (card.count == 1) {
    if (card.addresses[0].family != family) return -1;
    where = socket_address(card.addresses[0], 0, scope);
  } else {
    Address any;
    any.family = uint8_t(family);
    where = socket_address(any, 0, 0);
  }
  const int fd = base::with_room(
      [&] { return socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0); });
  if (fd < 0) return -1;
  const int off = 0;
  if (family == AF_INET6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  SocketAddress bound;
  bound.length = sizeof bound.storage;
  if (bind(fd, where.raw(), where.length) == 0 && listen(fd, waiting_room) == 0 &&
      getsockname(fd, bound.raw(), &bound.length) == 0) {
    from_socket(bound, &port);
    return fd;
  }
  const int error = errno;
  close(fd);
  errno = error;
  return -1;
}

void keep_family(Card& card, int family) {
  uint8_t kept = 0;
  for (uint8_t i = 0; i < card.count; ++i) {
    if (card.addresses[i].family == family) card.addresses[kept++] = card.addresses[i];
  }
  card.count = kept;
}

}  // namespace

int open_port(const char* interface, char (&out)[port_card_room], PortStory& story) {
  Card card;
  Line why;
  uint32_t scope = 0;
  if (!list_own(interface, card, scope, why)) {
    story << why.text;
    return -1;
  }
  card.host = host_identity();
  int fd = listen_at(AF_INET6, card, scope, card.port);
  if (fd < 0) {
    fd = listen_at(AF_INET, card, scope, card.port);
    if (fd >= 0) keep_family(card, AF_INET);
  }
  size_t length = 0;
  if (fd >= 0 && card.count > 0 && write_card(card, out, sizeof out, length)) return fd;
  story << "the system gives no socket to listen at (" << error_words(errno) << ")";
  if (fd >= 0) close(fd);
  return -1;
}

int accept_at(int listener) {
  const int fd = base::with_room(
      [&] { return accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC); });
  if (fd >= 0) set_link_options(fd);
  if (fd < 0 && (errno == EMFILE || errno == ENFILE)) {
    // The system asks for room before it looks whether anybody has come.
    pollfd entry = {listener, POLLIN, 0};
    const int error = errno;
    errno = poll(&entry, 1, 0) == 1 ? error : EAGAIN;
  }
  return fd;
}

bool is_port_card(const char* card) {
  Card read;
  return read_card(card, read);
}

struct Dial::Way {
  uint16_t port = 0;
  uint32_t scope = 0;
  size_t count = 0, index = 0;
  Candidate candidates[max_addresses];
};

Dial::~Dial() {
  if (fd_ >= 0) close(fd_);
  base::heap_free(way_, sizeof(Way));
}

void Dial::start(const char* text, uint64_t patience_us) {
  patience_ns_ = patience_us * 1000;
  Card card, own;
  Line why;
  void* memory = base::heap_allocate(sizeof(Way));
  if (!memory) {
    story_ << "no memory";
    return;
  }
  way_ = new (memory) Way;
  if (!read_card(text, card)) return;
  (void)list_own("", own, way_->scope, why);
  way_->port = card.port;
  way_->count = order_candidates(card, host_identity(), way_->scope, way_->candidates);
  (void)next();
}

// Begins with the next address. False: there is none left.
bool Dial::next() {
  while (way_ && way_->index < way_->count) {
    const Address& address = way_->candidates[way_->index].address;
    const SocketAddress where = socket_address(address, way_->port, way_->scope);
    fd_ = base::with_room([&] {
      return socket(where.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    });
    until_ns_ = base::now_ns() + patience_ns_;
    if (fd_ >= 0 && (connect(fd_, where.raw(), where.length) == 0 || errno == EINPROGRESS)) {
      return true;
    }
    note(errno);
  }
  return false;
}

// That address is not the way.
void Dial::note(int error) {
  starved_ &= error == EMFILE || error == ENFILE;
  Line line;
  add_address(line, way_->candidates[way_->index].address);
  if (story_.size()) story_ << "; ";
  story_ << line.text << " port " << way_->port << ": " << error_words(error);
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
  ++way_->index;
}

Dial::State Dial::look() {
  if (fd_ < 0) return State::failed;
  pollfd entry = {fd_, POLLOUT, 0};
  const int ready = poll(&entry, 1, 0);
  int error = 0;
  if (ready > 0) {
    socklen_t size = sizeof error;
    if (getsockopt(fd_, SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
    if (error == 0) return State::connected;
  } else if (base::now_ns() >= until_ns_) {
    error = ETIMEDOUT;
  } else {
    return State::under_way;
  }
  note(error);
  return next() ? State::under_way : State::failed;
}

int Dial::take() {
  const int fd = fd_;
  fd_ = -1;
  set_link_options(fd);
  return fd;
}

}  // namespace headway::tcp
