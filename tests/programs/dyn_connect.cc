// Groups of one job that meet by a port: accept and connect, join over a socket, names, and what
// may be done wrong. Groups of two jobs meet in dyn_spawn.cc.
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

namespace {

// Even ranks accept, odd ones connect.
struct Half {
  MPI_Comm comm = MPI_COMM_NULL;
  int rank = 0, size = 0, others = 0;
  bool accepts = false;

  Half() : accepts(check::rank % 2 == 0) {
    MPI(MPI_Comm_split(MPI_COMM_WORLD, check::rank % 2, 0, &comm));
    MPI(MPI_Comm_rank(comm, &rank));
    MPI(MPI_Comm_size(comm, &size));
    others = check::size - size;
  }
  ~Half() { MPI_Comm_free(&comm); }
};

void tell_port(char (&port)[MPI_MAX_PORT_NAME]) {
  MPI(MPI_Bcast(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, MPI_COMM_WORLD));
}

// What works between the sides: messages of all lengths, and a collective.
void talk_across(MPI_Comm comm, int own, int others, bool first) {
  int remote = 0, sum = 0, one = 1, inter = 0;
  MPI(MPI_Comm_test_inter(comm, &inter));
  CHECK_EQ(inter, 1);
  MPI(MPI_Comm_remote_size(comm, &remote));
  CHECK_EQ(remote, others);
  for (const int bytes : {0, 1, 5000, 300'000}) {
    const uint64_t key = check::mix(uint64_t(bytes));
    std::vector<char> out(size_t(bytes) + 1), in(size_t(bytes) + 1, 0);
    check::fill(out.data(), size_t(bytes), key);
    const int step = own > others ? others : own;
    int rank = 0;
    MPI(MPI_Comm_rank(comm, &rank));
    std::vector<MPI_Request> sends;
    for (int other = rank % step; other < others; other += step) {
      MPI_Request request = MPI_REQUEST_NULL;
      MPI(MPI_Isend(out.data(), bytes, MPI_BYTE, other, first ? 1 : 2, comm, &request));
      sends.push_back(request);
    }
    for (int other = rank % step; other < others; other += step) {
      MPI_Status status;
      MPI(MPI_Recv(in.data(), bytes, MPI_BYTE, other, first ? 2 : 1, comm, &status));
      CHECK_BYTES(in.data(), size_t(bytes), key);
      CHECK_STATUS(status, other, first ? 2 : 1, bytes);
    }
    MPI(MPI_Waitall(int(sends.size()), sends.data(), MPI_STATUSES_IGNORE));
  }
  MPI(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm));
  CHECK_EQ(sum, others);
}

void meet() {
  Half half;
  char port[MPI_MAX_PORT_NAME] = "";
  if (check::rank == 0) MPI(MPI_Open_port(MPI_INFO_NULL, port));
  tell_port(port);
  for (int round = 0; round < 3; ++round) {
    MPI_Comm between = MPI_COMM_NULL, merged = MPI_COMM_NULL;
    if (half.accepts) {
      MPI(MPI_Comm_accept(half.rank == 0 ? port : nullptr, MPI_INFO_NULL, 0, half.comm, &between));
    } else {
      const int root = half.size - 1;
      MPI(MPI_Comm_connect(half.rank == root ? port : nullptr, MPI_INFO_NULL, root, half.comm,
                           &between));
    }
    talk_across(between, half.size, half.others, half.accepts);
    MPI(MPI_Intercomm_merge(between, half.accepts ? 0 : 1, &merged));
    int size = 0, result = 0;
    MPI(MPI_Comm_size(merged, &size));
    CHECK_EQ(size, check::size);
    MPI(MPI_Comm_compare(merged, MPI_COMM_WORLD, &result));
    CHECK(result == MPI_SIMILAR || result == MPI_CONGRUENT);
    MPI(MPI_Comm_free(&merged));
    MPI(MPI_Comm_disconnect(&between));
    CHECK(between == MPI_COMM_NULL);
  }
  if (check::rank == 0) MPI(MPI_Close_port(port));
}

// The sentences that tell the root more are the other ranks' too, but for what it alone knows.
void wrong_ports() {
  char port[MPI_MAX_PORT_NAME] = "", name[MPI_MAX_PORT_NAME] = "";
  MPI_Comm made = MPI_COMM_NULL;
  MPI(MPI_Open_port(MPI_INFO_NULL, port));
  MPI(MPI_Close_port(port));
  EXPECT_CLASS(MPI_ERR_PORT, MPI_Close_port(port));
  for (const std::string& bad : {std::string(port), std::string(), std::string("no port"),
                                 std::string("headway-port-1:00")}) {
    snprintf(name, sizeof name, "%s", bad.c_str());
    EXPECT_CLASS(MPI_ERR_PORT, MPI_Comm_accept(name, MPI_INFO_NULL, 0, MPI_COMM_SELF, &made));
    CHECK(made == MPI_COMM_NULL);
    EXPECT_CLASS(MPI_ERR_PORT, MPI_Comm_connect(name, MPI_INFO_NULL, 0, MPI_COMM_SELF, &made));
    CHECK(made == MPI_COMM_NULL);
  }
  EXPECT_CLASS(MPI_ERR_PORT,
               MPI_Comm_connect(port, MPI_INFO_NULL, check::size - 1, MPI_COMM_WORLD, &made));
  EXPECT_CLASS(MPI_ERR_ROOT, MPI_Comm_connect(port, MPI_INFO_NULL, 1, MPI_COMM_SELF, &made));
  EXPECT_CLASS(MPI_ERR_COMM, MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_NULL, &made));
  EXPECT_CLASS(MPI_ERR_ARG, MPI_Comm_connect(nullptr, MPI_INFO_NULL, 0, MPI_COMM_SELF, &made));
}

