// What a program may do wrong with inter-communicators: each gives the error class of the standard
// on the ranks that are wrong, before anything is sent, so that the next right call works.
#include <string>

#include "inter.h"

namespace {

using inter::Sides;

int one = 1, many[64];

// All of both sides call this behind each mistake, those that made none, too.
void works_still(const Sides& sides) {
  int sum = 0;
  MPI(MPI_Barrier(sides.comm));
  MPI(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, sides.comm));
  CHECK_EQ(sum, sides.size(1 - sides.side));
}

void ranks_and_roots() {
  inter::everywhere([](const Sides& sides) {
    const MPI_Comm c = sides.comm;
    const int beyond = sides.size(1 - sides.side);
    int flag = 0;
    for (const int rank :
         std::vector<int>{beyond, beyond + 5, -1, -77, MPI_ROOT, INT32_MAX, INT32_MIN}) {
      if (rank != -1) {  // that is MPI_ANY_SOURCE
        EXPECT_CLASS(MPI_ERR_RANK, MPI_Recv(many, 1, MPI_INT, rank, 0, c, MPI_STATUS_IGNORE));
        EXPECT_CLASS(MPI_ERR_RANK, MPI_Iprobe(rank, 0, c, &flag, MPI_STATUS_IGNORE));
      }
      EXPECT_CLASS(MPI_ERR_RANK, MPI_Send(many, 1, MPI_INT, rank, 0, c));
      if (rank == MPI_ROOT) continue;
      MPI_Request request = MPI_REQUEST_NULL;
      EXPECT_CLASS(MPI_ERR_ROOT, MPI_Bcast(many, 1, MPI_INT, rank, c));
      EXPECT_CLASS(MPI_ERR_ROOT, MPI_Ibcast(many, 1, MPI_INT, rank, c, &request));
      EXPECT_CLASS(MPI_ERR_ROOT,
                   MPI_Bcast_init(many, 1, MPI_INT, rank, c, MPI_INFO_NULL, &request));
      EXPECT_CLASS(MPI_ERR_ROOT, MPI_Gather(many, 1, MPI_INT, many, 1, MPI_INT, rank, c));
      EXPECT_CLASS(MPI_ERR_ROOT, MPI_Scatter(many, 1, MPI_INT, many, 1, MPI_INT, rank, c));
      EXPECT_CLASS(MPI_ERR_ROOT, MPI_Reduce(many, &many[1], 1, MPI_INT, MPI_SUM, rank, c));
      EXPECT_CLASS(MPI_ERR_ROOT, MPI_Gatherv(many, 1, MPI_INT, many, many, many, MPI_INT, rank, c));
      EXPECT_CLASS(MPI_ERR_ROOT,
                   MPI_Scatterv(many, many, many, MPI_INT, many, 1, MPI_INT, rank, c));
    }
    // On an ordinary communicator they are no roots.
    EXPECT_CLASS(MPI_ERR_ROOT, MPI_Bcast(many, 1, MPI_INT, MPI_ROOT, sides.local));
    EXPECT_CLASS(MPI_ERR_ROOT, MPI_Bcast(many, 1, MPI_INT, MPI_PROC_NULL, sides.local));
    works_still(sides);
    // One rank alone is wrong, and tries again.
    if (sides.side == 0 && sides.rank == 0) {
      EXPECT_CLASS(MPI_ERR_ROOT, MPI_Bcast(many, 1, MPI_INT, beyond, c));
      EXPECT_CLASS(MPI_ERR_COUNT, MPI_Bcast(many, -1, MPI_INT, MPI_ROOT, c));
      EXPECT_CLASS(MPI_ERR_TYPE, MPI_Bcast(many, 1, MPI_DATATYPE_NULL, MPI_ROOT, c));
      EXPECT_CLASS(MPI_ERR_BUFFER, MPI_Bcast(nullptr, 1, MPI_INT, MPI_ROOT, c));
      EXPECT_CLASS(MPI_ERR_BUFFER, MPI_Allreduce(nullptr, many, 1, MPI_INT, MPI_SUM, c));
    }
    works_still(sides);
  });
}

