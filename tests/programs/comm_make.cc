// Communicators made in every way: dup, idup, dup with info, split, split by type, create, create
// from a group; compared, named, isolated from each other, freed with operations pending, hundreds
// at a time and thousands one after the other.
#include <algorithm>
#include <string>

#include "check.h"

namespace {

void expect_works(MPI_Comm comm, const std::vector<int>& world_ranks) {
  int rank = -1, size = -1, flag = 1;
  MPI(MPI_Comm_rank(comm, &rank));
  MPI(MPI_Comm_size(comm, &size));
  MPI(MPI_Comm_test_inter(comm, &flag));
  CHECK(!flag);
  CHECK_EQ(size, world_ranks.size());
  CHECK_EQ(world_ranks[rank], check::rank);
  std::vector<int> all(size, -1);
  MPI(MPI_Allgather(&check::rank, 1, MPI_INT, all.data(), 1, MPI_INT, comm));
  for (int i = 0; i < size; ++i) CHECK_EQ(all[i], world_ranks[i]);
  int got = -1, to = (rank + 1) % size, from = (rank + size - 1) % size;
  MPI(MPI_Sendrecv(&rank, 1, MPI_INT, to, 3, &got, 1, MPI_INT, from, 3, comm, MPI_STATUS_IGNORE));
  CHECK_EQ(got, from);
}

std::vector<int> everyone() {
  std::vector<int> v(check::size);
  for (int i = 0; i < check::size; ++i) v[i] = i;
  return v;
}

int compare(MPI_Comm a, MPI_Comm b) {
  int result = -1;
  MPI(MPI_Comm_compare(a, b, &result));
  return result;
}

void dup() {
  MPI_Comm a = MPI_COMM_NULL, b = MPI_COMM_NULL, c = MPI_COMM_NULL;
  MPI(MPI_Comm_dup(MPI_COMM_WORLD, &a));
  MPI(MPI_Comm_dup(a, &b));
  MPI(MPI_Comm_dup(MPI_COMM_SELF, &c));
  expect_works(a, everyone());
  expect_works(b, everyone());
  expect_works(c, {check::rank});
  CHECK_EQ(compare(a, a), MPI_IDENT);
  CHECK_EQ(compare(a, b), MPI_CONGRUENT);
  CHECK_EQ(compare(a, c), check::size == 1 ? MPI_CONGRUENT : MPI_UNEQUAL);
  MPI(MPI_Comm_free(&a));
  CHECK_EQ(a, MPI_COMM_NULL);
  expect_works(b, everyone());
  MPI(MPI_Comm_free(&b));
  MPI(MPI_Comm_free(&c));
}

void idup() {
  MPI_Comm comms[5];
  MPI_Request requests[5];
  for (int i = 0; i < 5; ++i) MPI(MPI_Comm_idup(MPI_COMM_WORLD, &comms[i], &requests[i]));
  int one = 1, sum = 0;
  MPI(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  CHECK_EQ(sum, check::size);
  MPI(MPI_Waitall(5, requests, MPI_STATUSES_IGNORE));
  for (MPI_Comm& c : comms) {
    expect_works(c, everyone());
    MPI(MPI_Comm_free(&c));
  }
  MPI_Info info = MPI_INFO_NULL;
  MPI_Comm comm = MPI_COMM_NULL;
  MPI(MPI_Info_create(&info));
  MPI(MPI_Info_set(info, "mpi_assert_no_any_tag", "false"));
  MPI(MPI_Comm_idup_with_info(MPI_COMM_WORLD, info, &comm, &requests[0]));
  MPI(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
  expect_works(comm, everyone());
  MPI(MPI_Comm_free(&comm));
  MPI(MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm));
  expect_works(comm, everyone());
  MPI_Info used = MPI_INFO_NULL;
  MPI(MPI_Comm_set_info(comm, info));
  MPI(MPI_Comm_get_info(comm, &used));
  CHECK(used != MPI_INFO_NULL);
  MPI(MPI_Info_free(&used));
  MPI(MPI_Comm_free(&comm));
  MPI(MPI_Info_free(&info));
}

// Colours by remainder, keys that reverse, undefined colours, equal keys (old order).
void split() {
  for (int colors = 1; colors <= 3; ++colors) {
    MPI_Comm comm = MPI_COMM_NULL;
    MPI(MPI_Comm_split(MPI_COMM_WORLD, check::rank % colors, -check::rank, &comm));
    std::vector<int> wanted;
    for (int r = check::size - 1; r >= 0; --r) {
      if (r % colors == check::rank % colors) wanted.push_back(r);
    }
    expect_works(comm, wanted);
    if (colors > 1 && check::size > 1) CHECK_EQ(compare(comm, MPI_COMM_WORLD), MPI_UNEQUAL);
    if (colors == 1 && check::size > 1) CHECK_EQ(compare(comm, MPI_COMM_WORLD), MPI_SIMILAR);
    MPI(MPI_Comm_free(&comm));
  }
  MPI_Comm comm = MPI_COMM_WORLD;
  int color = check::rank % 2 ? MPI_UNDEFINED : 77;
  MPI(MPI_Comm_split(MPI_COMM_WORLD, color, 0, &comm));
  std::vector<int> even;
  for (int r = 0; r < check::size; r += 2) even.push_back(r);
  if (check::rank % 2) {
    CHECK_EQ(comm, MPI_COMM_NULL);
  } else {
    expect_works(comm, even);
    MPI(MPI_Comm_free(&comm));
  }
  MPI(MPI_Comm_split(MPI_COMM_WORLD, MPI_UNDEFINED, 0, &comm));
  CHECK_EQ(comm, MPI_COMM_NULL);
}

void split_type() {
  MPI_Comm comm = MPI_COMM_NULL, none = MPI_COMM_WORLD;
  MPI(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &comm));
  int size = 0;
  MPI(MPI_Comm_size(comm, &size));
  CHECK(size >= 1 && size <= check::size);
  char name[MPI_MAX_PROCESSOR_NAME] = "", root_name[MPI_MAX_PROCESSOR_NAME] = "";
  int length = 0;
  MPI(MPI_Get_processor_name(name, &length));
  memcpy(root_name, name, sizeof name);
  MPI(MPI_Bcast(root_name, sizeof root_name, MPI_CHAR, 0, comm));
  CHECK_EQ(std::string(name), std::string(root_name));
  MPI(MPI_Comm_free(&comm));
  MPI(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_UNDEFINED, 0, MPI_INFO_NULL, &none));
  CHECK_EQ(none, MPI_COMM_NULL);
  // By the name of a hardware domain: the ones that MPI_Get_hw_resource_info tells, and no others.
  MPI_Info info = MPI_INFO_NULL, domains = MPI_INFO_NULL;
  MPI(MPI_Info_create(&info));
  MPI(MPI_Get_hw_resource_info(&domains));
  int count = 0;
  MPI(MPI_Info_get_nkeys(domains, &count));
  CHECK(count >= 1);
  char domain[MPI_MAX_INFO_KEY];
  MPI(MPI_Info_get_nthkey(domains, 0, domain));
  MPI(MPI_Info_set(info, "mpi_hw_resource_type", domain));
  MPI(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_GUIDED, 0, info, &comm));
  int same = 0;
  MPI(MPI_Comm_size(comm, &same));
  CHECK_EQ(same, size);
  MPI(MPI_Comm_free(&comm));
  MPI(MPI_Info_set(info, "mpi_hw_resource_type", "hwloc://NoSuchThing"));
  MPI(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_GUIDED, 0, info, &none));
  CHECK_EQ(none, MPI_COMM_NULL);
  MPI(MPI_Info_free(&info));
  MPI(MPI_Info_free(&domains));
  MPI(MPI_Comm_get_parent(&none));
  CHECK_EQ(none, MPI_COMM_NULL);
}

