// Exchange: one host's part of a measured exchange over plain TCP: connect to the peers, then, step
// by step, send and receive so many bytes to and from each as fast as the sockets take them.
// Thread: the host's own process, single-threaded. Owner: probe.cc; owns its sockets.
// Invariant: one connection a pair of hosts, both directions on it, nothing on it between steps.
#pragma once

#include <netinet/in.h>
#include <stdint.h>

#include <string>
#include <vector>

namespace headway::cluster {

struct Peer {
  int host = -1;
  int socket = -1;
  bool sends_here = false;  // this peer sends to us
  bool gets_ours = false;   // we send to this peer
  uint64_t to_send = 0;
  uint64_t to_receive = 0;
};

struct StepTimes {
  uint64_t begun = 0;     // nanoseconds of CLOCK_MONOTONIC
  uint64_t received = 0;  // the last byte from the last peer; 0 if none sends here
};

uint64_t now_ns();
void sleep_until(uint64_t when_ns);
[[noreturn]] void fail(const std::string& story);

class Exchange {
 public:
  explicit Exchange(int host) : host_(host) {}

  // The pair's lower number listens, the higher one connects; names are resolved as a user's
  // program would. Everybody listens before anybody connects (the caller's barrier between).
  void listen_here(int port);
  void connect_all(std::vector<Peer> peers, int port);

  // One step: starts at the given moment.
  StepTimes run(uint64_t start_ns, uint64_t bytes);

 private:
  void accept_one();
  bool advance_send(Peer& peer);
  bool advance_receive(Peer& peer);

  int host_;
  int listener_ = -1;
  std::vector<Peer> peers_;
  std::vector<char> out_;
  std::vector<char> in_;
};

}  // namespace headway::cluster
