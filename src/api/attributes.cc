// Attributes, of the program and predefined: MPI 5.0, sections 7.7, 9.1.2 and 16.1. The predefined
// ones are the same on every communicator.
#include "api/detail/attributes.h"

#include <atomic>
#include <climits>

#include "api/detail/errors.h"
#include "api/detail/results.h"
#include "api/detail/types.h"
#include "api/detail/windows.h"

using namespace headway;
using namespace headway::api;

namespace {

using objects::Attribute;
using objects::Attributes;
using objects::Keyval;
using objects::KeyvalKind;

// What the kinds of keyval differ in.
template <class Handle>
struct Kind;
template <>
struct Kind<MPI_Comm> {
  using Copy = MPI_Comm_copy_attr_function;
  using Delete = MPI_Comm_delete_attr_function;
  static constexpr KeyvalKind value = KeyvalKind::comm;
};
template <>
struct Kind<MPI_Datatype> {
  using Copy = MPI_Type_copy_attr_function;
  using Delete = MPI_Type_delete_attr_function;
  static constexpr KeyvalKind value = KeyvalKind::datatype;
};
template <>
struct Kind<MPI_Win> {
  using Copy = MPI_Win_copy_attr_function;
  using Delete = MPI_Win_delete_attr_function;
  static constexpr KeyvalKind value = KeyvalKind::window;
};

// Functions of the ABI that are numbers rather than addresses.
bool is_null_copy(const void* function) { return !function; }
bool is_dup(const void* function) { return uintptr_t(function) == abi::k_COMM_DUP_FN; }
static_assert(abi::k_COMM_NULL_COPY_FN == 0 && abi::k_TYPE_NULL_COPY_FN == 0 &&
              abi::k_NULL_COPY_FN == 0);
static_assert(abi::k_COMM_NULL_DELETE_FN == 0 && abi::k_TYPE_NULL_DELETE_FN == 0 &&
              abi::k_NULL_DELETE_FN == 0);
static_assert(abi::k_WIN_NULL_COPY_FN == 0 && abi::k_WIN_NULL_DELETE_FN == 0 &&
              abi::k_WIN_DUP_FN == abi::k_COMM_DUP_FN);
static_assert(abi::k_TYPE_DUP_FN == abi::k_COMM_DUP_FN && abi::k_DUP_FN == abi::k_COMM_DUP_FN);

// A callback may return anything that is not MPI_SUCCESS.
int as_error(int returned) { return is_error_code(returned) ? returned : MPI_ERR_OTHER; }

// Runs the delete callback of one that is marked as leaving, and takes it out unless that fails.
template <class Handle>
Callback finish_leaving(Attributes& list, Attribute* one, Handle handle, bool regardless = false) {
  const Keyval& keyval = *one->keyval;
  int code = MPI_SUCCESS;
  if (keyval.erase) {
    code = reinterpret_cast<typename Kind<Handle>::Delete*>(keyval.erase)(
        handle, keyval.number, one->value, keyval.extra_state);
  }
  list.end_leaving(one, code == MPI_SUCCESS || regardless);
  if (code == MPI_SUCCESS) return {};
  return {as_error(code), "the program's delete function of an attribute returned an error"};
}

template <class Handle>
Callback copy_one(const Attributes::Taken& one, Handle old, Attributes& to) {
  Keyval& keyval = *one.keyval;
  if (is_null_copy(keyval.copy)) return {};
  void* value = one.value;
  if (!is_dup(keyval.copy)) {
    int flag = 0;
    const int code = reinterpret_cast<typename Kind<Handle>::Copy*>(keyval.copy)(
        old, keyval.number, keyval.extra_state, one.value, static_cast<void*>(&value), &flag);
    if (code != MPI_SUCCESS) {
      return {as_error(code), "the program's copy function of an attribute returned an error"};
    }
    if (!flag) return {};
  }
  Attribute* made = objects::make_attribute(keyval, value);
  if (!made) return {MPI_ERR_NO_MEM, "no memory left for the copy of an attribute"};
  // Nobody knows the new object yet, and it gets one attribute of each keyval.
  if (to.put(made)) return {MPI_ERR_INTERN, "a new object had an attribute already"};
  return {};
}

bool is_predefined(int keyval) {
  return (keyval >= MPI_TAG_UB && keyval <= MPI_APPNUM) ||
         (keyval >= MPI_WIN_BASE && keyval <= MPI_WIN_MODEL);
}

// Finds a keyval of the program; raises MPI_ERR_KEYVAL.
int take_keyval(const Story& story, int number, KeyvalKind kind, Keyval*& keyval) {
  keyval = registry().find_keyval(number);
  if (keyval && keyval->kind == kind) return MPI_SUCCESS;
  if (keyval) {
    return raise(
        story, MPI_ERR_KEYVAL, "the keyval was made for another kind of object",
        "MPI_Comm_create_keyval makes those of communicators, MPI_Type_create_keyval those "
        "of datatypes, MPI_Win_create_keyval those of windows");
  }
  if (is_predefined(number)) {
    return raise(
        story, MPI_ERR_KEYVAL, "the keyval is predefined",
        "predefined attributes can be read on communicators (or windows), and that is all");
  }
  return raise(story, MPI_ERR_KEYVAL,
               number == MPI_KEYVAL_INVALID
                   ? "the keyval is MPI_KEYVAL_INVALID"
                   : "the keyval is not valid: freed, and nothing is cached under it any more, or "
                     "never made");
}

// `name`: how the standard calls `keyval`.
template <class Copy, class Erase>
int create_keyval(const char* call, KeyvalKind kind, Copy* copy, Erase* erase, int* keyval,
                  void* extra_state) {
  const Story story{.call = call};
  if (!is_running()) return not_running(call);
  Keyval* made = objects::make_keyval(registry().keyvals, kind, reinterpret_cast<void*>(copy),
                                      reinterpret_cast<void*>(erase), extra_state);
  if (!made) return raise(story, Outcome::no_resource);
  *keyval = made->number;
  return MPI_SUCCESS;
}

// Attributes that are left keep it. Freeing it once more meanwhile does no harm: each of several
// delete callbacks may do so.
int free_keyval(const char* call, KeyvalKind kind, int* keyval) {
  const Story story{.call = call};
  if (!is_running()) return not_running(call);
  Keyval* found;
  if (const int code = take_keyval(story, *keyval, kind, found)) return code;
  if (!found->freed.exchange(true, std::memory_order_relaxed)) objects::release(found);
  *keyval = MPI_KEYVAL_INVALID;
  return MPI_SUCCESS;
}

// `list`: null if there is no memory for one.
template <class Handle>
int set(const Story& story, Attributes* list, Handle handle, Keyval& keyval, void* value) {
  if (keyval.freed.load(std::memory_order_relaxed)) {
    return raise(story, MPI_ERR_KEYVAL, "the keyval was freed",
                 "set attributes before the keyval is freed; what is cached stays");
  }
  Attribute* made = list ? objects::make_attribute(keyval, value) : nullptr;
  if (!made) return raise(story, Outcome::no_memory);
  while (Attribute* older = list->put(made)) {
    const Callback left = finish_leaving(*list, older, handle);
    if (left.code == MPI_SUCCESS) continue;
    objects::discard(made);
    return raise(story, left);
  }
  return MPI_SUCCESS;
}

int get(const Attributes* list, const Keyval& keyval, void* attribute_val, int* flag) {
  *flag = list && list->find(keyval, *static_cast<void**>(attribute_val));
  return MPI_SUCCESS;
}

// What is not there need not be deleted.
template <class Handle>
int erase(const Story& story, Attributes* list, Handle handle, const Keyval& keyval) {
  Attribute* one = list ? list->start_leaving(&keyval) : nullptr;
  if (!one) return MPI_SUCCESS;
  const Callback left = finish_leaving(*list, one, handle);
  return left.code == MPI_SUCCESS ? left.code : raise(story, left);
}

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

int get_of_comm(const char* call, MPI_Comm comm, int number, void* attribute_val, int* flag) {
  Story story{.call = call};
  if (const int code = take_comm(story, comm)) return code;
  if (std::atomic<int>* value = find_value(number)) {
    *flag = 1;
    *static_cast<void**>(attribute_val) = value;
    return MPI_SUCCESS;
  }
  Keyval* keyval;
  if (const int code = take_keyval(story, number, KeyvalKind::comm, keyval)) return code;
  return get(&story.comm->attributes, *keyval, attribute_val, flag);
}

int set_on_comm(const char* call, MPI_Comm comm, int number, void* value) {
  Story story{.call = call};
  if (const int code = take_comm(story, comm)) return code;
  Keyval* keyval;
  if (const int code = take_keyval(story, number, KeyvalKind::comm, keyval)) return code;
  return set(story, &story.comm->attributes, comm, *keyval, value);
}

int delete_on_comm(const char* call, MPI_Comm comm, int number) {
  Story story{.call = call};
  if (const int code = take_comm(story, comm)) return code;
  Keyval* keyval;
  if (const int code = take_keyval(story, number, KeyvalKind::comm, keyval)) return code;
  return erase(story, &story.comm->attributes, comm, *keyval);
}

}  // namespace

