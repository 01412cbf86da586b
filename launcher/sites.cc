#include "sites.h"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdlib>
#include <elf.h>
#include <fcntl.h>
#include <fstream>
#include <map>
#include <sstream>
#include <unistd.h>

#include "ask.h"
#include "say.h"

namespace headway::launcher {
namespace {

constexpr int most_parts = 256;      // of a file in memory
constexpr size_t most_offsets = 64;  // whose lines are asked for
constexpr size_t longest_name = 60;  // of a function

using Clock = std::chrono::steady_clock;

std::string last_part(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// The parts of an ELF file that are loaded; none of what is no such file.
std::vector<Elf64_Phdr> parts_of(const std::string& path) {
  std::vector<Elf64_Phdr> parts;
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return parts;
  Elf64_Ehdr head;
  if (pread(fd, &head, sizeof head, 0) == ssize_t(sizeof head) &&
      std::equal(head.e_ident, head.e_ident + SELFMAG, ELFMAG) &&
      head.e_ident[EI_CLASS] == ELFCLASS64 && head.e_phentsize == sizeof(Elf64_Phdr) &&
      head.e_phnum <= most_parts && head.e_phoff <= INT64_MAX) {
    parts.resize(head.e_phnum);
    const size_t bytes = parts.size() * sizeof(Elf64_Phdr);
    if (pread(fd, parts.data(), bytes, off_t(head.e_phoff)) != ssize_t(bytes)) parts.clear();
  }
  close(fd);
  std::erase_if(parts, [](const Elf64_Phdr& part) { return part.p_type != PT_LOAD; });
  return parts;
}

using Files = std::map<std::string, std::vector<Elf64_Phdr>>;  // that were looked at

// What a debugger would call this place of the file.
uint64_t offset_in(const std::vector<Elf64_Phdr>& parts, uint64_t in_file) {
  for (const Elf64_Phdr& part : parts) {
    if (in_file >= part.p_offset && in_file - part.p_offset < part.p_filesz)
      return in_file - part.p_offset + part.p_vaddr;
  }
  return in_file;
}

void find_in(const std::string& maps, Files& files, Site& site) {
  std::istringstream lines(maps);
  for (std::string line; std::getline(lines, line);) {
    unsigned long long from = 0, to = 0, offset = 0;
    int path = 0;
    if (sscanf(line.c_str(), "%llx-%llx %*s %llx %*s %*s %n", &from, &to, &offset, &path) != 3 ||
        site.address < from || site.address >= to) {
      continue;
    }
    const std::string file =
        path > 0 && size_t(path) < line.size() ? line.substr(size_t(path)) : "";
    if (!file.starts_with('/') || file.ends_with(" (deleted)")) return;
    auto known = files.find(file);
    if (known == files.end()) known = files.emplace(file, parts_of(file)).first;
    site.module = file;
    site.offset = offset_in(known->second, site.address - from + offset);
    return;
  }
}

// "main" and "/home/me/ring.c:14 (discriminator 2)", as the readers of lines print them.
std::string line_of(const std::string& function, const std::string& place, const Site& site) {
  const std::string file = place.substr(0, place.rfind(" ("));
  const size_t colon = file.rfind(':');
  const std::string number = colon == std::string::npos ? "" : file.substr(colon + 1);
  const bool known =
      !number.empty() && number != "0" && !file.starts_with('?') &&
      std::all_of(number.begin(), number.end(), [](unsigned char c) { return isdigit(c); });
  std::string text = known ? last_part(file) : "";
  if (!known && !function.empty() && !function.starts_with('?')) {
    text =
        function.substr(0, longest_name) + " (" + text_of({0, site.module, site.offset, ""}) + ")";
  }
  std::erase_if(text, [](unsigned char c) { return !isprint(c); });
  return text;
}

using Offsets = std::map<uint64_t, std::string>;  // and their lines

// Asks for all offsets of one file in a go. One byte before: behind the call may be another line.
void ask_lines(const std::string& module, Offsets& offsets, Clock::time_point end) {
  std::vector<std::string> words = {"", "-C", "-f", "-e", module};
  for (const auto& [offset, line] : offsets)
    words.push_back(format("0x%llx", (unsigned long long)offset - 1));
  for (const char* reader : {"addr2line", "eu-addr2line", "llvm-addr2line"}) {
    words[0] = reader;
    bool found = false;
    std::istringstream told(output_of(words, end, found));
    if (!found) continue;
    std::string function, place;
    for (auto& [offset, line] : offsets) {
      if (!std::getline(told, function) || !std::getline(told, place)) return;
      line = line_of(function, place, {0, module, offset, ""});
    }
    return;
  }
}

template <class Visit>
void each_site(std::vector<Seen>& ranks, Visit&& visit) {
  for (Seen& seen : ranks) {
    for (Site* site : {&seen.spot.site, &seen.spot.unmatched.site}) visit(seen, *site);
  }
}

}  // namespace

std::string text_of(const Site& site) {
  if (!site.line.empty() || site.module.empty()) return site.line;
  return format("%s+0x%llx", last_part(site.module).c_str(), (unsigned long long)site.offset);
}

void find_sites(std::vector<Seen>& ranks) {
  Files files;
  std::string maps;
  pid_t read_of = -1;
  each_site(ranks, [&](const Seen& seen, Site& site) {
    if (site.address == 0 || !site.module.empty()) return;
    if (read_of != seen.pid) {
      read_of = seen.pid;
      std::ostringstream text;
      text << std::ifstream(format("/proc/%d/maps", seen.pid)).rdbuf();
      maps = text.str();
    }
    find_in(maps, files, site);
  });
}

void name_sites(std::vector<Seen>& ranks, int patience_ms) {
  const Clock::time_point end = Clock::now() + std::chrono::milliseconds(patience_ms);
  find_sites(ranks);
  std::map<std::string, Offsets> modules;
  size_t count = 0;
  each_site(ranks, [&](const Seen&, Site& site) {
    if (site.module.empty() || site.offset == 0) return;
    if (count == most_offsets) return;
    if (modules[site.module].emplace(site.offset, "").second) ++count;
  });
  for (auto& [module, offsets] : modules) {
    if (Clock::now() >= end) break;
    ask_lines(module, offsets, end);
  }
  each_site(ranks, [&](const Seen&, Site& site) {
    const auto module = modules.find(site.module);
    if (module == modules.end()) return;
    const auto found = module->second.find(site.offset);
    if (found != module->second.end()) site.line = found->second;
  });
}

}  // namespace headway::launcher
