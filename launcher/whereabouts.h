// Whereabouts: where the ranks of a job stand, read when the job is ended from outside: by its time
// limit, or by Ctrl-C. A rank of our library tells once where in its memory that is written
// (base/whereabouts.h), and we read it there, so a rank that hangs need not do anything, and no
// signal of the program is used up. Thread: the launcher's only one. Owns nothing. What two looks
// at the ranks prove: causes.h.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <sys/types.h>
#include <utility>
#include <vector>

namespace headway::launcher {

// The ranks of a communicator, by their numbers in the job. Copies share the list: thousands of
// ranks may have it.
class Members {
 public:
  Members() : Members(std::vector<int>()) {}
  Members(std::vector<int> ranks)
      : ranks_(std::make_shared<const std::vector<int>>(std::move(ranks))) {}
  Members(std::initializer_list<int> ranks) : Members(std::vector<int>(ranks)) {}
  auto begin() const { return ranks_->begin(); }
  auto end() const { return ranks_->end(); }
  size_t size() const { return ranks_->size(); }
  const std::vector<int>& list() const { return *ranks_; }

 private:
  std::shared_ptr<const std::vector<int>> ranks_;
};

// A communicator of a rank.
struct SeenComm {
  uint64_t context = 0;      // the same at all its ranks, and of no other one
  uint32_t collectives = 0;  // that this rank has begun on it
  std::string name;
  Members members;
  // Of an inter-communicator, which has both sides in `members`: so many are of the rank's own.
  size_t own = 0;
  bool is_beyond(int rank) const {
    size_t place = 0;
    while (place < members.size() && members.list()[place] != rank) ++place;
    return own != 0 && place >= own && place < members.size();
  }
  // Those that its messages come from: of two sides the other one.
  Members senders() const {
    if (own == 0) return members;
    const std::vector<int>& all = members.list();
    return std::vector<int>(all.begin() + std::ptrdiff_t(std::min(own, all.size())), all.end());
  }
  // A number for these, among the communicator's sides. -1: there is one side.
  int side() const { return own != 0 && own < members.size() ? members.list()[own] : -1; }
};

// Where in the program a call stands (sites.h).
struct Site {
  uint64_t address = 0;  // in the rank's memory, behind the call; 0: not known
  std::string module;    // the file that it is of; "": not known
  uint64_t offset = 0;   // there, as debuggers count
  std::string line;      // "ring.c:14", as far as it was asked for and can be told
};

// A receive that was released before its match, and waits for that still.
struct SeenUnmatched {
  uint64_t serial = 0;  // 0: there is none
  std::string call;     // that released it
  int peer = 0, tag = 0;
  int awaited = -1;  // rank in the job
  uint64_t context = 0;
  Site site;
};

// Ranks in the job; of one number are the same ones.
struct RankSet {
  uint64_t number = 0;
  Members members;
};

// What a rank cannot go on without, where that is not told by its call but was found out by whoever
// looked (told_looks.h).
struct Needs {
  bool known = false;
  bool open = false;  // it may go on whatever the others do
  RankSet all;
  std::vector<RankSet> any;  // of each of them one
};

// Where one rank stands.
struct Spot {
  enum class Kind : unsigned char {
    unknown,    // not our library, or its memory may not be read
    before,     // has not called MPI_Init
    computing,  // outside MPI
    in_call,    // inside `call`
    left,       // has left MPI, and a session may bring it back
    ended       // its process has ended
  } kind = Kind::unknown;
  std::string call;
  int peer = 0;  // base::nobody: none, -1: any
  int tag = 0;   // of a collective: its root

  // What base::Whereabouts has.
  uint64_t waits = 0, vain = 0, moves = 0, polls = 0;
  int awaited = -1;  // rank in the job, -1: several, or not known
  std::string poll;
  int poll_peer = 0, poll_tag = 0;
  uint64_t context = 0;  // of the communicator that the call is on; 0: none
  std::vector<SeenComm> comms;
  std::vector<uint64_t> signs;
  uint64_t frames_out = 0, frames_in = 0;
  bool connecting = false;    // a connection is being made, and messages may wait for it
  bool unsteady = false;      // it changed faster than it could be read
  bool many_threads = false;  // another thread may be in another call
  bool abroad = false;        // what it waits for may come from another job
  uint64_t barrier = 0;       // the launcher's own, at the start, that the rank waits in; 0: none
  Site site;                  // of `call`
  // Until its message comes nothing leaves this rank, whatever it does.
  SeenUnmatched unmatched;
  bool listens = false;      // its message thread sleeps, and whatever comes would have woken it
  bool one_thread = false;   // beside the library's own; looked at where a receive is unmatched
  bool is_released = false;  // `call` and the rest are those of `unmatched` (causes.h)
  // Of a rank of another MPI.
  Needs needs;
  std::string on;     // its call's communicator, in words; "": not to be said
  bool done = false;  // it has left MPI for ever
  // Of the process.
  bool asleep = false;  // the thread that waits sleeps, and nothing has woken it
  char state = '?';     // as in /proc/PID/stat
  uint64_t cpu_ticks = 0;

  bool same_place(const Spot& other) const {
    return kind == other.kind && call == other.call && peer == other.peer && tag == other.tag;
  }
};

struct Seen {
  int rank = 0;
  pid_t pid = -1;
  Spot spot;
};

// Reads the spot of a process that put `told` as its place, with all its communicators on demand;
// else with that of its call, if which ranks it waits for depends on it.
Spot look_at(pid_t pid, const std::string& told, bool with_comms = true);
// State and processor time of a process.
void look_at_process(pid_t pid, Spot& spot);

}  // namespace headway::launcher