// There is nothing in place between two sides.
void in_place() {
  inter::everywhere([](const Sides& sides) {
    const MPI_Comm c = sides.comm;
    const int size = sides.size(sides.side), beyond = sides.size(1 - sides.side);
    std::vector<int> zeros(static_cast<size_t>(std::max(size, beyond)), 0);
    std::vector<MPI_Datatype> types(zeros.size(), MPI_INT);
    int* z = zeros.data();
    MPI_Request r = MPI_REQUEST_NULL;
    const void* here = MPI_IN_PLACE;
    EXPECT_CLASS(MPI_ERR_BUFFER, MPI_Allreduce(here, many, 1, MPI_INT, MPI_SUM, c));
    EXPECT_CLASS(MPI_ERR_BUFFER, MPI_Iallreduce(here, many, 1, MPI_INT, MPI_SUM, c, &r));
    EXPECT_CLASS(MPI_ERR_BUFFER,
                 MPI_Allreduce_init(here, many, 1, MPI_INT, MPI_SUM, c, MPI_INFO_NULL, &r));
    EXPECT_CLASS(MPI_ERR_BUFFER, MPI_Allreduce_c(here, many, 1, MPI_INT, MPI_SUM, c));
    EXPECT_CLASS(MPI_ERR_BUFFER, MPI_Allgather(here, 1, MPI_INT, many, 1, MPI_INT, c));
    EXPECT_CLASS(MPI_ERR_BUFFER, MPI_Allgatherv(here, 1, MPI_INT, many, z, z, MPI_INT, c));
    EXPECT_CLASS(MPI_ERR_BUFFER, MPI_Alltoall(here, 1, MPI_INT, many, 1, MPI_INT, c));
    EXPECT_CLASS(MPI_ERR_BUFFER, MPI_Alltoallv(here, z, z, MPI_INT, many, z, z, MPI_INT, c));
    EXPECT_CLASS(MPI_ERR_BUFFER,
                 MPI_Alltoallw(here, z, z, types.data(), many, z, z, types.data(), c));
    EXPECT_CLASS(MPI_ERR_BUFFER, MPI_Reduce_scatter(here, many, z, MPI_INT, MPI_SUM, c));
    EXPECT_CLASS(MPI_ERR_BUFFER, MPI_Reduce_scatter_block(here, many, 1, MPI_INT, MPI_SUM, c));
    // A rank's own part of what goes to a root beyond, or comes from it.
    EXPECT_CLASS(MPI_ERR_BUFFER, MPI_Gather(here, 1, MPI_INT, nullptr, 0, MPI_INT, 0, c));
    EXPECT_CLASS(MPI_ERR_BUFFER, MPI_Reduce(here, nullptr, 1, MPI_INT, MPI_SUM, 0, c));
    EXPECT_CLASS(MPI_ERR_BUFFER, MPI_Scatter(nullptr, 0, MPI_INT, MPI_IN_PLACE, 1, MPI_INT, 0, c));
    // One variable for both.
    EXPECT_CLASS(MPI_ERR_BUFFER, MPI_Allreduce(many, many, 1, MPI_INT, MPI_SUM, c));
    EXPECT_CLASS(MPI_ERR_BUFFER, MPI_Allgather(many, 1, MPI_INT, many, 1, MPI_INT, c));
    works_still(sides);
  });
}

// What there is on one group only, and what there is on two.
void kinds() {
  int flag = 0, size = 0;
  MPI_Group group = MPI_GROUP_NULL;
  MPI_Comm made = MPI_COMM_NULL;
  EXPECT_CLASS(MPI_ERR_COMM, MPI_Comm_remote_size(MPI_COMM_WORLD, &size));
  EXPECT_CLASS(MPI_ERR_COMM, MPI_Comm_remote_group(MPI_COMM_WORLD, &group));
  EXPECT_CLASS(MPI_ERR_COMM, MPI_Intercomm_merge(MPI_COMM_WORLD, 0, &made));
  EXPECT_CLASS(MPI_ERR_COMM, MPI_Intercomm_merge(MPI_COMM_NULL, 0, &made));
  EXPECT_CLASS(MPI_ERR_COMM, MPI_Comm_test_inter(MPI_COMM_NULL, &flag));
  inter::everywhere([](const Sides& sides) {
    const MPI_Comm c = sides.comm;
    MPI_Comm none = MPI_COMM_NULL;
    MPI_Group own = MPI_GROUP_NULL, others = MPI_GROUP_NULL;
    MPI_Request r = MPI_REQUEST_NULL;
    int dims[] = {1}, periods[] = {0}, status = 0;
    EXPECT_CLASS(MPI_ERR_COMM, MPI_Scan(many, &many[1], 1, MPI_INT, MPI_SUM, c));
    EXPECT_CLASS(MPI_ERR_COMM, MPI_Exscan(many, &many[1], 1, MPI_INT, MPI_SUM, c));
    EXPECT_CLASS(MPI_ERR_COMM, MPI_Iscan(many, &many[1], 1, MPI_INT, MPI_SUM, c, &r));
    EXPECT_CLASS(MPI_ERR_COMM, MPI_Exscan_c(many, &many[1], 1, MPI_INT, MPI_SUM, c));
    EXPECT_CLASS(MPI_ERR_COMM,
                 MPI_Scan_init(many, &many[1], 1, MPI_INT, MPI_SUM, c, MPI_INFO_NULL, &r));
    EXPECT_CLASS(MPI_ERR_COMM, MPI_Cart_create(c, 1, dims, periods, 0, &none));
    EXPECT_CLASS(MPI_ERR_COMM, MPI_Cart_map(c, 1, dims, periods, &status));
    EXPECT_CLASS(MPI_ERR_TOPOLOGY, MPI_Cartdim_get(c, &status));
    MPI(MPI_Topo_test(c, &status));
    CHECK_EQ(status, MPI_UNDEFINED);
    MPI(MPI_Comm_group(c, &own));
    MPI(MPI_Comm_remote_group(c, &others));
    EXPECT_CLASS(MPI_ERR_COMM, MPI_Comm_create_group(c, own, 1, &none));
    EXPECT_CLASS(MPI_ERR_COMM, MPI_Intercomm_create(c, 0, MPI_COMM_WORLD, 0, 1, &none));
    EXPECT_CLASS(MPI_ERR_GROUP, MPI_Comm_create(c, others, &none));
    EXPECT_CLASS(MPI_ERR_GROUP, MPI_Comm_create(c, MPI_GROUP_NULL, &none));
    EXPECT_CLASS(MPI_ERR_ARG, MPI_Comm_split(c, -4, 0, &none));
    EXPECT_CLASS(MPI_ERR_ARG, MPI_Comm_remote_size(c, nullptr));
    EXPECT_CLASS(MPI_ERR_ARG, MPI_Comm_remote_group(c, nullptr));
    EXPECT_CLASS(MPI_ERR_ARG, MPI_Intercomm_merge(c, 0, nullptr));
    MPI(MPI_Group_free(&own));
    MPI(MPI_Group_free(&others));
    works_still(sides);
  });
}

