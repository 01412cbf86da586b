// Names: where programs leave the names of their ports for others of the same user on this machine:
// a file for each, in a folder that is that user's alone. So jobs of different launchers, and
// processes without any, find each other. Thread: any. Owns nothing. Invariants: what a process has
// published is gone with it, also if it was killed: nobody is told a name of one that has ended; a
// folder or file that somebody else may write is believed in nothing.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/text.h"
#include "spawn/talk.h"

namespace headway::spawn {

enum class Named : uint8_t { done, taken, unknown, no_folder };

using NameStory = base::Text<400>;

// no_folder: `story` says which folder, and why not.
Named publish_name(const char* service, const char* port, NameStory& story);
Named unpublish_name(const char* service, NameStory& story);
Named look_up_name(const char* service, char (&port)[port_name_room], NameStory& story);

}  // namespace headway::spawn
