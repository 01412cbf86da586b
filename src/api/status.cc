// Statuses: counts of received messages: MPI 5.0, sections 3.2.5 and 3.8.4.
#include "api/detail/status.h"

#include "api/detail/call.h"
#include "api/detail/results.h"
#include "api/detail/types.h"

using namespace headway;
using namespace headway::api;

namespace {

// `elements`: basic elements rather than whole ones of the type.
int count_of(const char* call, const MPI_Status* status, MPI_Datatype datatype, bool elements,
             MPI_Count& count) {
  Story story{.call = call};
  datatypes::Type* type;
  if (const int code = take_type(story, datatype, type)) return code;
  uint64_t n = 0;
  const bool defined = elements ? datatypes::elements_in(*type, bytes_of(status), n)
                                : datatypes::count_in(*type, bytes_of(status), n);
  count = defined ? MPI_Count(n) : MPI_Count(MPI_UNDEFINED);
  return MPI_SUCCESS;
}

int get_count(const char* call, const MPI_Status* status, MPI_Datatype datatype, bool elements,
              int* count) {
  MPI_Count wide = 0;
  if (const int code = count_of(call, status, datatype, elements, wide)) return code;
  // A count that an int cannot hold is undefined in this form: the _c form tells it.
  *count = wide > INT32_MAX ? MPI_UNDEFINED : int(wide);
  return MPI_SUCCESS;
}

int set_elements(const char* call, MPI_Status* status, MPI_Datatype datatype, MPI_Count count) {
  Story story{.call = call};
  datatypes::Type* type;
  if (const int code = take_counted_type(story, datatype, count, type)) return code;
  // Elements of a type of unequal parts are taken as whole ones of it first.
  const uint64_t per = type->elements() ? type->elements() : 1;
  const uint64_t whole = uint64_t(count) / per, rest = uint64_t(count) % per;
  if (type->size() > 0 && whole > base::most_bytes / type->size()) {
    return raise(story, MPI_ERR_COUNT, "no memory is as large as that many elements");
  }
  set_bytes(status, whole * type->size() +
                        rest * (type->element_size() ? type->element_size() : type->size() / per));
  return MPI_SUCCESS;
}

int get_count(const char* call, const MPI_Status* status, MPI_Datatype datatype, bool elements,
              MPI_Count* count) {
  MPI_Count wide = 0;
  if (const int code = count_of(call, status, datatype, elements, wide)) return code;
  *count = wide;
  return MPI_SUCCESS;
}

// Those of single fields work before MPI_Init, too.
int test_cancelled(const char*, const MPI_Status* status, int* flag) {
  *flag = is_cancelled(status);
  return MPI_SUCCESS;
}
int status_set_cancelled(const char*, MPI_Status* status, int flag) {
  set_cancelled(status, flag != 0);
  return MPI_SUCCESS;
}

int status_get_source(const char*, const MPI_Status* status, int* source) {
  *source = status->MPI_SOURCE;
  return MPI_SUCCESS;
}
int status_set_source(const char*, MPI_Status* status, int source) {
  status->MPI_SOURCE = source;
  return MPI_SUCCESS;
}
int status_get_tag(const char*, const MPI_Status* status, int* tag) {
  *tag = status->MPI_TAG;
  return MPI_SUCCESS;
}
int status_set_tag(const char*, MPI_Status* status, int tag) {
  status->MPI_TAG = tag;
  return MPI_SUCCESS;
}
int status_get_error(const char*, const MPI_Status* status, int* error) {
  *error = status->MPI_ERROR;
  return MPI_SUCCESS;
}
int status_set_error(const char*, MPI_Status* status, int error) {
  status->MPI_ERROR = error;
  return MPI_SUCCESS;
}

}  // namespace

#include "api/entries/status.inl"
