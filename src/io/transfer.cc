#include "io/transfer.h"

#include <cstring>

#include "base/address.h"
#include "io/counters.h"
#include "io/scratch.h"

namespace headway::io {
namespace {

// Data with gaps in memory, and data that is converted, goes through scratch memory piece by piece.
constexpr uint64_t piece_bytes = 1 << 20;
// Runs that lie close together in the file are read as one, with what is between them.
constexpr uint64_t sieve_bytes = 4 << 20;
// A run as long as this is worth a call of its own (measured at 64 KB, every second run: 3.6 GB/s
// in one piece with what is between, 9 GB/s run by run).
constexpr uint64_t long_run = 16 << 10;

Failure no_memory(const char* act) { return {.error = ENOMEM, .act = act}; }

// The system may be refused memory that the program could touch: pages whose writes are told by
// signals, or that are closed. What it cannot reach goes another way.
Failure read_there(const Disk& disk, int64_t at, char* to, uint64_t n, uint64_t& got) {
  const Failure failed = disk.read(at, to, n, got);
  if (failed.error != EFAULT) return failed;
  Scratch scratch;
  if (!scratch.reserve(piece_bytes)) return no_memory("read");
  while (got < n) {
    const uint64_t now = n - got < piece_bytes ? n - got : piece_bytes;
    uint64_t there = 0;
    if (const Failure again = disk.read(at + int64_t(got), scratch.data(), now, there))
      return again;
    memcpy(to + got, scratch.data(), size_t(there));
    got += there;
    if (there < now) break;
  }
  return {};
}

Failure write_there(const Disk& disk, int64_t at, const char* from, uint64_t n) {
  const Failure failed = disk.write(at, from, n);
  if (failed.error != EFAULT) return failed;
  Scratch scratch;
  if (!scratch.reserve(piece_bytes)) return no_memory("write");
  for (auto put = uint64_t(failed.offset - at); put < n;) {
    const uint64_t now = n - put < piece_bytes ? n - put : piece_bytes;
    memcpy(scratch.data(), from + put, size_t(now));
    if (const Failure again = disk.write(at + int64_t(put), scratch.data(), now)) return again;
    put += now;
  }
  return {};
}

struct Run {
  int64_t at;
  uint64_t bytes;
};

// Reads runs of a file one after the other into memory in one piece. Those of a window of which at
// least half is wanted come in one call.
class Sieve {
 public:
  Sieve(const Disk& disk, char* to) : disk_(disk), to_(to) {}

  // False: it failed, or the file ends.
  bool add(int64_t at, uint64_t bytes) {
    if (count_ && !fits(at, bytes) && !flush()) return false;
    if (!count_) low_ = at, used_ = 0;
    runs_[count_++] = {at, bytes};
    used_ += bytes;
    high_ = at + int64_t(bytes);
    return true;
  }
  bool flush() {
    const uint32_t count = count_;
    count_ = 0;
    if (count == 0) return true;
    if (count == 1) return read_one(runs_[0]);
    const auto span = uint64_t(high_ - low_);
    if (!scratch_.reserve(sieve_bytes)) {
      for (uint32_t i = 0; i < count; ++i) {
        if (!read_one(runs_[i])) return false;
      }
      return true;
    }
    uint64_t there = 0;
    failure = disk_.read(low_, scratch_.data(), span, there);
    if (failure) return false;
    io::count(counters.sieved_bytes, span - used_);
    for (uint32_t i = 0; i < count; ++i) {
      const auto before = uint64_t(runs_[i].at - low_);
      const uint64_t left = there > before ? there - before : 0;
      const uint64_t now = left < runs_[i].bytes ? left : runs_[i].bytes;
      memcpy(to_ + got, scratch_.data() + before, size_t(now));
      got += now;
      if (now < runs_[i].bytes) return false;
    }
    return true;
  }

  uint64_t got = 0;
  Failure failure;

 private:
  static constexpr uint32_t most_runs = 512;

  bool fits(int64_t at, uint64_t bytes) const {
    if (count_ == most_runs || bytes >= long_run || at < high_) return false;
    if (count_ == 1 && used_ >= long_run) return false;
    const auto span = uint64_t(at - low_) + bytes;
    return span <= sieve_bytes && 2 * (used_ + bytes) >= span;
  }
  bool read_one(const Run& run) {
    uint64_t there = 0;
    failure = read_there(disk_, run.at, to_ + got, run.bytes, there);
    got += there;
    return !failure && there == run.bytes;
  }

