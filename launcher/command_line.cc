#include "command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <strings.h>
#include <unistd.h>

#include "describe.h"
#include "dialects.h"
#include "hosts.h"
#include "info.h"
#include "say.h"
#include "settings/options.h"
#include "standard_options.h"

namespace headway::launcher {
namespace {

// What one section of the line holds once it is translated: our options, then the program.
struct Translated {
  std::vector<std::string> options;
  std::vector<PeerOption> peers;
  std::vector<std::string> command;
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
    if (!row->refusal.empty()) {
      throw Refusal{format("%s is not done here: %s", word.substr(0, equals).c_str(),
                           std::string(row->refusal).c_str())};
    }
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
    if (row->meaning.empty()) {
      result.peers.push_back({std::string(row->name), values, row->takers});
      continue;
    }
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

Assignment split_assignment(const std::string& text, const char* option) {
  const size_t equals = text.find('=');
  if (equals == 0 || equals == std::string::npos) {
    throw Refusal{format("%s wants NAME=VALUE, not '%s'", option, text.c_str())};
  }
  return {text.substr(0, equals), text.substr(equals + 1)};
}

void add_exports(const std::string& text, std::vector<Assignment>& environment) {
  if (text.find('=') != std::string::npos) {
    environment.push_back(split_assignment(text, "-x"));
    return;
  }
  if (text.ends_with('*')) {  // as Open MPI has it; that there is none is no mistake
    const std::string_view head = std::string_view(text).substr(0, text.size() - 1);
    for (char** entry = environ; *entry; ++entry) {
      if (std::string_view(*entry).starts_with(head) && strchr(*entry, '=')) {
        environment.push_back(split_assignment(*entry, "-x"));
      }
    }
    return;
  }
  const char* value = getenv(text.c_str());
  if (!value)
    throw Refusal{format("-x %s: there is no such variable here to pass on", text.c_str())};
  environment.emplace_back(text, value);
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

void merge_output(Plan& plan, const Given& given) {
  plan.tag_output |= given.tag || !given.tag_pattern.empty();
  plan.merge_stderr |= given.merge;
  plan.timestamp |= given.timestamp;
  const auto take = [](std::string& target, const std::string& text) {
    if (!text.empty()) target = text;
  };
  take(plan.tag_pattern, given.tag_pattern);
  take(plan.output_directory, given.output_directory);
  take(plan.output_pattern, given.output_pattern);
  take(plan.errors_pattern, given.errors_pattern);
  for (const std::string& list : given.outputs) {
    // As Open MPI has them: of any case, shortened, with qualifiers behind a colon.
    for (std::string word : split_list(list.substr(0, list.find(':')))) {
      const size_t equals = std::min(word.find('='), word.size());
      std::transform(word.begin(), word.begin() + static_cast<long>(equals), word.begin(),
                     [](unsigned char c) { return static_cast<char>(tolower(c)); });
      if (word.starts_with("tag")) {
        plan.tag_output = true;
      } else if (word.starts_with("time")) {
        plan.timestamp = true;
      } else if (word.starts_with("merge")) {
        plan.merge_stderr = true;
      } else if (word.starts_with("dir") && equals + 1 < word.size()) {
        plan.output_directory = word.substr(equals + 1);
      } else if (word.starts_with("file") && equals + 1 < word.size()) {
        plan.output_pattern = word.substr(equals + 1) + ".%r";
        plan.errors_pattern = plan.output_pattern;
      } else {
        throw Refusal{
            format("--output %s: tag, timestamp, merge-stderr-to-stdout, dir=DIR and file=FILE are "
                   "possible here",
                   word.c_str())};
      }
    }
  }
}

// Job-wide options may stand in any section.
void merge(Plan& plan, const Given& given) {
  for (const std::string& text : given.settings) plan.environment.push_back(check_setting(text));
  for (const std::string& text : given.job_environment) {
    plan.environment.push_back(split_assignment(text, "-genv"));
  }
  plan.unset.insert(plan.unset.end(), given.unset.begin(), given.unset.end());
  if (given.timeout_s >= 0) plan.timeout_s = given.timeout_s;
  if (!given.bind.empty()) {
    plan.bind = parse_bind(given.bind);
    plan.bind_text = given.bind;
  }
  if (given.per_machine > 0) plan.per_machine = given.per_machine;
  if (!given.stdin_text.empty()) {
    plan.stdin_rank = parse_stdin(given.stdin_text);
    plan.stdin_named = true;
  }
  if (!given.color.empty()) {
    plan.color = given.color == "always"  ? Color::always
                 : given.color == "never" ? Color::never
                                          : Color::automatic;
  }
  if (given.library == "program") plan.library = Library::of_program;
  merge_output(plan, given);
  plan.show_binding |= given.show_binding;
  for (const std::string& list : given.displays) {
    for (const std::string& word : split_list(list)) {
      // The others of Open MPI tell of its own daemons.
      plan.show_binding |=
          strncasecmp(word.c_str(), "map", 3) == 0 || strncasecmp(word.c_str(), "bind", 4) == 0;
    }
  }
  if (!given.errhandler.empty() && given.errhandler != "mpi_errors_are_fatal") {
    throw Refusal{format(
        "--initial-errhandler %s: only mpi_errors_are_fatal is possible here; the program can call "
        "MPI_Comm_set_errhandler",
        given.errhandler.c_str())};
  }
  plan.verbose |= given.verbose;
  plan.show_info |= given.info;
  plan.check |= given.check;
  plan.dry_run |= given.dry_run;
}

// The names of --envlist, or none at all; nothing where all are passed on.
std::optional<std::vector<std::string>> passed_names(const std::vector<std::string>& lists,
                                                     bool none) {
  if (lists.empty() && !none) return std::nullopt;
  std::vector<std::string> names;
  for (const std::string& list : lists) {
    const std::vector<std::string> more = split_list(list);
    names.insert(names.end(), more.begin(), more.end());
  }
  return names;
}

// What is given for all programs, to those that have nothing of their own.
void complete(Section& section, const Given& given) {
  if (section.directory.empty()) section.directory = given.job_directory;
  if (section.path.empty()) section.path = given.job_path;
  if (!section.passed) section.passed = passed_names(given.job_passed, given.job_passes_none);
}

Section make_section(const Given& given, std::vector<std::string> command) {
  Section section;
  section.ranks = given.ranks > 0 ? given.ranks : 1;
  std::string error;
  const int most = given.ranks > 0 ? given.ranks : 1'000'000;
  if ((!given.soft.empty() && !soft_ranks(given.soft, most, section.ranks, error)) ||
      (!given.architecture.empty() && !check_architecture(given.architecture, error))) {
    throw Refusal{error};
  }
  section.path = given.path;
  section.passed = passed_names(given.passed, given.passes_none);
  section.command = std::move(command);
  section.directory = given.directory;
  for (const std::string& text : given.section_environment) {
    section.environment.push_back(split_assignment(text, "--env"));
  }
  for (const std::string& text : given.export_names) add_exports(text, section.environment);
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

// Puts the lines of -configfile in the place of the section that names it. What else that section
// says stands before each line.
std::vector<std::vector<std::string>> expand_config_files(
    const std::vector<std::vector<std::string>>& sections) {
  constexpr std::string_view option = "--configfile=";
  std::vector<std::vector<std::string>> result;
  for (const std::vector<std::string>& section : sections) {
    Translated line = translate(section);
    const auto found =
        std::find_if(line.options.begin(), line.options.end(),
                     [&](const std::string& word) { return word.starts_with(option); });
    if (found == line.options.end()) {
      result.push_back(section);
      continue;
    }
    const std::string path = found->substr(option.size());
    line.options.erase(found);
    if (!line.command.empty()) {
      throw Refusal{
          format("-configfile %s: the file names the programs, so nothing can follow, but "
                 "'%s' does",
                 path.c_str(), line.command[0].c_str())};
    }
    std::vector<WordList> inner;
    std::string error;
    if (!read_config_file(path, inner, error)) throw Refusal{error};
    WordList before = line.options;
    for (const PeerOption& peer : line.peers) {
      before.push_back("--" + peer.name);
      before.insert(before.end(), peer.values.begin(), peer.values.end());
    }
    for (WordList& words : inner) {
      words.insert(words.begin(), before.begin(), before.end());
      result.push_back(std::move(words));
    }
  }
  return result;
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

// Of what one section gives for all, the last counts.
void remember(Given& job, const Given& given) {
  if (!given.job_directory.empty()) job.job_directory = given.job_directory;
  if (!given.job_path.empty()) job.job_path = given.job_path;
  if (!given.job_passed.empty()) job.job_passed = given.job_passed;
  job.job_passes_none |= given.job_passes_none;
}

CommandLine parse(const std::vector<std::string>& words) {
  CommandLine result;
  Plan& plan = result.plan;
  std::vector<std::string> hosts, host_files;
  bool own_hosts = false;  // some program has machines of its own
  Given job;               // of all sections
  for (const std::vector<std::string>& part : expand_config_files(split_sections(words))) {
    Translated line = translate(part);
    Given given;
    CLI::App app("Starts the ranks of an MPI job.", "mpiexec");
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
    if (given.help_others) {
      print_other_options();
      result.exit_code = 0;
      return result;
    }
    if (!given.config_file.empty()) {
      throw Refusal{format("-configfile %s: such a file cannot name another, nor be named twice",
                           given.config_file.c_str())};
    }
    merge(plan, given);
    plan.peer_options.insert(plan.peer_options.end(), line.peers.begin(), line.peers.end());
    remember(job, given);
    if (!given.hosts.empty() || !given.host_files.empty()) {
      // The same ones once more, as with each line of a -configfile, are no others.
      const bool same = given.hosts == hosts && given.host_files == host_files;
      if (!same) {
        own_hosts |= !hosts.empty() || !host_files.empty();
        hosts.insert(hosts.end(), given.hosts.begin(), given.hosts.end());
        host_files.insert(host_files.end(), given.host_files.begin(), given.host_files.end());
      }
    }
    if (plan.show_info && line.command.empty()) break;
    if (line.command.empty()) {
      throw Refusal{
          "no program given; for example: mpiexec -n 2 ./a.out (mpiexec --help tells more)"};
    }
    plan.sections.push_back(make_section(given, std::move(line.command)));
  }
  if (plan.show_info) return result;
  for (Section& section : plan.sections) complete(section, job);
  take_timeout_variable(plan);
  const int ranks = plan.ranks();
  if (plan.stdin_rank >= ranks) {
    throw Refusal{
        format("--stdin %d: the job has only the ranks 0 to %d", plan.stdin_rank, ranks - 1)};
  }
  const std::string refusal = find_place(hosts, host_files, plan.place);
  if (!refusal.empty()) throw Refusal{refusal};
  if (plan.place.elsewhere && own_hosts) {
    throw Refusal{
        "--hosts: other machines for each program are not handed over; name the machines once, for "
        "all programs"};
  }
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
