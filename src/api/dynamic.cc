// Processes of other jobs: ports, accept and connect, join, names, spawn: MPI 5.0, section 11.7 to
// 11.10.
#include "api/detail/dynamic.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sys/socket.h>
#include <unistd.h>

#include "api/detail/collective.h"
#include "api/detail/info.h"
#include "api/detail/results.h"
#include "objects/context.h"
#include "spawn/join.h"
#include "spawn/junction.h"
#include "spawn/launch.h"
#include "spawn/names.h"
#include "waiting/holding.h"
#include "waiting/waiter.h"

using namespace headway;
using namespace headway::api;

namespace {

using spawn::Trouble;
using waiting::Holding;

static_assert(spawn::port_name_room == MPI_MAX_PORT_NAME);

constinit std::atomic<uintptr_t> parents_handle{0};  // 0: there never were any

constexpr char own_port[] =
    "pass a name that MPI_Open_port gave this process, before MPI_Close_port";

// `story`: what this rank knows beyond that; only at the root.
int raise_trouble(const Story& story, Trouble trouble, const char* told, const char* remedy) {
  base::Text<700> why;
  const auto raised = [&](int code, const char* usual, const char* todo) {
    why << usual;
    if (told && *told) why << ": " << told;
    return raise(story, code, why.c_str(), remedy ? remedy : todo);
  };
  switch (trouble) {
    case Trouble::none: return MPI_SUCCESS;
    case Trouble::bad_port:
      return raised(MPI_ERR_PORT, "no such port is open",
                    "pass the whole name that MPI_Open_port gave, while the port is open; the root "
                    "tells more");
    case Trouble::no_socket:
      return raised(MPI_ERR_OTHER, "a process could not open a socket",
                    "see ulimit -n for descriptors, ip link for interfaces");
    case Trouble::gone:
      return raised(MPI_ERR_PORT, "the root of the other side has left while both met",
                    "see what the other side says");
    case Trouble::refused:
      return raised(MPI_ERR_ARG, "the root has passed wrong arguments, of which it tells itself",
                    "see what the root says");
    case Trouble::version:
      return raised(MPI_ERR_PORT, "the other side has another version of the library",
                    "run both jobs with the same version of Headway MPI");
    case Trouble::clash:
      return raised(
          MPI_ERR_OTHER,
          "two of the jobs have drawn the same number of 14 bits, by which their messages "
          "could not be told apart",
          "start one of the jobs again: it draws another number");
    case Trouble::shared:
      return raised(MPI_ERR_COMM, "a process is in both groups",
                    "connect groups that have no process in common");
    case Trouble::no_memory: return raise(story, Outcome::no_memory);
    case Trouble::not_started:
      return raised(MPI_ERR_SPAWN, "the processes were not started",
                    "see what mpiexec says on stderr; the root tells more");
    case Trouble::no_launcher:
      return raised(MPI_ERR_SPAWN, "nothing is here that starts processes",
                    "install Headway MPI with its mpiexec beside its library, as scripts and "
                    "packages do");
  }
  return MPI_SUCCESS;
}

// The root's own look at an info object; others do not look.
int take_hints(const Story& story, MPI_Info handle, const objects::Info*& info) {
  info = nullptr;
  if (handle == MPI_INFO_NULL) return MPI_SUCCESS;
  objects::Info* found = nullptr;
  const int code = take_info(story, handle, found);
  info = found;
  return code;
}

// Tells the launcher that this rank may wait for processes that it does not know.
class Abroad {
 public:
  Abroad() { process().whereabouts.abroad.store(1, std::memory_order_relaxed); }
  ~Abroad() { settle(); }
  Abroad(const Abroad&) = delete;
  Abroad& operator=(const Abroad&) = delete;
  static void settle() {
    const Holding holding(process().engine());
    process().whereabouts.abroad.store(spawn::junctions().any(), std::memory_order_relaxed);
  }
};

// Names and words of the program are read with the engine held: nothing of them may lie in closed
// pages then, which nobody else could open.
void open_for_engine() {
  if (process().any_closed()) await_all_open();
}

bool is_root(const Story& story) { return story.comm->own.self == story.root; }

// The groups of both sides come together, once the root has its Talk, by `reach`. `own`: why it
// need not try. `leads`: this side has accepted.
template <class Reach>
Trouble meet_others(const Story& story, int root, Trouble own, bool leads, Reach&& reach,
                    objects::Comm*& made) {
  spawn::Talk talk(process().waiter());
  const Abroad abroad;
  const Inside inside(story.call, unset, unset, story.comm);
  open_for_engine();
  if (is_root(story) && own == Trouble::none) {
    const Holding holding(process().engine());
    own = reach(talk);
  }
  const Trouble trouble =
      spawn::meet(home(), story.comm, root, &talk, own, leads, story.comm->errhandler, made);
  const Holding holding(process().engine());
  talk.close();
  return trouble;
}

// --- ports ---

int open_port(const char* call, MPI_Info info, char* port_name) {
  const Story story{.call = call};
  if (!is_running()) return not_running(call);
  const objects::Info* hints = nullptr;
  if (const int code = take_hints(story, info, hints)) return code;
  char name[spawn::port_name_room];
  tcp::PortStory told;
  Trouble opened = Trouble::none;
  {
    const Holding holding(process().engine());
    opened = spawn::ports().open(process().settings.tcp_interface, name, told);
  }
  if (opened != Trouble::none) return raise_trouble(story, opened, told.c_str(), nullptr);
  strcpy(port_name, name);
  return MPI_SUCCESS;
}

int close_port(const char* call, const char* port_name) {
  const Story story{.call = call};
  if (!is_running()) return not_running(call);
  open_for_engine();
  bool closed = false;
  {
    const Holding holding(process().engine());
    closed = spawn::ports().close(port_name);
  }
  if (closed) return MPI_SUCCESS;
  return raise(story, MPI_ERR_PORT, "no port of that name is open in this process", own_port);
}

// --- accept and connect ---

enum class Side : uint8_t { accepts, connects };

int come_together(const char* call, const char* port_name, MPI_Info info, int root, MPI_Comm comm,
                  MPI_Comm* newcomm, Side side) {
  Story story{.call = call};
  if (const int code = take_intra(story, comm)) return code;
  if (const int code = check_root(story, root)) return code;
  *newcomm = MPI_COMM_NULL;
  Trouble own = Trouble::none;
  tcp::PortStory told;
  int wrong = MPI_SUCCESS;
  const objects::Info* hints = nullptr;
  if (is_root(story)) {
    wrong = check_given(story, "port_name", port_name);
    if (wrong == MPI_SUCCESS) wrong = take_hints(story, info, hints);
    if (wrong != MPI_SUCCESS) own = Trouble::refused;
  }
  objects::Comm* made = nullptr;
  const auto reach = [&](spawn::Talk& talk) {
    if (side == Side::accepts)
      return spawn::ports().accept(port_name, talk, process().waiter(),
                                   {.room_us = process().settings.connect_timeout_us});
    return spawn::ports().connect(port_name, talk, process().waiter(),
                                  process().settings.connect_timeout_us, told);
  };
  const Trouble trouble = meet_others(story, root, own, side == Side::accepts, reach, made);
  if (wrong != MPI_SUCCESS) return wrong;
  if (trouble != Trouble::none) {
    const bool own_fault = side == Side::accepts && trouble == Trouble::bad_port;
    return raise_trouble(story, trouble, told.c_str(), own_fault ? own_port : nullptr);
  }
  *newcomm = handle_of<MPI_Comm>(made->handle);
  return MPI_SUCCESS;
}

int comm_accept(const char* call, const char* port_name, MPI_Info info, int root, MPI_Comm comm,
                MPI_Comm* newcomm) {
  return come_together(call, port_name, info, root, comm, newcomm, Side::accepts);
}

int comm_connect(const char* call, const char* port_name, MPI_Info info, int root, MPI_Comm comm,
                 MPI_Comm* newcomm) {
  return come_together(call, port_name, info, root, comm, newcomm, Side::connects);
}

// --- join ---

int comm_join(const char* call, int fd, MPI_Comm* intercomm) {
  Story story{.call = call};
  if (!is_running()) return not_running(call);
  *intercomm = MPI_COMM_NULL;
  int type = 0;
  socklen_t size = sizeof type;
  if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) != 0 || type != SOCK_STREAM) {
    return raise(story, MPI_ERR_ARG, "the descriptor is not that of a connected stream socket",
                 "pass a socket that connect() or accept() gave, of SOCK_STREAM");
  }
  spawn::Talk talk(process().waiter());
  tcp::PortStory told;
  objects::Comm* made = nullptr;
  Trouble trouble = Trouble::none;
  {
    const Abroad abroad;
    const Inside inside(call);
    bool accepts = false;
    {
      const Holding holding(process().engine());
      trouble = spawn::join(fd, process().waiter(), process().settings.tcp_interface,
                            process().settings.connect_timeout_us, talk, accepts, told);
    }
    trouble = spawn::meet(home(), registry().alone, 0, &talk, trouble, accepts,
                          registry().alone->errhandler, made);
    const Holding holding(process().engine());
    talk.close();
  }
  if (trouble != Trouble::none) return raise_trouble(story, trouble, told.c_str(), nullptr);
  *intercomm = handle_of<MPI_Comm>(made->handle);
  return MPI_SUCCESS;
}

