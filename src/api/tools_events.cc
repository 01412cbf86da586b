// Events and their sources: MPI 5.0, section 15.3.8. The library has none: no index, name, handle
// or instance of one is valid.
#include "api/detail/tools.h"

using namespace headway;
using namespace headway::api;

namespace {

int refuse(int why) {
  const int code = tools::check_open();
  return code ? code : why;
}

}  // namespace

HEADWAY_ENTRY(MPI_T_source_get_num)(int* num_sources) {
  if (const int code = tools::check_places(num_sources)) return code;
  *num_sources = 0;
  return MPI_SUCCESS;
}

HEADWAY_ENTRY(MPI_T_source_get_info)(int, char*, int*, char*, int*, MPI_T_source_order*, MPI_Count*, MPI_Count*,
                         MPI_Info*) {
  return refuse(MPI_T_ERR_INVALID_INDEX);
}

HEADWAY_ENTRY(MPI_T_source_get_timestamp)(int, MPI_Count*) { return refuse(MPI_T_ERR_INVALID_INDEX); }

HEADWAY_ENTRY(MPI_T_event_get_num)(int* num_events) {
  if (const int code = tools::check_places(num_events)) return code;
  *num_events = 0;
  return MPI_SUCCESS;
}

HEADWAY_ENTRY(MPI_T_event_get_info)(int, char*, int*, int*, MPI_Datatype[], MPI_Aint[], int*, MPI_T_enum*,
                        MPI_Info*, char*, int*, int*) {
  return refuse(MPI_T_ERR_INVALID_INDEX);
}

HEADWAY_ENTRY(MPI_T_event_get_index)(const char* name, int* event_index) {
  const int code = tools::check_places(name, event_index);
  return code ? code : MPI_T_ERR_INVALID_NAME;
}

HEADWAY_ENTRY(MPI_T_event_handle_alloc)(int, void*, MPI_Info, MPI_T_event_registration*) {
  return refuse(MPI_T_ERR_INVALID_INDEX);
}

HEADWAY_ENTRY(MPI_T_event_handle_free)(MPI_T_event_registration, void*, MPI_T_event_free_cb_function) {
  return refuse(MPI_T_ERR_INVALID_HANDLE);
}

HEADWAY_ENTRY(MPI_T_event_handle_set_info)(MPI_T_event_registration, MPI_Info) {
  return refuse(MPI_T_ERR_INVALID_HANDLE);
}

HEADWAY_ENTRY(MPI_T_event_handle_get_info)(MPI_T_event_registration, MPI_Info*) {
  return refuse(MPI_T_ERR_INVALID_HANDLE);
}

HEADWAY_ENTRY(MPI_T_event_register_callback)(MPI_T_event_registration, MPI_T_cb_safety, MPI_Info, void*,
                                 MPI_T_event_cb_function) {
  return refuse(MPI_T_ERR_INVALID_HANDLE);
}

HEADWAY_ENTRY(MPI_T_event_callback_set_info)(MPI_T_event_registration, MPI_T_cb_safety, MPI_Info) {
  return refuse(MPI_T_ERR_INVALID_HANDLE);
}

HEADWAY_ENTRY(MPI_T_event_callback_get_info)(MPI_T_event_registration, MPI_T_cb_safety, MPI_Info*) {
  return refuse(MPI_T_ERR_INVALID_HANDLE);
}

HEADWAY_ENTRY(MPI_T_event_set_dropped_handler)(MPI_T_event_registration, MPI_T_event_dropped_cb_function) {
  return refuse(MPI_T_ERR_INVALID_HANDLE);
}

HEADWAY_ENTRY(MPI_T_event_read)(MPI_T_event_instance, int, void*) { return refuse(MPI_T_ERR_INVALID_HANDLE); }

HEADWAY_ENTRY(MPI_T_event_copy)(MPI_T_event_instance, void*) { return refuse(MPI_T_ERR_INVALID_HANDLE); }

HEADWAY_ENTRY(MPI_T_event_get_timestamp)(MPI_T_event_instance, MPI_Count*) {
  return refuse(MPI_T_ERR_INVALID_HANDLE);
}

HEADWAY_ENTRY(MPI_T_event_get_source)(MPI_T_event_instance, int*) { return refuse(MPI_T_ERR_INVALID_HANDLE); }
