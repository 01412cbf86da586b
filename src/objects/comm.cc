#include "objects/comm.h"

#include <new>

#include "base/heap.h"
#include "objects/info.h"

namespace headway::objects {

Comm* make_comm(uint64_t context, Group* group, Errhandler* errhandler) {
  void* memory = base::heap_allocate(sizeof(Comm));
  if (!memory) return nullptr;
  auto* comm = new (memory) Comm{};
  comm->context = context;
  comm->group = group;
  comm->rank = group->self;
  comm->size = group->size;
  comm->errhandler = errhandler;
  group->retain();
  errhandler->retain();
  return comm;
}

void release(Comm* comm) {
  if (comm->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  comm->group->release();
  release(comm->errhandler);
  if (comm->info) static_cast<Info*>(comm->info)->release();
  base::heap_free(comm, sizeof(Comm));
}

void release(Errhandler* errhandler) {
  if (errhandler->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  if (errhandler->kind == ErrhandlerKind::user) base::heap_free(errhandler, sizeof(Errhandler));
}

}  // namespace headway::objects
