#include "engine_environment.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <unistd.h>

namespace headway::launcher {
namespace {

constexpr const char* library_path = "LD_LIBRARY_PATH";

bool holds(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

const Assignment* find(const std::vector<Assignment>& variables, std::string_view name) {
  for (const Assignment& variable : variables) {
    if (variable.first == name) return &variable;
  }
  return nullptr;
}

void set(std::vector<Assignment>& variables, const Assignment& variable) {
  for (Assignment& known : variables) {
    if (known.first != variable.first) continue;
    known.second = variable.second;
    return;
  }
  variables.push_back(variable);
}

// All variables of one program.
std::vector<Assignment> variables_of(const Plan& plan, const Section& section,
                                     const std::string& library_folder) {
  std::vector<Assignment> variables;
  for (const Assignment& variable : plan.environment) set(variables, variable);
  for (const Assignment& variable : section.environment) set(variables, variable);
  std::erase_if(variables,
                [&](const Assignment& variable) { return holds(plan.unset, variable.first); });
  if (library_folder.empty()) return variables;
  // Before what the user set, or has here; that keeps its place behind ours.
  std::string path = library_folder, before;
  const char* here = holds(plan.unset, library_path) ? nullptr : getenv(library_path);
  const bool passed = !section.passed || holds(*section.passed, library_path);
  if (const Assignment* given = find(variables, library_path)) {
    before = given->second;
  } else if (here && passed) {
    before = here;
  }
  if (!before.empty()) path += ":" + before;
  set(variables, {library_path, path});
  return variables;
}

// Of here: what people set for the library and for what stands beside it in the ranks.
bool is_forwarded(std::string_view name) {
  if (name == "HEADWAY_INSIDE" || name.starts_with("HEADWAY_ENGINE")) return false;
  return name.starts_with("HEADWAY_") || name.starts_with("OMP_") || name == "LD_PRELOAD" ||
         name == library_path;
}

}  // namespace

EngineEnvironment environment_for(const Plan& plan, const std::string& library_folder) {
  EngineEnvironment result;
  for (const Section& section : plan.sections) {
    result.own.push_back(variables_of(plan, section, library_folder));
  }
  for (const Assignment& variable : result.own[0]) {
    const bool everywhere =
        std::all_of(result.own.begin(), result.own.end(), [&](const std::vector<Assignment>& own) {
          const Assignment* found = find(own, variable.first);
          return found && found->second == variable.second;
        });
    if (everywhere) result.common.push_back(variable);
  }
  for (std::vector<Assignment>& own : result.own) {
    std::erase_if(own, [&](const Assignment& variable) {
      return find(result.common, variable.first) != nullptr;
    });
  }
  for (const std::string& name : plan.unset) {
    // Ours is set all the same.
    if (name != library_path || library_folder.empty()) result.unset.push_back(name);
  }
  for (char** entry = environ; *entry; ++entry) {
    const std::string_view text = *entry;
    const std::string_view name = text.substr(0, text.find('='));
    if (!is_forwarded(name) || holds(plan.unset, name) || find(result.common, name)) continue;
    result.forwarded.emplace_back(name);
  }
  result.library_path_given = find(plan.environment, library_path) != nullptr;
  for (const Section& section : plan.sections) {
    result.library_path_given |= find(section.environment, library_path) != nullptr;
  }
  return result;
}

}  // namespace headway::launcher
