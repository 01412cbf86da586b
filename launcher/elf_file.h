// What an ELF file of this machine says to the dynamic loader: which libraries it needs, where it
// looks for them, which functions it takes and gives. Thread: none. Nothing is executed. Invariant:
// a file that is damaged, or no ELF file, gives empty answers, never a fault.
#pragma once
#include <string>
#include <vector>

namespace headway::launcher {

struct Dynamic {
  bool is_elf = false;  // 64 bits, whatever its machine
  std::string name;     // its own, DT_SONAME
  std::vector<std::string> needed;
  std::string rpath;  // only if it counts, that is, without a RUNPATH
};

struct Symbols {
  std::vector<std::string> taken;   // it does not start without them
  std::vector<std::string> wished;  // weak: it starts all the same
  std::vector<std::string> given;
};

Dynamic read_dynamic(const std::string& path);
Symbols read_symbols(const std::string& path);

// The loader that a program names; "" for a library or a static program.
std::string read_interpreter(const std::string& path);

std::string folder_of(const std::string& path);
bool same_file(const std::string& a, const std::string& b);

}  // namespace headway::launcher
