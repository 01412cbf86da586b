// tcp_pingpong: what the TCP transport costs by itself, without the layers above it. Two processes
// that do nothing else; half a round trip by size, and a stream of frames one way.
//
//   g++ -std=c++20 -O2 -Isrc bench/unit/tcp_pingpong.cc src/transports/tcp/tcp.cc
//       src/transports/tcp/detail/*.cc src/base/heap.cc -o tcp_pingpong
//   tcp_pingpong                      over loopback
//   tcp_pingpong hostA hostB          one process in each of two network namespaces (ip netns)
//   options first: -s BYTES  only this size (may be repeated)
//                  -e  poll through epoll, as a rank with several peers does
//                  -m  buffers as malloc() gives them, 16 bytes off a cache line
//                  -u  do not pin to cores 0 and 1
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sched.h>
#include <string>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "transports/tcp/tcp.h"

namespace {

using namespace headway;
using Clock = std::chrono::steady_clock;

constexpr int batches_wanted = 60;

struct Side : tcp::Receiver {
  tcp::Tcp tcp;
  uint32_t peer = 0;
  bool through_epoll = false;
  uint64_t frames = 0, bytes = 0, sent_frames = 0;
  bool broken = false;
  // Relative to a cache line: 0, or 16 as malloc() gives large blocks (-m). The kernel's copy
  // is 2.5 times slower there on Zen 4, in every program.
  size_t shift = 0;
  std::vector<char> storage = std::vector<char>((4 << 20) + 128);
  char* memory() {
    const auto at = reinterpret_cast<uintptr_t>(storage.data());
    return storage.data() + ((64 - at % 64) % 64 + shift);
  }

  bool frame(uint32_t, const FrameHeader& header, const char* body) override {
    memcpy(memory(), body, header.length);
    ++frames;
    bytes += header.length;
    return true;
  }
  bool begin(uint32_t, const FrameHeader& header, Landing& landing) override {
    landing.flat = memory();
    landing.length = header.length;
    return true;
  }
  void unsent(int) override {}
  void landed(uint32_t, const FrameHeader&, const Landing&, uint64_t) override {}
  void end(uint32_t, const FrameHeader& header, const Landing&) override {
    ++frames;
    bytes += header.length;
  }
  void sent(uint32_t, uint64_t) override { ++sent_frames; }
  bool needs(uint32_t) override { return false; }
  void left(uint32_t) override {}
  void lost(uint32_t, Outcome, const char* story) override {
    fprintf(stderr, "tcp_pingpong: %s\n", story);
    broken = true;
  }

