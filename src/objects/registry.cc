#include "objects/registry.h"

#include <cstring>
#include <new>

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

uintptr_t Registry::parametrized(datatypes::Combiner combiner, const int* numbers, int count,
                                 datatypes::BasicType basic, Outcome& outcome) {
  outcome = Outcome::ok;
  base::SpinGuard guard(parametrized_lock_);
  for (const Parametrized* one = parametrized_; one; one = one->next) {
    if (one->type->combiner() == combiner &&
        memcmp(one->type->contents().integers, numbers, size_t(count) * sizeof *numbers) == 0) {
      return one->handle;
    }
  }
  datatypes::Type* type = nullptr;
  outcome = datatypes::make_parametrized(combiner, numbers, count, basic, type);
  if (outcome != Outcome::ok) return 0;
  auto* made = static_cast<Parametrized*>(base::heap_allocate(sizeof(Parametrized)));
  const uintptr_t handle = made ? types.add(type) : 0;
  if (!handle) {
    base::heap_free(made, sizeof(Parametrized));
    type->release();
    outcome = made ? Outcome::no_resource : Outcome::no_memory;
    return 0;
  }
  *made = {parametrized_, type, handle};
  parametrized_ = made;
  return handle;
}

Comm* Registry::find_comm_of(uint64_t context) const {
  if (everyone && everyone->context == context) return everyone;
  if (alone && alone->context == context) return alone;
  Comm* found = nullptr;
  comms.each([&](void* object) {
    auto* comm = static_cast<Comm*>(object);
    if (comm->context == context) found = comm;
    return !found;
  });
  return found;
}

uintptr_t Registry::handle_of_parametrized(const datatypes::Type* type) {
  base::SpinGuard guard(parametrized_lock_);
  const Parametrized* one = parametrized_;
  while (one && one->type != type) one = one->next;
  return one ? one->handle : 0;
}

Attributes* Registry::find_attributes(datatypes::Type& type, uintptr_t handle, bool make) {
  if (!make && !type.attached().load(std::memory_order_acquire)) return nullptr;  // pairs below
  base::SpinGuard guard(attached_lock_);
  auto* first = static_cast<HandleAttributes*>(type.attached().load(std::memory_order_relaxed));
  for (HandleAttributes* one = first; one; one = one->next) {
    if (one->handle == handle) return &one->list;
  }
  void* memory = make ? base::heap_allocate(sizeof(HandleAttributes)) : nullptr;
  if (!memory) return nullptr;
  auto* made = new (memory) HandleAttributes{first, handle, {}};
  type.attached().store(made, std::memory_order_release);  // pairs with the first look above
  return &made->list;
}

void Registry::drop_attributes(datatypes::Type& type, uintptr_t handle) {
  if (!type.attached().load(std::memory_order_acquire)) return;  // pairs with find_attributes
  HandleAttributes* found = nullptr;
  {
    base::SpinGuard guard(attached_lock_);
    auto* first = static_cast<HandleAttributes*>(type.attached().load(std::memory_order_relaxed));
    HandleAttributes* before = nullptr;
    found = first;
    while (found && found->handle != handle) {
      before = found;
      found = found->next;
    }
    if (!found) return;
    if (before) {
      before->next = found->next;
    } else {
      type.attached().store(found->next, std::memory_order_release);  // as above
    }
  }
  found->list.drop();
  base::heap_free(found, sizeof(HandleAttributes));
}

void release(Op* op) {
  if (op->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  if (op->builtin == datatypes::ReduceOp::none) base::heap_free(op, sizeof(Op));
}

}  // namespace headway::objects
