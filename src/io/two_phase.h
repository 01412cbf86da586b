// TwoPhase: a collective access to a file. All ranks tell their parts; then each accesses the file
// for itself, or data goes to and from the owners of stretches (io/plan.h), whose disk jobs go on
// while the next stretch is gathered. All of it are schedules, one after the other, so that
// blocking, nonblocking and split calls are one way. Thread: holder of the engine, whoever that is;
// the rounds themselves are jobs without it. Owner: itself, until the operation ends. Invariants:
// between two ranks the messages of a lane are sent in the order in which they are received; of an
// owner's jobs one runs at a time, in the order of the rounds.
#pragma once
#include <cstdint>

#include "base/vec.h"
#include "collectives/schedule.h"
#include "io/operation.h"
#include "io/plan.h"
#include "io/scratch.h"

namespace headway::io {

class TwoPhase {
 public:
  // What this rank tells of its access. Without the engine: it may take a while.
  static Part part_of(const Operation& of);
  // Takes the operation to its end. Engine held; its request has begun.
  static void start(Operation& of, const Part& part);
  // There is no memory for it here. Ends the job if others wait for this rank.
  static void end_job(Operation& of);

 private:
  using Schedule = collectives::Schedule;
  using StepId = collectives::StepId;
  using Request = protocols::Request;

  // Of what one rank has in one round of one owner.
  struct Amount {
    uint32_t runs, bytes;
  };
  // A run of a message, from the start of the stretch on.
  struct Run {
    uint32_t at, bytes;
  };
  // Before the data that an owner has read.
  struct Found {
    int64_t end;  // of the file, if that is in this stretch
    int64_t error, offset;
  };
  // How an owner's writes have ended.
  struct Result {
    int64_t error, offset;
  };
  // Two slots for messages with one rank, in turns, so that one fills while the other is on its
  // way.
  struct Slots {
    char* memory;
    uint64_t bytes;  // of one
    char* of(uint64_t turn) const { return memory + (turn & 1) * bytes; }
  };
  // The latest steps with one rank, by turn: what has to be over before a slot is used again. Turns
  // count the rounds in which there is anything: then messages are posted in their order.
  struct Latest {
    StepId pack, unpack;
    StepId sent[2], unpacked[2];
    uint64_t turns;
  };
  // What an act is told: an owner, a round, a turn.
  struct What {
    uint64_t owner, round, turn;
  };

  explicit TwoPhase(Operation& of) : op_(of) {}
  void begin(const Part& part);
  void go_alone();
  void end();
  void note(const Failure& failure) {
    if (!op_.failure_) op_.failure_ = failure;
  }
  void fail(Outcome outcome);
  Outcome take_end(Request* request);
  void destroy();

  // two_phase.cc: the parts, and what each owner will get.
  static void parts_known(Request* request);
  void decide();
  bool sum_up();
  void tell_amounts();
  static void amounts_known(Request* request);

  // rounds.cc: the messages of some rounds as a schedule.
  void next_rounds();
  bool start_rounds();
  bool end_rounds();
  uint64_t last_round() const;
  static void rounds_over(Request* request);
  bool make_room(Schedule& schedule, uint64_t last);
  bool make_slots(Schedule& schedule, Slots& slots, uint64_t bytes);
  void add_round(Schedule& schedule, uint64_t round);
  void add_owned(Schedule& schedule, uint64_t round);
  void add_own(Schedule& schedule, uint64_t owner, uint64_t round);
  void add_results(Schedule& schedule, uint64_t last);
  void note_results();
  static bool pack(Schedule& schedule, StepId step, uint64_t word);
  static bool unpack(Schedule& schedule, StepId step, uint64_t word);
  static bool do_round(Schedule& schedule, StepId step, uint64_t round);

  // jobs.cc: an owner's round, without the engine.
  static void run_round(Operation& of);
  static void round_over(Operation& of);
  template <class Visit>
  void each_message(Visit&& visit);
  bool check_messages();
  void answer(int rank, const Found& found);
  void write_round(int64_t start);
  void read_round(int64_t start);
  void write_runs(int64_t start);

  bool is_owner() const { return owner_ < plan_.owners(); }
  int self() const { return op_.file().comm->own.self; }
  int ranks() const { return op_.file().comm->own.size; }
  objects::Team team() const { return op_.file().comm->own; }
  Amount& own(uint64_t owner, uint64_t round) { return own_[owner * plan_.rounds() + round]; }
  Amount& theirs(int rank, uint64_t round) {
    return theirs_[uint64_t(rank) * plan_.rounds() + round];
  }
  uint64_t word_of(const What& what) const {
    return (what.owner * plan_.rounds() + what.round) * 2 + what.turn;
  }
  What what_of(uint64_t word) const {
    return {word / 2 / plan_.rounds(), word / 2 % plan_.rounds(), word & 1};
  }
  // This rank's slice in that stretch, or null.
  const Slice* find_slice(uint64_t stretch) const;
  static uint64_t list_bytes(const Amount& amount) { return amount.runs * sizeof(Run); }
  // Of a message to an owner, and of its answer (reads).
  uint64_t to_owner(const Amount& amount) const {
    return list_bytes(amount) + (op_.writes() ? amount.bytes : 0);
  }
  static uint64_t from_owner(const Amount& amount) { return sizeof(Found) + amount.bytes; }

  Operation& op_;
  Schedule* schedule_ = nullptr;  // of the rounds under way
  int tags_[3] = {};              // of the schedules: parts, amounts, rounds
  uint64_t owner_ = 0;            // which one this rank is
  Plan plan_;
  base::Vec<Part> parts_;
  base::Vec<Slice> slices_;
  base::Vec<Amount> own_, theirs_;
  base::Vec<Slots> out_, back_;    // by owner: to it, and from it (reads)
  base::Vec<Slots> in_, answers_;  // by rank: from it, and to it (reads)
  base::Vec<Latest> latest_;       // by owner
  base::Vec<StepId> answered_;     // by rank, two turns each (reads)
  base::Vec<Result> results_;      // by owner (writes)
  base::Vec<Run> runs_;            // of the round that a job works on
  Result result_{};                // of this rank's own jobs
  uint64_t next_round_ = 0;
  bool starting_ = false, rounds_over_ = false;
  Outcome rounds_outcome_ = Outcome::ok;
  StepId jobs_[2] = {};  // of the last two rounds
  StepId job_step_ = 0;  // whose job is under way
  uint64_t job_round_ = 0;
  int64_t end_ = INT64_MAX;      // of the file, as far as answers tell
  int64_t own_end_ = INT64_MAX;  // and our own jobs
  Scratch scratch_;
};

}  // namespace headway::io
