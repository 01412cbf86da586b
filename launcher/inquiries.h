// Inquiries: another program of the same user may ask at any time where the job stands (`headway
// where`). mpiexec listens at a name that has its process id, in the abstract space of Unix
// sockets: nothing is left on the disk. He gets one byte and a descriptor of memory that holds the
// answer, since what thousands of ranks have to say does not fit into a socket; where there is no
// such memory he gets the text, as far as it fits. Thread: the launcher's only one. Owner: Job.
// Invariant: whoever asks is answered at once or not at all, and the job never waits for him.
#pragma once
#include <functional>
#include <string>

namespace headway::launcher {

class Inquiries {
 public:
  Inquiries() = default;
  ~Inquiries() { end(); }
  Inquiries(const Inquiries&) = delete;
  Inquiries& operator=(const Inquiries&) = delete;

  // Where no name is to be had nobody can ask, and nothing else changes.
  void begin();
  void end();
  int fd() const { return fd_; }
  // Somebody asks.
  void answer(const std::function<std::string()>& text) const;

 private:
  int fd_ = -1;
};

}  // namespace headway::launcher
