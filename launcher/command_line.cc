#include "command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "dialects.h"
#include "hosts.h"
#include "info.h"
#include "say.h"
#include "settings/options.h"

namespace headway::launcher {
namespace {

// What one section of the line holds once it is translated: our options, then the program.
struct Translated {
  std::vector<std::string> options;
  std::vector<std::string> command;
};

// What the options of one section say, as text or plain values.
struct Given {
  int ranks = 1;
  std::vector<std::string> export_names, section_environment, job_environment, unset, settings;
  std::vector<std::string> hosts, host_files, outputs;
  std::string directory, output_directory, stdin_text, bind, library, color;
  double timeout_s = -1;
  bool tag = false, merge = false, show_binding = false, verbose = false, info = false;
  bool version = false, check = false, help_rows = false;
};

struct Refusal {
  std::string text;
};

std::string strip_dashes(const std::string& word) {
  const size_t dashes = word.starts_with("--") ? 2 : 1;
  return word.substr(dashes);
}

[[noreturn]] void refuse_unknown(const std::string& word) {
  const std::string name = strip_dashes(word);
  NearNames near(name);
  for (const Dialect* row = dialects_begin(); row != dialects_end(); ++row) near.offer(row->name);
  const std::string question = near.question(word.substr(0, word.size() - name.size()));
  throw Refusal{format("unknown option %s%s Options of your program go after its name.",
                       word.c_str(), question.empty() ? "." : question.c_str())};
}

// Turns one section's words into our own options and the program with its arguments.
Translated translate(const std::vector<std::string>& words) {
  Translated result;
  size_t i = 0;
  for (; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--") {
      ++i;
      break;
    }
    if (word.size() < 2 || word[0] != '-') break;
    const size_t equals = word.find('=');
    const bool has_value = equals != std::string::npos;
    const Dialect* row = find_dialect(strip_dashes(word.substr(0, equals)));
    if (!row) refuse_unknown(word.substr(0, equals));
    std::vector<std::string> values;
    if (has_value) values.push_back(word.substr(equals + 1));
    if (has_value && row->words == Words::none) {
      throw Refusal{format("option %s takes no value", word.substr(0, equals).c_str())};
    }
    const auto take = [&] {
      if (i + 1 == words.size()) {
        throw Refusal{format("option %s needs a value", word.c_str())};
      }
      values.push_back(words[++i]);
    };
    if (row->words == Words::one && !has_value) take();
    if (row->words == Words::two) {
      while (values.size() < 2) take();
    }
    if (row->words == Words::assignment) {
      if (!has_value) take();
      if (values[0].find('=') == std::string::npos) {
        take();
        values = {values[0] + "=" + values[1]};
      }
    }
    if (row->meaning.empty()) continue;
    std::string option = "--" + std::string(row->meaning);
    if (!row->value.empty()) {
      option += "=" + std::string(row->value);
    } else if (!values.empty()) {
      option += "=" + values[0];
    }
    result.options.push_back(std::move(option));
  }
  result.command.assign(words.begin() + static_cast<long>(i), words.end());
  return result;
}

constexpr const char* examples = R"(Examples:
  mpiexec -n 4 ./solver input.txt           four ranks on this machine
  mpiexec -n 4 -x OMP_NUM_THREADS=2 ./a     with a variable for all ranks
  mpiexec -n 1 ./master : -n 3 ./worker     two programs, one job
  mpiexec -n 4 --set PROGRESS=off ./a       with an option of the library (see --info)
  mpiexec -n 1 gdb ./a                      one rank in a debugger

Options of MPICH's and Open MPI's launchers work too; those that mean nothing on one machine
are accepted. More ranks than cores need no option.
Exit code: that of the first rank that failed, 128 + N after signal N, 124 after --timeout,
127 and 126 if a program is missing or cannot be executed, 2 for a mistake on this line.)";

class HelpText : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App*, std::string) const override {
    return "Usage: mpiexec [OPTIONS] PROGRAM [ARGUMENTS] [: [OPTIONS] PROGRAM [ARGUMENTS]]...\n";
  }
};

