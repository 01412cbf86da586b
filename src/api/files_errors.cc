// Errors of files: MPI 5.0, section 14.7. The system's number becomes a class, and a sentence that
// names the file, the place and the rank.
#include <cerrno>

#include "api/detail/files.h"
#include "api/detail/status.h"

namespace headway::api {
namespace {

struct Meaning {
  int error;
  int code;
  const char* why;
  const char* remedy;
};
constexpr Meaning meanings[] = {
    {ENOENT, MPI_ERR_NO_SUCH_FILE, "there is no such file",
     "look at the name and the working directory of the ranks; MPI_MODE_CREATE makes a new file"},
    {EEXIST, MPI_ERR_FILE_EXISTS, "the file exists already",
     "leave MPI_MODE_EXCL out, or delete the file first"},
    {EACCES, MPI_ERR_ACCESS, "permission is denied",
     "look at the permissions of the file and of the directories above it"},
    {EPERM, MPI_ERR_ACCESS, "permission is denied", "look at who owns the file"},
    {EROFS, MPI_ERR_READ_ONLY, "the file system is read-only",
     "write to another file system, or open the file with MPI_MODE_RDONLY"},
    {EBADF, MPI_ERR_ACCESS, "the file is not open for that",
     "open it with MPI_MODE_RDWR, or with the mode that this access needs"},
    {ENOSPC, MPI_ERR_NO_SPACE, "no space is left on the device",
     "free some space, or write to another file system; what was to be written is not complete"},
    {EFBIG, MPI_ERR_NO_SPACE, "the file would be larger than the system allows",
     "see ulimit -f and the limits of the file system"},
    {EDQUOT, MPI_ERR_QUOTA, "the disk quota is used up",
     "delete files of this user; what was to be written is not complete"},
    {EBUSY, MPI_ERR_FILE_IN_USE, "the file is in use", "wait until others have closed it"},
    {ETXTBSY, MPI_ERR_FILE_IN_USE, "the file is a program that runs",
     "write to another file, or end the program"},
    {EAGAIN, MPI_ERR_FILE_IN_USE, "the file is locked by others", "wait until they have closed it"},
    {ENAMETOOLONG, MPI_ERR_BAD_FILE, "the name is too long", "take a shorter one"},
    {ENOTDIR, MPI_ERR_BAD_FILE, "a part of the name is no directory", "look at the name"},
    {ELOOP, MPI_ERR_BAD_FILE, "the name leads through too many links", "look at the links"},
    {EISDIR, MPI_ERR_BAD_FILE, "it is a directory", "name a file in it"},
    {ESPIPE, MPI_ERR_BAD_FILE, "it is a pipe or a socket, which has no offsets",
     "name a file on a disk"},
    {ENXIO, MPI_ERR_BAD_FILE, "nobody has the other end of the pipe, or the device is not there",
     "name a file on a disk"},
    {EINVAL, MPI_ERR_BAD_FILE, "the file system does not do that with this file",
     "try another file system"},
    {EOVERFLOW, MPI_ERR_ARG, "the place is beyond what a file can have",
     "look at how the offset, the displacement and the file type were computed"},
    {ENOMEM, MPI_ERR_NO_MEM, "no memory is left", "see the machine's memory and ulimit -v"},
    {EMFILE, MPI_ERR_NO_MEM, "no descriptor is left", "see ulimit -n, and close files"},
    {ENFILE, MPI_ERR_NO_MEM, "the system has no more room for open files", "close files"},
    {ENOLCK, MPI_ERR_UNSUPPORTED_OPERATION, "the file system has no locks, or none left",
     "do without atomic mode, or take another file system"},
    {EOPNOTSUPP, MPI_ERR_UNSUPPORTED_OPERATION, "the file system cannot do that",
     "take another file system"},
    {ENOSYS, MPI_ERR_UNSUPPORTED_OPERATION, "the system cannot do that", "take a newer system"},
    {EIO, MPI_ERR_IO, "the device reports an error", "see the system's log (dmesg)"},
    {ESTALE, MPI_ERR_IO, "the file was deleted on its server", "open it again"},
    {io::bad_conversion, MPI_ERR_CONVERSION, "its data could not be converted",
     "look at the functions of the data representation, which report errors by their result"},
    {io::value_too_large, MPI_ERR_VALUE_TOO_LARGE,
     "a value does not fit external32, where MPI_LONG has 4 bytes and MPI_WCHAR 2",
     "describe the data as MPI_INT64_T or MPI_LONG_LONG, which keep their 8 bytes"},
    {io::before_view, MPI_ERR_ARG, "the place is before the start of the view",
     "offsets count etypes of the view"},
    {io::beyond_view, MPI_ERR_ARG, "the view has no such bytes",
     "look at the offset and at the file type of the view"},
    {io::not_the_same, MPI_ERR_NOT_SAME,
     "some ranks of the file write in this collective access, others read",
     "let all ranks of the file call the same collectives in the same order"},
    {E2BIG, MPI_ERR_COUNT,
     "an element of the datatype has more than 2^31 - 1 data items, which a function without _c "
     "cannot be told",
     "register the data representation by MPI_Register_datarep_c"},
    {io::peer_failed, MPI_ERR_OTHER, "the messages of another rank did not come through",
     "let all ranks of the file call the same collectives in the same order"},
};

const Meaning* find_meaning(int error) {
  for (const Meaning& meaning : meanings) {
    if (meaning.error == error) return &meaning;
  }
  return nullptr;
}

}  // namespace

int error_class_of(const io::Failure& failure) {
  if (!failure) return MPI_SUCCESS;
  const Meaning* meaning = find_meaning(failure.error);
  return meaning ? meaning->code : MPI_ERR_IO;
}

int raise(const Story& story, const io::Failure& failure, const char* name) {
  const Meaning* meaning = find_meaning(failure.error);
  base::Text<900> why;
  why << "could not " << failure.act << " the file ";
  why << (name ? name : story.file ? story.file->name : "");
  if (failure.offset != io::no_place) why << " at byte " << failure.offset;
  if (failure.rank != io::this_rank) {
    why << " (rank " << failure.rank << " of the file's communicator could not)";
  }
  why << ": ";
  if (meaning) {
    why << meaning->why;
  } else {
    why << "the system's error number is " << failure.error;
  }
  return raise(story, error_class_of(failure), why.c_str(),
               meaning ? meaning->remedy : "see errno(3) for the number");
}

int conclude(const Story& story, const io::Ending& ending, const char* same, const char* name) {
  if (ending.outcome != Outcome::ok) return raise(story, ending.outcome);
  base::Text<160> why;
  switch (ending.verdict) {
    case io::Verdict::done: return MPI_SUCCESS;
    case io::Verdict::failed: return raise(story, ending.failure, name);
    case io::Verdict::differ:
      why << "the ranks of the file's communicator have passed different values of " << same;
      return raise(story, MPI_ERR_NOT_SAME, why.c_str());
    case io::Verdict::elsewhere: break;
  }
  why << "the arguments of rank " << ending.failure.rank << " are wrong, so that no rank goes on";
  return raise(story, MPI_ERR_ARG, why.c_str(), "look at what that rank is told");
}

int show_file(const io::Operation& operation, MPI_Status* status) {
  set_status(status, {.source = MPI_ANY_SOURCE, .tag = MPI_ANY_TAG, .bytes = operation.moved()});
  return error_class_of(operation.failure());
}

int raise_operation(const char* call, const io::Operation& operation) {
  const Story story{.call = call, .file = &operation.file()};
  return raise(story, operation.failure());
}

}  // namespace headway::api
