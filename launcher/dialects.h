// Dialects: the options of the common launchers (MPICH's Hydra, Open MPI's mpirun, and the names
// that older releases used), each with the number of words that it takes and what it means here.
// Plain data; both `-name` and `--name` are accepted for every row, as users mix them. Invariant:
// what a peer's help or the standard names has a row: it is done, means nothing on one machine, or
// is refused with what to use instead. What means nothing here goes to the engine that knows it
// where the ranks are on other machines (engine_line.h), and is refused by others. --help-others,
// the manual page and docs/launcher-options.md show the rows.
#pragma once
#include <string>
#include <string_view>

namespace headway::launcher {

enum class Words : unsigned char {
  none,
  one,
  two,
  assignment  // NAME=VALUE, or NAME VALUE
};

// The engines that take an option of another launcher as it stands.
inline constexpr unsigned for_hydra = 1;
inline constexpr unsigned for_prterun = 2;
inline constexpr unsigned for_hydra_and_prterun = for_hydra | for_prterun;
inline constexpr unsigned every_engine = 4;  // without a word: all do so already

struct Dialect {
  std::string_view name;  // without dashes
  Words words;
  std::string_view meaning;  // our own option, or "" where it means nothing on one machine
  std::string_view value;    // given to our option where the user's has no words of its own
  // Why it is not done, and what to use instead; "" where it is done or means nothing.
  std::string_view refusal = "";
  unsigned takers = 0;  // of what means nothing on one machine
};

// What a row means, for help: "as --np N", "accepted: ..." or "refused: ...".
std::string explain(const Dialect& row);

// The row of a name, or null.
const Dialect* find_dialect(std::string_view name);

// All rows, for suggestions.
const Dialect* dialects_begin();
const Dialect* dialects_end();

}  // namespace headway::launcher
