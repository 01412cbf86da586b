// Views of files and pointers into them: MPI 5.0, sections 14.3, 14.4.3, 14.4.4 and 14.5.
#include <cstring>

#include "api/detail/files.h"
#include "api/detail/info.h"
#include "api/detail/results.h"
#include "api/detail/types.h"

using namespace headway;
using namespace headway::api;

namespace {

using datatypes::Type;

// Finds a datatype that is committed.
int take_committed(const Story& story, MPI_Datatype handle, const char* name, const Type*& type) {
  Story about = story;
  Type* found = nullptr;
  if (const int code = take_type(about, handle, found)) return code;
  type = found;
  if (found->committed()) return MPI_SUCCESS;
  base::Text<80> why;
  why << "the " << name << " is not committed";
  return raise(about, MPI_ERR_TYPE, why.c_str(), "call MPI_Type_commit once, before the call");
}

int no_representation(const Story& story, const char* name) {
  base::Text<200> why;
  why << "there is no data representation \"";
  why.append(name, strnlen(name, MPI_MAX_DATAREP_STRING));
  why << "\"";
  return raise(story, MPI_ERR_UNSUPPORTED_DATAREP, why.c_str(),
               "there are native, internal and external32, and those of MPI_Register_datarep");
}

// A type of the file's representation, for as long as this lives.
class FileType {
 public:
  FileType() = default;
  ~FileType() {
    if (type_) type_->release();
  }
  FileType(const FileType&) = delete;
  FileType& operator=(const FileType&) = delete;
  Outcome make(const Type& type, const io::Representation& representation) {
    return io::make_file_type(type, representation, type_);
  }
  const Type& operator*() const { return *type_; }

 private:
  const Type* type_ = nullptr;
};

// The view of a file as it is now, whatever another thread sets meanwhile.
class Viewing {
 public:
  explicit Viewing(io::File& file) : view_(file.take_view()) {}
  ~Viewing() { view_->release(); }
  Viewing(const Viewing&) = delete;
  Viewing& operator=(const Viewing&) = delete;
  const io::View* operator->() const { return view_; }

