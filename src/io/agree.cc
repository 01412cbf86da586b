#include "io/agree.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/descriptors.h"
#include "collectives/collectives.h"
#include "waiting/waiter.h"

namespace headway::io {
namespace {

const datatypes::Type* int64_type() {
  return &datatypes::predefined(datatypes::BasicType::int64_t);
}

}  // namespace

Outcome tell_all(waiting::Waiter& waiter, objects::Comm* comm, const int64_t* own, size_t width,
                 base::Vec<int64_t>& all) {
  all.clear();
  if (!all.resize(width * size_t(comm->own.size))) return Outcome::no_memory;
  for (size_t i = 0; i < width; ++i) all[size_t(comm->own.self) * width + i] = own[i];
  const auto blocks = collectives::Blocks::even(all.data(), width, int64_type());
  collectives::Schedule* schedule =
      collectives::allgather({waiter.engine, comm, collectives::nothing_forced}, {}, blocks);
  return schedule ? schedule->run(waiter) : Outcome::no_memory;
}

Outcome tell_from_first(waiting::Waiter& waiter, objects::Comm* comm, int64_t* numbers,
                        size_t width) {
  collectives::Schedule* schedule =
      collectives::bcast(waiter.engine, comm, collectives::Data{numbers, width, int64_type()}, 0);
  return schedule ? schedule->run(waiter) : Outcome::no_memory;
}

uint64_t mark_of(const char* text) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (; *text; ++text) hash = (hash ^ uint8_t(*text)) * 0x100000001b3;
  return hash;
}

uint64_t machine_mark() {
  char boot[64] = {};
  const int fd =
      base::with_room([] { return open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC); });
  const ssize_t n = fd < 0 ? 0 : read(fd, boot, sizeof boot - 1);
  if (fd >= 0) close(fd);
  // Where the system does not tell, each process stands for itself.
  return n > 0 ? mark_of(boot) : uint64_t(getpid());
}

}  // namespace headway::io
