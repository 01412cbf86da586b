// Sessions, their process sets, and communicators made of groups alone: MPI 5.0, sections 11.3 and
// 7.4.2. Two process sets: all processes of the job, and the calling one.
#include <cstring>
#include <new>
#include <strings.h>

#include "api/detail/comms.h"
#include "api/detail/errhandlers.h"
#include "api/detail/files.h"
#include "api/detail/groups.h"
#include "api/detail/info.h"
#include "api/detail/message.h"
#include "api/detail/results.h"
#include "api/detail/sessions.h"
#include "base/heap.h"
#include "communicators/communicators.h"
#include "p2p/bsend.h"

namespace headway::api {

int take_session(Story& story, MPI_Session handle) {
  if (!is_running()) [[unlikely]]
    return not_running(story.call);
  story.session = registry().find_session(value_of(handle));
  if (story.session) return MPI_SUCCESS;
  return raise(story, MPI_ERR_SESSION,
               handle == MPI_SESSION_NULL ? "the session is MPI_SESSION_NULL"
                                          : "the session is not valid: finalized, or never made",
               "pass a session of MPI_Session_init");
}

}  // namespace headway::api

using namespace headway;
using namespace headway::api;

namespace {

using objects::Session;

constexpr const char* sets[] = {"mpi://WORLD", "mpi://SELF"};

// The group behind the name of a process set; raises MPI_ERR_ARG. A name is a URI, whose scheme and
// host do not depend on the case of letters.
int take_set(const Story& story, const char* name, objects::Group*& group) {
  if (name && strcasecmp(name, sets[0]) == 0) {
    group = registry().everyone->group;
  } else if (name && strcasecmp(name, sets[1]) == 0) {
    group = registry().alone->group;
  } else {
    return raise(story, MPI_ERR_ARG, "there is no process set of that name",
                 "there are mpi://WORLD and mpi://SELF; MPI_Session_get_nth_pset lists them");
  }
  return MPI_SUCCESS;
}

bool ends_job(const objects::Errhandler& handler) {
  return handler.kind == objects::ErrhandlerKind::fatal ||
         handler.kind == objects::ErrhandlerKind::abort;
}

// Refuses a group whose session is finalized, or whose MPI_COMM_WORLD is.
int refuse_ended(const Story& story, const objects::Group& group) {
  const Session* from = group.session;
  if (from ? registry().find_session(from->handle) == from
           : process().world.load(std::memory_order_acquire) != runtime::State::after) {
    return MPI_SUCCESS;
  }
  return raise(story, MPI_ERR_GROUP,
               from ? "the group's session has been finalized"
                    : "the group is one of MPI_COMM_WORLD's, which has ended with MPI_Finalize",
               "make the group from a session that is open");
}

}  // namespace

namespace headway::api {

int take_from_group(FromGroup& from, MPI_Group group, const char* stringtag, MPI_Info info,
                    MPI_Errhandler errhandler, MPI_Comm* newcomm) {
  Story& story = from.story;
  if (!is_running()) return not_running(story.call);
  if (const int code =
          take_errhandler(story, errhandler, objects::ErrhandlerTarget::comm, story.handler)) {
    return code;
  }
  *newcomm = MPI_COMM_NULL;
  if (const int code = take_group(story, group, from.group)) return code;
  if (strnlen(stringtag, MPI_MAX_STRINGTAG_LEN) >= MPI_MAX_STRINGTAG_LEN) {
    return raise(story, MPI_ERR_ARG, "the string tag is too long",
                 "it has at most MPI_MAX_STRINGTAG_LEN - 1 = 255 characters");
  }
  if (info != MPI_INFO_NULL) {
    if (const int code = take_info(story, info, from.hints)) return code;
  }
  if (from.group->size == 0) return MPI_SUCCESS;
  if (const int code = refuse_ended(story, *from.group)) return code;
  for (int i = 0; i < from.group->size; ++i) {
    if (is_of_this_job(from.group->members[i])) continue;
    return raise(story, MPI_ERR_GROUP, "a process of the group is of another job",
                 "make it from a communicator in which all of them are: MPI_Comm_create_group, "
                 "or between two groups MPI_Intercomm_create");
  }
  if (from.group->self >= 0) return MPI_SUCCESS;
  return raise(story, MPI_ERR_GROUP, "this process is not in the group",
               "the members of the group call this, and nobody else");
}

int hand_out_from_group(const FromGroup& from, objects::Comm& made, MPI_Comm* newcomm) {
  replace_errhandler(made.errhandler, from.story.handler);
  if (from.hints) use_hints(made, *from.hints);
  *newcomm = handle_of<MPI_Comm>(made.handle);
  return MPI_SUCCESS;
}

}  // namespace headway::api

