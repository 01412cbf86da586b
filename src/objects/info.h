// Info: an ordered list of keys and values. Thread: any, one user at a time. Owner: its handle, or
// what it was given to. Invariant: keys are unique and non-empty.
#pragma once
#include <atomic>
#include <cstdint>

namespace headway::objects {

inline constexpr size_t max_info_key = 255;  // MPI_MAX_INFO_KEY less the NUL; api/ asserts it
inline constexpr size_t max_info_value = 1023;

struct InfoEntry {
  InfoEntry* next;
  char key[max_info_key + 1];
  char value[max_info_value + 1];
};

struct Info {
  std::atomic<uint32_t> references{1};
  uintptr_t handle = 0;
  InfoEntry* first = nullptr;
  int count = 0;

  static Info* make();
  Info* duplicate() const;
  void retain() { references.fetch_add(1, std::memory_order_relaxed); }
  void release();

  const char* find(const char* key) const;
  // False without memory.
  [[nodiscard]] bool set(const char* key, const char* value);
  bool remove(const char* key);  // false if it is not there
  const InfoEntry* at(int index) const;
};

}  // namespace headway::objects