// --- names ---

int raise_no_folder(const Story& story, const spawn::NameStory& told) {
  return raise(story, MPI_ERR_OTHER, told.c_str(),
               "let XDG_RUNTIME_DIR name a folder that only this user may write, or see /tmp");
}

int take_service(const Story& story, const char* service) {
  if (*service) return MPI_SUCCESS;
  return raise(story, MPI_ERR_ARG, "the service's name is empty", "name the service");
}

int publish_name(const char* call, const char* service, MPI_Info info, const char* port_name) {
  const Story story{.call = call};
  if (!is_running()) return not_running(call);
  const objects::Info* hints = nullptr;
  if (const int code = take_hints(story, info, hints)) return code;
  if (const int code = take_service(story, service)) return code;
  if (strnlen(port_name, MPI_MAX_PORT_NAME) == MPI_MAX_PORT_NAME || strchr(port_name, '\n')) {
    return raise(story, MPI_ERR_PORT, "the port's name is too long, or has a line's end in it",
                 "publish a name that MPI_Open_port gave");
  }
  spawn::NameStory told;
  switch (spawn::publish_name(service, port_name, told)) {
    case spawn::Named::done: return MPI_SUCCESS;
    case spawn::Named::no_folder: return raise_no_folder(story, told);
    case spawn::Named::taken:
    case spawn::Named::unknown: break;
  }
  return raise(story, MPI_ERR_SERVICE, "a process of this user has published that name already",
               "publish it under another name, or after MPI_Unpublish_name or the end of that "
               "process");
}

