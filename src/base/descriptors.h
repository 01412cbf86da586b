// Descriptors: the soft limit of open files is often 1024 though the hard one is far higher, and a
// rank needs one a connection. It is raised when it is first met and not before: a program that
// calls select() must get small numbers as long as there are any. Thread: any. Owns nothing.
#pragma once
#include <cerrno>

namespace headway::base {

// False: it is the hard limit already. Leaves errno alone.
bool raise_descriptor_limit();

// `make` gives a descriptor, or something below zero and errno; it is called again where a higher
// limit may help.
template <class Make>
int with_room(Make&& make) {
  int fd = make();
  while (fd < 0 && errno == EMFILE && raise_descriptor_limit()) fd = make();
  return fd;
}

}  // namespace headway::base
