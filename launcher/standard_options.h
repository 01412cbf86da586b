// What the standard's text on mpiexec and the peers' launchers let a user write besides plain
// values: files of options, numbers of ranks that would do, names of machines. Thread: none.
// Invariant: a function that fails leaves a sentence in `error` and its result unused.
#pragma once
#include <string>
#include <vector>

namespace headway::launcher {

using WordList = std::vector<std::string>;

// Cuts a line into words as a shell would; false if a quote is not closed.
bool split_words(const std::string& line, WordList& words);

// The sections of a file of -configfile: a line each, or separated by ":"; # opens a comment line,
// a backslash at the end continues a line, quotes and backslashes work as in a shell.
bool read_config_file(const std::string& path, std::vector<WordList>& sections, std::string& error);

// How many ranks -soft LIST allows of at most `most`: the largest of the numbers a, a:b, a:b:c that
// is not above it.
bool soft_ranks(const std::string& list, int most, int& ranks, std::string& error);

// Whether -arch NAME means this machine.
bool check_architecture(const std::string& name, std::string& error);

// The parts of "A,B,C".
std::vector<std::string> split_list(const std::string& text);

}  // namespace headway::launcher