int unpublish_name(const char* call, const char* service, MPI_Info info, const char*) {
  const Story story{.call = call};
  if (!is_running()) return not_running(call);
  const objects::Info* hints = nullptr;
  if (const int code = take_hints(story, info, hints)) return code;
  spawn::NameStory told;
  switch (spawn::unpublish_name(service, told)) {
    case spawn::Named::done: return MPI_SUCCESS;
    case spawn::Named::no_folder: return raise_no_folder(story, told);
    case spawn::Named::taken:
    case spawn::Named::unknown: break;
  }
  return raise(story, MPI_ERR_SERVICE, "that name is not published",
               "unpublish each name once, as it was published");
}

int lookup_name(const char* call, const char* service, MPI_Info info, char* port_name) {
  const Story story{.call = call};
  if (!is_running()) return not_running(call);
  const objects::Info* hints = nullptr;
  if (const int code = take_hints(story, info, hints)) return code;
  spawn::NameStory told;
  char port[spawn::port_name_room];
  switch (spawn::look_up_name(service, port, told)) {
    case spawn::Named::done: strcpy(port_name, port); return MPI_SUCCESS;
    case spawn::Named::no_folder: return raise_no_folder(story, told);
    case spawn::Named::taken:
    case spawn::Named::unknown: break;
  }
  return raise(story, MPI_ERR_NAME,
               "no process of this user on this machine has published that name",
               "publish it first, with MPI_Publish_name, by a process that is still there");
}

// --- spawn ---

// What the root's caller wants: a program each.
struct Wish {
  int count;
  char* const* commands;
  char** const* arguments;  // MPI_ARGVS_NULL: none has any
  const int* ranks;
  const MPI_Info* infos;
  const char* names;  // what the standard calls the commands, the numbers and the info objects
};

constexpr int most_ranks = 1'000'000;  // as for mpiexec

