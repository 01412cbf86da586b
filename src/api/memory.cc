// Memory and addresses: MPI_Alloc_mem and its like: MPI 5.0, sections 9.2 and 5.1.
#include "api/detail/info.h"
#include "api/detail/results.h"
#include "base/heap.h"

using namespace headway;
using namespace headway::api;

namespace {

constexpr uint64_t least_alignment = 64;  // a cache line
constexpr uint64_t most_alignment = 1u << 30;
constexpr uint64_t mark = 0x68656164776179a1u;  // tells our memory from other memory

// Lies right before what the user gets.
struct Header {
  uint64_t mark;  // with the address, so that a copy of it elsewhere is no header
  void* block;
  uint64_t size;  // of the block
};

uint64_t mark_at(const void* user) { return mark ^ reinterpret_cast<uintptr_t>(user); }

// What the info asks for: a power of two, or 0 if it is none.
uint64_t wanted_alignment(const objects::Info& info) {
  const char* text = info.find("mpi_minimum_memory_alignment");
  if (!text) return least_alignment;
  uint64_t wanted = 0;
  for (; *text >= '0' && *text <= '9' && wanted <= most_alignment; ++text) {
    wanted = wanted * 10 + uint64_t(*text - '0');
  }
  if (*text || wanted == 0 || wanted > most_alignment || (wanted & (wanted - 1))) return 0;
  return wanted > least_alignment ? wanted : least_alignment;
}

int alloc_mem(const char* call, MPI_Aint size, MPI_Info info, void* baseptr) {
  const Story story{.call = call};
  if (!is_running()) return not_running(story.call);
  if (size < 0) return raise(story, MPI_ERR_ARG, "the size is negative");
  uint64_t alignment = least_alignment;
  if (info != MPI_INFO_NULL) {
    objects::Info* wishes;
    if (const int code = take_info(story, info, wishes)) return code;
    alignment = wanted_alignment(*wishes);
    if (!alignment) {
      return raise(story, MPI_ERR_INFO_VALUE, "mpi_minimum_memory_alignment is no power of two",
                   "it may be at most 1073741824");
    }
  }
  const uint64_t total = uint64_t(size) + sizeof(Header) + alignment;
  void* block = base::heap_allocate(total);
  if (!block) {
    base::Text<100> why;
    why << "there is no memory for " << size << " bytes";
    return raise(story, MPI_ERR_NO_MEM, why.c_str(), "see the machine's memory and ulimit -v");
  }
  const uint64_t first = reinterpret_cast<uintptr_t>(block) + sizeof(Header);
  auto* user = reinterpret_cast<Header*>((first + alignment - 1) & ~(alignment - 1));
  user[-1] = {mark_at(user), block, total};
  *static_cast<void**>(baseptr) = user;
  return MPI_SUCCESS;
}

int free_mem(const char* call, void* base) {
  const Story story{.call = call};
  if (!is_running()) return not_running(story.call);
  if (!base) return MPI_SUCCESS;
  auto* header = static_cast<Header*>(base) - 1;
  if (reinterpret_cast<uintptr_t>(base) % least_alignment || header->mark != mark_at(base)) {
    return raise(story, MPI_ERR_BASE, "the memory does not come from MPI_Alloc_mem, or was freed");
  }
  header->mark = 0;
  base::heap_free(header->block, header->size);
  return MPI_SUCCESS;
}

int get_address(const char*, const void* location, MPI_Aint* address) {
  *address = reinterpret_cast<MPI_Aint>(location);
  return MPI_SUCCESS;
}

// As addresses, so that nothing overflows.
MPI_Aint aint_add(const char*, MPI_Aint base, MPI_Aint disp) {
  return MPI_Aint(uintptr_t(base) + uintptr_t(disp));
}
MPI_Aint aint_diff(const char*, MPI_Aint addr1, MPI_Aint addr2) {
  return MPI_Aint(uintptr_t(addr1) - uintptr_t(addr2));
}

}  // namespace

#include "api/entries/memory.inl"
