// Plan: what the command line asks for, after parsing and before anything is started. Plain data.
// Owner: main. Invariant: after parse_command_line every section has a program and at least one
// rank, and ranks are numbered through the sections in order.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "color.h"
#include "host_list.h"

namespace headway::launcher {

using Assignment = std::pair<std::string, std::string>;  // environment: name, value

enum class Bind { automatic, core, none };
enum class Library { ours, of_program };

// One program of a job; several make an MPMD job.
struct Section {
  int ranks = 1;
  std::vector<std::string> command;
  std::vector<Assignment> environment;
  std::string directory;  // "" is the current one
  std::string path;       // folders to look for the program in, before those of PATH
  std::optional<std::vector<std::string>> passed;  // the only variables of ours that it gets
};

// Who gave the machines of a job, and starts processes there.
enum class Manager : unsigned char { none, slurm, flux, prrte, other };

// Where the job belongs (hosts.h).
struct Place {
  bool elsewhere = false;  // its ranks, or some, are not for this machine
  std::string whose;       // for people: "node7", "this Slurm job has 3 machines"
  Manager manager = Manager::none;
  std::vector<Host> hosts;  // empty: the manager knows them
  bool named = false;       // by the user; else they are all that the job was given
  int machines = 1;
  int slots = 0;  // ranks that were asked for when the machines were; 0: not known
};

// An option of another launcher that means nothing on one machine, as it was given.
struct PeerOption {
  std::string name;  // without dashes
  std::vector<std::string> values;
  unsigned takers = 0;  // engines that know it by this name (dialects.h)
};

struct Plan {
  std::vector<Section> sections;
  std::vector<Assignment> environment;  // for all sections
  std::vector<std::string> unset;       // for all sections
  std::optional<double> timeout_s;
  const char* timeout_by = "--timeout";  // or the variable that set it
  Bind bind = Bind::automatic;
  std::string bind_text;  // as it was given
  bool show_binding = false;
  bool tag_output = false;
  bool timestamp = false;  // before each line
  std::string tag_pattern;
  bool merge_stderr = false;
  bool verbose = false;
  Color color = Color::automatic;
  std::string output_directory;
  std::string output_pattern, errors_pattern;  // of file names: %r is the rank, %h the machine
  int stdin_rank = 0;                          // -1: none
  bool stdin_named = false;  // the user did: typing is passed on without being asked for
  Library library = Library::ours;
  bool show_info = false;
  bool check = false;  // of MPI functions, in the place of a run
  bool dry_run = false;
  int per_machine = 0;  // ranks, at most, on each; 0: nobody said
  std::vector<PeerOption> peer_options;
  Place place;

  // Each rank's output is read and written by us, also of a single rank.
  bool sorts_output() const {
    return tag_output || timestamp || !output_directory.empty() || !output_pattern.empty() ||
           !errors_pattern.empty();
  }

  int ranks() const {
    int sum = 0;
    for (const Section& section : sections) sum += section.ranks;
    return sum;
  }
};

// Exit codes that are not a rank's.
inline constexpr int exit_usage = 2;
inline constexpr int exit_timeout = 124;
inline constexpr int exit_cannot_execute = 126;
inline constexpr int exit_not_found = 127;

}  // namespace headway::launcher
