// Environment: init, finalize, abort, time, versions: MPI 5.0, chapters 9 and 11.
#include <cstring>
#include <unistd.h>

#include "api/detail/attributes.h"
#include "api/detail/comms.h"
#include "api/detail/dynamic.h"
#include "api/detail/files.h"
#include "api/detail/info.h"
#include "api/detail/message.h"
#include "api/detail/results.h"
#include "base/clock.h"
#include "base/spin_lock.h"
#include "datatypes/logicals.h"
#include "p2p/bsend.h"

using namespace headway;
using namespace headway::api;

namespace {

constexpr char library_version[] = "Headway MPI 0.1.0, MPI 5.0 standard ABI 1.0";

int start(const char* call, int required, int* provided) {
  runtime::Process& self = process();
  if (self.world.load() == runtime::State::running) {
    return raise({.call = call}, MPI_ERR_OTHER, "MPI is running already",
                 "call it once; MPI_Initialized tells");
  }
  if (self.world.load() == runtime::State::after || self.state.load() == runtime::State::after) {
    return not_running(call);
  }
  if (required < MPI_THREAD_SINGLE || required > MPI_THREAD_MULTIPLE) {
    required = required < MPI_THREAD_SINGLE ? MPI_THREAD_SINGLE : MPI_THREAD_MULTIPLE;
  }
  const Inside inside(call);
  if (self.open_world(required) != Outcome::ok) cannot_start(call);
  if (required == MPI_THREAD_MULTIPLE) self.expect_threads();
  complete_info_env();
  meet_parents(call);
  if (provided) *provided = required;
  return MPI_SUCCESS;
}

// What the Fortran side of a program told about itself; see MPI 5.0, section 20.5. A library of
// Fortran tells it when it is loaded, before MPI_Init, and a main program in C may have told it
// before: what is equal is no mistake.
struct Logicals {  // of one size
  bool told;
  char truth[16];
  char falsehood[16];
};
struct Fortran {
  base::SpinLock lock;
  objects::Info* info = nullptr;  // once set it stays
  Logicals logicals[5] = {};      // of 1, 2, 4, 8 and 16 bytes
};
constinit Fortran fortran;

Logicals* logicals_of(int size) {
  for (int i = 0; i < 5; ++i) {
    if (size == 1 << i) return &fortran.logicals[i];
  }
  return nullptr;
}

bool is_equal(const objects::Info& one, const objects::Info& other) {
  if (one.count != other.count) return false;
  for (const objects::InfoEntry* entry = one.first; entry; entry = entry->next) {
    const char* value = other.find(entry->key);
    if (!value || strcmp(value, entry->value) != 0) return false;
  }
  return true;
}

int init_thread(const char* call, int*, char***, int required, int* provided) {
  return start(call, required, provided);
}

int initialized(const char*, int* flag) {
  *flag = process().world.load(std::memory_order_acquire) != runtime::State::before;
  return MPI_SUCCESS;
}

int finalized(const char*, int* flag) {
  *flag = process().world.load(std::memory_order_acquire) == runtime::State::after;
  return MPI_SUCCESS;
}

int finalize_world(const char* call) {
  if (process().world.load() != runtime::State::running) return not_running(call);
  // Before all else, so that the callbacks find MPI as it was: MPI 5.0, section 11.2.4.
  const Callback left =
      delete_attributes(registry().self->attributes, MPI_COMM_SELF, /*regardless=*/true);
  if (left.code != MPI_SUCCESS) raise({.call = call, .comm = registry().self}, left);
  if (base::any_events()) deliver_events();  // as long as callbacks may call MPI
  const Inside inside(call);
  if (process().is_running() && process().any_closed()) await_all_open();
  p2p::finish_buffers(process().waiter());
  close_left_files(call, nullptr);
  process().close_world();
  end_comms(nullptr);
  return left.code;
}

int abort_job(const char*, MPI_Comm comm, int errorcode) {
  runtime::Process& self = process();
  const objects::Comm* on = self.is_running() ? registry().find_comm(value_of(comm)) : nullptr;
  base::Text<256> line;
  line << "MPI_Abort was called on " << (on && *on->name ? on->name : "a communicator")
       << " with code " << errorcode << ". The job ends.";
  self.abort(errorcode, line.c_str());
}

int query_thread(const char* call, int* provided) {
  if (!is_running()) return not_running(call);
  *provided = process().thread_level;
  return MPI_SUCCESS;
}

int is_thread_main(const char* call, int* flag) {
  if (!is_running()) return not_running(call);
  *flag = pthread_equal(pthread_self(), process().main_thread) != 0;
  return MPI_SUCCESS;
}

int get_version(const char*, int* version, int* subversion) {
  *version = MPI_VERSION;
  *subversion = MPI_SUBVERSION;
  return MPI_SUCCESS;
}

int get_library_version(const char*, char* version, int* resultlen) {
  static_assert(sizeof library_version <= MPI_MAX_LIBRARY_VERSION_STRING);
  memcpy(version, library_version, sizeof library_version);
  *resultlen = int(sizeof library_version - 1);
  return MPI_SUCCESS;
}

int abi_get_version(const char*, int* abi_major, int* abi_minor) {
  *abi_major = MPI_ABI_VERSION;
  *abi_minor = MPI_ABI_SUBVERSION;
  return MPI_SUCCESS;
}

int get_processor_name(const char*, char* name, int* resultlen) {
  if (gethostname(name, MPI_MAX_PROCESSOR_NAME - 1) != 0) strcpy(name, "unknown");
  name[MPI_MAX_PROCESSOR_NAME - 1] = '\0';
  *resultlen = int(strlen(name));
  return MPI_SUCCESS;
}

double wtime(const char*) { return double(base::now_ns()) * 1e-9; }

double wtick(const char*) { return 1e-9; }

int abi_get_info(const char* call, MPI_Info* info) {
  const Story story{.call = call};
  objects::Info* made = objects::Info::make();
  if (!made) return raise(story, Outcome::no_memory);
  static_assert(sizeof(MPI_Aint) == 8 && sizeof(MPI_Count) == 8 && sizeof(MPI_Offset) == 8);
  if (!made->set("mpi_aint_size", "8") || !made->set("mpi_count_size", "8") ||
      !made->set("mpi_offset_size", "8")) {
    made->release();
    return raise(story, Outcome::no_memory);
  }
  return hand_out_info(story, made, info);
}

// Keys are domains of hardware; "true": this process cannot leave its own one.
int get_hw_resource_info(const char* call, MPI_Info* hw_info) {
  const Story story{.call = call};
  objects::Info* made = objects::Info::make();
  if (!made) return raise(story, Outcome::no_memory);
  if (!made->set(shared_memory_domain, "true")) {
    made->release();
    return raise(story, Outcome::no_memory);
  }
  return hand_out_info(story, made, hw_info);
}

int abi_set_fortran_info(const char* call, MPI_Info info) {
  const Story story{.call = call};
  objects::Info* found;
  if (const int code = take_info(story, info, found)) return code;
  objects::Info* copy = found->duplicate();
  if (!copy) return raise(story, Outcome::no_memory);
  fortran.lock.lock();
  const objects::Info* told = fortran.info;
  if (!told) fortran.info = copy;
  fortran.lock.unlock();
  if (!told) return MPI_SUCCESS;
  const bool equal = is_equal(*told, *copy);
  copy->release();
  if (equal) return MPI_SUCCESS;
  return raise(story, MPI_ERR_ABI, "other information about Fortran was set before",
               "one program has one Fortran: link all of it with one compiler's libraries");
}

int abi_get_fortran_info(const char* call, MPI_Info* info) {
  *info = MPI_INFO_NULL;
  fortran.lock.lock();
  const objects::Info* told = fortran.info;
  fortran.lock.unlock();
  if (!told) return MPI_SUCCESS;
  return hand_out_info({.call = call}, told->duplicate(), info);
}

int abi_set_fortran_booleans(const char* call, int logical_size, void* logical_true,
                             void* logical_false) {
  const Story story{.call = call};
  Logicals* logicals = logicals_of(logical_size);
  if (!logicals) {
    return raise(story, MPI_ERR_ARG, "the size is not that of a Fortran logical",
                 "logicals have 1, 2, 4, 8 or 16 bytes");
  }
  const size_t size = size_t(logical_size);
  fortran.lock.lock();
  if (!logicals->told) {
    logicals->told = true;
    datatypes::tell_logicals(size, logical_true, logical_false);
    memcpy(logicals->truth, logical_true, size);
    memcpy(logicals->falsehood, logical_false, size);
  }
  const bool equal = memcmp(logicals->truth, logical_true, size) == 0 &&
                     memcmp(logicals->falsehood, logical_false, size) == 0;
  fortran.lock.unlock();
  if (equal) return MPI_SUCCESS;
  return raise(story, MPI_ERR_ABI, "other values of Fortran's logicals were set before",
               "one program has one Fortran: compile all of it with one compiler and its options");
}

int abi_get_fortran_booleans(const char* call, int logical_size, void* logical_true,
                             void* logical_false, int* is_set) {
  const Logicals* logicals = logicals_of(logical_size);
  if (!logicals) {
    return raise({.call = call}, MPI_ERR_ARG, "the size is not that of a Fortran logical",
                 "logicals have 1, 2, 4, 8 or 16 bytes");
  }
  fortran.lock.lock();
  *is_set = logicals->told;
  if (*is_set) {
    memcpy(logical_true, logicals->truth, size_t(logical_size));
    memcpy(logical_false, logicals->falsehood, size_t(logical_size));
  }
  fortran.lock.unlock();
  return MPI_SUCCESS;
}

}  // namespace

// A hook for profilers, which replace it.
HEADWAY_ENTRY(MPI_Pcontrol)(const int, ...) {
  return MPI_SUCCESS;
}

#include "api/entries/environment.inl"
