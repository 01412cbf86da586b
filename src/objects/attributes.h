// Attributes: what programs cache on communicators, datatypes and windows under keyvals of their
// own: MPI 5.0, section 7.7. Nothing is called here: api/ knows the types of the callbacks and runs
// them, with no lock held. Thread: any; a list's lock guards its links. Owner: a list owns its
// attributes; a keyval is reference counted: the program's number, each attribute, each copy under
// way. Invariants: the newest attribute stands first; at most one of a keyval is not leaving; an
// attribute that is leaving is taken out by the one who marked it and by nobody else.
#pragma once
#include <atomic>
#include <cstdint>

#include "base/spin_lock.h"
#include "base/vec.h"
#include "objects/handle.h"

namespace headway::objects {

enum class KeyvalKind : uint8_t { comm, datatype, window };

struct Keyval {
  std::atomic<uint32_t> references{1};
  // The program gave its number back. That stays valid for reading and deleting what is still
  // cached under it, until nothing is.
  std::atomic<bool> freed{false};
  KeyvalKind kind = KeyvalKind::comm;
  int number = 0;
  HandleTable* table = nullptr;
  void* copy = nullptr;         // of the MPI_x_copy_attr_function type of its kind, or predefined
  void* erase = nullptr;        // likewise MPI_x_delete_attr_function
  void* extra_state = nullptr;  // the program's, passed to both

  void retain() { references.fetch_add(1, std::memory_order_relaxed); }
};

// A keyval with one reference and its number in `table`. Null without memory or numbers.
Keyval* make_keyval(HandleTable& table, KeyvalKind kind, void* copy, void* erase,
                    void* extra_state);
// Takes a reference away; the last one frees the keyval and its number.
void release(Keyval* keyval);

struct Attribute {
  Attribute* older;
  Keyval* keyval;
  void* value;
  bool leaving;
};

// Keeps `keyval`. Null without memory.
Attribute* make_attribute(Keyval& keyval, void* value);
// For one that is in no list.
void discard(Attribute* attribute);

class Attributes {
 public:
  // The value under `keyval`; false if there is none.
  bool find(const Keyval& keyval, void*& value) const;
  // Puts `made` first and returns null. If there is one of its keyval already, returns that
  // instead, marked as leaving: the caller deletes it and comes again.
  [[nodiscard]] Attribute* put(Attribute* made);
  // Marks the newest attribute, or the one of `keyval`, as leaving. Null: there is none.
  Attribute* start_leaving(const Keyval* keyval = nullptr);
  // Its callback ran: takes it out and frees it, or keeps it after all, unless another one of its
  // keyval has been put meanwhile.
  void end_leaving(Attribute* attribute, bool gone);

  // An attribute as it was when asked for; holds a reference to its keyval.
  struct Taken {
    Keyval* keyval;
    void* value;
  };
  // All of them, oldest first. False without memory: then nothing is held.
  [[nodiscard]] bool take_all(base::Vec<Taken>& out) const;
  // Frees all without a callback: the program cannot reach the object any more.
  void drop();

 private:
  mutable base::SpinLock lock_;
  Attribute* newest_ = nullptr;
};

// Those of one handle of an object that may have several, such as a datatype.
struct HandleAttributes {
  HandleAttributes* next;
  uintptr_t handle;
  Attributes list;
};

}  // namespace headway::objects
