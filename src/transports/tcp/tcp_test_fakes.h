// For tests of how connections come up: sockets that belong to no rank, and what they say.
// Thread: that of the test, which drives the nodes meanwhile.
#pragma once
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "transports/tcp/detail/handshake.h"
#include "transports/tcp/tcp_test_node.h"

namespace headway::tcp {

// A descriptor that belongs to no rank.
struct Raw {
  int fd = -1;
  explicit Raw(int f) : fd(f) {}
  Raw(Raw&& other) noexcept : fd(std::exchange(other.fd, -1)) {}
  ~Raw() {
    if (fd >= 0) close(fd);
  }
  bool ended() const {  // without waiting
    char byte;
    const ssize_t n = recv(fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK);
    return n == 0 || (n < 0 && errno != EAGAIN);
  }
  void say(const void* data, size_t n) const {
    EXPECT_EQ(send(fd, data, n, MSG_NOSIGNAL), ssize_t(n));
  }
};

inline uint16_t port_of(const TestNode& node) {
  const std::string card = node.card();
  return uint16_t(std::stoi(card.substr(card.find(',', 2) + 1)));
}

inline Raw connect_to(uint16_t port) {
  Raw raw(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(raw.fd, reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
  return raw;
}

// A listener that is no rank; `card` leads to it.
struct FakePeer {
  Raw listener{socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
  uint16_t port = 0;
  explicit FakePeer(const char* address = "127.0.0.1", uint16_t wanted = 0) {
    sockaddr_in any = {};
    any.sin_family = AF_INET;
    any.sin_port = htons(wanted);
    inet_pton(AF_INET, address, &any.sin_addr);
    EXPECT_EQ(bind(listener.fd, reinterpret_cast<sockaddr*>(&any), sizeof any), 0);
    EXPECT_EQ(listen(listener.fd, 16), 0);
    socklen_t length = sizeof any;
    getsockname(listener.fd, reinterpret_cast<sockaddr*>(&any), &length);
    port = ntohs(any.sin_port);
  }
  Raw accept_from(const Nodes& nodes) {
    int fd = -1;
    drive(nodes, [&] { return (fd = accept(listener.fd, nullptr, nullptr)) >= 0; });
    EXPECT_GE(fd, 0);
    return Raw(fd);
  }
};

// A listener whose queue is full: the system drops every further attempt without an answer.
struct DeafPeer : FakePeer {
  std::vector<Raw> queued;
  DeafPeer() {
    EXPECT_EQ(listen(listener.fd, 0), 0);
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (int i = 0; i < 8; ++i) {
      queued.emplace_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      EXPECT_EQ(connect(queued.back().fd, reinterpret_cast<sockaddr*>(&to), sizeof to), -1);
      pollfd p = {queued.back().fd, POLLOUT, 0};
      if (poll(&p, 1, 50) == 0) return;
    }
    ADD_FAILURE() << "the queue never became full";
  }
};

// The card of `node` with another port, or with other addresses.
inline std::string card_for(const TestNode& node, uint16_t port, const char* addresses = nullptr) {
  const std::string card = node.card();
  const size_t first = card.find(',', 2);
  const size_t second = card.find(',', first + 1);
  return card.substr(0, first + 1) + std::to_string(port) + "," +
         (addresses ? addresses : card.substr(second + 1));
}

inline base::HmacKey key_of(const TestNode& node) {
  return key_of(node.config.secret, node.config.job);
}

// What a rank that knows the secret would say: an attempt later than all of the node's own.
inline Hello hello_of(const TestNode& from, uint32_t to) {
  static uint64_t attempts = 1 << 20;
  Hello hello;
  hello.magic = hello_magic;
  hello.version = protocol_version;
  hello.from = from.config.rank;
  hello.to = to;
  hello.size = from.config.size;
  hello.attempt = ++attempts;
  hello.seal = seal_hello(key_of(from), hello);
  return hello;
}

// A rank's Hello to a fake of `peer`.
inline Hello read_hello(const Raw& raw, const Nodes& nodes) {
  Hello hello = {};
  size_t have = 0;
  drive(nodes, [&] {
    const ssize_t n =
        recv(raw.fd, reinterpret_cast<char*>(&hello) + have, sizeof hello - have, MSG_DONTWAIT);
    if (n > 0) have += size_t(n);
    return have == sizeof hello || n == 0;
  });
  EXPECT_EQ(have, sizeof hello);
  return hello;
}

// The right answer to it by who knows the secret of `job`.
inline Answer answer_to(const Hello& hello, const TestNode& job,
                        Verdict verdict = Verdict::accept) {
  Answer answer;
  answer.magic = answer_magic;
  answer.verdict = verdict;
  answer.nonce.bytes[3] = 7;
  answer.seal = seal_answer(key_of(job), hello, answer);
  return answer;
}

// Reads the Hello and says yes.
inline void take(const Raw& dialled, const TestNode& job, const Nodes& nodes) {
  const Answer yes = answer_to(read_hello(dialled, nodes), job);
  dialled.say(&yes, sizeof yes);
}

inline Answer read_answer(const Raw& raw, const Nodes& nodes) {
  Answer answer = {};
  size_t have = 0;
  drive(nodes, [&] {
    const ssize_t n =
        recv(raw.fd, reinterpret_cast<char*>(&answer) + have, sizeof answer - have, MSG_DONTWAIT);
    if (n > 0) have += size_t(n);
    return have == sizeof answer || n == 0;
  });
  EXPECT_EQ(have, sizeof answer);
  return answer;
}

inline void confirm(const Raw& raw, const TestNode& job, const Hello& hello, const Answer& answer) {
  Confirm yes;
  yes.magic = confirm_magic;
  yes.seal = seal_confirm(key_of(job), hello, answer.nonce);
  raw.say(&yes, sizeof yes);
}

// A connection that `to` takes for one of `from`.
inline Raw join_as(const TestNode& from, TestNode& to) {
  Raw raw = connect_to(port_of(to));
  const Hello hello = hello_of(from, to.config.rank);
  raw.say(&hello, sizeof hello);
  const Answer answer = read_answer(raw, {&to});
  EXPECT_EQ(answer.verdict, Verdict::accept);
  confirm(raw, from, hello, answer);
  return raw;
}

inline void rest(const Nodes& nodes, int ms) {
  drive(nodes, [] { return false; }, ms);
}

// True if the two can still talk to each other.
inline void expect_alive(TestNode& a, TestNode& b) {
  const Nodes both = {&a, &b};
  const size_t before = b.frames.size();
  ASSERT_TRUE(push_until_taken(both, [&] { return a.send(b.config.rank, "alive?"); }));
  ASSERT_TRUE(drive(both, [&] { return b.frames.size() == before + 1; }));
  EXPECT_EQ(b.frames.back().body, "alive?");
  EXPECT_TRUE(a.losses.empty());
  EXPECT_TRUE(b.losses.empty());
}

}  // namespace headway::tcp
