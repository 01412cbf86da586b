#include "engine_options.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <unistd.h>

#include "dialects.h"
#include "say.h"

namespace headway::launcher {
namespace {

using Value = std::optional<std::string>;

// Forms, in the order of EngineKind: words, with @ in the place of the value; behind a ~, in words
// for people, how it is done where words alone do not do it (engine_line.cc); "": refused.
struct Row {
  const char* name;  // as a user writes it; what follows the first blank stands for the value
  Value (*value)(const Plan&);  // nothing: it is not given
  const char* forms[engine_kinds];
  const char* instead = "";  // of a form that is not there
};

Value never(const Plan&) { return std::nullopt; }

Value if_so(bool given) { return given ? Value("") : std::nullopt; }

bool writes_files(const Plan& plan) {
  return !plan.output_directory.empty() || !plan.output_pattern.empty() ||
         !plan.errors_pattern.empty();
}

constexpr const char* other_engine = "name another engine in HEADWAY_ENGINE";

constexpr Row table[] = {
    {"-n N",
     never,
     {"~`-n N -N MACHINES`", "~`-n N -N MACHINES`", "~`-n N` for each program",
      "~`-n N` for each program"}},
    {"--ppn K",
     [](const Plan& plan) {
       return plan.per_machine > 0 ? Value(std::to_string(plan.per_machine)) : std::nullopt;
     },
     {"~`--ntasks-per-node=K`, or as `--hosts`", "~`--tasks-per-node=K`, where it divides N",
      "-ppn @", "--map-by ppr:@:node"}},
    {"--hosts a:2,b:2",
     never,
     {"~`-w a,a,b,b -m arbitrary -N 2`", "~`--requires=host:a,b -N 2`", "~`-hosts a:2,b:2`",
      "~`--host a:2,b:2`"}},
    {"more ranks than were asked for",
     never,
     {"~`--overcommit`", "~as Flux allows it", "~always possible", "~`--map-by :oversubscribe`"}},
    {"--bind-to core",
     [](const Plan& plan) { return if_so(plan.bind == Bind::core); },
     {"~`--cpu-bind=cores`", "~`-o cpu-affinity=per-task`", "-bind-to core", "~`--bind-to core`"}},
    {"--bind-to none",
     [](const Plan& plan) { return if_so(plan.bind == Bind::none); },
     {"~`--cpu-bind=none`", "~`-o cpu-affinity=off`", "-bind-to none",
      "~`--bind-to none`, also where nothing is given"}},
    {"--bind-to WORD",
     [](const Plan& plan) {
       return if_so(plan.bind == Bind::automatic && !plan.bind_text.empty() &&
                    plan.bind_text != "auto");
     },
     {"", "", "", ""},
     "core and none are; give other words in HEADWAY_ENGINE_OPTIONS"},
    {"--show-binding",
     [](const Plan& plan) { return if_so(plan.show_binding); },
     {"~`--cpu-bind=verbose`", "~`-o cpu-affinity=verbose`", "", "--display bind"},
     "HYDRA_TOPO_DEBUG=1 before the line shows it"},
    {"--env, -x",
     never,
     {"~its own environment", "~its own environment",
      "~`-genv NAME VALUE`, or `-env` where programs differ", "~`-x NAME=VALUE`"}},
    {"-x NAME",
     never,
     {"~its own environment", "~its own environment", "~its own environment, or `-envlist`",
      "~`-x NAME`"}},
    {"--set, --genv",
     never,
     {"~its own environment", "~its own environment", "~`-genv NAME VALUE`", "~`-x NAME=VALUE`"}},
    {"--unset NAME",
     never,
     {"~`env -u NAME` before the program", "~`env -u NAME` before the program",
      "~`env -u NAME` before the program", "~`env -u NAME` before the program"}},
    {"--envlist, --envnone",
     [](const Plan& plan) {
       return if_so(std::any_of(plan.sections.begin(), plan.sections.end(),
                                [](const Section& section) { return section.passed.has_value(); }));
     },
     {"~`--export=NAMES`", "~`--env-remove=* --env=NAME`", "~`-envlist NAMES`, `-envnone`", ""},
     "of here it passes on HEADWAY_*, OMP_*, LD_PRELOAD and LD_LIBRARY_PATH alone; others with -x"},
    {"--wdir DIR", never, {"~`-D DIR`", "~`--cwd=DIR`", "~`-wdir DIR`", "~`--wdir DIR`"}},
    {"--path DIR",
     never,
     {"~the program's whole path", "~the program's whole path", "~the program's whole path",
      "~the program's whole path"}},
    {"--library program",
     never,
     {"~without our LD_LIBRARY_PATH", "~without our LD_LIBRARY_PATH",
      "~without our LD_LIBRARY_PATH", "~without our LD_LIBRARY_PATH"}},
    {"-l",
     [](const Plan& plan) { return if_so(plan.tag_output && plan.tag_pattern.empty()); },
     {"-l", "--label-io", "-prepend-rank", "~`--output tag`"}},
    {"--prepend-pattern TEXT",
     [](const Plan& plan) {
       return plan.tag_pattern.empty() ? std::nullopt : Value(plan.tag_pattern);
     },
     {"", "", "-prepend-pattern @", ""},
     "-l gives each line its rank"},
    {"--timestamp-output",
     [](const Plan& plan) { return if_so(plan.timestamp); },
     {"", "", "", "~`--output timestamp`"},
     "let the program tell the time, or a filter behind mpiexec"},
    {"--merge-stderr",
     [](const Plan& plan) { return if_so(plan.merge_stderr); },
     {"~its stderr is its stdout", "~its stderr is its stdout", "~its stderr is its stdout",
      "~`--output merge`"}},
    {"--merge-stderr into files",
     [](const Plan& plan) { return if_so(plan.merge_stderr && writes_files(plan)); },
     {"~one file for both", "", "", "~`--output merge`"},
     "leave one of the two out"},
    {"--output-dir DIR",
     [](const Plan& plan) {
       return plan.output_directory.empty()
                  ? std::nullopt
                  : Value(doubled_per_cent(absolute(plan.output_directory)));
     },
     {"~`-o DIR/rank.%t.out -e DIR/rank.%t.err`", "",
      "-outfile-pattern @/rank.%r.out -errfile-pattern @/rank.%r.err",
      "~`--output file=DIR/rank:nocopy`"},
     other_engine},
    {"--outfile-pattern FILE",
     [](const Plan& plan) {
       return plan.output_pattern.empty() ? std::nullopt
                                          : Value(absolute_pattern(plan.output_pattern));
     },
     {"~`-o FILE`, %r as %t, %h as %N", "", "-outfile-pattern @", ""},
     other_engine},
    {"--errfile-pattern FILE",
     [](const Plan& plan) {
       return plan.errors_pattern.empty() ? std::nullopt
                                          : Value(absolute_pattern(plan.errors_pattern));
     },
     {"~`-e FILE`, %r as %t, %h as %N", "", "-errfile-pattern @", ""},
     other_engine},
    {"--stdin R",
     [](const Plan& plan) {
       return plan.stdin_rank > 0 ? Value(std::to_string(plan.stdin_rank)) : std::nullopt;
     },
     {"~`-i R`, also for rank 0", "~`--input=R`, also for rank 0", "", "--stdin @"},
     "rank 0 alone gets it; let that read, and send what it reads"},
    {"--stdin none",
     [](const Plan& plan) { return if_so(plan.stdin_rank < 0); },
     {"~/dev/null as its stdin", "~/dev/null as its stdin", "~/dev/null as its stdin",
      "--stdin none"}},
    {"--timeout S",
     [](const Plan& plan) {
       return plan.timeout_s ? Value(format("%.3f", *plan.timeout_s)) : std::nullopt;
     },
     {"~mpiexec waits, and ends it", "--time-limit=@s", "~mpiexec waits, and ends it",
      "~mpiexec waits, and ends it"}},
    {"PROGRAM : PROGRAM",
     [](const Plan& plan) { return if_so(plan.sections.size() > 1); },
     {"~`--multi-prog FILE`", "", "~`:`", "~`:`"},
     other_engine},
    {"always",
     never,
     {"~`--mpi=pmi2 --kill-on-bad-exit=1 --export=ALL -X --overlap`",
      "~`-o pmi=simple -o exit-on-error`", "~nothing", "~`--allow-run-as-root` for root"}},
};

// The words of a form, with the value in its place.
void add_words(const char* form, const std::string& value, std::vector<std::string>& words) {
  std::istringstream parts(form);
  for (std::string part; parts >> part;) {
    const size_t at = part.find('@');
    if (at != std::string::npos) part.replace(at, 1, value);
    words.push_back(part);
  }
}

std::string first_word(const std::string& text) { return text.substr(0, text.find(' ')); }

// "-envlist" of "--envlist, --envnone" and the like.
std::string option_of(const Row& row) {
  std::string name = first_word(row.name);
  while (!name.empty() && name.back() == ',') name.pop_back();
  return name[0] == '-' ? name : row.name;
}

}  // namespace

std::string absolute(const std::string& path) {
  if (path.starts_with("/")) return path;
  char* here = getcwd(nullptr, 0);
  const std::string folder = here ? here : "";
  free(here);
  return folder.empty() ? path : folder + "/" + path;
}

// A name in a pattern.
std::string doubled_per_cent(const std::string& text) {
  std::string result;
  for (const char c : text) result += c == '%' ? "%%" : std::string(1, c);
  return result;
}

std::string absolute_pattern(const std::string& pattern) {
  if (pattern.empty() || pattern.starts_with("/")) return pattern;
  return doubled_per_cent(absolute("")) + pattern;
}

std::string not_handed_over(const std::string& option, EngineKind kind, const std::string& why) {
  return format("%s is not handed over to %s, which starts the ranks on other machines: %s",
                option.c_str(), name_of(kind), why.c_str());
}

std::string translate_options(const Plan& plan, EngineKind kind, std::vector<std::string>& words) {
  for (const Row& row : table) {
    const Value value = row.value(plan);
    if (!value) continue;
    const char* form = row.forms[static_cast<size_t>(kind)];
    if (*form == '\0') return not_handed_over(option_of(row), kind, row.instead);
    if (*form != '~') add_words(form, *value, words);
  }
  return "";
}

std::string translate_peer_options(const Plan& plan, EngineKind kind,
                                   std::vector<std::string>& words) {
  const unsigned own = kind == EngineKind::hydra     ? for_hydra
                       : kind == EngineKind::prterun ? for_prterun
                                                     : 0u;
  for (const PeerOption& peer : plan.peer_options) {
    if (peer.takers & every_engine) continue;
    const std::string dashes = kind == EngineKind::hydra ? "-" : "--";
    if (!(peer.takers & own)) {
      return not_handed_over("-" + peer.name, kind,
                             "it means nothing there; leave it out, or give that launcher's own "
                             "words in HEADWAY_ENGINE_OPTIONS");
    }
    words.push_back(dashes + peer.name);
    words.insert(words.end(), peer.values.begin(), peer.values.end());
  }
  return "";
}

void print_engine_rows() {
  for (const Row& row : table) {
    const std::string name = row.name;
    const size_t blank = name.find(' ');
    const std::string stands_for = blank == std::string::npos ? "" : name.substr(blank + 1);
    printf("engine\t%s", row.name);
    for (const char* form : row.forms) {
      std::string cell = form;
      for (size_t at; (at = cell.find('@')) != std::string::npos;) cell.replace(at, 1, stands_for);
      printf("\t%s", cell.empty()     ? "refused"
                     : cell[0] == '~' ? cell.c_str() + 1
                                      : ("`" + cell + "`").c_str());
    }
    printf("\n");
  }
}

}  // namespace headway::launcher
