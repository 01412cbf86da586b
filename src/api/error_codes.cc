// Error classes, codes and strings: MPI 5.0, sections 9.4 and 9.5.
#include <atomic>
#include <cstring>

#include "api/detail/call.h"
#include "api/detail/errors.h"
#include "api/detail/results.h"
#include "base/heap.h"
#include "base/spin_lock.h"

namespace headway::api {
namespace {

struct Text {
  int code;
  const char* name;
  const char* meaning;
};
constexpr Text texts[] = {
    {MPI_SUCCESS, "MPI_SUCCESS", "no error"},
    {MPI_ERR_BUFFER, "MPI_ERR_BUFFER", "invalid buffer"},
    {MPI_ERR_COUNT, "MPI_ERR_COUNT", "invalid count"},
    {MPI_ERR_TYPE, "MPI_ERR_TYPE", "invalid datatype"},
    {MPI_ERR_TAG, "MPI_ERR_TAG", "invalid tag"},
    {MPI_ERR_COMM, "MPI_ERR_COMM", "invalid communicator"},
    {MPI_ERR_RANK, "MPI_ERR_RANK", "invalid rank"},
    {MPI_ERR_REQUEST, "MPI_ERR_REQUEST", "invalid request"},
    {MPI_ERR_ROOT, "MPI_ERR_ROOT", "invalid root"},
    {MPI_ERR_GROUP, "MPI_ERR_GROUP", "invalid group"},
    {MPI_ERR_OP, "MPI_ERR_OP", "invalid operation"},
    {MPI_ERR_TOPOLOGY, "MPI_ERR_TOPOLOGY", "invalid topology"},
    {MPI_ERR_DIMS, "MPI_ERR_DIMS", "invalid dimensions"},
    {MPI_ERR_ARG, "MPI_ERR_ARG", "invalid argument"},
    {MPI_ERR_UNKNOWN, "MPI_ERR_UNKNOWN", "unknown error"},
    {MPI_ERR_TRUNCATE, "MPI_ERR_TRUNCATE", "message longer than the receive's buffer"},
    {MPI_ERR_OTHER, "MPI_ERR_OTHER", "another error"},
    {MPI_ERR_INTERN, "MPI_ERR_INTERN", "internal error of the library"},
    {MPI_ERR_PENDING, "MPI_ERR_PENDING", "operation neither failed nor complete"},
    {MPI_ERR_IN_STATUS, "MPI_ERR_IN_STATUS", "the errors are in the statuses"},
    {MPI_ERR_ACCESS, "MPI_ERR_ACCESS", "permission denied"},
    {MPI_ERR_AMODE, "MPI_ERR_AMODE", "invalid access mode"},
    {MPI_ERR_ASSERT, "MPI_ERR_ASSERT", "invalid assert"},
    {MPI_ERR_BAD_FILE, "MPI_ERR_BAD_FILE", "invalid file name"},
    {MPI_ERR_BASE, "MPI_ERR_BASE", "invalid base address"},
    {MPI_ERR_CONVERSION, "MPI_ERR_CONVERSION", "error in a data conversion function"},
    {MPI_ERR_DISP, "MPI_ERR_DISP", "invalid displacement"},
    {MPI_ERR_DUP_DATAREP, "MPI_ERR_DUP_DATAREP", "data representation exists already"},
    {MPI_ERR_FILE_EXISTS, "MPI_ERR_FILE_EXISTS", "file exists"},
    {MPI_ERR_FILE_IN_USE, "MPI_ERR_FILE_IN_USE", "file in use"},
    {MPI_ERR_FILE, "MPI_ERR_FILE", "invalid file handle"},
    {MPI_ERR_INFO_KEY, "MPI_ERR_INFO_KEY", "invalid info key"},
    {MPI_ERR_INFO_NOKEY, "MPI_ERR_INFO_NOKEY", "info key not there"},
    {MPI_ERR_INFO_VALUE, "MPI_ERR_INFO_VALUE", "invalid info value"},
    {MPI_ERR_INFO, "MPI_ERR_INFO", "invalid info object"},
    {MPI_ERR_IO, "MPI_ERR_IO", "input or output error"},
    {MPI_ERR_KEYVAL, "MPI_ERR_KEYVAL", "invalid keyval"},
    {MPI_ERR_LOCKTYPE, "MPI_ERR_LOCKTYPE", "invalid lock type"},
    {MPI_ERR_NAME, "MPI_ERR_NAME", "service name not published"},
    {MPI_ERR_NO_MEM, "MPI_ERR_NO_MEM", "out of memory"},
    {MPI_ERR_NOT_SAME, "MPI_ERR_NOT_SAME", "arguments differ between ranks"},
    {MPI_ERR_NO_SPACE, "MPI_ERR_NO_SPACE", "not enough space"},
    {MPI_ERR_NO_SUCH_FILE, "MPI_ERR_NO_SUCH_FILE", "no such file"},
    {MPI_ERR_PORT, "MPI_ERR_PORT", "invalid port"},
    {MPI_ERR_PROC_ABORTED, "MPI_ERR_PROC_ABORTED", "a process of the job has ended"},
    {MPI_ERR_QUOTA, "MPI_ERR_QUOTA", "quota exceeded"},
    {MPI_ERR_READ_ONLY, "MPI_ERR_READ_ONLY", "read-only"},
    {MPI_ERR_RMA_CONFLICT, "MPI_ERR_RMA_CONFLICT", "conflicting accesses to a window"},
    {MPI_ERR_RMA_SYNC, "MPI_ERR_RMA_SYNC", "wrong synchronisation of a window"},
    {MPI_ERR_SERVICE, "MPI_ERR_SERVICE", "invalid service name"},
    {MPI_ERR_SIZE, "MPI_ERR_SIZE", "invalid size"},
    {MPI_ERR_SPAWN, "MPI_ERR_SPAWN", "processes could not be started"},
    {MPI_ERR_UNSUPPORTED_DATAREP, "MPI_ERR_UNSUPPORTED_DATAREP", "unknown data representation"},
    {MPI_ERR_UNSUPPORTED_OPERATION, "MPI_ERR_UNSUPPORTED_OPERATION", "operation not supported"},
    {MPI_ERR_WIN, "MPI_ERR_WIN", "invalid window"},
    {MPI_ERR_RMA_RANGE, "MPI_ERR_RMA_RANGE", "target memory not in the window"},
    {MPI_ERR_RMA_ATTACH, "MPI_ERR_RMA_ATTACH", "memory cannot be attached"},
    {MPI_ERR_RMA_SHARED, "MPI_ERR_RMA_SHARED", "memory cannot be shared"},
    {MPI_ERR_RMA_FLAVOR, "MPI_ERR_RMA_FLAVOR", "wrong kind of window"},
    {MPI_ERR_SESSION, "MPI_ERR_SESSION", "invalid session"},
    {MPI_ERR_VALUE_TOO_LARGE, "MPI_ERR_VALUE_TOO_LARGE", "value does not fit the argument's type"},
    {MPI_ERR_ERRHANDLER, "MPI_ERR_ERRHANDLER", "invalid error handler"},
    {MPI_ERR_ABI, "MPI_ERR_ABI", "the binary interfaces do not fit together"},
    {MPI_T_ERR_CANNOT_INIT, "MPI_T_ERR_CANNOT_INIT",
     "the tools interface cannot be initialized now"},
    {MPI_T_ERR_NOT_ACCESSIBLE, "MPI_T_ERR_NOT_ACCESSIBLE",
     "what was asked for cannot be reached now"},
    {MPI_T_ERR_NOT_INITIALIZED, "MPI_T_ERR_NOT_INITIALIZED",
     "the tools interface is not initialized"},
    {MPI_T_ERR_NOT_SUPPORTED, "MPI_T_ERR_NOT_SUPPORTED", "what was asked for is not there"},
    {MPI_T_ERR_MEMORY, "MPI_T_ERR_MEMORY", "out of memory"},
    {MPI_T_ERR_INVALID, "MPI_T_ERR_INVALID", "invalid argument or use of the tools interface"},
    {MPI_T_ERR_INVALID_INDEX, "MPI_T_ERR_INVALID_INDEX", "there is nothing with that index"},
    {MPI_T_ERR_INVALID_ITEM, "MPI_T_ERR_INVALID_ITEM", "there is no item with that index"},
    {MPI_T_ERR_INVALID_SESSION, "MPI_T_ERR_INVALID_SESSION",
     "invalid session of the tools interface"},
    {MPI_T_ERR_INVALID_HANDLE, "MPI_T_ERR_INVALID_HANDLE", "invalid handle of the tools interface"},
    {MPI_T_ERR_INVALID_NAME, "MPI_T_ERR_INVALID_NAME", "there is nothing of that name"},
    {MPI_T_ERR_OUT_OF_HANDLES, "MPI_T_ERR_OUT_OF_HANDLES", "no more handles"},
    {MPI_T_ERR_OUT_OF_SESSIONS, "MPI_T_ERR_OUT_OF_SESSIONS", "no more sessions"},
    {MPI_T_ERR_CVAR_SET_NOT_NOW, "MPI_T_ERR_CVAR_SET_NOT_NOW",
     "the control variable cannot be set now"},
    {MPI_T_ERR_CVAR_SET_NEVER, "MPI_T_ERR_CVAR_SET_NEVER", "the control variable can never be set"},
    {MPI_T_ERR_PVAR_NO_WRITE, "MPI_T_ERR_PVAR_NO_WRITE",
     "the performance variable cannot be written or reset"},
    {MPI_T_ERR_PVAR_NO_STARTSTOP, "MPI_T_ERR_PVAR_NO_STARTSTOP",
     "the performance variable cannot be started or stopped"},
    {MPI_T_ERR_PVAR_NO_ATOMIC, "MPI_T_ERR_PVAR_NO_ATOMIC",
     "the performance variable cannot be read and reset at once"},
};

// Classes and codes of the user. Codes above the predefined last one.
struct UserCode {
  bool used;
  bool is_class;
  int of_class;  // for codes
  char* text;    // MPI_MAX_ERROR_STRING bytes from the heap, or null
};
constexpr int user_max = 4096;
constinit base::SpinLock lock;
constinit UserCode* user_codes = nullptr;
constinit std::atomic<int> last_used{MPI_ERR_LASTCODE};

const Text* find_text(int code) {
  for (const Text& text : texts) {
    if (text.code == code) return &text;
  }
  return nullptr;
}

UserCode* find_user(int code) {
  const int64_t index = int64_t(code) - MPI_ERR_LASTCODE - 1;
  if (!user_codes || index < 0 || index >= user_max) return nullptr;
  return user_codes[index].used ? &user_codes[index] : nullptr;
}

bool is_class(int code) {
  if (find_text(code)) return true;
  const UserCode* user = find_user(code);
  return user && user->is_class;
}

int add(bool class_, int of_class, int* out) {
  base::SpinGuard guard(lock);
  if (!user_codes) {
    user_codes = static_cast<UserCode*>(base::heap_allocate(user_max * sizeof(UserCode)));
    if (!user_codes) return MPI_ERR_NO_MEM;
    memset(user_codes, 0, user_max * sizeof(UserCode));
  }
  for (int i = 0; i < user_max; ++i) {
    if (user_codes[i].used) continue;
    user_codes[i] = {true, class_, of_class, nullptr};
    *out = MPI_ERR_LASTCODE + 1 + i;
    if (*out > last_used.load()) last_used.store(*out);
    return MPI_SUCCESS;
  }
  return MPI_ERR_NO_MEM;
}

int remove(int code, bool class_) {
  base::SpinGuard guard(lock);
  UserCode* user = find_user(code);
  // A string goes before its code or class: MPI 5.0, section 9.5.
  if (!user || user->is_class != class_ || user->text) return MPI_ERR_ARG;
  for (int i = 0; class_ && i < user_max; ++i) {
    // A class goes only after its codes.
    if (user_codes[i].used && !user_codes[i].is_class && user_codes[i].of_class == code) {
      return MPI_ERR_ARG;
    }
  }
  *user = {};
  return MPI_SUCCESS;
}

int report(const char* call, int code, const char* why) {
  if (code == MPI_SUCCESS) return code;
  return raise({.call = call}, code, why);
}

}  // namespace

int error_class(int code) {
  const UserCode* user = find_user(code);
  return user && !user->is_class ? user->of_class : code;
}

const char* error_name(int code) {
  if (const Text* text = find_text(code)) return text->name;
  const UserCode* user = find_user(code);
  return user && user->text ? user->text : "an error code of the program";
}

bool is_error_code(int code) { return find_text(code) || find_user(code); }

int last_used_code() { return last_used.load(std::memory_order_relaxed); }

}  // namespace headway::api

