// Errors: the one place where an Outcome becomes an MPI error class and a sentence for the user.
#include <cstdlib>
#include <unistd.h>

#include "api/detail/call.h"
#include "api/detail/errors.h"

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
     "receive with a larger count, or send less; MPI_Probe tells the size beforehand"},
    {Outcome::no_memory, MPI_ERR_NO_MEM, "no memory left",
     "see the machine's memory and ulimit -v"},
    {Outcome::peer_lost, MPI_ERR_PROC_ABORTED, "the other process is gone", nullptr},
    {Outcome::no_route, MPI_ERR_OTHER, "the other process cannot be reached", nullptr},
    {Outcome::no_resource, MPI_ERR_NO_MEM, "no more objects of this kind can be made",
     "free those that are not needed any more"},
    {Outcome::bad_argument, MPI_ERR_ARG, "an argument does not fit the others", nullptr},
    {Outcome::bad_operation, MPI_ERR_OP, "the operation is not defined on this datatype",
     "see MPI 5.0, section 6.9.2, for the datatypes of each operation"},
    {Outcome::unsupported, MPI_ERR_UNSUPPORTED_OPERATION, "this is not there yet in Headway MPI",
     nullptr},
};

const Meaning* find_meaning(Outcome outcome) {
  for (const Meaning& meaning : meanings) {
    if (meaning.outcome == outcome) return &meaning;
  }
  return nullptr;
}

// What is known about the call, in the order in which people ask.
void tell(Line& line, const Story& story, int code, const char* why, const char* remedy) {
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
    item(story.receives ? "source " : "destination ");
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
    item("datatype ") << (*story.type->name() ? story.type->name() : "without a name");
    if (story.count > 0) line << ", " << uint64_t(story.count) * story.type->size() << " bytes";
  }
  if (story.comm) {
    item("communicator ") << (*story.comm->name ? story.comm->name : "without a name") << " of "
                          << story.comm->size << " ranks";
  }
  if (between[0] == ',') line << ")";
  line << ". " << error_name(error_class(code)) << ".";
  if (remedy) line << " Likely remedy: " << remedy << ".";
}

objects::Errhandler& handler_for(const Story& story) {
  objects::Registry& all = registry();
  objects::Comm* comm = story.comm ? story.comm : all.self;
  return comm && comm->errhandler ? *comm->errhandler : all.errors_are_fatal;
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

int raise(const Story& story, int code, const char* why, const char* remedy) {
  objects::Errhandler& handler = handler_for(story);
  switch (handler.kind) {
    case objects::ErrhandlerKind::returning: return code;
    case objects::ErrhandlerKind::user: {
      MPI_Comm comm =
          handle_of<MPI_Comm>(story.comm ? story.comm->handle : value_of(MPI_COMM_SELF));
      reinterpret_cast<MPI_Comm_errhandler_function*>(handler.function)(&comm, &code);
      return code;
    }
    default: break;
  }
  Line last;
  last << "headway: ";
  tell(last, story, code, why, remedy);
  last << " The job ends" << (story.comm ? " (errors are fatal on this communicator).\n" : ".\n");
  last.write_to(2);
  process().abort(error_class(code), nullptr);
}

int not_running(const char* call) {
  runtime::Process& self = process();
  Line line;
  line << "headway: " << call << " was called ";
  if (self.forked) {
    line << "in a forked child: a child of an MPI process has no MPI of its own";
  } else if (self.state.load() == runtime::State::after) {
    line << "after MPI_Finalize";
  } else {
    line << "before MPI_Init";
  }
  line << ". The program ends.\n";
  line.write_to(2);
  self.abort(1, nullptr);
}

int unsupported(const char* function) {
  Story story{.call = function};
  if (!is_running()) return MPI_ERR_UNSUPPORTED_OPERATION;
  return raise(story, MPI_ERR_UNSUPPORTED_OPERATION,
               "this function is not there yet in Headway MPI",
               "the README lists what is there; --library program runs a program on the MPI it "
               "was built for");
}

}  // namespace headway::api
