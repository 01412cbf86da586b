// Programs that would hang if early release held what it must not hold, or waited for pages where
// the library itself must not: rules 3, 6 and 7 of docs/early-release-tests.md. Each is right by
// the MPI standard and ends with plain receives; the late sender gives the receiver time to go
// ahead.
#include <memory>

#include "release.h"

namespace {

using namespace release;

// --- what was begun before goes on while the program waits for a page ---

void isend_then_touch() {
  if (is_alone()) return;
  for (int round = 0; round < rounds(20); ++round) {
    Block out, in;
    check::fill(*out, big, key(round, check::rank));
    MPI_Request send;
    const auto start = round % 2 ? MPI_Issend : MPI_Isend;
    MPI(start(*out, big, MPI_BYTE, other(), data, MPI_COMM_WORLD, &send));
    receive_big(in, other(), data);
    CHECK_BYTES(*in, big, key(round, other()));
    MPI(MPI_Wait(&send, MPI_STATUS_IGNORE));
  }
}

void head_to_head() {
  if (is_alone()) return;
  for (int round = 0; round < rounds(20); ++round) {
    Block out, in;
    check::fill(*out, big, key(round, check::rank));
    MPI_Request receive;
    MPI(MPI_Irecv(*in, big, MPI_BYTE, other(), data, MPI_COMM_WORLD, &receive));
    if (receives()) usleep(500);
    MPI(MPI_Send(*out, big, MPI_BYTE, other(), data, MPI_COMM_WORLD));
    MPI(MPI_Wait(&receive, MPI_STATUS_IGNORE));
    if (round % 3) CHECK_BYTES(*in, big, key(round, other()));  // else the pages are given back
  }
}

// A schedule's steps are run by the message thread, or nobody reaches the end of the barrier.
void barrier_before() {
  for (int round = 0; round < rounds(8); ++round) {
    MPI_Request barrier;
    MPI(MPI_Ibarrier(MPI_COMM_WORLD, &barrier));
    if (receives()) {
      Block in;
      receive_big(in, other(), data);
      CHECK_BYTES(*in, big, key(round, other()));
      MPI(MPI_Wait(&barrier, MPI_STATUS_IGNORE));
    } else {
      MPI(MPI_Wait(&barrier, MPI_STATUS_IGNORE));
      if (!is_alone()) send_big(other(), data, key(round, check::rank));
    }
  }
}

void take_larger(void* in, void* inout, int* count, MPI_Datatype*) {
  const int* from = static_cast<int*>(in);
  int* to = static_cast<int*>(inout);
  for (int i = 0; i < *count; ++i) to[i] = from[i] > to[i] ? from[i] : to[i];
}

// The user's function needs this thread, which must not be waiting for a page.
void user_operation_before() {
  MPI_Op larger;
  MPI(MPI_Op_create(take_larger, 1, &larger));
  for (int round = 0; round < rounds(8); ++round) {
    const int mine = check::rank + round;
    int largest = -1;
    MPI_Request reduction;
    MPI(MPI_Iallreduce(&mine, &largest, 1, MPI_INT, larger, MPI_COMM_WORLD, &reduction));
    if (receives()) {
      Block in;
      receive_big(in, other(), data);
      CHECK_BYTES(*in, big, key(round, other()));
      MPI(MPI_Wait(&reduction, MPI_STATUS_IGNORE));
    } else {
      MPI(MPI_Wait(&reduction, MPI_STATUS_IGNORE));
      if (!is_alone()) send_big(other(), data, key(round, check::rank));
    }
    CHECK_EQ(largest, check::size - 1 + round);
  }
  MPI(MPI_Op_free(&larger));
}

// --- memory that the library needs itself lies in the pages of a receive ---

// The receive beside the first one is not waited for: it comes only after a message from here.
void neighbour_depends() {
  if (is_alone()) return;
  for (int round = 0; round < rounds(12); ++round) {
    if (!receives()) {
      usleep(late_us);
      send_big(other(), data, key(round, check::rank));
      await_token(other());
      send_big(other(), later, key(round, check::rank, 1));
      continue;
    }
    Block both(2 * big);
    MPI_Request requests[2];
    MPI(MPI_Irecv(*both, big, MPI_BYTE, other(), data, MPI_COMM_WORLD, &requests[0]));
    MPI(MPI_Irecv(*both + big, big, MPI_BYTE, other(), later, MPI_COMM_WORLD, &requests[1]));
    if (round % 3 == 0) {
      MPI(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
    } else {
      MPI(MPI_Waitall(1, requests, MPI_STATUSES_IGNORE));
    }
    if (round % 2) CHECK_BYTES(*both, big, key(round, other()));
    send_token(other());
    MPI(MPI_Wait(&requests[1], MPI_STATUS_IGNORE));
    CHECK_BYTES(*both, big, key(round, other()));
    CHECK_BYTES(*both + big, big, key(round, other(), 1));
  }
}

// A send from the same pages, contiguous or with gaps, must be read before the message comes.
void send_beside() {
  if (is_alone()) return;
  constexpr int pieces = 50, piece = 4'000, step = 10'000, inside = 12'500;
  MPI_Datatype comb;
  MPI(MPI_Type_vector(pieces, piece, step, MPI_BYTE, &comb));
  MPI(MPI_Type_commit(&comb));
  for (int round = 0; round < rounds(8); ++round) {
    const bool gaps = round % 2;
    if (!receives()) {
      Block in(pieces * step);
      if (gaps) {
        MPI(MPI_Recv(*in, 1, comb, other(), token, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        for (int i = 0; i < pieces; ++i) CHECK_UNTOUCHED(*in + i * step, piece, 0x44);
      } else {
        receive_big(in, other(), token);
        CHECK_UNTOUCHED(*in, big, 0x44);
      }
      usleep(late_us);
      Block out;
      check::fill(*out, big, key(round, check::rank));
      const int n = gaps ? inside : big;
      MPI(MPI_Send(*out, n, MPI_BYTE, other(), data, MPI_COMM_WORLD));
      continue;
    }
    Block all(gaps ? pieces * 4 * step : 2 * big);
    MPI_Request send;
    if (gaps) {
      // Pages of the receive lie between the pieces, and share some with them.
      MPI_Datatype wide;
      MPI(MPI_Type_vector(pieces, piece, 2 * step, MPI_BYTE, &wide));
      MPI(MPI_Type_commit(&wide));
      memset(*all, 0x44, size_t(pieces) * 2 * step);
      MPI(MPI_Isend(*all, 1, wide, other(), token, MPI_COMM_WORLD, &send));
      MPI(MPI_Recv(*all + piece, inside, MPI_BYTE, other(), data, MPI_COMM_WORLD,
                   MPI_STATUS_IGNORE));
      CHECK_BYTES(*all + piece, inside, key(round, other()));
      MPI(MPI_Type_free(&wide));
    } else {
      memset(*all, 0x44, big);
      MPI(MPI_Isend(*all, big, MPI_BYTE, other(), token, MPI_COMM_WORLD, &send));
      MPI(MPI_Recv(*all + big, big, MPI_BYTE, other(), data, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      CHECK_BYTES(*all + big, big, key(round, other()));
    }
    MPI(MPI_Wait(&send, MPI_STATUS_IGNORE));
  }
  MPI(MPI_Type_free(&comb));
}

// The same for what a buffered send has put into the program's buffer.
void bsend_beside() {
  if (is_alone()) return;
  constexpr int room = big + 2 * MPI_BSEND_OVERHEAD + 4096;
  for (int round = 0; round < rounds(8); ++round) {
    if (!receives()) {
      Block in;
      receive_big(in, other(), token);
      CHECK_UNTOUCHED(*in, big, 0x55);
      usleep(late_us);
      send_big(other(), data, key(round, check::rank));
      continue;
    }
    Block all(room + big), out;
    MPI(MPI_Buffer_attach(*all, room));
    memset(*out, 0x55, big);
    MPI(MPI_Bsend(*out, big, MPI_BYTE, other(), token, MPI_COMM_WORLD));
    MPI(MPI_Recv(*all + room, big, MPI_BYTE, other(), data, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK_BYTES(*all + room, big, key(round, other()));
    void* buffer;
    int size;
    MPI(MPI_Buffer_detach(&buffer, &size));
  }
}

// The list of requests, and the numbers of the program, lie in the buffer's first page.
void list_beside() {
  if (is_alone()) return;
  for (int round = 0; round < rounds(12); ++round) {
    if (!receives()) {
      usleep(late_us);
      for (int tag : {data, later}) send_big(other(), tag, key(round, check::rank, tag));
      int counted;
      MPI(MPI_Recv(&counted, 1, MPI_INT, other(), token, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      CHECK_EQ(counted, round);
      continue;
    }
    Block first(big, 64), second;
    auto* requests = reinterpret_cast<MPI_Request*>(first.before());
    auto* counted = reinterpret_cast<int*>(first.before() + 48);
    MPI(MPI_Irecv(*first, big, MPI_BYTE, other(), data, MPI_COMM_WORLD, &requests[0]));
    MPI(MPI_Irecv(*second, big, MPI_BYTE, other(), later, MPI_COMM_WORLD, &requests[1]));
    if (round % 2) {
      MPI(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    } else {
      for (int i : {1, 0}) MPI(MPI_Wait(&requests[i], MPI_STATUS_IGNORE));
    }
    *counted = round;
    MPI(MPI_Send(counted, 1, MPI_INT, other(), token, MPI_COMM_WORLD));
    CHECK_BYTES(*first, big, key(round, other(), data));
    CHECK_BYTES(*second, big, key(round, other(), later));
  }
}

// --- completion calls choose what can be had ---

// A handle that lies in the pages of its own buffer, which are closed before the match: whoever
// waits must neither read nor write it while nobody could open them.
void handle_beside() {
  if (is_alone()) return;
  for (int round = 0; round < rounds(12); ++round) {
    if (!receives()) {
      usleep(round % 3 ? late_us : 0);
      send_big(other(), data, key(round, check::rank));
      await_token(other());
      continue;
    }
    struct Beside {
      uint8_t before[333], in[big];
      MPI_Request handles[2];
      MPI_Status status;
    };
    const std::unique_ptr<Beside> beside(new Beside);
    beside->handles[1] = MPI_REQUEST_NULL;
    MPI(MPI_Irecv(beside->in, big, MPI_BYTE, other(), data, MPI_COMM_WORLD, &beside->handles[0]));
    switch (round % 4) {
      case 0: MPI(MPI_Wait(beside->handles, MPI_STATUS_IGNORE)); break;
      case 1: MPI(MPI_Waitall(2, beside->handles, MPI_STATUSES_IGNORE)); break;
      case 2: MPI(MPI_Wait(beside->handles, &beside->status)); break;
      default: {
        int place;
        MPI(MPI_Waitany(2, beside->handles, &place, MPI_STATUS_IGNORE));
        CHECK(place == 0);
      }
    }
    CHECK(beside->handles[0] == MPI_REQUEST_NULL);
    CHECK_BYTES(beside->in, big, key(round, other()));
    send_token(other());
  }
}

// The message that nobody has sent yet comes only after an answer to the one that is there.
void waitany_and_waitsome() {
  if (is_alone()) return;
  for (int round = 0; round < rounds(12); ++round) {
    if (!receives()) {
      usleep(round % 3 ? 0 : late_us);
      send_big(other(), later, key(round, check::rank, later));
      await_token(other());
      send_big(other(), data, key(round, check::rank, data));
      continue;
    }
    Block blocks[2];
    MPI_Request requests[2];
    for (int i : {0, 1}) {
      MPI(MPI_Irecv(*blocks[i], big, MPI_BYTE, other(), i ? later : data, MPI_COMM_WORLD,
                    &requests[i]));
    }
    int found = -1, indices[2] = {}, count = 1;
    if (round % 2) {
      MPI(MPI_Waitany(2, requests, &found, MPI_STATUS_IGNORE));
    } else {
      MPI(MPI_Waitsome(2, requests, &count, indices, MPI_STATUSES_IGNORE));
      found = indices[0];
    }
    CHECK_EQ(count, 1);
    CHECK_EQ(found, 1);
    CHECK_BYTES(*blocks[1], big, key(round, other(), later));
    send_token(other());
    MPI(MPI_Waitany(2, requests, &found, MPI_STATUS_IGNORE));
    CHECK_EQ(found, 0);
    CHECK_BYTES(*blocks[0], big, key(round, other(), data));
  }
}

// Test ends a receive in the background while another has been released, and the other way round.
void test_loops() {
  if (is_alone()) return;
  for (int round = 0; round < rounds(12); ++round) {
    if (!receives()) {
      usleep(late_us);
      send_big(other(), data, key(round, check::rank, data));
      send_big(other(), later, key(round, check::rank, later));
      continue;
    }
    Block first, second;
    MPI_Request request;
    const bool before = round % 2;
    if (before) {
      MPI(MPI_Irecv(*second, big, MPI_BYTE, other(), later, MPI_COMM_WORLD, &request));
    }
    receive_big(first, other(), data);
    if (!before) {
      MPI(MPI_Irecv(*second, big, MPI_BYTE, other(), later, MPI_COMM_WORLD, &request));
    }
    for (int done = 0; !done;) {
      if (round % 3) {
        MPI(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
      } else {
        MPI(MPI_Testall(1, &request, &done, MPI_STATUSES_IGNORE));
      }
    }
    CHECK_BYTES(*second, big, key(round, other(), later));
    CHECK_BYTES(*first, big, key(round, other(), data));
  }
}

void cancel_beside() {
  if (is_alone()) return;
  for (int round = 0; round < rounds(8); ++round) {
    if (!receives()) {
      usleep(late_us);
      send_big(other(), data, key(round, check::rank));
      await_token(other());
      continue;
    }
    Block both(2 * big);
    MPI_Request first, second;
    MPI(MPI_Irecv(*both, big, MPI_BYTE, other(), data, MPI_COMM_WORLD, &first));
    MPI(MPI_Irecv(*both + big, big, MPI_BYTE, other(), later, MPI_COMM_WORLD, &second));
    MPI(MPI_Wait(&first, MPI_STATUS_IGNORE));
    if (round % 2) CHECK_BYTES(*both, big, key(round, other()));
    MPI(MPI_Cancel(&second));
    MPI_Status status;
    MPI(MPI_Wait(&second, &status));
    int cancelled = 0;
    MPI(MPI_Test_cancelled(&status, &cancelled));
    CHECK_EQ(cancelled, 1);
    CHECK_BYTES(*both, big, key(round, other()));
    CHECK_UNTOUCHED(*both + big, big, 0xee);
    send_token(other());
  }
}

void probes_after() {
  if (is_alone()) return;
  for (int round = 0; round < rounds(9); ++round) {
    if (!receives()) {
      usleep(late_us);
      send_big(other(), data, key(round, check::rank, data));
      usleep(200);
      send_big(other(), later, key(round, check::rank, later));
      continue;
    }
    Block first, second;
    receive_big(first, other(), data);
    MPI_Status status;
    if (round % 3 == 0) {
      MPI(MPI_Probe(other(), MPI_ANY_TAG, MPI_COMM_WORLD, &status));
    } else if (round % 3 == 1) {
      for (int found = 0; !found;) {
        MPI(MPI_Iprobe(MPI_ANY_SOURCE, later, MPI_COMM_WORLD, &found, &status));
      }
    }
    if (round % 3 == 2) {
      MPI_Message message;
      MPI(MPI_Mprobe(MPI_ANY_SOURCE, later, MPI_COMM_WORLD, &message, &status));
      MPI(MPI_Mrecv(*second, big, MPI_BYTE, &message, MPI_STATUS_IGNORE));
    } else {
      CHECK_STATUS(status, other(), later, big);
      receive_big(second, other(), later);
    }
    CHECK_BYTES(*second, big, key(round, other(), later));
    CHECK_BYTES(*first, big, key(round, other(), data));
  }
}

}  // namespace

int main(int argc, char** argv) {
  return check::main(argc, argv,
                     {{"isend_then_touch", isend_then_touch, 2},
                      {"head_to_head", head_to_head, 2},
                      {"barrier_before", barrier_before, 2},
                      {"user_operation_before", user_operation_before, 2},
                      {"neighbour_depends", neighbour_depends, 2},
                      {"send_beside", send_beside, 2},
                      {"bsend_beside", bsend_beside, 2},
                      {"list_beside", list_beside, 2},
                      {"handle_beside", handle_beside, 2},
                      {"waitany_and_waitsome", waitany_and_waitsome, 2},
                      {"test_loops", test_loops, 2},
                      {"cancel_beside", cancel_beside, 2},
                      {"probes_after", probes_after, 2}});
}
