#include "describe.h"

#include <algorithm>
#include <cstdio>
#include <memory>

#include "dialects.h"
#include "engine_options.h"

namespace headway::launcher {
namespace {

// The rows of dialects.h that a user may want to know of.
std::vector<const Dialect*> told_rows() {
  std::vector<const Dialect*> rows;
  for (const Dialect* row = dialects_begin(); row != dialects_end(); ++row) {
    if (row->meaning != "help-rows") rows.push_back(row);
  }
  return rows;
}

constexpr const char* examples = R"(Examples:
  mpiexec -n 4 ./solver input.txt           four ranks on this machine
  mpiexec -n 4 -x OMP_NUM_THREADS=2 ./a     with a variable for all ranks
  mpiexec -n 1 ./master : -n 3 ./worker     two programs, one job
  mpiexec -n 4 --set PROGRESS=off ./a       with an option of the library (see --info)
  mpiexec -n 1 gdb ./a                      one rank in a debugger
  mpiexec -n 8 --hosts node1,node2 ./a      ranks on two machines

Ranks on other machines, named or those of a batch job, are started by an engine that is
installed there: Slurm's srun, Flux, MPICH's Hydra or prterun; --dry-run prints its line.

Options of MPICH's, Intel MPI's and Open MPI's launchers and of the MPI standard are known too;
--help-others lists them. More ranks than cores need no option.
Exit code: that of the first rank that failed, 128 + N after signal N, 124 after --timeout,
127 and 126 if a program is missing or cannot be executed, 2 for a mistake on this line.)";

class HelpText : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App*, std::string) const override {
    return "Usage: mpiexec [OPTIONS] PROGRAM [ARGUMENTS] [: [OPTIONS] PROGRAM [ARGUMENTS]]...\n";
  }
};

// An option that may be given several times.
void add_list(CLI::App& app, const char* name, std::vector<std::string>& target, const char* help,
              const char* group, const char* type) {
  app.add_option(name, target, help)->group(group)->type_name(type)->allow_extra_args(false);
}

void add_text(CLI::App& app, const char* name, std::string& target, const char* help,
              const char* group, const char* type) {
  app.add_option(name, target, help)->group(group)->type_name(type);
}

void describe_ranks(CLI::App& app, Given& given) {
  app.add_option("--np,-n", given.ranks, "Number of ranks (also -np); 1 if not given")
      ->check(CLI::Range(1, 1'000'000))
      ->group("Ranks")
      ->type_name("N");
  add_text(
      app, "--soft", given.soft,
      "Numbers of ranks that would do, as a, a:b or a:b:c; the largest that -n allows is taken",
      "Ranks", "LIST");
  add_text(app, "--configfile", given.config_file,
           "Options and programs from a file, a line for each program; lines that begin with # are "
           "comments",
           "Ranks", "FILE");
  add_text(app, "--wdir", given.directory, "Working directory of the ranks", "Ranks", "DIR");
  add_text(app, "--gwdir", given.job_directory, "The same for all programs that have none", "Ranks",
           "DIR");
  add_text(app, "--path", given.path, "Folders to look for the program in, before those of PATH",
           "Ranks", "DIR:DIR");
  add_text(app, "--gpath", given.job_path, "The same for all programs that have none", "Ranks",
           "DIR:DIR");
  app.add_option("--timeout", given.timeout_s, "End the job after so many seconds, with code 124")
      ->check(CLI::Range(0.001, 1e9))
      ->group("Ranks")
      ->type_name("S");
  add_text(app, "--arch", given.architecture, "Accepted if this machine is of that kind", "Ranks",
           "NAME");
}

void describe_machines(CLI::App& app, Given& given) {
  add_list(app, "--hosts,--host", given.hosts,
           "Machines for the ranks, HOST or HOST:N with the number that it takes; ranks on others "
           "than this one are started by an engine",
           "Machines", "HOST,HOST");
  add_list(app, "--hostfile", given.host_files,
           "The same from a file: lines of HOST, HOST:N or HOST slots=N", "Machines", "FILE");
  app.add_option("--ppn", given.per_machine, "Ranks on each machine, at most")
      ->check(CLI::Range(1, 1'000'000))
      ->group("Machines")
      ->type_name("N");
  app.add_flag("--dry-run", given.dry_run, "Start nothing; print the line that would be executed")
      ->group("Machines");
}