int raise_ranks(const Story& story, int ranks) {
  base::Text<100> why;
  why << "the number of processes is " << ranks;
  return raise(story, MPI_ERR_SPAWN, why.c_str(), "ask for 1 to 1,000,000");
}

int take_programs(const Story& story, const Wish& wish, base::Vec<spawn::Program>& programs) {
  if (wish.count < 1) {
    return raise(story, MPI_ERR_ARG, "the root has passed no program",
                 "pass as many commands, numbers and info objects as the count says");
  }
  if (const int code = check_given(story, wish.names, wish.commands, wish.ranks, wish.infos)) {
    return code;
  }
  for (int i = 0; i < wish.count; ++i) {
    spawn::Program program;
    const objects::Info* info = nullptr;
    if (const int code = take_hints(story, wish.infos[i], info)) return code;
    program.command = wish.commands[i];
    program.arguments = wish.arguments ? wish.arguments[i] : nullptr;
    program.ranks = wish.ranks[i];
    if (!program.command || !*program.command) {
      return raise(story, MPI_ERR_ARG, "a command is null or empty", "name the program to start");
    }
    if (program.ranks < 1 || program.ranks > most_ranks) return raise_ranks(story, program.ranks);
    if (info) {
      program.directory = info->find("wdir");
      program.path = info->find("path");
      program.host = info->find("host");
      program.soft = info->find("soft");
    }
    if (!programs.push(program)) return raise(story, Outcome::no_memory);
  }
  return MPI_SUCCESS;
}

// A name for the new job, whose number has none of those that this process knows: so they can meet.
bool name_job(base::Text<64>& name) {
  for (int tries = 0; tries < 100; ++tries) {
    spawn::Secret draw;
    if (!spawn::make_secret(draw)) return false;
    name.clear();
    name << "headway_" << getpid() << "_";
    for (const unsigned char byte : draw.bytes) {
      const char digits[] = {"0123456789abcdef"[byte >> 4], "0123456789abcdef"[byte & 15]};
      name.append(digits, sizeof digits);
    }
    const uint32_t number = objects::job_number(name.c_str());
    if (number != home().job && !spawn::junctions().clashes(number, "")) return true;
  }
  return false;
}

// At the root: the processes are started, and their first one is on the line.
Trouble launch(const base::Vec<spawn::Program>& programs, spawn::Launch& launched,
               spawn::Talk& talk, base::Text<500>& told) {
  char port[spawn::port_name_room];
  tcp::PortStory why;
  base::Text<64> job;
  if (!name_job(job)) return Trouble::clash;
  Trouble trouble = spawn::ports().open(process().settings.tcp_interface, port, why);
  if (trouble != Trouble::none) {
    told << why.c_str();
    return trouble;
  }
  trouble = launched.start(programs.data(), programs.size(), port, job.c_str());
  if (trouble == Trouble::none) {
    const auto ended = [](void* what) { return static_cast<spawn::Launch*>(what)->has_ended(); };
    trouble = spawn::ports().accept(port, talk, process().waiter(), {ended, &launched});
    if (trouble == Trouble::gone) trouble = Trouble::not_started;
  }
  told << launched.story().c_str();
  (void)spawn::ports().close(port);
  return trouble;
}

int spawn_programs(const char* call, const Wish& wish, int root, MPI_Comm comm, MPI_Comm* intercomm,
                   int* errcodes) {
  Story story{.call = call};
  if (const int code = take_intra(story, comm)) return code;
  if (const int code = check_root(story, root)) return code;
  *intercomm = MPI_COMM_NULL;
  base::Vec<spawn::Program> programs;
  spawn::Launch launched;
  base::Text<500> told;
  int wrong = MPI_SUCCESS;
  Trouble own = Trouble::none;
  if (is_root(story)) {
    wrong = take_programs(story, wish, programs);
    if (wrong != MPI_SUCCESS) own = Trouble::refused;
  }
  objects::Comm* made = nullptr;
  const auto reach = [&](spawn::Talk& talk) { return launch(programs, launched, talk, told); };
  Trouble trouble = meet_others(story, root, own, true, reach, made);
  if (trouble == Trouble::gone) trouble = Trouble::not_started;
  const int code = trouble == Trouble::none ? MPI_SUCCESS : MPI_ERR_SPAWN;
  if (errcodes) {
    int ranks = made ? made->others.size : 0;
    if (!made) {
      for (const spawn::Program& program : programs) ranks += program.ranks;
    }
    for (int i = 0; i < ranks; ++i) errcodes[i] = code;
  }
  if (wrong != MPI_SUCCESS) return wrong;
  if (trouble != Trouble::none) return raise_trouble(story, trouble, told.c_str(), nullptr);
  *intercomm = handle_of<MPI_Comm>(made->handle);
  return MPI_SUCCESS;
}