namespace headway::api {

int raise(const Story& story, const Callback& failed) {
  return raise(story, failed.code, failed.why,
               "see what that function of the program returns; MPI_SUCCESS is expected");
}

template <class Handle>
Callback copy_attributes(const Attributes& from, Handle old, Attributes& to) {
  base::Vec<Attributes::Taken> all;
  if (!from.take_all(all)) return {MPI_ERR_NO_MEM, "no memory left for the attributes"};
  Callback result;
  for (const Attributes::Taken& one : all) {
    if (result.code == MPI_SUCCESS) result = copy_one(one, old, to);
    objects::release(one.keyval);
  }
  return result;
}
template Callback copy_attributes(const Attributes&, MPI_Comm, Attributes&);
template Callback copy_attributes(const Attributes&, MPI_Datatype, Attributes&);

template <class Handle>
Callback delete_attributes(Attributes& list, Handle handle, bool regardless) {
  Callback result;
  while (Attribute* one = list.start_leaving()) {
    const Callback left = finish_leaving(list, one, handle, regardless);
    if (left.code == MPI_SUCCESS) continue;
    if (!regardless) return left;
    if (result.code == MPI_SUCCESS) result = left;
  }
  return result;
}
template Callback delete_attributes(Attributes&, MPI_Comm, bool);
template Callback delete_attributes(Attributes&, MPI_Datatype, bool);
template Callback delete_attributes(Attributes&, MPI_Win, bool);

}  // namespace headway::api

