// Colour in what mpiexec itself writes: its name before its sentences, the tags of --tag-output.
// (What a rank colours is its own business: it sees a terminal exactly if there is one.)
// Thread: the launcher's only one. Invariant: automatic never colours a file or a pipe, and heeds
// NO_COLOR (no-color.org) and a TERM that cannot do it.
#pragma once
#include <string>
#include <string_view>

namespace headway::launcher {

enum class Color { automatic, always, never };

void choose_colors(Color choice);
// Whether text for this descriptor may hold colours.
bool colors(int fd);
// `text`, coloured if `fd` takes it: as mpiexec's name, or as the tag of a rank.
std::string paint_name(int fd, std::string_view text);
std::string paint_tag(int fd, std::string_view text, int rank);

}  // namespace headway::launcher
