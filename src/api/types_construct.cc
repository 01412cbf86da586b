// Datatype constructors: MPI 5.0, section 5.1. The int and MPI_Count forms differ in what the
// caller passes and in what MPI_Type_get_contents tells later.
#include "api/detail/attributes.h"
#include "api/detail/results.h"
#include "api/detail/types.h"
#include "base/vec.h"

namespace headway::api {

const char* why_no_type(MPI_Datatype handle) {
  if (handle == MPI_DATATYPE_NULL) return "the datatype is MPI_DATATYPE_NULL";
  // Markers of MPI-1, which mpi.h knows how to read in MPI_Type_struct alone.
  if (handle == MPI_LB || handle == MPI_UB)
    return "MPI_LB and MPI_UB, which MPI-3.0 removed, are for MPI_Type_struct alone: "
           "MPI_Type_create_resized does what they did";
  return "the datatype is not valid: it was freed, or never made";
}

int take_type(Story& story, MPI_Datatype handle, datatypes::Type*& type) {
  if (!is_running()) [[unlikely]]
    return not_running(story.call);
  type = registry().find_type(value_of(handle));
  if (type) return MPI_SUCCESS;
  return raise(story, MPI_ERR_TYPE, why_no_type(handle));
}

int take_counted_type(Story& story, MPI_Datatype handle, int64_t count, datatypes::Type*& type) {
  if (const int code = take_type(story, handle, type)) return code;
  story.type = type;
  story.count = count;
  return count < 0 ? raise(story, MPI_ERR_COUNT, "the count is negative") : MPI_SUCCESS;
}

int hand_out_type(const Story& story, Outcome outcome, datatypes::Type* made,
                  MPI_Datatype* handle) {
  if (outcome == Outcome::bad_argument) {
    return raise(story, MPI_ERR_ARG,
                 "a count or block length is negative, or the type spans more than 63 bits");
  }
  if (outcome != Outcome::ok) return raise(story, outcome);
  return hand_out(story, registry().types, made, handle);
}

}  // namespace headway::api

using namespace headway;
using namespace headway::api;

namespace {

using datatypes::Form;
using datatypes::Integers;
using datatypes::Type;

// Runs one constructor on the datatype that `old` means; `count` is told where it is wrong.
template <class Make, class... Argument>
int construct(const char* call, int64_t count, MPI_Datatype old, MPI_Datatype* handle, Make make,
              Form form, Argument... arguments) {
  Story story{.call = call};
  Type* child;
  if (const int code = take_counted_type(story, old, count, child)) return code;
  Type* made = nullptr;
  const Outcome outcome = make(form, arguments..., *child, made);
  return hand_out_type(story, outcome, made, handle);
}

Outcome resize(Form form, int64_t lb, int64_t extent, const Type& child, Type*& made) {
  return datatypes::make_resized(form, child, lb, extent, made);
}

// Part of MPI_Type_dup. On an error the new datatype goes.
int copy_type_attributes(const Story& story, Type& from, MPI_Datatype old, Type& copy,
                         MPI_Datatype* handle) {
  const objects::Attributes* list = registry().find_attributes(from, value_of(old));
  if (!list) return MPI_SUCCESS;
  const uintptr_t value = value_of(*handle);
  objects::Attributes* to = registry().find_attributes(copy, value, true);
  const Callback copied = to ? copy_attributes(*list, old, *to)
                             : Callback{MPI_ERR_NO_MEM, "no memory left for the attributes"};
  if (copied.code == MPI_SUCCESS) return MPI_SUCCESS;
  // What was copied is the program's, as its delete callbacks know.
  if (to) (void)delete_attributes(*to, *handle, true);
  registry().drop_attributes(copy, value);
  registry().types.remove(value);
  copy.release();
  *handle = MPI_DATATYPE_NULL;
  return raise(story, copied);
}

int dup(const char* call, MPI_Datatype oldtype, MPI_Datatype* newtype) {
  Story story{.call = call};
  Type *old, *made = nullptr;
  if (const int code = take_type(story, oldtype, old)) return code;
  story.type = old;
  const Outcome outcome = datatypes::make_dup(*old, made);
  if (const int code = hand_out_type(story, outcome, made, newtype)) return code;
  return copy_type_attributes(story, *old, oldtype, *made, newtype);
}

template <class Length, class Place>
int make_struct(const char* call, Form form, int64_t count, const Length* blocks,
                const Place* displacements, const MPI_Datatype* types, MPI_Datatype* handle) {
  Story story{.call = call};
  story.count = count;
  if (!is_running()) return not_running(call);
  if (count < 0) return raise(story, MPI_ERR_COUNT, "the count is negative");
  base::Vec<const Type*> children;
  for (int64_t i = 0; i < count; ++i) {
    Type* child;
    if (const int code = take_type(story, types[i], child)) return code;
    if (!children.push(child)) return raise(story, Outcome::no_memory);
  }
  Type* made = nullptr;
  const Outcome outcome =
      datatypes::make_struct(form, count, blocks, displacements, children.data(), made);
  return hand_out_type(story, outcome, made, handle);
}

}  // namespace

#include "api/entries/types_construct.inl"
