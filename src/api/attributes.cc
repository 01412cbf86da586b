// Predefined attributes: MPI 5.0, sections 7.7 and 9.1.2. The same on every communicator. Keyvals
// of the program are not there yet.
#include <atomic>
#include <climits>

#include "api/detail/call.h"
#include "api/detail/errors.h"
#include "api/detail/results.h"

using namespace headway;
using namespace headway::api;

namespace {

// Programs get the address of these, so each has a place for good. Every call writes the same
// number, but for the last used code, which grows.
constinit std::atomic<int> tag_bound;
constinit std::atomic<int> io_rank;
constinit std::atomic<int> host_rank;
constinit std::atomic<int> global_time;
constinit std::atomic<int> app_number;
constinit std::atomic<int> last_code;
constinit std::atomic<int> universe_size;
static_assert(sizeof(std::atomic<int>) == sizeof(int));

// Where the value of a predefined attribute lies, or null for another keyval.
std::atomic<int>* find_value(int keyval) {
  runtime::Process& self = process();
  const bootstrap::Job& job = self.bootstrap.job();
  const auto keep = [](std::atomic<int>& place, int value) {
    place.store(value, std::memory_order_relaxed);
    return &place;
  };
  switch (keyval) {
    case MPI_TAG_UB: return keep(tag_bound, INT_MAX);
    case MPI_IO: return keep(io_rank, MPI_ANY_SOURCE);  // every rank may use standard I/O
    case MPI_HOST: return keep(host_rank, MPI_PROC_NULL);
    // One kernel, one monotonic clock.
    case MPI_WTIME_IS_GLOBAL:
      return keep(global_time, self.node_ranks().size() == size_t(job.size));
    case MPI_APPNUM: return keep(app_number, job.appnum);
    case MPI_LASTUSEDCODE: return keep(last_code, last_used_code());
    case MPI_UNIVERSE_SIZE:
      return keep(universe_size, job.universe_size > job.size ? job.universe_size : job.size);
    default: return nullptr;
  }
}

int get(const char* call, MPI_Comm comm, int keyval, void* attribute_val, int* flag) {
  Story story{.call = call};
  if (const int code = take_comm(story, comm)) return code;
  if (const int code = check_places(story, static_cast<char*>(attribute_val), flag)) return code;
  std::atomic<int>* value = find_value(keyval);
  if (!value) {
    return raise(story, MPI_ERR_KEYVAL,
                 keyval == MPI_KEYVAL_INVALID ? "the keyval is MPI_KEYVAL_INVALID"
                                              : "there is no such keyval",
                 "only the predefined attributes (MPI_TAG_UB and its like) are there yet");
  }
  *flag = 1;
  *static_cast<void**>(attribute_val) = value;
  return MPI_SUCCESS;
}

}  // namespace

HEADWAY_ENTRY(MPI_Comm_get_attr)(MPI_Comm comm, int comm_keyval, void* attribute_val, int* flag) {
  return get("MPI_Comm_get_attr", comm, comm_keyval, attribute_val, flag);
}
HEADWAY_ENTRY(MPI_Attr_get)(MPI_Comm comm, int keyval, void* attribute_val, int* flag) {
  return get("MPI_Attr_get", comm, keyval, attribute_val, flag);
}
