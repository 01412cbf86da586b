// Windows: made, freed, and looked at: MPI 5.0, sections 12.2 and 7.7 to 9.3.
#include "api/detail/windows.h"

#include <cstring>

#include "api/detail/attributes.h"
#include "api/detail/comms.h"
#include "api/detail/errhandlers.h"
#include "api/detail/groups.h"
#include "api/detail/info.h"
#include "api/detail/results.h"
#include "base/address.h"
#include "rma/create.h"

namespace headway::api {

int take_window(Story& story, MPI_Win handle) {
  if (!is_running()) [[unlikely]]
    return not_running(story.call);
  story.window = registry().find_window(value_of(handle));
  if (story.window) [[likely]]
    return MPI_SUCCESS;
  return raise(story, MPI_ERR_WIN,
               handle == MPI_WIN_NULL ? "the window is MPI_WIN_NULL"
                                      : "the window is not valid: it was freed, or never made",
               "pass a window of your own that is not freed yet");
}

int check_target(Story& story, int rank) {
  story.peer = rank;
  if (rank == MPI_PROC_NULL || (rank >= 0 && rank < story.window->comm->own.size)) [[likely]]
    return MPI_SUCCESS;
  return raise(story, MPI_ERR_RANK, "there is no such rank in the window's group",
               "ranks go from 0 to one less than the size; operations on MPI_PROC_NULL do nothing");
}

int raise_sync(const Story& story, const char* why, const char* remedy) {
  return raise(story, MPI_ERR_RMA_SYNC, why, remedy);
}

}  // namespace headway::api

using namespace headway;
using namespace headway::api;

