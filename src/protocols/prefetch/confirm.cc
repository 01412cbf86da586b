// What a send tells of the pages that went before it: makes it, puts it into the envelope, and
// sends what is missing, with it or when the receiver has made room. Source: message-prefetching
// paper, section 2.2.
#include "base/check.h"
#include "base/heap.h"
#include "protocols/core.h"
#include "protocols/prefetch/presend.h"

namespace headway::protocols {

// `grid`: of the message that is sent.
Confirm* Presends::make_confirm(const Origin& origin, const Grid& grid, int64_t shift) {
  void* memory = base::heap_allocate(Confirm::bytes_of(grid));
  if (!memory) {
    core_.links().fail(Outcome::no_memory, core_.links().peers()[origin.peer],
                       "no memory to tell what was sent early");
    return nullptr;
  }
  const bool moved = shift != 0 || grid.size != origin.size;
  auto* confirm = new (memory) Confirm{.grid = grid, .moved = moved, .shift = shift};
  memset(confirm->pages(), 0, PageSet::words(grid.pages()) * sizeof(uint64_t));
  return confirm;
}

void Presends::end_confirm(Request* send) {
  Confirm* confirm = confirm_of(*send);
  if (!confirm) return;
  base::heap_free(confirm, Confirm::bytes_of(confirm->grid));
  rows_[*send].confirm = nullptr;
}

// Page `page` of what was asked for is as it was. Of a message that has moved only whole pages are
// told: they are pages of both.
void Presends::confirm_page(Confirm& confirm, const Grid& asked, uint64_t page) {
  const Grid& grid = confirm.grid;
  const uint64_t bytes = asked.begin(page + 1) - asked.begin(page);
  if (confirm.moved) {
    const int64_t from = int64_t(asked.begin(page)) - confirm.shift;
    if (bytes != Grid::page || from < 0 || uint64_t(from) + Grid::page > grid.size) return;
    page = grid.page_of(uint64_t(from));
  }
  HEADWAY_CHECK(!PageSet::has(confirm.pages(), page));
  PageSet::set(confirm.pages(), page);
  confirm.bytes += bytes;
  HEADWAY_CHECK(confirm.bytes <= grid.size);
}

// Where a bit stands for several pages, it tells only what is true of all of them.
void Presends::coarsen(Confirm& confirm) {
  const uint64_t pages = confirm.grid.pages(), grain = grain_of(pages);
  if (grain == 1) return;
  for (uint64_t from = 0; from < pages; from += grain) {
    const uint64_t end = from + grain < pages ? from + grain : pages;
    if (PageSet::find(confirm.pages(), end, from, false) == end) continue;
    for (uint64_t page = from; page < end; ++page) {
      if (!PageSet::has(confirm.pages(), page)) continue;
      PageSet::clear(confirm.pages(), page);
      confirm.bytes -= confirm.grid.begin(page + 1) - confirm.grid.begin(page);
    }
  }
}

// True if the message is told of by a confirm frame: all of it went before, or little is missing.
bool Presends::confirms_all(const Request& send) const {
  const Confirm* confirm = told_of(send);
  return confirm && !confirm->moved &&
         send.memory.bytes() - confirm->bytes <= send.peer->limits.eager;
}

// Those pages of such a message that did not go before, or not as they are now. They go where the
// request made room.
Push Presends::push_rest(const Request& send) {
  Confirm& confirm = *confirm_of(send);
  const Grid& grid = confirm.grid;
  const uint64_t pages = grid.pages();
  while (confirm.next < pages) {
    const uint64_t begin = PageSet::find(confirm.pages(), pages, confirm.next, false);
    const uint64_t end = PageSet::find(confirm.pages(), pages, begin, true);
    if (begin == end) break;
    const uint64_t from = grid.begin(begin), to = grid.begin(end);
    FrameHeader header;
    header.kind = uint8_t(Kind::presend);
    header.word = origin_of(send);
    header.source = int32_t(grid.first);
    header.context = from;
    header.length = uint32_t(to - from);
    const Feed feed{.flat = send.memory.flat() + from, .length = to - from};
    // Without a cookie what does not leave at once is copied.
    if (core_.links().push_frame(*send.peer, header, nullptr, 0, &feed, 0,
                                 transports::Urgency::control) == Push::full) {
      return Push::full;
    }
    note_leaving(*send.peer, to - from);
    confirm.next = end;
  }
  return Push::done;
}

// The envelope of a message that a request has made room for.
Push Presends::push_confirm(Request* send, FrameHeader& header) {
  if (push_rest(*send) == Push::full) return Push::full;
  const ConfirmWhole body{send->memory.bytes(), confirm_of(*send)->bytes};
  header.kind = uint8_t(Kind::confirm);
  header.flags = flag_asked;
  header.word = origin_of(*send);
  header.length = sizeof body;
  return core_.links().push_frame(*send->peer, header, &body, sizeof body, nullptr, 0,
                                  transports::Urgency::control);
}

// Of a message that was confirmed in part, what is left comes from its beginning, in whole pages.
bool Presends::fits_confirmed(const Request& send, const ClearSend& clear) const {
  if (!told_of(send)) return true;
  return clear.start == 0 && (clear.length - clear.head - clear.tail) % guard::page_bytes == 0;
}

// False: there is no memory, and the process ends.
bool Presends::leave_out_confirmed(Request* send) {
  const Confirm* confirm = told_of(*send);
  if (!confirm || cover(core_.transfer(*send), confirm->grid, confirm->pages())) return true;
  core_.links().fail(Outcome::no_memory, *send->peer, "no memory to leave out what was sent early");
  return false;
}

// What a request to send tells besides of what has gone before. Returns its bytes.
uint32_t Presends::tell_confirmed(const Request& send, char* out) const {
  if (!told_of(send)) return 0;
  const Confirm& confirm = *told_of(send);
  const uint64_t pages = confirm.grid.pages(), words = PageSet::words(confirmed_bits(pages));
  const Confirmed head{confirm.grid.first, grain_of(pages), confirm.shift};
  memcpy(out, &head, sizeof head);
  uint64_t bits[most_confirmed_words] = {};
  PageSet::for_each_run(confirm.pages(), pages, [&](uint64_t begin, uint64_t end) {
    for (uint64_t page = begin; page < end; ++page) PageSet::set(bits, page / head.grain);
  });
  memcpy(out + sizeof head, bits, words * sizeof(uint64_t));
  return uint32_t(sizeof head + words * sizeof(uint64_t));
}

}  // namespace headway::protocols
