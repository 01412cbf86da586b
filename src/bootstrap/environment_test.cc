// What the variables of launchers are taken for.
#include "bootstrap/environment.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

namespace headway::bootstrap {
namespace {

class Variables : public testing::Test {
 protected:
  void SetUp() override {
    std::vector<std::string> names;
    for (char** entry = environ; *entry; ++entry) {
      const std::string text = *entry;
      for (const char* prefix :
           {"PMI", "OMPI_", "SLURM_", "FLUX_", "MV2_", "JSM_", "PALS_", "HEADWAY_INSIDE"}) {
        if (text.starts_with(prefix)) names.push_back(text.substr(0, text.find('=')));
      }
    }
    for (const std::string& name : names) unsetenv(name.c_str());
  }
  void TearDown() override { SetUp(); }

  static Environment with(std::vector<std::pair<const char*, const char*>> variables) {
    for (const auto& [name, value] : variables) setenv(name, value, 1);
    return read_environment();
  }
};

TEST_F(Variables, NothingIsASingleton) { EXPECT_EQ(with({}).seen, Seen::nothing); }

TEST_F(Variables, AnOpenDescriptorIsPmi) {
  const Environment e = with({{"PMI_FD", "1"}, {"PMI_RANK", "2"}, {"PMI_SIZE", "3"}});
  EXPECT_EQ(e.seen, Seen::pmi_fd);
  EXPECT_EQ(e.fd, 1);
  EXPECT_EQ(e.rank, 2);
  EXPECT_EQ(e.size, 3);
}

TEST_F(Variables, AClosedDescriptorIsNoSingleton) {
  EXPECT_EQ(with({{"PMI_FD", "987"}, {"PMI_RANK", "0"}, {"PMI_SIZE", "2"}}).seen,
            Seen::unspeakable);
  EXPECT_EQ(with({{"PMI_SIZE", "1"}}).seen, Seen::nothing) << "alone either way";
}

TEST_F(Variables, NonsenseIsNoSingleton) {
  for (const char* text : {"-1", "x", "1x", "99999999999"}) {
    EXPECT_EQ(with({{"PMI_FD", text}, {"PMI_RANK", "0"}, {"PMI_SIZE", "2"}}).seen,
              Seen::unspeakable)
        << text;
  }
  EXPECT_EQ(with({{"PMI_FD", "1"}, {"PMI_RANK", "2"}, {"PMI_SIZE", "2"}}).seen, Seen::unspeakable);
}

TEST_F(Variables, PortsNeedAnId) {
  EXPECT_EQ(with({{"PMI_PORT", "host:1"}}).seen, Seen::unspeakable);
  const Environment e = with({{"PMI_ID", "5"}});
  EXPECT_EQ(e.seen, Seen::pmi_port);
  EXPECT_STREQ(e.port, "host:1");
  EXPECT_EQ(e.rank, 5);
}

TEST_F(Variables, PmixIsSeenWithItsLauncher) {
  Environment e = with({{"PMIX_NAMESPACE", "n"}, {"PMIX_RANK", "0"}});
  EXPECT_EQ(e.seen, Seen::pmix);
  EXPECT_EQ(e.size, -1);
  e = with({{"OMPI_COMM_WORLD_SIZE", "4"}});
  EXPECT_EQ(e.size, 4);
  EXPECT_NE(std::string(e.name).find("Open MPI"), std::string::npos);
}

TEST_F(Variables, ForeignJobsOfOneAreSingletons) {
  EXPECT_EQ(with({{"SLURM_STEP_ID", "0"}}).seen, Seen::nothing) << "a shell in an allocation";
  EXPECT_EQ(with({{"SLURM_STEP_NUM_TASKS", "1"}}).seen, Seen::nothing);
  const Environment e = with({{"SLURM_STEP_NUM_TASKS", "8"}});
  EXPECT_EQ(e.seen, Seen::unspeakable);
  EXPECT_NE(std::string(e.remedy).find("srun --mpi="), std::string::npos);
}

TEST_F(Variables, ProgramsThatARankStartsAreAlone) {
  for (const auto& [name, value] :
       std::vector<std::pair<const char*, const char*>>{{"PMI_FD", "1"},
                                                        {"PMI_RANK", "0"},
                                                        {"PMI_SIZE", "4"},
                                                        {"OMPI_COMM_WORLD_RANK", "0"},
                                                        {"OMPI_COMM_WORLD_SIZE", "4"},
                                                        {"PMIX_NAMESPACE", "n"},
                                                        {"PMIX_RANK", "0"}}) {
    setenv(name, value, 1);
  }
  mark_environment_used();
  EXPECT_EQ(read_environment().seen, Seen::nothing);
  EXPECT_EQ(with({{"PMI_FD", "1"}}).seen, Seen::pmi_fd) << "unless a launcher sets them anew";
}

TEST_F(Variables, ProgramsOfALauncherThatARankStartsAreNotAlone) {
  setenv("SLURM_STEP_ID", "0", 1);
  setenv("SLURM_STEP_NUM_TASKS", "2", 1);
  setenv("PMI_FD", "1", 1);
  mark_environment_used();
  EXPECT_EQ(read_environment().seen, Seen::nothing) << "system(\"./prog\")";
  EXPECT_EQ(with({{"SLURM_STEP_ID", "1"}, {"SLURM_STEP_NUM_TASKS", "8"}}).seen, Seen::unspeakable)
      << "system(\"srun --mpi=none -n 8 ./prog\")";
  EXPECT_EQ(with({{"SLURM_STEP_NUM_TASKS", "1"}}).seen, Seen::nothing);
}

}  // namespace
}  // namespace headway::bootstrap