namespace {

int session_init(const char* call, MPI_Info info, MPI_Errhandler errhandler, MPI_Session* session) {
  Story story{.call = call};
  registry().prepare();
  objects::Errhandler* handler;
  if (const int code =
          take_errhandler(story, errhandler, objects::ErrhandlerTarget::session, handler)) {
    return code;
  }
  story.handler = handler;
  *session = MPI_SESSION_NULL;
  // Without a wish of its own it gets what the program told MPI_Init_thread.
  const bool with_world =
      process().world.load(std::memory_order_acquire) == runtime::State::running;
  int level = with_world ? process().thread_level : MPI_THREAD_SINGLE;
  if (info != MPI_INFO_NULL) {
    objects::Info* wishes;
    if (const int code = take_info(story, info, wishes)) return code;
    const char* wanted = wishes->find("thread_level");
    if (wanted && !find_level(wanted, level)) {
      return raise(story, MPI_ERR_INFO_VALUE, "the info's thread_level is not a thread level",
                   "its values are the names MPI_THREAD_SINGLE to MPI_THREAD_MULTIPLE");
    }
  }
  void* memory = base::heap_allocate(sizeof(Session));
  if (!memory) return raise(story, Outcome::no_memory);
  auto* made = new (memory) Session{.thread_level = level};
  replace_errhandler(made->errhandler, handler);
  if (process().state.load() == runtime::State::after) {
    objects::release(made);
    return not_running(story.call);
  }
  const Inside inside(story.call);
  if (process().open_session(level) != Outcome::ok) {
    objects::release(made);
    if (ends_job(*handler)) cannot_start(story.call);
    return raise(story, MPI_ERR_OTHER, process().story(),
                 "start the job again without that cause: there is no second try");
  }
  if (level == MPI_THREAD_MULTIPLE) process().expect_threads();
  made->handle = registry().sessions.add(made);
  if (!made->handle) {
    objects::release(made);
    process().close_session();
    return raise(story, Outcome::no_resource);
  }
  *session = handle_of<MPI_Session>(made->handle);
  return MPI_SUCCESS;
}

int session_finalize(const char* call, MPI_Session* session) {
  Story story{.call = call};
  if (const int code = take_session(story, *session)) return code;
  if (story.session->buffer) {
    // What the buffer holds leaves first.
    void* memory;
    uint64_t size;
    bool automatic;
    (void)p2p::detach_buffer(process().waiter(), &story.session->buffer, memory, size, automatic);
  }
  if (base::any_events()) deliver_events();  // as long as callbacks may call MPI
  const Inside inside(story.call);
  if (process().any_closed()) await_all_open();
  close_left_files(call, story.session);
  registry().sessions.remove(story.session->handle);
  process().close_session();
  end_comms(story.session);
  objects::release(story.session);
  *session = MPI_SESSION_NULL;
  return MPI_SUCCESS;
}

int session_get_info(const char* call, MPI_Session session, MPI_Info* info_used) {
  Story story{.call = call};
  if (const int code = take_session(story, session)) return code;
  objects::Info* made = objects::Info::make();
  if (!made) return raise(story, Outcome::no_memory);
  if (!made->set("thread_level", level_name(story.session->thread_level))) {
    made->release();
    return raise(story, Outcome::no_memory);
  }
  return hand_out_info(story, made, info_used);
}

int session_get_num_psets(const char* call, MPI_Session session, MPI_Info, int* npset_names) {
  Story story{.call = call};
  if (const int code = take_session(story, session)) return code;
  *npset_names = int(sizeof sets / sizeof *sets);
  return MPI_SUCCESS;
}

int session_get_nth_pset(const char* call, MPI_Session session, MPI_Info, int n, int* pset_len,
                         char* pset_name) {
  Story story{.call = call};
  if (const int code = take_session(story, session)) return code;
  if (n < 0 || size_t(n) >= sizeof sets / sizeof *sets) {
    return raise(story, MPI_ERR_ARG, "there is no process set of that number",
                 "MPI_Session_get_num_psets tells how many there are; they count from 0");
  }
  const size_t length = strlen(sets[n]);
  if (*pset_len > 0) {
    const size_t fits = length < size_t(*pset_len) ? length : size_t(*pset_len) - 1;
    memcpy(pset_name, sets[n], fits);
    pset_name[fits] = '\0';
  }
  *pset_len = int(length + 1);  // what the whole name needs
  return MPI_SUCCESS;
}

int session_get_pset_info(const char* call, MPI_Session session, const char* pset_name,
                          MPI_Info* info) {
  Story story{.call = call};
  if (const int code = take_session(story, session)) return code;
  objects::Group* group = nullptr;
  if (const int code = take_set(story, pset_name, group)) return code;
  objects::Info* made = objects::Info::make();
  if (!made) return raise(story, Outcome::no_memory);
  base::Text<16> size;
  size << group->size;
  if (!made->set("mpi_size", size.c_str())) {
    made->release();
    return raise(story, Outcome::no_memory);
  }
  return hand_out_info(story, made, info);
}

int session_set_errhandler(const char* call, MPI_Session session, MPI_Errhandler errhandler) {
  Story story{.call = call};
  if (const int code = take_session(story, session)) return code;
  objects::Errhandler* handler;
  if (const int code =
          take_errhandler(story, errhandler, objects::ErrhandlerTarget::session, handler)) {
    return code;
  }
  replace_errhandler(story.session->errhandler, handler);
  return MPI_SUCCESS;
}

int session_get_errhandler(const char* call, MPI_Session session, MPI_Errhandler* errhandler) {
  Story story{.call = call};
  if (const int code = take_session(story, session)) return code;
  *errhandler = give_errhandler(story.session->errhandler);
  return MPI_SUCCESS;
}

int session_call_errhandler(const char* call, MPI_Session session, int errorcode) {
  Story story{.call = call};
  if (const int code = take_session(story, session)) return code;
  raise(story, errorcode, "the program called the error handler itself");
  return MPI_SUCCESS;
}

int group_from_session_pset(const char* call, MPI_Session session, const char* pset_name,
                            MPI_Group* newgroup) {
  Story story{.call = call};
  if (const int code = take_session(story, session)) return code;
  *newgroup = MPI_GROUP_NULL;
  objects::Group* group = nullptr;
  if (const int code = take_set(story, pset_name, group)) return code;
  objects::Group* made = objects::Group::make(group->size);
  if (!made) return raise(story, Outcome::no_memory);
  memcpy(made->members, group->members, size_t(group->size) * sizeof *group->members);
  made->find_self(uint32_t(process().rank()));
  made->belong(story.session);
  return hand_out_group(story, made, newgroup);
}

int comm_create_from_group(const char* call, MPI_Group group, const char* stringtag, MPI_Info info,
                           MPI_Errhandler errhandler, MPI_Comm* newcomm) {
  FromGroup from{.story = {.call = call}};
  if (const int code = take_from_group(from, group, stringtag, info, errhandler, newcomm)) {
    return code;
  }
  if (from.group->size == 0) return MPI_SUCCESS;
  const Inside inside(call);
  objects::Comm* made = nullptr;
  const Outcome outcome = communicators::create_from_group(makers(), from.group, stringtag, made);
  if (outcome != Outcome::ok) return raise(from.story, outcome);
  return hand_out_from_group(from, *made, newcomm);
}

}  // namespace

#include "api/entries/sessions.inl"