void describe(CLI::App& app, Given& given) {
  app.set_help_flag("--help,-h", "Show this help");
  app.add_flag("--version,-V", given.version, "Show the version");
  app.add_flag("--info", given.info, "Show the library's options, its place, and the binding");
  app.add_flag(
      "--check", given.check,
      "Run nothing; list the MPI functions that PROGRAM needs and this library lacks; code 1 "
      "if it may not start for it");
  app.add_flag("--help-rows", given.help_rows, "For the manual page")->group("");
  app.add_option("--np,-n", given.ranks, "Number of ranks (also -np); 1 if not given")
      ->check(CLI::Range(1, 1'000'000))
      ->group("Ranks")
      ->type_name("N");
  const auto list = [&](const char* name, std::vector<std::string>& target, const char* help,
                        const char* group, const char* type) {
    app.add_option(name, target, help)->group(group)->type_name(type)->allow_extra_args(false);
  };
  app.add_option("--wdir", given.directory, "Working directory of the ranks")
      ->group("Ranks")
      ->type_name("DIR");
  app.add_option("--timeout", given.timeout_s, "End the job after so many seconds, with code 124")
      ->check(CLI::Range(0.001, 1e9))
      ->group("Ranks")
      ->type_name("S");
  list("--host", given.hosts, "Accepted if it names this machine", "Ranks", "HOST");
  list("--hostfile", given.host_files, "Accepted if it names this machine", "Ranks", "FILE");
  list("--set", given.settings, "Option of the library for all ranks (see --info)", "Settings",
       "NAME=VALUE");
  list("--env", given.section_environment,
       "Variable of this program's ranks; also --env NAME VALUE", "Settings", "NAME=VALUE");
  list("--genv", given.job_environment, "Variable of all ranks; also -genv NAME VALUE", "Settings",
       "NAME=VALUE");
  list("-x,--x", given.export_names,
       "Variable of this program's ranks; a name alone passes on what is set here", "Settings",
       "NAME[=VALUE]");
  list("--unset", given.unset, "Variable that no rank gets", "Settings", "NAME");
  app.add_option("--library", given.library,
                 "Which MPI library the ranks load: ours, or that of the program's own paths")
      ->check(CLI::IsMember({"ours", "program"}))
      ->group("Settings")
      ->type_name("ours|program");
  app.add_flag("--tag-output", given.tag, "Start each line with [rank] (also -l)")->group("Output");
  list("--output", given.outputs, "tag: as --tag-output", "Output", "WORD");
  app.add_option("--output-dir", given.output_directory,
                 "Write each rank's output to DIR/rank.R.out and .err")
      ->group("Output")
      ->type_name("DIR");
  app.add_flag("--merge-stderr", given.merge, "Send the ranks' stderr to stdout")->group("Output");
  app.add_option("--stdin", given.stdin_text, "The rank that gets stdin, or none; 0 if not given")
      ->group("Output")
      ->type_name("RANK|none");
  app.add_option("--color", given.color,
                 "Colour in mpiexec's own lines and tags; auto: on a terminal, unless NO_COLOR is "
                 "set")
      ->check(CLI::IsMember({"auto", "always", "never"}))
      ->group("Output")
      ->type_name("auto|always|never");
  app.add_flag("--verbose,-v", given.verbose, "Tell what is started")->group("Output");
  app.add_option("--bind-to", given.bind,
                 "core: one core a rank. none: free. Not given: equal shares of the cores if there "
                 "are enough for all ranks")
      ->group("Cores")
      ->type_name("core|none");
  app.add_flag("--show-binding", given.show_binding, "Draw which rank may run where")
      ->group("Cores");
}

// The help once more, for scripts/make-man-pages.py: an option a line, its parts behind tabs.
void print_help_rows(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;
    const std::string type = option->get_type_size() != 0 ? option->get_type_name() : "";
    printf("option\t%s\t%s\t%s\t%s\n", option->get_group().c_str(),
           option->get_name(false, true).c_str(), type.c_str(), option->get_description().c_str());
  }
  printf("%s\n", examples);
}