void names() {
  char service[64], port[MPI_MAX_PORT_NAME] = "", found[MPI_MAX_PORT_NAME] = "";
  snprintf(service, sizeof service, "headway test %d/\n%d", getppid(), check::rank);
  MPI(MPI_Open_port(MPI_INFO_NULL, port));
  EXPECT_CLASS(MPI_ERR_NAME, MPI_Lookup_name(service, MPI_INFO_NULL, found));
  EXPECT_CLASS(MPI_ERR_SERVICE, MPI_Unpublish_name(service, MPI_INFO_NULL, port));
  MPI(MPI_Publish_name(service, MPI_INFO_NULL, port));
  EXPECT_CLASS(MPI_ERR_SERVICE, MPI_Publish_name(service, MPI_INFO_NULL, port));
  MPI(MPI_Lookup_name(service, MPI_INFO_NULL, found));
  CHECK_EQ(std::string(found), std::string(port));
  MPI(MPI_Barrier(MPI_COMM_WORLD));
  snprintf(service, sizeof service, "headway test %d/\n%d", getppid(),
           (check::rank + 1) % check::size);
  MPI(MPI_Lookup_name(service, MPI_INFO_NULL, found));
  CHECK(check::size == 1 || std::string(found) != std::string(port));
  MPI(MPI_Barrier(MPI_COMM_WORLD));
  snprintf(service, sizeof service, "headway test %d/\n%d", getppid(), check::rank);
  MPI(MPI_Unpublish_name(service, MPI_INFO_NULL, port));
  EXPECT_CLASS(MPI_ERR_NAME, MPI_Lookup_name(service, MPI_INFO_NULL, found));
  EXPECT_CLASS(MPI_ERR_ARG, MPI_Publish_name("", MPI_INFO_NULL, port));
  MPI(MPI_Close_port(port));
}

