// More than 2 GiB in one message: a byte count beyond int through MPI_Send_c, and an int count of a
// derived type. Needs about 5 GiB of memory for two ranks. Only every 4,096th byte is looked at,
// and both ends, so that the test is about the message and not about filling memory.
#include <sys/mman.h>

#include "check.h"

namespace {

constexpr MPI_Count total = (MPI_Count{2} << 30) + (MPI_Count{200} << 20) + 13;

class Space {
 public:
  Space() {
    at_ = static_cast<uint8_t*>(
        mmap(nullptr, total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    CHECK(at_ != MAP_FAILED);
  }
  ~Space() { munmap(at_, total); }
  uint8_t* at() { return at_; }

  static uint8_t mark(MPI_Count offset, uint64_t salt) {
    return static_cast<uint8_t>(check::key_of(offset, salt) | 1);
  }
  template <class Visit>
  static void each_place(Visit visit) {
    for (MPI_Count o = 0; o < total; o += 4096) visit(o);
    for (MPI_Count o = total - 20; o < total; ++o) visit(o);
  }
  void write(uint64_t salt) {
    each_place([&](MPI_Count o) { at_[o] = mark(o, salt); });
  }
  void verify(uint64_t salt) {
    each_place([&](MPI_Count o) {
      if (at_[o] != mark(o, salt))
        check::fail(__FILE__, __LINE__, "byte %lld is %02x, expected %02x",
                    static_cast<long long>(o), at_[o], mark(o, salt));
    });
  }

 private:
  uint8_t* at_;
};

void large_count() {
  if (check::rank > 1) return;
  Space space;
  if (check::rank == 0) {
    space.write(1);
    MPI(MPI_Send_c(space.at(), total, MPI_BYTE, 1, 1, MPI_COMM_WORLD));
    return;
  }
  MPI_Status status;
  MPI(MPI_Recv_c(space.at(), total, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &status));
  MPI_Count got = 0;
  int small = 0;
  MPI(MPI_Get_count_c(&status, MPI_BYTE, &got));
  CHECK_EQ(got, total);
  MPI(MPI_Get_count(&status, MPI_BYTE, &small));
  CHECK_EQ(small, MPI_UNDEFINED);
  space.verify(1);
}

// An int count of a contiguous type: 13 bytes more than 2,248 blocks of 1 MiB.
void derived() {
  if (check::rank > 1) return;
  MPI_Datatype mib = MPI_DATATYPE_NULL, whole = MPI_DATATYPE_NULL;
  MPI(MPI_Type_contiguous(1 << 20, MPI_BYTE, &mib));
  int lengths[2] = {2248, 13};
  MPI_Aint places[2] = {0, static_cast<MPI_Aint>(total - 13)};
  MPI_Datatype parts[2] = {mib, MPI_BYTE};
  MPI(MPI_Type_create_struct(2, lengths, places, parts, &whole));
  MPI(MPI_Type_commit(&whole));
  MPI_Count size = 0;
  int small = 0;
  MPI(MPI_Type_size_c(whole, &size));
  CHECK_EQ(size, total);
  MPI(MPI_Type_size(whole, &small));
  CHECK_EQ(small, MPI_UNDEFINED);
  Space space;
  if (check::rank == 0) {
    space.write(2);
    MPI(MPI_Send(space.at(), 1, whole, 1, 2, MPI_COMM_WORLD));
  } else {
    MPI_Status status;
    int count = 0;
    MPI(MPI_Recv(space.at(), 1, whole, 0, 2, MPI_COMM_WORLD, &status));
    MPI(MPI_Get_count(&status, whole, &count));
    CHECK_EQ(count, 1);
    MPI(MPI_Get_elements(&status, whole, &count));
    CHECK_EQ(count, MPI_UNDEFINED);
    MPI_Count elements = 0;
    MPI(MPI_Get_elements_c(&status, whole, &elements));
    CHECK_EQ(elements, total);
    space.verify(2);
  }
  MPI(MPI_Type_free(&mib));
  MPI(MPI_Type_free(&whole));
}

}  // namespace

int main(int argc, char** argv) {
  return check::main(argc, argv, {{"large_count", large_count, 2}, {"derived", derived, 2}});
}
