#include "program.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <sstream>
#include <sys/stat.h>
#include <unistd.h>

#include "elf_file.h"
#include "say.h"

#ifndef HEADWAY_LIBRARY_FROM_BIN
#define HEADWAY_LIBRARY_FROM_BIN "../lib"
#endif

namespace headway::launcher {
namespace {

constexpr const char* library_name = "libmpi_abi.so.1";

bool is_regular(const std::string& path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

std::string in_directory(const Section& section, const std::string& path) {
  if (section.directory.empty() || path.starts_with("/")) return path;
  return section.directory + "/" + path;
}

// The value of PATH that the ranks will have.
std::string search_path(const Section& section) {
  for (const Assignment& variable : section.environment) {
    if (variable.first == "PATH") return variable.second;
  }
  const char* path = getenv("PATH");
  return path ? path : "/usr/local/bin:/usr/bin:/bin";
}

// Programs of that folder with nearly that name: "; did you mean ./hello?", or "".
std::string near_programs(const std::string& folder, const std::string& prefix,
                          const std::string& name) {
  NearNames near(name);
  DIR* list = opendir(folder.empty() ? "." : folder.c_str());
  if (!list) return "";
  while (const dirent* entry = readdir(list)) {
    const std::string path = (folder.empty() ? "." : folder) + "/" + entry->d_name;
    if (is_regular(path) && access(path.c_str(), X_OK) == 0) near.offer(entry->d_name);
  }
  closedir(list);
  return near.question(prefix);
}

constexpr const char* not_there_hint =
    " Likely cause: a mistyped name, another folder, or a program that is not built yet.";

Program judge(const Section& section, const std::string& path) {
  Program program;
  program.path = path;
  const std::string seen = in_directory(section, path);
  struct stat status;
  if (stat(seen.c_str(), &status) != 0) {
    program.exit_code = errno == ENOENT || errno == ENOTDIR ? exit_not_found : exit_cannot_execute;
    const size_t slash = path.rfind('/');
    const std::string prefix = slash == std::string::npos ? "" : path.substr(0, slash + 1);
    const std::string question =
        near_programs(in_directory(section, prefix), prefix, path.substr(prefix.size()));
    program.explanation = program.exit_code == exit_not_found
                              ? format("there is no program %s%s%s", seen.c_str(),
                                       question.empty() ? "." : question.c_str(), not_there_hint)
                              : format("cannot look at %s: %s", seen.c_str(), strerror(errno));
  } else if (S_ISDIR(status.st_mode)) {
    program.exit_code = exit_cannot_execute;
    program.explanation = format("%s is a folder, not a program", seen.c_str());
  } else if (access(seen.c_str(), X_OK) != 0) {
    program.exit_code = exit_cannot_execute;
    program.explanation =
        format("%s is not executable (chmod +x %s makes it so)", seen.c_str(), seen.c_str());
  }
  return program;
}

std::string expand_origin(std::string text, const std::string& program) {
  for (const char* name : {"${ORIGIN}", "$ORIGIN"}) {
    for (size_t at; (at = text.find(name)) != std::string::npos;) {
      text.replace(at, strlen(name), folder_of(program));
    }
  }
  return text;
}

}  // namespace

Program find_program(const Section& section) {
  const std::string& name = section.command[0];
  if (name.find('/') != std::string::npos) return judge(section, name);
  std::istringstream folders((section.path.empty() ? "" : section.path + ":") +
                             search_path(section));
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string path = (folder.empty() ? "." : folder) + "/" + name;
    const std::string seen = in_directory(section, path);
    if (is_regular(seen) && access(seen.c_str(), X_OK) == 0) return judge(section, path);
  }
  // As the common launchers do: a program in the current folder needs no "./".
  if (is_regular(in_directory(section, name))) return judge(section, "./" + name);
  Program program;
  program.exit_code = exit_not_found;
  program.explanation =
      format("there is no program %s, neither %son the PATH nor in %s", name.c_str(),
             section.path.empty() ? "" : ("in " + section.path + ", ").c_str(),
             section.directory.empty() ? "this folder" : section.directory.c_str());
  const std::string question = near_programs(section.directory, "./", name);
  program.explanation += (question.empty() ? "." : question) + not_there_hint;
  return program;
}

std::string library_folder() {
  char self[4096];
  const ssize_t size = readlink("/proc/self/exe", self, sizeof self - 1);
  if (size <= 0) return "";
  self[size] = '\0';
  const std::string bin = folder_of(self);
  for (const char* relative : {HEADWAY_LIBRARY_FROM_BIN, "../lib", "../lib64"}) {
    const std::string folder = bin + "/" + relative;
    if (access((folder + "/" + library_name).c_str(), R_OK) != 0) continue;
    char* real = realpath(folder.c_str(), nullptr);
    const std::string result = real ? real : folder;
    free(real);
    return result;
  }
  return "";
}

std::string library_warning(const std::string& program, const std::string& our_folder) {
  const Dynamic dynamic = read_dynamic(program);
  for (const std::string& name : dynamic.needed) {
    if (name == "libmpi.so.40") {
      return format(
          "%s was built for Open MPI (it needs libmpi.so.40) and will run as ranks that "
          "do not know of each other; build it with Headway's mpicc",
          program.c_str());
    }
  }
  std::istringstream folders(expand_origin(dynamic.rpath, program));
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string other = folder + "/" + library_name;
    if (access(other.c_str(), R_OK) != 0) continue;
    if (same_file(other, our_folder + "/" + library_name)) return "";
    return format(
        "%s has an RPATH, which is stronger than mpiexec, and loads %s instead of "
        "Headway's library; relink it with -Wl,--enable-new-dtags, or pass --library "
        "program if that is what you want",
        program.c_str(), other.c_str());
  }
  return "";
}

}  // namespace headway::launcher
