#include "protocols/reach.h"

#include "base/check.h"
#include "base/text.h"

namespace headway::protocols {
namespace {

// More than this has begun, beside four times what there was, and nobody asked.
constexpr uint32_t most_unasked = 256;

bool meet(UserMemory::Extent extent, guard::Range pages) {
  return extent.from < extent.to && extent.from < pages.end() && pages.base < extent.to;
}

// Of the program's own messages, not of collectives.
bool is_message(const Request& request) {
  return (request.kind == RequestKind::send || request.kind == RequestKind::receive) &&
         !request.traffic.collective && !request.notify && request.memory.is_flat();
}

// As in "a receive (source 0, tag 3, 800 bytes)".
void describe(base::Text<700>& line, const Request& request) {
  const bool receives = request.kind == RequestKind::receive;
  const int peer = receives ? request.key.source : request.status_source;
  line << (receives ? "receive (source " : "send (destination ");
  if (peer == matching::any) {
    line << "any";
  } else {
    line << peer;
  }
  line << ", tag ";
  if (request.key.tag == matching::any) {
    line << "any";
  } else {
    line << request.key.tag;
  }
  line << ", " << request.memory.bytes() << " bytes)";
}

}  // namespace

void Reach::note(const Request& request) {
  if (!tells_ && ++noted_ > most_unasked + 4 * requests_.capacity()) {
    stop();
    return;
  }
  noting_ = request.pool_index;
  forget(noting_);
  if (tells_) [[unlikely]]
    look_for_overlap(request);
  if (request.kind == RequestKind::schedule) {
    if (steps_) steps_(request, *this);
  } else if (request.memory.bytes()) {
    touch(request.memory.extent());
  }
  if (failed_) stop();
}

void Reach::touch(UserMemory::Extent extent) {
  if (extent.from >= extent.to || failed_) return;
  uint32_t link = free_links_;
  if (link) {
    free_links_ = links_[link].next;
  } else {
    failed_ = (links_.empty() && !links_.push({})) || !links_.push({});
    if (failed_) return;
    link = uint32_t(links_.size() - 1);
  }
  const uint32_t number = ranges_.add(extent.from, extent.to, noting_);
  failed_ = number == 0 || (first_.size() <= noting_ && !first_.resize(requests_.capacity()));
  if (failed_) return;
  links_[link] = {number, first_[noting_]};
  first_[noting_] = link;
}

void Reach::forget(uint32_t owner) {
  if (owner >= first_.size()) return;
  for (uint32_t link = first_[owner]; link;) {
    const uint32_t next = links_[link].next;
    ranges_.remove(links_[link].number);
    links_[link].next = free_links_;
    free_links_ = link;
    link = next;
  }
  first_[owner] = 0;
}

void Reach::look_for_overlap(const Request& begun) {
  if (!is_message(begun) || !begun.memory.bytes()) return;
  const UserMemory::Extent extent = begun.memory.extent();
  const Request* first = nullptr;
  (void)ranges_.visit(extent.from, extent.to, [&](uint32_t, uint32_t owner) {
    const Request& other = *requests_.at(owner);
    const bool writes = begun.kind == RequestKind::receive || other.kind == RequestKind::receive;
    if (&other != &begun && writes && is_at_home(other) && is_message(other)) first = &other;
    return !first;
  });
  if (!first) return;
  tells_ = false;  // one line is enough
  const UserMemory::Extent theirs = first->memory.extent();
  const char* from = extent.from > theirs.from ? extent.from : theirs.from;
  const char* to = extent.to < theirs.to ? extent.to : theirs.to;
  base::Text<700> line;
  line << "headway: rank " << rank_ << ": a ";
  describe(line, begun);
  line << " begins in memory of another operation under way, a ";
  describe(line, *first);
  line << ": " << uint64_t(to - from)
       << " bytes are shared. The MPI standard gives a buffer to one operation at a time; what it "
          "holds afterwards, or what is sent, is undefined. Likely cause: the same buffer was "
          "passed "
          "twice. Likely remedy: use a buffer for each message, or wait for the first one before "
          "the second begins\n";
  line.write_to(2);
}

// True: all that is under way stands here.
bool Reach::keep() {
  if (kept_) return true;
  kept_ = true;
  noted_ = 0;
  for (uint32_t i = 0; kept_ && i < requests_.capacity(); ++i) {
    const Request& request = *requests_.at(i);
    if (is_at_home(request)) note(request);
  }
  return kept_;
}

void Reach::stop() {
  kept_ = failed_ = false;
  ranges_.clear();
  first_.clear();
  links_.clear();
  free_links_ = 0;
}

bool Reach::is_used(guard::Range pages) const {
  for (const Use* use = uses_.first(); use; use = use->list_next) {
    if (meet(use->extent, pages)) return true;
  }
  return false;
}

bool Reach::is_free(guard::Range pages, const Request* self, const Request* whole) {
  const bool free =
      visit(pages, [&](const Request* request) { return request == self || request == whole; });
  HEADWAY_CHECK(!free || !self || !self->memory.bytes() || is_noted(*self));
  return free;
}

}  // namespace headway::protocols
