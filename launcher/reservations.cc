#include "reservations.h"

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "say.h"

namespace headway::launcher {
namespace {

constexpr const char* file_path = "/tmp/headway-mpiexec-cores";
// A name takes a descriptor. Where those are few they are the ranks'.
constexpr rlim_t plenty = 4096;

}  // namespace

Reservations::~Reservations() {
  for (const auto& [core, fd] : names_) close(fd);
  if (file_ >= 0) close(file_);
}

void Reservations::open() {
  if (file_ >= 0) return;
  // Containers that share cores and neither /tmp nor the network can name a file that they do
  // share.
  const char* given = getenv("HEADWAY_CORES_FILE");
  const bool is_given = given && *given;
  const char* const path = is_given ? given : file_path;
  rlimit limit;
  with_names_ = !is_given && getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_max >= plenty;
  file_ = ::open(path, O_RDWR | O_CLOEXEC);
  if (file_ >= 0) return;
  file_ = ::open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (file_ < 0) {
    why_ = std::string(path) + ": " + strerror(errno);
    return;
  }
  static_cast<void>(fchmod(file_, 0666));  // other users' jobs count too
}

bool Reservations::take(unsigned core) {
  if (!lock(core, F_WRLCK)) return false;
  if (!with_names_ || take_name(core)) return true;
  lock(core, F_UNLCK);
  return false;
}

void Reservations::give_back(unsigned core) {
  if (const auto name = names_.find(core); name != names_.end()) {
    close(name->second);
    names_.erase(name);
  }
  lock(core, F_UNLCK);
}

bool Reservations::lock(unsigned core, short kind) const {
  struct flock request = {};
  request.l_type = kind;
  request.l_whence = SEEK_SET;
  request.l_start = core;
  request.l_len = 1;
  return fcntl(file_, F_OFD_SETLK, &request) == 0;
}

// False if another job has the name. Where there are no such names (no sockets allowed, none left)
// the file alone counts.
bool Reservations::take_name(unsigned core) {
  if (names_.count(core)) return true;
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return true;
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  // A name that begins with a zero byte is no file.
  const std::string name = format("headway-mpiexec-core-%u", core);
  memcpy(address.sun_path + 1, name.data(), name.size());
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (bind(fd, reinterpret_cast<const sockaddr*>(&address), length) == 0) {
    names_[core] = fd;
    return true;
  }
  const bool is_taken = errno == EADDRINUSE;
  close(fd);
  return !is_taken;
}

}  // namespace headway::launcher
