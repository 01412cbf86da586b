// Operations on windows: MPI 5.0, section 12.3. Each body checks, converts, calls and translates.
#include "api/detail/message.h"
#include "api/detail/requests.h"
#include "api/detail/results.h"
#include "api/detail/windows.h"
#include "rma/access.h"

using namespace headway;
using namespace headway::api;

namespace {

using datatypes::BasicType;
using datatypes::ReduceOp;
using datatypes::Type;

// One side of an operation as the program gives it.
struct Side {
  const void* buffer;
  int64_t count;
  MPI_Datatype datatype;
};
struct TargetSide {
  int rank;
  MPI_Aint disp;
  int64_t count;
  MPI_Datatype datatype;
};

// A side that was checked.
struct Data {
  const void* buffer = nullptr;
  uint64_t count = 0;
  const Type* type = nullptr;

  uint64_t bytes() const { return count * type->size(); }
  rma::UserMemory memory() const { return {buffer, count, *type}; }
};

int take_side(Story& story, const Side& side, Data& data) {
  if (const int code = take_data(story, side.buffer, side.count, side.datatype)) return code;
  data = {side.buffer, uint64_t(side.count), story.type};
  return MPI_SUCCESS;
}

// The datatype and count of memory that is the target's: its address means nothing here.
int take_there(Story& story, const TargetSide& side, Data& data) {
  return take_side(story, {&story, side.count, side.datatype}, data);
}

int check_epoch(const Story& story, int rank, bool wants_request) {
  const rma::Window& window = window_of(story);
  if (!window.may_access(rank)) [[unlikely]] {
    return raise_sync(story, "no epoch is open in which this rank may access that target",
                      "call MPI_Win_fence, MPI_Win_start with the target in its group, "
                      "MPI_Win_lock on it, or MPI_Win_lock_all before");
  }
  if (wants_request && !window.is_passive(rank)) [[unlikely]] {
    return raise_sync(story, "operations with a request are for epochs of locks alone",
                      "open the epoch with MPI_Win_lock or MPI_Win_lock_all");
  }
  return MPI_SUCCESS;
}

// Where the data lies in the target's window; raises what is outside, as far as that is known here.
int find_place(const Story& story, const TargetSide& side, const Data& data, int64_t& at) {
  const rma::Window& window = window_of(story);
  const rma::Target& target = window.targets[size_t(side.rank)];
  if (window.is_dynamic()) {
    at = side.disp;
    return MPI_SUCCESS;
  }
  if (side.disp < 0) return raise(story, MPI_ERR_DISP, "the displacement is negative");
  const datatypes::Span span = datatypes::span(*data.type, data.count);
  int64_t low = 0, high = 0;
  const bool fits = !__builtin_mul_overflow(int64_t(side.disp), target.unit, &at) &&
                    !__builtin_add_overflow(at, span.low, &low) &&
                    !__builtin_add_overflow(at, span.high, &high);
  if (data.bytes() == 0) {
    at = 0;
    return MPI_SUCCESS;
  }
  if (fits && low >= 0 && uint64_t(high) <= target.size) [[likely]]
    return MPI_SUCCESS;
  base::Text<200> why;
  why << "the data lies outside of the target's memory, which has " << target.size << " bytes";
  if (fits) why << ": it begins at byte " << low << " and ends before byte " << high;
  return raise(story, MPI_ERR_RMA_RANGE, why.c_str(),
               "compare displacement, count and datatype with the size and the unit that the "
               "target gave for its window");
}

// The window and the target; nothing is left to be done if that is MPI_PROC_NULL.
int take_target(Story& story, MPI_Win win, const TargetSide& side, bool wants_request) {
  if (const int code = take_window(story, win)) return code;
  if (const int code = check_target(story, side.rank)) return code;
  return side.rank == MPI_PROC_NULL ? MPI_SUCCESS : check_epoch(story, side.rank, wants_request);
}

int check_lengths(const Story& story, const Data& here, const Data& there) {
  if (here.bytes() == there.bytes()) [[likely]]
    return MPI_SUCCESS;
  base::Text<160> why;
  why << "the data here has " << here.bytes() << " bytes, that at the target " << there.bytes();
  return raise(story, MPI_ERR_ARG, why.c_str(),
               "pass counts and datatypes of both sides that make equally many bytes");
}

rma::There there_of(const Story& story, int rank, int64_t at, const Data& data) {
  return {window_of(story), rank, at, data.count, *data.type};
}

// Ends a call: an error, or a request for who wants one.
int finish(const Story& story, Outcome outcome, const rma::Handle& handle, MPI_Request* request) {
  if (outcome != Outcome::ok) [[unlikely]]
    return raise(story, outcome);
  return handle.asked ? hand_out(story, handle.made, request) : MPI_SUCCESS;
}

// An operation on nobody's memory is over at once.
int finish_nobody(const Story& story, MPI_Request* request) {
  if (!request) return MPI_SUCCESS;
  return hand_out(
      story, p2p::make_complete(process().waiter(), story.window->comm, MPI_PROC_NULL, MPI_ANY_TAG),
      request);
}

using Move = Outcome (*)(waiting::Waiter&, const rma::There&, const rma::UserMemory&, rma::Handle&);

template <Move move>
int transfer(const char* call, const Side& origin, const TargetSide& target, MPI_Win win,
             MPI_Request* request) {
  Story story{.call = call};
  if (const int code = take_target(story, win, target, request != nullptr)) return code;
  Data there, here;
  if (const int code = take_there(story, target, there)) return code;
  if (const int code = take_side(story, origin, here)) return code;
  if (target.rank == MPI_PROC_NULL) return finish_nobody(story, request);
  if (const int code = check_lengths(story, here, there)) return code;
  int64_t at = 0;
  if (const int code = find_place(story, target, there, at)) return code;
  const Inside inside(call, target.rank, unset, story.window->comm);
  rma::Handle handle{.asked = request != nullptr};
  const Outcome outcome =
      move(process().waiter(), there_of(story, target.rank, at, there), here.memory(), handle);
  return finish(story, outcome, handle, request);
}

int put(const char* call, const void* origin_addr, int64_t origin_count, MPI_Datatype origin_type,
        int target_rank, MPI_Aint target_disp, int64_t target_count, MPI_Datatype target_type,
        MPI_Win win, MPI_Request* request = nullptr) {
  return transfer<rma::put>(call, {origin_addr, origin_count, origin_type},
                            {target_rank, target_disp, target_count, target_type}, win, request);
}

int get(const char* call, void* origin_addr, int64_t origin_count, MPI_Datatype origin_type,
        int target_rank, MPI_Aint target_disp, int64_t target_count, MPI_Datatype target_type,
        MPI_Win win, MPI_Request* request = nullptr) {
  return transfer<rma::get>(call, {origin_addr, origin_count, origin_type},
                            {target_rank, target_disp, target_count, target_type}, win, request);
}

// The elements that an operation works on, of the target's datatype; none, if it works on nothing.
int take_element(const Story& story, const Data& data, BasicType& element) {
  element = data.bytes() ? rma::element_of(*data.type) : BasicType::none;
  if (element != BasicType::none || data.bytes() == 0) return MPI_SUCCESS;
  return raise(story, MPI_ERR_TYPE,
               "the target's datatype is not made of one predefined datatype alone",
               "accumulates work on elements of one kind, such as MPI_DOUBLE, in any layout");
}

int check_elements(const Story& story, const Data& data, BasicType element) {
  if (data.bytes() == 0 || rma::is_same(rma::element_of(*data.type), element)) return MPI_SUCCESS;
  return raise(story, MPI_ERR_TYPE, "both sides are made of different predefined datatypes",
               "accumulates convert nothing: pass the datatype of the target's memory here, too");
}

// A predefined operation that the elements have.
int take_work(const Story& story, MPI_Op handle, BasicType element, rma::Work& work) {
  const objects::Op* op = registry().find_op(value_of(handle));
  if (!op) {
    return raise(story, MPI_ERR_OP,
                 "the operation is not valid: MPI_OP_NULL, freed, or never made");
  }
  if (op->builtin == ReduceOp::none) {
    return raise(story, MPI_ERR_OP, "the operation is the program's own",
                 "accumulates take predefined operations alone, since others carry them out");
  }
  work.op = op->builtin;
  if (element == BasicType::none) return MPI_SUCCESS;  // of nothing
  const bool copies = op->builtin == ReduceOp::replace || op->builtin == ReduceOp::no_op;
  const bool forbidden =
      process().settings.strict && !copies && !datatypes::is_standard(op->builtin, element);
  if (!forbidden && rma::find_work(op->builtin, element, work)) return MPI_SUCCESS;
  base::Text<160> why;
  why << datatypes::op_name(op->builtin) << " is not defined on " << datatypes::info(element).name;
  return raise(story, MPI_ERR_OP, why.c_str(),
               "take an operation that the datatype has; bitwise and logical ones want integers");
}

// What both kinds of accumulate are told.
struct Operation {
  Data there, here;
  BasicType element = BasicType::none;
  rma::Work work;

