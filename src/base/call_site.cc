#include "base/call_site.h"

#include <cstddef>
#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>

namespace headway::base {

constinit thread_local uintptr_t call_site = 0;
constinit std::atomic<bool> has_wrappers{false};

namespace {

// Calls in which a rank may wait. A tool that wraps none of them does not stand in the way.
constexpr const char* waiting_calls[] = {
    "MPI_Recv",
    "MPI_Mrecv",
    "MPI_Wait",
    "MPI_Waitall",
    "MPI_Waitany",
    "MPI_Waitsome",
    "MPI_Sendrecv",
    "MPI_Sendrecv_replace",
    "MPI_Send",
    "MPI_Bsend",
    "MPI_Ssend",
    "MPI_Rsend",
    "MPI_Probe",
    "MPI_Mprobe",
    "MPI_Barrier",
    "MPI_Bcast",
    "MPI_Reduce",
    "MPI_Allreduce",
    "MPI_Gather",
    "MPI_Gatherv",
    "MPI_Scatter",
    "MPI_Scatterv",
    "MPI_Allgather",
    "MPI_Allgatherv",
    "MPI_Alltoall",
    "MPI_Alltoallv",
    "MPI_Alltoallw",
    "MPI_Scan",
    "MPI_Exscan",
    "MPI_Reduce_scatter",
    "MPI_Comm_dup",
    "MPI_Comm_split",
    "MPI_Comm_create",
    "MPI_Reduce_scatter_block",
    "MPI_Finalize",
    "MPI_Neighbor_allgather",
    "MPI_Neighbor_allgatherv",
    "MPI_Neighbor_alltoall",
    "MPI_Neighbor_alltoallv",
    "MPI_Neighbor_alltoallw",
};

struct Span {
  uintptr_t from = 0, to = 0;
  bool holds(uintptr_t address) const { return address >= from && address < to; }
};

// Code of tools: whole objects, and of the program itself the functions that it defines.
constexpr size_t most_spans = 64;
constinit Span spans[most_spans];
constinit std::atomic<size_t> span_count{0};
// A tool that hands sites on, and its code.
constinit Span handing;
constinit std::atomic<uintptr_t (*)()> handed{nullptr};

constexpr size_t most_objects = 512;
constexpr int most_frames = 64;

void add(Span span) {
  const size_t count = span_count.load(std::memory_order_relaxed);
  for (size_t i = 0; i < count; ++i) {
    if (spans[i].from == span.from) return;
  }
  if (count == most_spans) return;
  spans[count] = span;
  span_count.store(count + 1, std::memory_order_release);  // pairs with is_wrapper
}

bool is_wrapper(uintptr_t address) {
  const size_t count = span_count.load(std::memory_order_acquire);
  for (size_t i = 0; i < count; ++i) {
    if (spans[i].holds(address)) return true;
  }
  return handing.holds(address);
}

struct Object {
  uintptr_t address;  // that it holds
  Span code;
  bool is_program;
  int before;  // objects that were looked at
};

int look_at_object(dl_phdr_info* info, size_t, void* context) {
  auto* object = static_cast<Object*>(context);
  const bool is_first = object->before++ == 0;
  Span code{UINTPTR_MAX, 0};
  bool holds = false;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = info->dlpi_phdr[i];
    if (part.p_type != PT_LOAD) continue;
    const uintptr_t from = info->dlpi_addr + part.p_vaddr;
    holds |= Span{from, from + part.p_memsz}.holds(object->address);
    if (!(part.p_flags & PF_X)) continue;
    if (from < code.from) code.from = from;
    if (from + part.p_memsz > code.to) code.to = from + part.p_memsz;
  }
  if (!holds || code.to == 0) return 0;
  object->code = code;
  object->is_program = is_first;
  return 1;
}

bool find_object(uintptr_t address, Object& object) {
  object = {address, {}, false, 0};
  return dl_iterate_phdr(look_at_object, &object) == 1;
}

// `found`: where the name of a call leads. `own`: this library's code.
void note_wrapper(const Span& own, void* found) {
  const auto address = reinterpret_cast<uintptr_t>(found);
  Object object;
  if (!found || own.holds(address) || !find_object(address, object)) return;
  if (!object.is_program) {
    add(object.code);
    return;
  }
  // All of the program is not a tool's. A function of ours whose address it takes is none of its
  // own, and has no size there.
  Dl_info about;
  const ElfW(Sym)* symbol = nullptr;
  if (dladdr1(found, &about, reinterpret_cast<void**>(const_cast<ElfW(Sym)**>(&symbol)),
              RTLD_DL_SYMENT) == 0 ||
      !symbol || about.dli_saddr != found || symbol->st_shndx == SHN_UNDEF ||
      symbol->st_size == 0) {
    return;
  }
  add({address, address + symbol->st_size});
}

struct Names {
  const char* all[most_objects];
  size_t count;
};

int note_name(dl_phdr_info* info, size_t, void* context) {
  auto* names = static_cast<Names*>(context);
  if (info->dlpi_name && *info->dlpi_name && names->count < most_objects)
    names->all[names->count++] = info->dlpi_name;
  return 0;
}

// Behind the first tool may stand others.
void find_more(const Span& own) {
  Names names;
  names.count = 0;
  dl_iterate_phdr(note_name, &names);
  for (size_t i = 0; i < names.count; ++i) {
    void* object = dlopen(names.all[i], RTLD_LAZY | RTLD_NOLOAD);
    if (!object) continue;
    for (const char* call : waiting_calls) note_wrapper(own, dlsym(object, call));
    dlclose(object);
  }
}

// The first walk loads the C compiler's library, which takes memory.
void prepare_to_walk() {
  void* frames[2];
  (void)backtrace(frames, 2);
  has_wrappers.store(true, std::memory_order_release);
}

}  // namespace

void find_wrappers() {
  Object self;
  if (!find_object(reinterpret_cast<uintptr_t>(&find_wrappers), self)) return;
  for (const char* call : waiting_calls) note_wrapper(self.code, dlsym(RTLD_DEFAULT, call));
  if (span_count.load(std::memory_order_relaxed) == 0) return;
  find_more(self.code);
  prepare_to_walk();
}

uintptr_t walk_to_caller() {
  const uintptr_t inner = call_site;
  if (!is_wrapper(inner)) return inner;
  uintptr_t (*const site)() = handed.load(std::memory_order_acquire);
  if (site && handing.holds(inner)) {
    const uintptr_t outer = site();
    if (outer && !is_wrapper(outer)) return outer;
  }
  void* frames[most_frames];
  const int count = backtrace(frames, most_frames);
  int i = 0;
  while (i < count && reinterpret_cast<uintptr_t>(frames[i]) != inner) ++i;
  while (i < count && is_wrapper(reinterpret_cast<uintptr_t>(frames[i]))) ++i;
  return i < count ? reinterpret_cast<uintptr_t>(frames[i]) : inner;
}

}  // namespace headway::base

void headway_call_sites_from(uintptr_t (*site)()) {
  using namespace headway::base;
  Object object;
  handed.store(nullptr, std::memory_order_release);
  if (!site || !find_object(reinterpret_cast<uintptr_t>(site), object) || object.is_program) return;
  handing = object.code;
  handed.store(site, std::memory_order_release);  // pairs with walk_to_caller
  prepare_to_walk();
}