void describe_settings(CLI::App& app, Given& given) {
  const auto list = [&](const char* name, std::vector<std::string>& target, const char* help,
                        const char* type) { add_list(app, name, target, help, "Settings", type); };
  list("--set", given.settings, "Option of the library for all ranks (see --info)", "NAME=VALUE");
  list("--env", given.section_environment,
       "Variable of this program's ranks; also --env NAME VALUE", "NAME=VALUE");
  list("--genv", given.job_environment, "Variable of all ranks; also -genv NAME VALUE",
       "NAME=VALUE");
  list("-x,--x", given.export_names,
       "Variable of this program's ranks; a name alone passes on what is set here, NAME* all that "
       "begin so",
       "NAME[=VALUE]");
  list("--unset", given.unset, "Variable that no rank gets", "NAME");
  list("--envlist", given.passed, "The only variables of here that this program's ranks get",
       "NAME,NAME");
  list("--genvlist", given.job_passed, "The same for all programs that have none", "NAME,NAME");
  app.add_flag("--envnone", given.passes_none, "This program's ranks get no variables of here")
      ->group("Settings");
  app.add_flag("--genvnone", given.job_passes_none, "The same for all programs that have none")
      ->group("Settings");
  app.add_option("--library", given.library,
                 "Which MPI library the ranks load: ours, or that of the program's own paths")
      ->check(CLI::IsMember({"ours", "program"}))
      ->group("Settings")
      ->type_name("ours|program");
  add_text(app, "--initial-errhandler", given.errhandler,
           "mpi_errors_are_fatal, as it is; others are set by the program", "Settings", "NAME");
}

void describe_output(CLI::App& app, Given& given) {
  app.add_flag("--tag-output", given.tag, "Start each line with [rank] (also -l)")->group("Output");
  add_text(app, "--prepend-pattern", given.tag_pattern,
           "Start each line with this: %r is the rank, %h the machine", "Output", "TEXT");
  app.add_flag("--timestamp-output", given.timestamp, "Start each line with the time")
      ->group("Output");
  add_list(app, "--output", given.outputs,
           "As the options of these names: tag, timestamp, merge-stderr-to-stdout, dir=DIR; file=F "
           "writes to F.RANK",
           "Output", "WORD,WORD");
  add_text(app, "--output-dir", given.output_directory,
           "Write each rank's output to DIR/rank.R.out and .err", "Output", "DIR");
  add_text(app, "--outfile-pattern", given.output_pattern,
           "Write stdout to such files: %r is the rank, %h the machine", "Output", "FILE");
  add_text(app, "--errfile-pattern", given.errors_pattern, "The same for stderr", "Output", "FILE");
  app.add_flag("--merge-stderr", given.merge, "Send the ranks' stderr to stdout")->group("Output");
  add_text(app, "--stdin", given.stdin_text, "The rank that gets stdin, or none; 0 if not given",
           "Output", "RANK|none");
  app.add_option("--color", given.color,
                 "Colour in mpiexec's own lines and tags; auto: on a terminal, unless NO_COLOR is "
                 "set")
      ->check(CLI::IsMember({"auto", "always", "never"}))
      ->group("Output")
      ->type_name("auto|always|never");
  app.add_flag("--verbose,-v", given.verbose, "Tell what is started")->group("Output");
}

}  // namespace

void describe(CLI::App& app, Given& given) {
  app.formatter(std::make_shared<HelpText>());
  app.footer(examples);
  app.set_help_flag("--help,-h", "Show this help");
  app.add_flag("--version,-V", given.version, "Show the version");
  app.add_flag("--info", given.info, "Show the library's options, its place, and the binding");
  app.add_flag(
      "--check", given.check,
      "Run nothing; list the MPI functions that PROGRAM needs and this library lacks; code 1 "
      "if it may not start for it");
  app.add_flag("--help-others", given.help_others,
               "Show what the options of other launchers and of the standard mean here");
  app.add_flag("--help-rows", given.help_rows, "For the manual page")->group("");
  describe_ranks(app, given);
  describe_machines(app, given);
  describe_settings(app, given);
  describe_output(app, given);
  app.add_option("--bind-to", given.bind,
                 "core: one core a rank. none: free. Not given: equal shares of the cores if there "
                 "are enough for all ranks")
      ->group("Cores")
      ->type_name("core|none");
  app.add_flag("--show-binding", given.show_binding, "Draw which rank may run where")
      ->group("Cores");
  add_list(app, "--display", given.displays, "map and bindings: as --show-binding", "Cores",
           "WORD,WORD");
}

void print_help_rows(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;
    const std::string type = option->get_type_size() != 0 ? option->get_type_name() : "";
    printf("option\t%s\t%s\t%s\t%s\n", option->get_group().c_str(),
           option->get_name(false, true).c_str(), type.c_str(), option->get_description().c_str());
  }
  for (const Dialect* row : told_rows()) {
    printf("other\t%.*s\t%s\n", int(row->name.size()), row->name.data(), explain(*row).c_str());
  }
  print_engine_rows();
  printf("%s\n", examples);
}

void print_other_options() {
  std::vector<const Dialect*> rows = told_rows();
  std::sort(rows.begin(), rows.end(),
            [](const Dialect* a, const Dialect* b) { return a->name < b->name; });
  printf("Each of these may have one dash or two:\n");
  for (const Dialect* row : rows) {
    printf("  %-32.*s%s\n", int(row->name.size()), row->name.data(), explain(*row).c_str());
  }
}

}  // namespace headway::launcher
