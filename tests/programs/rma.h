// What the programs about windows share: a window of each flavour with what a rank needs to address
// another's memory, and data in random layouts whose places are known. Thread: that of its user.
// Owner: a case. Invariant: all ranks make the same calls in the same order.
#pragma once
#include <algorithm>
#include <vector>

#include "check.h"

namespace rma {

enum class Flavor { create, allocate, dynamic, shared };
inline const char* name_of(Flavor flavor) {
  switch (flavor) {
    case Flavor::create: return "create";
    case Flavor::allocate: return "allocate";
    case Flavor::dynamic: return "dynamic";
    default: return "shared";
  }
}

// All ranks of the job share memory, as far as MPI knows.
inline bool all_share() {
  MPI_Comm shared;
  MPI(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &shared));
  int size = 0;
  MPI(MPI_Comm_size(shared, &size));
  MPI(MPI_Comm_free(&shared));
  return size == check::size;
}

inline std::vector<Flavor> flavors() {
  std::vector<Flavor> all{Flavor::create, Flavor::allocate, Flavor::dynamic};
  if (all_share()) all.push_back(Flavor::shared);
  return all;
}

// `bytes` on every rank, zero at first; the unit of displacements is each rank's own.
class Window {
 public:
  Window(Flavor flavor, size_t bytes, int unit = 1, MPI_Info info = MPI_INFO_NULL)
      : flavor_(flavor), bytes_(bytes) {
    void* at = nullptr;
    switch (flavor) {
      case Flavor::create:
        own_.resize(bytes + 8);
        at = own_.data();
        MPI(MPI_Win_create(at, MPI_Aint(bytes), unit, info, MPI_COMM_WORLD, &win_));
        break;
      case Flavor::allocate:
        MPI(MPI_Win_allocate(MPI_Aint(bytes), unit, info, MPI_COMM_WORLD, &at, &win_));
        break;
      case Flavor::shared:
        MPI(MPI_Win_allocate_shared(MPI_Aint(bytes), unit, info, MPI_COMM_WORLD, &at, &win_));
        break;
      case Flavor::dynamic:
        unit = 1;
        own_.resize(bytes + 8);
        at = own_.data();
        MPI(MPI_Win_create_dynamic(info, MPI_COMM_WORLD, &win_));
        MPI(MPI_Win_attach(win_, at, MPI_Aint(bytes)));
        break;
    }
    if (!check::errors_are_fatal()) MPI(MPI_Win_set_errhandler(win_, MPI_ERRORS_RETURN));
    memory_ = static_cast<char*>(at);
    MPI_Aint address = 0;
    MPI(MPI_Get_address(memory_, &address));
    addresses_.resize(size_t(check::size));
    units_.resize(size_t(check::size));
    MPI(MPI_Allgather(&address, 1, MPI_AINT, addresses_.data(), 1, MPI_AINT, MPI_COMM_WORLD));
    MPI(MPI_Allgather(&unit, 1, MPI_INT, units_.data(), 1, MPI_INT, MPI_COMM_WORLD));
  }
  ~Window() {
    if (flavor_ == Flavor::dynamic) {
      MPI(MPI_Barrier(MPI_COMM_WORLD));
      MPI(MPI_Win_detach(win_, memory_));
    }
    MPI(MPI_Win_free(&win_));
    CHECK(win_ == MPI_WIN_NULL);
  }
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  operator MPI_Win() const { return win_; }
  char* memory() const { return memory_; }
  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(memory_);
  }
  size_t bytes() const { return bytes_; }
  Flavor flavor() const { return flavor_; }
  // What the calls want for that byte of a rank's memory.
  MPI_Aint at(int rank, size_t byte) const {
    if (flavor_ == Flavor::dynamic) return MPI_Aint_add(addresses_[size_t(rank)], MPI_Aint(byte));
    CHECK_EQ(byte % size_t(units_[size_t(rank)]), size_t(0));
    return MPI_Aint(byte / size_t(units_[size_t(rank)]));
  }

 private:
  Flavor flavor_;
  size_t bytes_;
  MPI_Win win_ = MPI_WIN_NULL;
  char* memory_ = nullptr;
  std::vector<char> own_;
  std::vector<MPI_Aint> addresses_;
  std::vector<int> units_;
};

// n numbers somewhere in `room`: where each lies, in numbers.
struct Layout {
  MPI_Datatype type = MPI_INT;
  int count = 0;
  bool made = false;
  std::vector<int> places;

  Layout(check::Random& random, int n, int room) {
    places.resize(size_t(n));
    const int kind = n == 0 ? 0 : random.between(0, 2);
    const int first = random.between(0, std::max(0, room - 2 * n) / 2);
    if (kind == 0) {
      count = n;
      for (int i = 0; i < n; ++i) places[size_t(i)] = i;
    } else if (kind == 1) {
      for (int i = 0; i < n; ++i) places[size_t(i)] = first + 2 * i;
    } else {
      for (int i = 0, at = first; i < n; ++i, at += random.between(1, 2)) places[size_t(i)] = at;
    }
    if (kind == 0) return;
    std::vector<int> lengths(size_t(n), 1);
    MPI(MPI_Type_indexed(n, lengths.data(), places.data(), MPI_INT, &type));
    MPI(MPI_Type_commit(&type));
    made = true;
    count = 1;
  }
  ~Layout() {
    if (made) MPI_Type_free(&type);
  }
  Layout(const Layout&) = delete;
  Layout& operator=(const Layout&) = delete;
};

}  // namespace rma
