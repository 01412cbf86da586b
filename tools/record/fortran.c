/* fortran: calls of MPI from Fortran. An MPI has them in libraries of their own beside the one of
   C, which convert the arguments and then call C: MPICH's calls MPI_Send, which comes to the
   recorder as any call of C does; Open MPI's calls PMPI_Send, which does not. So two things are
   done here, both at the first call from Fortran:

   - What those libraries call as PMPI_Send leads into the layer from then on (the entries of their
     tables of outside functions are changed). Arguments are C's by then: nothing of an MPI's
     Fortran has to be known.
   - librecorder's entries in the place of mpi_send_, mpi_send_f08_ and mpi_send_f08ts_ (entries.S;
     as gfortran, ifx and flang call them) keep their return address and lead to the real ones: when
     the call then reaches the layer from one of those libraries, that is its site.

   Thread: any. Owner: librecorder. Invariant: nothing but functions that are recorded is led
   elsewhere, and only in libraries of MPI. */
#define _GNU_SOURCE
#include <ctype.h>
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "recorder.h"
#include "recorder_functions.inc"
#include "resolve.h"
#include "text.h"

#if defined(__aarch64__)
enum { JUMP_SLOT = R_AARCH64_JUMP_SLOT, GLOB_DAT = R_AARCH64_GLOB_DAT };
#else
enum { JUMP_SLOT = R_X86_64_JUMP_SLOT, GLOB_DAT = R_X86_64_GLOB_DAT };
#endif
enum { MOST_LIBRARIES = 16, FORMS = 3, LONGEST_NAME = 128 };

/* Of entries.S: where each entry leads, by function and form of its name. */
extern void* record_fortran_slots[] __attribute__((visibility("hidden")));
static const char* const forms[FORMS] = {"_", "_f08_", "_f08ts_"};

RECORD_API __thread uintptr_t record_fortran_caller __attribute__((tls_model("initial-exec")));

typedef struct Library { /* its code */
  uintptr_t begin, end;
} Library;

static struct {
  pthread_mutex_t lock;
  Library libraries[MOST_LIBRARIES]; /* of MPI; the first `count` never change */
  unsigned count;
} self = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool is_of_mpi(const char* path) {
  return path && strncmp(record_last_part(path), "libmpi", 6) == 0;
}

int record_is_of_mpi(uintptr_t at) {
  const unsigned count = __atomic_load_n(&self.count, __ATOMIC_ACQUIRE);
  for (unsigned i = 0; i < count; ++i) {
    if (at >= self.libraries[i].begin && at < self.libraries[i].end) return 1;
  }
  return 0;
}

uintptr_t record_fortran_from(uintptr_t from) {
  const uintptr_t caller = record_fortran_caller;
  record_fortran_caller = 0;
  /* Else of C: the last call from Fortran reached no call of C. */
  return record_is_of_mpi(from) ? caller : from;
}

uint32_t record_fortran_site(RecordThread* me, uintptr_t from) {
  const uintptr_t at = record_fortran_from(from);
  const uint32_t site = record_site_at(me, at);
  if (at != from) me->fortran_site = site;
  return site;
}

/* ---- what a library calls ---- */

typedef struct Tables { /* of its dynamic section */
  uintptr_t base;
  const Elf64_Sym* symbols;
  const char* names;
  const Elf64_Rela *calls, *data;
  size_t call_count, data_count;
  uintptr_t relro, relro_end; /* read-only since it was loaded */
} Tables;

static uintptr_t address_of(uintptr_t base, Elf64_Addr value) {
  return value < base ? base + value : value; /* glibc has put the base in already, musl not */
}

static uintptr_t page_of(uintptr_t at) { return at & ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1); }

static Tables tables_of(const struct dl_phdr_info* info) {
  Tables found = {.base = info->dlpi_addr};
  const Elf64_Dyn* dynamic = NULL;
  for (unsigned i = 0; i < info->dlpi_phnum; ++i) {
    const Elf64_Phdr* part = &info->dlpi_phdr[i];
    const uintptr_t at = found.base + part->p_vaddr;
    if (part->p_type == PT_DYNAMIC) dynamic = (const Elf64_Dyn*)at;
    if (part->p_type == PT_GNU_RELRO) {
      found.relro = page_of(at); /* whole pages, as the loader does it */
      found.relro_end = page_of(at + part->p_memsz);
    }
  }
  for (; dynamic && dynamic->d_tag != DT_NULL; ++dynamic) {
    const uintptr_t at = address_of(found.base, dynamic->d_un.d_ptr);
    switch (dynamic->d_tag) {
      case DT_SYMTAB: found.symbols = (const Elf64_Sym*)at; break;
      case DT_STRTAB: found.names = (const char*)at; break;
      case DT_JMPREL: found.calls = (const Elf64_Rela*)at; break;
      case DT_RELA: found.data = (const Elf64_Rela*)at; break;
      case DT_PLTRELSZ: found.call_count = dynamic->d_un.d_val / sizeof(Elf64_Rela); break;
      case DT_RELASZ: found.data_count = dynamic->d_un.d_val / sizeof(Elf64_Rela); break;
      default: break;
    }
  }
  return found;
}

static void* entry_of(const RecordLayer* layer, const char* name) {
  if (strncmp(name, "PMPI_", 5) != 0) return NULL;
  for (int i = 0; i < layer->functions; ++i) {
    if (strcmp(functions[i].name, name + 1) == 0) return layer->entries[i];
  }
  return NULL;
}

/* Not by the name mprotect: a try (tools/try) would take it for the program's, which then follows
   writes itself, and put off nothing. */
