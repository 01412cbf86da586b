// Partitioned messages: random numbers of partitions on both sides, orders, layouts, threads and
// rounds, by seed; a byte is looked at the moment MPI_Parrived says that it is there. And what is
// refused.
#include <pthread.h>

#include <algorithm>
#include <atomic>

#include "check.h"

namespace {

// A message of a pair of ranks in a ring: both know it by the seed.
struct Plan {
  int out_parts, in_parts, count_out, count_in;  // elements of int in each partition
  bool strided_out, strided_in;

  explicit Plan(check::Random& random) {
    const int unit = random.pick<int>({1, 3, 100, 5000});
    const int a = random.between(1, 6), b = random.between(1, 6);
    out_parts = a;
    in_parts = b;
    count_out = b * unit;  // a * b * unit in all, on both sides
    count_in = a * unit;
    strided_out = random.chance(30);
    strided_in = random.chance(30);
  }
  int all() const { return out_parts * count_out; }
};

int value_of(uint64_t key, int round, int place) {
  return int(check::mix(check::key_of(key, uint64_t(round), uint64_t(place))) & 0x7fffffff);
}

// Ints side by side, or every second one.
MPI_Datatype make_type(bool strided) {
  MPI_Datatype type = MPI_INT;
  if (!strided) return type;
  MPI(MPI_Type_create_resized(MPI_INT, 0, 8, &type));
  MPI(MPI_Type_commit(&type));
  return type;
}

void rounds() {
  check::Random random(check::key_of(check::seed, 99));
  check::Random own(check::key_of(check::seed, uint64_t(check::rank), 1));
  const int next = (check::rank + 1) % check::size;
  const int previous = (check::rank + check::size - 1) % check::size;
  for (int turn = 0; turn < int(6 * check::scale); ++turn) {
    const Plan plan(random);
    const int out_step = plan.strided_out ? 2 : 1, in_step = plan.strided_in ? 2 : 1;
    std::vector<int> out(size_t(plan.all() * out_step), -1), in(size_t(plan.all() * in_step), -1);
    MPI_Datatype out_type = make_type(plan.strided_out), in_type = make_type(plan.strided_in);
    MPI_Request requests[2];
    const auto send_first = own.chance(50);
    for (const bool sends : {send_first, !send_first}) {
      if (sends) {
        MPI(MPI_Psend_init(out.data(), plan.out_parts, plan.count_out, out_type, next, turn,
                           MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]));
      } else {
        MPI(MPI_Precv_init(in.data(), plan.in_parts, plan.count_in, in_type, previous, turn,
                           MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]));
      }
    }
    for (int round = 0; round < 5; ++round) {
      for (int i = 0; i < plan.all(); ++i) {
        out[size_t(i * out_step)] = value_of(uint64_t(check::rank), round, i);
      }
      std::fill(in.begin(), in.end(), -1);
      if (own.chance(50)) {
        MPI(MPI_Startall(2, requests));
      } else {
        MPI(MPI_Start(&requests[1]));
        MPI(MPI_Start(&requests[0]));
      }
      std::vector<int> order(size_t(plan.out_parts));
      for (int i = 0; i < plan.out_parts; ++i) order[size_t(i)] = i;
      own.shuffle(order);
      std::vector<bool> there(size_t(plan.in_parts), false);
      const auto look = [&](int part) {
        int flag = 0;
        MPI(MPI_Parrived(requests[1], part, &flag));
        if (!flag) return false;
        for (int i = part * plan.count_in; i < (part + 1) * plan.count_in; ++i) {
          CHECK_EQ(in[size_t(i * in_step)], value_of(uint64_t(previous), round, i));
        }
        there[size_t(part)] = true;
        return true;
      };
      for (const int part : order) {
        MPI(MPI_Pready(part, requests[0]));
        (void)look(own.between(0, plan.in_parts - 1));
      }
      if (own.chance(50)) {
        for (int part = 0; part < plan.in_parts; ++part) {
          while (!there[size_t(part)] && !look(part)) continue;
        }
      }
      MPI_Status statuses[2];
      MPI(MPI_Waitall(2, requests, statuses));
      CHECK_EQ(statuses[1].MPI_SOURCE, previous);
      CHECK_EQ(statuses[1].MPI_TAG, turn);
      int count = -1, flag = 0;
      MPI(MPI_Get_count(&statuses[1], MPI_INT, &count));
      CHECK_EQ(count, plan.all());
      for (int i = 0; i < plan.all(); ++i) {
        CHECK_EQ(in[size_t(i * in_step)], value_of(uint64_t(previous), round, i));
        if (plan.strided_in) CHECK_EQ(in[size_t(i * 2 + 1)], -1);
      }
      MPI(MPI_Parrived(requests[1], 0, &flag));  // an inactive one
      CHECK(flag);
    }
    for (MPI_Request& request : requests) MPI(MPI_Request_free(&request));
    if (plan.strided_out) MPI(MPI_Type_free(&out_type));
    if (plan.strided_in) MPI(MPI_Type_free(&in_type));
  }
}

