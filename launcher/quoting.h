// Quoting: words as a shell, or a file of srun's, takes them back. Thread: none.
#pragma once
#include <string>
#include <vector>

namespace headway::launcher {

// One word, in single quotes where it needs them.
std::string quoted(const std::string& word);
// All of them, with blanks between.
std::string quoted(const std::vector<std::string>& words);
// One word of a file of --multi-prog, where a per cent sign has a meaning, too.
std::string quoted_for_srun(const std::string& word);

}  // namespace headway::launcher
