#include "exchange.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

namespace headway::cluster {

namespace {

constexpr size_t kPiece = 256 * 1024;
constexpr int kConnectTries = 200;

std::string host_name(int host) {
  std::string name(1, 'h');
  name += std::to_string(host);
  return name;
}

void no_delay(int socket) {
  int one = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

void write_whole(int socket, const void* data, size_t bytes) {
  if (send(socket, data, bytes, MSG_NOSIGNAL) != static_cast<ssize_t>(bytes))
    fail(std::string("greeting a peer: ") + strerror(errno));
}

sockaddr_in address_of(int host, int port) {
  std::string name = host_name(host);
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  int code = getaddrinfo(name.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (code != 0) fail(name + ": " + gai_strerror(code));
  sockaddr_in address;
  memcpy(&address, found->ai_addr, sizeof address);
  freeaddrinfo(found);
  return address;
}

int connect_to(int host, int port) {
  sockaddr_in address = address_of(host, port);
  for (int attempt = 0; attempt < kConnectTries; ++attempt) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) fail(std::string("socket: ") + strerror(errno));
    if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return fd;
    int code = errno;
    close(fd);
    if (code != ECONNREFUSED && code != ETIMEDOUT && code != EAGAIN)
      fail("connect to " + host_name(host) + ": " + strerror(code));
    sleep_until(now_ns() + 20'000'000);
  }
  fail(host_name(host) + " takes no connection");
}

}  // namespace

uint64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(t.tv_nsec);
}

void sleep_until(uint64_t when_ns) {
  timespec t{static_cast<time_t>(when_ns / 1'000'000'000u),
             static_cast<long>(when_ns % 1'000'000'000u)};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, nullptr) == EINTR) {
  }
}

void fail(const std::string& story) {
  fprintf(stderr, "cluster-probe: %s\n", story.c_str());
  _exit(1);
}

void Exchange::listen_here(int port) {
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  int one = 1;
  setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  if (bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      listen(listener_, 1024) != 0)
    fail("listen on port " + std::to_string(port) + ": " + strerror(errno));
}

void Exchange::accept_one() {
  int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  int32_t who = -1;
  if (fd < 0 || recv(fd, &who, sizeof who, MSG_WAITALL) != sizeof who)
    fail(std::string("accept: ") + strerror(errno));
  auto peer = std::find_if(peers_.begin(), peers_.end(), [&](Peer& p) { return p.host == who; });
  if (peer == peers_.end() || peer->socket >= 0) fail("a connection of nobody we know");
  peer->socket = fd;
}

void Exchange::connect_all(std::vector<Peer> peers, int port) {
  peers_ = std::move(peers);
  // The next host first, as every good all-to-all does.
  std::sort(peers_.begin(), peers_.end(), [this](const Peer& a, const Peer& b) {
    return static_cast<unsigned>(a.host - host_) < static_cast<unsigned>(b.host - host_);
  });
  out_.assign(kPiece, 'x');
  in_.resize(kPiece);
  int expected = 0;
  for (Peer& peer : peers_) {
    if (peer.host > host_) {
      ++expected;
      continue;
    }
    peer.socket = connect_to(peer.host, port);
    int32_t me = host_;
    write_whole(peer.socket, &me, sizeof me);
  }
  while (expected-- > 0) accept_one();
  for (Peer& peer : peers_) {
    no_delay(peer.socket);
    fcntl(peer.socket, F_SETFL, fcntl(peer.socket, F_GETFL) | O_NONBLOCK);
  }
}

// True when nothing is left to send; false when the socket is full.
bool Exchange::advance_send(Peer& peer) {
  while (peer.to_send > 0) {
    size_t piece = std::min<uint64_t>(peer.to_send, kPiece);
    ssize_t sent = send(peer.socket, out_.data(), piece, MSG_NOSIGNAL);
    if (sent < 0) {
      if (errno == EAGAIN || errno == EINTR) return false;
      fail("send to " + host_name(peer.host) + ": " + strerror(errno));
    }
    peer.to_send -= static_cast<uint64_t>(sent);
  }
  return true;
}

// True when everything of this step has arrived.
bool Exchange::advance_receive(Peer& peer) {
  while (peer.to_receive > 0) {
    size_t piece = std::min<uint64_t>(peer.to_receive, kPiece);
    ssize_t got = recv(peer.socket, in_.data(), piece, 0);
    if (got == 0) fail(host_name(peer.host) + " has closed its connection");
    if (got < 0) {
      if (errno == EAGAIN || errno == EINTR) return false;
      fail("receive from " + host_name(peer.host) + ": " + strerror(errno));
    }
    peer.to_receive -= static_cast<uint64_t>(got);
  }
  return true;
}

StepTimes Exchange::run(uint64_t start_ns, uint64_t bytes) {
  StepTimes times;
  int sends = 0;
  int receives = 0;
  int poller = epoll_create1(EPOLL_CLOEXEC);
  for (size_t i = 0; i < peers_.size(); ++i) {
    Peer& peer = peers_[i];
    peer.to_send = peer.gets_ours ? bytes : 0;
    peer.to_receive = peer.sends_here ? bytes : 0;
    sends += peer.gets_ours;
    receives += peer.sends_here;
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = i;
    if (epoll_ctl(poller, EPOLL_CTL_ADD, peer.socket, &event) != 0) fail("epoll_ctl");
  }
  sleep_until(start_ns);
  times.begun = now_ns();
  for (size_t i = 0; i < peers_.size(); ++i) {
    Peer& peer = peers_[i];
    bool left = peer.gets_ours && !advance_send(peer);
    if (peer.gets_ours && !left) --sends;
    epoll_event event{};
    event.events = left ? EPOLLIN | EPOLLOUT : EPOLLIN;
    event.data.u64 = i;
    if (epoll_ctl(poller, EPOLL_CTL_MOD, peer.socket, &event) != 0) fail("epoll_ctl");
  }
  while (sends > 0 || receives > 0) {
    epoll_event events[64];
    int ready = epoll_wait(poller, events, 64, -1);
    for (int e = 0; e < ready; ++e) {
      Peer& peer = peers_[events[e].data.u64];
      if (peer.to_receive > 0 && advance_receive(peer) && --receives == 0)
        times.received = now_ns();
      if (peer.to_send > 0 && advance_send(peer)) {
        --sends;
        epoll_event event{};
        event.events = EPOLLIN;
        event.data.u64 = events[e].data.u64;
        if (epoll_ctl(poller, EPOLL_CTL_MOD, peer.socket, &event) != 0) fail("epoll_ctl");
      }
    }
  }
  close(poller);
  return times;
}

}  // namespace headway::cluster
