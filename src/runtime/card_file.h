// CardFile: what all ranks of a job have published, asked of the launcher once a machine: its first
// rank asks, and writes it into a file of memory that the others map read-only. Thread: init.
// Owner: find_neighbours. Invariant: a reader sees the whole file or none; where there is none (the
// launcher tells no nodes, /proc is closed, the first rank gave up) each rank asks for itself.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/vec.h"

namespace headway::runtime {

class CardFile {
 public:
  CardFile() = default;
  // A file that is not finished is given up: nobody waits for it any longer.
  ~CardFile();
  CardFile(const CardFile&) = delete;
  CardFile& operator=(const CardFile&) = delete;

  // For the first rank: makes it, empty. `place` gets what others open it by; "-": there is none.
  void make(char* place, size_t room);
  // Texts in the order in which they will be read. Nothing happens where there is no file.
  void add(const char* text);
  void finish();
  // For a first rank of whose end the others may not wait: the file stays until the process ends.
  void leave_open() { stays_ = true; }

  // For the others: waits until it is whole. False: there is none.
  [[nodiscard]] bool open(const char* place);
  bool reads() const { return texts_ != nullptr; }
  // False: there is no further text, or it does not fit.
  [[nodiscard]] bool next(char* text, size_t room);

 private:
  struct Head;
  void give_up();
  bool wait_until_whole(int pid) const;

  int fd_ = -1;
  Head* head_ = nullptr;  // the writer's, until it is finished; the reader's, until it is whole
  bool stays_ = false;
  base::Vec<char> written_;
  size_t written_room_ = 0;
  const char* texts_ = nullptr;  // mapped
  size_t bytes_ = 0;
  size_t at_ = 0;
};

}  // namespace headway::runtime