// MPI_Comm_create over subgroups, also several disjoint ones in one call.
void create() {
  MPI_Group world = MPI_GROUP_NULL, mine = MPI_GROUP_NULL;
  MPI_Comm comm = MPI_COMM_WORLD;
  MPI(MPI_Comm_group(MPI_COMM_WORLD, &world));
  std::vector<int> half;
  for (int r = check::rank % 2; r < check::size; r += 2) half.insert(half.begin(), r);
  MPI(MPI_Group_incl(world, static_cast<int>(half.size()), half.data(), &mine));
  MPI(MPI_Comm_create(MPI_COMM_WORLD, mine, &comm));
  expect_works(comm, half);
  MPI(MPI_Comm_free(&comm));
  MPI(MPI_Group_free(&mine));
  int last = check::size - 1;
  MPI(MPI_Group_incl(world, 1, &last, &mine));
  MPI(MPI_Comm_create(MPI_COMM_WORLD, mine, &comm));
  if (check::rank == last) {
    expect_works(comm, {last});
    MPI(MPI_Comm_free(&comm));
  } else {
    CHECK_EQ(comm, MPI_COMM_NULL);
  }
  MPI(MPI_Comm_create(MPI_COMM_WORLD, MPI_GROUP_EMPTY, &comm));
  CHECK_EQ(comm, MPI_COMM_NULL);
  MPI(MPI_Group_free(&mine));
  MPI(MPI_Group_free(&world));
}

