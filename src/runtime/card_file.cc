#include "runtime/card_file.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/descriptors.h"
#include "base/memory_file.h"
#include "base/text.h"

namespace headway::runtime {

// The first page; the texts follow, each with a zero behind it.
struct CardFile::Head {
  uint64_t magic;
  uint64_t cookie;
  uint64_t bytes;  // of the texts
  std::atomic<uint32_t> state;
};

namespace {

constexpr size_t page_bytes = 4096;
constexpr uint64_t head_magic = 0x4865616477436431;  // "HeadwCd1"
enum : uint32_t { filling, whole, given_up };
// Readers sleep until the file is whole, so that many on few cores leave these to the writer; now
// and then they look whether it is there.
constexpr long pause_ns = 200'000'000;
constexpr uint64_t longest_wait_ns =
    60'000'000'000;  // of a writer that is stopped, or somebody else

// Also one that nobody has waited for yet: "123 (name of any kind) Z 1 ...".
bool has_ended(int pid) {
  base::Text<64> path;
  path << "/proc/" << pid << "/stat";
  const int fd = base::with_room([&] { return open(path.c_str(), O_RDONLY | O_CLOEXEC); });
  if (fd < 0) return errno == ENOENT;
  char text[512];
  const ssize_t n = read(fd, text, sizeof text - 1);
  close(fd);
  if (n <= 0) return n < 0 && errno == ESRCH;
  text[n] = '\0';
  const char* const name_end = strrchr(text, ')');
  return name_end && name_end[1] == ' ' && strchr("ZXx", name_end[2]) && name_end[2] != '\0';
}

long futex(std::atomic<uint32_t>* word, int what, uint32_t value, const timespec* time) {
  return syscall(SYS_futex, word, what, value, time, nullptr, 0);
}

void tell(std::atomic<uint32_t>& state, uint32_t value) {
  state.store(value, std::memory_order_release);  // pairs with wait_until_whole
  futex(&state, FUTEX_WAKE, INT_MAX, nullptr);
}

bool write_all(int fd, const char* bytes, size_t count, off_t at) {
  while (count != 0) {
    const ssize_t n = pwrite(fd, bytes, count, at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes += n;
    at += n;
    count -= size_t(n);
  }
  return true;
}

}  // namespace

CardFile::~CardFile() {
  give_up();
  if (texts_) munmap(const_cast<char*>(texts_) - page_bytes, page_bytes + bytes_);
  if (fd_ >= 0 && !stays_) close(fd_);
}

// Of the writer, who has not finished; a reader's head is let go in open().
void CardFile::give_up() {
  if (!head_) return;
  tell(head_->state, given_up);
  munmap(head_, page_bytes);
  head_ = nullptr;
}

void CardFile::make(char* place, size_t room) {
  static_assert(sizeof(Head) <= page_bytes);
  HEADWAY_CHECK(fd_ < 0 && room > 1);
  memcpy(place, "-", 2);
  fd_ = base::with_room([] { return memfd_create("headway-cards", MFD_CLOEXEC); });
  if (fd_ < 0) return;
  const int fd = fd_;
  if (!base::within_file_limit([fd] { return ftruncate(fd, off_t(page_bytes)) == 0; })) return;
  void* memory = mmap(nullptr, page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  if (memory == MAP_FAILED) return;
  head_ = static_cast<Head*>(memory);
  head_->magic = head_magic;  // all else is zero in new memory, and so filling
  head_->cookie = base::random_cookie();
  base::Text<128> text;
  text << getpid() << ":" << fd_ << ":" << head_->cookie;
  if (text.size() + 1 > room) return give_up();
  memcpy(place, text.c_str(), text.size() + 1);
}

void CardFile::add(const char* text) {
  if (!head_) return;
  const size_t before = written_.size(), n = strlen(text) + 1;
  if (before + n > written_room_) {
    written_room_ = std::max(2 * written_room_, before + n + page_bytes);
    if (!written_.reserve(written_room_)) return give_up();
  }
  if (!written_.resize(before + n)) return give_up();
  memcpy(written_.data() + before, text, n);
}

void CardFile::finish() {
  if (!head_) return;
  const bool done = base::within_file_limit(
      [this] { return write_all(fd_, written_.data(), written_.size(), off_t(page_bytes)); });
  if (!done) return give_up();
  head_->bytes = written_.size();
  tell(head_->state, whole);
  munmap(head_, page_bytes);
  head_ = nullptr;
}

// The first rank may end before: then nobody waits for its file. Whoever gives up asks for itself.
bool CardFile::wait_until_whole(int pid) const {
  const uint64_t begun_ns = base::now_ns();
  while (true) {
    const uint32_t state = head_->state.load(std::memory_order_acquire);  // pairs with finish
    if (state != filling) return state == whole;
    if (has_ended(pid) || base::now_ns() - begun_ns > longest_wait_ns) return false;
    const timespec time{0, pause_ns}, where_refused{0, 1'000'000};
    const bool woken = futex(&head_->state, FUTEX_WAIT, filling, &time) == 0 || errno == EAGAIN ||
                       errno == EINTR || errno == ETIMEDOUT;
    if (!woken) nanosleep(&where_refused, nullptr);
  }
}

bool CardFile::open(const char* place) {
  HEADWAY_CHECK(fd_ < 0 && !texts_);
  char* rest = nullptr;
  const long pid = strtol(place, &rest, 10);
  if (pid <= 0 || *rest != ':') return false;
  const long number = strtol(rest + 1, &rest, 10);
  if (*rest != ':') return false;
  const uint64_t cookie = strtoull(rest + 1, nullptr, 10);
  base::Text<64> path;
  path << "/proc/" << pid << "/fd/" << number;
  // In another container's numbers it may be any file: nothing of it is to wait, or to become ours.
  constexpr int how = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  const int fd = base::with_room([&] { return ::open(path.c_str(), how); });
  if (fd < 0) return false;
  struct stat info {};
  bool good = fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size >= off_t(page_bytes);
  void* memory = good ? mmap(nullptr, page_bytes, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;
  good = memory != MAP_FAILED;
  if (good) {
    head_ = static_cast<Head*>(memory);
    good = head_->magic == head_magic && head_->cookie == cookie && wait_until_whole(int(pid));
    const size_t bytes = good ? size_t(head_->bytes) : 0;
    munmap(memory, page_bytes);
    head_ = nullptr;  // it was never ours to write
    good = bytes > 0 && fstat(fd, &info) == 0 && uint64_t(info.st_size) >= page_bytes + bytes;
    // From the begin: where the system's pages are larger than ours, no other place can be mapped.
    memory = good ? mmap(nullptr, page_bytes + bytes, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;
    if (memory != MAP_FAILED) {
      texts_ = static_cast<const char*>(memory) + page_bytes;
      bytes_ = bytes;
    }
  }
  close(fd);
  return texts_ != nullptr;
}

bool CardFile::next(char* text, size_t room) {
  HEADWAY_CHECK(texts_);
  const char* const begin = texts_ + at_;
  const void* const end = at_ < bytes_ ? memchr(begin, '\0', bytes_ - at_) : nullptr;
  if (!end) return false;
  const size_t n = size_t(static_cast<const char*>(end) - begin) + 1;
  if (n > room) return false;
  memcpy(text, begin, n);
  at_ += n;
  return true;
}

}  // namespace headway::runtime
