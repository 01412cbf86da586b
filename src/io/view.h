// View: which bytes of a file a rank sees, in order: those of a file type laid out again and again
// from a displacement on. Places in a view are bytes of that order; the program counts them in
// etypes. Thread: any; immutable once a file has it. Owner: reference counted: the file, and each
// access under way. Invariant: `is_monotone()` views never go back in the file and have no byte of
// it twice, so that a later byte of the view lies at a later place.
#pragma once
#include <atomic>
#include <cstdint>

#include "base/outcome.h"
#include "datatypes/pack.h"
#include "datatypes/type.h"
#include "io/representation.h"

namespace headway::io {

// Joins runs that touch, and hands each on to visit(int64_t at, uint64_t bytes) -> bool.
template <class Visit>
class Joining {
 public:
  explicit Joining(Visit& visit) : visit_(visit) {}
  bool operator()(const char* from, size_t bytes) {
    const auto at = int64_t(reinterpret_cast<uintptr_t>(from));
    if (bytes_ && at_ + int64_t(bytes_) == at) {
      bytes_ += bytes;
      return true;
    }
    if (!end()) return false;
    at_ = at;
    bytes_ = bytes;
    return true;
  }
  // Hands on what is left. False: the visitor wants no more.
  bool end() {
    if (bytes_) stopped_ = !visit_(at_, bytes_);
    bytes_ = 0;
    return !stopped_;
  }

 private:
  Visit& visit_;
  int64_t at_ = 0;
  uint64_t bytes_ = 0;
  bool stopped_ = false;
};

class View {
 public:
  // What is wrong with a file type; null: nothing. `laid_out`: the type in the file. `writes`: the
  // file may be written, so that no byte may stand in it twice.
  static const char* refuse(const datatypes::Type& laid_out, uint64_t etype_bytes, bool writes);

  // Keeps both types. `etype_bytes` and `laid_out`: as they are in the file. Null without memory.
  static View* make(int64_t displacement, const datatypes::Type& etype,
                    const datatypes::Type& file_type, const Representation& representation,
                    uint64_t etype_bytes, const datatypes::Type& laid_out);
  void retain() { references_.fetch_add(1, std::memory_order_relaxed); }
  void release();

  int64_t displacement() const { return displacement_; }
  // Before a file has it.
  void begin_at(int64_t displacement) { displacement_ = displacement; }
  const datatypes::Type& etype() const { return *etype_; }
  const datatypes::Type& file_type() const { return *file_type_; }
  const Representation& representation() const { return *representation_; }
  uint64_t etype_bytes() const { return etype_bytes_; }  // in the file
  bool is_monotone() const { return monotone_; }
  // One run without end.
  bool is_plain() const { return laid_out_->is_contiguous(endless); }
  bool is_empty() const { return laid_out_->size() == 0; }
  // How many runs n bytes of the view are, about.
  int64_t runs_of(uint64_t n) const;

  // Whether bytes [from, from + n) of the view have places that a file can have.
  bool reaches(uint64_t from, uint64_t n) const;
  // Calls visit(int64_t at, uint64_t bytes) for each run of bytes [from, from + n) of the view, in
  // order, until it returns false; false then. reaches() has been asked.
  template <class Visit>
  bool for_each_run(uint64_t from, uint64_t n, Visit&& visit) const {
    Joining<Visit> joining(visit);
    datatypes::for_each_run(*laid_out_, base(), endless, from, n, joining);
    return joining.end();
  }
  // Byte of the file where byte `from` of the view is.
  int64_t place_of(uint64_t from) const;
  // First and last byte, and one beyond it, of bytes [from, from + n), n > 0.
  void bounds(uint64_t from, uint64_t n, int64_t& low, int64_t& high) const;
  // How many bytes of the view lie before byte `size` of the file.
  uint64_t bytes_below(int64_t size) const;

 private:
  static constexpr uint64_t endless = UINT64_MAX;
  const void* base() const { return reinterpret_cast<const void*>(uintptr_t(displacement_)); }

  std::atomic<uint32_t> references_{1};
  bool monotone_ = true;
  uint64_t runs_ = 0;  // of one repetition
  int64_t displacement_ = 0;
  uint64_t etype_bytes_ = 1;
  const datatypes::Type* etype_ = nullptr;
  const datatypes::Type* file_type_ = nullptr;
  const datatypes::Type* laid_out_ = nullptr;
  const Representation* representation_ = nullptr;
};

}  // namespace headway::io
