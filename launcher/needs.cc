#include "needs.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <optional>
#include <set>
#include <spawn.h>
#include <sstream>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "elf_file.h"
#include "program.h"
#include "rank_environment.h"
#include "say.h"
#include "settings/abi_functions.h"

namespace headway::launcher {
namespace {

constexpr const char* library_name = "libmpi_abi.so.1";
constexpr const char* fortran_library_name = "libmpifort_abi.so.1";

// Libraries that a program brings in, as the loader finds them.
struct Loaded {
  std::vector<std::string> paths;
  std::vector<std::string> lost;  // found nowhere
};

// Everything that a command prints; nothing if it fails.
std::optional<std::string> output_of(std::vector<std::string> words,
                                     std::vector<std::string> environment) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return std::nullopt;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  const auto pointers = [](std::vector<std::string>& texts) {
    std::vector<char*> list;
    list.reserve(texts.size() + 1);
    for (std::string& text : texts) list.push_back(text.data());
    list.push_back(nullptr);
    return list;
  };
  pid_t pid = -1;
  const int failed = posix_spawn(&pid, words[0].c_str(), &actions, nullptr, pointers(words).data(),
                                 pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  std::string text;
  char piece[4096];
  for (ssize_t n; !failed && (n = read(ends[0], piece, sizeof piece)) > 0;) {
    text.append(piece, static_cast<size_t>(n));
  }
  close(ends[0]);
  int status = 0;
  if (failed || waitpid(pid, &status, 0) != pid) return std::nullopt;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? std::optional(text) : std::nullopt;
}

// Asks the loader itself: its rules of RUNPATH, cache and folders are many. A library names no
// loader; then it is the one of mpiexec.
std::optional<Loaded> list_libraries(const std::string& path,
                                     const std::vector<std::string>& environment) {
  std::string loader = read_interpreter(path);
  if (loader.empty()) loader = read_interpreter("/proc/self/exe");
  if (loader.empty()) return std::nullopt;
  // A bare name would be looked for in the folders of libraries.
  const std::string file = path.find('/') == std::string::npos ? "./" + path : path;
  std::optional<std::string> text = output_of({loader, "--list", file}, environment);
  if (!text && loader.find("/ld-linux") != std::string::npos) {
    // glibc's stops at a library that is missing, unless it is asked as ldd does it. (Others' would
    // not know the variable, and start the program.)
    std::vector<std::string> tracing = environment;
    tracing.emplace_back("LD_TRACE_LOADED_OBJECTS=1");
    text = output_of({loader, file}, std::move(tracing));
  }
  if (!text) return std::nullopt;
  Loaded result;
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    const size_t arrow = line.find(" => ");
    if (arrow == std::string::npos) continue;  // the kernel's own, or the loader
    const std::string name =
        line.substr(line.find_first_not_of(" \t"), arrow - line.find_first_not_of(" \t"));
    const std::string place = line.substr(arrow + 4);
    if (place.starts_with("not found")) {
      result.lost.push_back(name);
    } else {
      result.paths.push_back(place.substr(0, place.rfind(" (0x")));
    }
  }
  return result;
}

bool is_of_mpi(std::string_view name) {
  return name.starts_with("MPI_") || name.starts_with("PMPI_") || name.starts_with("MPIX_");
}

// As Fortran compilers write them: mpi_send_, pmpi_send__.
bool is_of_fortran(std::string_view name) {
  return (name.starts_with("mpi_") || name.starts_with("pmpi_")) && name.ends_with("_") &&
         std::none_of(name.begin(), name.end(), [](unsigned char c) { return isupper(c); });
}

enum class State { there, unsupported, unknown };

State state_of(std::string_view name) {
  if (name.starts_with("PMPI_")) name.remove_prefix(1);
  const auto* row = std::lower_bound(std::begin(abi::functions), std::end(abi::functions), name,
                                     [](const abi::Function& function, std::string_view wanted) {
                                       return function.name < wanted;
                                     });
  if (row == std::end(abi::functions) || row->name != name) return State::unknown;
  return row->supported ? State::there : State::unsupported;
}

// The same of a procedure of Fortran that libmpifort_abi.so has: it stands on the function of C of
// that name, if there is one.
State state_of_fortran(std::string_view given) {
  std::string lower(given);  // some compilers write capitals
  for (char& letter : lower) letter = char(tolower(static_cast<unsigned char>(letter)));
  std::string_view name = lower;
  if (name.starts_with('p')) name.remove_prefix(1);
  while (name.ends_with('_')) name.remove_suffix(1);
  for (const std::string_view form : {"_f08ts", "_f08"}) {
    if (name.ends_with(form)) name.remove_suffix(form.size());
  }
  std::string of_c = "MPI_" + std::string(name.substr(std::string_view("mpi_").size()));
  if (of_c.size() > 4) of_c[4] = char(toupper(static_cast<unsigned char>(of_c[4])));
  return state_of(of_c) == State::unsupported ? State::unsupported : State::there;
}

// Another implementation's library, by the name under which programs ask for it.
const char* other_library(const std::string& name) {
  if (name.starts_with("libmpi.so.40")) return "Open MPI's own ABI";
  if (name.starts_with("libmpi.so.12")) return "the ABI of MPICH and Intel MPI";
  if (name.starts_with("libmpich.so") || name.starts_with("libmpi_mpifh.so") ||
      name.starts_with("libmpifort.so")) {
    return "another MPI library";
  }
  return nullptr;
}

struct Needs {
  std::map<std::string, std::string> who;  // function: the file that needs it
  std::set<std::string> strong;            // not weak everywhere
  std::set<std::string> given;             // by the program or a library of its own
  std::set<std::string> fortran;           // by Headway's library of Fortran
};

void collect(const std::string& file, Needs& needs) {
  const std::string soname = read_dynamic(file).name;
  if (soname == library_name) return;  // that is the MPI library itself
  const Symbols symbols = read_symbols(file);
  if (soname == fortran_library_name) {
    needs.fortran.insert(symbols.given.begin(), symbols.given.end());
    return;
  }
  for (const auto* list : {&symbols.taken, &symbols.wished}) {
    for (const std::string& name : *list) {
      if (is_of_mpi(name) || is_of_fortran(name)) needs.who.emplace(name, file);
    }
  }
  needs.strong.insert(symbols.taken.begin(), symbols.taken.end());
  needs.given.insert(symbols.given.begin(), symbols.given.end());
}

// What was found, by what it means for a run.
struct Findings {
  std::vector<std::string> faults;     // it cannot run, or that is not certain
  std::vector<std::string> unwritten;  // functions that are there and end in an error, if called
};

// Why a function that no library gives is missing. The loader binds functions early (as it does
// under LD_BIND_NOW, or for a program linked with -z now) or late, so both ends are possible.
const char* why_missing(const std::string& name) {
  return is_of_fortran(name)
             ? "of Fortran, which libmpifort_abi.so.1 has: link the program with mpifort"
             : "no function of the standard ABI: the program does not start, or stops at the call";
}

// What is wrong with the libraries that the program brings in.
void look_at_libraries(const std::string& path, const Loaded& loaded, const std::string& our_folder,
                       std::vector<std::string>& faults) {
  for (const std::string& name : loaded.lost) faults.push_back(name + "  is found nowhere");
  for (const std::string& file : loaded.paths) {
    if (our_folder.empty() || !file.ends_with(std::string("/") + library_name)) continue;
    if (same_file(file, our_folder + "/" + library_name)) continue;
    faults.push_back(
        format("%s  would be loaded in the place of Headway's: the program or one of its libraries "
               "has an RPATH, which is stronger than mpiexec; relink it with "
               "-Wl,--enable-new-dtags",
               file.c_str()));
  }
  std::vector<std::string> files{path};
  files.insert(files.end(), loaded.paths.begin(), loaded.paths.end());
  for (const std::string& file : files) {
    for (const std::string& name : read_dynamic(file).needed) {
      const char* whose = other_library(name);
      if (!whose) continue;
      faults.push_back(
          format("%s  is needed by %s: it was built for %s and has to be built again with "
                 "Headway's mpicc",
                 name.c_str(), file.c_str(), whose));
    }
  }
}

// The same of functions. Returns how many the program needs.
size_t look_at_functions(const std::string& path, const Loaded& loaded, Findings& findings) {
  Needs needs;
  collect(path, needs);
  for (const std::string& file : loaded.paths) collect(file, needs);
  size_t wanted = 0;
  for (const auto& [name, file] : needs.who) {
    if (needs.given.count(name) != 0) continue;
    ++wanted;
    const State state = needs.fortran.count(name) != 0 ? state_of_fortran(name)
                        : is_of_fortran(name)          ? State::unknown
                                                       : state_of(name);
    if (state == State::there) continue;
    const std::string by = file == path ? "" : " (needed by " + file + ")";
    if (state == State::unsupported) {
      findings.unwritten.push_back(
          format("%-30s not written yet: a call raises MPI_ERR_UNSUPPORTED_OPERATION%s",
                 name.c_str(), by.c_str()));
    } else if (needs.strong.count(name) != 0) {
      findings.faults.push_back(format("%-30s %s%s", name.c_str(), why_missing(name), by.c_str()));
    }
  }
  return wanted;
}

void tell_nothing_found(const std::string& path, bool is_elf) {
  if (!is_elf) {
    printf(
        "%s is no program or library of this kind of machine, so nothing can be said; a script's "
        "needs are those of the modules that it loads\n",
        path.c_str());
  } else {
    printf(
        "%s needs no function of MPI by itself; if it loads MPI later, as Python does, check the "
        "file that does, for example mpi4py's MPI*.so\n",
        path.c_str());
  }
}

// The answer in one line, and a line for each finding.
void tell(const std::string& path, size_t wanted, const Findings& findings) {
  printf("%s needs %zu function%s of MPI: ", path.c_str(), wanted, wanted == 1 ? "" : "s");
  const size_t unwritten = findings.unwritten.size();
  if (!findings.faults.empty()) {
    printf("not all is well\n");
    for (const std::string& fault : findings.faults) printf("  %s\n", fault.c_str());
    if (unwritten != 0) printf("These keep no program from starting:\n");
  } else if (unwritten != 0) {
    printf("%zu of them %s not written yet. It starts, and runs as long as it does not call %s\n",
           unwritten, unwritten == 1 ? "is" : "are", unwritten == 1 ? "it" : "them");
  } else {
    printf("all are there\n");
  }
  for (const std::string& row : findings.unwritten) printf("  %s\n", row.c_str());
}

}  // namespace

bool check_needs(const Plan& plan, const Section& section, const std::string& path) {
  const Dynamic dynamic = read_dynamic(path);
  const std::string folder = plan.library == Library::ours ? library_folder() : "";
  Findings findings;
  Loaded loaded;
  if (dynamic.is_elf && !dynamic.needed.empty()) {
    std::optional<Loaded> found =
        list_libraries(path, section_environment(plan, section, folder, 0));
    if (found) {
      loaded = std::move(*found);
    } else {
      findings.faults.emplace_back(
          "the loader cannot read it, so its libraries were not looked at");
    }
  }
  look_at_libraries(path, loaded, folder, findings.faults);
  const size_t wanted = look_at_functions(path, loaded, findings);
  if (wanted == 0 && findings.faults.empty()) {
    tell_nothing_found(path, dynamic.is_elf);
  } else {
    tell(path, wanted, findings);
  }
  return findings.faults.empty();
}

}  // namespace headway::launcher
