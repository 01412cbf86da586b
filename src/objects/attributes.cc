#include "objects/attributes.h"

#include <new>

#include "base/check.h"
#include "base/heap.h"

namespace headway::objects {

Keyval* make_keyval(HandleTable& table, KeyvalKind kind, void* copy, void* erase,
                    void* extra_state) {
  void* memory = base::heap_allocate(sizeof(Keyval));
  if (!memory) return nullptr;
  auto* made = new (memory) Keyval{};
  made->kind = kind;
  made->table = &table;
  made->copy = copy;
  made->erase = erase;
  made->extra_state = extra_state;
  made->number = int(table.add(made));  // 31 bits: see HandleKind
  if (made->number) return made;
  base::heap_free(made, sizeof(Keyval));
  return nullptr;
}

void release(Keyval* keyval) {
  if (keyval->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  keyval->table->remove(uintptr_t(keyval->number));
  base::heap_free(keyval, sizeof(Keyval));
}

Attribute* make_attribute(Keyval& keyval, void* value) {
  auto* made = static_cast<Attribute*>(base::heap_allocate(sizeof(Attribute)));
  if (!made) return nullptr;
  keyval.retain();
  *made = {nullptr, &keyval, value, false};
  return made;
}

void discard(Attribute* attribute) {
  release(attribute->keyval);
  base::heap_free(attribute, sizeof(Attribute));
}

bool Attributes::find(const Keyval& keyval, void*& value) const {
  const base::SpinGuard guard(lock_);
  const Attribute* found = nullptr;
  for (const Attribute* one = newest_; one; one = one->older) {
    if (one->keyval != &keyval) continue;
    // One that leaves is there until its callback has returned, which may ask for it; one that
    // stays goes before it.
    if (!found || found->leaving) found = one;
  }
  if (found) value = found->value;
  return found != nullptr;
}

Attribute* Attributes::put(Attribute* made) {
  const base::SpinGuard guard(lock_);
  for (Attribute* one = newest_; one; one = one->older) {
    if (one->keyval != made->keyval || one->leaving) continue;
    one->leaving = true;
    return one;
  }
  made->older = newest_;
  newest_ = made;
  return nullptr;
}

Attribute* Attributes::start_leaving(const Keyval* keyval) {
  const base::SpinGuard guard(lock_);
  for (Attribute* one = newest_; one; one = one->older) {
    if (one->leaving || (keyval && one->keyval != keyval)) continue;
    one->leaving = true;
    return one;
  }
  return nullptr;
}

void Attributes::end_leaving(Attribute* attribute, bool gone) {
  {
    const base::SpinGuard guard(lock_);
    HEADWAY_CHECK(attribute->leaving);
    bool stays = !gone;
    // What its callback has put has its place.
    for (const Attribute* one = newest_; one && stays; one = one->older) {
      stays = one->leaving || one->keyval != attribute->keyval;
    }
    if (stays) {
      attribute->leaving = false;
      return;
    }
    Attribute** link = &newest_;
    while (*link != attribute) {
      HEADWAY_CHECK(*link);
      link = &(*link)->older;
    }
    *link = attribute->older;
  }
  discard(attribute);
}

bool Attributes::take_all(base::Vec<Taken>& out) const {
  // Memory is asked for outside the lock, and once more if the list has grown meanwhile.
  for (size_t room = 8;; room *= 2) {
    if (!out.reserve(room)) return false;
    out.clear();
    const base::SpinGuard guard(lock_);
    size_t count = 0;
    for (const Attribute* one = newest_; one; one = one->older) count += !one->leaving;
    if (count > room) continue;
    for (const Attribute* one = newest_; one; one = one->older) {
      if (one->leaving) continue;
      one->keyval->retain();
      (void)out.push({one->keyval, one->value});  // there is room
    }
    break;
  }
  for (size_t low = 0, high = out.size(); low + 1 < high; ++low) {
    --high;
    const Taken one = out[low];
    out[low] = out[high];
    out[high] = one;
  }
  return true;
}

void Attributes::drop() {
  while (Attribute* one = newest_) {
    newest_ = one->older;
    discard(one);
  }
}

}  // namespace headway::objects
