// Jobs that start others: MPI_Comm_spawn and spawn_multiple of this program itself, whose first
// argument says what the new ranks do. What two jobs have in common is tried here, too: merged
// communicators, ports between jobs, disconnect, and that nothing grows.
#include <dirent.h>
#include <fcntl.h>
#include <sys/wait.h>

#include "check.h"

namespace {

std::string self;  // this program's path

int descriptors() {
  DIR* folder = opendir("/proc/self/fd");
  int count = 0;
  while (readdir(folder)) ++count;
  closedir(folder);
  return count;
}

struct Spawned {
  MPI_Comm comm = MPI_COMM_NULL;
  int parents = 0, children = 0;
};

Spawned spawn(const char* role, int ranks, MPI_Comm comm = MPI_COMM_WORLD, int root = 0) {
  std::string word = role;
  char* arguments[] = {word.data(), nullptr};
  std::vector<int> codes(size_t(ranks), -1);
  Spawned made;
  int rank = 0;
  MPI(MPI_Comm_rank(comm, &rank));
  const bool is_root = rank == root;
  MPI(MPI_Comm_spawn(is_root ? self.c_str() : nullptr, is_root ? arguments : nullptr, ranks,
                     MPI_INFO_NULL, root, comm, &made.comm, codes.data()));
  for (const int code : codes) CHECK_EQ(code, MPI_SUCCESS);
  MPI(MPI_Comm_remote_size(made.comm, &made.children));
  MPI(MPI_Comm_size(made.comm, &made.parents));
  CHECK_EQ(made.children, ranks);
  return made;
}

// Both sides call it: every rank of one with every rank of the other, short and long.
void all_with_all(MPI_Comm comm, int others) {
  int rank = 0;
  MPI(MPI_Comm_rank(comm, &rank));
  for (const int bytes : {4, 200'000}) {
    std::vector<std::vector<char>> in(static_cast<size_t>(others)),
        out(static_cast<size_t>(others));
    std::vector<MPI_Request> requests(2 * size_t(others), MPI_REQUEST_NULL);
    for (int other = 0; other < others; ++other) {
      const auto at = size_t(other);
      in[at].resize(size_t(bytes));
      out[at].resize(size_t(bytes));
      check::fill(out[at].data(), size_t(bytes), check::mix(uint64_t(rank * 1000 + other)));
      MPI(MPI_Irecv(in[at].data(), bytes, MPI_BYTE, other, 5, comm, &requests[2 * at]));
      MPI(MPI_Isend(out[at].data(), bytes, MPI_BYTE, other, 5, comm, &requests[2 * at + 1]));
    }
    MPI(MPI_Waitall(int(requests.size()), requests.data(), MPI_STATUSES_IGNORE));
    for (int other = 0; other < others; ++other) {
      CHECK_BYTES(in[size_t(other)].data(), size_t(bytes),
                  check::mix(uint64_t(other * 1000 + rank)));
    }
  }
}

// Memory is shared with ranks of this job alone.
void share(MPI_Comm merged) {
  MPI_Comm shared = MPI_COMM_NULL;
  MPI_Group ours = MPI_GROUP_NULL, world = MPI_GROUP_NULL;
  MPI(MPI_Comm_split_type(merged, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &shared));
  MPI(MPI_Comm_group(shared, &ours));
  MPI(MPI_Comm_group(MPI_COMM_WORLD, &world));
  int size = 0;
  MPI(MPI_Group_size(ours, &size));
  for (int rank = 0, there = 0; rank < size; ++rank) {
    MPI(MPI_Group_translate_ranks(ours, 1, &rank, world, &there));
    CHECK(there != MPI_UNDEFINED);
  }
  MPI(MPI_Group_free(&world));
  MPI(MPI_Group_free(&ours));
  MPI(MPI_Comm_free(&shared));
}

// As all_with_all, on one communicator of both.
void merge_and_use(MPI_Comm comm, int parents, int children, int high) {
  MPI_Comm merged = MPI_COMM_NULL, part = MPI_COMM_NULL, copy = MPI_COMM_NULL;
  MPI(MPI_Intercomm_merge(comm, high, &merged));
  int rank = 0, size = 0, sum = 0;
  MPI(MPI_Comm_rank(merged, &rank));
  MPI(MPI_Comm_size(merged, &size));
  CHECK_EQ(size, parents + children);
  MPI(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, merged));
  CHECK_EQ(sum, size * (size - 1) / 2);
  share(merged);
  MPI(MPI_Comm_split(merged, rank % 2, -rank, &part));
  int many = 0, one = 1;
  MPI(MPI_Allreduce(&one, &many, 1, MPI_INT, MPI_SUM, part));
  CHECK_EQ(many, (size + 1 - rank % 2) / 2);
  MPI(MPI_Comm_dup(merged, &copy));
  MPI(MPI_Barrier(copy));
  MPI(MPI_Comm_free(&copy));
  MPI(MPI_Comm_free(&part));
  MPI(MPI_Comm_disconnect(&merged));
}

// Communicators of both jobs that are made of groups, whose processes have other numbers in each
// job: of the merged one, and between its halves.
void groups_of_both(MPI_Comm comm, int high) {
  MPI_Comm merged = MPI_COMM_NULL, turned = MPI_COMM_NULL, half = MPI_COMM_NULL;
  MPI_Comm between = MPI_COMM_NULL;
  MPI_Group all = MPI_GROUP_NULL, backwards = MPI_GROUP_NULL;
  MPI(MPI_Intercomm_merge(comm, high, &merged));
  int rank = 0, size = 0, sum = 0;
  MPI(MPI_Comm_rank(merged, &rank));
  MPI(MPI_Comm_size(merged, &size));
  MPI(MPI_Comm_group(merged, &all));
  int range[1][3] = {{size - 1, 0, -1}};
  MPI(MPI_Group_range_incl(all, 1, range, &backwards));
  MPI(MPI_Comm_create_group(merged, backwards, 3, &turned));
  int place = -1;
  MPI(MPI_Comm_rank(turned, &place));
  CHECK_EQ(place, size - 1 - rank);
  MPI(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, turned));
  CHECK_EQ(sum, size * (size - 1) / 2);
  MPI_Comm none = MPI_COMM_SELF;
  MPI(MPI_Comm_set_errhandler(merged, MPI_ERRORS_RETURN));
  EXPECT_CLASS(MPI_ERR_GROUP,
               MPI_Comm_create_from_group(all, "no", MPI_INFO_NULL, MPI_ERRORS_RETURN, &none));
  // Even and odd ranks of both jobs: each half has ranks of both if there are enough.
  const int own = rank % 2;
  MPI(MPI_Comm_split(merged, own, 0, &half));
  MPI(MPI_Intercomm_create(half, 0, merged, 1 - own, 9, &between));
  int beyond = 0;
  MPI(MPI_Comm_remote_size(between, &beyond));
  CHECK_EQ(beyond, (size + own) / 2);
  int one = 1, many = 0;
  MPI(MPI_Allreduce(&one, &many, 1, MPI_INT, MPI_SUM, between));
  CHECK_EQ(many, beyond);
  MPI(MPI_Comm_free(&between));
  MPI(MPI_Comm_free(&half));
  MPI(MPI_Comm_free(&turned));
  MPI(MPI_Group_free(&backwards));
  MPI(MPI_Group_free(&all));
  MPI(MPI_Comm_disconnect(&merged));
}

