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

int hand_out_type(const Story& story, Outcome outcome, datatypes::Type* made,
                  MPI_Datatype* handle) {
  if (outcome == Outcome::bad_argument) {
    return raise(story, MPI_ERR_ARG,
                 "a count or block length is negative, or the type spans more than 63 bits");
  }
  if (outcome != Outcome::ok) return raise(story, outcome);
  const uintptr_t value = registry().types.add(made);
  if (!value) {
    made->release();
    return raise(story, Outcome::no_resource);
  }
  *handle = handle_of<MPI_Datatype>(value);
  return MPI_SUCCESS;
}

}  // namespace headway::api

using namespace headway;
using namespace headway::api;

namespace {

using datatypes::Form;
using datatypes::Integers;
using datatypes::Type;

// Runs one constructor: make(child, made) with the child looked up. `names` and `lists`: the lists
// that a count above 0 needs.
template <class Make, class... List>
int construct(const char* call, int64_t count, MPI_Datatype old, MPI_Datatype* handle, Make&& make,
              const char* names = "", const List*... lists) {
  Story story{.call = call};
  Type* child;
  if (const int code = take_type(story, old, child)) return code;
  story.type = child;
  story.count = count;
  if (count < 0) return raise(story, MPI_ERR_COUNT, "the count is negative");
  if (const int code = check_given(story, "newtype", handle)) return code;
  if constexpr (sizeof...(lists) > 0) {
    if (count > 0) {
      if (const int code = check_given(story, names, lists...)) return code;
    }
  }
  Type* made = nullptr;
  const Outcome outcome = make(*child, made);
  return hand_out_type(story, outcome, made, handle);
}

// Part of MPI_Type_dup. On an error the new datatype goes.
int copy_type_attributes(Type& from, MPI_Datatype old, Type& copy, MPI_Datatype* handle) {
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
  Story story{.call = "MPI_Type_dup"};
  story.type = &from;
  return raise(story, copied);
}

template <class Length, class Place>
int make_struct(const char* call, Form form, int64_t count, const Length* blocks,
                const Place* displacements, const MPI_Datatype* types, MPI_Datatype* handle) {
  Story story{.call = call};
  story.count = count;
  if (!is_running()) return not_running(call);
  if (count < 0) return raise(story, MPI_ERR_COUNT, "the count is negative");
  if (const int code = check_given(story, "newtype", handle)) return code;
  if (count > 0) {
    if (const int code =
            check_given(story, "array_of_blocklengths, array_of_displacements, array_of_types",
                        blocks, displacements, types)) {
      return code;
    }
  }
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

HEADWAY_ENTRY(MPI_Type_contiguous)(int count, MPI_Datatype oldtype, MPI_Datatype* newtype) {
  return construct("MPI_Type_contiguous", count, oldtype, newtype, [&](Type& old, Type*& made) {
    return datatypes::make_contiguous(Form::narrow, count, old, made);
  });
}
HEADWAY_ENTRY(MPI_Type_contiguous_c)(MPI_Count count, MPI_Datatype oldtype, MPI_Datatype* newtype) {
  return construct("MPI_Type_contiguous_c", count, oldtype, newtype, [&](Type& old, Type*& made) {
    return datatypes::make_contiguous(Form::large, count, old, made);
  });
}
HEADWAY_ENTRY(MPI_Type_vector)(int count, int blocklength, int stride, MPI_Datatype oldtype,
                   MPI_Datatype* newtype) {
  return construct("MPI_Type_vector", count, oldtype, newtype, [&](Type& old, Type*& made) {
    return datatypes::make_vector(Form::narrow, count, blocklength, stride, old, made);
  });
}
HEADWAY_ENTRY(MPI_Type_vector_c)(MPI_Count count, MPI_Count blocklength, MPI_Count stride, MPI_Datatype oldtype,
                     MPI_Datatype* newtype) {
  return construct("MPI_Type_vector_c", count, oldtype, newtype, [&](Type& old, Type*& made) {
    return datatypes::make_vector(Form::large, count, blocklength, stride, old, made);
  });
}
HEADWAY_ENTRY(MPI_Type_create_hvector)(int count, int blocklength, MPI_Aint stride, MPI_Datatype oldtype,
                           MPI_Datatype* newtype) {
  return construct("MPI_Type_create_hvector", count, oldtype, newtype, [&](Type& old, Type*& made) {
    return datatypes::make_hvector(Form::narrow, count, blocklength, stride, old, made);
  });
}
HEADWAY_ENTRY(MPI_Type_create_hvector_c)(MPI_Count count, MPI_Count blocklength, MPI_Count stride,
                             MPI_Datatype oldtype, MPI_Datatype* newtype) {
  return construct(
      "MPI_Type_create_hvector_c", count, oldtype, newtype, [&](Type& old, Type*& made) {
        return datatypes::make_hvector(Form::large, count, blocklength, stride, old, made);
      });
}
HEADWAY_ENTRY(MPI_Type_indexed)(int count, const int blocklengths[], const int displacements[],
                    MPI_Datatype oldtype, MPI_Datatype* newtype) {
  return construct(
      "MPI_Type_indexed", count, oldtype, newtype,
      [&](Type& old, Type*& made) {
        return datatypes::make_indexed(Form::narrow, count, blocklengths, displacements, old, made);
      },
      "array_of_blocklengths, array_of_displacements", blocklengths, displacements);
}
HEADWAY_ENTRY(MPI_Type_indexed_c)(MPI_Count count, const MPI_Count blocklengths[],
                      const MPI_Count displacements[], MPI_Datatype oldtype,
                      MPI_Datatype* newtype) {
  return construct(
      "MPI_Type_indexed_c", count, oldtype, newtype,
      [&](Type& old, Type*& made) {
        return datatypes::make_indexed(Form::large, count, blocklengths, displacements, old, made);
      },
      "array_of_blocklengths, array_of_displacements", blocklengths, displacements);
}
HEADWAY_ENTRY(MPI_Type_create_hindexed)(int count, const int blocklengths[], const MPI_Aint displacements[],
                            MPI_Datatype oldtype, MPI_Datatype* newtype) {
  return construct(
      "MPI_Type_create_hindexed", count, oldtype, newtype,
      [&](Type& old, Type*& made) {
        return datatypes::make_hindexed(Form::narrow, count, blocklengths, displacements, old,
                                        made);
      },
      "array_of_blocklengths, array_of_displacements", blocklengths, displacements);
}
HEADWAY_ENTRY(MPI_Type_create_hindexed_c)(MPI_Count count, const MPI_Count blocklengths[],
                              const MPI_Count displacements[], MPI_Datatype oldtype,
                              MPI_Datatype* newtype) {
  return construct(
      "MPI_Type_create_hindexed_c", count, oldtype, newtype,
      [&](Type& old, Type*& made) {
        return datatypes::make_hindexed(Form::large, count, blocklengths, displacements, old, made);
      },
      "array_of_blocklengths, array_of_displacements", blocklengths, displacements);
}
HEADWAY_ENTRY(MPI_Type_create_indexed_block)(int count, int blocklength, const int displacements[],
                                 MPI_Datatype oldtype, MPI_Datatype* newtype) {
  return construct(
      "MPI_Type_create_indexed_block", count, oldtype, newtype,
      [&](Type& old, Type*& made) {
        return datatypes::make_indexed_block(Form::narrow, count, blocklength, displacements, old,
                                             made);
      },
      "array_of_displacements", displacements);
}
HEADWAY_ENTRY(MPI_Type_create_indexed_block_c)(MPI_Count count, MPI_Count blocklength,
                                   const MPI_Count displacements[], MPI_Datatype oldtype,
                                   MPI_Datatype* newtype) {
  return construct(
      "MPI_Type_create_indexed_block_c", count, oldtype, newtype,
      [&](Type& old, Type*& made) {
        return datatypes::make_indexed_block(Form::large, count, blocklength, displacements, old,
                                             made);
      },
      "array_of_displacements", displacements);
}
HEADWAY_ENTRY(MPI_Type_create_hindexed_block)(int count, int blocklength, const MPI_Aint displacements[],
                                  MPI_Datatype oldtype, MPI_Datatype* newtype) {
  return construct(
      "MPI_Type_create_hindexed_block", count, oldtype, newtype,
      [&](Type& old, Type*& made) {
        return datatypes::make_hindexed_block(Form::narrow, count, blocklength, displacements, old,
                                              made);
      },
      "array_of_displacements", displacements);
}
HEADWAY_ENTRY(MPI_Type_create_hindexed_block_c)(MPI_Count count, MPI_Count blocklength,
                                    const MPI_Count displacements[], MPI_Datatype oldtype,
                                    MPI_Datatype* newtype) {
  return construct(
      "MPI_Type_create_hindexed_block_c", count, oldtype, newtype,
      [&](Type& old, Type*& made) {
        return datatypes::make_hindexed_block(Form::large, count, blocklength, displacements, old,
                                              made);
      },
      "array_of_displacements", displacements);
}
HEADWAY_ENTRY(MPI_Type_create_struct)(int count, const int blocklengths[], const MPI_Aint displacements[],
                          const MPI_Datatype types[], MPI_Datatype* newtype) {
  return make_struct("MPI_Type_create_struct", Form::narrow, count, blocklengths, displacements,
                     types, newtype);
}
HEADWAY_ENTRY(MPI_Type_create_struct_c)(MPI_Count count, const MPI_Count blocklengths[],
                            const MPI_Count displacements[], const MPI_Datatype types[],
                            MPI_Datatype* newtype) {
  return make_struct("MPI_Type_create_struct_c", Form::large, count, blocklengths, displacements,
                     types, newtype);
}
HEADWAY_ENTRY(MPI_Type_create_resized)(MPI_Datatype oldtype, MPI_Aint lb, MPI_Aint extent,
                           MPI_Datatype* newtype) {
  return construct("MPI_Type_create_resized", 0, oldtype, newtype, [&](Type& old, Type*& made) {
    return datatypes::make_resized(Form::narrow, old, lb, extent, made);
  });
}
HEADWAY_ENTRY(MPI_Type_create_resized_c)(MPI_Datatype oldtype, MPI_Count lb, MPI_Count extent,
                             MPI_Datatype* newtype) {
  return construct("MPI_Type_create_resized_c", 0, oldtype, newtype, [&](Type& old, Type*& made) {
    return datatypes::make_resized(Form::large, old, lb, extent, made);
  });
}
HEADWAY_ENTRY(MPI_Type_dup)(MPI_Datatype oldtype, MPI_Datatype* newtype) {
  Type* from = nullptr;
  Type* copy = nullptr;
  const int made = construct("MPI_Type_dup", 0, oldtype, newtype, [&](Type& old, Type*& out) {
    from = &old;
    const Outcome outcome = datatypes::make_dup(old, out);
    copy = out;
    return outcome;
  });
  if (made != MPI_SUCCESS) return made;
  return copy_type_attributes(*from, oldtype, *copy, newtype);
}
HEADWAY_ENTRY(MPI_Type_create_subarray)(int ndims, const int sizes[], const int subsizes[], const int starts[],
                            int order, MPI_Datatype oldtype, MPI_Datatype* newtype) {
  return construct(
      "MPI_Type_create_subarray", ndims, oldtype, newtype,
      [&](Type& old, Type*& made) {
        return datatypes::make_subarray(Form::narrow, ndims, sizes, subsizes, starts, order, old,
                                        made);
      },
      "array_of_sizes, array_of_subsizes, array_of_starts", sizes, subsizes, starts);
}
HEADWAY_ENTRY(MPI_Type_create_subarray_c)(int ndims, const MPI_Count sizes[], const MPI_Count subsizes[],
                              const MPI_Count starts[], int order, MPI_Datatype oldtype,
                              MPI_Datatype* newtype) {
  return construct(
      "MPI_Type_create_subarray_c", ndims, oldtype, newtype,
      [&](Type& old, Type*& made) {
        return datatypes::make_subarray(Form::large, ndims, sizes, subsizes, starts, order, old,
                                        made);
      },
      "array_of_sizes, array_of_subsizes, array_of_starts", sizes, subsizes, starts);
}
HEADWAY_ENTRY(MPI_Type_create_darray)(int size, int rank, int ndims, const int gsizes[], const int distribs[],
                          const int dargs[], const int psizes[], int order, MPI_Datatype oldtype,
                          MPI_Datatype* newtype) {
  return construct(
      "MPI_Type_create_darray", ndims, oldtype, newtype,
      [&](Type& old, Type*& made) {
        return datatypes::make_darray(Form::narrow, size, rank, ndims, gsizes, distribs, dargs,
                                      psizes, order, old, made);
      },
      "array_of_gsizes, array_of_distribs, array_of_dargs, array_of_psizes", gsizes, distribs,
      dargs, psizes);
}
HEADWAY_ENTRY(MPI_Type_create_darray_c)(int size, int rank, int ndims, const MPI_Count gsizes[],
                            const int distribs[], const int dargs[], const int psizes[], int order,
                            MPI_Datatype oldtype, MPI_Datatype* newtype) {
  return construct(
      "MPI_Type_create_darray_c", ndims, oldtype, newtype,
      [&](Type& old, Type*& made) {
        return datatypes::make_darray(Form::large, size, rank, ndims, gsizes, distribs, dargs,
                                      psizes, order, old, made);
      },
      "array_of_gsizes, array_of_distribs, array_of_dargs, array_of_psizes", gsizes, distribs,
      dargs, psizes);
}