 private:
  io::View* const view_;
};

int not_in_file(const Story& story, Outcome outcome) {
  if (outcome != Outcome::unsupported) return raise(story, outcome);
  return raise(story, MPI_ERR_TYPE,
               "a part of the datatype has no size in the file's "
               "representation, or it is nested too deep",
               "look at what the extent function of the representation returns");
}

// Where the view begins: a place, or where the shared pointer is.
int take_displacement(const Story& story, MPI_Offset given, int64_t& displacement) {
  io::File& file = *story.file;
  displacement = given;
  if (given != MPI_DISPLACEMENT_CURRENT) {
    if (file.is_sequential()) {
      return raise(story, MPI_ERR_ARG,
                   "a file of MPI_MODE_SEQUENTIAL has views that begin where it is now",
                   "pass MPI_DISPLACEMENT_CURRENT as the displacement");
    }
    if (given >= 0) return MPI_SUCCESS;
    return raise(story, MPI_ERR_ARG, "the displacement is negative",
                 "displacements are bytes from the start of the file");
  }
  if (!file.is_sequential()) {
    return raise(story, MPI_ERR_ARG,
                 "the displacement MPI_DISPLACEMENT_CURRENT is for files of MPI_MODE_SEQUENTIAL",
                 "pass a number of bytes from the start of the file");
  }
  displacement = 0;  // found when all ranks are there
  return MPI_SUCCESS;
}

// The view that the arguments mean.
int make_view(const Story& story, MPI_Offset disp, MPI_Datatype etype, MPI_Datatype filetype,
              const char* datarep, io::View*& made) {
  const Type *unit = nullptr, *pattern = nullptr;
  if (const int code = take_committed(story, etype, "etype", unit)) return code;
  if (const int code = take_committed(story, filetype, "file type", pattern)) return code;
  const io::Representation* representation = find_representation(datarep);
  if (!representation) return no_representation(story, datarep);
  FileType unit_there, pattern_there;
  Outcome laid_out = unit_there.make(*unit, *representation);
  if (laid_out == Outcome::ok) laid_out = pattern_there.make(*pattern, *representation);
  if (laid_out != Outcome::ok) return not_in_file(story, laid_out);
  const uint64_t etype_bytes = (*unit_there).size();
  if (const char* wrong = io::View::refuse(*pattern_there, etype_bytes, story.file->may_write())) {
    return raise(story, MPI_ERR_TYPE, wrong,
                 "a file type is a datatype made of its etype whose displacements are not negative "
                 "and never go back (MPI 5.0, section 14.1.1)");
  }
  int64_t displacement = 0;
  if (const int code = take_displacement(story, disp, displacement)) return code;
  made =
      io::View::make(displacement, *unit, *pattern, *representation, etype_bytes, *pattern_there);
  return made ? MPI_SUCCESS : raise(story, Outcome::no_memory);
}

int set_view(const char* call, MPI_File fh, MPI_Offset disp, MPI_Datatype etype,
             MPI_Datatype filetype, const char* datarep, MPI_Info info) {
  Story story{.call = call};
  if (const int code = take_file(story, fh)) return code;
  if (const int code = refuse_split(story)) return code;
  const Inside inside(call, unset, unset, story.file->comm);
  io::View* made = nullptr;
  io::Hints wished = story.file->hints;
  // Whatever is wrong here, the others are waiting for this rank.
  int code = make_view(story, disp, etype, filetype, datarep, made);
  if (!code && info != MPI_INFO_NULL) {
    objects::Info* hints = nullptr;
    code = take_info(story, info, hints);
    if (!code) wished.take(*hints);
  }
  if (code && made) {
    made->release();
    made = nullptr;
  }
  const io::Ending ending = io::set_view(place_of_files(), *story.file, made, !code);
  if (!code && ending.is_good()) story.file->hints = wished;
  return code ? code : conclude(story, ending, "the etype or the data representation");
}

// A handle of a datatype that the program gave: predefined ones as they are, others new.
int give_type(const Story& story, const Type& type, MPI_Datatype* handle) {
  auto* own = const_cast<Type*>(&type);
  if (type.predefined()) {
    *handle = handle_of<MPI_Datatype>(datatypes::info(type.basic()).handle);
    return MPI_SUCCESS;
  }
  if (type.parametrized()) {
    *handle = handle_of<MPI_Datatype>(registry().handle_of_parametrized(own));
    return MPI_SUCCESS;
  }
  own->retain();
  return hand_out_type(story, Outcome::ok, own, handle);
}

int get_view(const char* call, MPI_File fh, MPI_Offset* disp, MPI_Datatype* etype,
             MPI_Datatype* filetype, char* datarep) {
  Story story{.call = call};
  if (const int code = take_file(story, fh)) return code;
  const Viewing view(*story.file);
  *disp = view->displacement();
  strcpy(datarep, view->representation().name);
  if (const int code = give_type(story, view->etype(), etype)) return code;
  const int code = give_type(story, view->file_type(), filetype);
  if (code && !view->etype().predefined() && !view->etype().parametrized()) {
    registry().types.remove(value_of(*etype));
    const_cast<Type&>(view->etype()).release();
    *etype = MPI_DATATYPE_NULL;
  }
  return code;
}

int get_type_extent(const char* call, MPI_File fh, MPI_Datatype datatype, int64_t* extent) {
  Story story{.call = call};
  if (const int code = take_file(story, fh)) return code;
  Type* type = nullptr;
  if (const int code = take_type(story, datatype, type)) return code;
  FileType there;
  const Outcome made = there.make(*type, Viewing(*story.file)->representation());
  if (made != Outcome::ok) return not_in_file(story, made);
  *extent = (*there).extent();
  return MPI_SUCCESS;
}

// --- pointers ---

int refuse_sequential(const Story& story) {
  if (!story.file->is_sequential()) return MPI_SUCCESS;
  return raise(story, MPI_ERR_UNSUPPORTED_OPERATION,
               "a file of MPI_MODE_SEQUENTIAL has only its shared pointer, which goes forward",
               "open it without MPI_MODE_SEQUENTIAL");
}

int check_whence(const Story& story, int whence) {
  if (whence == MPI_SEEK_SET || whence == MPI_SEEK_CUR || whence == MPI_SEEK_END)
    return MPI_SUCCESS;
  return raise(story, MPI_ERR_ARG, "the whence is none of the three",
               "pass MPI_SEEK_SET, MPI_SEEK_CUR or MPI_SEEK_END");
}

// The place of the individual pointer that an offset and a whence mean.
int find_place(const Story& story, MPI_Offset offset, int whence, int64_t& place) {
  if (const int code = check_whence(story, whence)) return code;
  int64_t from = 0;
  if (whence == MPI_SEEK_CUR) {
    const base::SpinGuard guard(story.file->lock);
    from = story.file->position;
  } else if (whence == MPI_SEEK_END) {
    if (const io::Failure failed = story.file->end_of_file(from)) return raise(story, failed);
  }
  if (__builtin_add_overflow(from, offset, &place) || place < 0) {
    base::Text<160> why;
    why << "the offset " << offset << " from " << from << " leads before the start of the view";
    return raise(story, MPI_ERR_ARG, why.c_str(), "offsets count etypes of the view");
  }
  return MPI_SUCCESS;
}

int seek(const char* call, MPI_File fh, MPI_Offset offset, int whence) {
  Story story{.call = call};
  if (const int code = take_file(story, fh)) return code;
  if (const int code = refuse_sequential(story)) return code;
  io::File& file = *story.file;
  int64_t place = 0;
  if (const int code = find_place(story, offset, whence, place)) return code;
  const base::SpinGuard guard(file.lock);
  file.position = place;
  return MPI_SUCCESS;
}

int get_position(const char* call, MPI_File fh, MPI_Offset* offset) {
  Story story{.call = call};
  if (const int code = take_file(story, fh)) return code;
  if (const int code = refuse_sequential(story)) return code;
  const base::SpinGuard guard(story.file->lock);
  *offset = story.file->position;
  return MPI_SUCCESS;
}

int get_byte_offset(const char* call, MPI_File fh, MPI_Offset offset, MPI_Offset* disp) {
  Story story{.call = call};
  if (const int code = take_file(story, fh)) return code;
  if (offset < 0) {
    return raise(story, MPI_ERR_ARG, "the offset is negative", "offsets count etypes of the view");
  }
  const Viewing view(*story.file);
  uint64_t byte = 0;
  if (view->is_empty()) {
    *disp = view->displacement();
    return MPI_SUCCESS;
  }
  if (__builtin_mul_overflow(uint64_t(offset), view->etype_bytes(), &byte) ||
      !view->reaches(byte, 1)) {
    return raise(story, MPI_ERR_ARG, "the offset leads beyond what a file can have");
  }
  *disp = view->place_of(byte);
  return MPI_SUCCESS;
}

int seek_shared(const char* call, MPI_File fh, MPI_Offset offset, int whence) {
  Story story{.call = call};
  if (const int code = take_file(story, fh)) return code;
  if (const int code = refuse_split(story)) return code;
  const Inside inside(call, unset, unset, story.file->comm);
  int code = refuse_sequential(story);
  if (!code) code = check_whence(story, whence);
  const io::Ending ending = io::seek_shared(place_of_files(), *story.file, offset, whence, !code);
  return code ? code : conclude(story, ending, "the offset or the whence");
}

int get_position_shared(const char* call, MPI_File fh, MPI_Offset* offset) {
  Story story{.call = call};
  if (const int code = take_file(story, fh)) return code;
  const Inside inside(call);
  int64_t at = 0;
  const Outcome asked = io::move_shared(place_of_files(), *story.file, 0, at);
  if (asked != Outcome::ok) return raise(story, asked);
  *offset = at;
  return MPI_SUCCESS;
}

}  // namespace

#include "api/entries/files_views.inl"