// What the leader alone passes: all ranks of its group are told that it was wrong.
void leaders() {
  MPI_Comm w = MPI_COMM_WORLD, none = w, local = MPI_COMM_NULL;
  const int size = check::size;
  MPI(MPI_Comm_split(w, check::rank == 0 ? 0 : 1, 0, &local));
  int rank = -1, local_size = 0;
  MPI(MPI_Comm_rank(local, &rank));
  MPI(MPI_Comm_size(local, &local_size));
  const int other = check::rank == 0 ? 1 : 0, own = check::rank == 0 ? 0 : 1;
  for (const int leader : std::vector<int>{-1, local_size, MPI_PROC_NULL}) {
    EXPECT_CLASS(MPI_ERR_RANK, MPI_Intercomm_create(local, leader, w, other, 1, &none));
  }
  const int leads = rank == 0;
  for (const int remote : std::vector<int>{-1, size, MPI_PROC_NULL, MPI_ANY_SOURCE, own}) {
    EXPECT_CLASS(MPI_ERR_RANK, MPI_Intercomm_create(local, 0, w, remote, 1, &none));
    CHECK_EQ(none, MPI_COMM_NULL);
  }
  EXPECT_CLASS(leads ? MPI_ERR_TAG : MPI_ERR_RANK,
               MPI_Intercomm_create(local, 0, w, other, -1, &none));
  EXPECT_CLASS(leads ? MPI_ERR_COMM : MPI_ERR_RANK,
               MPI_Intercomm_create(local, 0, MPI_COMM_NULL, other, 1, &none));
  EXPECT_CLASS(MPI_ERR_COMM, MPI_Intercomm_create(MPI_COMM_NULL, 0, w, other, 1, &none));
  EXPECT_CLASS(MPI_ERR_ARG, MPI_Intercomm_create(local, 0, w, other, 1, nullptr));
  MPI(MPI_Intercomm_create(local, 0, w, other, 1, &none));
  MPI(MPI_Barrier(none));
  MPI(MPI_Comm_free(&none));
  MPI(MPI_Comm_free(&local));
}

// Rank 1 is in both groups, and calls for both.
void shared_process() {
  if (check::rank > 2) return;
  MPI_Group world = MPI_GROUP_NULL, groups[2];
  MPI(MPI_Comm_group(MPI_COMM_WORLD, &world));
  const int members[2][2] = {{0, 1}, {2, 1}};
  for (int k = 0; k < 2; ++k) {
    MPI(MPI_Group_incl(world, 2, members[k], &groups[k]));
    int rank = -1;
    MPI(MPI_Group_rank(groups[k], &rank));
    if (rank == MPI_UNDEFINED) continue;
    MPI_Comm local = MPI_COMM_NULL, none = MPI_COMM_WORLD;
    MPI(MPI_Comm_create_group(MPI_COMM_WORLD, groups[k], 4, &local));
    EXPECT_CLASS(MPI_ERR_COMM,
                 MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, members[1 - k][0], 5, &none));
    CHECK_EQ(none, MPI_COMM_NULL);
    MPI(MPI_Comm_free(&local));
  }
  for (MPI_Group& group : groups) MPI(MPI_Group_free(&group));
  MPI(MPI_Group_free(&world));
}

