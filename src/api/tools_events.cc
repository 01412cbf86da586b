// Events and their sources: MPI 5.0, section 15.3.8. The library has none: no index, name, handle
// or instance of one is valid.
#include "api/detail/tools.h"

using namespace headway;
using namespace headway::api;

namespace {

int refuse(const char*, int why) {
  const int code = tools::check_open();
  return code ? code : why;
}

int source_get_num(const char*, int* num_sources) {
  if (const int code = tools::check_places(num_sources)) return code;
  *num_sources = 0;
  return MPI_SUCCESS;
}

int event_get_num(const char*, int* num_events) {
  if (const int code = tools::check_places(num_events)) return code;
  *num_events = 0;
  return MPI_SUCCESS;
}

int event_get_index(const char*, const char* name, int* event_index) {
  const int code = tools::check_places(name, event_index);
  return code ? code : MPI_T_ERR_INVALID_NAME;
}

}  // namespace

#include "api/entries/tools_events.inl"
