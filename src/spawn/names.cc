#include "spawn/names.h"

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/descriptors.h"
#include "base/hmac.h"

namespace headway::spawn {
namespace {

using Path = base::Text<PATH_MAX>;

// "PID START\nPORT\n": who has published it. A number of a process comes again, with another start.
constexpr size_t record_room = port_name_room + 64;

struct Publisher {
  uint64_t pid = 0, start = 0;
};

bool take_number(const char*& at, uint64_t& value) {
  const char* const first = at;
  for (value = 0; *at >= '0' && *at <= '9'; ++at) value = value * 10 + uint64_t(*at - '0');
  return at != first;
}

// What fits of a file; 0: it cannot be read.
size_t read_file(const char* path, char* out, size_t room) {
  const int fd = base::with_room([&] { return open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW); });
  if (fd < 0) return 0;
  size_t have = 0;
  for (ssize_t n; have + 1 < room && (n = read(fd, out + have, room - 1 - have)) > 0;) {
    have += size_t(n);
  }
  close(fd);
  out[have] = '\0';
  return have;
}

// When a process began, in ticks of the system's; 0: there is none.
uint64_t start_of(uint64_t pid) {
  Path path;
  path << "/proc/" << pid << "/stat";
  char text[1024];
  if (!read_file(path.c_str(), text, sizeof text)) return 0;
  const char* at = strrchr(text, ')');  // the name before it may hold anything
  for (int spaces = 0; at && *at && spaces < 20; ++at) spaces += *at == ' ';
  uint64_t start = 0;
  return at && take_number(at, start) ? start : 0;
}

bool is_own_folder(const char* path) {
  struct stat seen;
  return lstat(path, &seen) == 0 && S_ISDIR(seen.st_mode) && seen.st_uid == geteuid() &&
         (seen.st_mode & 077) == 0;
}

bool find_folder(Path& path, NameStory& story) {
  const char* runtime = getenv("XDG_RUNTIME_DIR");
  if (runtime && *runtime == '/' && access(runtime, W_OK | X_OK) == 0) {
    path << runtime << "/headway-names";
  } else {
    path << "/tmp/headway-names-" << geteuid();
  }
  int error = mkdir(path.c_str(), 0700) == 0 || errno == EEXIST ? 0 : errno;
  if (error == 0 && is_own_folder(path.c_str())) return true;
  const char* words = error ? strerrordesc_np(error) : nullptr;
  story << "the folder " << path.c_str()
        << " cannot be used: " << (words ? words : "it is not this user's alone");
  return false;
}

// By a hash: a service may be called anything.
void add_file(Path& path, const char* service) {
  base::Sha256 hash;
  const base::Digest digest = hash.add(service, strlen(service)).finish();
  path << "/";
  for (const unsigned char byte : digest.bytes) {
    const char digits[] = {"0123456789abcdef"[byte >> 4], "0123456789abcdef"[byte & 15]};
    path.append(digits, sizeof digits);
  }
}

// False: there is no such file, or none of a process that is there.
bool read_record(const char* path, Publisher& who, char (&port)[port_name_room]) {
  char text[record_room];
  if (!read_file(path, text, sizeof text)) return false;
  const char* at = text;
  if (!take_number(at, who.pid) || *at++ != ' ' || !take_number(at, who.start) || *at++ != '\n') {
    return false;
  }
  const char* const end = strchr(at, '\n');
  if (!end || size_t(end - at) >= sizeof port) return false;
  memcpy(port, at, size_t(end - at));
  port[end - at] = '\0';
  return who.start != 0 && start_of(who.pid) == who.start;
}

// The file comes to be whole or not at all, and only one of several can make it.
Named write_record(const Path& path, const char* port, NameStory& story) {
  Path draft;
  draft << path.c_str() << "-" << getpid();
  const int fd = base::with_room(
      [&] { return open(draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600); });
  const uint64_t pid = uint64_t(getpid());
  base::Text<record_room> text;
  text << pid << " " << start_of(pid) << "\n" << port << "\n";
  errno = ENOSPC;  // what a write means that takes less than all
  const bool written = fd >= 0 && write(fd, text.c_str(), text.size()) == ssize_t(text.size());
  int error = written ? 0 : errno;
  if (fd >= 0) close(fd);
  if (written && link(draft.c_str(), path.c_str()) != 0) error = errno;
  unlink(draft.c_str());
  if (error == 0) return Named::done;
  if (error == EEXIST) return Named::taken;
  const char* words = strerrordesc_np(error);
  story << path.c_str() << " cannot be written: " << (words ? words : "unknown error");
  return Named::no_folder;
}

// While one publishes or takes back, no other process of this user does.
class Turn {
 public:
  explicit Turn(const Path& folder)
      : fd_(base::with_room(
            [&] { return open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); })) {
    for (int ms = 0; fd_ >= 0 && !has_it_ && ms < patience_ms; ++ms) {
      has_it_ = flock(fd_, LOCK_EX | LOCK_NB) == 0;
      if (!has_it_) usleep(1000);
    }
  }
  ~Turn() {
    if (fd_ >= 0) close(fd_);
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  bool has_come() const { return has_it_; }

 private:
  static constexpr int patience_ms = 2000;  // others need less than one; one may be stopped

  const int fd_;
  bool has_it_ = false;
};

Named no_turn(const Path& folder, NameStory& story) {
  story << "the folder " << folder.c_str()
        << " cannot be used: another process has it locked, or it cannot be opened";
  return Named::no_folder;
}

}  // namespace

Named publish_name(const char* service, const char* port, NameStory& story) {
  Path path;
  if (!find_folder(path, story)) return Named::no_folder;
  const Turn turn(path);
  if (!turn.has_come()) return no_turn(path, story);
  add_file(path, service);
  Publisher who;
  char other[port_name_room];
  const Named written = write_record(path, port, story);
  if (written != Named::taken || read_record(path.c_str(), who, other)) return written;
  unlink(path.c_str());  // left by one that has ended
  return write_record(path, port, story);
}

Named unpublish_name(const char* service, NameStory& story) {
  Path path;
  if (!find_folder(path, story)) return Named::no_folder;
  const Turn turn(path);
  if (!turn.has_come()) return no_turn(path, story);
  add_file(path, service);
  Publisher who;
  char port[port_name_room];
  if (!read_record(path.c_str(), who, port)) return Named::unknown;
  return unlink(path.c_str()) == 0 ? Named::done : Named::unknown;
}

Named look_up_name(const char* service, char (&port)[port_name_room], NameStory& story) {
  Path path;
  if (!find_folder(path, story)) return Named::no_folder;
  add_file(path, service);
  Publisher who;
  return read_record(path.c_str(), who, port) ? Named::done : Named::unknown;
}

}  // namespace headway::spawn
