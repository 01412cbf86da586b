// Error handlers: MPI 5.0, section 9.3.
#include <new>

#include "api/detail/errhandlers.h"
#include "api/detail/results.h"
#include "base/heap.h"

using namespace headway;
using namespace headway::api;

namespace {

template <class Function>
int create(const char* call, Function* function, objects::ErrhandlerTarget target,
           MPI_Errhandler* handle) {
  Story story{.call = call};
  registry().prepare();
  void* memory = base::heap_allocate(sizeof(objects::Errhandler));
  if (!memory) return raise(story, Outcome::no_memory);
  auto* made = new (memory) objects::Errhandler{};
  made->kind = objects::ErrhandlerKind::user;
  made->target = target;
  made->function = reinterpret_cast<void*>(function);
  made->handles_given.store(1, std::memory_order_relaxed);
  made->handle = registry().errhandlers.add(made);
  if (!made->handle) {
    objects::release(made);
    return raise(story, Outcome::no_resource);
  }
  *handle = handle_of<MPI_Errhandler>(made->handle);
  return MPI_SUCCESS;
}

}  // namespace

namespace headway::api {

int take_errhandler(const Story& story, MPI_Errhandler handle, objects::ErrhandlerTarget target,
                    objects::Errhandler*& found) {
  found = registry().find_errhandler(value_of(handle));
  if (!found) {
    return raise(story, MPI_ERR_ERRHANDLER, "the error handler is not valid: freed, or never made");
  }
  if (found->kind != objects::ErrhandlerKind::user || found->target == target) return MPI_SUCCESS;
  return raise(story, MPI_ERR_ERRHANDLER, "the error handler was made for another kind of object",
               "MPI_Comm_create_errhandler makes those of communicators, "
               "MPI_Win_create_errhandler those of windows, MPI_Session_create_errhandler those of "
               "sessions");
}

MPI_Errhandler give_errhandler(objects::Errhandler* handler) {
  // A handler whose handle was freed lives on in its object: it gets a new handle.
  if (!handler->handle) handler->handle = registry().errhandlers.add(handler);
  handler->handles_given.fetch_add(1, std::memory_order_relaxed);
  handler->retain();
  return handle_of<MPI_Errhandler>(handler->handle);
}

void replace_errhandler(objects::Errhandler*& held, objects::Errhandler* handler) {
  handler->retain();
  if (held) objects::release(held);
  held = handler;
}

}  // namespace headway::api

namespace {

int comm_set_errhandler(const char* call, MPI_Comm comm, MPI_Errhandler errhandler) {
  Story story{.call = call};
  if (const int code = take_comm(story, comm)) return code;
  objects::Errhandler* handler;
  if (const int code =
          take_errhandler(story, errhandler, objects::ErrhandlerTarget::comm, handler)) {
    return code;
  }
  replace_errhandler(story.comm->errhandler, handler);
  if (story.comm == registry().self) registry().self_handler_set = true;
  return MPI_SUCCESS;
}

int comm_get_errhandler(const char* call, MPI_Comm comm, MPI_Errhandler* errhandler) {
  Story story{.call = call};
  if (const int code = take_comm(story, comm)) return code;
  *errhandler = give_errhandler(story.comm->errhandler);
  return MPI_SUCCESS;
}

int comm_call_errhandler(const char* call, MPI_Comm comm, int errorcode) {
  Story story{.call = call};
  if (const int code = take_comm(story, comm)) return code;
  raise(story, errorcode, "the program called the error handler itself");
  return MPI_SUCCESS;
}

int errhandler_free(const char* call, MPI_Errhandler* errhandler) {
  const Story story{.call = call};
  objects::Errhandler* handler = registry().find_errhandler(value_of(*errhandler));
  if (!handler) {
    return raise(story, MPI_ERR_ERRHANDLER, "the error handler is not valid: freed, or never made");
  }
  *errhandler = MPI_ERRHANDLER_NULL;
  if (handler->kind != objects::ErrhandlerKind::user) return MPI_SUCCESS;  // MPI_Comm_get gave it
  // MPI_Comm_get_errhandler gives the same handle again: it dies when all that were given are
  // freed.
  if (handler->handles_given.fetch_sub(1, std::memory_order_relaxed) == 1) {
    registry().errhandlers.remove(handler->handle);
    handler->handle = 0;
  }
  objects::release(handler);
  return MPI_SUCCESS;
}

}  // namespace

#include "api/entries/errhandlers.inl"
