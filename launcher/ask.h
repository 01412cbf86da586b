// What another program prints when it is asked something: a reader of lines, a launcher's version.
// Thread: the launcher's only one, which waits. Owns nothing. Invariant: it takes no longer than it
// is given, and the program is gone when it returns.
#pragma once
#include <chrono>
#include <string>
#include <vector>

namespace headway::launcher {

// What the program prints to stdout, as far as it does so before `end`; `found` is false where
// there is no such program.
std::string output_of(const std::vector<std::string>& words,
                      std::chrono::steady_clock::time_point end, bool& found);

}  // namespace headway::launcher
