// cluster-probe: times plain TCP between the hosts of a simulated cluster. One process a host; a
// message counts as delivered when its last byte has been read. All hosts share one clock, so one
// way is measured, not half a round trip.
//
//   cluster-probe FOLDER HOSTS PATTERN PAUSE_MS REPEATS BYTES...
//   PATTERN: pair:A:B (A sends to B), all (everyone to everyone), shift:K (h to h + K)
//
// Prints a line a size: BYTES and the time of each repeat in microseconds, from the first send to
// the last byte received anywhere. An unmeasured step at each size opens the windows first.
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "exchange.h"

namespace headway::cluster {
namespace {

constexpr int kPort = 7373;

struct Options {
  std::string folder;
  int hosts = 0;
  std::vector<std::pair<int, int>> flows;
  uint64_t pause_ns = 0;
  int repeats = 0;
  std::vector<uint64_t> sizes;
};

// Shared by all processes.
struct Board {
  pthread_barrier_t barrier;
  uint64_t start;
  StepTimes times[512];
};

long number(const char* text, long low, long high) {
  char* end = nullptr;
  long value = strtol(text, &end, 10);
  if (end == text || *end != '\0' || value < low || value > high)
    fail(std::string("'") + text + "' is not a number that fits here");
  return value;
}

std::vector<std::pair<int, int>> flows_of(const std::string& pattern, int hosts) {
  std::vector<std::pair<int, int>> flows;
  int a = 0;
  int b = 0;
  if (sscanf(pattern.c_str(), "pair:%d:%d", &a, &b) == 2) {
    if (a < 0 || b < 0 || a >= hosts || b >= hosts || a == b) fail(pattern + ": no such pair");
    flows.emplace_back(a, b);
  } else if (pattern == "all") {
    for (int i = 0; i < hosts; ++i) {
      for (int j = 0; j < hosts; ++j) {
        if (i != j) flows.emplace_back(i, j);
      }
    }
  } else if (sscanf(pattern.c_str(), "shift:%d", &a) == 1 && a > 0 && a < hosts) {
    for (int i = 0; i + a < hosts; ++i) flows.emplace_back(i, i + a);
  } else {
    fail("'" + pattern + "' is no pattern for " + std::to_string(hosts) + " hosts");
  }
  return flows;
}

std::vector<Peer> peers_of(int host, const Options& options) {
  std::vector<Peer> peers;
  auto peer = [&](int other) -> Peer& {
    for (Peer& p : peers) {
      if (p.host == other) return p;
    }
    peers.emplace_back().host = other;
    return peers.back();
  };
  for (auto [from, to] : options.flows) {
    if (from == host) peer(to).gets_ours = true;
    if (to == host) peer(from).sends_here = true;
  }
  return peers;
}

void enter(const Options& options, int host) {
  std::string path = options.folder + "/h" + std::to_string(host) + ".net";
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0 || setns(fd, CLONE_NEWNET) != 0) fail(path + ": " + strerror(errno));
  close(fd);
  std::string names = options.folder + "/hosts";
  if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0 ||
      mount(names.c_str(), "/etc/hosts", nullptr, MS_BIND, nullptr) != 0)
    fail(std::string("mount /etc/hosts: ") + strerror(errno));
}

void wait_for_all(Board* board) { pthread_barrier_wait(&board->barrier); }

// The measured time of a step, by the first host of those that take part.
double span_us(const Board* board, const std::vector<int>& hosts, const Options& options) {
  uint64_t begun = UINT64_MAX;
  uint64_t received = 0;
  for (int host : hosts) {
    bool sends = std::any_of(options.flows.begin(), options.flows.end(),
                             [host](auto flow) { return flow.first == host; });
    if (sends) begun = std::min(begun, board->times[host].begun);
    received = std::max(received, board->times[host].received);
  }
  return static_cast<double>(received - begun) / 1e3;
}

void serve(int host, const std::vector<int>& hosts, const Options& options, Board* board) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // The network is measured, not who else wants the processor. Without the right to it: as it is.
  sched_param first{1};
  sched_setscheduler(0, SCHED_RR, &first);
  enter(options, host);
  Exchange exchange(host);
  exchange.listen_here(kPort);
  wait_for_all(board);
  exchange.connect_all(peers_of(host, options), kPort);
  bool speaks = host == hosts.front();
  for (uint64_t bytes : options.sizes) {
    if (speaks) printf("%llu", static_cast<unsigned long long>(bytes));
    for (int repeat = -1; repeat < options.repeats; ++repeat) {
      wait_for_all(board);
      if (speaks) board->start = now_ns() + options.pause_ns;
      wait_for_all(board);
      board->times[host] = exchange.run(board->start, bytes);
      wait_for_all(board);
      if (speaks && repeat >= 0) printf(" %.1f", span_us(board, hosts, options));
    }
    if (speaks) {
      printf("\n");
      fflush(stdout);
    }
  }
  wait_for_all(board);  // nobody closes while another still measures
}

int supervise(std::vector<pid_t> children) {
  // Any child that fails would leave the others at a barrier: end them all.
  while (!children.empty()) {
    int status = 0;
    pid_t ended = wait(&status);
    if (ended < 0) {
      if (errno == EINTR) continue;
      return 1;
    }
    children.erase(std::remove(children.begin(), children.end(), ended), children.end());
    if (status != 0) {
      for (pid_t child : children) kill(child, SIGKILL);
      for (pid_t child : children) waitpid(child, nullptr, 0);
      return 1;
    }
  }
  return 0;
}

int run(const Options& options) {
  void* memory =
      mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) fail("mmap");
  Board* board = static_cast<Board*>(memory);
  std::vector<int> hosts;
  for (int host = 0; host < options.hosts; ++host) {
    if (!peers_of(host, options).empty()) hosts.push_back(host);
  }
  pthread_barrierattr_t attributes;
  pthread_barrierattr_init(&attributes);
  pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_barrier_init(&board->barrier, &attributes, static_cast<unsigned>(hosts.size()));
  std::vector<pid_t> children;
  for (int host : hosts) {
    pid_t child = fork();
    if (child < 0) fail(std::string("fork: ") + strerror(errno));
    if (child == 0) {
      serve(host, hosts, options, board);
      exit(0);
    }
    children.push_back(child);
  }
  return supervise(children);
}

}  // namespace
}  // namespace headway::cluster

int main(int argc, char** argv) {
  using namespace headway::cluster;
  if (argc < 7) fail("usage: cluster-probe FOLDER HOSTS PATTERN PAUSE_MS REPEATS BYTES...");
  Options options;
  options.folder = argv[1];
  options.hosts = static_cast<int>(number(argv[2], 2, 512));
  options.flows = flows_of(argv[3], options.hosts);
  options.pause_ns = static_cast<uint64_t>(number(argv[4], 0, 60000)) * 1'000'000u;
  options.repeats = static_cast<int>(number(argv[5], 1, 10000));
  for (int i = 6; i < argc; ++i)
    options.sizes.push_back(static_cast<uint64_t>(number(argv[i], 1, 1L << 40)));
  return run(options);
}
