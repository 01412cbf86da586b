// Sentences of mpiexec itself: always one whole line on stderr, starting with its name.
// Thread: the launcher's only one.
#pragma once
#include <string>
#include <string_view>
#include <utility>

namespace headway::launcher {

// Where sentences go while a job runs, so that they never cut a rank's line; null: straight out.
using Speaker = void (*)(void* context, std::string_view line);
void route_sentences(Speaker speaker, void* context);

void say(std::string_view sentence);

// `printf` into a string.
std::string format(const char* pattern, ...) __attribute__((format(printf, 1, 2)));

// The names of `candidates` that a mistyped `name` may have meant, nearest first, at most three.
// Helps with every kind of name that a user types.
class NearNames {
 public:
  explicit NearNames(std::string name) : name_(std::move(name)) {}
  void offer(std::string_view candidate);
  // "; did you mean A, B or C?", or "" if nothing is near.
  // `prefix` goes before each name.
  std::string question(const std::string& prefix = "") const;

 private:
  std::string name_;
  struct Found {
    size_t distance = 1000;
    std::string text;
  };
  Found best_[3];
};

}  // namespace headway::launcher
