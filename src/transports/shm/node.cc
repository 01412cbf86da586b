#include "transports/shm/node.h"

#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/descriptors.h"
#include "base/memory_file.h"
#include "base/spin_lock.h"
#include "base/text.h"
#include "transports/shm/segment.h"

namespace headway::shm {
namespace {

constexpr size_t page_bytes = 4096;
// Of a rank that does not come back by itself: all but one of 1 << this many times it is rung at
// once.
constexpr uint8_t most_vain = 4;

// The segment's first page: proves that what was opened is what was meant.
struct Head {
  uint64_t magic;
  uint64_t cookie;
  uint32_t ranks;
  std::atomic<uint32_t> story_claimed;
  std::atomic<uint64_t> end;  // how the job ends: see packed(); 0: it does not yet
};
constexpr uint64_t end_told = uint64_t(1) << 40;

uint64_t packed(const Ended& ended) {
  return (uint64_t(ended.rank) + 1) | uint64_t(ended.code & 255) << 32 |
         (ended.is_told ? end_told : 0);
}

Ended unpacked(uint64_t word) {
  return {uint32_t(word) - 1, int(word >> 32 & 255), (word & end_told) != 0};
}
constexpr uint64_t head_magic = 0x4865616477617931;  // "Headway1"

Shape shape_for(uint32_t ranks) {
  // Memory grows with the square of the ranks that talk; many ranks get smaller rings.
  if (ranks <= 16) return {64, 128 << 10};
  if (ranks <= 128) return {32, 16 << 10};
  return {16, 16 << 10};
}

}  // namespace

size_t Node::ring_offset(uint32_t from, uint32_t to) const {
  return page_bytes * (1 + places_) + (size_t(from) * ranks_ + to) * shape_.bytes();
}

void Node::plan(uint32_t ranks) {
  places_ = ranks_ = ranks;
  shape_ = shape_for(ranks);
  for (uint32_t i = 0; i < ranks; ++i) callers_[i] = {};
}

Outcome Node::map(uint32_t ranks, int fd) {
  plan(ranks);
  const size_t bytes = ring_offset(ranks, 0);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
  if (memory == MAP_FAILED) return Outcome::no_memory;
  bytes_ = bytes;
  memory_ = static_cast<char*>(memory);
  fd_ = fd;
  for (uint32_t i = 0; i < ranks; ++i) {
    pages_[i] = reinterpret_cast<ProcessPage*>(memory_ + page_bytes * (1 + i));
  }
  return Outcome::ok;
}

Outcome Node::create(uint32_t ranks, char* key, size_t room) {
  if (ranks > max_ranks) return Outcome::no_resource;
  const int fd = base::with_room([] { return memfd_create("headway", MFD_CLOEXEC); });
  if (fd < 0) return Outcome::no_resource;
  plan(ranks);
  const size_t pages = page_bytes * (1 + ranks);
  if (!set_size(fd, off_t(ring_offset(ranks, 0)), off_t(pages))) {
    close(fd);
    return Outcome::no_memory;
  }
  if (const Outcome mapped = map(ranks, fd); mapped != Outcome::ok) {
    close(fd);
    return mapped;
  }
  auto* head = reinterpret_cast<Head*>(memory_);
  head->magic = head_magic;  // all else is zero in new memory
  head->cookie = base::random_cookie();
  head->ranks = ranks;
  base::Text<128> text;
  text << getpid() << ":" << fd << ":" << head->cookie;
  if (text.size() + 1 > room) return Outcome::internal;
  memcpy(key, text.c_str(), text.size() + 1);
  return Outcome::ok;
}

Outcome Node::attach(const char* key, uint32_t ranks) {
  char* rest = nullptr;
  const long pid = strtol(key, &rest, 10);
  if (*rest != ':') return Outcome::bad_data;
  const long number = strtol(rest + 1, &rest, 10);
  if (*rest != ':') return Outcome::bad_data;
  const uint64_t cookie = strtoull(rest + 1, nullptr, 10);
  base::Text<64> path;
  path << "/proc/" << pid << "/fd/" << number;
  const int fd = base::with_room([&] { return open(path.c_str(), O_RDWR | O_CLOEXEC); });
  if (fd < 0) {
    return errno == ENOENT || errno == ESRCH    ? Outcome::peer_lost
           : errno == EMFILE || errno == ENFILE ? Outcome::no_resource
           : errno == ENOMEM                    ? Outcome::no_memory
                                                : Outcome::refused;
  }
  struct stat info {};
  plan(ranks);
  if (fstat(fd, &info) != 0 || info.st_size != off_t(ring_offset(ranks, 0))) {
    close(fd);
    return Outcome::refused;
  }
  if (const Outcome mapped = map(ranks, fd); mapped != Outcome::ok) {
    close(fd);
    return mapped;
  }
  const auto* head = reinterpret_cast<const Head*>(memory_);
  if (head->magic != head_magic || head->cookie != cookie || head->ranks != ranks) {
    detach();
    return Outcome::refused;
  }
  return Outcome::ok;
}

void Node::join(uint32_t local_rank, const base::Doorbell& bell) {
  self_ = local_rank;
  // Where Yama restricts tracing, this lets the other ranks of the node copy from our memory.
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
  bell_ = &bell;
  ProcessPage& page = own();
  page.pid.store(getpid(), std::memory_order_relaxed);
  page.bell_fd.store(bell.write_fd(), std::memory_order_relaxed);
  page.ready.store(1, std::memory_order_release);
}

base::Text<64> Node::name_of(uint32_t local) const {
  const char* page = reinterpret_cast<const char*>(pages_[local]);
  base::Text<64> name;
  name << "headway-";
  name.hex(reinterpret_cast<const Head*>(memory_)->cookie)
      << "-" << size_t(page - memory_) / page_bytes;
  return name;
}

Ended Node::tell_end(Ended ended) {
  auto& end = reinterpret_cast<Head*>(memory_)->end;
  uint64_t before = 0;
  const uint64_t mine = packed(ended);
  // All that it says is in the word.
  return unpacked(end.compare_exchange_strong(before, mine, std::memory_order_relaxed) ? mine
                                                                                       : before);
}

bool Node::is_ending_by_death() const {
  const uint64_t word = reinterpret_cast<const Head*>(memory_)->end.load(std::memory_order_relaxed);
  return word != 0 && !unpacked(word).is_told;
}

bool Node::claim_story() {
  return reinterpret_cast<Head*>(memory_)->story_claimed.exchange(1, std::memory_order_relaxed) ==
         0;
}

// Pages stay where they are; rings are as many as there are pairs now.
void Node::keep(const uint32_t* members, uint32_t count) {
  uint32_t self = 0;
  for (uint32_t i = 0; i < count; ++i) {
    if (members[i] == self_) self = i;
    pages_[i] = pages_[members[i]];
  }
  for (uint32_t i = count; i < ranks_; ++i) pages_[i] = nullptr;
  self_ = self;
  ranks_ = count;
}

void Node::detach() {
  for (uint32_t i = 0; i < ranks_; ++i) {
    if (callers_[i].bell >= 0) close(callers_[i].bell);
    callers_[i].bell = -1;
    pages_[i] = nullptr;
  }
  if (memory_) munmap(memory_, bytes_);
  if (fd_ >= 0) close(fd_);
  memory_ = nullptr;
  bytes_ = 0;
  fd_ = -1;
}

Outcome Node::open_to(uint32_t local, Producer& producer) {
  HEADWAY_CHECK(!producer.attached());
  const size_t offset = ring_offset(self_, local);
  if (fallocate(fd_, 0, off_t(offset), off_t(shape_.bytes())) != 0) return Outcome::no_memory;
  producer.attach(memory_ + offset, shape_);
  ProcessPage& page = *pages_[local];
  page.senders[self_ / 64].fetch_or(uint64_t(1) << (self_ % 64), std::memory_order_release);
  page.newcomers.fetch_add(1, std::memory_order_release);  // pairs with take_newcomers
  ++counters.rings;
  return Outcome::ok;
}

void Node::attach_from(uint32_t local, Consumer& consumer) {
  HEADWAY_CHECK(own().senders[local / 64].load(std::memory_order_relaxed) >> local % 64 & 1);
  consumer.attach(memory_ + ring_offset(local, self_), shape_);
}

bool Node::take_newcomers(uint64_t (&fresh)[max_ranks / 64]) {
  const uint32_t count = own().newcomers.load(std::memory_order_acquire);  // pairs with open_to
  if (count == newcomers_seen_) return false;
  newcomers_seen_ = count;
  for (uint32_t i = 0; i < (ranks_ + 63) / 64; ++i) {
    const uint64_t senders = own().senders[i].load(std::memory_order_acquire);
    fresh[i] = senders & ~senders_seen_[i];
    senders_seen_[i] = senders;
  }
  return true;
}

// A rank that is outside MPI between two calls is back before anything woken can run, and a thread
// that is woken on its core keeps it from coming back. So it is waited for, as long as the bell
// would cost; more and more seldom where it does not come. A sleeper is armed for everything.
bool Node::comes_back(uint32_t local) {
  Caller& caller = callers_[local];
  const std::atomic<uint32_t>& armed = pages_[local]->armed;
  if (caller.skips > 0) {
    --caller.skips;
    return false;
  }
  uint32_t word = armed.load(std::memory_order_relaxed);
  if (word & ~uint32_t(event_any)) return false;
  const uint64_t end = base::now_ns() + bell_ns_;
  // No look is as short as a nanosecond: this ends where the clock stands, too.
  for (uint64_t looks = bell_ns_; word != 0 && looks > 0 && base::now_ns() < end; --looks) {
    base::cpu_relax();
    word = armed.load(std::memory_order_relaxed);
  }
  if (word == 0) {
    caller.vain = 0;
    return true;
  }
  if (caller.vain < most_vain) ++caller.vain;
  caller.skips = uint8_t((1u << caller.vain) - 1);
  return false;
}

void Node::ring(uint32_t local) {
  if (comes_back(local)) return;
  ProcessPage& page = *pages_[local];
  // Of several ringers one takes the word and rings.
  if (page.armed.exchange(0, std::memory_order_acq_rel) == 0) return;
  int& bell = callers_[local].bell;
  if (bell < 0) {
    bell = base::Doorbell::open_of(page.pid.load(std::memory_order_relaxed),
                                   page.bell_fd.load(std::memory_order_relaxed));
  }
  if (bell >= 0) {
    base::Doorbell::ring_fd(bell);
  } else if (bell_ && bell_->call_fd() >= 0) {
    base::Doorbell::call(bell_->call_fd(), name_of(local).c_str());
  }
  ++counters.bells;
}

Outcome Node::pull(uint32_t local, uint64_t remote, iovec* vectors, size_t count, uint64_t& done) {
  const Outcome outcome = transfer(local, remote, vectors, count, done, process_vm_readv);
  counters.pulled += done;
  return outcome;
}

Outcome Node::push(uint32_t local, uint64_t remote, iovec* vectors, size_t count, uint64_t& done) {
  const Outcome outcome = transfer(local, remote, vectors, count, done, process_vm_writev);
  counters.pushed += done;
  return outcome;
}

Outcome Node::transfer(uint32_t local, uint64_t remote, iovec* vectors, size_t count,
                       uint64_t& done, VmCall call) {
  const pid_t pid = pages_[local]->pid.load(std::memory_order_relaxed);
  done = 0;
  while (count > 0) {
    uint64_t wanted = 0;
    for (size_t i = 0; i < count; ++i) wanted += vectors[i].iov_len;
    const iovec there{reinterpret_cast<void*>(remote + done), wanted};
    const ssize_t moved = call(pid, vectors, count, &there, 1, 0);
    if (moved <= 0) {
      if (moved < 0 && errno == EINTR) continue;
      return moved < 0 && errno == ESRCH ? Outcome::peer_lost : Outcome::refused;
    }
    done += uint64_t(moved);
    // The system copies at most 2 GiB a call: go on behind what it did.
    for (uint64_t rest = uint64_t(moved); rest > 0;) {
      if (rest >= vectors->iov_len) {
        rest -= vectors->iov_len;
        ++vectors;
        --count;
      } else {
        vectors->iov_base = static_cast<char*>(vectors->iov_base) + rest;
        vectors->iov_len -= rest;
        rest = 0;
      }
    }
  }
  return Outcome::ok;
}

}  // namespace headway::shm
