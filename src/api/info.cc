// Info objects: MPI 5.0, chapter 10. All work before MPI_Init and after MPI_Finalize too.
#include "api/detail/info.h"

#include <cstring>
#include <fcntl.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "api/detail/results.h"
#include "base/descriptors.h"
#include "base/spin_lock.h"
#include "waiting/holding.h"

namespace headway::api {
namespace {

using objects::Info;
static_assert(objects::max_info_key == MPI_MAX_INFO_KEY - 1);
static_assert(objects::max_info_value == MPI_MAX_INFO_VAL - 1);

constinit base::SpinLock env_lock;

// What is known about a process without MPI: its machine and directory. False without memory.
bool describe_place(Info& info) {
  char text[objects::max_info_value + 1];
  utsname machine;
  if (uname(&machine) == 0) {
    if (!info.set("host", machine.nodename) || !info.set("arch", machine.machine)) return false;
  }
  return !getcwd(text, sizeof text) || info.set("wdir", text);
}

// The command line as the kernel has it: words that end in NUL.
bool describe_command(Info& info) {
  char words[objects::max_info_value + 1];
  const int file = base::with_room([] { return open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC); });
  if (file < 0) return true;
  ssize_t size = 0;
  for (ssize_t n = 1; n > 0 && size < ssize_t(sizeof words) - 1; size += n > 0 ? n : 0) {
    n = read(file, words + size, sizeof words - 1 - size_t(size));
  }
  close(file);
  if (size <= 0) return true;
  words[size] = '\0';
  if (!info.set("command", words)) return false;
  const size_t first = strlen(words) + 1;
  if (ssize_t(first) >= size) return true;
  for (ssize_t i = ssize_t(first); i < size - 1; ++i) {
    if (!words[i]) words[i] = ' ';
  }
  return info.set("argv", words + first);
}

int check_key(const Story& story, const char* key) {
  if (!key) return raise(story, MPI_ERR_INFO_KEY, "the key is a null pointer");
  const size_t length = strnlen(key, MPI_MAX_INFO_KEY);
  if (length == 0) return raise(story, MPI_ERR_INFO_KEY, "the key is empty");
  if (length < MPI_MAX_INFO_KEY) return MPI_SUCCESS;
  return raise(story, MPI_ERR_INFO_KEY, "the key is too long",
               "a key has at most MPI_MAX_INFO_KEY - 1 = 255 characters");
}

// An info object that the call changes, and a key.
int take_to_change(const Story& story, MPI_Info handle, const char* key, Info*& info) {
  if (const int code = take_info(story, handle, info)) return code;
  if (handle == MPI_INFO_ENV) {
    return raise(story, MPI_ERR_INFO, "MPI_INFO_ENV cannot be changed",
                 "change a copy made by MPI_Info_dup");
  }
  return check_key(story, key);
}

}  // namespace

const char* level_name(int level) {
  switch (level) {
    case MPI_THREAD_FUNNELED: return "MPI_THREAD_FUNNELED";
    case MPI_THREAD_SERIALIZED: return "MPI_THREAD_SERIALIZED";
    case MPI_THREAD_MULTIPLE: return "MPI_THREAD_MULTIPLE";
    default: return "MPI_THREAD_SINGLE";
  }
}

bool find_level(const char* name, int& level) {
  for (const int one :
       {MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED, MPI_THREAD_MULTIPLE}) {
    if (strcmp(name, level_name(one)) != 0) continue;
    level = one;
    return true;
  }
  return false;
}

bool prepare_info_env() {
  objects::Registry& all = registry();
  base::SpinGuard guard(env_lock);
  if (all.info_env) return true;
  Info* made = Info::make();
  if (!made) return false;
  if (!describe_place(*made) || !describe_command(*made)) {
    made->release();
    return false;
  }
  made->handle = value_of(MPI_INFO_ENV);
  all.info_env = made;
  return true;
}

void complete_info_env() {
  if (!prepare_info_env()) return;
  base::Text<16> count;
  count << process().bootstrap.size();
  Info* env = registry().info_env;
  // Without memory a key is missing, which the standard allows.
  (void)!env->set("maxprocs", count.c_str());
  (void)!env->set("thread_level", level_name(process().thread_level));
}

int take_info(const Story& story, MPI_Info handle, Info*& info) {
  if (handle == MPI_INFO_ENV && !prepare_info_env()) return raise(story, Outcome::no_memory);
  info = registry().find_info(value_of(handle));
  if (info) return MPI_SUCCESS;
  return raise(story, MPI_ERR_INFO,
               value_of(handle) == value_of(MPI_INFO_NULL)
                   ? "the info object is MPI_INFO_NULL"
                   : "the info object is not valid: it was freed, or never made",
               "check the handle that is passed");
}

void use_hints(objects::Comm& comm, const Info& info) {
  objects::take_hints(comm, info);
  const uint32_t hints = comm.hints.load(std::memory_order_relaxed);
  protocols::Engine& engine = process().engine();
  const waiting::Holding holding(engine);
  // A communicator that is still being made has no context yet; without promises it is slower.
  if (comm.context) {
    engine.promise(comm.context, hints & objects::Hint::no_any_source,
                   hints & objects::Hint::no_any_tag);
  }
}

int hand_out_info(const Story& story, Info* info, MPI_Info* handle) {
  if (!info) return raise(story, Outcome::no_memory);
  if (const int code = hand_out(story, registry().infos, info, handle)) return code;
  info->handle = value_of(*handle);
  return MPI_SUCCESS;
}

}  // namespace headway::api

using namespace headway;
using namespace headway::api;
using objects::Info;