static bool protect(void* page, size_t bytes, int how) {
  return syscall(SYS_mprotect, page, bytes, how) == 0;
}

static void put_entry(const Tables* tables, uintptr_t slot, void* entry) {
  void* const page = (void*)page_of(slot);
  const bool closed = slot >= tables->relro && slot < tables->relro_end;
  if (closed && !protect(page, sizeof entry, PROT_READ | PROT_WRITE)) return;
  __atomic_store_n((void**)slot, entry, __ATOMIC_RELEASE);
  if (closed) protect(page, sizeof entry, PROT_READ);
}

static void lead_into(const Tables* tables, const Elf64_Rela* list, size_t count,
                      const RecordLayer* layer) {
  for (size_t i = 0; list && i < count; ++i) {
    const unsigned type = (unsigned)ELF64_R_TYPE(list[i].r_info);
    if (type != JUMP_SLOT && type != GLOB_DAT) continue;
    const Elf64_Sym* symbol = &tables->symbols[ELF64_R_SYM(list[i].r_info)];
    void* entry = entry_of(layer, tables->names + symbol->st_name);
    if (entry) put_entry(tables, tables->base + list[i].r_offset, entry);
  }
}

/* ---- which libraries ---- */

static bool is_known(uintptr_t begin) {
  for (unsigned i = 0; i < self.count; ++i) {
    if (self.libraries[i].begin == begin) return true;
  }
  return false;
}

typedef struct Fresh {
  struct FreshLibrary {
    const char* path;
    Library library;
    Tables tables;
  } all[MOST_LIBRARIES];
  unsigned count;
} Fresh;

/* The library of C: it leads to itself, and is left alone. */
static bool has_pmpi(const char* path, Library library) {
  void* handle = dlopen(path, RTLD_NOLOAD | RTLD_LAZY);
  const uintptr_t entry = handle ? (uintptr_t)dlsym(handle, "PMPI_Init") : 0;
  if (handle) dlclose(handle);
  return entry >= library.begin && entry < library.end;
}

/* Each that came since the last time, to be led into the layer: dlopen may not be called from here,
   since another thread's dlopen takes the linker's two locks in the other order. */
static int look_at(struct dl_phdr_info* info, size_t size, void* fresh) {
  (void)size;
  Fresh* to = fresh;
  if (!is_of_mpi(info->dlpi_name)) return 0;
  Library found = {UINTPTR_MAX, 0};
  for (unsigned i = 0; i < info->dlpi_phnum; ++i) {
    const Elf64_Phdr* part = &info->dlpi_phdr[i];
    if (part->p_type != PT_LOAD || !(part->p_flags & PF_X)) continue;
    const uintptr_t begin = info->dlpi_addr + part->p_vaddr;
    if (begin < found.begin) found.begin = begin;
    if (begin + part->p_memsz > found.end) found.end = begin + part->p_memsz;
  }
  if (found.end == 0 || is_known(found.begin) || self.count == MOST_LIBRARIES) return 0;
  self.libraries[self.count] = found;
  __atomic_store_n(&self.count, self.count + 1, __ATOMIC_RELEASE);
  to->all[to->count++] = (struct FreshLibrary){info->dlpi_name, found, tables_of(info)};
  return 0;
}

/* Headway's calls MPI_Send, which comes here by itself; what it calls as PMPI_ is its own, such as
   datatypes of array sections. */
static bool is_seen_anyway(const char* path) {
  return strncmp(record_last_part(path), "libmpifort_abi.", 15) == 0;
}

static void lead_all(const RecordLayer* layer) {
  Fresh fresh = {.count = 0};
  dl_iterate_phdr(look_at, &fresh);
  if (fresh.count) record_forget_memos(); /* of calls that seemed to come from C */
  for (unsigned i = 0; i < fresh.count; ++i) {
    const Tables* tables = &fresh.all[i].tables;
    if (!layer || !tables->symbols || !tables->names || is_seen_anyway(fresh.all[i].path) ||
        has_pmpi(fresh.all[i].path, fresh.all[i].library))
      continue;
    lead_into(tables, tables->calls, tables->call_count, layer);
    lead_into(tables, tables->data, tables->data_count, layer);
  }
}

/* ---- their own entries ---- */

/* In a library of MPI: one that was loaded for an extension module alone is not where RTLD_NEXT
 * looks. */
static void* look_for(const char* name) {
  RecordNames names;
  record_names_of_mpi(&names);
  void* found = NULL;
  for (unsigned i = 0; i < names.count && !found; ++i) {
    void* handle = dlopen(names.all[i], RTLD_NOLOAD | RTLD_LAZY);
    if (!handle) continue;
    found = dlsym(handle, name);
    dlclose(handle);
  }
  return found;
}

static void is_missing(void) {}

/* Of entries.S: of an entry that is called for the first time. */
__attribute__((visibility("hidden"))) void* record_resolve_fortran(unsigned number);
void* record_resolve_fortran(unsigned number) {
  char name[LONGEST_NAME];
  snprintf(name, sizeof name, "%s%s", functions[number / FORMS].name, forms[number % FORMS]);
  for (char* at = name; *at; ++at) *at = (char)tolower((unsigned char)*at);
  const RecordLayer* layer = record_find_layer();
  pthread_mutex_lock(&self.lock);
  lead_all(layer);
  pthread_mutex_unlock(&self.lock);
  void* found = dlsym(RTLD_NEXT, name);
  if (!found) found = look_for(name);
  if (!found) {
    record_say("%s was called, and no MPI that has it is loaded", name);
    *(void (**)(void)) & found = is_missing;
  }
  __atomic_store_n(&record_fortran_slots[number], found, __ATOMIC_RELEASE);
  return found;
}
