// Guard: closed ranges of the program, from the release of a receive until its last page is open.
// Knows bytes and pages, and nothing of messages. Source: section 2 of the early-release paper.
// Thread: close() and arrived() by the holder of the engine; serve() by the message thread without
// it; is_closed() any. Owner: the engine. Invariants: a page opens when all its bytes have arrived,
// and not before; who touches it earlier waits in the kernel, or in our handler; nothing here
// touches a closed page, allocates from malloc, or waits for a thread that may wait for a page.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/counter.h"
#include "base/intervals.h"
#include "base/list.h"
#include "base/outcome.h"
#include "base/pool.h"
#include "base/spin_lock.h"
#include "guard/detail/mappings.h"
#include "guard/detail/touches.h"
#include "guard/mechanism.h"

namespace headway::guard {

enum class Page : uint8_t {
  closed,
  mixed,  // closed, and holds other data of the program, too
  open,
  gone
};

// One closed range. Its number and generation are a token: a late piece for a region that has ended
// finds nobody.
struct Region {
  uint32_t pool_index = 0;
  uint32_t generation = 0;
  bool taken = false;
  Region* list_next = nullptr;
  Region* list_prev = nullptr;

  // What whoever closed it wants to be told at its end.
  struct Owner {
    uint32_t token = 0;
    bool settles = false;
    uint64_t closing_ns = 0, traps = 0, moving_ns = 0;
  };
  Owner owner;
  uint32_t closing = 0;       // which one it is of all that this guard has closed, from 1
  uint64_t closed_at = 0;     // ns
  uint64_t waited_ns = 0;     // that threads waited for its pages, which they had touched
  uint64_t inside_ns = 0;     // Guard::inside_ns() when it was closed
  uint64_t share = 0;         // Guard::share_ when it was closed
  uint64_t untouched_ns = 0;  // from its closing to the first such touch; 0: none
  uint32_t touches = 0;
  Range range;              // where it was closed
  char* view = nullptr;     // data for byte i of the range are to be put at view + i
  size_t awaited = 0;       // bytes that have not arrived
  uint16_t* got = nullptr;  // bytes that have arrived, a number for each page
  Page* pages = nullptr;
  char** places = nullptr;  // where each page is now (null: nowhere), once one has moved
  uint32_t home = 0;        // in the guard's index, until one has moved

  size_t size() const { return range.bytes(); }
};

struct Counters {
  base::Counter closed;        // ranges
  base::Counter closed_bytes;  // in them
  base::Counter no_memory;     // ranges that were not closed: shared, of a file, a stack, read-only
  base::Counter overlaps;      // they hold closed pages already
  base::Counter refused;       // by the system: a limit, locked memory
  base::Counter opened;        // pages
  base::Counter touched;       // waits of program threads for a closed page
  base::Counter closed_ns;     // from the closing of ranges to their ends
  base::Counter waited_ns;     // that threads waited for closed pages that they had touched
  base::Counter inside_ns;     // that they waited for closed ranges elsewhere, once for each range
  base::Counter hidden_ns;     // that ranges were closed and nobody waited for them
  base::Counter untouched_ns;  // from the closing of ranges to the first touch, or to their ends
  base::Counter gone;          // pages that the program dropped or unmapped while they were closed
};

class Guard final : Listener {
 public:
  // False: nothing can be closed here, since the kernel does not tell what memory it would be.
  bool start(Mechanism* mechanism);
  // In a forked child, and when the process has done with MPI: nothing is closed any more.
  void stop();

  // All pages that hold a byte of [from, from + n).
  static Range around(char* from, size_t n);

