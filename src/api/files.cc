// Files: opening, closing, sizes, hints, consistency, error handlers: MPI 5.0, sections 14.2, 14.6
// and 9.3.3. Views are in files_views.cc, data in files_data.cc.
#include "api/detail/files.h"

#include <cstring>

#include "api/detail/errhandlers.h"
#include "api/detail/groups.h"
#include "api/detail/info.h"
#include "api/detail/results.h"

namespace headway::api {

objects::Errhandler& handler_of_files() {
  objects::Registry& all = registry();
  return all.file_handler ? *all.file_handler : all.errors_return;
}

int take_file(Story& story, MPI_File handle) {
  if (!is_running()) [[unlikely]]
    return not_running(story.call);
  story.file = static_cast<io::File*>(registry().files.find(value_of(handle)));
  if (story.file) [[likely]]
    return MPI_SUCCESS;
  story.handler = &handler_of_files();
  return raise(story, MPI_ERR_FILE,
               handle == MPI_FILE_NULL ? "the file is MPI_FILE_NULL"
                                       : "the file is not valid: it was closed, or never opened");
}

int refuse_split(const Story& story) {
  if (!story.file->split.begun) return MPI_SUCCESS;
  base::Text<200> why;
  why << "a split collective access, begun by " << story.file->split.begun << ", is under way";
  return raise(story, MPI_ERR_OTHER, why.c_str(),
               "end it first: a file has at most one, and no other collective call beside it",
               "the call ending in _end is missing, or stands too late");
}

// Collective, so that it is too late for a close; what this rank has written is in the file.
void close_left_files(const char* call, const objects::Session* session) {
  if (!process().is_running() || registry().files.count() == 0) return;
  const uint32_t left = io::abandon_all(place_of_files(), session);
  if (left == 0) return;
  base::Text<400> line;
  line << "headway: rank " << process().rank() << " on " << process().host() << ": " << call
       << " was called, and " << left << (left == 1 ? " file was" : " files were")
       << " still open. Likely remedy: call MPI_File_close for each file of MPI_File_open; it "
          "tells whether all that was written is there.\n";
  line.write_to(2);
}

}  // namespace headway::api

using namespace headway;
using namespace headway::api;

