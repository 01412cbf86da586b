// Data of files: MPI 5.0, section 14.4. One body for all: where an access begins, whether all ranks
// take part, and how the call ends, are its style.
#include <cstring>

#include "api/detail/files.h"
#include "api/detail/message.h"
#include "api/detail/requests.h"
#include "api/detail/results.h"
#include "api/detail/status.h"
#include "base/clock.h"
#include "io/counters.h"

using namespace headway;
using namespace headway::api;

namespace {

// Where an access begins: at an offset, at this rank's pointer, at the shared one, or there in the
// order of the ranks.
enum class At : uint8_t { offset, own, shared, ordered };
// How the call ends: it waits, hands out a request, or leaves it to a call ending in _end.
enum class End : uint8_t { wait, request, begin };

struct Style {
  bool writes;
  bool collective;
  At at;
  End end;
};
constexpr bool reads = false, writes = true, alone = false, together = true;

// What a call is given beside its style.
struct Given {
  MPI_Offset offset;
  const void* buffer;
  int64_t count;
  MPI_Datatype datatype;
};

// The access that a call means: its data, and its place in the view.
struct Access {
  io::Data data;
  io::View* view = nullptr;  // with a reference
  uint64_t bytes = 0;        // of the file
  int64_t etypes = 0;
  int64_t place = 0;        // in etypes
  bool of_program = false;  // functions of the program convert it

  Access() = default;
  ~Access() {
    if (view) view->release();
  }
  Access(const Access&) = delete;
  Access& operator=(const Access&) = delete;
};

int check_mode(const Story& story, const Style& style) {
  const io::File& file = *story.file;
  if (style.writes && !file.may_write()) {
    return raise(story, MPI_ERR_READ_ONLY, "the file is open for reading only",
                 "open it with MPI_MODE_RDWR or MPI_MODE_WRONLY");
  }
  if (!style.writes && !file.may_read()) {
    return raise(story, MPI_ERR_ACCESS, "the file is open for writing only",
                 "open it with MPI_MODE_RDWR or MPI_MODE_RDONLY");
  }
  if (file.is_sequential() && style.at != At::shared && style.at != At::ordered) {
    return raise(story, MPI_ERR_UNSUPPORTED_OPERATION,
                 "a file of MPI_MODE_SEQUENTIAL is accessed by its shared pointer alone",
                 "use the calls ending in _shared or _ordered, or open it without that mode");
  }
  return style.collective || style.at == At::ordered ? refuse_split(story) : MPI_SUCCESS;
}

int raise_place(const Story& story) {
  return raise(story, MPI_ERR_ARG, "the access leads beyond what a file can have",
               "look at how the offset was computed; it counts etypes of the view");
}

int take_access(Story& story, const Style& style, const Given& given, Access& access) {
  if (const int code = check_mode(story, style)) return code;
  if (const int code = take_data(story, given.buffer, given.count, given.datatype)) return code;
  if (style.at == At::offset && given.offset < 0) {
    return raise(story, MPI_ERR_ARG, "the offset is negative",
                 "offsets count etypes from the start of the view");
  }
  access.view = story.file->take_view();
  const io::Representation& representation = access.view->representation();
  access.of_program = representation.is_of_program;
  access.data = {const_cast<void*>(given.buffer), uint64_t(given.count), story.type,
                 value_of(given.datatype)};
  if (io::file_bytes(access.data, representation, access.bytes) != Outcome::ok) {
    return raise(story, MPI_ERR_TYPE, "the data has no size in the file's representation",
                 "look at what the extent function of the representation returns");
  }
  const uint64_t unit = access.view->etype_bytes();
  if (access.bytes % unit != 0) {
    base::Text<200> why;
    why << "the data takes " << access.bytes << " bytes of the file, which is no whole number of "
        << "etypes of " << unit << " bytes";
    return raise(story, MPI_ERR_ARG, why.c_str(),
                 "access whole etypes, or set a view with a smaller one");
  }
  access.etypes = int64_t(access.bytes / unit);
  return MPI_SUCCESS;
}

// This rank's own pointer goes on at once, so that another thread's access begins behind this one.
int64_t move_own(io::File& file, int64_t etypes) {
  const base::SpinGuard guard(file.lock);
  const int64_t before = file.position;
  if (__builtin_add_overflow(before, etypes, &file.position)) file.position = INT64_MAX;
  return before;
}

// A read that has met the end of the file has moved it too far.
void move_back(io::File& file, const Access& access, uint64_t moved) {
  const uint64_t whole = access.data.bytes();
  if (moved == whole || whole == 0) return;
  // Converted data has other sizes in the file; what was moved is whole elements then.
  const auto there = int64_t(moved / access.data.type->size() * (access.bytes / access.data.count));
  const int64_t etypes = access.data.bytes() == access.bytes
                             ? int64_t(moved / access.view->etype_bytes())
                             : there / int64_t(access.view->etype_bytes());
  const base::SpinGuard guard(file.lock);
  // Unless somebody has set it meanwhile.
  if (file.position == access.place + access.etypes) file.position -= access.etypes - etypes;
}

// Finds where it begins; a shared pointer that a request asks for is found later.
int find_place(const Story& story, const Style& style, const Given& given, Access& access) {
  io::File& file = *story.file;
  switch (style.at) {
    case At::offset: access.place = given.offset; break;
    case At::own: access.place = move_own(file, access.etypes); break;
    case At::shared: {
      if (style.end == End::request && !access.of_program) return MPI_SUCCESS;
      const Outcome asked = io::move_shared(place_of_files(), file, access.etypes, access.place);
      if (asked != Outcome::ok) return raise(story, asked);
      break;
    }
    case At::ordered: {
      const io::Ending turn = io::take_turn(place_of_files(), file, access.etypes, access.place);
      if (const int code = conclude(story, turn, "nothing")) return code;
      break;
    }
  }
  uint64_t byte = 0;
  if (__builtin_mul_overflow(uint64_t(access.place), access.view->etype_bytes(), &byte) ||
      byte > uint64_t(INT64_MAX)) {
    return raise_place(story);
  }
  return MPI_SUCCESS;
}

// Told of the disk's part of a call, for the counters.
class DiskWait {
 public:
  DiskWait() : since_(base::now_ns()) {}
  ~DiskWait() {
    io::count(io::counters.waits);
    io::count(io::counters.wait_ns, base::now_ns() - since_);
  }
  DiskWait(const DiskWait&) = delete;
  DiskWait& operator=(const DiskWait&) = delete;