// A round of the receiver does not see what the sender has ready of the next one.
void rounds_apart() {
  if (check::rank > 1) return;
  constexpr int parts = 4, turns = 50;
  std::vector<int> data(parts, -1);
  MPI_Request request;
  if (check::rank == 0) {
    MPI(MPI_Psend_init(data.data(), parts, 1, MPI_INT, 1, 3, MPI_COMM_WORLD, MPI_INFO_NULL,
                       &request));
  } else {
    MPI(MPI_Precv_init(data.data(), parts, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_INFO_NULL,
                       &request));
  }
  for (int turn = 0; turn < turns; ++turn) {
    if (check::rank == 0) std::fill(data.begin(), data.end(), turn);
    MPI(MPI_Start(&request));
    if (check::rank == 0) MPI(MPI_Pready_range(0, parts - 1, request));
    MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
    for (const int number : data) CHECK_EQ(number, turn);
  }
  MPI(MPI_Request_free(&request));
}

// Several requests of one pair with one tag are introduced in the order in which they are made.
void same_tag() {
  if (check::rank > 1) return;
  constexpr int pairs = 5;
  int values[pairs];
  MPI_Request requests[pairs];
  for (int i = 0; i < pairs; ++i) {
    values[i] = check::rank == 0 ? 100 + i : -1;
    if (check::rank == 0) {
      MPI(MPI_Psend_init(&values[i], 1, 1, MPI_INT, 1, 7, MPI_COMM_WORLD, MPI_INFO_NULL,
                         &requests[i]));
    } else {
      MPI(MPI_Precv_init(&values[i], 1, 1, MPI_INT, 0, 7, MPI_COMM_WORLD, MPI_INFO_NULL,
                         &requests[i]));
    }
  }
  MPI(MPI_Startall(pairs, requests));
  const int first[] = {0};
  for (int i = pairs - 1; check::rank == 0 && i >= 0; --i) {
    MPI(MPI_Pready_list(1, first, requests[i]));
  }
  MPI(MPI_Waitall(pairs, requests, MPI_STATUSES_IGNORE));
  for (int i = 0; i < pairs; ++i) {
    CHECK_EQ(values[i], 100 + i);
    MPI(MPI_Request_free(&requests[i]));
  }
}

struct Worker {
  MPI_Request request;
  int first, step, parts;
  int* data;
  int value;
};

void* make_ready(void* argument) {
  const auto& worker = *static_cast<Worker*>(argument);
  for (int part = worker.first; part < worker.parts; part += worker.step) {
    worker.data[part] = worker.value + part;
    MPI(MPI_Pready(part, worker.request));
  }
  return nullptr;
}