Assignment split_assignment(const std::string& text, const char* option) {
  const size_t equals = text.find('=');
  if (equals == 0 || equals == std::string::npos) {
    throw Refusal{format("%s wants NAME=VALUE, not '%s'", option, text.c_str())};
  }
  return {text.substr(0, equals), text.substr(equals + 1)};
}

Assignment split_export(const std::string& text) {
  if (text.find('=') != std::string::npos) return split_assignment(text, "-x");
  const char* value = getenv(text.c_str());
  if (!value)
    throw Refusal{format("-x %s: there is no such variable here to pass on", text.c_str())};
  return {text, value};
}

const char* kind_help(const settings::OptionInfo& row) {
  switch (row.kind) {
    case settings::OptionKind::boolean: return "on or off";
    case settings::OptionKind::count: return "a number";
    case settings::OptionKind::bytes: return "bytes, as in 4096, 16K or 1M";
    case settings::OptionKind::microseconds: return "a time, as in 50us, 5ms or 2s";
    case settings::OptionKind::choice: return row.choices;
    case settings::OptionKind::text: return "text";
  }
  return "";
}

// Checks `NAME=VALUE` against the library's table, so that a mistake is found before the start.
Assignment check_setting(const std::string& text) {
  Assignment setting = split_assignment(text, "--set");
  std::string& name = setting.first;
  if (name.starts_with("HEADWAY_")) name.erase(0, 8);
  const settings::OptionInfo* row = settings::find_option(name.c_str());
  if (!row) {
    NearNames near(name);
    for (const settings::OptionInfo& other : settings::option_table) near.offer(other.name);
    const std::string question = near.question();
    throw Refusal{
        format("--set %s: the library has no option of that name%s (mpiexec --info lists "
               "them all)",
               name.c_str(), question.c_str())};
  }
  settings::Settings scratch;
  if (!settings::parse_option(*row, setting.second.c_str(), scratch)) {
    throw Refusal{format("--set %s=%s: not a value of this option, which wants %s", row->name,
                         setting.second.c_str(), kind_help(*row))};
  }
  name = std::string("HEADWAY_") + row->name;
  return setting;
}

int parse_stdin(const std::string& text) {
  if (text == "none") return -1;
  char* rest = nullptr;
  const long rank = strtol(text.c_str(), &rest, 10);
  if (text.empty() || *rest != '\0' || rank < 0 || rank > 1'000'000) {
    throw Refusal{format("--stdin wants a rank or none, not '%s'", text.c_str())};
  }
  return static_cast<int>(rank);
}

Bind parse_bind(const std::string& text) {
  const std::string head = text.substr(0, text.find(':'));
  if (head == "core" || head == "hwthread" || head == "cores") return Bind::core;
  if (head == "none") return Bind::none;
  // Wider places than a core: on one machine that is what equal shares give.
  for (const char* wide : {"socket", "package", "numa", "board", "machine", "l1cache", "l2cache",
                           "l3cache", "user", "rr", "cpu", "auto"}) {
    if (head == wide) return Bind::automatic;
  }
  throw Refusal{format("--bind-to %s: core and none are possible here", text.c_str())};
}

// Job-wide options may stand in any section.
void merge(Plan& plan, const Given& given) {
  for (const std::string& text : given.settings) plan.environment.push_back(check_setting(text));
  for (const std::string& text : given.job_environment) {
    plan.environment.push_back(split_assignment(text, "-genv"));
  }
  plan.unset.insert(plan.unset.end(), given.unset.begin(), given.unset.end());
  if (given.timeout_s >= 0) plan.timeout_s = given.timeout_s;
  if (!given.bind.empty()) plan.bind = parse_bind(given.bind);
  if (!given.stdin_text.empty()) {
    plan.stdin_rank = parse_stdin(given.stdin_text);
    plan.stdin_named = true;
  }
  if (!given.output_directory.empty()) plan.output_directory = given.output_directory;
  if (!given.color.empty()) {
    plan.color = given.color == "always"  ? Color::always
                 : given.color == "never" ? Color::never
                                          : Color::automatic;
  }
  if (given.library == "program") plan.library = Library::of_program;
  for (const std::string& word : given.outputs) {
    if (!word.starts_with("tag")) {
      throw Refusal{format("--output %s: only tag is possible here", word.c_str())};
    }
    plan.tag_output = true;
  }
  plan.tag_output |= given.tag;
  plan.merge_stderr |= given.merge;
  plan.show_binding |= given.show_binding;
  plan.verbose |= given.verbose;
  plan.show_info |= given.info;
  plan.check |= given.check;
}

