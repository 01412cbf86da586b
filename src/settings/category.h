// Category: what an option or a counter belongs to, and whom it is for: the sections of the
// documentation's pages and the categories and verbosities of MPI_T. Thread: any, plain data.
// Owner: none. Invariant: category_table has one row for each Category, in their order.
#pragma once
#include <cstddef>
#include <cstdint>

namespace headway::settings {

enum class Category : uint8_t {
  progress,
  transports,
  protocols,
  matching,
  early_release,
  prefetching,
  collectives,
  files,
  reporting
};

struct CategoryInfo {
  const char* name;
  const char* title;  // in the documentation
  const char* help;
};

inline constexpr CategoryInfo category_table[] = {
    {"progress", "progress", "who moves messages while the program computes, and how waits sleep"},
    {"transports", "transports", "shared memory and TCP: what passes between two ranks"},
    {"protocols", "protocols", "messages: eager, with a handshake, copied by one of the two ranks"},
    {"matching", "matching", "receives that wait for a message, messages that wait for a receive"},
    {"early_release", "early release", "receives that return before their data has come"},
    {"prefetching", "prefetching", "messages of which some travels before their send"},
    {"collectives", "collectives", "operations of all ranks of a communicator"},
    {"files", "files", "what MPI reads and writes on disks"},
    {"reporting", "reporting", "what the library tells about itself"},
};
inline constexpr size_t category_count = sizeof(category_table) / sizeof(category_table[0]);
static_assert(category_count == size_t(Category::reporting) + 1);

inline constexpr const CategoryInfo& info_of(Category category) {
  return category_table[size_t(category)];
}

enum class Audience : uint8_t { user, tuner, developer };

}  // namespace headway::settings
