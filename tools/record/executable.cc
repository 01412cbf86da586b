#include "executable.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <elf.h>
#include <fcntl.h>
#include <iterator>
#include <string_view>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace headway::record {
namespace {

constexpr const char* calls[] = {
#include "recorder_names.inc"
};

// The file's bytes; none if it cannot be mapped.
class Mapped {
 public:
  explicit Mapped(const std::string& path) {
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    struct stat about {};
    if (fstat(file, &about) == 0 && S_ISREG(about.st_mode) && about.st_size > 0) {
      void* at = mmap(nullptr, static_cast<size_t>(about.st_size), PROT_READ, MAP_PRIVATE, file, 0);
      if (at != MAP_FAILED) {
        bytes_ = static_cast<const char*>(at);
        size_ = static_cast<size_t>(about.st_size);
      }
    }
    close(file);
  }
  ~Mapped() {
    if (bytes_ != nullptr) munmap(const_cast<char*>(bytes_), size_);
  }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;

  // What lies there, or false: it does not lie in the file.
  template <typename T>
  bool read(uint64_t at, T& to) const {
    if (at > size_ || size_ - at < sizeof to) return false;
    memcpy(&to, bytes_ + at, sizeof to);
    return true;
  }
  // As much of it as is in the file.
  std::string_view part(uint64_t at, uint64_t length) const {
    if (at > size_) return {};
    return {bytes_ + at, static_cast<size_t>(std::min<uint64_t>(length, size_ - at))};
  }

 private:
  const char* bytes_ = nullptr;
  size_t size_ = 0;
};

bool read_header(const Mapped& file, Elf64_Ehdr& head) {
  return file.read(0, head) && memcmp(head.e_ident, ELFMAG, SELFMAG) == 0 &&
         head.e_ident[EI_CLASS] == ELFCLASS64;
}

bool has_interpreter(const Mapped& file, const Elf64_Ehdr& head) {
  if (head.e_phentsize != sizeof(Elf64_Phdr)) return true;  // nobody knows
  for (unsigned i = 0; i < head.e_phnum; ++i) {
    Elf64_Phdr part;
    if (!file.read(head.e_phoff + i * sizeof part, part) || part.p_type == PT_INTERP) return true;
  }
  return false;
}

// The functions that it defines itself, of those that are called so.
template <typename Told>
void for_each_function(const Mapped& file, const Elf64_Ehdr& head, Told told) {
  if (head.e_shentsize != sizeof(Elf64_Shdr)) return;
  for (unsigned i = 0; i < head.e_shnum; ++i) {
    Elf64_Shdr table;
    Elf64_Shdr names;
    if (!file.read(head.e_shoff + i * sizeof table, table)) return;
    if ((table.sh_type != SHT_SYMTAB && table.sh_type != SHT_DYNSYM) ||
        table.sh_entsize != sizeof(Elf64_Sym) || table.sh_link >= head.e_shnum ||
        !file.read(head.e_shoff + table.sh_link * sizeof names, names)) {
      continue;
    }
    const std::string_view symbols = file.part(table.sh_offset, table.sh_size);
    const std::string_view text = file.part(names.sh_offset, names.sh_size);
    for (size_t at = 0; symbols.size() - at >= sizeof(Elf64_Sym); at += sizeof(Elf64_Sym)) {
      Elf64_Sym symbol;
      memcpy(&symbol, symbols.data() + at, sizeof symbol);
      if (symbol.st_shndx == SHN_UNDEF || ELF64_ST_TYPE(symbol.st_info) != STT_FUNC) continue;
      if (symbol.st_name >= text.size()) continue;
      const std::string_view name = text.substr(symbol.st_name);
      told(name.substr(0, name.find('\0')));
    }
  }
}

}  // namespace

Executable look_at(const std::string& path) {
  Executable found;
  const Mapped file(path);
  Elf64_Ehdr head;
  if (!read_header(file, head)) return found;
  found.is_static = head.e_phnum > 0 && !has_interpreter(file, head);
  for_each_function(file, head, [&](std::string_view name) {
    if (name == "PMPI_Init") found.has_mpi = true;
    if (!name.starts_with("MPI_")) return;
    if (std::find(std::begin(calls), std::end(calls), name) == std::end(calls)) return;
    if (std::find(found.wrapped.begin(), found.wrapped.end(), name) == found.wrapped.end())
      found.wrapped.emplace_back(name);
  });
  std::sort(found.wrapped.begin(), found.wrapped.end());
  return found;
}

std::string why_unrecorded(const std::string& path, const Executable& found, std::string& warning) {
  if (found.is_static) {
    return path +
           " is linked statically, so nothing can be preloaded: link it dynamically (without "
           "-static)";
  }
  if (found.has_mpi) {
    return path +
           " has its MPI library inside it (a static one), so nothing can stand between the two: "
           "link it with the MPI's shared library";
  }
  if (found.wrapped.empty()) return "";
  const auto has = [&](const char* name) {
    return std::find(found.wrapped.begin(), found.wrapped.end(), name) != found.wrapped.end();
  };
  const size_t others = found.wrapped.size() - 1;
  std::string what = path + " defines " + found.wrapped.front();
  if (others > 0)
    what += " and " + std::to_string(others) + (others == 1 ? " other call" : " other calls") +
            " of MPI";
  what += " itself, as a profiling library does that is linked into it";
  if (has("MPI_Init") || has("MPI_Init_thread")) {
    return what + ": its calls do not come to the recorder. Link it without that library";
  }
  warning = what + ": these are not recorded";
  return "";
}

}  // namespace headway::record
