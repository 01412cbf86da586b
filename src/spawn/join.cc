#include "spawn/join.h"

#include <cstring>
#include <fcntl.h>
#include <poll.h>

#include "base/descriptors.h"

namespace headway::spawn {
namespace {

// What both ends say, in records of one length.
struct Join {
  char magic[8] = {'H', 'e', 'a', 'd', 'J', 'o', 'i', '1'};
  unsigned char draw[16] = {};  // whose is less, connects
  char port[port_name_room] = "";
};

// The process at the other end of that socket is gone, or has closed it.
bool has_hung_up(void* what) {
  pollfd entry = {*static_cast<const int*>(what), POLLRDHUP, 0};
  return poll(&entry, 1, 0) > 0 && (entry.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

Trouble swap_ports(int fd, waiting::Waiter& waiter, Join& mine, Join& theirs,
                   tcp::PortStory& told) {
  Talk over(waiter);  // by a number of its own, which it closes
  over.take(base::with_room([&] { return fcntl(fd, F_DUPFD_CLOEXEC, 0); }));
  if (!over.is_open()) return Trouble::no_socket;
  if (!over.send(&mine, sizeof mine) || !over.receive(&theirs, sizeof theirs)) {
    told << "the socket does not lead to a process that is in MPI_Comm_join, or not any more";
    return Trouble::gone;
  }
  theirs.port[sizeof theirs.port - 1] = '\0';
  if (memcmp(mine.magic, theirs.magic, sizeof mine.magic) == 0) return Trouble::none;
  told << "what came over the socket is not from MPI_Comm_join of this library; was there data of "
          "the program's own in it?";
  return Trouble::gone;
}

}  // namespace

Trouble join(int fd, waiting::Waiter& waiter, const char* interface, uint64_t patience_us,
             Talk& talk, bool& accepts, tcp::PortStory& told) {
  accepts = false;
  Join mine, theirs;
  Secret draw;
  if (!make_secret(draw)) return Trouble::no_socket;
  memcpy(mine.draw, draw.bytes, sizeof mine.draw);
  Trouble trouble = ports().open(interface, mine.port, told);
  if (trouble != Trouble::none) return trouble;
  trouble = swap_ports(fd, waiter, mine, theirs, told);
  accepts = memcmp(mine.draw, theirs.draw, sizeof mine.draw) > 0;
  if (trouble == Trouble::none) {
    trouble = accepts ? ports().accept(mine.port, talk, waiter, {has_hung_up, &fd})
                      : ports().connect(theirs.port, talk, waiter, patience_us, told);
  }
  (void)ports().close(mine.port);
  return trouble;
}

}  // namespace headway::spawn