// The names of MPI 1, for communicators.

namespace {

int type_set_attr(const char* call, MPI_Datatype datatype, int type_keyval, void* attribute_val) {
  Story story{.call = call};
  datatypes::Type* type;
  if (const int code = take_type(story, datatype, type)) return code;
  Keyval* keyval;
  if (const int code = take_keyval(story, type_keyval, KeyvalKind::datatype, keyval)) return code;
  return set(story, registry().find_attributes(*type, value_of(datatype), true), datatype, *keyval,
             attribute_val);
}
int type_get_attr(const char* call, MPI_Datatype datatype, int type_keyval, void* attribute_val,
                  int* flag) {
  Story story{.call = call};
  datatypes::Type* type;
  if (const int code = take_type(story, datatype, type)) return code;
  Keyval* keyval;
  if (const int code = take_keyval(story, type_keyval, KeyvalKind::datatype, keyval)) return code;
  return get(registry().find_attributes(*type, value_of(datatype)), *keyval, attribute_val, flag);
}
int type_delete_attr(const char* call, MPI_Datatype datatype, int type_keyval) {
  Story story{.call = call};
  datatypes::Type* type;
  if (const int code = take_type(story, datatype, type)) return code;
  Keyval* keyval;
  if (const int code = take_keyval(story, type_keyval, KeyvalKind::datatype, keyval)) return code;
  return erase(story, registry().find_attributes(*type, value_of(datatype)), datatype, *keyval);
}

// What a window itself has: its base as it is, the address of all else.
bool find_own(objects::Window& window, int keyval, void*& value) {
  switch (keyval) {
    case MPI_WIN_BASE: value = window.base; return true;
    case MPI_WIN_SIZE: value = &window.size; return true;
    case MPI_WIN_DISP_UNIT: value = &window.disp_unit; return true;
    case MPI_WIN_CREATE_FLAVOR: value = &window.flavor; return true;
    case MPI_WIN_MODEL: value = &window.model; return true;
    default: return false;
  }
}

int win_set_attr(const char* call, MPI_Win win, int win_keyval, void* attribute_val) {
  Story story{.call = call};
  if (const int code = take_window(story, win)) return code;
  Keyval* keyval;
  if (const int code = take_keyval(story, win_keyval, KeyvalKind::window, keyval)) return code;
  return set(story, &story.window->attributes, win, *keyval, attribute_val);
}
int win_get_attr(const char* call, MPI_Win win, int win_keyval, void* attribute_val, int* flag) {
  Story story{.call = call};
  if (const int code = take_window(story, win)) return code;
  if (find_own(*story.window, win_keyval, *static_cast<void**>(attribute_val))) {
    *flag = 1;
    return MPI_SUCCESS;
  }
  Keyval* keyval;
  if (const int code = take_keyval(story, win_keyval, KeyvalKind::window, keyval)) return code;
  return get(&story.window->attributes, *keyval, attribute_val, flag);
}
int win_delete_attr(const char* call, MPI_Win win, int win_keyval) {
  Story story{.call = call};
  if (const int code = take_window(story, win)) return code;
  Keyval* keyval;
  if (const int code = take_keyval(story, win_keyval, KeyvalKind::window, keyval)) return code;
  return erase(story, &story.window->attributes, win, *keyval);
}

}  // namespace

#include "api/entries/attributes.inl"
