// Errors: the one place where an Outcome becomes an MPI error class and a sentence for the user.
#include <cstdlib>
#include <cstring>
#include <unistd.h>

#include "api/detail/call.h"
#include "api/detail/comms.h"
#include "api/detail/errors.h"
#include "api/detail/files.h"
#include "api/detail/message.h"
#include "api/detail/results.h"
#include "api/detail/sessions.h"
#include "api/detail/windows.h"

namespace headway::api {
namespace {

struct Meaning {
  Outcome outcome;
  int code;
  const char* why;
  const char* remedy;
};
constexpr Meaning meanings[] = {
    {Outcome::truncated, MPI_ERR_TRUNCATE, "the message is longer than the receive's buffer",
     nullptr},
    {Outcome::no_memory, MPI_ERR_NO_MEM, "no memory left",
     "see the machine's memory and ulimit -v"},
    {Outcome::peer_lost, MPI_ERR_PROC_ABORTED, "the other process is gone", nullptr},
    {Outcome::no_route, MPI_ERR_OTHER, "the other process cannot be reached",
     "see that the hosts reach each other (ip route, firewall); HEADWAY_VERBOSE=2 tells the "
     "addresses"},
    {Outcome::no_resource, MPI_ERR_NO_MEM, "no more objects of this kind can be made",
     "free those that are not needed any more"},
    {Outcome::bad_argument, MPI_ERR_ARG, "an argument does not fit the others",
     "compare counts, sizes and datatypes of this call on all its ranks"},
    {Outcome::outside, MPI_ERR_RMA_RANGE,
     "an operation did not find its memory in the target's part of the dynamic window, and did "
     "nothing",
     "let the target attach all of that memory before, in one piece, and tell its address "
     "(MPI_Get_address) to the origin"},
    {Outcome::refused, MPI_ERR_RMA_RANGE,
     "the system refused to copy from or into the target's memory, and nothing more is known",
     "see that the memory which the target gave its window is still mapped, and may be written"},
    {Outcome::file_failed, MPI_ERR_IO, "the file could not be read or written", nullptr},
    {Outcome::unsupported, MPI_ERR_UNSUPPORTED_OPERATION, "this is not there yet in Headway MPI",
     "the README lists what is there"},
};

// How such an error usually comes about (null where the sentence says it itself), and what to do
// about one whose own place knows nothing better.
struct Usual {
  int code;
  const char* cause;
  const char* remedy;
};
constexpr Usual usual[] = {
    {MPI_ERR_COUNT, "a length above 2147483647 in an int, or a variable that was never set",
     "counts go from 0; for more than 2147483647 elements use the function of the same name that "
     "ends in _c"},
    {MPI_ERR_TYPE, nullptr,
     "pass a predefined datatype, or one that was made and is not freed yet"},
    {MPI_ERR_BUFFER, nullptr,
     "pass the data's address, and MPI_IN_PLACE only where the standard allows it"},
    {MPI_ERR_OP, nullptr,
     "pass a predefined operation, or one of MPI_Op_create that is not freed yet"},
    {MPI_ERR_GROUP, nullptr,
     "pass a group that is not freed yet; MPI_Comm_group gives a communicator's"},
    {MPI_ERR_COMM, nullptr, "pass a communicator of your own that is not freed yet"},
    {MPI_ERR_RANK,
     "a neighbour's rank that was computed without looking at the edges (MPI_PROC_NULL stands for "
     "nobody), or a job with fewer ranks than the program expects (mpiexec -n)",
     "ranks go from 0 to one less than the size"},
    {MPI_ERR_ROOT,
     "a job with fewer ranks than the program expects (mpiexec -n), or the root's rank in another "
     "communicator",
     "pass the same root on all ranks, from 0 to one less than the size"},
    {MPI_ERR_TAG, "a tag that was computed and has overflowed, or arguments in the wrong order",
     "tags go from 0 to MPI_TAG_UB, which is 2147483647 here"},
    {MPI_ERR_TRUNCATE,
     "the sender has a larger count or a wider datatype than the receiver, or another message than "
     "the one that was meant has the same source and tag",
     "receive with as much as is sent; MPI_Probe and MPI_Get_count tell how much that is"},
    {MPI_ERR_REQUEST,
     "it was completed through a copy of the handle, or its variable was never set",
     "pass each handle once, as the call that made it returned it"},
    {MPI_ERR_KEYVAL, nullptr,
     "pass a keyval that the program made with MPI_Comm_create_keyval or MPI_Type_create_keyval "
     "and "
     "did not free"},
    {MPI_ERR_ERRHANDLER, nullptr, "pass a predefined handler, or one that is not freed yet"},
    {MPI_ERR_INFO, nullptr, "pass an info object that is not freed yet"},
    {MPI_ERR_INFO_NOKEY, nullptr, "MPI_Info_get_nthkey lists the keys"},
    {MPI_ERR_WIN, nullptr, "pass a window of your own that is not freed yet"},
    {MPI_ERR_SIZE, "a size that was computed and has overflowed, or was never set",
     "pass the memory's length in bytes"},
    {MPI_ERR_DISP, "a displacement that was computed and has overflowed, or was never set",
     "displacements count in units of the target's window, from 0"},
    {MPI_ERR_ASSERT, nullptr, "pass 0, or the MPI_MODE_x that the call knows, joined by |"},
    {MPI_ERR_BASE, nullptr, "free each address once, as MPI_Alloc_mem returned it"},
    {MPI_ERR_PROC_ABORTED,
     "that process has ended or was killed, or the network between the hosts is interrupted",
     "the launcher's line names the rank that ended first; look for what that rank said last"},
    {MPI_ERR_FILE, nullptr, "pass a file of MPI_File_open that is not closed yet"},
    {MPI_ERR_AMODE, nullptr,
     "pass exactly one of MPI_MODE_RDONLY, MPI_MODE_WRONLY and MPI_MODE_RDWR, and combine others "
     "with it by |"},
    {MPI_ERR_NOT_SAME,
     "a value that was computed on each rank by itself, or ranks that are at different calls",
     "pass the same value on all ranks of the file's communicator"},
    {MPI_ERR_INTERN, nullptr, "please report it, with this line"},
};

const Usual* find_usual(int code) {
  for (const Usual& one : usual) {
    if (one.code == code) return &one;
  }
  return nullptr;
}

const char* usual_remedy(int code) {
  const Usual* one = find_usual(code);
  return one ? one->remedy : "check the arguments of this call";
}

const Meaning* find_meaning(Outcome outcome) {
  for (const Meaning& meaning : meanings) {
    if (meaning.outcome == outcome) return &meaning;
  }
  return nullptr;
}

// What is known about the call, in the order in which people ask.
void tell(Line& line, const Story& story, int code, const char* why, const char* remedy,
          const char* cause) {
  runtime::Process& self = process();
  if (self.is_running()) line << "rank " << self.rank() << " on " << self.host() << ": ";
  line << story.call << " failed: " << why;
  const char* between = " (";
  const auto item = [&](const char* name) -> Line& {
    line << between << name;
    between = ", ";
    return line;
  };
  if (story.peer != unset) {
    item(story.window ? "target " : story.receives ? "source " : "destination ");
    if (story.peer == MPI_ANY_SOURCE) {
      line << "MPI_ANY_SOURCE";
    } else {
      line << story.peer;
    }
  }
  if (story.tag != unset) {
    item("tag ");
    if (story.tag == MPI_ANY_TAG) {
      line << "MPI_ANY_TAG";
    } else {
      line << story.tag;
    }
  }
  if (story.count != INT64_MIN) item("count ") << story.count;
  if (story.type) {
    if (*story.type->name()) {
      item("datatype ") << story.type->name();
    } else {
      item("a derived datatype of ") << story.type->size() << " bytes";
    }
    if (story.count > 0) line << ", " << uint64_t(story.count) * story.type->size() << " bytes";
  }
  if (story.file) item("file ") << story.file->name;
  if (story.comm) {
    if (*story.comm->name) {
      item("communicator ") << story.comm->name << " of ";
    } else {
      item("a communicator without a name, of ");
    }
    line << story.comm->own.size << (story.comm->own.size == 1 ? " rank" : " ranks");
    if (story.comm->is_inter()) line << " and " << story.comm->others.size << " beyond";
  }
  if (story.window) {
    const int size = story.window->comm->own.size;
    if (*story.window->name) {
      item("window ") << story.window->name << " of ";
    } else {
      item("a window without a name, of ");
    }
    line << size << (size == 1 ? " rank" : " ranks");
  }
  if (between[0] == ',') line << ")";
  line << ". " << error_name(error_class(code)) << ".";
  const Usual* known = find_usual(error_class(code));
  if (!cause && known) cause = known->cause;
  if (cause) line << " Likely cause: " << cause << ".";
  line << " Likely remedy: " << (remedy ? remedy : usual_remedy(error_class(code))) << ".";
}

// Calls without a communicator raise their errors on MPI_COMM_SELF since MPI 4.0, before on
// MPI_COMM_WORLD. Programs that know the older rule set that one alone, and mean all errors.
objects::Comm* comm_for(const Story& story) {
  const objects::Registry& all = registry();
  return story.comm ? story.comm : all.self_handler_set ? all.self : all.world;
}

objects::Errhandler& handler_for(const Story& story) {
  objects::Registry& all = registry();
  if (story.handler) return *story.handler;
  if (story.window) return *story.window->errhandler;
  if (story.file) return *story.file->errhandler;
  if (story.session) return *story.session->errhandler;
  const objects::Comm* comm = comm_for(story);
  return comm && comm->errhandler ? *comm->errhandler : all.errors_are_fatal;
}

// The window whose own communicator that is: a request of an operation on it knows no more.
const objects::Window* window_behind(const objects::Comm* comm) {
  const objects::Window* found = nullptr;
  registry().windows.each([&](const void* object) {
    const auto* window = static_cast<const objects::Window*>(object);
    if (window->comm == comm) found = window;
    return !found;
  });
  return found;
}

// What a call would have made is not there yet: its handler gets the null handle.
void call_user_handler(const Story& story, const objects::Errhandler& handler, int code) {
  if (handler.target == objects::ErrhandlerTarget::session) {
    auto session = story.session ? handle_of<MPI_Session>(story.session->handle) : MPI_SESSION_NULL;
    reinterpret_cast<MPI_Session_errhandler_function*>(handler.function)(&session, &code);
    return;
  }
  if (handler.target == objects::ErrhandlerTarget::window) {
    const objects::Window* window = story.window ? story.window : window_behind(story.comm);
    MPI_Win win = window ? handle_of<MPI_Win>(window->handle) : MPI_WIN_NULL;
    reinterpret_cast<MPI_Win_errhandler_function*>(handler.function)(&win, &code);
    return;
  }
  if (handler.target == objects::ErrhandlerTarget::file) {
    const bool is_open = story.file && story.file->handle;
    MPI_File file = is_open ? handle_of<MPI_File>(story.file->handle) : MPI_FILE_NULL;
    reinterpret_cast<MPI_File_errhandler_function*>(handler.function)(&file, &code);
    return;
  }
  const objects::Comm* on = story.handler ? nullptr : comm_for(story);
  MPI_Comm comm = on ? handle_of<MPI_Comm>(on->handle) : MPI_COMM_NULL;
  reinterpret_cast<MPI_Comm_errhandler_function*>(handler.function)(&comm, &code);
}

}  // namespace

int error_class_of(Outcome outcome) {
  if (outcome == Outcome::ok) return MPI_SUCCESS;
  const Meaning* meaning = find_meaning(outcome);
  return meaning ? meaning->code : MPI_ERR_INTERN;
}

int raise(const Story& story, Outcome outcome) {
  const Meaning* meaning = find_meaning(outcome);
  return meaning ? raise(story, meaning->code, meaning->why, meaning->remedy)
                 : raise(story, MPI_ERR_INTERN, "Headway MPI met a state that it should not");
}

int raise(const Story& story, int code, const char* why, const char* remedy, const char* cause) {
  objects::Errhandler& handler = handler_for(story);
  switch (handler.kind) {
    case objects::ErrhandlerKind::returning: return code;
    case objects::ErrhandlerKind::user: call_user_handler(story, handler, code); return code;
    default: break;
  }
  Line last;
  last << "headway: ";
  tell(last, story, code, why, remedy, cause);
  last << " The job ends"
       << (story.window ? " (errors are fatal on this window).\n"
           : story.comm ? " (errors are fatal on this communicator).\n"
                        : ".\n");
  last.write_to(2);
  base::Text<80> reason;
  reason << "headway: error in " << story.call;
  process().abort(error_class(code), nullptr, reason.c_str());
}

namespace {

bool is_predefined(MPI_Comm handle) { return handle == MPI_COMM_WORLD || handle == MPI_COMM_SELF; }

}  // namespace
int raise_null(const Story& story, const char* names, const void* const* arguments) {
  for (; arguments && *arguments; ++arguments) names = strchr(names, ',') + 2;
  base::Text<100> why;
  why << "the argument ";
  why.append(names, strcspn(names, ","));
  why << " is a null pointer";
  return raise(story, MPI_ERR_ARG, why.c_str(),
               "pass the address of a variable, or of an array that is long enough",
               "a result that the program does not want, or a pointer that was never set");
}

int raise_null(const char* call, const char* names, const void* const* arguments) {
  return raise_null(Story{.call = call}, names, arguments);
}

int raise_missing(const Missing& what) {
  Story story = what.story;
  if (!what.any_time && !is_running()) return not_running(story.call);
  if (what.comm) {
    if (const int code = take_comm(story, what.comm)) return code;
  }
  if (what.session) {
    if (const int code = take_session(story, what.session)) return code;
  }
  if (what.win) {
    if (const int code = take_window(story, what.win)) return code;
  }
  if (what.file) {
    if (const int code = take_file(story, what.file)) return code;
  }
  if (what.of_files) story.handler = &handler_of_files();
  if (what.errhandler) {
    registry().prepare();
    story.handler = registry().find_errhandler(value_of(what.errhandler));
  }
  if (what.datatype) story.type = registry().find_type(value_of(what.datatype));
  return raise_null(story, what.argument, nullptr);
}

int raise_too_much(const Story& story) {
  return raise(story, MPI_ERR_COUNT, "no memory is as large as the data",
               "look at how the count, the displacements and the datatype were computed",
               "a difference that came out negative, a product that has overflowed, or a variable "
               "that was never set");
}

int raise_data(const Story& story, MPI_Datatype datatype) {
  if (story.count < 0) return raise(story, MPI_ERR_COUNT, "the count is negative");
  if (!story.type) return raise(story, MPI_ERR_TYPE, why_no_type(datatype));
  if (!story.type->committed()) {
    return raise(story, MPI_ERR_TYPE, "the datatype is not committed",
                 "call MPI_Type_commit once, before the first send or receive with it");
  }
  return raise_too_much(story);
}

int raise_buffer(const Story& story, const void* buffer) {
  if (buffer) return raise(story, MPI_ERR_BUFFER, "MPI_IN_PLACE is not allowed for this buffer");
  return raise(story, MPI_ERR_BUFFER, "the buffer is a null pointer",
               "look at what the allocation returned, and pass the data's address",
               "an allocation that failed or comes later, or a pointer that was never set");
}

int raise_no_comm(const Story& story, MPI_Comm handle) {
  const uint32_t ended_with = registry().comms.why_ended(value_of(handle));
  const bool after = process().world.load(std::memory_order_acquire) == runtime::State::after;
  if ((after && is_predefined(handle)) || ended_with == ended_with_world) {
    return raise(story, MPI_ERR_COMM,
                 is_predefined(handle)
                     ? "MPI_COMM_WORLD and MPI_COMM_SELF have ended with MPI_Finalize"
                     : "the communicator was made from MPI_COMM_WORLD or MPI_COMM_SELF, and has "
                       "ended with MPI_Finalize",
                 "call it before MPI_Finalize, or on a communicator of a session that is open");
  }
  if (ended_with == ended_with_session) {
    return raise(story, MPI_ERR_COMM,
                 "the communicator belongs to a session, and has ended with MPI_Session_finalize",
                 "call it before MPI_Session_finalize, and free the communicator there");
  }
  if (is_predefined(handle)) {
    return raise(story, MPI_ERR_COMM, "this communicator is there from MPI_Init to MPI_Finalize",
                 "programs of sessions alone make theirs with MPI_Comm_create_from_group");
  }
  if (handle == MPI_COMM_NULL) {
    return raise(
        story, MPI_ERR_COMM, "the communicator is MPI_COMM_NULL",
        "compare it with MPI_COMM_NULL before the call, and leave the call to the ranks that "
        "are in it",
        "this rank was left out when the communicator was made (MPI_UNDEFINED in "
        "MPI_Comm_split, a group without it)");
  }
  return raise(
      story, MPI_ERR_COMM, "the communicator is not valid: it was freed, or never made", nullptr,
      "MPI_Comm_free was called on it, perhaps through a copy of its handle in another part "
      "of the program, or its variable was never set");
}

int raise_inter(const Story& story) {
  return raise(story, MPI_ERR_COMM, "this call is not for inter-communicators",
               "call it on a communicator of one group; MPI_Intercomm_merge makes one of both");
}

void cannot_start(const char* call) {
  base::Text<700> line;
  line << "headway: " << call << " failed: " << process().story() << "\n";
  line.write_to(2);
  process().abort(1, nullptr);
}

int not_running(const char* call) {
  runtime::Process& self = process();
  const bool after = self.world.load() == runtime::State::after;
  Line line;
  line << "headway: ";
  if (self.state.load() >= runtime::State::resting)
    line << "rank " << self.rank() << " on " << self.host() << ": ";
  line << call << " was called ";
  if (self.forked) {
    line << "in a forked child: a child of an MPI process has no MPI of its own. Likely remedy: "
            "start programs with exec before they call MPI";
  } else if (self.state.load() == runtime::State::resting && !after) {
    line
        << "after the last session was finalized. Likely cause: it stands behind "
           "MPI_Session_finalize, in a destructor, in an exit handler, or in a library that cleans "
           "up late. Likely remedy: let MPI_Session_finalize be the last call of MPI, or open "
           "another session first";
  } else if (after) {
    line << "after MPI_Finalize. Likely cause: it stands behind MPI_Finalize, in a destructor, in "
            "an exit handler, or in a library that cleans up late. Likely remedy: let MPI_Finalize "
            "be the last call of MPI; MPI_Finalized tells whether it was called";
  } else {
    line << "before MPI_Init. Likely cause: it stands before MPI_Init, in a constructor of a "
            "global object, or in a library that starts to work early. Likely remedy: call "
            "MPI_Init, MPI_Init_thread or MPI_Session_init first; MPI_Initialized tells whether "
            "that was done";
  }
  line << ". The program ends.\n";
  line.write_to(2);
  self.abort(1, nullptr);
}

namespace {

int raise_unsupported(const Story& story) {
  return raise(story, MPI_ERR_UNSUPPORTED_OPERATION,
               "this function is not there yet in Headway MPI",
               "the README lists what is there; --library program runs a program on the MPI it "
               "was built for");
}

}  // namespace

int unsupported(const char* function) {
  if (!is_running()) return MPI_ERR_UNSUPPORTED_OPERATION;
  return raise_unsupported({.call = function});
}

int unsupported(const char* function, MPI_Comm comm) {
  if (!is_running()) return MPI_ERR_UNSUPPORTED_OPERATION;
  Story story{.call = function};
  if (const int code = take_comm(story, comm)) return code;
  return raise_unsupported(story);
}

}  // namespace headway::api