// Nothing that the program has open reaches the new ranks.
constexpr int kept_open = 200;

void few() {
  CHECK_EQ(dup2(STDERR_FILENO, kept_open), kept_open);
  Spawned made = spawn("talk", 2);
  close(kept_open);
  all_with_all(made.comm, made.children);
  merge_and_use(made.comm, made.parents, made.children, 0);
  MPI(MPI_Comm_disconnect(&made.comm));
}

void from_another_root() {
  Spawned made = spawn("talk", 1, MPI_COMM_WORLD, check::size - 1);
  all_with_all(made.comm, made.children);
  merge_and_use(made.comm, made.parents, made.children, 0);
  MPI(MPI_Comm_disconnect(&made.comm));
}

void groups() {
  Spawned made = spawn("groups", 3);
  groups_of_both(made.comm, 0);
  MPI(MPI_Comm_disconnect(&made.comm));
}

// Each rank for itself, all at once.
void each_its_own() {
  Spawned made = spawn("talk", 1, MPI_COMM_SELF);
  all_with_all(made.comm, made.children);
  merge_and_use(made.comm, made.parents, made.children, 0);
  MPI(MPI_Comm_disconnect(&made.comm));
}

void two_programs() {
  std::string talk = "numbered";
  char* words[] = {talk.data(), nullptr};
  char* commands[] = {self.data(), self.data()};
  char** arguments[] = {words, words};
  const int ranks[] = {1, 2};
  const MPI_Info infos[] = {MPI_INFO_NULL, MPI_INFO_NULL};
  int codes[3] = {-1, -1, -1};
  MPI_Comm comm = MPI_COMM_NULL;
  MPI(MPI_Comm_spawn_multiple(2, commands, arguments, ranks, infos, 0, MPI_COMM_WORLD, &comm,
                              codes));
  for (const int code : codes) CHECK_EQ(code, MPI_SUCCESS);
  int numbers[3] = {-1, -1, -1};
  const int root = check::rank == 0 ? MPI_ROOT : MPI_PROC_NULL;
  MPI(MPI_Gather(nullptr, 0, MPI_INT, numbers, 1, MPI_INT, root, comm));
  if (check::rank == 0) {
    CHECK_EQ(numbers[0], 0);
    CHECK_EQ(numbers[1], 1);
    CHECK_EQ(numbers[2], 1);
  }
  MPI(MPI_Comm_disconnect(&comm));
}

