// UserMemory: a user's buffer as one string of packed bytes, contiguous or described by a
// datatype. Every byte that the engine moves to or from user memory goes through here, so that
// this is the one place where closed pages will be asked for. Thread: holder of the engine.
// Owner: the request; the type is kept by whoever made the request. Invariant: flat() is non-null
// exactly if the bytes lie side by side.
#pragma once
#include <cstdint>
#include <cstring>

#include "base/address.h"
#include "base/check.h"
#include "base/copy.h"
#include "base/feed.h"
#include "datatypes/pack.h"
#include "datatypes/type.h"

namespace headway::protocols {

// Looked at where HEADWAY_DEBUG is set: whoever touches this memory, and has the engine, does not
// wait for a closed page. Others may.
#if defined(HEADWAY_DEBUG)
using IsShut = bool (*)(void* engine, const char* from, size_t n);
void check_touches(IsShut is_shut, void* engine);  // null: no more
void check_open(const char* from, size_t n);
#else
inline void check_open(const char*, size_t) {}
#endif

class UserMemory {
 public:
  UserMemory() = default;
  UserMemory(void* flat, uint64_t bytes) : base_(static_cast<char*>(flat)), bytes_(bytes) {}
  UserMemory(const void* base, uint64_t count, const datatypes::Type& type)
      : base_(static_cast<char*>(const_cast<void*>(base))), bytes_(count * type.size()) {
    if (bytes_ == 0) return;  // the address may be null
    if (type.is_contiguous(count)) {
      base_ = base::moved(base_, type.true_lb());
    } else {
      type_ = &type;
      count_ = count;
    }
  }

  uint64_t bytes() const { return bytes_; }
  char* flat() const { return type_ ? nullptr : base_; }
  bool is_flat() const { return !type_; }
  const datatypes::Type* type() const { return type_; }
  char* base() const { return base_; }
  // The same bytes at another place.
  void shift(ptrdiff_t by) { base_ += by; }
  // Calls visit(char* at, size_t n) for each run of bytes [offset, offset + n), in the order of the
  // message, until it returns false. Of data with gaps only.
  template <class Visit>
  void for_each_run(uint64_t offset, uint64_t n, Visit&& visit) const {
    datatypes::for_each_run(*type_, base_, count_, offset, n, visit);
  }
  uint64_t most_runs() const { return datatypes::runs(*type_, count_); }

  // All that it may touch lies in here.
  struct Extent {
    const char *from = nullptr, *to = nullptr;
  };
  Extent extent() const;

  // Bytes [offset, offset + n) of the message to `out`.
  void read(uint64_t offset, void* out, size_t n) const {
    check(offset, n);
    if (!type_) {
      if (n) memcpy(out, base_ + offset, n);  // an empty message may have no address
    } else {
      datatypes::pack(*type_, base_, count_, offset, out, n);
    }
  }
  void write(uint64_t offset, const void* in, size_t n) const {
    check(offset, n);
    if (!type_) {
      if (n) base::copy_piece(base_ + offset, static_cast<const char*>(in), n);
    } else {
      datatypes::unpack(*type_, base_, count_, offset, in, n);
    }
  }
  Feed feed(uint64_t offset, uint64_t length) const {
    check(offset, length);
    if (!type_) return {.flat = base_ + offset, .length = length};
    return {.pack = pack_out, .memory = this, .offset = offset, .length = length};
  }
  Landing landing(uint64_t offset, uint64_t length) {
    check(offset, length);
    if (!type_) return {.flat = base_ + offset, .length = length};
    return {.unpack = unpack_in, .memory = this, .offset = offset, .length = length};
  }
  // Copies n bytes from one message to another of this process.
  static void copy(const UserMemory& from, UserMemory& to, uint64_t n);

  // Vectors for a one-copy transfer from `offset` on; returns how many, `covered` bytes in all.
  size_t vectors(uint64_t offset, uint64_t n, iovec* out, size_t max, uint64_t& covered) const;

 private:
  // With gaps: all of it, since no operation may work between its runs, either.
  void check([[maybe_unused]] uint64_t offset, [[maybe_unused]] size_t n) const {
    HEADWAY_CHECK(offset <= bytes_ && n <= bytes_ - offset);
#if defined(HEADWAY_DEBUG)
    if (!n) return;
    const Extent all = extent();
    check_open(type_ ? all.from : base_ + offset, type_ ? size_t(all.to - all.from) : n);
#endif
  }
  static void pack_out(const void* memory, uint64_t offset, void* out, size_t n) {
    static_cast<const UserMemory*>(memory)->read(offset, out, n);
  }
  static void unpack_in(void* memory, uint64_t offset, const void* in, size_t n) {
    static_cast<const UserMemory*>(memory)->write(offset, in, n);
  }

  char* base_ = nullptr;
  uint64_t bytes_ = 0;
  const datatypes::Type* type_ = nullptr;
  uint64_t count_ = 0;
};

}  // namespace headway::protocols
