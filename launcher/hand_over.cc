#include "hand_over.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <glob.h>
#include <string>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include "engine_options.h"
#include "program.h"
#include "say.h"

namespace headway::launcher {
namespace {

// The word for a section's program on the other machines: as it was written, which their search
// path serves too, but where only this launcher would find it so: in a list of its own, in this
// folder, or on a PATH that does not go along.
std::string program_there(const Section& section, EngineKind kind) {
  const std::string& name = section.command[0];
  const Program program = find_program(section);
  if (program.exit_code != 0) {
    // It may be there all the same: a launcher's machine need not have the job's programs.
    say(program.explanation);
    say("that is this machine's own look; the others are asked for the program all the same");
    return name;
  }
  if (program.path == "./" + name) return program.path;
  const bool by_list = !section.path.empty() || kind == EngineKind::prterun || section.passed;
  if (!by_list || name.find('/') != std::string::npos) return name;
  const bool from_there = !section.directory.empty() && !program.path.starts_with("/");
  return absolute(from_there ? section.directory + "/" + program.path : program.path);
}

// Hydra writes over the files that are there, and leaves what is longer in them.
void begin_file_anew(const std::string& pattern, int rank) {
  std::string name;
  bool is_open = false;  // the machine's name is not known here
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char letter = pattern[i] == '%' && i + 1 < pattern.size() ? pattern[++i] : '\0';
    is_open |= letter == 'h';
    if (letter == 'r') name += std::to_string(rank);
    if (letter == 'h') name += "*";
    if (letter == 'r' || letter == 'h') continue;
    if (letter == '\0' && strchr("*?[\\", pattern[i])) name += "\\";
    name += pattern[i];
  }
  glob_t found = {};
  if (glob(name.c_str(), is_open ? 0 : GLOB_NOCHECK, nullptr, &found) == 0) {
    for (size_t i = 0; i < found.gl_pathc; ++i) unlink(found.gl_pathv[i]);
  }
  globfree(&found);
}

void begin_files_anew(const Plan& plan) {
  const std::string& folder = plan.output_directory;
  const std::string doubled = doubled_per_cent(folder);
  std::vector<std::string> patterns;
  if (!folder.empty()) patterns = {doubled + "/rank.%r.out", doubled + "/rank.%r.err"};
  for (const std::string& pattern : {plan.output_pattern, plan.errors_pattern}) {
    if (!pattern.empty()) patterns.push_back(pattern);
  }
  for (const std::string& pattern : patterns) {
    for (int rank = 0; rank < plan.ranks(); ++rank) begin_file_anew(pattern, rank);
  }
  // It holds all of them open. Its ranks here get the higher limit, too, so only where it is
  // needed.
  rlimit limit = {};
  const rlim_t wanted = patterns.size() * static_cast<size_t>(plan.ranks()) + 256;
  if (patterns.empty() || getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

bool make_output_folder(const Plan& plan) {
  const std::string& folder = plan.output_directory;
  if (folder.empty() || mkdir(folder.c_str(), 0777) == 0 || errno == EEXIST) return true;
  say(format("cannot make the folder %s for the output: %s", folder.c_str(), strerror(errno)));
  return false;
}

}  // namespace

int hand_over(const Plan& plan) {
  const Engine engine = choose_engine(plan.place);
  if (!engine.explanation.empty()) {
    say(engine.explanation);
    return exit_usage;
  }
  std::vector<std::string> programs;
  programs.reserve(plan.sections.size());
  for (const Section& section : plan.sections)
    programs.push_back(program_there(section, engine.kind));
  const std::string folder = plan.library == Library::ours ? library_folder() : "";
  EngineLine line = make_line(plan, engine, programs, folder);
  if (!line.refusal.empty()) {
    say(line.refusal);
    return exit_usage;
  }
  if (plan.dry_run) {
    printf("%s\n", as_shell_text(line).c_str());
    return 0;
  }
  if (plan.verbose) say(plan.place.whose + ": " + as_shell_text(line));
  if (!make_output_folder(plan)) return 1;
  if (engine.kind == EngineKind::hydra) begin_files_anew(plan);
  return run_engine(plan, engine, line);
}

}  // namespace headway::launcher