 private:
  const uint64_t since_;
};

void set_moved(MPI_Status* status, uint64_t moved) {
  set_status(status, {.source = MPI_ANY_SOURCE, .tag = MPI_ANY_TAG, .bytes = moved});
}

// Ends an access that is over: its status, its error, and the own pointer of a read.
int finish(const Story& story, const Style& style, const Access& access,
           const io::Operation& operation, MPI_Status* status) {
  set_moved(status, operation.moved());
  operation.note_told();
  if (style.at == At::own && !style.writes) move_back(*story.file, access, operation.moved());
  return operation.failure() ? raise(story, operation.failure()) : MPI_SUCCESS;
}

// By this thread and this rank alone.
int run_alone(const Story& story, const Style& style, const Access& access,
              io::Operation& operation, MPI_Status* status) {
  if (process().any_closed()) [[unlikely]] {
    const protocols::UserMemory::Extent extent = access.data.memory().extent();
    if (extent.from < extent.to) await_open(extent.from, size_t(extent.to - extent.from));
  }
  {
    const DiskWait waits;
    operation.run();
  }
  return finish(story, style, access, operation, status);
}

protocols::Request* start(const Style& style, const Access& access, io::Operation& operation) {
  waiting::Waiter& waiter = process().waiter();
  // Functions of the program run on its own threads.
  if (access.of_program) return operation.start_here(waiter);
  const io::By by = style.end == End::wait ? io::By::waiting : io::By::worker;
  if (style.collective || style.at == At::ordered) return operation.start_collective(waiter, by);
  if (style.at == At::shared) return operation.start_shared(waiter, by, access.etypes);
  return operation.start(waiter, by);
}

// What this rank was given is wrong, and the others of a collective access wait for it all the
// same: it comes without data. Files whose data is converted by the program are accessed without a
// word.
void take_part(const Story& story, const Style& style, bool has_turn) {
  io::File& file = *story.file;
  if (file.split.begun || file.comm->own.size == 1) return;
  int64_t place = 0;
  if (style.at == At::ordered && !has_turn) {
    (void)io::take_turn(place_of_files(), file, 0, place);
  }
  io::View* view = file.take_view();
  const io::Data nothing{.type = &datatypes::predefined(datatypes::BasicType::byte)};
  io::Operation* operation = view->representation().is_of_program
                                 ? nullptr
                                 : io::Operation::make(file, view, style.writes, 0, nothing, 0);
  view->release();
  if (!operation) return;
  operation->take_part(process().waiter());
  operation->release();
}

void wait_for(protocols::Request* request) {
  const DiskWait waits;
  io::wait_for(process().waiter(), request);
}

int access_file(const char* call, const Style& style, MPI_File fh, const Given& given,
                MPI_Status* status, MPI_Request* request) {
  Story story{.call = call};
  if (const int code = take_file(story, fh)) return code;
  Access access;
  const bool is_collective = style.collective || style.at == At::ordered;
  const Inside inside(call, unset, unset, is_collective ? story.file->comm : nullptr);
  if (const int code = take_access(story, style, given, access)) {
    if (is_collective) take_part(story, style, false);
    return code;
  }
  if (const int code = find_place(story, style, given, access)) {
    if (is_collective) take_part(story, style, true);
    return code;
  }
  const uint64_t at = uint64_t(access.place) * access.view->etype_bytes();
  io::Operation* operation =
      io::Operation::make(*story.file, access.view, style.writes, at, access.data, access.bytes);
  if (!operation) {
    if (is_collective) take_part(story, style, true);
    return raise(story, Outcome::no_memory);
  }
  int code = MPI_SUCCESS;
  if (style.end == End::wait && (!is_collective || access.of_program)) {
    code = run_alone(story, style, access, *operation, status);
    operation->release();
    return code;
  }
  protocols::Request* started = start(style, access, *operation);
  if (!started) {
    operation->release();
    return raise(story, Outcome::no_memory);
  }
  switch (style.end) {
    case End::request: code = hand_out(story, started, request); break;
    case End::wait:
      wait_for(started);
      code = finish(story, style, access, *operation, status);
      io::give_back(process().waiter(), started);
      break;
    case End::begin:
      story.file->split = {call, given.buffer, operation};
      operation->retain();
      break;
  }
  operation->release();
  return code;
}

// --- the entries' forms ---

int at_offset(const char* call, const Style& style, MPI_File fh, MPI_Offset offset,
              const void* buffer, int64_t count, MPI_Datatype datatype, MPI_Status* status,
              MPI_Request* request) {
  return access_file(call, style, fh, {offset, buffer, count, datatype}, status, request);
}

int at_pointer(const char* call, const Style& style, MPI_File fh, const void* buffer, int64_t count,
               MPI_Datatype datatype, MPI_Status* status, MPI_Request* request) {
  return access_file(call, style, fh, {0, buffer, count, datatype}, status, request);
}

// `begun`: the call that has begun it, without the _c that either may have.
int end_split(const char* call, const char* begun, MPI_File fh, const void* buffer,
              MPI_Status* status) {
  Story story{.call = call};
  if (const int code = take_file(story, fh)) return code;
  io::Split& split = story.file->split;
  const size_t length = strlen(begun);
  base::Text<240> why;
  if (!split.begun || strncmp(split.begun, begun, length) != 0 ||
      (split.begun[length] && strcmp(split.begun + length, "_c") != 0)) {
    if (split.begun) {
      why << "the split collective access under way was begun by " << split.begun;
    } else {
      why << "no split collective access is under way";
    }
    return raise(story, MPI_ERR_OTHER, why.c_str(), "end each access by the call of its own name");
  }
  if (split.buffer != buffer) {
    why << "the buffer is another one than " << split.begun << " was given";
    return raise(story, MPI_ERR_BUFFER, why.c_str(), "pass the same buffer to both calls");
  }
  const Inside inside(call);  // what it waits for has begun before
  io::Operation* const operation = split.operation;
  split = {};
  wait_for(operation->request());
  set_moved(status, operation->moved());
  operation->note_told();
  const int code = operation->failure() ? raise(story, operation->failure()) : MPI_SUCCESS;
  io::give_back(process().waiter(), operation->request());
  operation->release();
  return code;
}

}  // namespace

#include "api/entries/files_data.inl"