int from_groups(MPI_Group own, int leader, MPI_Group others, int other_leader, const char* tag) {
  MPI_Comm made = MPI_COMM_WORLD;
  const int code = MPI_Intercomm_create_from_groups(own, leader, others, other_leader, tag,
                                                    MPI_INFO_NULL, MPI_ERRORS_RETURN, &made);
  CHECK_EQ(made == MPI_COMM_NULL, code != MPI_SUCCESS || own == MPI_GROUP_EMPTY);
  if (made != MPI_COMM_NULL) {
    MPI(MPI_Barrier(made));
    MPI(MPI_Comm_free(&made));
  }
  return code;
}

// Ranks 0 and 1 on one side, 2 on the other.
void of_groups() {
  if (check::rank > 2) return;
  MPI_Group world = MPI_GROUP_NULL, first = MPI_GROUP_NULL, second = MPI_GROUP_NULL,
            part = MPI_GROUP_NULL;
  MPI(MPI_Comm_group(MPI_COMM_WORLD, &world));
  const int ranks[] = {0, 1, 2};
  MPI(MPI_Group_incl(world, 2, ranks, &first));
  MPI(MPI_Group_incl(world, 1, ranks, &part));
  MPI(MPI_Group_incl(world, 1, ranks + 2, &second));
  const bool in_first = check::rank < 2;
  const MPI_Group own = in_first ? first : second, others = in_first ? second : first;
  const std::string tag(MPI_MAX_STRINGTAG_LEN, 't');
  EXPECT_CLASS(MPI_ERR_GROUP, from_groups(others, 0, own, 0, "t"));
  EXPECT_CLASS(MPI_ERR_GROUP, from_groups(MPI_GROUP_NULL, 0, others, 0, "t"));
  EXPECT_CLASS(MPI_ERR_RANK, from_groups(own, -1, others, 0, "t"));
  EXPECT_CLASS(MPI_ERR_RANK, from_groups(own, in_first ? 2 : 1, others, 0, "t"));
  EXPECT_CLASS(MPI_ERR_RANK, from_groups(own, 0, others, 7, "t"));
  EXPECT_CLASS(MPI_ERR_RANK, from_groups(own, 0, own, 0, "t"));
  EXPECT_CLASS(MPI_ERR_RANK, from_groups(own, 0, MPI_GROUP_EMPTY, 0, "t"));
  EXPECT_CLASS(check::rank == 1 ? MPI_ERR_RANK : MPI_ERR_GROUP,
               from_groups(own, 0, MPI_GROUP_NULL, 0, "t"));
  EXPECT_CLASS(MPI_ERR_ARG, from_groups(own, 0, others, 0, tag.c_str()));
  EXPECT_CLASS(MPI_SUCCESS, from_groups(MPI_GROUP_EMPTY, 0, others, 0, "t"));
  // Rank 2 takes rank 0 alone for the other side.
  EXPECT_CLASS(MPI_ERR_GROUP, from_groups(own, 0, in_first ? others : part, 0, "t"));
  EXPECT_CLASS(MPI_SUCCESS, from_groups(own, 0, others, 0, "t"));
  for (MPI_Group* group : {&world, &first, &second, &part}) MPI(MPI_Group_free(group));
}

// Ranks that pass other amounts of data than those beyond expect.
void amounts() {
  inter::everywhere([](const Sides& sides) {
    if (sides.size(0) != 1 || sides.size(1) != 1) return;
    std::vector<int> out(9, 1), in(9, 0);
    const int count = sides.side == 0 ? 3 : 4;
    const int code =
        MPI_Alltoall(out.data(), count, MPI_INT, in.data(), count, MPI_INT, sides.comm);
    CHECK_EQ(check::class_of(code), MPI_ERR_TRUNCATE);
    works_still(sides);
  });
}

}  // namespace

int main(int argc, char** argv) {
  return check::main(argc, argv,
                     {{"ranks_and_roots", ranks_and_roots, 2},
                      {"in_place", in_place, 2},
                      {"kinds", kinds, 2},
                      {"leaders", leaders, 2},
                      {"shared_process", shared_process, 3},
                      {"of_groups", of_groups, 3},
                      {"amounts", amounts, 2}});
}
