// What all collectives share, and the option that forces their algorithms.
#include <atomic>
#include <unistd.h>

#include "api/detail/collective.h"
#include "api/detail/info.h"
#include "api/detail/results.h"

namespace headway::api {
namespace {

struct Wanted {
  std::atomic<int> state{0};  // 0: not read, 1: somebody reads, 2: read
  collectives::Forced forced;
};
constinit Wanted wanted;

void warn(const char* part, uint64_t length) {
  base::Text<400> line;
  line << "headway: HEADWAY_COLL has no \"";
  line.append(part, length < 200 ? length : 200);
  line << "\"; it is ignored (docs/collectives.md lists what can be forced)\n";
  if (process().rank() == 0) line.write_to(STDERR_FILENO);
}

[[gnu::cold, gnu::noinline]] void read_wanted() {
  int nobody = 0;
  if (wanted.state.compare_exchange_strong(nobody, 1, std::memory_order_acquire)) {
    collectives::parse(process().settings.collective_algorithms, wanted.forced, warn);
    wanted.state.store(2, std::memory_order_release);  // pairs with the load below
  }
  while (wanted.state.load(std::memory_order_acquire) != 2) {
  }
}

[[gnu::cold, gnu::noinline]] int no_such_operation(const Story& story, datatypes::ReduceOp op,
                                                   bool forbidden) {
  base::Text<160> why;
  why << datatypes::op_name(op) << " is not defined on this datatype";
  if (forbidden) why << " by the MPI standard (without HEADWAY_STRICT it is computed)";
  return raise(story, MPI_ERR_OP, why.c_str(),
               forbidden && story.type->basic() == datatypes::BasicType::char_
                   ? "take MPI_SIGNED_CHAR or MPI_UNSIGNED_CHAR for small numbers; MPI_CHAR is for "
                     "text (MPI 5.0, section 6.9.2)"
                   : "take an operation that the datatype has; bitwise and logical ones want "
                     "integers (MPI 5.0, section 6.9.2)");
}

int check_way(const Story& story, const Way& way) {
  objects::Info* hints;
  return way.info == MPI_INFO_NULL ? MPI_SUCCESS : take_info(story, way.info, hints);
}

}  // namespace

int raise_root(const Story& story) {
  base::Text<100> why;
  why << "the root " << story.root << " is not a rank of the "
      << (story.comm->is_inter() ? "remote group" : "communicator");
  if (!story.comm->is_inter()) return raise(story, MPI_ERR_ROOT, why.c_str());
  return raise(story, MPI_ERR_ROOT, why.c_str(),
               "on an inter-communicator the root passes MPI_ROOT, the ranks beside "
               "it MPI_PROC_NULL, and those of the other group the root's rank");
}

int raise_place(const Story& story, int rank, int64_t place) {
  base::Text<160> why;
  why << "the displacement " << place << " of rank " << rank << "'s block leads beyond any memory";
  return raise(story, MPI_ERR_ARG, why.c_str(),
               "displacements count in extents of the datatype, in MPI_Alltoallw in bytes",
               "a displacement that was computed and has overflowed, or was never set");
}

const collectives::Forced& forced_algorithms() {
  if (wanted.state.load(std::memory_order_acquire) != 2) [[unlikely]]
    read_wanted();
  return wanted.forced;
}

int launch(const Story& story, collectives::Schedule* schedule, const Way& way) {
  if (!schedule) return raise(story, Outcome::no_memory);
  if (way.end != Way::End::wait) {
    if (const int code = check_way(story, way)) {
      schedule->destroy();
      return code;
    }
    const bool persistent = way.end == Way::End::persistent;
    return hand_out(story, persistent ? schedule->prepare() : schedule->start(process().waiter()),
                    way.request);
  }
  const Inside inside(story.call, unset, story.root_or_unset(), story.comm);
  return conclude(story, schedule->run(process().waiter()));
}

int conclude(const Story& story, Outcome outcome) {
  if (outcome == Outcome::ok) [[likely]]
    return MPI_SUCCESS;
  if (outcome == Outcome::truncated) {
    return raise(story, MPI_ERR_TRUNCATE, "the ranks disagree about the amount of data",
                 "let all ranks of the communicator call the same collectives in the same order, "
                 "with the same root and with counts and datatypes that make equally many bytes",
                 "another rank has called this collective with another count, datatype or root, or "
                 "has called another collective");
  }
  return raise(story, outcome);
}

int take_op(const Story& story, MPI_Op handle, MPI_Datatype datatype,
            collectives::Reduction& reduction) {
  objects::Op* op = registry().find_op(value_of(handle));
  if (!op) {
    return raise(story, MPI_ERR_OP,
                 "the operation is not valid: MPI_OP_NULL, freed, or never made");
  }
  reduction.op = op;
  reduction.type = story.type;
  reduction.type_handle = value_of(datatype);
  reduction.registry = &registry();
  if (op->builtin == datatypes::ReduceOp::none) return MPI_SUCCESS;
  reduction.kernel =
      op->builtin == datatypes::ReduceOp::replace || op->builtin == datatypes::ReduceOp::no_op
          ? nullptr
          : datatypes::find_reducer(op->builtin, story.type->basic());
  const bool forbidden = process().settings.strict && reduction.kernel &&
                         !datatypes::is_standard(op->builtin, story.type->basic());
  if (reduction.kernel && !forbidden) [[likely]]
    return MPI_SUCCESS;
  return no_such_operation(story, op->builtin, forbidden);
}

}  // namespace headway::api
