#include "elf_file.h"

#include <cstdint>
#include <cstring>
#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace headway::launcher {
namespace {

// A file mapped for reading; empty if that is not possible.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path) {
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    struct stat status;
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0) {
      size_ = static_cast<size_t>(status.st_size);
      void* start = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd, 0);
      data_ = start == MAP_FAILED ? nullptr : static_cast<const char*>(start);
    }
    close(fd);
  }
  ~MappedFile() {
    if (data_) munmap(const_cast<char*>(data_), size_);
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  template <typename T>
  const T* at(uint64_t offset, uint64_t count = 1) const {
    if (!data_ || offset > size_ || count > (size_ - offset) / sizeof(T)) return nullptr;
    if (offset % alignof(T) != 0) return nullptr;
    return reinterpret_cast<const T*>(data_ + offset);
  }
  std::string text_at(uint64_t offset) const {
    if (!data_ || offset >= size_) return "";
    return std::string(data_ + offset, strnlen(data_ + offset, size_ - offset));
  }

 private:
  const char* data_ = nullptr;
  size_t size_ = 0;
};

// The file's head, if it is one that we can read.
const Elf64_Ehdr* head_of(const MappedFile& file) {
  const auto* head = file.at<Elf64_Ehdr>(0);
  if (!head || memcmp(head->e_ident, ELFMAG, SELFMAG) != 0) return nullptr;
  return head->e_ident[EI_CLASS] == ELFCLASS64 ? head : nullptr;
}

}  // namespace

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

bool same_file(const std::string& a, const std::string& b) {
  struct stat first, second;
  return stat(a.c_str(), &first) == 0 && stat(b.c_str(), &second) == 0 &&
         first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

Dynamic read_dynamic(const std::string& path) {
  Dynamic result;
  const MappedFile file(path);
  const Elf64_Ehdr* head = head_of(file);
  if (!head) return result;
  result.is_elf = true;
  const auto* segments = file.at<Elf64_Phdr>(head->e_phoff, head->e_phnum);
  if (!segments) return result;
  const Elf64_Dyn* entries = nullptr;
  size_t count = 0;
  for (size_t i = 0; i < head->e_phnum; ++i) {
    if (segments[i].p_type != PT_DYNAMIC) continue;
    count = segments[i].p_filesz / sizeof(Elf64_Dyn);
    entries = file.at<Elf64_Dyn>(segments[i].p_offset, count);
  }
  if (!entries) return result;
  uint64_t strings = 0;
  for (size_t i = 0; i < count && entries[i].d_tag != DT_NULL; ++i) {
    if (entries[i].d_tag == DT_STRTAB) strings = entries[i].d_un.d_ptr;
  }
  // The table's address becomes an offset through the segment that holds it.
  for (size_t i = 0; i < head->e_phnum; ++i) {
    const Elf64_Phdr& s = segments[i];
    if (s.p_type == PT_LOAD && strings >= s.p_vaddr && strings - s.p_vaddr < s.p_filesz) {
      strings = strings - s.p_vaddr + s.p_offset;
      break;
    }
  }
  bool has_runpath = false;
  for (size_t i = 0; i < count && entries[i].d_tag != DT_NULL; ++i) {
    const std::string text = file.text_at(strings + entries[i].d_un.d_val);
    if (entries[i].d_tag == DT_NEEDED) result.needed.push_back(text);
    if (entries[i].d_tag == DT_SONAME) result.name = text;
    if (entries[i].d_tag == DT_RPATH) result.rpath = text;
    if (entries[i].d_tag == DT_RUNPATH) has_runpath = true;
  }
  if (has_runpath) result.rpath.clear();
  return result;
}

Symbols read_symbols(const std::string& path) {
  Symbols result;
  const MappedFile file(path);
  const Elf64_Ehdr* head = head_of(file);
  if (!head) return result;
  const auto* sections = file.at<Elf64_Shdr>(head->e_shoff, head->e_shnum);
  if (!sections) return result;
  for (size_t i = 0; i < head->e_shnum; ++i) {
    if (sections[i].sh_type != SHT_DYNSYM || sections[i].sh_link >= head->e_shnum) continue;
    const Elf64_Shdr& names = sections[sections[i].sh_link];
    const size_t count = sections[i].sh_size / sizeof(Elf64_Sym);
    const auto* symbols = file.at<Elf64_Sym>(sections[i].sh_offset, count);
    for (size_t k = 1; symbols && k < count; ++k) {
      const Elf64_Sym& symbol = symbols[k];
      if (symbol.st_name == 0 || symbol.st_name >= names.sh_size) continue;
      const bool weak = ELF64_ST_BIND(symbol.st_info) == STB_WEAK;
      auto& list = symbol.st_shndx != SHN_UNDEF ? result.given
                   : weak                       ? result.wished
                                                : result.taken;
      list.push_back(file.text_at(names.sh_offset + symbol.st_name));
    }
  }
  return result;
}

std::string read_interpreter(const std::string& path) {
  const MappedFile file(path);
  const Elf64_Ehdr* head = head_of(file);
  if (!head) return "";
  const auto* segments = file.at<Elf64_Phdr>(head->e_phoff, head->e_phnum);
  for (size_t i = 0; segments && i < head->e_phnum; ++i) {
    if (segments[i].p_type == PT_INTERP) return file.text_at(segments[i].p_offset);
  }
  return "";
}

}  // namespace headway::launcher
