#include "guard/detail/mappings.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "guard/mechanism.h"

namespace headway::guard {
namespace {

// linux/fs.h of 6.11; older headers do not have it.
struct ProcmapQuery {
  uint64_t size;
  uint64_t query_flags;
  uint64_t query_addr;
  uint64_t vma_start;
  uint64_t vma_end;
  uint64_t vma_flags;
  uint64_t vma_page_size;
  uint64_t vma_offset;
  uint64_t inode;
  uint32_t dev_major;
  uint32_t dev_minor;
  uint32_t vma_name_size;
  uint32_t build_id_size;
  uint64_t vma_name_addr;
  uint64_t build_id_addr;
};
static_assert(sizeof(ProcmapQuery) == 104);
constexpr unsigned long procmap_query = _IOWR('f', 17, ProcmapQuery);
constexpr uint64_t vma_readable = 1, vma_writable = 2, vma_executable = 4, vma_shared = 8,
                   covering_or_next = 16;

constexpr size_t name_bytes = 40;

bool starts_with(const char* text, const char* start) {
  return strncmp(text, start, strlen(start)) == 0;
}

Mapping::What what_it_is(const char* name, const Mapping& mapping) {
  if (mapping.shared && starts_with(name, "/memfd:") &&
      starts_with(name + strlen("/memfd:"), Mappings::curtain_name)) {
    return Mapping::What::curtain;
  }
  const bool nameless = !*name || strcmp(name, "[heap]") == 0 || starts_with(name, "[anon:");
  const bool plain = nameless && !mapping.shared && mapping.file.inode == 0;
  return plain ? Mapping::What::plain : Mapping::What::other;
}

// One line of the text: from-to rwxp offset major:minor inode name
class Line {
 public:
  bool take(char c) {
    if (c == '\n') return true;
    if (length_ < sizeof text_ - 1) text_[length_++] = c;
    return false;
  }
  void clear() { length_ = 0; }
  bool parse(Mapping& out) {
    text_[length_] = '\0';
    const char* at = text_;
    uint64_t from, to, major, minor;
    if (!number(at, 16, from) || *at++ != '-' || !number(at, 16, to) || *at++ != ' ') return false;
    if (strlen(at) < 5) return false;
    out.readable = at[0] == 'r';
    out.writable = at[1] == 'w';
    out.executable = at[2] == 'x';
    out.shared = at[3] == 's';
    at += 5;
    if (!number(at, 16, out.offset) || *at++ != ' ') return false;
    if (!number(at, 16, major) || *at++ != ':' || !number(at, 16, minor)) return false;
    if (*at++ != ' ' || !number(at, 10, out.file.inode)) return false;
    while (*at == ' ') ++at;
    out.file.device = major << 32 | minor;
    out.from = reinterpret_cast<char*>(from);
    out.to = reinterpret_cast<char*>(to);
    out.what = what_it_is(at, out);
    return true;
  }

 private:
  static bool number(const char*& at, unsigned radix, uint64_t& out) {
    const char* start = at;
    for (out = 0;; ++at) {
      unsigned digit = radix;
      if (*at >= '0' && *at <= '9') digit = unsigned(*at - '0');
      if (*at >= 'a' && *at <= 'f') digit = unsigned(*at - 'a') + 10;
      if (digit >= radix) return at > start;
      out = out * radix + digit;
    }
  }

  char text_[160];  // what is cut off is the end of a long name
  size_t length_ = 0;
};

}  // namespace

Outcome Mappings::open(bool text) {
  fd_ = ::open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (fd_ < 0) {
    return errno == EMFILE || errno == ENFILE ? Outcome::no_resource : Outcome::refused;
  }
  Mapping ours;
  text_ = text || !query(reinterpret_cast<char*>(&ours), ours, false);
  if (!text_ || read_text(reinterpret_cast<char*>(&ours), ours, false)) return Outcome::ok;
  close();
  return Outcome::unsupported;
}

void Mappings::close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

size_t Mappings::showing(const char* base, size_t pages, const File& file, uint64_t offset,
                         bool writable) {
  const size_t bytes = pages * page_bytes;
  size_t done = 0;
  while (done < bytes) {
    Mapping found;
    if (!find(base + done, found) || !found.holds(base + done) || !(found.file == file) ||
        !found.shared || found.offset_of(base + done) != offset + done ||
        (writable && !found.writable)) {
      break;
    }
    done = size_t(found.to - base);
  }
  return (done < bytes ? done : bytes) / page_bytes;
}

bool Mappings::query(const char* address, Mapping& out, bool shared) const {
  char name[name_bytes] = {};
  ProcmapQuery query = {};
  query.size = sizeof query;
  query.query_flags = covering_or_next | (shared ? vma_shared | vma_writable : 0);
  query.query_addr = reinterpret_cast<uint64_t>(address);
  query.vma_name_addr = reinterpret_cast<uint64_t>(name);
  query.vma_name_size = sizeof name;
  if (ioctl(fd_, procmap_query, &query) != 0) {
    // A longer name than any that matters.
    if (errno != ENAMETOOLONG) return false;
    query.vma_name_addr = 0;
    query.vma_name_size = 0;
    query.build_id_size = 0;
    if (ioctl(fd_, procmap_query, &query) != 0) return false;
    name[0] = '/';
    name[1] = '\0';
  }
  out.from = reinterpret_cast<char*>(query.vma_start);
  out.to = reinterpret_cast<char*>(query.vma_end);
  out.offset = query.vma_offset;
  out.file = {uint64_t(query.dev_major) << 32 | query.dev_minor, query.inode};
  out.readable = query.vma_flags & vma_readable;
  out.writable = query.vma_flags & vma_writable;
  out.executable = query.vma_flags & vma_executable;
  out.shared = query.vma_flags & vma_shared;
  out.what = query.vma_page_size == page_bytes ? what_it_is(name, out) : Mapping::What::other;
  return true;
}

bool Mappings::read_text(const char* address, Mapping& out, bool shared) {
  const base::SpinGuard held(lock_);
  if (lseek(fd_, 0, SEEK_SET) != 0) return false;
  Line line;
  char chunk[512];  // a signal stack may be small
  for (;;) {
    const ssize_t n = read(fd_, chunk, sizeof chunk);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    for (ssize_t i = 0; i < n; ++i) {
      if (!line.take(chunk[i])) continue;
      if (line.parse(out) && out.to > address && (!shared || (out.shared && out.writable))) {
        return true;
      }
      line.clear();
    }
  }
}

}  // namespace headway::guard
