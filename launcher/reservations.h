// Reservations: cores that are taken, among all jobs of the machine that can see each other. Two
// places tell: a lock on one byte a core of a file in /tmp, and a name a core among the abstract
// addresses of the network namespace, which jobs share whose /tmp is their own (a batch system may
// give each job one, a container has one). Both are dropped by the kernel with the process, however
// it ends. Thread: none. Owner: mpiexec, until it ends. Invariant: a core is taken in both places
// or in none; a file that the user names counts alone.
#pragma once
#include <cstddef>
#include <map>
#include <string>

namespace headway::launcher {

class Reservations {
 public:
  Reservations() = default;
  Reservations(const Reservations&) = delete;
  Reservations& operator=(const Reservations&) = delete;
  ~Reservations();

  void open();
  // Without the file nobody is bound: too little would tell two jobs apart.
  bool is_open() const { return file_ >= 0; }
  const std::string& why_not() const { return why_; }
  // `core`: a number that is the same in all jobs.
  bool take(unsigned core);
  void give_back(unsigned core);
  size_t descriptors() const { return names_.size() + (is_open() ? 1 : 0); }

 private:
  bool lock(unsigned core, short kind) const;
  bool take_name(unsigned core);

  int file_ = -1;
  bool with_names_ = false;
  std::map<unsigned, int> names_;  // core -> the socket that has its name
  std::string why_;
};

}  // namespace headway::launcher
