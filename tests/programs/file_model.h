// A model of a file: its bytes in memory, and views whose places are plain lists. All ranks compute
// the same model from the seed, with what the others write, so that each can judge what it reads.
// Thread: one. Owner: each program. Invariant: the views of a Pattern's ranks have no byte in
// common.
#pragma once
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>

#include "layouts.h"

namespace files {

using check::Random;

// Nobody but a rank inside MPI moves messages: who computes keeps the others waiting.
inline bool without_progress() {
  const char* set = getenv("HEADWAY_PROGRESS");
  return set && strcmp(set, "off") == 0;
}

// A name that all ranks of the job have, and no other job.
inline std::string name_of(const char* what) {
  long long pid = getpid();
  MPI(MPI_Bcast(&pid, 1, MPI_LONG_LONG, 0, MPI_COMM_WORLD));
  const char* folder = getenv("TMPDIR");
  return std::string(folder ? folder : "/tmp") + "/headway-" + what + "-" + std::to_string(pid);
}

// Of a file that is open on MPI_COMM_WORLD: errors are returned, as everywhere in these programs.
inline MPI_File open(const std::string& name, int mode, MPI_Info info = MPI_INFO_NULL,
                     MPI_Comm comm = MPI_COMM_WORLD) {
  MPI_File file = MPI_FILE_NULL;
  MPI(MPI_File_open(comm, name.c_str(), mode, info, &file));
  CHECK(file != MPI_FILE_NULL);
  return file;
}

inline void remove(const std::string& name) {
  MPI(MPI_Barrier(MPI_COMM_WORLD));
  if (check::rank == 0) unlink(name.c_str());
  MPI(MPI_Barrier(MPI_COMM_WORLD));
}

// All bytes, by the system's own calls.
inline std::vector<uint8_t> contents(const std::string& name) {
  std::vector<uint8_t> all;
  const int fd = ::open(name.c_str(), O_RDONLY);
  CHECK(fd >= 0);
  struct stat about;
  CHECK(fstat(fd, &about) == 0);
  all.resize(size_t(about.st_size));
  size_t got = 0;
  while (got < all.size()) {
    const ssize_t n = pread(fd, all.data() + got, all.size() - got, off_t(got));
    CHECK(n > 0);
    got += size_t(n);
  }
  close(fd);
  return all;
}

inline void expect_contents(const std::string& name, const std::vector<uint8_t>& wanted, int line) {
  const std::vector<uint8_t> found = contents(name);
  const size_t both = std::min(found.size(), wanted.size());
  for (size_t i = 0; i < both; ++i) {
    if (found[i] == wanted[i]) continue;
    check::fail(__FILE__, line, "byte %zu of the file is %02x, expected %02x", i, found[i],
                wanted[i]);
  }
  if (found.size() != wanted.size()) {
    check::fail(__FILE__, line, "the file has %zu bytes, expected %zu", found.size(),
                wanted.size());
  }
}

// What one rank sees of a file: runs of a tile that is repeated.
struct View {
  MPI_Offset displacement = 0;
  int unit = 1;  // bytes of an etype: 1 or 4
  std::vector<layouts::Run> runs;
  size_t bytes = 0;  // of one tile
  MPI_Aint extent = 0;
  MPI_Datatype type = MPI_DATATYPE_NULL;

  void add(size_t offset, size_t length) {
    runs.push_back({offset, length});
    bytes += length;
  }
  // Where byte `at` of the view is in the file.
  size_t place(uint64_t at) const {
    const uint64_t tile = at / bytes;
    uint64_t rest = at % bytes;
    for (const layouts::Run& run : runs) {
      if (rest < run.length) {
        return size_t(displacement) + size_t(tile) * size_t(extent) + run.offset + size_t(rest);
      }
      rest -= run.length;
    }
    check::fail(__FILE__, __LINE__, "byte %llu is beyond a tile", (unsigned long long)at);
  }
  MPI_Datatype etype() const { return unit == 4 ? MPI_INT : MPI_BYTE; }
  void commit() {
    std::vector<int> lengths;
    std::vector<MPI_Aint> places;
    for (const layouts::Run& run : runs) {
      lengths.push_back(int(run.length) / unit);
      places.push_back(MPI_Aint(run.offset));
    }
    MPI_Datatype inner;
    MPI(MPI_Type_create_hindexed(int(runs.size()), lengths.data(), places.data(), etype(), &inner));
    MPI(MPI_Type_create_resized(inner, 0, extent, &type));
    MPI(MPI_Type_commit(&type));
    MPI(MPI_Type_free(&inner));
  }
  void free() {
    if (type != MPI_DATATYPE_NULL) MPI(MPI_Type_free(&type));
  }
};

// A tile dealt out to the ranks; every rank has at least one run, or with `some_empty` perhaps
// none.
inline std::vector<View> random_views(Random& random, int ranks, bool some_empty = false) {
  std::vector<View> views(static_cast<size_t>(ranks));
  const int unit = random.chance(50) ? 1 : 4;
  const auto displacement = MPI_Offset(random.below(200));
  const size_t longest = random.chance(30) ? 3000 : 60;
  size_t at = 0;
  const int pieces = ranks + random.between(0, 12);
  for (int piece = 0; piece < pieces; ++piece) {
    const size_t length = (1 + random.below(longest)) * size_t(unit);
    const int rank = piece < ranks && !some_empty ? piece : random.between(0, ranks - 1);
    views[size_t(rank)].add(at, length);
    at += length;
    if (random.chance(40)) at += random.below(longest) * size_t(unit);
  }
  for (View& view : views) {
    view.displacement = displacement;
    view.unit = unit;
    view.extent = MPI_Aint(at);
  }
  return views;
}

// The file's bytes. What was never written reads as zero.
struct Model {
  std::vector<uint8_t> bytes;