// Three jobs, one below the other.
void tree() {
  Spawned made = spawn("tree-2", 1, MPI_COMM_WORLD, 0);
  int depth = 0;
  const int from = 0;
  MPI(MPI_Bcast(&depth, 1, MPI_INT, from, made.comm));
  CHECK_EQ(depth, 3);
  MPI(MPI_Comm_disconnect(&made.comm));
}

void refused() {
  MPI_Comm comm = MPI_COMM_NULL;
  int codes[2] = {0, 0};
  EXPECT_CLASS(MPI_ERR_SPAWN, MPI_Comm_spawn("/no/such/program", MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0,
                                             MPI_COMM_SELF, &comm, codes));
  CHECK(comm == MPI_COMM_NULL);
  CHECK_EQ(codes[0], MPI_ERR_SPAWN);
  CHECK_EQ(codes[1], MPI_ERR_SPAWN);
  EXPECT_CLASS(MPI_ERR_SPAWN, MPI_Comm_spawn("true", MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0,
                                             MPI_COMM_SELF, &comm, MPI_ERRCODES_IGNORE));
  EXPECT_CLASS(MPI_ERR_SPAWN, MPI_Comm_spawn("false", MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0,
                                             MPI_COMM_SELF, &comm, MPI_ERRCODES_IGNORE));
  EXPECT_CLASS(MPI_ERR_SPAWN, MPI_Comm_spawn(self.c_str(), MPI_ARGV_NULL, 0, MPI_INFO_NULL, 0,
                                             MPI_COMM_SELF, &comm, MPI_ERRCODES_IGNORE));
  EXPECT_CLASS(MPI_ERR_ARG, MPI_Comm_spawn(nullptr, MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0,
                                           MPI_COMM_SELF, &comm, MPI_ERRCODES_IGNORE));
}

// Both free it while what is left of a long message is on its way: it arrives.
constexpr int long_bytes = 16 << 20;

