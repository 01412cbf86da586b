#include "objects/registry.h"

#include "base/heap.h"

namespace headway::objects {

void Registry::prepare() {
  if (prepared_) return;
  prepared_ = true;
  errors_are_fatal.handle = abi::k_ERRORS_ARE_FATAL;
  errors_are_fatal.kind = ErrhandlerKind::fatal;
  errors_abort.handle = abi::k_ERRORS_ABORT;
  errors_abort.kind = ErrhandlerKind::abort;
  errors_return.handle = abi::k_ERRORS_RETURN;
  errors_return.kind = ErrhandlerKind::returning;
  for (uintptr_t handle = 0x201; handle < 0x300; ++handle) {
    predefined_types_[handle & 255] = datatypes::find_predefined(handle);
  }
  for (uintptr_t handle = abi::k_OP_NULL + 1; handle < 0x40; ++handle) {
    Op& op = predefined_ops_[handle - abi::k_OP_NULL];
    op.handle = handle;
    op.builtin = datatypes::find_op(handle);
  }
}

void release(Op* op) {
  if (op->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  if (op->builtin == datatypes::ReduceOp::none) base::heap_free(op, sizeof(Op));
}

}  // namespace headway::objects
