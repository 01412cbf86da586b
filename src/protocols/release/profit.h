// Profit: where an early release is worth it. Learned for each place where the program waits and
// each buffer that it waits for there: what a release won is the time that its pages were closed
// without anybody waiting for them; what it cost is closing them, the touches, the trapped system
// calls, and the message thread's work, which a thread that is woken waits for if they share a
// core. Thread: holder of the engine. Owner: the engine. Invariant: bounded, a look and a lesson
// take the same time always; pairs that share a record forget each other. Rules 5 and 9 of
// docs/early-release-tests.md.
#pragma once
#include <cstdint>

#include "base/check.h"
#include "base/counter.h"

namespace headway::protocols {

// How a release went.
struct Released {
  uint64_t closed_ns = 0;   // from its beginning until the last page was open
  uint64_t touched_ns = 0;  // in which a thread waited for a page that it had touched
  uint64_t inside_ns = 0;   // in which one waited in an MPI call, or in a system call
  // Its part of closed_ns, where time in which several were closed is shared among them: what all
  // of them hide is there once.
  uint64_t share_ns = ~uint64_t(0);
  uint64_t closing_ns = 0;  // what closing took
  // In which the message thread worked, perhaps on the program's core, or a thread of the program
  // copied or opened itself, which it does while it waits for something else in MPI.
  uint64_t moving_ns = 0;
  uint64_t traps = 0;
  uint32_t touches = 0;
  bool settles = false;  // its first trapped call waited for all pages

  // Of what was spent while it was closed, for all that were: its part.
  uint64_t part_of(uint64_t spent_ns) const {
    return share_ns < closed_ns ? uint64_t(double(spent_ns) * double(share_ns) / double(closed_ns))
                                : spent_ns;
  }
  uint64_t hidden_ns() const {
    const uint64_t waited = touched_ns + inside_ns;
    const uint64_t alone = closed_ns > waited ? closed_ns - waited : 0;
    return alone < share_ns ? alone : share_ns;
  }
};

class Profit {
 public:
  enum Reason : uint8_t { touched_at_once, next_call, traps, moving, closing, reasons };

  // Asked once for each message. `token`: for learn(), never 0. False: it won nothing lately; now
  // and then it is tried again.
  bool is_worth(uintptr_t site, const void* buffer, uint64_t bytes, uint32_t& token) {
    const uint64_t key = key_of(site, buffer, bytes);
    token = token_of(key);
    Site& known = site_of(site);
    Pair& pair = pairs_[place_of(token)];
    if (pair.token == token) return pair.in_vain < give_up_after || pair.next_try.is_due();
    // A new buffer where none has won lately is tried more seldom, and has one chance.
    const bool is_bad = known.in_vain >= site_bad_after;
    if (is_bad && !known.next_try.is_due()) return false;
    pair = {token, uint8_t(is_bad ? give_up_after - 1 : 0), uint16_t(&known - sites_), {}};
    return true;
  }

  // That release has ended.
  void learn(uint32_t token, const Released& release) {
    HEADWAY_CHECK(token != 0);
    Pair& pair = pairs_[place_of(token)];
    if (pair.token != token) return;  // forgotten meanwhile
    HEADWAY_CHECK(pair.site < sites);
    Site& site = sites_[pair.site];
    learn_traps(site, release, sites_settled);
    if (has_won(release)) {
      site.in_vain = 0;
      site.next_try.reset();
      // One lucky try is not enough to forget what was known.
      if (pair.in_vain >= give_up_after) {
        pair.in_vain = give_up_after - 1;
      } else if (pair.in_vain == 0 || --pair.in_vain == 0) {
        pair.next_try.reset();
      }
      return;
    }
    if (site.in_vain < site_bad_after) {
      ++site.in_vain;
    } else {
      site.next_try.wait_longer();
    }
    if (pair.in_vain >= give_up_after) {
      pair.next_try.wait_longer();
    } else if (++pair.in_vain == give_up_after) {
      ++given_up[why(release)];
    }
  }

  // Its first trapped call is to wait for all pages, since trapping the calls between costs too
  // much. Asked once for each release of a token.
  bool settles(uint32_t token) {
    HEADWAY_CHECK(token != 0);
    const Pair& pair = pairs_[place_of(token)];
    if (pair.token != token) return false;
    Site& site = sites_[pair.site];
    return site.settles && !site.next_free.is_due();
  }

  // A wait for that buffer begins there: its next message will be waited for there, too, which is
  // told to nobody before it is matched.
  void note_wait(const void* buffer, uintptr_t site) { waits_[wait_of(buffer)] = {buffer, site}; }
  uintptr_t last_wait(const void* buffer) const {
    const Wait& wait = waits_[wait_of(buffer)];
    return wait.buffer == buffer ? wait.site : 0;
  }