namespace {

using rma::Wish;

int check_wish(const Story& story, const Wish& wish) {
  if (wish.size < 0) return raise(story, MPI_ERR_SIZE, "the size is negative");
  if (uint64_t(wish.size) > base::most_bytes) {
    return raise(story, MPI_ERR_SIZE, "no memory is as large as the window",
                 "look at how the size was computed");
  }
  if (wish.unit <= 0) {
    return raise(story, MPI_ERR_DISP, "the unit of displacements is not positive",
                 "pass 1 to count bytes, or the size of an element");
  }
  if (wish.flavor == MPI_WIN_FLAVOR_CREATE && !wish.base && wish.size > 0) {
    return raise(story, MPI_ERR_BUFFER, "the window's memory is a null pointer",
                 "pass the address of the memory, or let MPI_Win_allocate bring it");
  }
  return MPI_SUCCESS;
}

// A communicator that nobody else has: the window's frames and barriers are apart from all else.
Outcome make_own(objects::Comm* comm, objects::Comm*& own) {
  const Outcome outcome = communicators::dup(makers(), comm, own);
  if (outcome != Outcome::ok) return outcome;
  registry().comms.remove(own->handle);
  own->handle = 0;
  // Errors of a window's operations are its own, and end the job until its handler says otherwise.
  replace_errhandler(own->errhandler, &registry().errors_are_fatal);
  base::Text<objects::max_object_name> name;
  name << "a window of " << (*comm->name ? comm->name : "a communicator without a name");
  memcpy(own->name, name.c_str(), name.size() + 1);
  return Outcome::ok;
}

int raise_unmade(const Story& story, Outcome outcome) {
  if (outcome != Outcome::unsupported) return raise(story, outcome);
  return raise(story, MPI_ERR_RMA_SHARED, "not all ranks of the communicator share memory",
               "MPI_Comm_split_type with MPI_COMM_TYPE_SHARED gives those that do",
               "ranks on several hosts, or HEADWAY_SHM=off");
}

int make_window(const char* call, Wish wish, MPI_Info info, MPI_Comm comm, MPI_Win* win,
                rma::Window*& made) {
  Story story{.call = call};
  if (const int code = take_intra(story, comm)) return code;
  if (info != MPI_INFO_NULL) {
    objects::Info* hints;
    if (const int code = take_info(story, info, hints)) return code;
    objects::take_hints(wish.hints, *hints);
  }
  if (const int code = check_wish(story, wish)) return code;
  wish.direct = process().settings.windows_direct != 0;
  // Who leaves MPI with a frame to be looked at needs somebody who does.
  wish.follows = process().settings.windows_direct == 2 && process().settings.progress != 0;
  const Inside inside(call, unset, unset, story.comm);
  objects::Comm* own = nullptr;
  Outcome outcome = make_own(story.comm, own);
  if (outcome == Outcome::ok) {
    outcome = rma::make(process().waiter(), own, wish, process().node_ranks(),
                        &registry().errors_are_fatal, made);
  }
  if (outcome != Outcome::ok) return raise_unmade(story, outcome);
  objects::Window* const window = made;
  window->handle = registry().windows.add(window);
  if (!window->handle) return raise(story, Outcome::no_resource);
  *win = handle_of<MPI_Win>(window->handle);
  return MPI_SUCCESS;
}

int win_create(const char* call, void* base, MPI_Aint size, int64_t disp_unit, MPI_Info info,
               MPI_Comm comm, MPI_Win* win) {
  rma::Window* made = nullptr;
  return make_window(
      call, {.flavor = MPI_WIN_FLAVOR_CREATE, .base = base, .size = size, .unit = disp_unit}, info,
      comm, win, made);
}

template <int flavor>
int win_allocate(const char* call, MPI_Aint size, int64_t disp_unit, MPI_Info info, MPI_Comm comm,
                 void* baseptr, MPI_Win* win) {
  rma::Window* made = nullptr;
  if (const int code = make_window(call, {.flavor = flavor, .size = size, .unit = disp_unit}, info,
                                   comm, win, made)) {
    return code;
  }
  *static_cast<void**>(baseptr) = made->base;
  return MPI_SUCCESS;
}

int win_create_dynamic(const char* call, MPI_Info info, MPI_Comm comm, MPI_Win* win) {
  rma::Window* made = nullptr;
  return make_window(call, {.flavor = MPI_WIN_FLAVOR_DYNAMIC}, info, comm, win, made);
}

int win_free(const char* call, MPI_Win* win) {
  Story story{.call = call};
  if (const int code = take_window(story, *win)) return code;
  rma::Window& window = window_of(story);
  if (window.has_access_epoch() || window.is_exposed) {
    return raise_sync(story, "an epoch of the window is still open",
                      "end it first: MPI_Win_unlock, MPI_Win_unlock_all, MPI_Win_complete, "
                      "MPI_Win_wait, or MPI_Win_fence behind the last operation");
  }
  const Callback left = delete_attributes(window.attributes, *win);
  if (left.code != MPI_SUCCESS) return raise(story, left);
  const Inside inside(call, unset, unset, window.comm);
  registry().windows.remove(window.handle);
  const Outcome outcome = rma::dissolve(process().waiter(), &window);
  *win = MPI_WIN_NULL;
  return outcome == Outcome::ok ? MPI_SUCCESS : raise({.call = call}, outcome);
}

int take_dynamic(Story& story, MPI_Win win) {
  if (const int code = take_window(story, win)) return code;
  if (story.window->is_dynamic()) return MPI_SUCCESS;
  return raise(story, MPI_ERR_RMA_FLAVOR, "the window's memory is fixed",
               "only windows of MPI_Win_create_dynamic get memory later");
}

int win_attach(const char* call, MPI_Win win, void* base, MPI_Aint size) {
  Story story{.call = call};
  if (const int code = take_dynamic(story, win)) return code;
  const auto from = reinterpret_cast<uintptr_t>(base);
  if (size < 0 || uint64_t(size) > base::most_bytes || from + uint64_t(size) < from) {
    return raise(story, MPI_ERR_SIZE, "the size is negative, or no memory is as large");
  }
  if (!base && size > 0) {
    return raise(story, MPI_ERR_BUFFER, "the memory is a null pointer",
                 "pass the address of the memory that others are to access");
  }
  const Outcome outcome = rma::attach(process().waiter(), window_of(story), base, uint64_t(size));
  if (outcome == Outcome::ok) return MPI_SUCCESS;
  if (outcome != Outcome::bad_argument) return raise(story, outcome);
  return raise(story, MPI_ERR_RMA_ATTACH, "some of the memory is attached already",
               "attach each piece of memory once, and detach it before it is attached anew");
}

int win_detach(const char* call, MPI_Win win, const void* base) {
  Story story{.call = call};
  if (const int code = take_dynamic(story, win)) return code;
  if (rma::detach(process().waiter(), window_of(story), base) == Outcome::ok) return MPI_SUCCESS;
  return raise(story, base ? MPI_ERR_RMA_ATTACH : MPI_ERR_BUFFER,
               base ? "no memory is attached that begins there" : "the memory is a null pointer",
               "pass the address that was given when it was attached, once");
}

// The first rank with memory stands for MPI_PROC_NULL.
const rma::Target* shared_target(rma::Window& window, int rank) {
  if (rank != MPI_PROC_NULL) return &window.target(rank);
  for (const rma::Target& target : window.targets) {
    if (target.size > 0) return &target;
  }
  return nullptr;
}

template <class Unit>
int win_shared_query(const char* call, MPI_Win win, int rank, MPI_Aint* size, Unit* disp_unit,
                     void* baseptr) {
  Story story{.call = call};
  if (const int code = take_window(story, win)) return code;
  if (const int code = check_target(story, rank)) return code;
  if (story.window->is_dynamic()) {
    return raise(story, MPI_ERR_RMA_FLAVOR, "the memory of a dynamic window is not shared",
                 "MPI_Win_allocate_shared makes windows whose memory is");
  }
  const rma::Target* target = shared_target(window_of(story), rank);
  const bool is_here = target && target->shown;
  *size = is_here ? MPI_Aint(target->size) : 0;
  *disp_unit = target ? Unit(target->unit) : 1;
  *static_cast<void**>(baseptr) = is_here ? target->shown : nullptr;
  return MPI_SUCCESS;
}

int win_get_group(const char* call, MPI_Win win, MPI_Group* group) {
  Story story{.call = call};
  if (const int code = take_window(story, win)) return code;
  objects::Group* const members = story.window->comm->group;
  members->retain();
  return hand_out_group(story, members, group);
}

int win_set_name(const char* call, MPI_Win win, const char* win_name) {
  Story story{.call = call};
  if (const int code = take_window(story, win)) return code;
  char* name = story.window->name;
  const size_t length = strnlen(win_name, MPI_MAX_OBJECT_NAME - 1);  // longer ones are cut
  memmove(name, win_name, length);
  name[length] = '\0';
  return MPI_SUCCESS;
}

int win_get_name(const char* call, MPI_Win win, char* win_name, int* resultlen) {
  Story story{.call = call};
  const bool is_null = win == MPI_WIN_NULL && is_running();  // it has a name
  if (!is_null) {
    if (const int code = take_window(story, win)) return code;
  }
  strcpy(win_name, is_null ? "MPI_WIN_NULL" : story.window->name);
  *resultlen = int(strlen(win_name));
  return MPI_SUCCESS;
}

int win_set_info(const char* call, MPI_Win win, MPI_Info info) {
  Story story{.call = call};
  if (const int code = take_window(story, win)) return code;
  if (info == MPI_INFO_NULL) return MPI_SUCCESS;
  objects::Info* hints;
  if (const int code = take_info(story, info, hints)) return code;
  // What the window was made with stays.
  const bool noncontig = story.window->hints.noncontig;
  objects::take_hints(story.window->hints, *hints);
  story.window->hints.noncontig = noncontig;
  return MPI_SUCCESS;
}

int win_get_info(const char* call, MPI_Win win, MPI_Info* info_used) {
  Story story{.call = call};
  if (const int code = take_window(story, win)) return code;
  objects::Info* made = objects::Info::make();
  if (made && !objects::tell_hints(story.window->hints, *made)) {
    made->release();
    made = nullptr;
  }
  return hand_out_info(story, made, info_used);
}

int win_set_errhandler(const char* call, MPI_Win win, MPI_Errhandler errhandler) {
  Story story{.call = call};
  if (const int code = take_window(story, win)) return code;
  objects::Errhandler* handler;
  if (const int code =
          take_errhandler(story, errhandler, objects::ErrhandlerTarget::window, handler)) {
    return code;
  }
  replace_errhandler(story.window->errhandler, handler);
  // Of its requests, which know the communicator.
  replace_errhandler(story.window->comm->errhandler, handler);
  return MPI_SUCCESS;
}

int win_get_errhandler(const char* call, MPI_Win win, MPI_Errhandler* errhandler) {
  Story story{.call = call};
  if (const int code = take_window(story, win)) return code;
  *errhandler = give_errhandler(story.window->errhandler);
  return MPI_SUCCESS;
}

int win_call_errhandler(const char* call, MPI_Win win, int errorcode) {
  Story story{.call = call};
  if (const int code = take_window(story, win)) return code;
  raise(story, errorcode, "the program called the error handler itself");
  return MPI_SUCCESS;
}

}  // namespace

#include "api/entries/windows.inl"