namespace {

// What is wrong with an access mode; null: nothing.
const char* refuse_mode(int mode) {
  constexpr int ways = MPI_MODE_RDONLY | MPI_MODE_WRONLY | MPI_MODE_RDWR;
  constexpr int known = ways | MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_DELETE_ON_CLOSE |
                        MPI_MODE_UNIQUE_OPEN | MPI_MODE_SEQUENTIAL | MPI_MODE_APPEND;
  if (mode & ~known) return "the access mode has bits that mean nothing for a file";
  const int way = mode & ways;
  if (way != MPI_MODE_RDONLY && way != MPI_MODE_WRONLY && way != MPI_MODE_RDWR)
    return "the access mode does not have exactly one way of access";
  if (way == MPI_MODE_RDONLY && (mode & (MPI_MODE_CREATE | MPI_MODE_EXCL)))
    return "a file that is only read can be neither made nor required to be new";
  if (way == MPI_MODE_RDWR && (mode & MPI_MODE_SEQUENTIAL))
    return "a sequential file is either read or written, not both (MPI_MODE_RDWR)";
  return nullptr;
}

int take_hints(const Story& story, MPI_Info handle, io::Hints& hints) {
  if (handle == MPI_INFO_NULL) return MPI_SUCCESS;
  objects::Info* info = nullptr;
  if (const int code = take_info(story, handle, info)) return code;
  hints.take(*info);
  return MPI_SUCCESS;
}

int file_open(const char* call, MPI_Comm comm, const char* filename, int amode, MPI_Info info,
              MPI_File* fh) {
  Story story{.call = call};
  if (!is_running()) return not_running(call);
  story.handler = &handler_of_files();
  if (const int code = take_comm(story, comm)) return code;
  *fh = MPI_FILE_NULL;
  if (story.comm->peers != story.comm->group) {
    return raise(story, MPI_ERR_COMM, "a file cannot be opened on an inter-communicator",
                 "open it on the communicator of one side");
  }
  // Whatever is wrong here, the others are waiting for this rank.
  io::Hints hints;
  int code = take_hints(story, info, hints);
  const char* const wrong = refuse_mode(amode);
  if (!code && wrong) code = raise(story, MPI_ERR_AMODE, wrong);
  if (!code && !*filename) code = raise(story, MPI_ERR_BAD_FILE, "the file's name is empty");
  const Inside inside(call, unset, unset, story.comm);
  io::File* file = nullptr;
  const io::Ending ending =
      io::open(place_of_files(),
               {story.comm, code ? nullptr : filename, amode, hints, &handler_of_files()}, file);
  if (code) return code;
  if (const int failed = conclude(story, ending, "the file's name or the access mode", filename))
    return failed;
  *fh = handle_of<MPI_File>(file->handle);
  return MPI_SUCCESS;
}

int file_close(const char* call, MPI_File* fh) {
  Story story{.call = call};
  if (const int code = take_file(story, *fh)) return code;
  if (const int code = refuse_split(story)) return code;
  const Inside inside(call, unset, unset, story.file->comm);
  const io::Ending ending = io::close(place_of_files(), *story.file);
  *fh = MPI_FILE_NULL;
  const int code = conclude(story, ending, "nothing");
  io::release(story.file);
  return code;
}

int file_delete(const char* call, const char* filename, MPI_Info info) {
  Story story{.call = call};
  if (!is_running()) return not_running(call);
  story.handler = &handler_of_files();
  io::Hints hints;
  if (const int code = take_hints(story, info, hints)) return code;
  const io::Failure failed = io::remove_file(filename);
  return failed ? raise(story, failed, filename) : MPI_SUCCESS;
}

// --- sizes ---

int resize(const char* call, MPI_File fh, MPI_Offset size, bool reserves) {
  Story story{.call = call};
  if (const int code = take_file(story, fh)) return code;
  if (const int code = refuse_split(story)) return code;
  int code = MPI_SUCCESS;
  if (!story.file->may_write()) {
    code = raise(story, MPI_ERR_READ_ONLY, "the file is open for reading only",
                 "open it with MPI_MODE_RDWR or MPI_MODE_WRONLY");
  } else if (size < 0) {
    code = raise(story, MPI_ERR_ARG, "the size is negative", "a file has 0 bytes or more");
  } else if (story.file->is_sequential()) {
    code = raise(story, MPI_ERR_UNSUPPORTED_OPERATION,
                 "the size of a file of MPI_MODE_SEQUENTIAL is what is written to it",
                 "open it without MPI_MODE_SEQUENTIAL");
  }
  const Inside inside(call, unset, unset, story.file->comm);
  const io::Ending ending = io::set_size(place_of_files(), *story.file, size, reserves, !code);
  return code ? code : conclude(story, ending, "the size");
}

int get_size(const char* call, MPI_File fh, MPI_Offset* size) {
  Story story{.call = call};
  if (const int code = take_file(story, fh)) return code;
  int64_t bytes = 0;
  if (const io::Failure failed = story.file->disk.size(bytes)) return raise(story, failed);
  *size = bytes;
  return MPI_SUCCESS;
}

// --- what is known of it ---

int get_group(const char* call, MPI_File fh, MPI_Group* group) {
  Story story{.call = call};
  if (const int code = take_file(story, fh)) return code;
  objects::Group* of = story.file->comm->group;
  of->retain();
  return hand_out_group(story, of, group);
}

int get_amode(const char* call, MPI_File fh, int* amode) {
  Story story{.call = call};
  if (const int code = take_file(story, fh)) return code;
  *amode = story.file->mode;
  return MPI_SUCCESS;
}

int set_info(const char* call, MPI_File fh, MPI_Info info) {
  Story story{.call = call};
  if (const int code = take_file(story, fh)) return code;
  return take_hints(story, info, story.file->hints);
}

int get_info(const char* call, MPI_File fh, MPI_Info* info_used) {
  Story story{.call = call};
  if (const int code = take_file(story, fh)) return code;
  objects::Info* made = objects::Info::make();
  if (made && !story.file->hints.tell(*made, story.file->name)) {
    made->release();
    made = nullptr;
  }
  return hand_out_info(story, made, info_used);
}

// --- consistency ---

int set_atomicity(const char* call, MPI_File fh, int flag) {
  Story story{.call = call};
  if (const int code = take_file(story, fh)) return code;
  if (const int code = refuse_split(story)) return code;
  const Inside inside(call, unset, unset, story.file->comm);
  return conclude(story, io::set_atomicity(place_of_files(), *story.file, flag != 0), "the flag");
}

int get_atomicity(const char* call, MPI_File fh, int* flag) {
  Story story{.call = call};
  if (const int code = take_file(story, fh)) return code;
  *flag = story.file->atomic.load(std::memory_order_relaxed);
  return MPI_SUCCESS;
}

int file_sync(const char* call, MPI_File fh) {
  Story story{.call = call};
  if (const int code = take_file(story, fh)) return code;
  if (const int code = refuse_split(story)) return code;
  const Inside inside(call);  // it waits for no other rank
  const io::Failure failed = io::sync(place_of_files(), *story.file);
  return failed ? raise(story, failed) : MPI_SUCCESS;
}

// --- error handlers ---

// MPI_FILE_NULL stands for the files that will be opened, and for calls on none.
int set_errhandler(const char* call, MPI_File file, MPI_Errhandler errhandler) {
  Story story{.call = call};
  if (!is_running()) return not_running(call);
  const bool is_default = file == MPI_FILE_NULL;
  if (is_default) {
    story.handler = &handler_of_files();
  } else if (const int code = take_file(story, file)) {
    return code;
  }
  objects::Errhandler* handler;
  if (const int code =
          take_errhandler(story, errhandler, objects::ErrhandlerTarget::file, handler)) {
    return code;
  }
  replace_errhandler(is_default ? registry().file_handler : story.file->errhandler, handler);
  return MPI_SUCCESS;
}

int get_errhandler(const char* call, MPI_File file, MPI_Errhandler* errhandler) {
  Story story{.call = call};
  if (!is_running()) return not_running(call);
  if (file == MPI_FILE_NULL) {
    *errhandler = give_errhandler(&handler_of_files());
    return MPI_SUCCESS;
  }
  if (const int code = take_file(story, file)) return code;
  *errhandler = give_errhandler(story.file->errhandler);
  return MPI_SUCCESS;
}

int call_errhandler(const char* call, MPI_File fh, int errorcode) {
  Story story{.call = call};
  if (!is_running()) return not_running(call);
  if (fh == MPI_FILE_NULL) {
    story.handler = &handler_of_files();
  } else if (const int code = take_file(story, fh)) {
    return code;
  }
  raise(story, errorcode, "the program called the error handler itself");
  return MPI_SUCCESS;
}

}  // namespace

#include "api/entries/files.inl"