  void write(const View& view, uint64_t from, uint64_t n, uint64_t key) {
    for (uint64_t i = 0; i < n; ++i) {
      const size_t place = view.place(from + i);
      if (bytes.size() <= place) bytes.resize(place + 1, 0);
      bytes[place] = check::byte_of(key, size_t(i));
    }
  }
  // As many as there are before the end of the file.
  std::vector<uint8_t> read(const View& view, uint64_t from, uint64_t n) const {
    std::vector<uint8_t> found;
    for (uint64_t i = 0; i < n; ++i) {
      const size_t place = view.place(from + i);
      if (place >= bytes.size()) break;
      found.push_back(bytes[place]);
    }
    return found;
  }
};

// An access of one rank in one round, as all ranks compute it.
struct Step {
  uint64_t etypes = 0;  // from where
  uint64_t count = 0;   // etypes
  uint64_t key = 0;
};
inline Step random_step(uint64_t round, int rank, uint64_t most_from, uint64_t most_count) {
  Random random(check::key_of(check::seed, round, uint64_t(rank)));
  Step step;
  step.etypes = random.below(most_from);
  step.count = random.chance(15) ? 0 : random.below(most_count);
  step.key = random.next();
  return step;
}

// Exactly `bytes` in pieces with gaps between them.
inline layouts::Layout gapped(Random& random, size_t bytes) {
  layouts::Layout made;
  std::vector<int> lengths;
  std::vector<MPI_Aint> places;
  for (size_t at = 0; made.bytes < bytes;) {
    at += random.below(20);
    const size_t length = std::min(bytes - made.bytes, size_t(1 + random.below(200)));
    lengths.push_back(int(length));
    places.push_back(MPI_Aint(at));
    made.add(at, length);
    at += length;
  }
  MPI(MPI_Type_create_hindexed(int(lengths.size()), lengths.data(), places.data(), MPI_BYTE,
                               &made.type));
  MPI(MPI_Type_commit(&made.type));
  made.count = 1;
  return made;
}

// Memory of one access: `bytes` of data, in one piece or with gaps.
struct Memory {
  layouts::Layout layout;
  std::vector<uint8_t> buffer;

  Memory(Random& random, size_t bytes) {
    layout = bytes == 0 || random.chance(50) ? layouts::plain(bytes) : gapped(random, bytes);
    buffer.assign(layout.span + 1, 0xee);
  }
  ~Memory() { layout.free(); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  void fill(uint64_t key) { layout.scatter(buffer.data(), key, layout.bytes); }
  // What it must hold after a read: these bytes, and nothing else has changed.
  void expect(const std::vector<uint8_t>& found, int line) const {
    std::vector<uint8_t> wanted(buffer.size(), 0xee);
    size_t at = 0;
    for (const layouts::Run& run : layout.runs) {
      for (size_t i = 0; i < run.length && at < found.size(); ++i, ++at)
        wanted[run.offset + i] = found[at];
    }
    if (wanted == buffer) return;
    size_t i = 0;
    while (wanted[i] == buffer[i]) ++i;
    check::fail(__FILE__, line, "byte %zu of the buffer is %02x, expected %02x (%zu bytes read)", i,
                buffer[i], wanted[i], found.size());
  }
};

inline void expect_count(const MPI_Status& status, uint64_t bytes, int line) {
  MPI_Count count = -1;
  MPI(MPI_Get_count_c(&status, MPI_BYTE, &count));
  if (count == MPI_Count(bytes)) return;
  check::fail(__FILE__, line, "the status tells of %lld bytes, expected %llu",
              static_cast<long long>(count), static_cast<unsigned long long>(bytes));
}

// One of the library's counters; false where another library runs this.
inline bool read_counter(const char* counter, unsigned long long& value) {
  int provided = 0, index = -1, count = 0;
  MPI(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
  const bool found = MPI_T_pvar_get_index(counter, MPI_T_PVAR_CLASS_COUNTER, &index) == MPI_SUCCESS;
  if (found) {
    MPI_T_pvar_session session;
    MPI_T_pvar_handle handle;
    MPI(MPI_T_pvar_session_create(&session));
    MPI(MPI_T_pvar_handle_alloc(session, index, nullptr, &handle, &count));
    MPI(MPI_T_pvar_read(session, handle, &value));
    MPI(MPI_T_pvar_session_free(&session));
  }
  MPI(MPI_T_finalize());
  return found;
}

inline MPI_Info info_of(std::initializer_list<std::pair<const char*, const char*>> hints) {
  MPI_Info info;
  MPI(MPI_Info_create(&info));
  for (const auto& [key, value] : hints) MPI(MPI_Info_set(info, key, value));
  return info;
}

}  // namespace files
