// mpiexec: starts the ranks of a job on this machine, or hands it over to what starts them on
// others. See docs/launcher.md.
#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <string>
#include <unistd.h>
#include <vector>

#include "binding.h"
#include "color.h"
#include "command_line.h"
#include "hand_over.h"
#include "info.h"
#include "job.h"
#include "needs.h"
#include "program.h"
#include "quoting.h"
#include "say.h"

namespace {

using namespace headway::launcher;

// A program started with closed stdin, stdout or stderr would get other files in their place.
void fill_standard_streams() {
  for (int fd = 0; fd < 3; ++fd) {
    if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
    if (open("/dev/null", fd == 0 ? O_RDONLY : O_WRONLY) < 0) return;
  }
}

// Where the program of a section lies, seen from here.
std::string seen_from_here(const Section& section, const std::string& path) {
  const bool relative = !section.directory.empty() && !path.starts_with("/");
  return relative ? section.directory + "/" + path : path;
}

// Of a job that would be started here, by nobody else.
void print_dry_run(const Plan& plan) {
  std::string line = "mpiexec";
  for (size_t i = 0; i < plan.sections.size(); ++i) {
    line += format("%s -n %d ", i > 0 ? " :" : "", plan.sections[i].ranks);
    line += quoted(plan.sections[i].command);
  }
  printf("%s\n", line.c_str());
}

int run(const Plan& plan) {
  if (plan.place.elsewhere && !plan.check) return hand_over(plan);
  if (plan.dry_run) {
    print_dry_run(plan);
    return 0;
  }
  std::vector<std::string> paths;
  for (const Section& section : plan.sections) {
    const Program program = find_program(section);
    // A library, which --check reads too, need not be executable.
    const bool just_read =
        plan.check && access(seen_from_here(section, program.path).c_str(), R_OK) == 0;
    if (program.exit_code != 0 && !just_read) {
      say(program.explanation);
      return program.exit_code;
    }
    paths.push_back(program.path);
  }
  if (plan.check) {
    bool good = true;
    for (size_t i = 0; i < paths.size(); ++i) {
      good &= check_needs(plan, plan.sections[i], seen_from_here(plan.sections[i], paths[i]));
    }
    return good ? 0 : 1;
  }
  if (plan.library == Library::ours) {
    const std::string folder = library_folder();
    for (size_t i = 0; i < paths.size(); ++i) {
      const std::string warning =
          library_warning(seen_from_here(plan.sections[i], paths[i]), folder);
      if (!warning.empty()) say(warning);
    }
  }
  Job job(plan, paths, [&] {
    Binding binding = plan_binding(plan.bind, plan.ranks(), plan.show_binding);
    for (size_t at = 0; at < binding.picture.size();) {
      const size_t end = binding.picture.find('\n', at);
      say(binding.picture.substr(at, end - at));
      at = end == std::string::npos ? binding.picture.size() : end + 1;
    }
    if (plan.bind == Bind::core && !binding.note.empty() && !plan.show_binding) say(binding.note);
    return binding;
  }());
  return job.run();
}

}  // namespace

int main(int argc, char** argv) {
  fill_standard_streams();
  const CommandLine line = parse_command_line(std::vector<std::string>(argv + 1, argv + argc));
  if (line.exit_code >= 0) return line.exit_code;
  choose_colors(line.plan.color);
  if (line.plan.show_info) {
    print_info(line.plan);
    return 0;
  }
  return run(line.plan);
}
