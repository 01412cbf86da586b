// The lines that mpiexec makes for engines: how ranks are laid out, what stands in which order, and
// what a shell makes of it. Each row of the table on each engine is tested from outside
// (cases_engines.py).
#include "engine_line.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "dialects.h"
#include "engine_environment.h"
#include "engine_layout.h"
#include "quoting.h"

namespace headway::launcher {
namespace {

using Words = std::vector<std::string>;
using Hosts = std::vector<Host>;

Plan plan_of(int ranks, Hosts hosts) {
  Plan plan;
  Section section;
  section.ranks = ranks;
  section.command = {"./a", "x y"};
  plan.sections = {section};
  plan.place.elsewhere = true;
  plan.place.named = !hosts.empty();
  plan.place.machines = hosts.empty() ? 4 : static_cast<int>(hosts.size());
  plan.place.hosts = std::move(hosts);
  plan.place.slots = 8;
  return plan;
}

EngineLine line_of(const Plan& plan, EngineKind kind, const std::string& folder = "") {
  const Engine engine{kind, "/opt/bin/engine", ""};
  Words programs;
  for (const Section& section : plan.sections) programs.push_back(section.command[0]);
  Plan placed = plan;
  if (plan.place.hosts.empty()) {
    placed.place.manager = kind == EngineKind::flux ? Manager::flux : Manager::slurm;
  }
  return make_line(placed, engine, programs, folder);
}

bool has(const Words& words, const Words& wanted) {
  return std::search(words.begin(), words.end(), wanted.begin(), wanted.end()) != words.end();
}

TEST(Layout, EqualSharesWhereNobodySaysANumber) {
  const Layout even = lay_out(plan_of(8, {{"a", 0}, {"b", 0}}));
  EXPECT_EQ(even.hosts, (Hosts{{"a", 4}, {"b", 4}}));
  const Layout odd = lay_out(plan_of(5, {{"a", 0}, {"b", 0}, {"c", 0}, {"d", 0}}));
  EXPECT_EQ(odd.hosts, (Hosts{{"a", 2}, {"b", 1}, {"c", 1}, {"d", 1}}));
  const Layout few = lay_out(plan_of(2, {{"a", 0}, {"b", 0}, {"c", 0}}));
  EXPECT_EQ(few.hosts, (Hosts{{"a", 1}, {"b", 1}}));
  EXPECT_EQ(few.machines, 2);
  EXPECT_EQ(few.most, 0);
}

TEST(Layout, NumbersFillOneMachineAfterTheOther) {
  const Layout all = lay_out(plan_of(5, {{"a", 2}, {"b", 3}}));
  EXPECT_EQ(all.hosts, (Hosts{{"a", 2}, {"b", 3}}));
  EXPECT_TRUE(all.unequal);
  const Layout one = lay_out(plan_of(3, {{"a", 4}, {"b", 4}}));
  EXPECT_EQ(one.machines, 1);
  EXPECT_FALSE(one.unequal);
  const Layout equal = lay_out(plan_of(6, {{"a", 4}, {"b", 4}}));
  EXPECT_EQ(equal.machines, 2);
  EXPECT_EQ(equal.most, 4);
  EXPECT_FALSE(equal.unequal);
}

TEST(Layout, MoreRanksThanNumbersFillThemSeveralTimes) {
  const Layout layout = lay_out(plan_of(8, {{"a", 2}, {"b", 1}}));
  EXPECT_EQ(layout.hosts, (Hosts{{"a", 6}, {"b", 3}}));
}

TEST(Layout, ALimitForEachMachine) {
  Plan plan = plan_of(5, {{"a", 0}, {"b", 9}, {"c", 0}, {"d", 0}});
  plan.per_machine = 2;
  const Layout layout = lay_out(plan);
  EXPECT_EQ(layout.hosts, (Hosts{{"a", 2}, {"b", 2}, {"c", 2}}));
  plan.per_machine = 1;
  EXPECT_EQ(lay_out(plan).refusal, "--ppn 1: 5 ranks need 5 machines then, and there are 4");
}

TEST(Layout, OfAJobWhoseMachinesTheManagerKnows) {
  Plan plan = plan_of(8, {});
  EXPECT_EQ(lay_out(plan).machines, 4);
  plan.per_machine = 4;
  EXPECT_EQ(lay_out(plan).machines, 2);
  plan.per_machine = 1;
  EXPECT_NE(lay_out(plan).refusal, "");
  EXPECT_EQ(lay_out(plan_of(3, {})).machines, 3);
}

TEST(EngineLine, SrunWhole) {
  const EngineLine line = line_of(plan_of(8, {}), EngineKind::srun);
  EXPECT_EQ(line.refusal, "");
  EXPECT_EQ(line.words, (Words{"/opt/bin/engine", "--mpi=pmi2", "--kill-on-bad-exit=1", "-X",
                               "--export=ALL", "-N", "4", "-n", "8", "-m", "block,NoPack",
                               "--overlap", "-i", "0", "./a", "x y"}));
}

TEST(EngineLine, FluxWhole) {
  const EngineLine line = line_of(plan_of(8, {}), EngineKind::flux);
  EXPECT_EQ(line.words, (Words{"/opt/bin/engine", "run", "-o", "pmi=simple", "-o", "exit-on-error",
                               "-N", "4", "-n", "8", "--input=0", "./a", "x y"}));
}

TEST(EngineLine, HydraWhole) {
  const EngineLine line = line_of(plan_of(4, {{"a", 0}, {"b", 0}}), EngineKind::hydra);
  EXPECT_EQ(line.words, (Words{"/opt/bin/engine", "-hosts", "a:2,b:2", "-n", "4", "./a", "x y"}));
}

TEST(EngineLine, PrterunWhole) {
  const Plan plan = plan_of(4, {{"a", 0}, {"b", 0}});
  Words wanted{"/opt/bin/engine"};
  if (geteuid() == 0) wanted.push_back("--allow-run-as-root");
  for (const char* word :
       {"--host", "a:2,b:2", "--bind-to", "none", "--map-by", ":oversubscribe", "-n", "4"}) {
    wanted.push_back(word);
  }
  for (const std::string& name : environment_for(plan, "").forwarded) {
    wanted.insert(wanted.end(), {"-x", name});
  }
  wanted.insert(wanted.end(), {"./a", "x y"});
  EXPECT_EQ(line_of(plan, EngineKind::prterun).words, wanted);
}

// prterun that lies elsewhere than where it was built for tells its place, through a link too.
TEST(EngineLine, WhereThePartsOfPrterunLie) {
  namespace files = std::filesystem;
  char folder[] = "/tmp/engine-line-XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  const files::path prefix = files::canonical(folder);
  files::create_directory(prefix / "bin");
  for (const char* name : {"prte", "prted"}) {
    std::ofstream(prefix / "bin" / name) << "#!/bin/sh\n";
    files::permissions(prefix / "bin" / name, files::perms::owner_all);
  }
  files::create_symlink("prte", prefix / "bin" / "prterun");
  files::create_symlink(prefix / "bin" / "prterun", prefix / "elsewhere");
  Plan plan = plan_of(2, {{"a", 0}, {"b", 0}});
  const auto words_of = [&](const files::path& path) {
    return make_line(plan, {EngineKind::prterun, path.string(), ""}, {"./a"}, "").words;
  };
  EXPECT_TRUE(has(words_of(prefix / "bin" / "prterun"), {"--prefix", prefix.string()}));
  EXPECT_TRUE(has(words_of(prefix / "elsewhere"), {"--prefix", prefix.string()}));
  setenv("HEADWAY_ENGINE_OPTIONS", "--noprefix", 1);
  EXPECT_FALSE(has(words_of(prefix / "elsewhere"), {"--prefix"}));
  unsetenv("HEADWAY_ENGINE_OPTIONS");
  plan.peer_options = {{"prefix", {"/mine"}, for_prterun}};
  EXPECT_FALSE(has(words_of(prefix / "elsewhere"), {"--prefix", prefix.string()}));
  plan.peer_options.clear();
  files::remove(prefix / "bin" / "prted");
  EXPECT_FALSE(has(words_of(prefix / "bin" / "prterun"), {"--prefix"}));
  files::remove_all(prefix);
}

// With -n and -N told, srun would only complain about it.
TEST(EngineLine, TheNumberThatSlurmsJobWasMadeWithIsDropped) {
  EXPECT_TRUE(line_of(plan_of(8, {}), EngineKind::srun).dropped.empty());
  setenv("SLURM_NTASKS_PER_NODE", "4", 1);
  const EngineLine line = line_of(plan_of(8, {}), EngineKind::srun);
  unsetenv("SLURM_NTASKS_PER_NODE");
  EXPECT_EQ(line.dropped, (Words{"SLURM_NTASKS_PER_NODE"}));
  EXPECT_TRUE(as_shell_text(line).starts_with("env -u SLURM_NTASKS_PER_NODE /opt/bin/engine "));
}

TEST(EngineLine, OurLibraryComesBeforeTheUsersFolders) {
  setenv("LD_LIBRARY_PATH", "/mine", 1);
  Plan plan = plan_of(2, {{"a", 0}, {"b", 0}});
  const Assignment both{"LD_LIBRARY_PATH", "/ours:/mine"};
  EXPECT_EQ(line_of(plan, EngineKind::srun, "/ours").environment, (std::vector<Assignment>{both}));
  EXPECT_TRUE(has(line_of(plan, EngineKind::hydra, "/ours").words,
                  {"-genv", "LD_LIBRARY_PATH", "/ours:/mine"}));
  EXPECT_TRUE(has(line_of(plan, EngineKind::prterun, "/ours").words,
                  {"-x", "LD_LIBRARY_PATH=/ours:/mine"}));
  EXPECT_TRUE(has(line_of(plan, EngineKind::prterun).words, {"-x", "LD_LIBRARY_PATH"}));
  plan.sections[0].environment = {{"LD_LIBRARY_PATH", "/given"}};
  EXPECT_TRUE(has(line_of(plan, EngineKind::prterun, "/ours").words,
                  {"-x", "LD_LIBRARY_PATH=/ours:/given"}));
  plan.sections[0].environment.clear();
  plan.unset = {"LD_LIBRARY_PATH"};
  const EngineLine unset = line_of(plan, EngineKind::hydra, "/ours");
  EXPECT_TRUE(has(unset.words, {"-genv", "LD_LIBRARY_PATH", "/ours"}));
  EXPECT_FALSE(has(unset.words, {"-u", "LD_LIBRARY_PATH"}));
  unsetenv("LD_LIBRARY_PATH");
}

TEST(EngineLine, WhatIsSetForTheLibraryHereIsPassedOnByName) {
  setenv("HEADWAY_PROGRESS", "off", 1);
  setenv("HEADWAY_ENGINE", "prterun", 1);
  Plan plan = plan_of(2, {{"a", 0}, {"b", 0}});
  const Words words = line_of(plan, EngineKind::prterun).words;
  EXPECT_TRUE(has(words, {"-x", "HEADWAY_PROGRESS"}));
  EXPECT_FALSE(has(words, {"-x", "HEADWAY_ENGINE"}));
  plan.environment = {{"HEADWAY_PROGRESS", "on"}};
  const Words given = line_of(plan, EngineKind::prterun).words;
  EXPECT_TRUE(has(given, {"-x", "HEADWAY_PROGRESS=on"}));
  EXPECT_FALSE(has(given, {"-x", "HEADWAY_PROGRESS"}));
  unsetenv("HEADWAY_PROGRESS");
  unsetenv("HEADWAY_ENGINE");
}

Plan two_programs() {
  Plan plan = plan_of(1, {{"a", 0}, {"b", 0}});
  Section second;
  second.ranks = 3;
  second.command = {"./b", "it's", "100%"};
  second.environment = {{"T_B", "2"}};
  second.directory = "/data";
  plan.sections.push_back(second);
  plan.environment = {{"T_A", "1,2"}};
  plan.unset = {"T_GONE"};
  return plan;
}

TEST(EngineLine, SeveralProgramsOfSrunStandInAFile) {
  const EngineLine line = line_of(two_programs(), EngineKind::srun);
  EXPECT_EQ(line.refusal, "");
  EXPECT_EQ(line.file,
            "0 /usr/bin/env -u T_GONE MPIEXEC_APPNUM=0 ./a 'x y'\n"
            "1-3 /usr/bin/env -u T_GONE --chdir=/data MPIEXEC_APPNUM=1 T_B=2 ./b 'it'\\''s' "
            "'100%'\n");
  EXPECT_TRUE(has(line.words, {"--multi-prog", "FILE"}));
  ASSERT_LT(line.file_at, line.words.size());
  EXPECT_EQ(line.words[line.file_at], "FILE");
  EXPECT_EQ(line.file_at + 1, line.words.size());
  EXPECT_EQ(line.environment, (std::vector<Assignment>{{"T_A", "1,2"}}));
  Plan plan = two_programs();
  plan.sections[1].command[1] = "two\nlines";
  EXPECT_NE(line_of(plan, EngineKind::srun).refusal.find("a line's end"), std::string::npos);
}

TEST(EngineLine, SeveralProgramsOfOthers) {
  const EngineLine hydra = line_of(two_programs(), EngineKind::hydra);
  EXPECT_TRUE(
      has(hydra.words,
          {"-genv",        "T_A", "1,2",    "-n",  "1",    "/usr/bin/env", "-u", "T_GONE", "./a",
           "x y",          ":",   "-n",     "3",   "-env", "T_B",          "2",  "-wdir",  "/data",
           "/usr/bin/env", "-u",  "T_GONE", "./b", "it's", "100%"}));
  const EngineLine prterun = line_of(two_programs(), EngineKind::prterun);
  EXPECT_TRUE(
      has(prterun.words, {"-x", "T_A=1,2", "/usr/bin/env", "-u", "T_GONE", "./a", "x y", ":"}));
  EXPECT_TRUE(has(prterun.words, {"-x", "T_A=1,2", "-x", "T_B=2", "--wdir", "/data"}));
  EXPECT_NE(line_of(two_programs(), EngineKind::flux).refusal.find("PROGRAM : PROGRAM"),
            std::string::npos);
}

TEST(EngineLine, FilesOfSrun) {
  Plan plan = plan_of(2, {});
  plan.output_pattern = "/o/%r.%h.%%";
  EXPECT_TRUE(has(line_of(plan, EngineKind::srun).words, {"-o", "/o/%t.%N.%%", "-e", "all"}));
  plan.errors_pattern = "/e/%r";
  EXPECT_TRUE(has(line_of(plan, EngineKind::srun).words, {"-e", "/e/%t"}));
  plan.merge_stderr = true;
  EXPECT_FALSE(has(line_of(plan, EngineKind::srun).words, {"-e"}));
  Plan folder = plan_of(2, {});
  folder.output_directory = "/50%";
  EXPECT_TRUE(has(line_of(folder, EngineKind::srun).words,
                  {"-o", "/50%%/rank.%t.out", "-e", "/50%%/rank.%t.err"}));
}

TEST(EngineLine, FluxWantsTheSameNumberEverywhere) {
  Plan plan = plan_of(8, {});
  plan.per_machine = 2;
  const EngineLine line = line_of(plan, EngineKind::flux);
  EXPECT_TRUE(has(line.words, {"-N", "4", "--tasks-per-node=2"}));
  EXPECT_FALSE(has(line.words, {"-n"}));
  plan.per_machine = 3;
  EXPECT_NE(line_of(plan, EngineKind::flux).refusal.find("--ppn is not handed over to flux run"),
            std::string::npos);
}

TEST(EngineLine, UnequalNumbersAreRefusedWhereTheyCannotBeTold) {
  const Plan plan = plan_of(3, {{"a", 2}, {"b", 1}});
  EXPECT_NE(line_of(plan, EngineKind::flux).refusal.find("--hosts with different numbers"),
            std::string::npos);
  EXPECT_TRUE(has(line_of(plan, EngineKind::srun).words,
                  {"-w", "a,a,b", "-m", "arbitrary", "-N", "2", "-n", "3"}));
  EXPECT_TRUE(has(line_of(plan, EngineKind::hydra).words, {"-hosts", "a:2,b:1"}));
  EXPECT_TRUE(has(line_of(plan, EngineKind::prterun).words, {"--host", "a:2,b:1"}));
}

TEST(EngineLine, AddressesWithColonsAreRefused) {
  const Plan plan = plan_of(2, {{"fe80::2", 0}, {"b", 0}});
  for (const EngineKind kind :
       {EngineKind::srun, EngineKind::flux, EngineKind::hydra, EngineKind::prterun}) {
    EXPECT_TRUE(line_of(plan, kind).refusal.starts_with("host fe80::2: ")) << name_of(kind);
  }
}

// An engine that is named, and knows nothing of the machines, would start all ranks here.
TEST(EngineLine, AnotherManagersMachinesAreNotThisMachine) {
  Plan plan = plan_of(8, {});
  plan.place.whose = "this Flux job has 4 machines";
  plan.place.manager = Manager::flux;
  for (const EngineKind kind : {EngineKind::srun, EngineKind::hydra, EngineKind::prterun}) {
    const EngineLine line = make_line(plan, {kind, "/opt/bin/engine", ""}, {"./a"}, "");
    EXPECT_TRUE(line.refusal.starts_with("this Flux job has 4 machines, which ")) << name_of(kind);
  }
  plan.place.manager = Manager::slurm;
  EXPECT_EQ(make_line(plan, {EngineKind::hydra, "/opt/bin/engine", ""}, {"./a"}, "").refusal, "");
}

TEST(EngineLine, ManyWordsOfAProgram) {
  Plan plan = two_programs();
  for (int i = 0; i < 200; ++i) plan.sections[0].command.push_back(std::to_string(i));
  const std::string text = line_of(plan, EngineKind::srun).file;
  EXPECT_TRUE(text.starts_with("0 /bin/sh -c 'exec /usr/bin/env -u T_GONE MPIEXEC_APPNUM=0 ./a "));
  EXPECT_NE(text.find(" 198 199'\n"), std::string::npos);
  for (int i = 0; i < 800; ++i) plan.sections[0].command.push_back("x");
  EXPECT_NE(line_of(plan, EngineKind::hydra).refusal.find("it has room for 990"),
            std::string::npos);
}

TEST(EngineLine, ManyMachinesOfHydraStandInAFile) {
  Hosts hosts;
  for (int i = 0; i < 1500; ++i) hosts.push_back({"n" + std::to_string(i), 2});
  const EngineLine line = line_of(plan_of(3000, hosts), EngineKind::hydra);
  EXPECT_EQ(line.words[line.file_at - 1], "-f");
  EXPECT_TRUE(line.file.starts_with("n0:2\nn1:2\n"));
  EXPECT_TRUE(line.file.ends_with("\nn1499:2\n"));
}

// A tool of the ranks that is preloaded must not run in srun; Flux is a program of Python's.
TEST(EngineLine, WhatChangesTheEngineStandsBeforeTheProgram) {
  Plan plan = plan_of(8, {});
  plan.environment = {{"LD_PRELOAD", "/tool.so"}, {"PYTHONPATH", "/mine"}, {"T_A", "1"}};
  EngineLine line = line_of(plan, EngineKind::srun, "/ours");
  EXPECT_TRUE(has(line.words, {"/usr/bin/env", "LD_PRELOAD=/tool.so", "./a"}));
  EXPECT_EQ(line.environment.size(), 3u);
  line = line_of(plan, EngineKind::flux);
  EXPECT_TRUE(has(line.words, {"/usr/bin/env", "LD_PRELOAD=/tool.so", "PYTHONPATH=/mine", "./a"}));
  plan.environment = {{"LD_LIBRARY_PATH", "/theirs"}};
  EXPECT_TRUE(has(line_of(plan, EngineKind::srun, "/ours").words,
                  {"/usr/bin/env", "LD_LIBRARY_PATH=/ours:/theirs", "./a"}));
}

TEST(EngineLine, CoresOfARankUnderSrun) {
  setenv("SLURM_CPUS_PER_TASK", "4", 1);
  Plan plan = plan_of(8, {});
  EXPECT_TRUE(has(line_of(plan, EngineKind::srun).words, {"--overlap", "-c", "4"}));
  plan.per_machine = 8;
  EXPECT_TRUE(has(line_of(plan, EngineKind::srun).words, {"--overlap", "--overcommit"}));
  EXPECT_FALSE(has(line_of(plan, EngineKind::srun).words, {"-c"}));
  setenv("HEADWAY_ENGINE_OPTIONS", "-c2 -m cyclic", 1);
  EXPECT_FALSE(has(line_of(plan_of(8, {}), EngineKind::srun).words, {"-c"}));
  EXPECT_FALSE(has(line_of(plan_of(8, {}), EngineKind::srun).words, {"block,NoPack"}));
  unsetenv("HEADWAY_ENGINE_OPTIONS");
  unsetenv("SLURM_CPUS_PER_TASK");
}

// Each program gets what is set here, but where it has a value of its own.
TEST(EngineLine, VariablesOfHereForEachProgramOfPrterun) {
  setenv("OMP_NUM_THREADS", "8", 1);
  Plan plan = two_programs();
  plan.place.hosts = {{"a", 0}, {"b", 0}};
  plan.sections[1].environment.push_back({"OMP_NUM_THREADS", "2"});
  const Words words = line_of(plan, EngineKind::prterun).words;
  unsetenv("OMP_NUM_THREADS");
  const auto colon = std::find(words.begin(), words.end(), ":");
  EXPECT_TRUE(has(Words(words.begin(), colon), {"-x", "OMP_NUM_THREADS"}));
  EXPECT_FALSE(has(Words(colon, words.end()), {"-x", "OMP_NUM_THREADS"}));
  EXPECT_TRUE(has(Words(colon, words.end()), {"-x", "OMP_NUM_THREADS=2"}));
}

TEST(EngineLine, WordsOfTheUsersOwn) {
  setenv("HEADWAY_ENGINE_OPTIONS", "-launcher ssh 'a b'", 1);
  const Plan plan = plan_of(2, {{"a", 0}, {"b", 0}});
  EXPECT_TRUE(has(line_of(plan, EngineKind::hydra).words,
                  {"-hosts", "a:1,b:1", "-launcher", "ssh", "a b", "-n", "2"}));
  setenv("HEADWAY_ENGINE_OPTIONS", "'open", 1);
  EXPECT_NE(line_of(plan, EngineKind::hydra).refusal.find("a quote is not closed"),
            std::string::npos);
  unsetenv("HEADWAY_ENGINE_OPTIONS");
}

TEST(EngineLine, AsAShellTakesIt) {
  EngineLine line;
  line.words = {"srun", "--multi-prog", "FILE"};
  line.file_at = 2;
  line.file = "0 ./a\n1-3 ./b 'x y'\n";
  line.environment = {{"T_A", "1 2"}};
  line.no_input = line.merged = true;
  EXPECT_EQ(as_shell_text(line),
            "T_A='1 2' srun --multi-prog FILE </dev/null 2>&1\n"
            "# FILE holds:\n# 0 ./a\n# 1-3 ./b 'x y'");
}

TEST(Quoting, OfAShellAndOfSrun) {
  EXPECT_EQ(quoted(std::string("a-b_c.d/e=f:g,h+i@j%k")), "a-b_c.d/e=f:g,h+i@j%k");
  EXPECT_EQ(quoted(std::string()), "''");
  EXPECT_EQ(quoted(std::string("it's")), "'it'\\''s'");
  EXPECT_EQ(quoted(Words{"a", "b c"}), "a 'b c'");
  EXPECT_EQ(quoted_for_srun("%t"), "'%t'");
}

}  // namespace
}  // namespace headway::launcher
