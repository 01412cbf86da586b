// Plan: what the command line asks for, after parsing and before anything is started. Plain data.
// Owner: main. Invariant: after parse_command_line every section has a program and at least one
// rank, and ranks are numbered through the sections in order.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "color.h"

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

struct Plan {
  std::vector<Section> sections;
  std::vector<Assignment> environment;  // for all sections
  std::vector<std::string> unset;       // for all sections
  std::optional<double> timeout_s;
  const char* timeout_by = "--timeout";  // or the variable that set it
  Bind bind = Bind::automatic;
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
