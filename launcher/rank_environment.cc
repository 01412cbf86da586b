#include "rank_environment.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <unistd.h>

namespace headway::launcher {
namespace {

// Left by a launcher around us, or by a library of a rank that has started us.
constexpr std::string_view foreign_names[] = {"PMI_FD",
                                              "PMI_PORT",
                                              "PMI_RANK",
                                              "PMI_SIZE",
                                              "PMI_ID",
                                              "PMI_SPAWNED",
                                              "PMI_APPNUM",
                                              "PMI_UNIVERSE_SIZE",
                                              "MPI_LOCALRANKID",
                                              "MPI_LOCALNRANKS",
                                              "HEADWAY_INSIDE",
                                              "MPIEXEC_APPNUM",
                                              "HEADWAY_SPAWN_PORT",
                                              "HEADWAY_SPAWN_JOB",
                                              "HEADWAY_PARENT_PORT"};
constexpr std::string_view foreign_prefixes[] = {"PMIX_",
                                                 "OMPI_COMM_WORLD_",
                                                 "OMPI_UNIVERSE_SIZE",
                                                 "OMPI_APP_CTX",
                                                 "OMPI_FIRST_RANKS",
                                                 "OMPI_ARGV",
                                                 "OMPI_COMMAND",
                                                 "PRTE_",
                                                 "HYDI_",
                                                 "MV2_COMM_WORLD_",
                                                 "HYDRA_PROXY",
                                                 "PALS_",
                                                 "JSM_NAMESPACE_"};

std::string_view name_of(std::string_view entry) { return entry.substr(0, entry.find('=')); }

}  // namespace

bool is_foreign(std::string_view name) {
  return std::find(std::begin(foreign_names), std::end(foreign_names), name) !=
             std::end(foreign_names) ||
         std::any_of(std::begin(foreign_prefixes), std::end(foreign_prefixes),
                     [name](std::string_view prefix) { return name.starts_with(prefix); });
}

namespace {

void remove(std::vector<std::string>& environment, std::string_view name) {
  std::erase_if(environment, [name](const std::string& entry) { return name_of(entry) == name; });
}

void set(std::vector<std::string>& environment, const std::string& name, const std::string& value) {
  remove(environment, name);
  environment.push_back(name + "=" + value);
}

bool holds(const std::vector<std::string>& environment, std::string_view name) {
  return std::any_of(environment.begin(), environment.end(),
                     [name](const std::string& entry) { return name_of(entry) == name; });
}

}  // namespace

std::vector<std::string> section_environment(const Plan& plan, const Section& section,
                                             const std::string& library_folder, int threads) {
  std::vector<std::string> environment;
  const auto is_passed = [&passed = section.passed](std::string_view name) {
    return !passed || std::find(passed->begin(), passed->end(), name) != passed->end();
  };
  for (char** entry = environ; *entry; ++entry) {
    const std::string_view name = name_of(*entry);
    if (!is_foreign(name) && is_passed(name)) environment.emplace_back(*entry);
  }
  for (const Assignment& variable : plan.environment) {
    set(environment, variable.first, variable.second);
  }
  for (const Assignment& variable : section.environment) {
    set(environment, variable.first, variable.second);
  }
  // A library of ours has started this mpiexec, for ranks that its own are the parents of.
  if (const char* port = getenv("HEADWAY_SPAWN_PORT")) {
    set(environment, "HEADWAY_PARENT_PORT", port);
  }
  constexpr std::string_view omp_threads = "OMP_NUM_THREADS";
  if (threads > 0 && !holds(environment, omp_threads)) {
    set(environment, std::string(omp_threads), std::to_string(threads));
  }
  for (const std::string& name : plan.unset) remove(environment, name);
  if (library_folder.empty()) return environment;
  // Last, so that a LD_LIBRARY_PATH given on the command line keeps its place behind ours.
  std::string path = library_folder;
  for (const std::string& entry : environment) {
    constexpr std::string_view name = "LD_LIBRARY_PATH=";
    if (entry.starts_with(name) && entry.size() > name.size()) {
      path += ":" + entry.substr(name.size());
    }
  }
  set(environment, "LD_LIBRARY_PATH", path);
  return environment;
}

void add_rank_variables(std::vector<std::string>& environment, int rank, int ranks, int pmi) {
  environment.push_back("PMI_FD=" + std::to_string(pmi));
  environment.push_back("PMI_RANK=" + std::to_string(rank));
  environment.push_back("PMI_SIZE=" + std::to_string(ranks));
  // As Hydra names them: scripts use these to pick a device or a file.
  environment.push_back("MPI_LOCALRANKID=" + std::to_string(rank));
  environment.push_back("MPI_LOCALNRANKS=" + std::to_string(ranks));
}

}  // namespace headway::launcher
