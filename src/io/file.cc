#include "io/file.h"

#include <cstring>
#include <fcntl.h>
#include <iterator>
#include <new>

#include "base/check.h"
#include "base/heap.h"
#include "io/agree.h"
#include "io/counters.h"
#include "settings/abi_constants.h"
#include "waiting/holding.h"

namespace headway::io {
namespace {

constexpr int refused = INT32_MIN;  // a rank's word that its arguments are wrong

bool has(int mode, int bit) { return (mode & bit) != 0; }

// As the first rank opens it; the others find the file there.
int flags_of(int mode, bool first) {
  int flags = has(mode, abi::k_MODE_RDWR)     ? O_RDWR
              : has(mode, abi::k_MODE_WRONLY) ? O_WRONLY
                                              : O_RDONLY;
  if (first && has(mode, abi::k_MODE_CREATE)) flags |= O_CREAT;
  if (first && has(mode, abi::k_MODE_EXCL)) flags |= O_EXCL;
  return flags;
}

View* plain_view() {
  const datatypes::Type& byte = datatypes::predefined(datatypes::BasicType::byte);
  return View::make(0, byte, byte, native, 1, byte);
}

// A file with all but its descriptor; null without memory or a handle.
File* make_file(const Place& place, const Opening& wish) {
  void* memory = base::heap_allocate(sizeof(File));
  if (!memory) return nullptr;
  auto* file = new (memory) File;
  file->mode = wish.mode;
  file->hints = wish.hints;
  file->errhandler = wish.errhandler;
  wish.errhandler->retain();
  file->name_bytes = strlen(wish.name) + 1;
  auto* name = static_cast<char*>(base::heap_allocate(file->name_bytes));
  if (name) memcpy(name, wish.name, file->name_bytes);
  if (!name) file->name_bytes = 0;
  file->name = name ? name : "";
  file->view = plain_view();
  if (name && file->view) file->handle = place.registry.files.add(file);
  if (file->handle) return file;
  release(file);
  return nullptr;
}

// Its communicator stands in the table, too, though no program has its handle: there the launcher
// finds what it says of ranks that wait (base/whereabouts.h).
void show_comm(const Place& place, const File& file) {
  strncpy(file.comm->name, file.name, objects::max_object_name - 1);
  file.comm->handle = place.registry.comms.add(file.comm);
  if (file.comm->handle) file.comm->retain();
}

void hide_comm(const Place& place, objects::Comm* comm) {
  {
    protocols::Engine& engine = place.waiter.engine;
    const waiting::Holding holding(engine);
    engine.forget(comm->context);
  }
  if (!comm->handle) return;
  place.registry.comms.remove(comm->handle);
  comm->handle = 0;
  objects::release(comm);
}

// The handle is gone at once, so that nobody finds a file that is being closed.
void take_from_user(const Place& place, File& file) {
  if (file.handle) place.registry.files.remove(file.handle);
  file.handle = 0;
  if (file.comm) hide_comm(place, file.comm);
}

// The first rank that says something else than 0. False: none does.
bool find_fault(const base::Vec<int64_t>& all, size_t width, int& rank) {
  for (size_t at = 0; at < all.size(); at += width) {
    if (all[at] == 0) continue;
    rank = int(at / width);
    return true;
  }
  return false;
}

bool are_equal(const base::Vec<int64_t>& all, size_t width, size_t column) {
  for (size_t at = column; at < all.size(); at += width) {
    if (all[at] != all[column]) return false;
  }
  return true;
}

// Names may differ, and mean one file: in other working directories, through links. Ranks of one
// machine have it by one device and number; those of several have nothing to compare.
bool are_one_file(const base::Vec<int64_t>& all, size_t width, size_t column) {
  const auto word = [&](size_t rank, size_t of) { return all[rank * width + column + of]; };
  for (size_t rank = 1; rank * width < all.size(); ++rank) {
    if (word(rank, 0) != word(0, 0)) continue;
    if (word(rank, 1) != word(0, 1) || word(rank, 2) != word(0, 2)) return false;
  }
  return true;
}

Ending failed(int error, int rank, const char* act) {
  if (error == refused) return {.verdict = Verdict::elsewhere, .failure = {.rank = rank}};
  return {.verdict = Verdict::failed, .failure = {.error = error, .act = act, .rank = rank}};
}

// A point that all ranks reach, at which each says whether it has failed.
Ending meet(const Place& place, objects::Comm* comm, const Failure& own, const char* act) {
  const int64_t word = own.error;
  base::Vec<int64_t> all;
  Ending ending;
  ending.outcome = tell_all(place.waiter, comm, &word, 1, all);
  int rank = 0;
  if (own) return {.verdict = Verdict::failed, .failure = own, .outcome = ending.outcome};
  if (ending.outcome == Outcome::ok && find_fault(all, 1, rank)) {
    ending = failed(int(all[size_t(rank)]), rank, act);
  }
  return ending;
}

// Arguments that all ranks have to pass alike; `good`: they are right at this one.
Ending compare(const Place& place, File& file, int64_t value, bool good, int64_t other = 0) {
  const int64_t own[] = {good ? 0 : refused, value, other};
  constexpr size_t words = std::size(own);
  base::Vec<int64_t> all;
  Ending ending;
  ending.outcome = tell_all(place.waiter, file.comm, own, words, all);
  if (!ending.is_good()) return ending;
  int rank = 0;
  if (find_fault(all, words, rank)) return failed(refused, rank, "");
  if (!are_equal(all, words, 1) || !are_equal(all, words, 2)) ending.verdict = Verdict::differ;
  return ending;
}

}  // namespace

bool File::may_read() const { return !has(mode, abi::k_MODE_WRONLY); }
bool File::may_write() const { return !has(mode, abi::k_MODE_RDONLY); }
bool File::is_sequential() const { return has(mode, abi::k_MODE_SEQUENTIAL); }

View* File::take_view() {
  const base::SpinGuard guard(lock);
  view->retain();
  return view;
}

void File::use_view(View* made) {
  View* old = nullptr;
  {
    const base::SpinGuard guard(lock);
    old = view;
    view = made;
    position = 0;
  }
  old->release();
}

Failure File::end_of_file(int64_t& etypes) {
  int64_t bytes = 0;
  if (const Failure unknown = disk.size(bytes)) return unknown;
  View* const now = take_view();
  const uint64_t below = now->bytes_below(bytes), unit = now->etype_bytes();
  etypes = int64_t(below / unit + (below % unit != 0));
  now->release();
  return {};
}

void release(File* file) {
  const uint32_t before = file->references.fetch_sub(1, std::memory_order_acq_rel);
  HEADWAY_CHECK(before != 0);
  if (before != 1) return;
  (void)file->disk.close();
  if (file->view) file->view->release();
  if (file->comm) objects::release(file->comm);
  objects::release(file->errhandler);
  if (file->name_bytes) base::heap_free(const_cast<char*>(file->name), file->name_bytes);
  file->~File();
  base::heap_free(file, sizeof(File));
}

// The first rank opens first, since it alone may make the file, and then all others do. Where one
// of them cannot, the file is open nowhere.
Ending open(const Place& place, const Opening& wish, File*& file) {
  const bool first = wish.comm->own.self == 0;
  Failure own{.error = refused, .act = "open"};
  File* made = wish.name ? make_file(place, wish) : nullptr;
  if (wish.name) own = made ? Failure{} : Failure{.error = ENOMEM, .act = "open"};
  const auto try_open = [&] {
    own = made->disk.open(made->name, flags_of(wish.mode, first), wish.hints.permissions);
  };
  int64_t told[] = {0, 0};
  if (first) {
    if (made) try_open();
    told[0] = int64_t(place.new_context());
    told[1] = own.error;
  }
  Ending ending;
  ending.outcome = tell_from_first(place.waiter, wish.comm, told, 2);
  const bool goes_on = ending.outcome == Outcome::ok && told[1] == 0;
  if (!first && made && goes_on) try_open();
  if (made && goes_on && !own) {
    made->comm =
        objects::make_comm(uint64_t(told[0]), wish.comm->group, &place.registry.errors_return);
    if (made->comm) show_comm(place, *made);
    const bool listens = made->comm && made->shared.open(place.waiter.engine, made->comm);
    int64_t end = 0;
    if (!listens) own = {.error = ENOMEM, .act = "open"};
    if (!own && has(wish.mode, abi::k_MODE_APPEND)) own = made->end_of_file(end);
    made->position = end;
    made->shared.set(end);
  }
  base::Vec<int64_t> all;
  const bool is_there = made && made->disk.is_open();
  const int64_t word[] = {own.error, wish.mode, int64_t(machine_mark()),
                          is_there ? int64_t(made->disk.device()) : 0,
                          is_there ? int64_t(made->disk.number()) : 0};
  constexpr size_t words = std::size(word);
  if (ending.outcome == Outcome::ok) {
    ending.outcome = tell_all(place.waiter, wish.comm, word, words, all);
  }
  if (ending.outcome == Outcome::ok) {
    int rank = 0;
    if (told[1] != 0 && told[1] != refused) {
      ending = failed(int(told[1]), 0, "open");
    } else if (find_fault(all, words, rank)) {
      ending = failed(int(all[size_t(rank) * words]), rank, "open");
    } else if (!are_equal(all, words, 1) || !are_one_file(all, words, 2)) {
      ending.verdict = Verdict::differ;
    }
  }
  if (ending.is_good()) {
    count(counters.opens);
    file = made;
    return ending;
  }
  if (!made) return ending;
  const bool is_ours = first && made->disk.is_open() && has(wish.mode, abi::k_MODE_EXCL) &&
                       has(wish.mode, abi::k_MODE_CREATE);
  if (made->comm) {
    const waiting::Holding holding(place.waiter.engine);
    made->shared.close();
  }
  // Nobody but this call has made it, and nobody has written to it.
  if (is_ours) (void)remove_file(made->name);
  take_from_user(place, *made);
  release(made);
  return ending;
}

Failure sync(const Place& place, File& file) {
  file.written.store(false, std::memory_order_relaxed);
  const Failure failed = file.disk.sync();
  if (file.disk.is_remote()) {
    pthread_mutex_lock(&file.atomic_lock);
    file.disk.look_anew(!file.may_read());
    pthread_mutex_unlock(&file.atomic_lock);
  }
  const waiting::Holding holding(place.waiter.engine);
  const Failure unheard = file.unheard;
  file.unheard = {};
  return unheard ? unheard : failed;
}

Ending close(const Place& place, File& file) {
  {
    const waiting::Holding holding(place.waiter.engine);
    place.waiter.until([&] { return file.pending == 0; }, nullptr);
  }
  Failure own = file.unheard;
  // On one machine all see at once what is written.
  if (file.disk.is_remote() && file.written.load(std::memory_order_relaxed)) {
    const Failure synced = file.disk.sync();
    if (!own) own = synced;
  }
  const Failure closed = file.disk.close();
  if (!own) own = closed;
  // From here on nobody asks for the shared pointer, and all have closed it.
  Ending ending = meet(place, file.comm, own, "close");
  {
    const waiting::Holding holding(place.waiter.engine);
    file.shared.close();
  }
  if (has(file.mode, abi::k_MODE_DELETE_ON_CLOSE)) {
    int64_t error = 0;
    if (file.comm->own.self == 0) error = remove_file(file.name).error;
    const Outcome told = tell_from_first(place.waiter, file.comm, &error, 1);
    if (ending.is_good()) ending.outcome = told;
    if (ending.is_good() && error) ending = failed(int(error), 0, "delete");
  }
  take_from_user(place, file);
  return ending;
}

// A byte of the first rank's view; negative where no file has it.
int64_t byte_of(const View& view, int64_t etypes) {
  uint64_t byte = 0;
  if (view.is_empty()) return view.displacement();
  if (__builtin_mul_overflow(uint64_t(etypes), view.etype_bytes(), &byte) || !view.reaches(byte, 1))
    return -1;
  return view.place_of(byte);
}

// All have their view before anybody uses the shared pointer anew.
Ending set_view(const Place& place, File& file, View* made, bool good) {
  const uint64_t mark = good ? mark_of(made->representation().name) * 31 + made->etype_bytes() : 0;
  Ending ending = compare(place, file, int64_t(mark), good);
  if (ending.is_good() && file.is_sequential()) {
    int64_t byte = 0;
    if (file.shared.is_here()) {
      const waiting::Holding holding(place.waiter.engine);
      byte = byte_of(*file.view, file.shared.value());
    }
    ending.outcome = tell_from_first(place.waiter, file.comm, &byte, 1);
    if (byte < 0) ending = failed(beyond_view, this_rank, "set the view of");
    made->begin_at(byte);
  }
  if (!ending.is_good()) {
    if (made) made->release();
    return ending;
  }
  file.use_view(made);
  if (file.shared.is_here()) {
    const waiting::Holding holding(place.waiter.engine);
    file.shared.set(0);
  }
  return meet(place, file.comm, {}, "set the view of");
}

Ending set_size(const Place& place, File& file, int64_t bytes, bool reserves, bool good) {
  const Ending ending = compare(place, file, bytes, good);
  if (!ending.is_good()) return ending;
  Failure own;
  if (file.comm->own.self == 0) {
    own = reserves ? file.disk.reserve(bytes) : file.disk.set_size(bytes);
  }
  return meet(place, file.comm, own, reserves ? "reserve space for" : "set the size of");
}

// A lock is tried, so that a file system without locks is found here and not in an access.
Ending set_atomicity(const Place& place, File& file, bool atomic) {
  const Ending ending = compare(place, file, atomic, true);
  if (!ending.is_good()) return ending;
  Failure own;
  if (atomic) {
    own = file.disk.lock(0, 1, !file.may_read());
    if (!own) own = file.disk.unlock(0, 1);
  }
  const Ending met = meet(place, file.comm, own, "lock");
  if (met.is_good()) file.atomic.store(atomic, std::memory_order_relaxed);
  return met;
}

Ending seek_shared(const Place& place, File& file, int64_t offset, int whence, bool good) {
  Ending ending = compare(place, file, offset, good, whence);
  if (!ending.is_good()) return ending;
  int64_t error = 0;
  if (file.shared.is_here()) {
    int64_t from = 0, to = 0;
    if (whence == abi::k_SEEK_END) error = file.end_of_file(from).error;
    const waiting::Holding holding(place.waiter.engine);
    if (whence == abi::k_SEEK_CUR) from = file.shared.value();
    if (!error && (__builtin_add_overflow(from, offset, &to) || to < 0)) error = before_view;
    if (!error) file.shared.set(to);
  }
  ending.outcome = tell_from_first(place.waiter, file.comm, &error, 1);
  if (ending.is_good() && error) ending = failed(int(error), error < 0 ? this_rank : 0, "seek in");
  return ending;
}

Ending take_turn(const Place& place, File& file, int64_t etypes, int64_t& begin) {
  base::Vec<int64_t> all;
  Ending ending;
  ending.outcome = tell_all(place.waiter, file.comm, &etypes, 1, all);
  if (!ending.is_good()) return ending;
  int64_t before = 0, sum = 0;
  for (int rank = 0; rank < file.comm->own.size; ++rank) {
    if (rank == file.comm->own.self) before = sum;
    if (__builtin_add_overflow(sum, all[size_t(rank)], &sum)) sum = INT64_MAX;
  }
  int64_t first = 0;
  if (file.shared.is_here()) {
    const waiting::Holding holding(place.waiter.engine);
    first = file.shared.add_here(sum);
  }
  ending.outcome = tell_from_first(place.waiter, file.comm, &first, 1);
  if (__builtin_add_overflow(first, before, &begin)) begin = INT64_MAX;
  return ending;
}

Outcome move_shared(const Place& place, File& file, int64_t etypes, int64_t& before) {
  struct Asked {
    bool told = false;
    Outcome outcome = Outcome::ok;
    int64_t before = 0;
  } asked;
  const auto told = [](void* context, Outcome outcome, int64_t was) {
    *static_cast<Asked*>(context) = {true, outcome, was};
  };
  const waiting::Holding holding(place.waiter.engine);
  file.shared.add(etypes, told, &asked);
  place.waiter.until([&] { return asked.told; }, nullptr);
  before = asked.before;
  return asked.outcome;
}

// No other rank can be asked any more: the first one deletes what was to be deleted.
uint32_t abandon_all(const Place& place, const objects::Session* session) {
  const auto is_of_it = [session](const void* object) {
    const objects::Comm* comm = static_cast<const File*>(object)->comm;
    return comm && comm->group->session == session;
  };
  uint32_t from = 0, count_left = 0;
  constexpr uint32_t why = 1;
  while (void* left = place.registry.files.end_next(from, why, is_of_it)) {
    auto* file = static_cast<File*>(left);
    ++count_left;
    file->handle = 0;
    {
      const waiting::Holding holding(place.waiter.engine);
      place.waiter.until([&] { return file->pending == 0; }, nullptr);
      file->shared.close();
    }
    if (has(file->mode, abi::k_MODE_DELETE_ON_CLOSE) && file->comm->own.self == 0) {
      (void)remove_file(file->name);
    }
    hide_comm(place, file->comm);
    release(file);
  }
  return count_left;
}

}  // namespace headway::io
