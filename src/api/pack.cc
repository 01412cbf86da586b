// Pack and unpack: MPI 5.0, section 5.2. A packed message is the data without its gaps.
#include "datatypes/pack.h"
#include "api/detail/message.h"

using namespace headway;
using namespace headway::api;

namespace {

template <class Count>
int pack(const char* call, const void* inbuf, Count incount, MPI_Datatype datatype, void* outbuf,
         Count outsize, Count* position, MPI_Comm comm) {
  Story story{.call = call};
  if (const int code = take_comm(story, comm)) return code;
  if (const int code = take_data(story, inbuf, incount, datatype)) return code;
  const uint64_t bytes = uint64_t(incount) * story.type->size();
  if (*position < 0 || outsize < *position || uint64_t(outsize - *position) < bytes) {
    return raise(story, MPI_ERR_ARG, "the packed data does not fit the buffer behind the position",
                 "MPI_Pack_size tells how much room is needed");
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
  if (*position < 0 || insize < *position || uint64_t(insize - *position) < bytes) {
    return raise(story, MPI_ERR_TRUNCATE,
                 "the packed buffer ends before the data that is asked for",
                 "unpack what was packed, in the same order");
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
  story.count = incount;
  if (incount < 0) return raise(story, MPI_ERR_COUNT, "the count is negative");
  story.type = registry().find_type(value_of(datatype));
  if (!story.type) return raise(story, MPI_ERR_TYPE, "the datatype is not valid");
  const uint64_t bytes = uint64_t(incount) * story.type->size();
  if (sizeof(Count) == 4 && bytes > INT32_MAX) {
    return raise(story, MPI_ERR_VALUE_TOO_LARGE, "the size does not fit an int",
                 "use MPI_Pack_size_c");
  }
  *size = Count(bytes);
  return MPI_SUCCESS;
}

}  // namespace

HEADWAY_ENTRY(MPI_Pack)(const void* inbuf, int incount, MPI_Datatype datatype, void* outbuf, int outsize,
            int* position, MPI_Comm comm) {
  return pack("MPI_Pack", inbuf, incount, datatype, outbuf, outsize, position, comm);
}
HEADWAY_ENTRY(MPI_Pack_c)(const void* inbuf, MPI_Count incount, MPI_Datatype datatype, void* outbuf,
              MPI_Count outsize, MPI_Count* position, MPI_Comm comm) {
  return pack("MPI_Pack_c", inbuf, incount, datatype, outbuf, outsize, position, comm);
}
HEADWAY_ENTRY(MPI_Unpack)(const void* inbuf, int insize, int* position, void* outbuf, int outcount,
              MPI_Datatype datatype, MPI_Comm comm) {
  return unpack("MPI_Unpack", inbuf, insize, position, outbuf, outcount, datatype, comm);
}
HEADWAY_ENTRY(MPI_Unpack_c)(const void* inbuf, MPI_Count insize, MPI_Count* position, void* outbuf,
                MPI_Count outcount, MPI_Datatype datatype, MPI_Comm comm) {
  return unpack("MPI_Unpack_c", inbuf, insize, position, outbuf, outcount, datatype, comm);
}
HEADWAY_ENTRY(MPI_Pack_size)(int incount, MPI_Datatype datatype, MPI_Comm comm, int* size) {
  return pack_size("MPI_Pack_size", incount, datatype, comm, size);
}
HEADWAY_ENTRY(MPI_Pack_size_c)(MPI_Count incount, MPI_Datatype datatype, MPI_Comm comm, MPI_Count* size) {
  return pack_size("MPI_Pack_size_c", incount, datatype, comm, size);
}
