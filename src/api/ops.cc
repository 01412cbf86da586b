// Operations of the user, and reductions without communication: MPI 5.0, sections 6.9.5 to 6.9.7.
#include <new>
#include <type_traits>

#include "api/detail/collective.h"
#include "api/detail/results.h"
#include "base/heap.h"

using namespace headway;
using namespace headway::api;

namespace {

template <class Function>
int create_op(const char* call, Function* function, int commute, MPI_Op* op) {
  const Story story{.call = call};
  if (!is_running()) return not_running(call);
  *op = MPI_OP_NULL;
  void* memory = base::heap_allocate(sizeof(objects::Op));
  if (!memory) return raise(story, Outcome::no_memory);
  auto* made = new (memory) objects::Op;
  made->commutative = commute != 0;
  made->large = std::is_same_v<Function, MPI_User_function_c>;
  made->function = reinterpret_cast<void*>(function);
  made->handle = registry().ops.add(made);
  if (!made->handle) {
    objects::release(made);
    return raise(story, Outcome::no_resource);
  }
  *op = handle_of<MPI_Op>(made->handle);
  return MPI_SUCCESS;
}

int invalid_op(const Story& story) {
  return raise(story, MPI_ERR_OP, "the operation is not valid: MPI_OP_NULL, freed, or never made");
}

int reduce_local(const char* call, const void* inbuf, void* inoutbuf, int64_t count,
                 MPI_Datatype datatype, MPI_Op op) {
  Story story{.call = call};
  if (!is_running()) return not_running(call);
  collectives::Data in, inout;
  if (const int code = take_buffer(story, inbuf, count, datatype, in)) return code;
  if (const int code = take_buffer(story, inoutbuf, count, datatype, inout)) return code;
  if (const int code = refuse_shared(story, in, inout, "copy one of them to a second buffer")) {
    return code;
  }
  collectives::Reduction reduction;
  if (const int code = take_op(story, op, datatype, reduction)) return code;
  if (count > 0) collectives::apply(reduction, in.buffer, inout.buffer, in.count);
  return MPI_SUCCESS;
}

int op_free(const char* call, MPI_Op* op) {
  const Story story{.call = call};
  if (!is_running()) return not_running(story.call);
  objects::Op* found = registry().find_op(value_of(*op));
  if (!found) return invalid_op(story);
  if (found->builtin != datatypes::ReduceOp::none) {
    return raise(story, MPI_ERR_OP, "a predefined operation cannot be freed");
  }
  registry().ops.remove(found->handle);
  objects::release(found);  // reductions in progress keep it
  *op = MPI_OP_NULL;
  return MPI_SUCCESS;
}

int op_commutative(const char* call, MPI_Op op, int* commute) {
  const Story story{.call = call};
  if (!is_running()) return not_running(story.call);
  const objects::Op* found = registry().find_op(value_of(op));
  if (!found) return invalid_op(story);
  // MPI_REPLACE is the one predefined operation whose order matters, with MPI_NO_OP its mirror.
  *commute = found->commutative && found->builtin != datatypes::ReduceOp::replace &&
             found->builtin != datatypes::ReduceOp::no_op;
  return MPI_SUCCESS;
}

}  // namespace

#include "api/entries/ops.inl"
