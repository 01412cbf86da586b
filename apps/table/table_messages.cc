// The table by messages: who counts a key sends it to its owner and waits for the answer, and
// answers others meanwhile. An owner that computes answers nobody.
#include "table/table_forms.h"

namespace table {
namespace {

constexpr int tag_question = 1, tag_answer = 2;

class Messages : public Table {
 public:
  explicit Messages(const Layout& layout) : layout_(layout), slots_(layout.slots) {
    MPI_Comm_dup(MPI_COMM_WORLD, &comm_);
    MPI_Comm_rank(comm_, &rank_);
    listen();
  }
  ~Messages() override { MPI_Comm_free(&comm_); }

  uint64_t count(uint64_t key) override {
    const int owner = layout_.owner(key);
    if (owner == rank_) return count_here(key);
    uint64_t before = full;
    MPI_Request requests[2];
    MPI_Irecv(&before, 1, MPI_UINT64_T, owner, tag_answer, comm_, &requests[0]);
    MPI_Isend(&key, 1, MPI_UINT64_T, owner, tag_question, comm_, &requests[1]);
    for (int over = 0; !over;) {
      MPI_Testall(2, requests, &over, MPI_STATUSES_IGNORE);
      serve();
    }
    return before;
  }
  void serve() override {
    for (;;) {
      int has_come = 0;
      MPI_Status status;
      MPI_Test(&question_, &has_come, &status);
      if (!has_come) return;
      const uint64_t before = count_here(asked_);
      MPI_Send(&before, 1, MPI_UINT64_T, status.MPI_SOURCE, tag_answer, comm_);
      listen();
    }
  }
  void finish() override {
    MPI_Request met;
    MPI_Ibarrier(comm_, &met);
    for (int over = 0; !over;) {
      serve();
      MPI_Test(&met, &over, MPI_STATUS_IGNORE);
    }
    MPI_Cancel(&question_);
    MPI_Wait(&question_, MPI_STATUS_IGNORE);
  }
  const Slot* slots() const override { return slots_.data(); }

 private:
  void listen() {
    MPI_Irecv(&asked_, 1, MPI_UINT64_T, MPI_ANY_SOURCE, tag_question, comm_, &question_);
  }
  uint64_t count_here(uint64_t key) {
    uint64_t at = layout_.first_slot(key);
    for (uint64_t tried = 0; tried < layout_.slots; ++tried) {
      Slot& slot = slots_[at];
      if (slot.key == 0 || slot.key == key) {
        slot.key = key;
        return slot.times++;
      }
      at = (at + 1) % layout_.slots;
    }
    return full;
  }

  const Layout layout_;
  std::vector<Slot> slots_;
  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0;
  MPI_Request question_ = MPI_REQUEST_NULL;
  uint64_t asked_ = 0;
};

}  // namespace

std::unique_ptr<Table> make_of_messages(const Layout& layout) {
  return std::make_unique<Messages>(layout);
}

}  // namespace table
