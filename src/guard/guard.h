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

#include "base/list.h"
#include "base/outcome.h"
#include "base/pool.h"
#include "base/spin_lock.h"
#include "guard/detail/mappings.h"
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
  Region* pool_next = nullptr;
  bool taken = false;
  Region* list_next = nullptr;
  Region* list_prev = nullptr;

  uint32_t owner = 0;       // what whoever closed it wants to be told at its end
  uint64_t closed_at = 0;   // ns
  uint64_t waited_ns = 0;   // that threads waited for its pages
  Range range;              // where it was closed
  char* view = nullptr;     // data for byte i of the range are to be put at view + i
  size_t awaited = 0;       // bytes that have not arrived
  uint16_t* got = nullptr;  // bytes that have arrived, a number for each page
  Page* pages = nullptr;
  char** places = nullptr;  // where each page is now (null: nowhere), once one has moved

  size_t size() const { return range.bytes(); }
};

struct Counters {
  uint64_t closed = 0;        // ranges
  uint64_t closed_bytes = 0;  // in them
  uint64_t refused = 0;       // ranges that could not be closed
  uint64_t opened = 0;        // pages
  uint64_t touched = 0;       // waits of program threads for a closed page
  uint64_t closed_ns = 0;     // from the closing of ranges to their ends
  uint64_t waited_ns = 0;     // that threads waited for closed pages
  uint64_t gone = 0;          // pages that the program dropped or unmapped while they were closed
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
    uint32_t owner;
    uint64_t closed_ns, waited_ns;
  };
  End ended{};
  Region* find(uint32_t index, uint32_t generation) { return regions_.find(index, generation); }

  // True if a byte of [from, from + n) lies in a closed page.
  bool is_closed(const void* from, size_t n);
  bool any_closed() const { return closed_.load(std::memory_order_relaxed) != 0; }
  // Pages with other data than those of messages.
  // A thread waits for a page that is closed still.
  bool is_awaited() const { return awaited_.load(std::memory_order_relaxed) != nullptr; }
  bool any_mixed() const { return mixed_.load(std::memory_order_relaxed) != 0; }
  // True if the program can write memory that others see, beside what `ours` knows.
  bool shares_memory(bool (*ours)(const void* start, void* context), void* context);

  // What happened to closed pages since the last call. To be called when descriptor() is readable,
  // by a thread that never touches memory of the program.
  void serve();
  int descriptor() const { return mechanism_ ? mechanism_->descriptor() : -1; }

  Counters counters;

 private:
  struct Found {
    Region* region;
    size_t page;
  };
  Found find_page(char* address);
  Region* close(Range range, bool keep);
  bool leave_to_others(Range range);
  void set(Region* region, size_t page, Page state);
  bool is_plain(Range range);
  void heard(Event event, Range range, char* to) override;
  void open_run(Region* region, size_t first, size_t count);
  bool note_places(Region* region);
  void lose(Region* region, size_t page);
  void waited_for(Region* region, size_t page);
  void finish(Region* region);
  char* place(const Region& region, size_t page) const {
    return region.places ? region.places[page] : region.range.base + page * page_bytes;
  }

  Mechanism* mechanism_ = nullptr;
  base::SpinLock lock_;  // the regions: serve() comes without the engine
  base::Pool<Region> regions_;
  base::List<Region> active_;
  Mappings mappings_;
  std::atomic<uint32_t> closed_{0};      // regions
  std::atomic<uint32_t> mixed_{0};       // pages
  std::atomic<char*> awaited_{nullptr};  // the closed page that was touched last
  uint64_t awaited_since_ = 0;           // ns
};

}  // namespace headway::guard
