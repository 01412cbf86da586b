// A rank that uses the library's own bootstrap room, without the library around it: swaps a text
// with every other rank and checks what it gets. Prints one line. Arguments choose what it does
// besides; the exit code tells which step failed.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "bootstrap/bootstrap.h"

using namespace headway::bootstrap;

namespace {

constinit Bootstrap boot;  // as in the library: no constructor runs

int exchange() {
  char key[key_max];
  char value[value_max];
  snprintf(key, sizeof key, "text-%d", boot.rank());
  snprintf(value, sizeof value, "of-%d-%0900d", boot.rank(), boot.rank());
  if (boot.put(key, value) != Outcome::ok) return 4;
  if (boot.fence() != Outcome::ok) return 5;
  const bool alone = boot.job().launcher == Launcher::none;
  for (int owner = 0; owner < boot.size() && !alone; ++owner) {
    char wanted[value_max];
    snprintf(key, sizeof key, "text-%d", owner);
    snprintf(wanted, sizeof wanted, "of-%d-%0900d", owner, owner);
    if (boot.get(key, value, sizeof value, owner) != Outcome::ok) return 6;
    if (strcmp(value, wanted) != 0) return 7;
  }
  if (boot.get("nobody-put-this", value, sizeof value, 0) != Outcome::not_found) return 8;
  return boot.fence() == Outcome::ok ? 0 : 9;
}

// Runs this program once more with the variables that we were started with, through a shell that
// stays in between, or without.
int start_again(char* self, const std::vector<char*>& environment, bool by_shell) {
  const pid_t child = fork();
  if (child == 0) {
    char shell[] = "/bin/sh", option[] = "-c", script[] = "\"$0\"; exit $?";
    char* const direct[] = {self, nullptr};
    char* const indirect[] = {shell, option, script, self, nullptr};
    execve(by_shell ? shell : self, by_shell ? indirect : direct, environment.data());
    _exit(127);
  }
  int status = 0;
  return child > 0 && waitpid(child, &status, 0) == child && status == 0 ? 0 : 15;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  std::vector<std::string> texts;
  for (char** entry = environ; *entry; ++entry) texts.emplace_back(*entry);
  std::vector<char*> first_environment;
  for (std::string& text : texts) first_environment.push_back(text.data());
  first_environment.push_back(nullptr);
  if (boot.open() != Outcome::ok) {
    fprintf(stderr, "%s\n", boot.explanation());
    return 3;
  }
  if (const int failed = exchange(); failed != 0) return failed;
  if (what == "abort") {
    if (boot.rank() == 1) boot.abort(argc > 2 ? atoi(argv[2]) : 1, "as the test wants");
    if (boot.fence() == Outcome::ok) return 10;  // the job ends meanwhile
    return 11;
  }
  printf("rank %d of %d app %d universe %d node %d job %s\n", boot.rank(), boot.size(),
         boot.job().appnum, boot.job().universe_size, boot.node_of(boot.rank()), boot.job().job_id);
  fflush(stdout);
  if (what == "child" && boot.rank() == 0) {
    // A program that a rank starts is alone.
    if (system(argv[0]) != 0) return 12;
  }
  if (what == "copy" && boot.rank() == 0) {
    // Also one that gets a copy of our first variables, as Python's subprocess may give it.
    for (const bool by_shell : {false, true}) {
      if (const int failed = start_again(argv[0], first_environment, by_shell)) return failed;
    }
  }
  boot.close();
  if (what == "again") {
    for (int i = 0; i < 3; ++i) {
      if (boot.open() != Outcome::ok) return 13;
      if (boot.fence() != Outcome::ok) return 14;
      boot.close();
    }
  }
  // Others than our launcher have been told for good, and are of no more use.
  if (what == "back") {
    for (int i = 0; i < 3; ++i) {
      if (boot.open() != Outcome::ok) return 13;
      if (boot.fence() == Outcome::ok) return 16;
      boot.close();
    }
  }
  if (what == "leave" || what == "back") _Exit(0);  // no exit handlers, but MPI was left properly
  return 0;
}
