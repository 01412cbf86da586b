// headway record: runs a program so that its calls of MPI are recorded. Stands before the program,
// behind the launcher (mpirun -n 4 headway record ./prog), as often as there are ranks; sets the
// environment of librecorder (recorder.c) and becomes the program. HEADWAY_RECORD_HOME, from the
// script `headway`, is where that lies.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fnmatch.h>
#include <iterator>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include "executable.h"

namespace {

constexpr int bad_line = 2;
constexpr int nothing_recorded = 4;

struct Options {
  std::string out, ranks, calls, mpicc;
  double from = 0, to = 0;
  bool python_lines = true;
  std::vector<std::string> program;
};

void say(const std::string& what) {
  const std::string line = "headway record: " + what + "\n";
  if (write(2, line.data(), line.size()) < 0) return;
}

[[noreturn]] void stop(int code, const std::string& why) {
  say(why);
  exit(code);
}

std::string found_on_path(const std::string& name) {
  if (name.find('/') != std::string::npos) return name;
  const char* path = getenv("PATH");
  std::string rest = path != nullptr ? path : "/usr/bin:/bin";
  while (true) {
    const size_t colon = rest.find(':');
    std::string folder = rest.substr(0, colon);
    if (folder.empty()) folder = ".";
    const std::string file = folder + "/" + name;
    if (access(file.c_str(), X_OK) == 0) return file;
    if (colon == std::string::npos) return name;
    rest.erase(0, colon + 1);
  }
}

// For the layers of other MPIs, each compiled once: of this user alone, since programs load what
// lies there.
std::string cache_folder() {
  const auto given = [](const char* name) {
    const char* text = getenv(name);
    return std::string(text != nullptr ? text : "");
  };
  std::vector<std::string> candidates;
  const std::string own = given("HEADWAY_CACHE"), root = given("XDG_CACHE_HOME"),
                    home = given("HOME");
  if (!own.empty()) {
    candidates.push_back(own);
  } else if (!root.empty()) {
    candidates.push_back(root + "/headway");
  } else if (!home.empty()) {
    mkdir((home + "/.cache").c_str(), 0700);
    candidates.push_back(home + "/.cache/headway");
  }
  candidates.push_back("/tmp/headway-" + std::to_string(getuid()));
  for (const std::string& candidate : candidates) {
    const std::string folder = candidate + "/record";
    mkdir(candidate.c_str(), 0700);
    mkdir(folder.c_str(), 0700);
    struct stat about {};
    if (stat(folder.c_str(), &about) == 0 && S_ISDIR(about.st_mode) && about.st_uid == getuid() &&
        (about.st_mode & 0022) == 0 && access(folder.c_str(), W_OK) == 0) {
      return folder;
    }
  }
  return "";
}

void put(const char* name, const std::string& value) {
  if (value.empty()) {
    unsetenv(name);
  } else {
    setenv(name, value.c_str(), 1);
  }
}

std::string number(double value) { return value > 0 ? std::to_string(value) : ""; }

constexpr const char* calls[] = {
#include "recorder_names.inc"
};

// A pattern that is no call's name would record nothing, and say nothing.
void check_calls(const std::string& patterns) {
  for (size_t at = 0; at < patterns.size();) {
    const size_t comma = std::min(patterns.find(',', at), patterns.size());
    const std::string one = patterns.substr(at, comma - at);
    const auto is_meant = [&](const char* call) { return fnmatch(one.c_str(), call, 0) == 0; };
    if (std::none_of(std::begin(calls), std::end(calls), is_meant)) {
      stop(bad_line,
           "--calls " + one +
               ": no call that can be recorded is called so; names are as MPI_Isend, MPI_Wait*");
    }
    at = comma + 1;
  }
}

void check(const Options& options) {
  if (options.program.empty())
    stop(bad_line, "which program? headway record [OPTIONS] PROGRAM [ARGUMENTS]");
  if (options.to > 0 && options.to <= options.from)
    stop(bad_line, "--to must be later than --from");
  if (options.ranks.find_first_not_of("0123456789,-") != std::string::npos) {
    stop(bad_line, "--ranks " + options.ranks + " is no list of ranks, as 0-3,7 is");
  }
  check_calls(options.calls);
}

// The environment says what is asked for; the files lie beside this program.
void tell_recorder(const Options& options) {
  const char* home = getenv("HEADWAY_RECORD_HOME");
  const std::string folder = home != nullptr ? home : ".";
  const std::string recorder = folder + "/librecorder.so";
  if (access(recorder.c_str(), R_OK) != 0)
    stop(1, recorder + " is not there: this installation is not whole");
  // headway advise --try starts its runs through here, too: with a plan, and another layer.
  const char* plan = getenv("HEADWAY_RECORD_TRY");
  const bool tries = plan != nullptr && *plan != 0;
  const std::string ours = tries ? recorder + ":" + folder + "/libtrying.so" : recorder;
  const char* before = getenv("LD_PRELOAD");
  put("LD_PRELOAD", before != nullptr && *before != 0 ? ours + ":" + before : ours);
  put("HEADWAY_RECORD", "1");
  put("HEADWAY_RECORD_LAYER", folder + "/layer-abi.so");
  put("HEADWAY_RECORD_TRY_LAYER", folder + "/try-abi.so");
  put("HEADWAY_RECORD_SOURCES", folder + "/layer");
  put("HEADWAY_RECORD_CACHE", cache_folder());
  put("HEADWAY_RECORD_MPICC", options.mpicc);
  put("HEADWAY_RECORD_OUT", options.out);
  put("HEADWAY_RECORD_RANKS", options.ranks);
  put("HEADWAY_RECORD_CALLS", options.calls);
  put("HEADWAY_RECORD_FROM", number(options.from));
  put("HEADWAY_RECORD_TO", number(options.to));
  put("HEADWAY_RECORD_PYTHON", options.python_lines ? "1" : "0");
}

// For the manual page: a line for each option.
int print_rows(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    const bool flag = option->get_expected_max() == 0;
    const std::string argument = flag ? "" : option->get_type_name();
    printf("%s\t%s\t%s\n", option->get_name(false, true).c_str(), argument.c_str(),
           option->get_description().c_str());
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{
      "Runs PROGRAM and records its calls of MPI into a folder, headway-run-1 and so on. Put it "
      "before the "
      "program: mpirun -n 4 headway record ./prog. Then: headway trace headway-run-1",
      "headway record"};
  Options options;
  app.add_option("--out", options.out,
                 "folder of the recording. Default: headway-run-N, the first that is free")
      ->type_name("DIR");
  app.add_option("--ranks", options.ranks, "record these ranks alone: 0-3,7")->type_name("RANKS");
  app.add_option("--calls", options.calls, "record these calls alone: MPI_Isend,MPI_Wait*")
      ->type_name("CALLS");
  app.add_option("--from", options.from, "begin that many seconds after MPI_Init")
      ->check(CLI::NonNegativeNumber)
      ->type_name("SECONDS");
  app.add_option("--to", options.to, "stop that many seconds after MPI_Init")
      ->check(CLI::NonNegativeNumber)
      ->type_name("SECONDS");
  app.add_option("--mpicc", options.mpicc,
                 "compiles the layer of an MPI that has not the standard ABI, once. Default: the "
                 "one beside its library")
      ->type_name("FILE");
  app.add_flag("--python-lines,!--no-python-lines", options.python_lines,
               "of a Python program: lines of Python, not of mpi4py's C. Default: on");
  app.prefix_command();
  if (argc == 2 && strcmp(argv[1], "--help-rows") == 0) return print_rows(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    stop(bad_line, std::string(error.what()) + "; headway record --help lists the options");
  }
  options.program = app.remaining();
  if (!options.program.empty() && options.program[0] == "--") {
    options.program.erase(options.program.begin());
  } else if (!options.program.empty() && options.program[0].starts_with("-")) {
    stop(bad_line, "no option " + options.program[0] + "; headway record --help lists them");
  }
  check(options);
  const std::string path = found_on_path(options.program[0]);
  std::string warning;
  const std::string cause =
      headway::record::why_unrecorded(path, headway::record::look_at(path), warning);
  if (!cause.empty()) stop(nothing_recorded, cause);
  if (!warning.empty()) say(warning);
  tell_recorder(options);
  std::vector<char*> words;
  for (std::string& word : options.program) words.push_back(word.data());
  words.push_back(nullptr);
  execvp(words[0], words.data());
  const int why = errno;
  stop(why == ENOENT ? 127 : 126, options.program[0] + " cannot be started: " + strerror(why));
}