// Only the members call; different subsets at the same time with the same tag and with others; a
// rank outside may be in the middle of anything.
void create_group() {
  MPI_Group world = MPI_GROUP_NULL;
  MPI(MPI_Comm_group(MPI_COMM_WORLD, &world));
  for (int width = 1; width <= std::min(check::size, 4); ++width) {
    for (int round = 0; round < 10; ++round) {
      int first = check::rank / width * width, last = std::min(first + width, check::size);
      if (round % 3 == 2 && first == 0) continue;  // these are absent: the others need them not
      std::vector<int> members;
      for (int r = first; r < last; ++r) members.push_back(r);
      MPI_Group group = MPI_GROUP_NULL;
      MPI_Comm comm = MPI_COMM_NULL;
      MPI(MPI_Group_incl(world, static_cast<int>(members.size()), members.data(), &group));
      MPI(MPI_Comm_create_group(MPI_COMM_WORLD, group, round % 2, &comm));
      expect_works(comm, members);
      MPI(MPI_Comm_free(&comm));
      MPI(MPI_Group_free(&group));
    }
  }
  MPI(MPI_Group_free(&world));
}

void names() {
  char name[MPI_MAX_OBJECT_NAME];
  int length = 0;
  MPI(MPI_Comm_get_name(MPI_COMM_WORLD, name, &length));
  CHECK_EQ(std::string(name), std::string("MPI_COMM_WORLD"));
  CHECK_EQ(length, 14);
  MPI(MPI_Comm_get_name(MPI_COMM_SELF, name, &length));
  CHECK_EQ(std::string(name), std::string("MPI_COMM_SELF"));
  MPI(MPI_Comm_get_name(MPI_COMM_NULL, name, &length));
  CHECK_EQ(std::string(name), std::string("MPI_COMM_NULL"));
  CHECK_EQ(length, 13);
  MPI_Comm comm = MPI_COMM_NULL;
  MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
  MPI(MPI_Comm_get_name(comm, name, &length));
  CHECK_EQ(length, 0);
  MPI(MPI_Comm_set_name(comm, "north of here"));
  MPI(MPI_Comm_get_name(comm, name, &length));
  CHECK_EQ(std::string(name), std::string("north of here"));
  std::string longest(MPI_MAX_OBJECT_NAME - 1, 'x');
  MPI(MPI_Comm_set_name(comm, longest.c_str()));
  MPI(MPI_Comm_get_name(comm, name, &length));
  CHECK_EQ(std::string(name), longest);
  MPI(MPI_Comm_free(&comm));
}

// The communicator is freed while messages and a collective on it are under way.
void free_pending() {
  int to = (check::rank + 1) % check::size, from = (check::rank + check::size - 1) % check::size;
  for (int bytes : {8, 100000}) {
    for (int round = 0; round < 5; ++round) {
      std::vector<uint8_t> out(bytes), in(bytes);
      check::fill(out.data(), bytes, check::key_of(check::rank, round));
      MPI_Comm comm = MPI_COMM_NULL;
      MPI_Request requests[3];
      int one = 1, sum = 0;
      MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
      MPI(MPI_Irecv(in.data(), bytes, MPI_BYTE, from, 1, comm, &requests[0]));
      MPI(MPI_Isend(out.data(), bytes, MPI_BYTE, to, 1, comm, &requests[1]));
      MPI(MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm, &requests[2]));
      MPI(MPI_Comm_free(&comm));
      CHECK_EQ(comm, MPI_COMM_NULL);
      MPI(MPI_Waitall(3, requests, MPI_STATUSES_IGNORE));
      CHECK_BYTES(in.data(), bytes, check::key_of(from, round));
      CHECK_EQ(sum, check::size);
    }
  }
}