  uint64_t all_given_up() const {
    uint64_t all = 0;
    for (const base::Counter& count : given_up) all += count;
    return all;
  }
  base::Counter given_up[reasons];  // pairs that were found to be not worth it, by what it cost
  base::Counter sites_settled;      // sites whose traps cost too much

 private:
  static constexpr uint32_t pairs = 1024, sites = 256, waits = 1024;
  static constexpr uint8_t give_up_after = 3, site_bad_after = 6;
  // What is not in the measured waits: a thread that is woken runs so much later (page-guards,
  // section 2), and the kernel's delivery of a signal (docs/early-release.md).
  static constexpr uint64_t touch_ns = 15'000, trap_ns = 4'000;
  static constexpr uint64_t most_traps = 20;  // 5 % of what is hidden
  // Less than such a part of the closed time is lost in the noise; but of a receive that was closed
  // long before its message was sent, where most of that time is the sender's, what is so many
  // times the cost counts all the same.
  static constexpr uint64_t least_part = 16, least_times = 16;

  // Due at first after 32 times, then ever more seldom.
  class Retry {
   public:
    bool is_due() {
      if (++passed_ < after_) return false;
      passed_ = 0;
      return true;
    }
    void wait_longer() {
      if (after_ < last) after_ = uint16_t(2 * after_);
    }
    void reset() { after_ = first; }

   private:
    static constexpr uint16_t first = 32, last = 1024;
    uint16_t passed_ = 0, after_ = first;
  };

  struct Pair {
    uint32_t token = 0;
    uint8_t in_vain = 0;  // releases, one after the other
    uint16_t site = 0;
    Retry next_try;
  };
  struct Site {
    uintptr_t at = 0;
    uint8_t in_vain = 0;
    bool settles = false;
    Retry next_try;   // of a new buffer
    Retry next_free;  // without settling
  };
  struct Wait {
    const void* buffer = nullptr;
    uintptr_t site = 0;
  };

  static uint64_t mix(uint64_t key) {
    key = (key ^ (key >> 32)) * 0x9e3779b97f4a7c15ull;
    return key ^ (key >> 29);
  }
  // Messages of about the same size.
  static uint64_t key_of(uintptr_t site, const void* buffer, uint64_t bytes) {
    return mix(mix(site) + reinterpret_cast<uint64_t>(buffer) * 64 + 64 -
               uint64_t(__builtin_clzl(bytes | 1)));
  }
  static uint32_t token_of(uint64_t key) { return uint32_t(key >> 32) | 1u << 31; }
  static uint32_t place_of(uint32_t token) { return token % pairs; }
  static uint32_t wait_of(const void* buffer) {
    return uint32_t(mix(reinterpret_cast<uint64_t>(buffer)) >> 40) % waits;
  }
  Site& site_of(uintptr_t at) {
    Site& site = sites_[(mix(at) >> 40) % sites];
    if (site.at != at) site = {at, 0, false, {}, {}};
    return site;
  }

  static uint64_t extra_ns(const Released& release) {
    return release.touches * touch_ns + release.part_of(release.traps * trap_ns);
  }
  static bool has_won(const Released& release) {
    const uint64_t hidden = release.hidden_ns(),
                   extra = extra_ns(release) + release.part_of(release.moving_ns);
    const uint64_t won = hidden > extra ? hidden - extra : 0;
    return won > 2 * release.closing_ns &&
           (won * least_part > release.closed_ns || won > least_times * release.closing_ns);
  }
  // The largest part of what was lost.
  static Reason why(const Released& release) {
    const uint64_t lost[reasons] = {release.touched_ns + release.touches * touch_ns,
                                    release.inside_ns, release.part_of(release.traps * trap_ns),
                                    release.part_of(release.moving_ns), 2 * release.closing_ns};
    Reason most = touched_at_once;
    for (uint8_t i = 1; i < reasons; ++i) {
      if (lost[i] > lost[most]) most = Reason(i);
    }
    return most;
  }
  static void learn_traps(Site& site, const Released& release, base::Counter& settled) {
    if (release.settles) return;  // it had one trap at most, and shows nothing by that
    if (release.part_of(release.traps * trap_ns) * most_traps <= release.hidden_ns()) {
      site.settles = false;
      site.next_free.reset();
    } else if (site.settles) {
      site.next_free.wait_longer();
    } else {
      site.settles = true;
      ++settled;
    }
  }

  Pair pairs_[pairs];
  Site sites_[sites];
  Wait waits_[waits];
};

}  // namespace headway::protocols
