#include "engine_line.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <unistd.h>

#include "engine_environment.h"
#include "engine_layout.h"
#include "engine_options.h"
#include "quoting.h"
#include "say.h"
#include "standard_options.h"

namespace headway::launcher {
namespace {

using Words = std::vector<std::string>;

constexpr const char* file_word = "FILE";
constexpr const char* job_ppn = "SLURM_NTASKS_PER_NODE";
constexpr const char* interactive_step = "4294967290";
constexpr const char* user_options = "HEADWAY_ENGINE_OPTIONS";
constexpr const char* library_path = "LD_LIBRARY_PATH";

// What all engines' lines are made of.
struct Making {
  const Plan& plan;
  const Engine& engine;
  const Layout layout;
  const EngineEnvironment environment;
  const std::vector<std::string>& programs;
  EngineLine line;

  void add(std::initializer_list<std::string> more) {
    line.words.insert(line.words.end(), more.begin(), more.end());
  }
  bool refuse(const std::string& sentence) {
    if (line.refusal.empty()) line.refusal = sentence;
    return false;
  }
  bool refuse(const std::string& option, const std::string& why) {
    return refuse(not_handed_over(option, engine.kind, why));
  }
};

std::string host_names(const Layout& layout) {
  std::string names;
  for (const Host& host : layout.hosts) names += (names.empty() ? "" : ",") + host.name;
  return names;
}

// The machine of each rank; "": nobody named them, or it would be longer than a word may be.
std::string host_of_each_rank(const Layout& layout) {
  constexpr size_t most = 100'000;
  std::string names;
  int left = layout.ranks;
  for (const Host& host : layout.hosts) {
    for (int i = 0; i < host.slots && left > 0 && names.size() <= most; ++i, --left) {
      names += (names.empty() ? "" : ",") + host.name;
    }
  }
  return names.size() <= most ? names : "";
}

// Whether the user's own words for the engine have one of these options.
bool says(const char* words, std::initializer_list<const char*> options) {
  Words list;
  if (!words || !split_words(words, list)) return false;
  return std::any_of(list.begin(), list.end(), [&](const std::string& word) {
    return std::any_of(options.begin(), options.end(), [&](const std::string& option) {
      const bool is_long = option.size() > 2;
      return word == option || word.starts_with(is_long ? option + "=" : option);
    });
  });
}

std::string hosts_with_slots(const Layout& layout) {
  std::string names;
  for (const Host& host : layout.hosts) {
    names += (names.empty() ? "" : ",") + host.name + ":" + std::to_string(host.slots);
  }
  return names;
}

// The table's words, those of other launchers, and the user's own for this engine.
bool add_options(Making& making) {
  std::string refusal = translate_options(making.plan, making.engine.kind, making.line.words);
  if (refusal.empty()) {
    refusal = translate_peer_options(making.plan, making.engine.kind, making.line.words);
  }
  if (!refusal.empty()) return making.refuse(refusal);
  const char* more = getenv(user_options);
  if (more && !split_words(more, making.line.words)) {
    return making.refuse(format("HEADWAY_ENGINE_OPTIONS=%s: a quote is not closed", more));
  }
  return true;
}

// The program of a section with all that has to stand before it: `here` is what the engine itself
// cannot be told of this section alone.
Words program_of(const Making& making, size_t number, const std::vector<Assignment>& here,
                 const std::string& directory) {
  const Section& section = making.plan.sections[number];
  Words words;
  const std::vector<std::string>& unset = making.environment.unset;
  if (!unset.empty() || !here.empty() || !directory.empty()) {
    words.push_back("/usr/bin/env");  // also where the ranks have no PATH
    for (const std::string& name : unset) words.insert(words.end(), {"-u", name});
    if (!directory.empty()) words.push_back("--chdir=" + directory);
    for (const Assignment& variable : here) words.push_back(variable.first + "=" + variable.second);
  }
  words.push_back(making.programs[number]);
  words.insert(words.end(), section.command.begin() + 1, section.command.end());
  return words;
}

std::string folder_of_section(const Section& section) {
  return section.directory.empty() ? "" : absolute(section.directory);
}

bool all_alike(const Plan& plan, bool (*alike)(const Section&, const Section&)) {
  return std::all_of(plan.sections.begin(), plan.sections.end(),
                     [&](const Section& section) { return alike(section, plan.sections[0]); });
}

// A variable that this process has with this value: an engine that passes on its own environment,
// or names of it, need not have it on its line, where all users of the machine can read it.
bool is_here(const Assignment& variable) {
  const char* here = getenv(variable.first.c_str());
  return here && variable.second == here;
}

// An engine that gets the ranks' variables in its own environment is not to take those that change
// how it runs itself: these stand before the program.
bool moves_engine(const Making& making, const Assignment& variable) {
  const std::string& name = variable.first;
  if (name == library_path && !making.environment.library_path_given) return false;
  return name.starts_with("LD_") ||
         (making.engine.kind == EngineKind::flux && name.starts_with("PYTHON"));
}

// Parts the variables of all programs: into the engine's environment, and back, before the program.
std::vector<Assignment> put_into_environment(Making& making) {
  std::vector<Assignment> before;
  for (const Assignment& variable : making.environment.common) {
    const bool apart = moves_engine(making, variable) && !is_here(variable);
    (apart ? before : making.line.environment).push_back(variable);
  }
  return before;
}

// The variables of here that ranks get, if not all: those that are named, and those that are set.
Words passed_names(const Making& making) {
  Words names = *making.plan.sections[0].passed;
  for (const Assignment& variable : making.environment.common) names.push_back(variable.first);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

// srun's binding, and Flux's: what is to be shown, and what is done.
std::string binding_words(const Plan& plan, const char* core, const char* none, const char* open) {
  std::string words = plan.show_binding ? "verbose" : "";
  const std::string how = plan.bind == Bind::core ? core : plan.bind == Bind::none ? none : open;
  if (!how.empty() && (plan.bind != Bind::automatic || plan.show_binding)) {
    words += (words.empty() ? "" : ",") + how;
  }
  return words;
}

// A pattern of ours in srun's letters.
std::string pattern_for_srun(const std::string& pattern) {
  std::string text;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char letter = pattern[i] == '%' && i + 1 < pattern.size() ? pattern[i + 1] : '\0';
    text += pattern[i];
    if (letter == '\0') continue;
    ++i;
    if (letter == 'r' || letter == 'h') {
      text += letter == 'r' ? 't' : 'N';
      continue;
    }
    text += '%';
    if (letter != '%') text += letter;  // srun would have a meaning for it
  }
  return text;
}

bool add_files_for_srun(Making& making) {
  const Plan& plan = making.plan;
  std::string output = pattern_for_srun(absolute_pattern(plan.output_pattern));
  std::string errors = pattern_for_srun(absolute_pattern(plan.errors_pattern));
  if (!plan.output_directory.empty()) {
    const std::string folder = doubled_per_cent(absolute(plan.output_directory));
    if (output.empty()) output = folder + "/rank.%t.out";
    if (errors.empty()) errors = folder + "/rank.%t.err";
  }
  if ((output + errors).find('\\') != std::string::npos) {
    return making.refuse("a file of output with a backslash in its name", "there it is a sign");
  }
  if (!output.empty()) making.add({"-o", output});
  // Without a word srun's files take both.
  if (plan.merge_stderr && !output.empty()) return true;
  if (plan.merge_stderr && !errors.empty()) {
    return making.refuse("--merge-stderr with --errfile-pattern", "leave one of the two out");
  }
  if (!errors.empty()) {
    making.add({"-e", errors});
  } else if (!output.empty()) {
    making.add({"-e", "all"});
  }
  return true;
}

// srun keeps 126 words of a line of its file, and drops the others without a word.
Words folded(const Words& words) {
  constexpr size_t most = 120;
  if (words.size() <= most) return words;
  return {"/bin/sh", "-c", "exec " + quoted(words)};
}

bool write_ranks_file(Making& making, const std::vector<Assignment>& before) {
  int first = 0;
  std::string& text = making.line.file;
  for (size_t i = 0; i < making.plan.sections.size(); ++i) {
    const Section& section = making.plan.sections[i];
    text += section.ranks == 1 ? std::to_string(first)
                               : format("%d-%d", first, first + section.ranks - 1);
    first += section.ranks;
    std::vector<Assignment> own = before;
    own.emplace_back("MPIEXEC_APPNUM", std::to_string(i));  // srun tells all ranks -1
    own.insert(own.end(), making.environment.own[i].begin(), making.environment.own[i].end());
    for (const std::string& word : folded(program_of(making, i, own, folder_of_section(section)))) {
      if (word.find('\n') != std::string::npos) {
        return making.refuse("an argument with a line's end",
                             "its file of programs has a line for each");
      }
      text += " " + quoted_for_srun(word);
    }
    text += "\n";
  }
  making.line.file_at = making.line.words.size() + 1;
  making.add({"--multi-prog", file_word});
  return true;
}

bool make_srun(Making& making) {
  const Plan& plan = making.plan;
  const Layout& layout = making.layout;
  const char* more = getenv(user_options);
  const bool alone = plan.sections.size() == 1;
  const bool alike =
      all_alike(plan, [](const Section& a, const Section& b) { return a.passed == b.passed; });
  if (!alike) return making.refuse("--envlist of one program", "give it for all, with --genvlist");
  const std::string each = host_of_each_rank(layout);
  if (layout.unequal && each.empty()) {
    return making.refuse("--hosts with different numbers",
                         "for so many ranks the line would be too long; give --ppn, or the names "
                         "alone");
  }
  std::string passed = "ALL";
  if (plan.sections[0].passed) {
    passed.clear();
    for (const std::string& name : passed_names(making)) {
      passed += (passed.empty() ? "" : ",") + name;
    }
    if (passed.empty()) passed = "NONE";
  }
  // -X: an interrupt goes to the ranks at once, and a second one ends them.
  making.add({making.engine.path, "--mpi=pmi2", "--kill-on-bad-exit=1", "-X"});
  making.add({"--export=" + passed});
  // Said once for each rank, srun takes the machines in the user's order, and fills them as told.
  if (!each.empty()) {
    making.add({"-w", each, "-m", "arbitrary"});
  } else if (!layout.hosts.empty()) {
    making.add({"-w", host_names(layout)});
  }
  making.add({"-N", std::to_string(layout.machines), "-n", std::to_string(layout.ranks)});
  if (layout.most > 0 && each.empty()) {
    making.add({"--ntasks-per-node=" + std::to_string(layout.most)});
  }
  if (layout.hosts.empty() && !says(more, {"-m", "--distribution"})) {
    making.add({"-m", "block,NoPack"});  // whatever the job was made with: neighbours together
  }
  // Another step may have the cores, also one of ours in the background.
  making.add({"--overlap"});
  // Else a step gets no more ranks of a machine than the job has cores there.
  const bool crowded = plan.place.named || plan.per_machine > 0 ||
                       layout.machines < plan.place.machines || layout.ranks > plan.place.slots;
  const char* cores = getenv("SLURM_CPUS_PER_TASK");
  if (crowded) {
    making.add({"--overcommit"});
  } else if (cores && !says(more, {"-c", "--cpus-per-task"})) {
    making.add({"-c", cores});  // newer releases of srun do not take it from the job
  }
  const std::string binding = binding_words(plan, "cores", "none", "");
  if (!binding.empty()) making.add({"--cpu-bind=" + binding});
  making.add({"-i", std::to_string(std::max(plan.stdin_rank, 0))});
  if (!add_files_for_srun(making)) return false;
  const std::string folder = alone ? folder_of_section(plan.sections[0]) : "";
  if (!folder.empty()) making.add({"-D", folder});
  // What the job was made with, and srun would hold against the numbers above.
  if (getenv(job_ppn)) making.line.dropped.push_back(job_ppn);
  // How the shell of an interactive step is bound; the ranks are no part of it.
  const char* step = getenv("SLURM_STEP_ID");
  if (step && strcmp(step, interactive_step) == 0 && getenv("SLURM_CPU_BIND")) {
    making.line.dropped.push_back("SLURM_CPU_BIND");
  }
  // srun passes its own environment on as it is; --export=NAME=VALUE breaks at commas.
  const std::vector<Assignment> before = put_into_environment(making);
  if (!add_options(making)) return false;
  if (!alone) return write_ranks_file(making, before);
  const Words program = program_of(making, 0, before, "");
  making.line.words.insert(making.line.words.end(), program.begin(), program.end());
  return true;
}

bool make_flux(Making& making) {
  const Plan& plan = making.plan;
  const Layout& layout = making.layout;
  making.add({making.engine.path, "run", "-o", "pmi=simple", "-o", "exit-on-error"});
  if (layout.unequal || (layout.most > 0 && layout.ranks != layout.machines * layout.most)) {
    return making.refuse(layout.unequal         ? "--hosts with different numbers"
                         : plan.per_machine > 0 ? "--ppn"
                                                : "--hosts with numbers",
                         "each machine must get as many ranks there; choose -n so, or give the "
                         "names alone");
  }
  if (!layout.hosts.empty()) making.add({"--requires=host:" + host_names(layout)});
  making.add({"-N", std::to_string(layout.machines)});
  // Flux takes one of the two, the number of all ranks or that of each machine.
  if (layout.most > 0) {
    making.add({"--tasks-per-node=" + std::to_string(layout.most)});
  } else {
    making.add({"-n", std::to_string(layout.ranks)});
  }
  const std::string binding = binding_words(plan, "per-task", "off", "on");
  if (!binding.empty()) making.add({"-o", "cpu-affinity=" + binding});
  making.add({"--input=" + std::to_string(std::max(plan.stdin_rank, 0))});
  const std::string folder = folder_of_section(plan.sections[0]);
  if (!folder.empty()) making.add({"--cwd=" + folder});
  if (plan.sections[0].passed) {
    making.add({"--env-remove=*"});
    for (const std::string& name : passed_names(making)) making.add({"--env=" + name});
  }
  const std::vector<Assignment> before = put_into_environment(making);
  if (!add_options(making)) return false;
  const Words program = program_of(making, 0, before, "");
  making.line.words.insert(making.line.words.end(), program.begin(), program.end());
  return true;
}

// It keeps 1000 words of a program, and writes over what lies behind them if there are more.
constexpr size_t most_words_of_hydra = 990;

bool make_hydra(Making& making) {
  const Plan& plan = making.plan;
  making.add({making.engine.path});
  if (making.layout.hosts.size() >= most_words_of_hydra) {
    for (const Host& host : making.layout.hosts) {
      making.line.file += host.name + ":" + std::to_string(host.slots) + "\n";
    }
    making.line.file_at = making.line.words.size() + 1;
    making.add({"-f", file_word});
  } else if (!making.layout.hosts.empty()) {
    making.add({"-hosts", hosts_with_slots(making.layout)});
  }
  if (!add_options(making)) return false;
  // It passes on all that is here, or what a program names of it.
  Words names;
  for (const Assignment& variable : making.environment.common) {
    if (is_here(variable)) {
      names.push_back(variable.first);
    } else {
      making.add({"-genv", variable.first, variable.second});
    }
  }
  for (size_t i = 0; i < plan.sections.size(); ++i) {
    const Section& section = plan.sections[i];
    if (i > 0) making.add({":"});
    making.add({"-n", std::to_string(section.ranks)});
    Words passed = names;
    for (const Assignment& variable : making.environment.own[i]) {
      if (is_here(variable)) {
        passed.push_back(variable.first);
      } else {
        making.add({"-env", variable.first, variable.second});
      }
    }
    if (section.passed) {
      passed.insert(passed.end(), section.passed->begin(), section.passed->end());
      std::string list;
      for (const std::string& name : passed) list += (list.empty() ? "" : ",") + name;
      if (list.empty()) {
        making.add({"-envnone"});
      } else {
        making.add({"-envlist", list});
        // It does not find the last variable of its environment by its name.
        making.line.environment = {{"MPIEXEC_LAST", "1"}};
      }
    }
    const std::string folder = folder_of_section(section);
    if (!folder.empty()) making.add({"-wdir", folder});
    const Words program = program_of(making, i, {}, "");
    if (program.size() >= most_words_of_hydra) {
      return making.refuse(
          format("a program with %zu words", program.size()),
          format("it has room for %zu; put them into a file that the program reads",
                 most_words_of_hydra));
    }
    making.line.words.insert(making.line.words.end(), program.begin(), program.end());
  }
  return true;
}

bool has_peer_option(const Plan& plan, const char* name) {
  return std::any_of(plan.peer_options.begin(), plan.peer_options.end(),
                     [&](const PeerOption& peer) { return peer.name == name; });
}

// All that --output says: it counts once only.
std::string output_for_prterun(const Plan& plan) {
  std::string words;
  const auto add = [&](const std::string& word) { words += (words.empty() ? "" : ",") + word; };
  if (plan.tag_output && plan.tag_pattern.empty()) add("tag");
  if (plan.timestamp) add("timestamp");
  if (plan.merge_stderr) add("merge");
  // A copy would go to the terminal, too. (dir=DIR loses one of stdout and stderr of ranks on other
  // machines, seen with 5.0.11 of Open MPI.)
  if (!plan.output_directory.empty()) {
    add("file=" + absolute(plan.output_directory) + "/rank:nocopy");
  }
  return words;
}

// Where an installation that does not lie in the system's own folders has its parts, on the other
// machines too: prterun tells them the place that it was built for, and a wheel lies elsewhere.
std::string prefix_of_prterun(const std::string& program) {
  char* real = realpath(program.c_str(), nullptr);
  const std::string path = real ? real : program;
  free(real);
  const size_t name = path.rfind("/bin/");
  if (name == std::string::npos || path.find('/', name + 5) != std::string::npos) return "";
  const std::string prefix = path.substr(0, name);
  const bool whole = access((prefix + "/bin/prted").c_str(), X_OK) == 0;
  return whole && prefix != "/usr" ? prefix : "";
}

bool make_prterun(Making& making) {
  const Plan& plan = making.plan;
  making.add({making.engine.path});
  if (geteuid() == 0) making.add({"--allow-run-as-root"});
  const std::string prefix = prefix_of_prterun(making.engine.path);
  const char* more = getenv(user_options);
  const bool said = has_peer_option(plan, "prefix") || has_peer_option(plan, "noprefix") ||
                    says(more, {"--prefix", "--noprefix", "-prefix", "-noprefix"});
  if (!prefix.empty() && !said) making.add({"--prefix", prefix});
  if (!making.layout.hosts.empty()) making.add({"--host", hosts_with_slots(making.layout)});
  // Its default would bind each rank to a core, and refuse more ranks than cores.
  making.add({"--bind-to", plan.bind == Bind::core ? "core" : "none"});
  if (plan.per_machine == 0 && !has_peer_option(plan, "map-by") &&
      !says(more, {"--map-by", "-map-by"})) {
    making.add({"--map-by", ":oversubscribe"});
  }
  if (plan.output_directory.find_first_of(",:") != std::string::npos) {
    return making.refuse("--output-dir with a comma or a colon in the folder's name",
                         "these part its words");
  }
  const std::string output = output_for_prterun(plan);
  if (!output.empty()) making.add({"--output", output});
  if (!add_options(making)) return false;
  for (size_t i = 0; i < plan.sections.size(); ++i) {
    const Section& section = plan.sections[i];
    if (i > 0) making.add({":"});
    making.add({"-n", std::to_string(section.ranks)});
    // It passes on what is named, and an option belongs to its own program.
    const auto* const own = &making.environment.own[i];
    for (const std::string& name : making.environment.forwarded) {
      const bool is_own = std::any_of(own->begin(), own->end(), [&](const Assignment& variable) {
        return variable.first == name;
      });
      if (!is_own) making.add({"-x", name});
    }
    for (const auto* list : {&making.environment.common, own}) {
      for (const Assignment& variable : *list) {
        making.add(
            {"-x", is_here(variable) ? variable.first : variable.first + "=" + variable.second});
      }
    }
    const std::string folder = folder_of_section(section);
    if (!folder.empty()) making.add({"--wdir", folder});
    const Words program = program_of(making, i, {}, "");
    making.line.words.insert(making.line.words.end(), program.begin(), program.end());
  }
  return true;
}

// What no engine, or not this one, can be told of the machines.
std::string why_not_these_machines(const Making& making) {
  const Place& place = making.plan.place;
  const EngineKind kind = making.engine.kind;
  for (const Host& host : making.layout.hosts) {
    if (host.name.find(':') == std::string::npos) continue;
    return format(
        "host %s: %s would take the colons for a number of ranks; name the machine by a name, or "
        "by "
        "an address of IPv4",
        host.name.c_str(), name_of(kind));
  }
  const bool of_slurm = place.manager == Manager::slurm && kind != EngineKind::flux;
  const bool of_flux = place.manager == Manager::flux && kind == EngineKind::flux;
  if (!making.layout.hosts.empty() || of_slurm || of_flux) return "";
  return format("%s, which %s does not know; name them with --hosts, or leave HEADWAY_ENGINE out",
                place.whose.c_str(), name_of(kind));
}

}  // namespace

EngineLine make_line(const Plan& plan, const Engine& engine,
                     const std::vector<std::string>& programs, const std::string& library_folder) {
  Making making{plan, engine, lay_out(plan), environment_for(plan, library_folder), programs, {}};
  EngineLine& line = making.line;
  line.refusal = making.layout.refusal;
  if (line.refusal.empty()) line.refusal = why_not_these_machines(making);
  if (!line.refusal.empty()) return line;
  line.no_input = plan.stdin_rank < 0;
  line.merged = plan.merge_stderr && engine.kind != EngineKind::prterun;
  switch (engine.kind) {
    case EngineKind::srun: make_srun(making); break;
    case EngineKind::flux: make_flux(making); break;
    case EngineKind::hydra: make_hydra(making); break;
    case EngineKind::prterun: make_prterun(making); break;
  }
  return line;
}

std::string as_shell_text(const EngineLine& line) {
  std::string text;
  if (!line.dropped.empty()) text = "env ";
  for (const std::string& name : line.dropped) text += "-u " + name + " ";
  for (const Assignment& variable : line.environment) {
    text += variable.first + "=" + quoted(variable.second) + " ";
  }
  text += quoted(line.words);
  if (line.no_input) text += " </dev/null";
  if (line.merged) text += " 2>&1";
  if (!line.file.empty()) {
    text += format("\n# %s holds:", file_word);
    for (size_t at = 0; at < line.file.size();) {
      const size_t end = line.file.find('\n', at);
      text += "\n# " + line.file.substr(at, end - at);
      at = end + 1;
    }
  }
  return text;
}

}  // namespace headway::launcher