// Each thread fills its partitions and says so.
void threads() {
  constexpr int parts = 64, workers = 8;
  const int next = (check::rank + 1) % check::size;
  const int previous = (check::rank + check::size - 1) % check::size;
  std::vector<int> out(parts, -1), in(parts, -1);
  MPI_Request requests[2];
  MPI(MPI_Psend_init(out.data(), parts, 1, MPI_INT, next, 9, MPI_COMM_WORLD, MPI_INFO_NULL,
                     &requests[0]));
  MPI(MPI_Precv_init(in.data(), parts, 1, MPI_INT, previous, 9, MPI_COMM_WORLD, MPI_INFO_NULL,
                     &requests[1]));
  for (int turn = 0; turn < int(20 * check::scale); ++turn) {
    MPI(MPI_Startall(2, requests));
    Worker all[workers];
    pthread_t ids[workers];
    for (int i = 0; i < workers; ++i) {
      all[i] = {requests[0], i, workers, parts, out.data(), 1000 * (turn + 1) + check::rank};
      CHECK_EQ(pthread_create(&ids[i], nullptr, make_ready, &all[i]), 0);
    }
    for (pthread_t id : ids) pthread_join(id, nullptr);
    MPI(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    for (int part = 0; part < parts; ++part) {
      CHECK_EQ(in[size_t(part)], 1000 * (turn + 1) + previous + part);
    }
  }
  for (MPI_Request& request : requests) MPI(MPI_Request_free(&request));
}

// To nobody and from nobody; of nothing.
void nothing() {
  MPI_Request requests[3];
  int value = 5, flag = 0;
  MPI(MPI_Psend_init(&value, 2, 0, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, MPI_INFO_NULL,
                     &requests[0]));
  MPI(MPI_Precv_init(&value, 1, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, MPI_INFO_NULL,
                     &requests[1]));
  MPI(MPI_Psend_init(nullptr, 0, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, MPI_INFO_NULL,
                     &requests[2]));
  for (int turn = 0; turn < 3; ++turn) {
    MPI(MPI_Startall(3, requests));
    MPI(MPI_Test(&requests[0], &flag, MPI_STATUS_IGNORE));
    CHECK(!flag);
    MPI(MPI_Pready_range(0, 1, requests[0]));
    MPI_Status statuses[3];
    MPI(MPI_Waitall(3, requests, statuses));
    CHECK_EQ(statuses[1].MPI_SOURCE, MPI_PROC_NULL);
  }
  for (MPI_Request& request : requests) MPI(MPI_Request_free(&request));
  CHECK_EQ(value, 5);
}

// A pair that is freed without ever being started, by either side first: what introduces the next
// pair with its tag is not taken for its own.
void freed_unused() {
  if (check::rank > 1 || check::size < 2) return;
  int unused[2] = {}, value = -1, word = 0;
  const int other = 1 - check::rank;
  for (int turn = 0; turn < int(50 * check::scale); ++turn) {
    MPI_Request request;
    const auto make = [&](int* at, int parts) {
      if (check::rank == 0) {
        MPI(MPI_Psend_init(at, parts, 1, MPI_INT, 1, 11, MPI_COMM_WORLD, MPI_INFO_NULL, &request));
      } else {
        MPI(MPI_Precv_init(at, parts, 1, MPI_INT, 0, 11, MPI_COMM_WORLD, MPI_INFO_NULL, &request));
      }
    };
    const bool is_first = check::rank == turn % 2;
    if (!is_first) {
      MPI(MPI_Recv(&word, 1, MPI_INT, other, 12, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    }
    make(unused, 2);
    MPI(MPI_Request_free(&request));
    if (is_first) MPI(MPI_Send(&word, 1, MPI_INT, other, 12, MPI_COMM_WORLD));
    if (check::rank == 0) value = 31 + turn;
    make(&value, 1);
    MPI(MPI_Start(&request));
    if (check::rank == 0) MPI(MPI_Pready(0, request));
    MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK_EQ(value, 31 + turn);
    MPI(MPI_Request_free(&request));
  }
}

void refused() {
  int values[8] = {};
  MPI_Request out = MPI_REQUEST_NULL, in = MPI_REQUEST_NULL;
  const auto send_init = [&](int partitions, MPI_Count count, int rank, int tag) {
    return MPI_Psend_init_c(values, partitions, count, MPI_INT, rank, tag, MPI_COMM_WORLD,
                            MPI_INFO_NULL, &out);
  };
  EXPECT_CLASS(MPI_ERR_ARG, send_init(-1, 1, 0, 1));
  EXPECT_CLASS(MPI_ERR_COUNT, send_init(1, -1, 0, 1));
  EXPECT_CLASS(MPI_ERR_COUNT, send_init(1 << 30, MPI_Count(1) << 50, 0, 1));
  EXPECT_CLASS(MPI_ERR_RANK, send_init(1, 1, check::size, 1));
  EXPECT_CLASS(MPI_ERR_TAG, send_init(1, 1, 0, -5));
  EXPECT_CLASS(MPI_ERR_RANK, MPI_Precv_init(values, 1, 1, MPI_INT, MPI_ANY_SOURCE, 1,
                                            MPI_COMM_WORLD, MPI_INFO_NULL, &in));
  EXPECT_CLASS(MPI_ERR_TAG, MPI_Precv_init(values, 1, 1, MPI_INT, 0, MPI_ANY_TAG, MPI_COMM_WORLD,
                                           MPI_INFO_NULL, &in));
  MPI(MPI_Psend_init(values, 4, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &out));
  MPI(MPI_Precv_init(values, 4, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &in));
  int flag = 0;
  EXPECT_CLASS(MPI_ERR_REQUEST, MPI_Pready(0, out));  // before MPI_Start
  EXPECT_CLASS(MPI_ERR_REQUEST, MPI_Pready(0, in));
  EXPECT_CLASS(MPI_ERR_REQUEST, MPI_Parrived(out, 0, &flag));
  EXPECT_CLASS(MPI_ERR_REQUEST, MPI_Pready(0, MPI_REQUEST_NULL));
  MPI(MPI_Start(&out));
  EXPECT_CLASS(MPI_ERR_REQUEST, MPI_Start(&out));
  EXPECT_CLASS(MPI_ERR_ARG, MPI_Pready(4, out));
  EXPECT_CLASS(MPI_ERR_ARG, MPI_Pready(-1, out));
  EXPECT_CLASS(MPI_ERR_ARG, MPI_Pready_range(2, 1, out));
  const int twice[] = {2, 2};
  EXPECT_CLASS(MPI_ERR_ARG, MPI_Pready_list(2, twice, out));
  EXPECT_CLASS(MPI_ERR_ARG, MPI_Pready(2, out));
  EXPECT_CLASS(MPI_ERR_ARG, MPI_Parrived(in, 4, &flag));
  MPI(MPI_Pready_range(0, 1, out));
  MPI(MPI_Pready(3, out));
  MPI(MPI_Wait(&out, MPI_STATUS_IGNORE));
  MPI(MPI_Request_free(&out));
  MPI(MPI_Request_free(&in));
  if (check::size < 2 || check::rank > 1) return;
  // Sides of different sizes: the receiver hears of it, its buffer is untouched, nobody hangs.
  if (check::rank == 0) {
    MPI(MPI_Psend_init(values, 4, 2, MPI_INT, 1, 2, MPI_COMM_WORLD, MPI_INFO_NULL, &out));
    MPI(MPI_Start(&out));
    MPI(MPI_Pready_range(0, 3, out));
    MPI(MPI_Wait(&out, MPI_STATUS_IGNORE));
    MPI(MPI_Request_free(&out));
  } else {
    std::fill(values, values + 8, 6);
    MPI(MPI_Precv_init(values, 1, 2, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_INFO_NULL, &in));
    MPI(MPI_Start(&in));
    EXPECT_CLASS(MPI_ERR_TRUNCATE, MPI_Wait(&in, MPI_STATUS_IGNORE));
    for (const int value : values) CHECK_EQ(value, 6);
    MPI(MPI_Request_free(&in));
  }
  // The same with a receiver that wants more: nobody tells it that what never comes is there.
  if (check::rank == 0) {
    MPI(MPI_Psend_init(values, 1, 1, MPI_INT, 1, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &out));
    MPI(MPI_Start(&out));
    MPI(MPI_Pready(0, out));
    MPI(MPI_Wait(&out, MPI_STATUS_IGNORE));
    MPI(MPI_Request_free(&out));
  } else {
    MPI(MPI_Precv_init(values, 4, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &in));
    MPI(MPI_Start(&in));
    // Who asks until it is there hears that it never will be.
    const double end = MPI_Wtime() + 30;
    int code = MPI_SUCCESS;
    while (code == MPI_SUCCESS && MPI_Wtime() < end) {
      code = MPI_Parrived(in, 3, &flag);
      CHECK(!flag);
    }
    EXPECT_CLASS(MPI_ERR_TRUNCATE, code);
    EXPECT_CLASS(MPI_ERR_TRUNCATE, MPI_Wait(&in, MPI_STATUS_IGNORE));
    MPI(MPI_Request_free(&in));
  }
}

}  // namespace

int main(int argc, char** argv) {
  return check::main(argc, argv,
                     {{"rounds", rounds},
                      {"rounds_apart", rounds_apart, 2},
                      {"same_tag", same_tag, 2},
                      {"threads", threads},
                      {"nothing", nothing},
                      {"freed_unused", freed_unused, 2},
                      {"refused", refused}},
                     MPI_THREAD_MULTIPLE);
}
