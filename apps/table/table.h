// A table of keys and how often each was counted, spread over the ranks: what a rank asks of it,
// and the forms that it has. Thread: main. Owner: the program. Invariant: a key lies with one rank,
// in one slot; its number of times never falls.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace table {

// How a rank gets at the slots of another one.
enum class Form {
  allocated,  // one-sided, in memory that MPI allocates
  created,    // one-sided, in the program's own memory
  messages    // it asks the owner, which answers when it is in MPI
};

struct Slot {
  uint64_t key;  // 0: nobody's
  uint64_t times;
};

// Where keys lie: each rank has as many slots.
struct Layout {
  int ranks;
  uint64_t slots;

  int owner(uint64_t key) const;
  uint64_t first_slot(uint64_t key) const;
};

class Table {
 public:
  virtual ~Table() = default;
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  // Counts a key; returns how often it had been counted before, or `full`.
  virtual uint64_t count(uint64_t key) = 0;
  // Between two pieces of work: whoever has asked is answered.
  virtual void serve() = 0;
  // All ranks have counted all that they will. Afterwards slots() are what they stay.
  virtual void finish() = 0;
  virtual const Slot* slots() const = 0;

  static constexpr uint64_t full = UINT64_MAX;

 protected:
  Table() = default;
};

// Collective over MPI_COMM_WORLD. Null: no memory.
std::unique_ptr<Table> make_table(Form form, const Layout& layout);

const char* name_of(Form form);

}  // namespace table