namespace {

int info_create(const char* call, MPI_Info* info) {
  const Story story{.call = call};
  return hand_out_info(story, Info::make(), info);
}

int info_create_env(const char* call, int argc, char* argv[], MPI_Info* info) {
  const Story story{.call = call};
  Info* made = Info::make();
  if (!made) return raise(story, Outcome::no_memory);
  bool complete = describe_place(*made);
  if (argc > 0 && argv && argv[0]) {
    base::Text<MPI_MAX_INFO_VAL> rest;
    for (int i = 1; i < argc && argv[i]; ++i) rest << (i > 1 ? " " : "") << argv[i];
    complete = complete && made->set("command", argv[0]);
    if (rest.size()) complete = complete && made->set("argv", rest.c_str());
  } else {
    complete = complete && describe_command(*made);
  }
  if (!complete) {
    made->release();
    return raise(story, Outcome::no_memory);
  }
  return hand_out_info(story, made, info);
}

int info_dup(const char* call, MPI_Info info, MPI_Info* newinfo) {
  const Story story{.call = call};
  Info* found = nullptr;
  if (const int code = take_info(story, info, found)) return code;
  return hand_out_info(story, found->duplicate(), newinfo);
}

int info_free(const char* call, MPI_Info* info) {
  const Story story{.call = call};
  Info* found = nullptr;
  if (const int code = take_info(story, *info, found)) return code;
  if (*info == MPI_INFO_ENV) return raise(story, MPI_ERR_INFO, "MPI_INFO_ENV cannot be freed");
  registry().infos.remove(found->handle);
  found->release();
  *info = MPI_INFO_NULL;
  return MPI_SUCCESS;
}

int info_set(const char* call, MPI_Info info, const char* key, const char* value) {
  const Story story{.call = call};
  Info* found = nullptr;
  if (const int code = take_to_change(story, info, key, found)) return code;
  if (!value) return raise(story, MPI_ERR_INFO_VALUE, "the value is a null pointer");
  if (strnlen(value, MPI_MAX_INFO_VAL) >= MPI_MAX_INFO_VAL) {
    return raise(story, MPI_ERR_INFO_VALUE, "the value is too long",
                 "a value has at most MPI_MAX_INFO_VAL - 1 = 1023 characters");
  }
  return found->set(key, value) ? MPI_SUCCESS : raise(story, Outcome::no_memory);
}

int info_delete(const char* call, MPI_Info info, const char* key) {
  const Story story{.call = call};
  Info* found = nullptr;
  if (const int code = take_to_change(story, info, key, found)) return code;
  if (found->remove(key)) return MPI_SUCCESS;
  base::Text<MPI_MAX_INFO_KEY + 40> why;
  why << "there is no key \"" << key << "\"";
  return raise(story, MPI_ERR_INFO_NOKEY, why.c_str());
}

int info_get_string(const char* call, MPI_Info info, const char* key, int* buflen, char* value,
                    int* flag) {
  const Story story{.call = call};
  Info* found = nullptr;
  if (const int code = take_info(story, info, found)) return code;
  if (const int code = check_key(story, key)) return code;
  if (*buflen < 0) return raise(story, MPI_ERR_ARG, "the buffer's length is negative");
  const char* text = found->find(key);
  *flag = text != nullptr;
  if (!text) return MPI_SUCCESS;
  const size_t length = strlen(text);
  if (*buflen > 0) {
    const size_t fits = length < size_t(*buflen) ? length : size_t(*buflen) - 1;
    memcpy(value, text, fits);
    value[fits] = '\0';
  }
  *buflen = int(length + 1);  // what the whole value needs
  return MPI_SUCCESS;
}

// Deprecated; `valuelen` does not count the NUL.
int info_get(const char* call, MPI_Info info, const char* key, int valuelen, char* value,
             int* flag) {
  const Story story{.call = call};
  Info* found = nullptr;
  if (const int code = take_info(story, info, found)) return code;
  if (const int code = check_key(story, key)) return code;
  if (valuelen < 0) return raise(story, MPI_ERR_ARG, "the value's length is negative");
  const char* text = found->find(key);
  *flag = text != nullptr;
  if (!text) return MPI_SUCCESS;
  const size_t fits = strnlen(text, size_t(valuelen));
  memcpy(value, text, fits);
  value[fits] = '\0';
  return MPI_SUCCESS;
}

int info_get_valuelen(const char* call, MPI_Info info, const char* key, int* valuelen, int* flag) {
  const Story story{.call = call};
  Info* found = nullptr;
  if (const int code = take_info(story, info, found)) return code;
  if (const int code = check_key(story, key)) return code;
  const char* text = found->find(key);
  *flag = text != nullptr;
  if (text) *valuelen = int(strlen(text));
  return MPI_SUCCESS;
}

int info_get_nkeys(const char* call, MPI_Info info, int* nkeys) {
  const Story story{.call = call};
  Info* found = nullptr;
  if (const int code = take_info(story, info, found)) return code;
  *nkeys = found->count;
  return MPI_SUCCESS;
}

int info_get_nthkey(const char* call, MPI_Info info, int n, char* key) {
  const Story story{.call = call};
  Info* found = nullptr;
  if (const int code = take_info(story, info, found)) return code;
  if (n < 0 || n >= found->count) {
    base::Text<100> why;
    why << "there is no key number " << n << ": the info object has " << found->count;
    return raise(story, MPI_ERR_ARG, why.c_str(), "keys are numbered from 0");
  }
  strcpy(key, found->at(n)->key);
  return MPI_SUCCESS;
}

}  // namespace

#include "api/entries/info.inl"