// A stream between an even rank and the odd one behind it.
int stream_to(int other) {
  sockaddr_un where = {};
  where.sun_family = AF_UNIX;
  snprintf(where.sun_path + 1, sizeof where.sun_path - 1, "headway-join-%d-%d", getppid(),
           check::rank / 2);
  const auto* raw = reinterpret_cast<const sockaddr*>(&where);
  const int made = socket(AF_UNIX, SOCK_STREAM, 0);
  if (check::rank % 2 == 0) {
    CHECK_EQ(bind(made, raw, sizeof where), 0);
    CHECK_EQ(listen(made, 1), 0);
    MPI(MPI_Send(nullptr, 0, MPI_BYTE, other, 0, MPI_COMM_WORLD));
    const int taken = accept(made, nullptr, nullptr);
    close(made);
    return taken;
  }
  MPI(MPI_Recv(nullptr, 0, MPI_BYTE, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  CHECK_EQ(connect(made, raw, sizeof where), 0);
  return made;
}

void join() {
  const int other = check::rank ^ 1;
  if (other >= check::size) return;
  const int fd = stream_to(other);
  for (int round = 0; round < 2; ++round) {
    MPI_Comm between = MPI_COMM_NULL;
    MPI(MPI_Comm_join(fd, &between));
    talk_across(between, 1, 1, check::rank % 2 == 0);
    MPI(MPI_Comm_disconnect(&between));
  }
  // The program's own bytes go through it as before, and none but those.
  char letter = char('a' + check::rank), got = 0;
  CHECK_EQ(write(fd, &letter, 1), 1);
  CHECK_EQ(read(fd, &got, 1), 1);
  CHECK_EQ(got, char('a' + other));
  close(fd);
}

// Nobody is there who joins: it ends all the same.
void joined_by_nobody() {
  MPI_Comm made = MPI_COMM_NULL;
  EXPECT_CLASS(MPI_ERR_ARG, MPI_Comm_join(-1, &made));
  for (const int bytes : {0, 7, 5000}) {
    int ends[2];
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    const std::string foreign(size_t(bytes), 'x');
    CHECK_EQ(write(ends[1], foreign.data(), foreign.size()), ssize_t(bytes));
    if (bytes < 5000) close(ends[1]);
    EXPECT_CLASS(MPI_ERR_PORT, MPI_Comm_join(ends[0], &made));
    CHECK(made == MPI_COMM_NULL);
    close(ends[0]);
    if (bytes == 5000) close(ends[1]);
  }
  // Who has begun as one that joins, and is gone then: what this rank says comes back to it.
  int ends[2];
  CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    std::vector<char> said(8 + 16 + MPI_MAX_PORT_NAME);
    size_t have = 0;
    for (ssize_t n; have < said.size() && (n = read(ends[1], &said[have], said.size() - have)) > 0;)
      have += size_t(n);
    memset(&said[8], 0, 16);  // its draw is the lesser one: it is to connect
    const ssize_t told = write(ends[1], said.data(), said.size());
    usleep(50'000);
    _exit(told == ssize_t(said.size()) ? 0 : 1);
  }
  close(ends[1]);
  EXPECT_CLASS(MPI_ERR_PORT, MPI_Comm_join(ends[0], &made));
  CHECK(made == MPI_COMM_NULL);
  close(ends[0]);
  int status = 0;
  CHECK_EQ(waitpid(child, &status, 0), child);
  CHECK_EQ(status, 0);
}

void no_parents() {
  MPI_Comm parent = MPI_COMM_SELF;
  MPI(MPI_Comm_get_parent(&parent));
  CHECK(parent == MPI_COMM_NULL);
}

}  // namespace

int main(int argc, char** argv) {
  return check::main(argc, argv,
                     {{"no_parents", no_parents},
                      {"wrong_ports", wrong_ports},
                      {"names", names},
                      {"joined_by_nobody", joined_by_nobody},
                      {"join", join, 2},
                      {"meet", meet, 2}});
}