int comm_spawn(const char* call, const char* command, char** argv, int maxprocs, MPI_Info info,
               int root, MPI_Comm comm, MPI_Comm* intercomm, int* errcodes) {
  char* const commands[] = {const_cast<char*>(command)};
  char** const arguments[] = {argv};
  const Wish wish{1,     command ? commands : nullptr, arguments, &maxprocs,
                  &info, "command, maxprocs, info"};
  return spawn_programs(call, wish, root, comm, intercomm, errcodes);
}

int comm_spawn_multiple(const char* call, int count, char** commands, char*** arguments,
                        const int* maxprocs, const MPI_Info* infos, int root, MPI_Comm comm,
                        MPI_Comm* intercomm, int* errcodes) {
  const Wish wish{count,    commands, arguments,
                  maxprocs, infos,    "array_of_commands, array_of_maxprocs, array_of_info"};
  return spawn_programs(call, wish, root, comm, intercomm, errcodes);
}

}  // namespace

namespace headway::api {

spawn::Home home() {
  runtime::Process& self = process();
  const char* name = self.bootstrap.job().job_id;
  return {self.waiter(),
          registry(),
          [] { return process().new_context(); },
          name,
          objects::job_number(name),
          uint32_t(self.rank())};
}

void meet_parents(const char* call) {
  const char* found = getenv(spawn::port_of_parents);
  if (!found) return;
  char port[spawn::port_name_room] = "";
  strncpy(port, found, sizeof port - 1);
  unsetenv(spawn::port_of_parents);  // what this process starts is not spawned by them
  const Abroad abroad;
  objects::Comm* everyone = registry().everyone;
  spawn::Talk talk(process().waiter());
  tcp::PortStory told;
  Trouble own = Trouble::none;
  if (everyone->own.self == 0) {
    const Holding holding(process().engine());
    own = spawn::ports().connect(port, talk, process().waiter(),
                                 process().settings.connect_timeout_us, told);
  }
  objects::Comm* made = nullptr;
  const Trouble trouble =
      spawn::meet(home(), everyone, 0, &talk, own, false, &registry().errors_are_fatal, made);
  if (trouble != Trouble::none) {
    base::Text<700> story;
    story << call << ": this process was spawned, but could not connect with its parents";
    if (told.size()) story << " (" << told.c_str() << ")";
    story << ". Likely cause: the job that called MPI_Comm_spawn has ended, or failed to connect; "
             "likely remedy: see what it says. The job ends.";
    process().abort(1, story.c_str(), "headway: its parents could not be reached");
  }
  const Holding holding(process().engine());
  talk.close();
  parents_handle.store(made->handle, std::memory_order_release);
}

uintptr_t parents() {
  const uintptr_t handle = parents_handle.load(std::memory_order_acquire);
  return handle && registry().find_comm(handle) ? handle : value_of(MPI_COMM_NULL);
}

bool crosses_jobs(const objects::Comm& comm) {
  if (!spawn::junctions().any()) return false;
  const Holding holding(process().engine());
  return spawn::junctions().is_crossed_by(comm);
}

int part(const Story& story) {
  const Inside inside(story.call, unset, unset, story.comm);
  const Outcome outcome = spawn::part(home(), story.comm);
  return outcome == Outcome::ok ? MPI_SUCCESS : raise(story, outcome);
}

void drop_across(objects::Comm* comm) {
  {
    protocols::Engine& engine = process().engine();
    const Holding holding(engine);
    // Persistent requests keep it, too, and may be started again.
    const bool is_kept = comm->references.load(std::memory_order_relaxed) > 1;
    if (is_kept || !engine.is_idle(comm, comm->context)) spawn::junctions().keep_for(*comm);
  }
  drop(comm);
  spawn::close_unused(home());
  Abroad::settle();
}

}  // namespace headway::api

#include "api/entries/dynamic.inl"
