// The few types, numbers and key names of the PMIx interface that we use, as its version 4 and 5
// libraries lay them out. Written from the public interface, so that no PMIx header is needed to
// build. Invariant: sizes and offsets are pinned below.
#pragma once
#include <cstddef>
#include <cstdint>

namespace headway::bootstrap::pmix {

using Status = int;
inline constexpr Status success = 0;

inline constexpr uint32_t rank_undefined = UINT32_MAX;
inline constexpr uint32_t rank_wildcard = UINT32_MAX - 1;
inline constexpr uint8_t scope_global = 3;

inline constexpr uint16_t type_bool = 1;
inline constexpr uint16_t type_string = 3;
inline constexpr uint16_t type_int = 6;
inline constexpr uint16_t type_uint32 = 14;

struct Process {
  char name_space[256];
  uint32_t rank;
};
static_assert(sizeof(Process) == 260);

struct Value {
  uint16_t type;
  union Data {
    bool flag;
    char* string;
    int integer;
    uint32_t uint32;
    struct {
      void* a;
      void* b;
      void* c;
    } widest;
  } data;
};
static_assert(sizeof(Value) == 32 && offsetof(Value, data) == 8);

struct Info {
  char key[512];
  uint32_t flags;
  Value value;
};
static_assert(sizeof(Info) == 552 && offsetof(Info, value) == 520);

struct Functions {
  Status (*init)(Process* self, Info* info, size_t count);
  Status (*finalize)(const Info* info, size_t count);
  Status (*abort)(int status, const char* message, Process* processes, size_t count);
  Status (*put)(uint8_t scope, const char* key, Value* value);
  Status (*commit)();
  Status (*fence)(const Process* processes, size_t count, const Info* info, size_t info_count);
  Status (*get)(const Process* process, const char* key, const Info* info, size_t count,
                Value** value);
  const char* (*error_string)(Status status);
};

}  // namespace headway::bootstrap::pmix
