// The options of mpiexec as its help, the manual page and the parser have them. Thread: none.
// Invariant: the three are made of the same rows, here and in dialects.h.
#pragma once
#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace headway::launcher {

// What the options of one section say, as text or plain values.
struct Given {
  int ranks = 0;  // not given
  int per_machine = 0;
  std::vector<std::string> export_names, section_environment, job_environment, unset, settings;
  std::vector<std::string> hosts, host_files, outputs;
  std::vector<std::string> passed, job_passed, displays;
  std::string directory, output_directory, stdin_text, bind, library, color;
  std::string config_file, soft, architecture, path, job_path, job_directory, errhandler;
  std::string output_pattern, errors_pattern, tag_pattern;
  double timeout_s = -1;
  bool tag = false, merge = false, show_binding = false, verbose = false, info = false;
  bool version = false, check = false, help_rows = false, help_others = false;
  bool timestamp = false, passes_none = false, job_passes_none = false, dry_run = false;
};

// Adds all options, which put what they find into `given`.
void describe(CLI::App& app, Given& given);

// The help once more, for scripts/make-man-pages.py: an option a line, its parts behind tabs.
void print_help_rows(const CLI::App& app);

// --help-others.
void print_other_options();

}  // namespace headway::launcher
