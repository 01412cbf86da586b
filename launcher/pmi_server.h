// PmiServer: the launcher's side of PMI-1 for all ranks of a job. No sockets: bytes come in by
// receive(), answers go out by the given function. Thread: the launcher's only one. Invariant: a
// rank that says something which is not PMI gets no further answer, and the job hears of it.
// Programs that follow each other in one rank (a shell script) are rounds: each round has texts
// and barriers of its own.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "bootstrap/pmi_wire.h"

namespace headway::launcher {

struct PmiEvent {
  enum class Kind { abort, garbage } kind;
  int code = 1;      // abort
  std::string text;  // abort: the message; garbage: what it said
};

enum class Stage : unsigned char {
  outside,  // has not called MPI_Init
  inside,   // between MPI_Init and MPI_Finalize
  left      // has called MPI_Finalize
};

class PmiServer {
 public:
  using Send = std::function<void(int rank, std::string_view text)>;

  // `appnums` has one entry a rank.
  PmiServer(std::string job_name, std::vector<int> appnums, Send send);

  std::optional<PmiEvent> receive(int rank, std::string_view bytes);

  // The rank's process has ended. It counts as missing for barriers from now on.
  void ended(int rank) { ranks_[size_t(rank)]->ended = true; }

  // A rank that others wait for in a barrier and that has ended, so that they wait in vain.
  std::optional<int> missing() const;

  // What was put under that key in the rank's present round, or "".
  std::string text(int rank, const std::string& key) const;

  Stage stage(int rank) const { return ranks_[size_t(rank)]->stage; }
  // The number of the barrier that the rank waits in: 1 for its first one, 0: in none.
  uint64_t barrier_of(int rank) const {
    const Rank& state = *ranks_[size_t(rank)];
    return state.in_barrier ? state.barriers : 0;
  }

 private:
  struct Rank {
    bootstrap::pmi::LineBuffer in;
    Stage stage = Stage::outside;
    int round = 0;  // 1 from the first init
    bool in_barrier = false;
    uint64_t barriers = 0;  // that it has come to
    bool in_spawn = false;  // lines of a spawn request follow
    bool ended = false;
    bool silenced = false;
  };
  struct Round {
    std::unordered_map<std::string, std::string> texts;
    int waiting = 0;
  };

  std::optional<PmiEvent> line(int rank, std::string_view text);
  std::optional<PmiEvent> command(int rank, const bootstrap::pmi::Line& line,
                                  std::string_view name);
  PmiEvent garbage(int rank, std::string_view text);
  void init(int rank, const bootstrap::pmi::Line& line);
  void barrier(int rank);
  void put(int rank, const bootstrap::pmi::Line& line);
  void get(int rank, const bootstrap::pmi::Line& line);
  void name_service(int rank, const bootstrap::pmi::Line& line, std::string_view name);
  void answer(int rank, const std::string& text) { send_(rank, text + "\n"); }
  std::string round_name(int round) const;
  Round& round_of(int rank) { return rounds_[ranks_[size_t(rank)]->round]; }

  const std::string job_name_;
  const std::vector<int> appnums_;
  const Send send_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::map<int, Round> rounds_;
  std::unordered_map<std::string, std::string> services_;
};

}  // namespace headway::launcher