  const Disk& disk_;
  char* const to_;
  Run runs_[most_runs];
  uint32_t count_ = 0;
  int64_t low_ = 0, high_ = 0;
  uint64_t used_ = 0;
  Scratch scratch_;
};

// Elements that are converted in one piece, and the bytes of one in the file.
struct Pieces {
  uint64_t each = 0;
  uint64_t bytes = 0;
};

Failure plan_pieces(const Data& data, const Representation& representation, Scratch& scratch,
                    Pieces& pieces) {
  uint64_t all = 0;
  if (file_bytes({data.buffer, 1, data.type, data.handle}, representation, all) != Outcome::ok)
    return {.error = bad_conversion, .act = "convert data of"};
  pieces.bytes = all;
  if (all == 0) return {};
  pieces.each = piece_bytes > all ? piece_bytes / all : 1;
  if (pieces.each > data.count) pieces.each = data.count;
  if (pieces.each && !scratch.reserve(pieces.each * all)) return no_memory("convert data of");
  // What a function of the program leaves out is not to be what our heap has held.
  if (pieces.each && representation.is_of_program)
    memset(scratch.data(), 0, size_t(pieces.each * all));
  return {};
}

Failure write_converted(const Disk& disk, const View& view, uint64_t at, const Data& data,
                        uint64_t& moved) {
  const Representation& representation = view.representation();
  Scratch scratch;
  Pieces pieces;
  if (const Failure failed = plan_pieces(data, representation, scratch, pieces)) return failed;
  for (uint64_t first = 0; pieces.bytes && first < data.count;) {
    const uint64_t left = data.count - first;
    const uint64_t now = left < pieces.each ? left : pieces.each;
    const int error = representation.to_file(
        representation, {*data.type, data.handle, data.buffer, first, now, scratch.data()});
    if (error) return {.error = error, .act = "convert data of"};
    if (const Failure failed =
            write_view(disk, view, at + first * pieces.bytes, scratch.data(), now * pieces.bytes)) {
      return failed;
    }
    first += now;
    moved += now * data.type->size();
  }
  return {};
}

// What the file ends in the midst of is not converted: only whole elements are.
Failure read_converted(const Disk& disk, const View& view, uint64_t at, const Data& data,
                       uint64_t& moved) {
  const Representation& representation = view.representation();
  Scratch scratch;
  Pieces pieces;
  if (const Failure failed = plan_pieces(data, representation, scratch, pieces)) return failed;
  for (uint64_t first = 0; pieces.bytes && first < data.count;) {
    const uint64_t left = data.count - first;
    const uint64_t now = left < pieces.each ? left : pieces.each;
    uint64_t got = 0;
    if (const Failure failed = read_view(disk, view, at + first * pieces.bytes, scratch.data(),
                                         now * pieces.bytes, got)) {
      return failed;
    }
    const uint64_t whole = got / pieces.bytes;
    const int error =
        whole ? representation.from_file(representation, {*data.type, data.handle, data.buffer,
                                                          first, whole, scratch.data()})
              : 0;
    if (error) return {.error = error, .act = "convert data of"};
    first += whole;
    moved += whole * data.type->size();
    if (whole < now) break;
  }
  return {};
}

}  // namespace

Outcome file_bytes(const Data& data, const Representation& representation, uint64_t& bytes) {
  bytes = data.bytes();
  if (!representation.converts() || bytes == 0) return Outcome::ok;
  const datatypes::Type* there = nullptr;
  const Outcome made = make_file_type(*data.type, representation, there);
  if (made != Outcome::ok) return made;
  const bool fits = !__builtin_mul_overflow(there->size(), data.count, &bytes);
  there->release();
  return fits && bytes <= uint64_t(INT64_MAX) ? Outcome::ok : Outcome::unsupported;
}

Failure write_view(const Disk& disk, const View& view, uint64_t at, const char* from, uint64_t n) {
  Failure failure;
  if (n == 0) return failure;
  const auto put = [&](int64_t place, uint64_t bytes) {
    failure = write_there(disk, place, from, bytes);
    from += bytes;
    return !failure;
  };
  (void)view.for_each_run(at, n, put);
  return failure;
}

Failure read_view(const Disk& disk, const View& view, uint64_t at, char* to, uint64_t n,
                  uint64_t& got) {
  got = 0;
  if (n == 0) return {};
  Sieve sieve(disk, to);
  const auto take = [&](int64_t place, uint64_t bytes) { return sieve.add(place, bytes); };
  if (view.for_each_run(at, n, take)) (void)sieve.flush();
  got = sieve.got;
  return sieve.failure;
}

Failure write_data(const Disk& disk, const View& view, uint64_t at, const Data& data,
                   uint64_t& moved) {
  moved = 0;
  if (view.representation().converts()) return write_converted(disk, view, at, data, moved);
  const UserMemory memory = data.memory();
  const uint64_t all = memory.bytes();
  if (memory.is_flat()) {
    const Failure failed = write_view(disk, view, at, memory.flat(), all);
    if (!failed) moved = all;
    return failed;
  }
  Scratch scratch;
  const uint64_t each = all < piece_bytes ? all : piece_bytes;
  if (!scratch.reserve(each)) return no_memory("write");
  while (moved < all) {
    const uint64_t now = all - moved < each ? all - moved : each;
    memory.read(moved, scratch.data(), size_t(now));
    if (const Failure failed = write_view(disk, view, at + moved, scratch.data(), now))
      return failed;
    moved += now;
  }
  return {};
}

Failure read_data(const Disk& disk, const View& view, uint64_t at, const Data& data,
                  uint64_t& moved) {
  moved = 0;
  if (view.representation().converts()) return read_converted(disk, view, at, data, moved);
  const UserMemory memory = data.memory();
  const uint64_t all = memory.bytes();
  if (memory.is_flat()) return read_view(disk, view, at, memory.flat(), all, moved);
  Scratch scratch;
  const uint64_t each = all < piece_bytes ? all : piece_bytes;
  if (!scratch.reserve(each)) return no_memory("read");
  while (moved < all) {
    const uint64_t now = all - moved < each ? all - moved : each;
    uint64_t got = 0;
    const Failure failed = read_view(disk, view, at + moved, scratch.data(), now, got);
    memory.write(moved, scratch.data(), size_t(got));
    moved += got;
    if (failed || got < now) return failed;
  }
  return {};
}

}  // namespace headway::io