void freed_at_once() {
  for (int round = 0; round < 3; ++round) {
    Spawned made = spawn("freed", 1);
    std::vector<char> out(size_t(long_bytes) + 1);
    check::fill(out.data(), size_t(long_bytes), 7);
    if (check::rank == 0) MPI(MPI_Send(out.data(), long_bytes, MPI_BYTE, 0, 0, made.comm));
    MPI(MPI_Comm_free(&made.comm));
  }
}

// What a round takes is given back behind it.
void rounds() {
  int before = 0;
  for (int round = 0; round < 6; ++round) {
    if (round == 2) before = descriptors();
    Spawned made = spawn("leave", 1, MPI_COMM_WORLD);
    MPI(MPI_Comm_disconnect(&made.comm));
  }
  // Links that earlier cases left to their children go when those have ended.
  CHECK(descriptors() <= before);
}

// --- the roles of those that are spawned ---

int run_child(const std::string& role, MPI_Comm parent) {
  int parents = 0, children = 0;
  MPI(MPI_Comm_remote_size(parent, &parents));
  MPI(MPI_Comm_size(parent, &children));
  CHECK_EQ(children, check::size);
  CHECK_EQ(fcntl(kept_open, F_GETFD), -1);
  if (role == "freed") {
    std::vector<char> in(size_t(long_bytes) + 1, 0);
    MPI(MPI_Recv(in.data(), long_bytes, MPI_BYTE, 0, 0, parent, MPI_STATUS_IGNORE));
    MPI(MPI_Comm_free(&parent));
    CHECK_BYTES(in.data(), size_t(long_bytes), 7);
    MPI(MPI_Finalize());
    return 0;
  }
  if (role == "talk") {
    all_with_all(parent, parents);
    merge_and_use(parent, parents, children, 1);
  } else if (role == "groups") {
    groups_of_both(parent, 1);
  } else if (role == "numbered") {
    int* number = nullptr;
    int flag = 0;
    MPI(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &number, &flag));
    CHECK_EQ(flag, 1);
    MPI(MPI_Gather(number, 1, MPI_INT, nullptr, 0, MPI_INT, 0, parent));
  } else if (role == "tree-2" || role == "tree-3") {
    int depth = role == "tree-3" ? 3 : 0;
    if (role == "tree-2") {
      Spawned made = spawn("tree-3", 1);
      MPI(MPI_Bcast(&depth, 1, MPI_INT, 0, made.comm));
      MPI(MPI_Comm_disconnect(&made.comm));
    }
    CHECK_EQ(depth, 3);
    MPI(MPI_Bcast(&depth, 1, MPI_INT, check::rank == 0 ? MPI_ROOT : MPI_PROC_NULL, parent));
  } else {
    CHECK_EQ(role, std::string("leave"));
  }
  MPI(MPI_Comm_disconnect(&parent));
  MPI_Comm again = MPI_COMM_SELF;
  MPI(MPI_Comm_get_parent(&again));
  CHECK(again == MPI_COMM_NULL);
  MPI(MPI_Finalize());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  char path[4096] = "";
  self = realpath("/proc/self/exe", path) ? path : argv[0];
  const std::string role = argc > 1 ? argv[1] : "";
  if (role.empty() || role[0] == '-') {
    return check::main(argc, argv,
                       {{"few", few},
                        {"from_another_root", from_another_root},
                        {"groups", groups},
                        {"each_its_own", each_its_own},
                        {"two_programs", two_programs},
                        {"tree", tree},
                        {"freed_at_once", freed_at_once},
                        {"refused", refused},
                        {"rounds", rounds}});
  }
  MPI_Init(&argc, &argv);
  check::learn_world();
  check::running = "spawned";
  MPI_Comm parent = MPI_COMM_NULL;
  MPI(MPI_Comm_get_parent(&parent));
  CHECK(parent != MPI_COMM_NULL);
  return run_child(role, parent);
}
