// Data representations that the program registers: MPI 5.0, section 14.5.3. Their functions are
// called by application threads alone.
#include <cstring>
#include <new>

#include "api/detail/files.h"
#include "api/detail/results.h"
#include "base/heap.h"
#include "base/spin_lock.h"
#include "datatypes/pack.h"

namespace headway::api {
namespace {

static_assert(io::max_representation == MPI_MAX_DATAREP_STRING);

// Stays to the end: views may have it.
struct Registered : io::Representation {
  Registered* next = nullptr;
  MPI_Datarep_conversion_function* read = nullptr;
  MPI_Datarep_conversion_function* write = nullptr;
  MPI_Datarep_conversion_function_c* read_large = nullptr;
  MPI_Datarep_conversion_function_c* write_large = nullptr;
  MPI_Datarep_extent_function* extent = nullptr;
  void* extra = nullptr;

  bool reads() const { return read || read_large; }
  bool writes() const { return write || write_large; }
};

struct Table {
  base::SpinLock lock;  // guards the list's start
  Registered* first = nullptr;
};
constinit Table table;

const Registered& own(const io::Representation& self) {
  return static_cast<const Registered&>(self);
}

// Without functions for both ways the data is as in memory.
bool basic_bytes(const io::Representation& self, const datatypes::Type& basic, uint64_t& bytes) {
  const Registered& of = own(self);
  bytes = basic.size();
  // A pair of MPI_Type_get_value_index has no name of its own to ask for.
  if (basic.combiner() == datatypes::Combiner::value_index) return false;
  if (!of.reads() || !of.writes()) return true;
  MPI_Aint extent = 0;
  const auto handle = handle_of<MPI_Datatype>(datatypes::info(basic.basic()).handle);
  if (of.extent(handle, &extent, of.extra) != MPI_SUCCESS || extent < 0) return false;
  bytes = uint64_t(extent);
  return true;
}

// Of a piece: data items, and where they begin among those of the buffer.
struct Items {
  MPI_Count count;
  MPI_Offset position;
  bool fits_int() const { return count <= INT32_MAX; }
};

Items items_of(const io::Piece& piece) {
  const uint64_t each = piece.type.elements();
  return {MPI_Count(piece.count * each), MPI_Offset(piece.first * each)};
}

int to_file(const io::Representation& self, const io::Piece& piece) {
  const Registered& of = own(self);
  const auto handle = handle_of<MPI_Datatype>(piece.handle);
  const Items items = items_of(piece);
  int code = MPI_SUCCESS;
  if (of.write_large) {
    code = of.write_large(piece.buffer, handle, items.count, piece.file, items.position, of.extra);
  } else if (of.write) {
    if (!items.fits_int()) return E2BIG;
    code = of.write(piece.buffer, handle, int(items.count), piece.file, items.position, of.extra);
  } else {
    const uint64_t size = piece.type.size();
    (void)datatypes::pack(piece.type, piece.buffer, piece.first + piece.count, piece.first * size,
                          piece.file, size_t(piece.count * size));
  }
  return code == MPI_SUCCESS ? 0 : io::bad_conversion;
}

int from_file(const io::Representation& self, const io::Piece& piece) {
  const Registered& of = own(self);
  const auto handle = handle_of<MPI_Datatype>(piece.handle);
  const Items items = items_of(piece);
  int code = MPI_SUCCESS;
  if (of.read_large) {
    code = of.read_large(piece.buffer, handle, items.count, piece.file, items.position, of.extra);
  } else if (of.read) {
    if (!items.fits_int()) return E2BIG;
    code = of.read(piece.buffer, handle, int(items.count), piece.file, items.position, of.extra);
  } else {
    const uint64_t size = piece.type.size();
    (void)datatypes::unpack(piece.type, piece.buffer, piece.first + piece.count, piece.first * size,
                            piece.file, size_t(piece.count * size));
  }
  return code == MPI_SUCCESS ? 0 : io::bad_conversion;
}

void store(Registered& to, MPI_Datarep_conversion_function* read,
           MPI_Datarep_conversion_function* write) {
  to.read = read;
  to.write = write;
}
void store(Registered& to, MPI_Datarep_conversion_function_c* read,
           MPI_Datarep_conversion_function_c* write) {
  to.read_large = read;
  to.write_large = write;
}

// The lock is held.
const io::Representation* find_registered(const char* name) {
  for (const Registered* one = table.first; one; one = one->next) {
    if (strcmp(one->name, name) == 0) return one;
  }
  return nullptr;
}

const io::Representation* find_built_in(const char* name) {
  for (const io::Representation* known : {&io::native, &io::internal, &io::external32}) {
    if (strcmp(known->name, name) == 0) return known;
  }
  return nullptr;
}

}  // namespace

const io::Representation* find_representation(const char* name) {
  if (const io::Representation* known = find_built_in(name)) return known;
  const base::SpinGuard guard(table.lock);
  return find_registered(name);
}

}  // namespace headway::api

using namespace headway;
using namespace headway::api;

namespace {

template <class Function>
int register_datarep(const char* call, const char* datarep, Function* read_conversion_fn,
                     Function* write_conversion_fn,
                     MPI_Datarep_extent_function* dtype_file_extent_fn, void* extra_state) {
  Story story{.call = call};
  if (!is_running()) return not_running(call);
  story.handler = &handler_of_files();
  const size_t length = strnlen(datarep, io::max_representation);
  if (length == 0 || length == io::max_representation) {
    return raise(story, MPI_ERR_ARG, "the name of the data representation is empty or too long",
                 "it has 1 to MPI_MAX_DATAREP_STRING - 1 = 127 characters");
  }
  void* memory = base::heap_allocate(sizeof(Registered));
  if (!memory) return raise(story, Outcome::no_memory);
  auto* made = new (memory) Registered;
  memcpy(made->name, datarep, length + 1);
  made->is_of_program = true;
  made->basic_bytes = basic_bytes;
  made->to_file = to_file;
  made->from_file = from_file;
  store(*made, read_conversion_fn, write_conversion_fn);
  made->extent = dtype_file_extent_fn;
  made->extra = extra_state;
  bool is_new = !find_built_in(datarep);
  if (is_new) {
    const base::SpinGuard guard(table.lock);
    is_new = !find_registered(datarep);
    if (is_new) made->next = table.first;
    if (is_new) table.first = made;
  }
  if (is_new) return MPI_SUCCESS;
  base::heap_free(memory, sizeof(Registered));
  return raise(story, MPI_ERR_DUP_DATAREP, "there is a data representation of that name already",
               "register each name once");
}

}  // namespace

#include "api/entries/datareps.inl"
