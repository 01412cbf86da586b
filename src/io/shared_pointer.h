// SharedPointer: the place, in etypes, where the next access by a file's shared pointer begins: a
// word that the communicator's first rank has. The others ask it by a message; whoever drives that
// rank's engine answers, its message thread if it computes. The word service of one-sided
// communication takes this class's place when it is there. Thread: holder of the engine, but for
// open(). Owner: the file, which is there until close(). Invariants: of two adds one sees what the
// other has added; one receive for questions is posted at the first rank from open() to close().
#pragma once
#include <cstdint>

#include "base/outcome.h"
#include "objects/comm.h"
#include "protocols/request.h"

namespace headway::protocols {
class Engine;
}

namespace headway::io {

class SharedPointer {
 public:
  // The word as it was before; at once or later, whoever holds the engine then.
  using Told = void (*)(void* context, Outcome outcome, int64_t before);

  // Takes the engine itself. False without memory.
  bool open(protocols::Engine& engine, objects::Comm* comm);
  // All ranks are here, and nobody asks any more.
  void close();
  void add(int64_t by, Told told, void* context);

  bool is_here() const { return comm_->own.self == 0; }
  // At the first rank.
  int64_t value() const { return value_; }
  void set(int64_t to) { value_ = to; }
  int64_t add_here(int64_t by) {
    const int64_t before = value_;
    if (__builtin_add_overflow(before, by, &value_)) value_ = INT64_MAX;
    return before;
  }

 private:
  // What is asked; the answer comes with that tag.
  struct Question {
    int64_t by;
    int64_t tag;
  };
  struct Ask;
  struct Answer;

  void listen();
  bool post();
  void answer(int rank, const Question& question);
  void no_answer(int rank);
  static void asked(protocols::Request* request);
  static void answered(protocols::Request* request);
  static void part_done(protocols::Request* request);

  protocols::Engine* engine_ = nullptr;
  objects::Comm* comm_ = nullptr;
  int64_t value_ = 0;
  Question question_{};  // that is received next
  protocols::Request* listening_ = nullptr;
  bool in_listen_ = false, again_ = false, closed_ = false;
  int32_t next_tag_ = 0;
};

}  // namespace headway::io
