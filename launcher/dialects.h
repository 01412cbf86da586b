// Dialects: the options of the common launchers (MPICH's Hydra, Open MPI's mpirun, and the names
// that older releases used), each with the number of words that it takes and what it means here.
// Plain data; both `-name` and `--name` are accepted for every row, as users mix them.
#pragma once
#include <string_view>

namespace headway::launcher {

enum class Words : unsigned char {
  none,
  one,
  two,
  assignment  // NAME=VALUE, or NAME VALUE
};

struct Dialect {
  std::string_view name;  // without dashes
  Words words;
  std::string_view meaning;  // our own option, or "" where it means nothing on one machine
  std::string_view value;    // given to our option where the user's has no words of its own
};

// The row of a name, or null.
const Dialect* find_dialect(std::string_view name);

// All rows, for suggestions.
const Dialect* dialects_begin();
const Dialect* dialects_end();

}  // namespace headway::launcher