  // With MPI_NO_OP the origin's data means nothing, whatever it is.
  rma::UserMemory operand() const { return work.has_operand() ? here.memory() : rma::UserMemory(); }
};

int take_operation(Story& story, MPI_Op op, const TargetSide& target, const Side& origin,
                   Operation& found) {
  if (const int code = take_there(story, target, found.there)) return code;
  if (const int code = take_element(story, found.there, found.element)) return code;
  if (const int code = take_work(story, op, found.element, found.work)) return code;
  if (!found.work.has_operand()) return MPI_SUCCESS;
  if (const int code = take_side(story, origin, found.here)) return code;
  if (const int code = check_lengths(story, found.here, found.there)) return code;
  return check_elements(story, found.here, found.element);
}

int accumulate(const char* call, const void* origin_addr, int64_t origin_count,
               MPI_Datatype origin_type, int target_rank, MPI_Aint target_disp,
               int64_t target_count, MPI_Datatype target_type, MPI_Op op, MPI_Win win,
               MPI_Request* request = nullptr) {
  Story story{.call = call};
  const TargetSide target{target_rank, target_disp, target_count, target_type};
  if (const int code = take_target(story, win, target, request != nullptr)) return code;
  Operation work;
  const Side given{origin_addr, origin_count, origin_type};
  if (const int code = take_operation(story, op, target, given, work)) return code;
  if (target_rank == MPI_PROC_NULL) return finish_nobody(story, request);
  int64_t at = 0;
  if (const int code = find_place(story, target, work.there, at)) return code;
  const Inside inside(call, target_rank, unset, story.window->comm);
  rma::Handle handle{.asked = request != nullptr};
  const Outcome outcome =
      rma::accumulate(process().waiter(), there_of(story, target_rank, at, work.there), work.work,
                      work.operand(), handle);
  return finish(story, outcome, handle, request);
}

int get_accumulate(const char* call, const void* origin_addr, int64_t origin_count,
                   MPI_Datatype origin_type, void* result_addr, int64_t result_count,
                   MPI_Datatype result_type, int target_rank, MPI_Aint target_disp,
                   int64_t target_count, MPI_Datatype target_type, MPI_Op op, MPI_Win win,
                   MPI_Request* request = nullptr) {
  Story story{.call = call};
  const TargetSide target{target_rank, target_disp, target_count, target_type};
  if (const int code = take_target(story, win, target, request != nullptr)) return code;
  Operation work;
  Data result;
  const Side given{origin_addr, origin_count, origin_type};
  if (const int code = take_operation(story, op, target, given, work)) return code;
  if (const int code = take_side(story, {result_addr, result_count, result_type}, result)) {
    return code;
  }
  if (const int code = check_lengths(story, result, work.there)) return code;
  if (const int code = check_elements(story, result, work.element)) return code;
  if (target_rank == MPI_PROC_NULL) return finish_nobody(story, request);
  int64_t at = 0;
  if (const int code = find_place(story, target, work.there, at)) return code;
  const Inside inside(call, target_rank, unset, story.window->comm);
  rma::Handle handle{.asked = request != nullptr};
  const Outcome outcome =
      rma::get_accumulate(process().waiter(), there_of(story, target_rank, at, work.there),
                          work.work, work.operand(), result.memory(), handle);
  return finish(story, outcome, handle, request);
}

// One element of a predefined datatype.
int check_single(const Story& story) {
  if (story.type->basic() != BasicType::none) [[likely]]
    return MPI_SUCCESS;
  return raise(story, MPI_ERR_TYPE, "the datatype is not a predefined one",
               "this call works on one element; MPI_Get_accumulate takes others");
}

int fetch_and_op(const char* call, const void* origin_addr, void* result_addr,
                 MPI_Datatype datatype, int target_rank, MPI_Aint target_disp, MPI_Op op,
                 MPI_Win win) {
  Story story{.call = call};
  const TargetSide target{target_rank, target_disp, 1, datatype};
  if (const int code = take_target(story, win, target, false)) return code;
  Data there, here, result;
  if (const int code = take_there(story, target, there)) return code;
  if (const int code = check_single(story)) return code;
  rma::Work work;
  if (const int code = take_work(story, op, there.type->basic(), work)) return code;
  if (work.has_operand()) {
    if (const int code = take_side(story, {origin_addr, 1, datatype}, here)) return code;
  }
  if (const int code = take_side(story, {result_addr, 1, datatype}, result)) return code;
  if (target_rank == MPI_PROC_NULL) return MPI_SUCCESS;
  int64_t at = 0;
  if (const int code = find_place(story, target, there, at)) return code;
  const Inside inside(call, target_rank, unset, story.window->comm);
  rma::Handle handle;
  const rma::UserMemory origin = work.has_operand() ? here.memory() : rma::UserMemory();
  const Outcome outcome =
      rma::get_accumulate(process().waiter(), there_of(story, target_rank, at, there), work, origin,
                          result.memory(), handle);
  return finish(story, outcome, handle, nullptr);
}

int compare_and_swap(const char* call, const void* origin_addr, const void* compare_addr,
                     void* result_addr, MPI_Datatype datatype, int target_rank,
                     MPI_Aint target_disp, MPI_Win win) {
  Story story{.call = call};
  const TargetSide target{target_rank, target_disp, 1, datatype};
  if (const int code = take_target(story, win, target, false)) return code;
  Data there, fresh, expected, result;
  if (const int code = take_there(story, target, there)) return code;
  if (const int code = check_single(story)) return code;
  if (!rma::may_swap(there.type->basic())) {
    return raise(story, MPI_ERR_TYPE, "elements of this datatype cannot be compared and swapped",
                 "take an integer, a logical, MPI_BYTE, MPI_AINT, MPI_COUNT or MPI_OFFSET");
  }
  if (const int code = take_side(story, {origin_addr, 1, datatype}, fresh)) return code;
  if (const int code = take_side(story, {compare_addr, 1, datatype}, expected)) return code;
  if (const int code = take_side(story, {result_addr, 1, datatype}, result)) return code;
  if (target_rank == MPI_PROC_NULL) return MPI_SUCCESS;
  int64_t at = 0;
  if (const int code = find_place(story, target, there, at)) return code;
  rma::Work work;
  if (!rma::find_work(ReduceOp::replace, there.type->basic(), work)) {
    return raise(story, Outcome::internal);
  }
  const Inside inside(call, target_rank, unset, story.window->comm);
  const Outcome outcome =
      rma::compare_and_swap(process().waiter(), there_of(story, target_rank, at, there), work,
                            expected.memory(), fresh.memory(), result.memory());
  return finish(story, outcome, {}, nullptr);
}

}  // namespace

#include "api/entries/windows_access.inl"