// Waits for what is under way on that communicator, and for nothing else.
void disconnect() {
  int to = (check::rank + 1) % check::size, from = (check::rank + check::size - 1) % check::size;
  int late = -1, never = 0, sum = 0, one = 1, said = check::rank;
  MPI_Request world = MPI_REQUEST_NULL;
  MPI(MPI_Irecv(&late, 1, MPI_INT, from, 77, MPI_COMM_WORLD, &world));
  for (int bytes : {8, 100000}) {
    MPI_Comm comm = MPI_COMM_NULL;
    MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    MPI_Request inactive[2], complete = MPI_REQUEST_NULL, requests[3];
    MPI(MPI_Recv_init(&never, 1, MPI_INT, from, 5, comm, &inactive[0]));
    MPI(MPI_Barrier_init(comm, MPI_INFO_NULL, &inactive[1]));
    MPI(MPI_Ibarrier(comm, &complete));
    for (int flag = 0; !flag;) {
      MPI(MPI_Request_get_status(complete, &flag, MPI_STATUS_IGNORE));
    }
    std::vector<uint8_t> out(bytes), in(bytes);
    check::fill(out.data(), bytes, check::key_of(check::rank, bytes));
    MPI(MPI_Irecv(in.data(), bytes, MPI_BYTE, from, 1, comm, &requests[0]));
    MPI(MPI_Isend(out.data(), bytes, MPI_BYTE, to, 1, comm, &requests[1]));
    sum = 0;
    MPI(MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm, &requests[2]));
    MPI(MPI_Comm_disconnect(&comm));
    CHECK_EQ(comm, MPI_COMM_NULL);
    CHECK_BYTES(in.data(), bytes, check::key_of(from, bytes));
    CHECK_EQ(sum, check::size);
    MPI(MPI_Waitall(3, requests, MPI_STATUSES_IGNORE));
    MPI(MPI_Wait(&complete, MPI_STATUS_IGNORE));
    for (MPI_Request& request : inactive) MPI(MPI_Request_free(&request));
  }
  MPI(MPI_Send(&said, 1, MPI_INT, to, 77, MPI_COMM_WORLD));
  MPI(MPI_Wait(&world, MPI_STATUS_IGNORE));
  CHECK_EQ(late, from);
}

void hundreds() {
  std::vector<MPI_Comm> comms(300, MPI_COMM_NULL);
  for (size_t i = 0; i < comms.size(); ++i) {
    if (i % 3 == 0) {
      MPI(MPI_Comm_split(MPI_COMM_WORLD, 0, static_cast<int>(i % 5) * check::rank, &comms[i]));
    } else {
      MPI(MPI_Comm_dup(i % 3 == 1 ? MPI_COMM_WORLD : comms[i / 2], &comms[i]));
    }
  }
  check::Random random(check::seed);
  for (int round = 0; round < 60; ++round) {
    MPI_Comm comm = random.pick(comms);
    int sum = 0;
    MPI(MPI_Allreduce(&round, &sum, 1, MPI_INT, MPI_SUM, comm));
    CHECK_EQ(sum, round * check::size);
  }
  random.shuffle(comms);
  for (MPI_Comm& c : comms) MPI(MPI_Comm_free(&c));
}

void thousands() {
  for (int i = 0; i < 3000; ++i) {
    MPI_Comm comm = MPI_COMM_NULL;
    if (i % 50 == 0) {
      MPI(MPI_Comm_split(MPI_COMM_WORLD, 0, check::rank, &comm));
    } else {
      MPI(MPI_Comm_dup(i % 2 ? MPI_COMM_WORLD : MPI_COMM_SELF, &comm));
    }
    int value = i;
    if (i % 10 == 0) MPI(MPI_Bcast(&value, 1, MPI_INT, 0, comm));
    CHECK_EQ(value, i);
    MPI(MPI_Comm_free(&comm));
  }
}

// Wildcard receives and same tags on many communicators do not see each other's messages.
void isolated() {
  const int n = 20;
  std::vector<MPI_Comm> comms(n);
  std::vector<int> in(n, -1), out(n);
  std::vector<MPI_Request> requests(2 * n);
  int to = (check::rank + 1) % check::size, from = (check::rank + check::size - 1) % check::size;
  for (MPI_Comm& c : comms) MPI(MPI_Comm_dup(MPI_COMM_WORLD, &c));
  for (int i = 0; i < n; ++i)
    MPI(MPI_Irecv(&in[i], 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comms[i], &requests[i]));
  for (int i = n - 1; i >= 0; --i) {
    out[i] = check::rank * 100 + i;
    MPI(MPI_Isend(&out[i], 1, MPI_INT, to, 1, comms[i], &requests[n + i]));
  }
  MPI(MPI_Barrier(MPI_COMM_WORLD));
  MPI(MPI_Waitall(2 * n, requests.data(), MPI_STATUSES_IGNORE));
  for (int i = 0; i < n; ++i) {
    CHECK_EQ(in[i], from * 100 + i);
    MPI(MPI_Comm_free(&comms[i]));
  }
}

}  // namespace

int main(int argc, char** argv) {
  return check::main(argc, argv,
                     {{"dup", dup},
                      {"idup", idup},
                      {"split", split},
                      {"split_type", split_type},
                      {"create", create},
                      {"create_group", create_group},
                      {"names", names},
                      {"free_pending", free_pending},
                      {"disconnect", disconnect},
                      {"isolated", isolated},
                      {"hundreds", hundreds},
                      {"thousands", thousands}});
}
