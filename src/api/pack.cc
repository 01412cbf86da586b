// Pack and unpack: MPI 5.0, sections 5.2 and 5.3. A packed message is the data without its gaps, in
// this machine's numbers or in those of external32.
#include "datatypes/pack.h"

#include <cstring>

#include "api/detail/message.h"
#include "api/detail/results.h"
#include "api/detail/types.h"
#include "datatypes/external32.h"

using namespace headway;
using namespace headway::api;

namespace {

// Whether `bytes` fit between *position and the buffer's end.
template <class Place>
bool is_room(Place size, Place position, uint64_t bytes) {
  return position >= 0 && size >= position && uint64_t(size - position) >= bytes;
}

int no_room_to_pack(const Story& story, const char* remedy) {
  return raise(story, MPI_ERR_ARG, "the packed data does not fit the buffer behind the position",
               remedy);
}
int nothing_to_unpack(const Story& story) {
  return raise(story, MPI_ERR_TRUNCATE, "the packed buffer ends before the data that is asked for",
               "unpack what was packed, in the same order");
}

template <class Count>
int pack(const char* call, const void* inbuf, Count incount, MPI_Datatype datatype, void* outbuf,
         Count outsize, Count* position, MPI_Comm comm) {
  Story story{.call = call};
  if (const int code = take_comm(story, comm)) return code;
  if (const int code = take_data(story, inbuf, incount, datatype)) return code;
  const uint64_t bytes = uint64_t(incount) * story.type->size();
  if (!is_room(outsize, *position, bytes)) {
    return no_room_to_pack(story, "MPI_Pack_size tells how much room is needed");
  }
  if (bytes > 0) {
    if (const int code = check_given(story, "outbuf", outbuf)) return code;
  }
  datatypes::pack(*story.type, inbuf, uint64_t(incount), 0, static_cast<char*>(outbuf) + *position,
                  bytes);
  *position += Count(bytes);
  return MPI_SUCCESS;
}

template <class Count>
int unpack(const char* call, const void* inbuf, Count insize, Count* position, void* outbuf,
           Count outcount, MPI_Datatype datatype, MPI_Comm comm) {
  Story story{.call = call};
  if (const int code = take_comm(story, comm)) return code;
  if (const int code = take_data(story, outbuf, outcount, datatype)) return code;
  const uint64_t bytes = uint64_t(outcount) * story.type->size();
  if (!is_room(insize, *position, bytes)) return nothing_to_unpack(story);
  if (bytes > 0) {
    if (const int code = check_given(story, "inbuf", inbuf)) return code;
  }
  datatypes::unpack(*story.type, outbuf, uint64_t(outcount), 0,
                    static_cast<const char*>(inbuf) + *position, bytes);
  *position += Count(bytes);
  return MPI_SUCCESS;
}

template <class Count>
int pack_size(const char* call, Count incount, MPI_Datatype datatype, MPI_Comm comm, Count* size) {
  Story story{.call = call};
  if (const int code = take_comm(story, comm)) return code;
  datatypes::Type* type;
  if (const int code = take_counted_type(story, datatype, incount, type)) return code;
  const uint64_t bytes = datatypes::packed_size(*type, uint64_t(incount));
  if (bytes > uint64_t(sizeof(Count) == 4 ? INT32_MAX : INT64_MAX)) {
    return raise(story, MPI_ERR_VALUE_TOO_LARGE, "the size does not fit the result",
                 "MPI_Pack_size_c has a wider one");
  }
  *size = Count(bytes);
  return MPI_SUCCESS;
}

int check_representation(const Story& story, const char* name) {
  if (!is_running()) return not_running(story.call);
  if (strcmp(name, "external32") == 0) return MPI_SUCCESS;
  return raise(story, MPI_ERR_ARG, "there is no such data representation",
               "\"external32\" is the one that packing knows");
}

int raise_external(const Story& story, Outcome outcome) {
  if (outcome != Outcome::bad_argument) return raise(story, outcome);
  return raise(story, MPI_ERR_VALUE_TOO_LARGE,
               "a value does not fit external32, where MPI_LONG has 4 bytes and MPI_WCHAR 2",
               "describe the data as MPI_INT64_T or MPI_LONG_LONG, which keep their 8 bytes");
}

template <class Place>
int pack_external(const char* call, const char* name, const void* inbuf, int64_t incount,
                  MPI_Datatype datatype, void* outbuf, Place outsize, Place* position) {
  Story story{.call = call};
  if (const int code = check_representation(story, name)) return code;
  if (const int code = take_data(story, inbuf, incount, datatype)) return code;
  uint64_t bytes;
  Outcome outcome = datatypes::external32_size(*story.type, uint64_t(incount), bytes);
  if (outcome != Outcome::ok) return raise_external(story, outcome);
  if (!is_room(outsize, *position, bytes)) {
    return no_room_to_pack(story, "MPI_Pack_external_size tells how much room is needed");
  }
  if (bytes > 0) {
    if (const int code = check_given(story, "outbuf", outbuf)) return code;
  }
  outcome = datatypes::pack_external32(*story.type, inbuf, uint64_t(incount),
                                       static_cast<char*>(outbuf) + *position);
  if (outcome != Outcome::ok) return raise_external(story, outcome);
  *position += Place(bytes);
  return MPI_SUCCESS;
}

template <class Place>
int unpack_external(const char* call, const char* name, const void* inbuf, Place insize,
                    Place* position, void* outbuf, int64_t outcount, MPI_Datatype datatype) {
  Story story{.call = call};
  if (const int code = check_representation(story, name)) return code;
  if (const int code = take_data(story, outbuf, outcount, datatype)) return code;
  uint64_t bytes;
  Outcome outcome = datatypes::external32_size(*story.type, uint64_t(outcount), bytes);
  if (outcome != Outcome::ok) return raise_external(story, outcome);
  if (!is_room(insize, *position, bytes)) return nothing_to_unpack(story);
  if (bytes > 0) {
    if (const int code = check_given(story, "inbuf", inbuf)) return code;
  }
  outcome = datatypes::unpack_external32(*story.type, outbuf, uint64_t(outcount),
                                         static_cast<const char*>(inbuf) + *position);
  if (outcome != Outcome::ok) return raise_external(story, outcome);
  *position += Place(bytes);
  return MPI_SUCCESS;
}

template <class Place>
int pack_external_size(const char* call, const char* name, int64_t incount, MPI_Datatype datatype,
                       Place* size) {
  Story story{.call = call};
  if (const int code = check_representation(story, name)) return code;
  datatypes::Type* type;
  if (const int code = take_counted_type(story, datatype, incount, type)) return code;
  if (datatypes::packed_size(*type, uint64_t(incount)) > INT64_MAX) {
    return raise(story, MPI_ERR_VALUE_TOO_LARGE, "the size does not fit 63 bits");
  }
  uint64_t bytes;
  const Outcome outcome = datatypes::external32_size(*type, uint64_t(incount), bytes);
  if (outcome != Outcome::ok) return raise_external(story, outcome);
  *size = Place(bytes);
  return MPI_SUCCESS;
}

}  // namespace

#include "api/entries/pack.inl"
