#include "color.h"

#include <cstdlib>
#include <cstring>
#include <iterator>
#include <unistd.h>

namespace headway::launcher {
namespace {

Color chosen = Color::automatic;

constexpr const char* bold = "\033[1m";
constexpr const char* plain = "\033[0m";
// Neighbouring ranks differ; black, white and the red of errors are left out.
constexpr const char* tags[] = {"\033[36m", "\033[33m", "\033[35m", "\033[32m", "\033[34m"};

bool is_set(const char* variable) {
  const char* value = getenv(variable);
  return value && *value;
}

}  // namespace

void choose_colors(Color choice) { chosen = choice; }

bool colors(int fd) {
  if (chosen != Color::automatic) return chosen == Color::always;
  const char* terminal = getenv("TERM");
  return !is_set("NO_COLOR") && terminal && *terminal && strcmp(terminal, "dumb") != 0 &&
         isatty(fd) == 1;
}

std::string paint_name(int fd, std::string_view text) {
  return colors(fd) ? bold + std::string(text) + plain : std::string(text);
}

std::string paint_tag(int fd, std::string_view text, int rank) {
  if (!colors(fd)) return std::string(text);
  return tags[static_cast<size_t>(rank) % std::size(tags)] + std::string(text) + plain;
}

}  // namespace headway::launcher
