#include "protocols/reach.h"

namespace headway::protocols {
namespace {

// More than this has begun, beside four times what there was, and nobody asked.
constexpr uint32_t most_unasked = 256;

bool meet(UserMemory::Extent extent, guard::Range pages) {
  return extent.from < extent.to && extent.from < pages.end() && pages.base < extent.to;
}

}  // namespace

void Reach::note(const Request& request) {
  if (++noted_ > most_unasked + 4 * requests_.capacity()) {
    stop();
    return;
  }
  noting_ = request.pool_index;
  forget(noting_);
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
  return visit(pages, [&](const Request* request) { return request == self || request == whole; });
}

}  // namespace headway::protocols