  // Null: nothing is closed, the data are to be put straight into the range, whose contents may be
  // gone. Also if it is not ordinary memory (is_plain), or holds a closed page already.
  Region* close(Range range);
  // The same for a range that may hold other data, too: the view holds what it held, and goes on
  // doing so if nothing is closed. What no message will bring is to be told by arrived(), too.
  Region* close_with_contents(Range range);
  // All of that has been told: from now on the pages with such bytes are known as mixed.
  void mixed(Region* region);
  // n bytes have been put at region.view + offset, each byte once. Opens the pages that they
  // complete. True: that was the last of it, the region is over and no longer valid.
  bool arrived(Region* region, size_t offset, size_t n);
  // The region that ended last.
  struct End {
    Region::Owner owner;
    uint64_t closed_ns, waited_ns, inside_ns;
    uint64_t
        share_ns;  // of the time that it was closed: that with n others closed counts 1 / (n + 1)
    uint32_t touches;
  };
  End ended{};
  Region* find(uint32_t index, uint32_t generation) { return regions_.find(index, generation); }

  // True if a byte of [from, from + n) lies in a closed page.
  bool is_closed(const void* from, size_t n);
  bool any_closed() const { return closed_.load(std::memory_order_relaxed) != 0; }
  const std::atomic<uint32_t>& closed_regions() const { return closed_; }
  // A thread waits for a page that is closed still.
  bool is_awaited() const { return awaited_.load(std::memory_order_relaxed) != nullptr; }
  const char* awaited() const { return awaited_.load(std::memory_order_relaxed); }
  // Pages with other data than those of messages.
  bool any_mixed() const { return mixed_.load(std::memory_order_relaxed) != 0; }
  // True if the program can write memory that others see, beside what `ours` knows.
  bool shares_memory(bool (*ours)(const void* start, void* context), void* context);

  // A thread of the program waits for closed pages without touching one; it does not now.
  void begin_wait();
  void end_wait();
  // One does. Exact for those that waited before the caller took the engine.
  bool is_awaited_inside() const { return inside_.load(std::memory_order_relaxed) != 0; }

  // What happened to closed pages since the last call. To be called when descriptor() is readable,
  // by a thread that never touches memory of the program.
  void serve();
  int descriptor() const { return mechanism_ ? mechanism_->descriptor() : -1; }

  Counters counters;
  // Opened in one call: fewer cost more calls, more keep waiting whoever touched the first of them.
  size_t batch_pages = 16;

 private:
  struct Found {
    Region* region;
    size_t page;
  };
  Found find_page(char* address);
  Region* close(Range range, bool keep);
  Region* close_yielded(Range range, bool keep);
  void regained(Range range, bool same);
  bool leave_to_others(Range range);
  void set(Region* region, size_t page, Page state);
  bool is_plain(Range range);
  void heard(Event event, Range range, char* to) override;
  void open_run(Region* region, size_t first, size_t count);
  bool note_places(Region* region);
  void lose(Region* region, size_t page);
  void waited_for(Region* region, size_t page);
  void finish(Region* region);
  void share_until(uint64_t now);
  static bool any_shut(const Region& region, const char* begin, const char* end);
  uint64_t inside_ns(uint64_t now) const {
    return inside_ns_ + (is_awaited_inside() ? now - inside_since_ : 0);
  }
  static char* place(const Region& region, size_t page) {
    return region.places ? region.places[page] : region.range.base + page * page_bytes;
  }

  Mechanism* mechanism_ = nullptr;
  base::SpinLock lock_;  // the regions: serve() comes without the engine
  base::Pool<Region> regions_;
  base::Intervals homes_;     // of regions none of whose pages has moved; they share no page
  base::List<Region> moved_;  // the other ones
  Mappings mappings_;
  std::atomic<uint32_t> closed_{0};      // regions
  std::atomic<uint32_t> mixed_{0};       // pages
  std::atomic<char*> awaited_{nullptr};  // the closed page that was touched last
  uint64_t awaited_since_ = 0;           // ns
  std::atomic<uint32_t> inside_{0};      // threads between begin_wait() and end_wait()
  uint64_t inside_since_ = 0;            // since the first of them began
  uint64_t inside_ns_ = 0;               // in which there was one, up to inside_since_
  // What one region's share would be that had been closed always, in ns / 2^share_shift.
  static constexpr uint32_t share_shift = 12;
  uint64_t share_ = 0, shared_at_ = 0;
  Touches touches_;
};

}  // namespace headway::guard
