// Jobs of which two meet, and one may die: tests/jobs_meet.py starts them. The first word says what
// this one does, errors end the job:
//   serve NAME     publishes a port by that name, accepts, talks, disconnects
//   late NAME      the same, but accepts only after 2.5 s
//   call NAME      waits until the name is there, connects, talks, disconnects
//   fall NAME      as call, but its last rank dies behind the connection; serve waits for it
//   silent NAME    connects as a stranger who says nothing, and one who says what makes no sense
//   crowded NAME   publishes a port, lets no descriptor free, and accepts: an error, not for ever
//   crowds NAME    the same of connecting
//   parents        spawns two of itself, of which one dies
//   disconnects    spawns two that go to MPI_Finalize at once, and disconnects
//   frees          the same, but frees the communicator
//   leave          spawns one of itself that goes on for a while after both have parted
// Each rank that ends well says "ok".
#include <arpa/inet.h>
#include <mpi.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <vector>

namespace {

int rank = 0, size = 0;

void look_up(const char* name, char (&port)[MPI_MAX_PORT_NAME]) {
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  while (MPI_Lookup_name(name, MPI_INFO_NULL, port) != MPI_SUCCESS) usleep(10'000);
}

// Both sides call it: 1,000 messages there and back between their first ranks, and a sum.
void talk(MPI_Comm comm, bool first) {
  int beyond = 0, one = 1, sum = 0;
  MPI_Comm_remote_size(comm, &beyond);
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
  if (sum != beyond) MPI_Abort(MPI_COMM_WORLD, 4);
  for (int i = 0; i < 1000 && rank == 0; ++i) {
    int number = first ? i : -1;
    if (first) MPI_Send(&number, 1, MPI_INT, 0, 0, comm);
    MPI_Recv(&number, 1, MPI_INT, 0, 0, comm, MPI_STATUS_IGNORE);
    if (number != i) MPI_Abort(MPI_COMM_WORLD, 5);
    if (!first) MPI_Send(&number, 1, MPI_INT, 0, 0, comm);
  }
}

void serve(const char* name, bool late) {
  char port[MPI_MAX_PORT_NAME] = "";
  MPI_Comm comm = MPI_COMM_NULL;
  if (rank == 0) {
    MPI_Open_port(MPI_INFO_NULL, port);
    MPI_Publish_name(name, MPI_INFO_NULL, port);
  }
  if (late) usleep(2'500'000);
  MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &comm);
  talk(comm, true);
  MPI_Comm_disconnect(&comm);
  if (rank != 0) return;
  MPI_Unpublish_name(name, MPI_INFO_NULL, port);
  MPI_Close_port(port);
}

void call(const char* name, bool falls) {
  char port[MPI_MAX_PORT_NAME] = "";
  MPI_Comm comm = MPI_COMM_NULL;
  if (rank == 0) look_up(name, port);
  MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &comm);
  if (falls && rank == size - 1) raise(SIGKILL);
  if (falls) pause();
  talk(comm, false);
  MPI_Comm_disconnect(&comm);
}

// The port's name ends in ":1,HOST,PORT,ADDRESSES".
void be_silent(const char* name) {
  char port[MPI_MAX_PORT_NAME] = "";
  look_up(name, port);
  const char* card = strrchr(port, ',');
  const std::string text = strstr(port, ":1,") ? strstr(port, ":1,") + 3 : "";
  const int number = atoi(text.c_str() + text.find(',') + 1);
  for (int i = 0; card && i < 2; ++i) {
    sockaddr_in where = {};
    where.sin_family = AF_INET;
    where.sin_port = htons(static_cast<uint16_t>(number));
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, reinterpret_cast<sockaddr*>(&where), sizeof where) != 0) {
      perror("connect");
      exit(6);
    }
    const std::string nonsense(2000, 'x');
    if (i == 1 && write(fd, nonsense.data(), nonsense.size()) < 0) perror("write");
  }
  usleep(500'000);
}

// Until it is told to let them go.
class AllDescriptors {
 public:
  AllDescriptors() {
    for (int fd = dup(2); fd >= 0; fd = dup(2)) all_.push_back(fd);
  }
  ~AllDescriptors() {
    for (const int fd : all_) close(fd);
  }

 private:
  std::vector<int> all_;
};

void find_no_room(const char* name, bool accepts) {
  char port[MPI_MAX_PORT_NAME] = "";
  MPI_Comm comm = MPI_COMM_NULL;
  if (accepts) {
    MPI_Open_port(MPI_INFO_NULL, port);
    MPI_Publish_name(name, MPI_INFO_NULL, port);
  } else {
    look_up(name, port);
  }
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  int code, kind = MPI_SUCCESS;
  {
    const AllDescriptors none_left;
    code = accepts ? MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &comm)
                   : MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &comm);
  }
  MPI_Error_class(code, &kind);
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  if (kind != MPI_ERR_OTHER || comm != MPI_COMM_NULL) {
    fprintf(stderr, "class %d: %s\n", kind, text);
    MPI_Abort(MPI_COMM_WORLD, 8);
  }
  if (accepts) MPI_Unpublish_name(name, MPI_INFO_NULL, port);
  if (accepts) MPI_Close_port(port);
}

void spawn_some(const char* role, int ranks, bool frees = false) {
  char path[4096] = "";
  std::string word = role;
  char* words[] = {word.data(), nullptr};
  MPI_Comm comm = MPI_COMM_NULL;
  if (!realpath("/proc/self/exe", path)) exit(7);
  MPI_Comm_spawn(path, words, ranks, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &comm, MPI_ERRCODES_IGNORE);
  if (strcmp(role, "dies") == 0) {
    int number = 0;
    MPI_Recv(&number, 1, MPI_INT, 0, 0, comm, MPI_STATUS_IGNORE);
  }
  frees ? MPI_Comm_free(&comm) : MPI_Comm_disconnect(&comm);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  const char* name = argc > 2 ? argv[2] : "";
  const bool crowded = what == "crowded" || what == "crowds";
  const rlimit few = {100, 100};
  if (crowded && setrlimit(RLIMIT_NOFILE, &few) != 0) return 9;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm parent = MPI_COMM_NULL;
  MPI_Comm_get_parent(&parent);
  if (what == "serve" || what == "late") serve(name, what == "late");
  if (what == "call" || what == "fall") call(name, what == "fall");
  if (what == "silent") be_silent(name);
  if (crowded) find_no_room(name, what == "crowded");
  if (what == "parents") spawn_some("dies", 2);
  if (what == "disconnects" || what == "frees") {
    for (int i = 0; i < 3; ++i) spawn_some("ends", 2, what == "frees");
  }
  if (what == "leave") spawn_some("stays", 1);
  if (what == "dies" && rank == 1) raise(SIGKILL);
  if (what == "dies") pause();
  if (what == "stays") {
    MPI_Comm_disconnect(&parent);
    usleep(700'000);
  }
  MPI_Finalize();
  printf("ok %s\n", what.c_str());
  return 0;
}