using namespace headway::api;

namespace {

int tell_error_class(const char*, int errorcode, int* errorclass) {
  *errorclass = error_class(errorcode);
  return MPI_SUCCESS;
}

int error_string(const char* call, int errorcode, char* string, int* resultlen) {
  headway::base::Text<MPI_MAX_ERROR_STRING> line;
  if (const Text* text = find_text(errorcode)) {
    line << text->name << ": " << text->meaning;
  } else if (const UserCode* user = find_user(errorcode)) {
    line << (user->text ? user->text : "");
  } else {
    return raise({.call = call}, MPI_ERR_ARG, "there is no such error code");
  }
  memcpy(string, line.c_str(), line.size() + 1);
  *resultlen = int(line.size());
  return MPI_SUCCESS;
}

int add_error_class(const char* call, int* errorclass) {
  return report(call, add(true, 0, errorclass), "no more error classes can be made");
}

int add_error_code(const char* call, int errorclass, int* errorcode) {
  if (!is_class(errorclass)) {
    return raise({.call = call}, MPI_ERR_ARG, "there is no such error class");
  }
  return report(call, add(false, errorclass, errorcode), "no more error codes can be made");
}

int add_error_string(const char* call, int errorcode, const char* string) {
  int code = MPI_SUCCESS;
  {
    headway::base::SpinGuard guard(lock);
    UserCode* user = find_user(errorcode);
    if (!user || strlen(string) >= MPI_MAX_ERROR_STRING) {
      code = MPI_ERR_ARG;
    } else if (!user->text && !(user->text = static_cast<char*>(
                                    headway::base::heap_allocate(MPI_MAX_ERROR_STRING)))) {
      code = MPI_ERR_NO_MEM;
    } else {
      strcpy(user->text, string);
    }
  }
  return report(call, code, "the code is not one of the program's own, or the string is too long");
}

int remove_error_string(const char* call, int errorcode) {
  int code = MPI_SUCCESS;
  {
    headway::base::SpinGuard guard(lock);
    UserCode* user = find_user(errorcode);
    if (!user || !user->text) {
      code = MPI_ERR_ARG;
    } else {
      headway::base::heap_free(user->text, MPI_MAX_ERROR_STRING);
      user->text = nullptr;
    }
  }
  return report(call, code, "this code has no string of the program");
}

}  // namespace

#include "api/entries/error_codes.inl"
