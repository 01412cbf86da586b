// Environment: init, finalize, abort, time, versions: MPI 5.0, chapters 9 and 11.
#include <cstring>
#include <unistd.h>

#include "api/detail/call.h"
#include "base/clock.h"

using namespace headway;
using namespace headway::api;

namespace {

constexpr char library_version[] = "Headway MPI 0.1.0, MPI 5.0 standard ABI 1.0";

int start(const char* call, int required, int* provided) {
  runtime::Process& self = process();
  if (self.is_running()) {
    return raise({.call = call}, MPI_ERR_OTHER, "MPI is running already",
                 "call it once; MPI_Initialized tells");
  }
  if (self.state.load() == runtime::State::after) return not_running(call);
  if (required < MPI_THREAD_SINGLE || required > MPI_THREAD_MULTIPLE) {
    required = required < MPI_THREAD_SINGLE ? MPI_THREAD_SINGLE : MPI_THREAD_MULTIPLE;
  }
  if (self.init(required) != Outcome::ok) {
    base::Text<700> line;
    line << "headway: " << call << " failed: " << self.story() << "\n";
    line.write_to(2);
    self.abort(1, nullptr);
  }
  if (provided) *provided = required;
  return MPI_SUCCESS;
}

}  // namespace

HEADWAY_ENTRY(MPI_Init)(int*, char***) { return start("MPI_Init", MPI_THREAD_SINGLE, nullptr); }

HEADWAY_ENTRY(MPI_Init_thread)(int*, char***, int required, int* provided) {
  return start("MPI_Init_thread", required, provided);
}

HEADWAY_ENTRY(MPI_Initialized)(int* flag) {
  *flag = process().state.load(std::memory_order_acquire) != runtime::State::before;
  return MPI_SUCCESS;
}

HEADWAY_ENTRY(MPI_Finalized)(int* flag) {
  *flag = process().state.load(std::memory_order_acquire) == runtime::State::after;
  return MPI_SUCCESS;
}

HEADWAY_ENTRY(MPI_Finalize)() {
  if (!is_running()) return not_running("MPI_Finalize");
  const Inside inside("MPI_Finalize", unset, unset);
  return error_class_of(process().finalize());
}

HEADWAY_ENTRY(MPI_Abort)(MPI_Comm comm, int errorcode) {
  runtime::Process& self = process();
  const objects::Comm* on = self.is_running() ? registry().find_comm(value_of(comm)) : nullptr;
  base::Text<256> line;
  line << "MPI_Abort was called on " << (on && *on->name ? on->name : "a communicator")
       << " with code " << errorcode << ". The job ends";
  self.abort(errorcode ? errorcode : 1, line.c_str());
}

HEADWAY_ENTRY(MPI_Query_thread)(int* provided) {
  if (!is_running()) return not_running("MPI_Query_thread");
  *provided = process().thread_level;
  return MPI_SUCCESS;
}

HEADWAY_ENTRY(MPI_Is_thread_main)(int* flag) {
  if (!is_running()) return not_running("MPI_Is_thread_main");
  *flag = pthread_equal(pthread_self(), process().main_thread) != 0;
  return MPI_SUCCESS;
}

HEADWAY_ENTRY(MPI_Get_version)(int* version, int* subversion) {
  *version = MPI_VERSION;
  *subversion = MPI_SUBVERSION;
  return MPI_SUCCESS;
}

HEADWAY_ENTRY(MPI_Get_library_version)(char* version, int* resultlen) {
  static_assert(sizeof library_version <= MPI_MAX_LIBRARY_VERSION_STRING);
  memcpy(version, library_version, sizeof library_version);
  *resultlen = int(sizeof library_version - 1);
  return MPI_SUCCESS;
}

HEADWAY_ENTRY(MPI_Abi_get_version)(int* abi_major, int* abi_minor) {
  *abi_major = MPI_ABI_VERSION;
  *abi_minor = MPI_ABI_SUBVERSION;
  return MPI_SUCCESS;
}

HEADWAY_ENTRY(MPI_Get_processor_name)(char* name, int* resultlen) {
  if (gethostname(name, MPI_MAX_PROCESSOR_NAME - 1) != 0) strcpy(name, "unknown");
  name[MPI_MAX_PROCESSOR_NAME - 1] = '\0';
  *resultlen = int(strlen(name));
  return MPI_SUCCESS;
}

HEADWAY_ENTRY_R(double, MPI_Wtime)() { return double(base::now_ns()) * 1e-9; }

HEADWAY_ENTRY_R(double, MPI_Wtick)() { return 1e-9; }
