// cluster-enter: puts a program on a host of a simulated cluster: network and UTS namespace, the
// cluster's host names, a /dev/shm that only this host sees. It replaces itself by the program, so
// process number, inherited descriptors (PMI_FD) and signals stay what a launcher expects.
//
//   cluster-enter [--name NAME] --host HOST PROGRAM ARGS
//   cluster-enter [--name NAME] --by-rank [--ranks-per-host R] PROGRAM ARGS
//   cluster-enter [--name NAME] --agent [OPTIONS] HOST COMMAND     (in the place of rsh or ssh)
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include <string>

namespace {

constexpr const char* kBase = "/run/headway-cluster/";
constexpr int kCannot = 126;  // what a shell answers for a program that it cannot start

struct Request {
  std::string name = "default";
  std::string host;
  bool by_rank = false;
  bool agent = false;
  int ranks_per_host = 1;
  char** program = nullptr;
};

[[noreturn]] void die(const std::string& story) {
  fprintf(stderr, "cluster-enter: %s\n", story.c_str());
  exit(kCannot);
}

[[noreturn]] void usage() {
  die("usage: cluster-enter [--name NAME] (--host HOST | --by-rank [--ranks-per-host R] | --agent"
      " HOST) PROGRAM ARGS");
}

int number(const char* text, const char* what) {
  char* end = nullptr;
  errno = 0;
  long value = strtol(text, &end, 10);
  if (errno != 0 || end == text || *end != '\0' || value < 0 || value > 1000000)
    die(std::string(what) + " '" + text + "' is not a number");
  return static_cast<int>(value);
}

int own_rank() {
  for (const char* name : {"PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"}) {
    if (const char* value = getenv(name)) return number(value, name);
  }
  die("--by-rank: no launcher has set PMI_RANK, PMIX_RANK, OMPI_COMM_WORLD_RANK or SLURM_PROCID");
}

Request parse(int argc, char** argv) {
  Request request;
  int i = 1;
  auto value = [&]() -> const char* {
    if (i + 1 >= argc) usage();
    return argv[++i];
  };
  for (; i < argc && strncmp(argv[i], "--", 2) == 0; ++i) {
    if (strcmp(argv[i], "--") == 0) {
      ++i;
      break;
    } else if (strcmp(argv[i], "--name") == 0) {
      request.name = value();
    } else if (strcmp(argv[i], "--host") == 0) {
      request.host = value();
    } else if (strcmp(argv[i], "--by-rank") == 0) {
      request.by_rank = true;
    } else if (strcmp(argv[i], "--ranks-per-host") == 0) {
      request.ranks_per_host = number(value(), "--ranks-per-host");
    } else if (strcmp(argv[i], "--agent") == 0) {
      request.agent = true;
      ++i;
      break;
    } else {
      usage();
    }
  }
  if (request.agent) {  // a launcher may put options of ssh before the host: -x, -q
    while (i < argc && argv[i][0] == '-') ++i;
    if (i < argc) request.host = argv[i++];
  }
  if (i >= argc || request.ranks_per_host < 1) usage();
  if (request.by_rank) {
    request.host = 'h';
    request.host += std::to_string(own_rank() / request.ranks_per_host);
  } else if (request.host.empty()) {
    usage();
  }
  request.program = argv + i;
  return request;
}

// Launchers may name a host by its address: the host file says whose it is.
std::string host_of(const std::string& folder, const std::string& text) {
  FILE* file = fopen((folder + "/hosts").c_str(), "re");
  if (file == nullptr) die("no cluster in " + folder + ": " + strerror(errno));
  char address[64];
  char name[64];
  std::string found;
  while (fscanf(file, "%63s %63s", address, name) == 2) {
    if (strcmp(name, "localhost") != 0 && (text == name || text == address)) found = name;
  }
  fclose(file);
  if (found.empty()) die("the cluster in " + folder + " has no host '" + text + "'");
  return found;
}

void join(const std::string& path, int kind) {
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0 || setns(fd, kind) != 0) die(path + ": " + strerror(errno));
  close(fd);
}

void cover(const std::string& source, const char* target) {
  if (mount(source.c_str(), target, nullptr, MS_BIND, nullptr) != 0)
    die("mount " + source + " on " + target + ": " + strerror(errno));
}

void enter(const std::string& folder, const std::string& host) {
  join(folder + "/" + host + ".net", CLONE_NEWNET);
  join(folder + "/" + host + ".uts", CLONE_NEWUTS);
  // Slave, so that an unmount by `cluster down` reaches this copy of the mount table too.
  if (unshare(CLONE_NEWNS) != 0) die(std::string("unshare: ") + strerror(errno));
  if (mount("none", "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0)
    die(std::string("mount /: ") + strerror(errno));
  cover(folder + "/hosts", "/etc/hosts");
  cover(folder + "/shm/" + host, "/dev/shm");
  setenv("HOSTNAME", host.c_str(), 1);
}

[[noreturn]] void start(const Request& request) {
  if (request.agent) {  // as rsh does: the rest is one line for the shell
    std::string line;
    for (char** word = request.program; *word != nullptr; ++word) {
      if (!line.empty()) line += ' ';
      line += *word;
    }
    execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
    die(std::string("/bin/sh: ") + strerror(errno));
  }
  execvp(request.program[0], request.program);
  int code = errno == ENOENT ? 127 : kCannot;
  fprintf(stderr, "cluster-enter: cannot start '%s': %s\n", request.program[0], strerror(errno));
  exit(code);
}

}  // namespace

int main(int argc, char** argv) {
  Request request = parse(argc, argv);
  if (request.name.find('/') != std::string::npos) usage();
  std::string folder = kBase + request.name;
  enter(folder, host_of(folder, request.host));
  start(request);
}
