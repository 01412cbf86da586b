#include "engine.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iterator>
#include <sstream>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include "ask.h"
#include "hosts.h"
#include "say.h"

namespace headway::launcher {
namespace {

constexpr std::chrono::seconds patience{5};  // for a launcher to tell its version

// What HEADWAY_ENGINE calls them, in the order of EngineKind.
constexpr const char* short_names[engine_kinds] = {"srun", "flux", "hydra", "prterun"};

// A program on the search path, or "".
std::string on_path(const char* name) {
  const char* path = getenv("PATH");
  std::istringstream folders(path ? path : "/usr/local/bin:/usr/bin:/bin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string file = (folder.empty() ? "." : folder) + "/" + name;
    struct stat status;
    if (stat(file.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
        access(file.c_str(), X_OK) == 0) {
      return file;
    }
  }
  return "";
}

// Hydra by any of its names; another launcher of such a name does not say that it is Hydra.
std::string find_hydra() {
  for (const char* name : {"mpiexec.hydra", "mpiexec.mpich", "hydra_mpiexec"}) {
    const std::string path = on_path(name);
    if (path.empty()) continue;
    bool found = false;
    const std::string told =
        output_of({path, "--version"}, std::chrono::steady_clock::now() + patience, found);
    if (told.find("HYDRA") != std::string::npos) return path;
  }
  return "";
}

std::string find(EngineKind kind) {
  switch (kind) {
    case EngineKind::srun: return on_path("srun");
    case EngineKind::flux: return on_path("flux");
    case EngineKind::hydra: return find_hydra();
    case EngineKind::prterun: return on_path("prterun");
  }
  return "";
}

// Those that may serve a place, the first that is there is taken.
std::vector<EngineKind> candidates(Manager manager) {
  switch (manager) {
    case Manager::slurm: return {EngineKind::srun};
    case Manager::flux: return {EngineKind::flux};
    case Manager::prrte: return {EngineKind::prterun, EngineKind::hydra};
    case Manager::none:
    case Manager::other: break;
  }
  // Hydra starts in a fifth of the time, and has no library that can be of the wrong version.
  return {EngineKind::hydra, EngineKind::prterun};
}

std::string or_here(const Place& place) {
  return place.named ? ""
                     : " Or add --host localhost to start the ranks here, on " + host_name() + ".";
}

std::string none_is_there(const Place& place) {
  if (place.manager == Manager::slurm || place.manager == Manager::flux) {
    const bool slurm = place.manager == Manager::slurm;
    return format(
        "%s: ranks there are started by %s, which is not on the search path here. Put it there, or "
        "name another engine that is, as in HEADWAY_ENGINE=hydra.%s",
        place.whose.c_str(), slurm ? "srun" : "flux", or_here(place).c_str());
  }
  return format(
      "%s: ranks on other machines are started by an engine, and none is installed here. Install "
      "one, with apt install mpich, dnf install mpich or pip install mpich, on %s and on each of "
      "them, or put prterun on the search path.%s",
      place.whose.c_str(), host_name().c_str(), or_here(place).c_str());
}

}  // namespace

const char* name_of(EngineKind kind) {
  switch (kind) {
    case EngineKind::srun: return "srun";
    case EngineKind::flux: return "flux run";
    case EngineKind::hydra: return "Hydra";
    case EngineKind::prterun: return "prterun";
  }
  return "";
}

Engine choose_engine(const Place& place) {
  Engine engine;
  const char* wished = getenv("HEADWAY_ENGINE");
  if (wished && *wished) {
    const std::string wish = wished;
    const auto* const found = std::find(std::begin(short_names), std::end(short_names), wish);
    if (found == std::end(short_names)) {
      engine.explanation =
          format("HEADWAY_ENGINE=%s: srun, flux, hydra and prterun are possible", wished);
      return engine;
    }
    engine.kind = static_cast<EngineKind>(found - std::begin(short_names));
    engine.path = find(engine.kind);
    if (engine.path.empty()) {
      engine.explanation = format(
          "HEADWAY_ENGINE=%s: it is not on the search path here; put it there, or leave the "
          "variable out",
          wished);
    }
    return engine;
  }
  for (const EngineKind kind : candidates(place.manager)) {
    engine.kind = kind;
    engine.path = find(kind);
    if (!engine.path.empty()) return engine;
  }
  engine.explanation = none_is_there(place);
  return engine;
}

}  // namespace headway::launcher
