// Datatypes, using and looking at them: MPI 5.0, sections 5.1.7 to 5.1.13.
#include <cstring>

#include "api/detail/attributes.h"
#include "api/detail/results.h"
#include "api/detail/types.h"

using namespace headway;
using namespace headway::api;

namespace {

using datatypes::Contents;
using datatypes::Type;

template <class Value>
int size_of(const char* call, MPI_Datatype datatype, Value* size) {
  Story story{.call = call};
  Type* type;
  if (const int code = take_type(story, datatype, type)) return code;
  const bool fits = sizeof(Value) == 8 || type->size() <= INT32_MAX;
  *size = fits ? Value(type->size()) : Value(MPI_UNDEFINED);
  return MPI_SUCCESS;
}

int bounds(const char* call, MPI_Datatype datatype, bool are_true, int64_t* lb, int64_t* extent) {
  Story story{.call = call};
  Type* type;
  if (const int code = take_type(story, datatype, type)) return code;
  *lb = are_true ? type->true_lb() : type->lb();
  *extent = are_true ? type->true_extent() : type->extent();
  return MPI_SUCCESS;
}

int check_contents(const Story& story, const Type& type, int64_t integers, int64_t addresses,
                   int64_t counts, int64_t types) {
  const Contents& contents = type.contents();
  if (type.predefined()) {
    return raise(story, MPI_ERR_TYPE, "a predefined datatype has no contents",
                 "ask MPI_Type_get_envelope first: its combiner is MPI_COMBINER_NAMED");
  }
  if (integers < int64_t(contents.integer_count) || addresses < int64_t(contents.address_count) ||
      counts < int64_t(contents.count_count) || types < int64_t(contents.type_count)) {
    return raise(story, MPI_ERR_ARG, "an array is too short for the contents",
                 "MPI_Type_get_envelope tells the lengths");
  }
  return MPI_SUCCESS;
}

// Lists of the contents that are not empty.
int check_lists(const Story& story, const Contents& contents, const int* integers,
                const MPI_Aint* addresses, const MPI_Count* counts, const MPI_Datatype* types) {
  if (contents.integer_count) {
    if (const int code = check_given(story, "array_of_integers", integers)) return code;
  }
  if (contents.address_count) {
    if (const int code = check_given(story, "array_of_addresses", addresses)) return code;
  }
  if (contents.count_count) {
    if (const int code = check_given(story, "array_of_large_counts", counts)) return code;
  }
  return contents.type_count ? check_given(story, "array_of_datatypes", types) : MPI_SUCCESS;
}

// Handles of the inner types: predefined ones as they are, others new, to be freed by the caller.
int give_types(const Story& story, const Type& type, MPI_Datatype* out) {
  const Contents& contents = type.contents();
  for (uint64_t i = 0; i < contents.type_count; ++i) {
    auto* inner = const_cast<Type*>(contents.types[i]);
    if (inner->predefined()) {
      out[i] = handle_of<MPI_Datatype>(datatypes::info(inner->basic()).handle);
      continue;
    }
    if (inner->parametrized()) {
      out[i] = handle_of<MPI_Datatype>(registry().handle_of_parametrized(inner));
      continue;
    }
    inner->retain();
    if (const int code = hand_out_type(story, Outcome::ok, inner, &out[i])) return code;
  }
  return MPI_SUCCESS;
}

int type_commit(const char* call, MPI_Datatype* datatype) {
  Story story{.call = call};
  Type* type;
  if (const int code = take_type(story, *datatype, type)) return code;
  type->commit();
  return MPI_SUCCESS;
}

int type_free(const char* call, MPI_Datatype* datatype) {
  Story story{.call = call};
  Type* type;
  if (const int code = take_type(story, *datatype, type)) return code;
  story.type = type;
  if (type->predefined() || type->parametrized()) {
    return raise(story, MPI_ERR_TYPE, "a predefined datatype cannot be freed",
                 "free only what a constructor such as MPI_Type_vector made");
  }
  if (objects::Attributes* list = registry().find_attributes(*type, value_of(*datatype))) {
    const Callback left = delete_attributes(*list, *datatype);
    if (left.code != MPI_SUCCESS) return raise(story, left);
    registry().drop_attributes(*type, value_of(*datatype));
  }
  registry().types.remove(value_of(*datatype));
  type->release();
  *datatype = MPI_DATATYPE_NULL;
  return MPI_SUCCESS;
}

int type_get_envelope(const char* call, MPI_Datatype datatype, int* num_integers,
                      int* num_addresses, int* num_datatypes, int* combiner) {
  Story story{.call = call};
  Type* type;
  if (const int code = take_type(story, datatype, type)) return code;
  const Contents& contents = type->contents();
  if (contents.count_count > 0) {
    return raise(story, MPI_ERR_TYPE, "the datatype was made with MPI_Count arguments",
                 "use MPI_Type_get_envelope_c");
  }
  *num_integers = int(contents.integer_count);
  *num_addresses = int(contents.address_count);
  *num_datatypes = int(contents.type_count);
  *combiner = int(type->combiner());
  return MPI_SUCCESS;
}

int type_get_envelope_c(const char* call, MPI_Datatype datatype, MPI_Count* num_integers,
                        MPI_Count* num_addresses, MPI_Count* num_large_counts,
                        MPI_Count* num_datatypes, int* combiner) {
  Story story{.call = call};
  Type* type;
  if (const int code = take_type(story, datatype, type)) return code;
  const Contents& contents = type->contents();
  *num_integers = MPI_Count(contents.integer_count);
  *num_addresses = MPI_Count(contents.address_count);
  *num_large_counts = MPI_Count(contents.count_count);
  *num_datatypes = MPI_Count(contents.type_count);
  *combiner = int(type->combiner());
  return MPI_SUCCESS;
}

int type_get_contents(const char* call, MPI_Datatype datatype, int max_integers, int max_addresses,
                      int max_datatypes, int integers[], MPI_Aint addresses[],
                      MPI_Datatype datatypes[]) {
  Story story{.call = call};
  Type* type;
  if (const int code = take_type(story, datatype, type)) return code;
  if (const int code =
          check_contents(story, *type, max_integers, max_addresses, 0, max_datatypes)) {
    return code;
  }
  const Contents& contents = type->contents();
  if (const int code = check_lists(story, contents, integers, addresses, nullptr, datatypes)) {
    return code;
  }
  if (contents.integer_count) {
    memcpy(integers, contents.integers, contents.integer_count * sizeof *integers);
  }
  if (contents.address_count) {
    memcpy(addresses, contents.addresses, contents.address_count * sizeof *addresses);
  }
  return give_types(story, *type, datatypes);
}

int type_get_contents_c(const char* call, MPI_Datatype datatype, MPI_Count max_integers,
                        MPI_Count max_addresses, MPI_Count max_large_counts,
                        MPI_Count max_datatypes, int integers[], MPI_Aint addresses[],
                        MPI_Count large_counts[], MPI_Datatype datatypes[]) {
  Story story{.call = call};
  Type* type;
  if (const int code = take_type(story, datatype, type)) return code;
  if (const int code = check_contents(story, *type, max_integers, max_addresses, max_large_counts,
                                      max_datatypes)) {
    return code;
  }
  const Contents& contents = type->contents();
  if (const int code = check_lists(story, contents, integers, addresses, large_counts, datatypes)) {
    return code;
  }
  if (contents.integer_count) {
    memcpy(integers, contents.integers, contents.integer_count * sizeof *integers);
  }
  if (contents.address_count) {
    memcpy(addresses, contents.addresses, contents.address_count * sizeof *addresses);
  }
  if (contents.count_count) {
    memcpy(large_counts, contents.counts, contents.count_count * sizeof *large_counts);
  }
  return give_types(story, *type, datatypes);
}

int type_set_name(const char* call, MPI_Datatype datatype, const char* type_name) {
  Story story{.call = call};
  Type* type;
  if (const int code = take_type(story, datatype, type)) return code;
  type->set_name(type_name);
  return MPI_SUCCESS;
}

int type_get_name(const char* call, MPI_Datatype datatype, char* type_name, int* resultlen) {
  Story story{.call = call};
  Type* type;
  // MPI_DATATYPE_NULL has a name: MPI 5.0, section 7.8.
  if (datatype == MPI_DATATYPE_NULL) {
    strcpy(type_name, "MPI_DATATYPE_NULL");
  } else {
    if (const int code = take_type(story, datatype, type)) return code;
    static_assert(MPI_MAX_OBJECT_NAME >= Type::max_name);
    strcpy(type_name, type->name());
  }
  *resultlen = int(strlen(type_name));
  return MPI_SUCCESS;
}

}  // namespace

#include "api/entries/types.inl"