Section make_section(const Given& given, std::vector<std::string> command) {
  Section section;
  section.ranks = given.ranks;
  section.command = std::move(command);
  section.directory = given.directory;
  for (const std::string& text : given.section_environment) {
    section.environment.push_back(split_assignment(text, "--env"));
  }
  for (const std::string& text : given.export_names) {
    section.environment.push_back(split_export(text));
  }
  return section;
}

std::vector<std::vector<std::string>> split_sections(const std::vector<std::string>& words) {
  std::vector<std::vector<std::string>> sections(1);
  for (const std::string& word : words) {
    if (word == ":") {
      sections.emplace_back();
    } else {
      sections.back().push_back(word);
    }
  }
  return sections;
}

// The time-out that both common launchers take from the environment.
void take_timeout_variable(Plan& plan) {
  const char* text = getenv("MPIEXEC_TIMEOUT");
  if (!text || !*text || plan.timeout_s) return;
  char* rest = nullptr;
  const double seconds = strtod(text, &rest);
  if (*rest != '\0' || !(seconds > 0)) {
    throw Refusal{format("the variable MPIEXEC_TIMEOUT wants seconds, not '%s'", text)};
  }
  plan.timeout_s = seconds;
  plan.timeout_by = "MPIEXEC_TIMEOUT";
}

CommandLine parse(const std::vector<std::string>& words) {
  CommandLine result;
  Plan& plan = result.plan;
  std::vector<std::string> hosts, host_files;
  for (const std::vector<std::string>& part : split_sections(words)) {
    Translated line = translate(part);
    Given given;
    CLI::App app("Starts the ranks of an MPI job on this machine.", "mpiexec");
    app.formatter(std::make_shared<HelpText>());
    app.footer(examples);
    describe(app, given);
    try {
      std::reverse(line.options.begin(), line.options.end());  // as CLI11 wants them
      app.parse(line.options);
    } catch (const CLI::CallForHelp&) {
      printf("%s\n", app.help().c_str());
      result.exit_code = 0;
      return result;
    } catch (const CLI::ParseError& error) {
      throw Refusal{error.what()};
    }
    if (given.help_rows) {
      print_help_rows(app);
      result.exit_code = 0;
      return result;
    }
    if (given.version) {
      print_version();
      result.exit_code = 0;
      return result;
    }
    merge(plan, given);
    hosts.insert(hosts.end(), given.hosts.begin(), given.hosts.end());
    host_files.insert(host_files.end(), given.host_files.begin(), given.host_files.end());
    if (plan.show_info && line.command.empty()) break;
    if (line.command.empty()) {
      throw Refusal{
          "no program given; for example: mpiexec -n 2 ./a.out (mpiexec --help tells more)"};
    }
    plan.sections.push_back(make_section(given, std::move(line.command)));
  }
  if (plan.show_info) return result;
  take_timeout_variable(plan);
  const int ranks = plan.ranks();
  if (plan.stdin_rank >= ranks) {
    throw Refusal{
        format("--stdin %d: the job has only the ranks 0 to %d", plan.stdin_rank, ranks - 1)};
  }
  const std::string refusal = check_hosts(hosts, host_files, plan);
  if (!refusal.empty()) throw Refusal{refusal};
  return result;
}

}  // namespace

CommandLine parse_command_line(const std::vector<std::string>& words) {
  try {
    return parse(words);
  } catch (const Refusal& refusal) {
    say(refusal.text);
    CommandLine result;
    result.exit_code = exit_usage;
    return result;
  }
}

}  // namespace headway::launcher
