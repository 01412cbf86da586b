#include "channel.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

namespace headway::launcher {
namespace {

bool make_terminal(int model, Channel& channel) {
  const int ours = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
  if (ours < 0) return false;
  char name[64];
  int theirs = -1;
  if (grantpt(ours) == 0 && unlockpt(ours) == 0 && ptsname_r(ours, name, sizeof name) == 0) {
    theirs = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
  }
  if (theirs < 0) {
    close(ours);
    return false;
  }
  // Bytes pass unchanged: our own terminal does the translation of newlines.
  termios settings;
  if (tcgetattr(theirs, &settings) == 0) {
    settings.c_oflag &= ~static_cast<tcflag_t>(OPOST);
    settings.c_lflag &= ~static_cast<tcflag_t>(ECHO);
    tcsetattr(theirs, TCSANOW, &settings);
  }
  copy_window_size(model, ours);
  channel = {ours, theirs};
  return true;
}

}  // namespace

void copy_window_size(int terminal, int rank_terminal) {
  winsize size;
  if (ioctl(terminal, TIOCGWINSZ, &size) == 0) ioctl(rank_terminal, TIOCSWINSZ, &size);
}

Channel make_channel(int like_terminal) {
  Channel channel;
  // The number of terminals is limited; a pipe does the work too.
  if (like_terminal >= 0 && make_terminal(like_terminal, channel)) return channel;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return channel;
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return {ends[0], ends[1]};
}

}  // namespace headway::launcher
