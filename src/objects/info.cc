#include "objects/info.h"

#include <cstring>
#include <new>

#include "base/check.h"
#include "base/heap.h"

namespace headway::objects {
namespace {

void copy_cut(char* to, size_t room, const char* text) {
  const size_t n = strnlen(text, room - 1);
  memcpy(to, text, n);
  to[n] = '\0';
}

}  // namespace

Info* Info::make() {
  void* memory = base::heap_allocate(sizeof(Info));
  return memory ? new (memory) Info{} : nullptr;
}

Info* Info::duplicate() const {
  Info* copy = make();
  for (const InfoEntry* entry = first; copy && entry; entry = entry->next) {
    if (copy->set(entry->key, entry->value)) continue;
    copy->release();
    return nullptr;
  }
  return copy;
}

void Info::release() {
  if (references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  while (InfoEntry* entry = first) {
    first = entry->next;
    base::heap_free(entry, sizeof *entry);
  }
  base::heap_free(this, sizeof *this);
}

const char* Info::find(const char* key) const {
  for (const InfoEntry* entry = first; entry; entry = entry->next) {
    if (strcmp(entry->key, key) == 0) return entry->value;
  }
  return nullptr;
}

bool Info::set(const char* key, const char* value) {
  HEADWAY_CHECK(*key != '\0');
  InfoEntry** link = &first;
  while (*link && strcmp((*link)->key, key) != 0) link = &(*link)->next;
  if (!*link) {
    auto* entry = static_cast<InfoEntry*>(base::heap_allocate(sizeof(InfoEntry)));
    if (!entry) return false;
    entry->next = nullptr;
    copy_cut(entry->key, sizeof entry->key, key);
    HEADWAY_CHECK(strcmp(entry->key, key) == 0);  // cut, it might be there twice
    *link = entry;
    ++count;
  }
  copy_cut((*link)->value, sizeof(*link)->value, value);
  return true;
}

bool Info::remove(const char* key) {
  for (InfoEntry** link = &first; *link; link = &(*link)->next) {
    if (strcmp((*link)->key, key) != 0) continue;
    InfoEntry* entry = *link;
    *link = entry->next;
    base::heap_free(entry, sizeof *entry);
    --count;
    return true;
  }
  return false;
}

const InfoEntry* Info::at(int index) const {
  const InfoEntry* entry = first;
  while (entry && index-- > 0) entry = entry->next;
  return entry;
}

}  // namespace headway::objects
