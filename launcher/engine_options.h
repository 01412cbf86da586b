// The one table of how each engine is told each of our options (docs/engine-options.md is made of
// it). Thread: none. Invariant: an option that is given is told, done in another way that the table
// names, or refused by its name; none is dropped.
#pragma once
#include <string>
#include <vector>

#include "engine.h"
#include "plan.h"

namespace headway::launcher {

// Adds the words for the options that are told by words alone, in the table's order. "", or the
// sentence about the first that this engine cannot be told.
std::string translate_options(const Plan& plan, EngineKind kind, std::vector<std::string>& words);

// The same for the options of other launchers that mean nothing on one machine.
std::string translate_peer_options(const Plan& plan, EngineKind kind,
                                   std::vector<std::string>& words);

// "--ppn is not handed over to flux run: ..."
std::string not_handed_over(const std::string& option, EngineKind kind, const std::string& why);

// A path as it is seen from any folder.
std::string absolute(const std::string& path);
// The same of a pattern, where a folder's own per cent signs are doubled; "" stays "".
std::string absolute_pattern(const std::string& pattern);
std::string doubled_per_cent(const std::string& text);

// All rows, for scripts/make-man-pages.py: a line each, its parts behind tabs.
void print_engine_rows();

}  // namespace headway::launcher