  void poll() {
    if (through_epoll) {
      tcp.reap(1 << 20);
    } else {
      tcp.reap_peer(peer, 1 << 20);
    }
    if (broken) _exit(1);
  }
  void send(size_t n) {
    FrameHeader header;
    header.kind = 1;
    header.length = uint32_t(n);
    Feed feed;
    feed.flat = memory();
    feed.length = n;
    const uint64_t before = sent_frames;
    Push result;
    while ((result = tcp.push(peer, header, nullptr, 0, &feed, 0, transports::Urgency::data)) ==
           Push::full)
      poll();
    if (result == Push::started) {
      while (sent_frames == before) poll();
    }
  }
  void await(uint64_t count) {
    while (frames < count) poll();
  }
};

double seconds(Clock::duration d) { return std::chrono::duration<double>(d).count(); }

void ping_pong(Side& side, bool first, size_t n) {
  const int rounds = n <= 16384 ? 100 : n <= 65536 ? 30 : 6;  // short: some escape the neighbours
  std::vector<double> batches;
  const uint64_t writes = side.tcp.counters().writes, reads = side.tcp.counters().reads;
  for (int batch = 0; batch < batches_wanted; ++batch) {
    const auto start = Clock::now();
    for (int i = 0; i < rounds; ++i) {
      const uint64_t have = side.frames;
      if (first) side.send(n);
      side.await(have + 1);
      if (!first) side.send(n);
    }
    batches.push_back(seconds(Clock::now() - start) / rounds / 2 * 1e6);
  }
  std::sort(batches.begin(), batches.end());
  if (first) {
    const tcp::Counters& c = side.tcp.counters();
    const double frames = double(rounds) * batches_wanted;
    printf(
        "%8zu B   %8.2f us one way (lower quartile), median %8.2f, best %8.2f; "
        "%.1f writes, %.1f reads a frame\n",
        n, batches[batches.size() / 4], batches[batches.size() / 2], batches[0],
        double(c.writes - writes) / frames, double(c.reads - reads) / frames);
  }
}

void stream(Side& side, bool first, size_t n) {
  const size_t frames = (n < 4096 ? n * 20000 : size_t(64) << 20) / n;
  double best = 0, sum = 0;
  const int batches = 8;
  for (int batch = 0; batch < batches; ++batch) {
    const uint64_t have = side.frames;
    const auto start = Clock::now();
    if (first) {
      for (size_t i = 0; i < frames; ++i) side.send(n);
      side.await(have + 1);
    } else {
      side.await(have + frames);
      side.send(1);
    }
    const double rate = double(frames) * double(n) / seconds(Clock::now() - start) / 1e6;
    best = std::max(best, rate);
    sum += rate;
  }
  if (first) {
    const tcp::Counters& c = side.tcp.counters();
    printf(
        "%8zu B   %8.0f MB/s mean, %8.0f best   (rate seen by the kernel %.0f MB/s, %llu writes)\n",
        n, sum / batches, best, double(side.tcp.rate(side.peer)) / 1e6,
        static_cast<unsigned long long>(c.writes));
  }
}

void enter_namespace(const char* name) {
  const std::string path = std::string("/var/run/netns/") + name;
  const int fd = open(path.c_str(), O_RDONLY);
  if (fd < 0 || setns(fd, CLONE_NEWNET) != 0) {
    perror(path.c_str());
    _exit(1);
  }
  close(fd);
}

size_t shift = 0;
std::vector<size_t> only;  // sizes to measure, where not all

int run(uint32_t rank, int channel, const char* space, bool pin, bool through_epoll) {
  alarm(300);
  setvbuf(stdout, nullptr, _IOLBF, 0);
  if (space) enter_namespace(space);
  if (pin) {
    cpu_set_t core;
    CPU_ZERO(&core);
    CPU_SET(rank, &core);
    sched_setaffinity(0, sizeof core, &core);
  }
  Side side;
  side.peer = 1 - rank;
  side.shift = shift;
  side.through_epoll = through_epoll;
  tcp::Config config;
  config.rank = rank;
  config.size = 2;
  config.max_body = 4 << 20;
  if (side.tcp.start(config, &side) != Outcome::ok) {
    fprintf(stderr, "tcp_pingpong: %s\n", side.tcp.explanation());
    return 1;
  }
  char mine[1024] = "", theirs[1024] = "";
  side.tcp.card(mine, sizeof mine);
  if (write(channel, mine, sizeof mine) != sizeof mine ||
      recv(channel, theirs, sizeof theirs, MSG_WAITALL) != sizeof theirs ||
      side.tcp.set_card(side.peer, theirs) != Outcome::ok) {
    return 1;
  }
  const bool first = rank == 0;
  const std::vector<size_t> sizes = {1, 1024, 4096, 16384, 65536, 262144, 1048576};
  for (const size_t n : only.empty() ? sizes : only) ping_pong(side, first, n);
  for (const size_t n : only.empty() ? sizes : only) stream(side, first, n);
  side.tcp.rest();
  while (!side.tcp.is_delivered()) side.tcp.reap(UINT64_MAX);  // the alarm ends it, too
  side.tcp.finish();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  bool pin = true, through_epoll = false;
  int at = 1;
  for (; at < argc && argv[at][0] == '-'; ++at) {
    if (!strcmp(argv[at], "-e")) through_epoll = true;
    if (!strcmp(argv[at], "-u")) pin = false;
    if (!strcmp(argv[at], "-m")) shift = 16;
    if (!strcmp(argv[at], "-s") && at + 1 < argc) only.push_back(strtoul(argv[++at], nullptr, 10));
  }
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return 1;
  const char* first = at + 1 < argc ? argv[at] : nullptr;
  const char* second = at + 1 < argc ? argv[at + 1] : nullptr;
  const pid_t child = fork();
  if (child == 0) _exit(run(1, ends[1], second, pin, through_epoll));
  const int rc = run(0, ends[0], first, pin, through_epoll);
  int status = 1;
  waitpid(child, &status, 0);
  return rc ? rc : status != 0;
}
