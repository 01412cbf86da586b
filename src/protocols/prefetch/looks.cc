// When buffers that were asked for are looked at, and what is final: a page that has been written
// since the last send, and then not for a while. That is longer for a buffer of which pages were
// written again after all.
#include <algorithm>

#include "base/clock.h"
#include "protocols/core.h"
#include "protocols/prefetch/presend.h"

namespace headway::protocols {
namespace {

// Between two looks at a buffer, by the time that its message takes on the link: while it changes,
// and when nothing has for long. Then also by the time between two sends, for each look takes a
// core from the program, and a message that the link needs little time for has little to gain.
constexpr uint64_t looks_a_message = 32, looks_at_rest = 4, looks_a_period = 64;
constexpr uint64_t least_pace_ns = 200'000, most_pace_ns = 1'000'000;
constexpr uint64_t least_rest_ns = 2'000'000;
// While the same pages are found written at look after look: the faults take a fiftieth of the
// time.
constexpr uint64_t fault_ns = 1000, most_share = 50, longest_pace_ns = 100'000'000;
// How long a page has been left alone when it is taken as final: at first, by the time between two
// sends, and at least, in looks. It shrinks at once to twice the pauses that were seen between
// writes to one page, unless these are few; and a little where it has been right for some messages
// in a row.
constexpr uint64_t first_calm = 32, calm_looks = 2;
constexpr uint64_t short_pause = 8, few_pauses = 16;
constexpr int most_halvings = 2;
constexpr uint32_t few_right = 4;
constexpr uint64_t longest_calm_ns = 2'000'000'000;
// If one of so many pages that look final is written again, they look so too early. What went in
// vain took time of a link on which little else went.
constexpr uint64_t most_mistaken = 3;
// A single page that was mistaken is waited for twice as long, up to so many times, and as long as
// before when the others' time shrinks; what was learnt of it fades with so many messages.
constexpr uint8_t most_wary = 6, most_wary_of_all = 12;
constexpr uint64_t telling_part = 64;         // of a buffer: fewer tell nothing
constexpr uint64_t first_rate = 100'000'000;  // until one has been measured
constexpr uint64_t held_ns = 1'000'000;  // net: a link that holds all back tells when it is free

uint64_t within(uint64_t value, uint64_t least, uint64_t most) {
  return value < least ? least : value > most ? most : value;
}

}  // namespace

void Presends::begin_looks(Origin& origin) {
  const Peer& peer = core_.links().peers()[origin.peer];
  const uint64_t rate = peer.transport->rate(peer.number);
  const uint64_t wire_ns = origin.size * 1'000'000'000 / (rate ? rate : first_rate);
  origin.least_pace_ns = within(wire_ns / looks_a_message, least_pace_ns, most_pace_ns);
  const uint64_t rest_ns = std::max(wire_ns / looks_at_rest, origin.period_ns / looks_a_period);
  origin.rest_ns = within(rest_ns, least_rest_ns, most_rest_ns);
  origin.pace_ns = origin.least_pace_ns * (asked_.size() + 1);
  if (origin.calm_ns == 0) origin.calm_ns = origin.period_ns / first_calm;
  const uint64_t least_calm_ns = calm_looks * origin.least_pace_ns;
  origin.calm_ns = within(origin.calm_ns, least_calm_ns, longest_calm_ns);
}

// False: its pages are no longer followed.
bool Presends::look_again(Origin& origin, uint64_t now) {
  // Where nothing changes, buffers are looked at together: to be woken costs more than to look.
  const bool resting = origin.quiet && origin.pace_ns >= origin.rest_ns;
  if (now - origin.looked_at < (resting ? origin.pace_ns / 2 : origin.pace_ns)) return true;
  // A buffer that goes to many was looked at for another one a moment ago.
  const bool known = look_.address == origin.address && look_.size == origin.size &&
                     look_.at > origin.looked_at && now - look_.at < origin.pace_ns;
  if (known) {
    now = look_.at;
  } else {
    if (!versions_.look(origin.address, origin.size)) return false;
    look_ = {origin.address, origin.size, now};
  }
  uint64_t changed = 0, again = 0, mistaken = 0, at_rest = 0, waiting = 0;
  for (uint64_t page = 0, pages = origin.grid.pages(); page < pages; ++page) {
    const uint32_t version = version_of(origin, page);
    const bool written = origin.seen[page] != origin.sent[page];  // before the last look
    if (version == origin.seen[page]) {
      at_rest += written && now - origin.still[page] >= calm_of(origin, page);
      waiting += written && origin.seen[page] != origin.early[page];
      continue;
    }
    again += origin.looked_at && origin.still[page] == origin.looked_at;
    if (written && origin.looked_at) {
      const uint32_t unlearnt = origin.wary[page] == 0;
      if (origin.looked_at - origin.still[page] >= calm_of(origin, page)) {
        mistaken += unlearnt;
        origin.wary[page] += origin.wary[page] < most_wary;
      } else if (origin.still[page] != origin.looked_at &&
                 now - origin.still[page] >= origin.calm_ns / short_pause) {
        origin.pauses += unlearnt;  // a look in between found it left alone
      }
    }
    origin.seen[page] = version;
    origin.still[page] = now;
    ++changed;
  }
  origin.looked_at = now;
  origin.next = 0;
  // Learnt from pages that nobody sent, too: a buffer that fills slowly is waited for from the
  // first message on.
  origin.mistaken += mistaken;
  if (origin.mistaken * most_mistaken > origin.mistaken + at_rest &&
      origin.mistaken * telling_part > origin.grid.pages()) {
    be_patient(origin);
  }
  // The link is shared by all that is asked for: so are the looks.
  const uint64_t asked = asked_.size();
  const uint64_t least = origin.least_pace_ns * asked;
  origin.quiet = !changed;
  origin.seldom = origin.quiet && waiting == 0 && core_.handoff().waits() != 0;
  looks_seldom_ |= origin.seldom;
  if (again) {
    // The next write to each of them is a fault of the program's, which buys nothing.
    origin.pace_ns = within(again * fault_ns * most_share * asked, least, longest_pace_ns);
  } else {
    const uint64_t most = std::max(origin.seldom ? most_rest_ns : origin.rest_ns, least);
    origin.pace_ns = changed ? least : within(origin.pace_ns / 4 * 5, least, most);
  }
  return true;
}

// A program that waits in MPI writes nothing, unless another thread of it does: then what that
// writes is found a fifth of the time later in which nothing was written. Many ranks on one
// processor, of which each looked every few milliseconds whether somebody had written to some
// buffers, took most of it. So once all that was written has been sent, looks become rare, by a
// part of the time in which nothing was written, until the program goes on.
void Presends::look_often() {
  looks_seldom_ = false;
  nothing_until_ = 0;
  for (Origin* origin = asked_.first(); origin; origin = origin->list_next) {
    const uint64_t least = origin->least_pace_ns * asked_.size();
    if (origin->seldom)
      origin->pace_ns = std::min(origin->pace_ns, std::max(origin->rest_ns, least));
  }
}

// As the last look saw it.
bool Presends::is_final(const Origin& origin, uint64_t page) {
  return origin.seen[page] != origin.sent[page] && origin.seen[page] != origin.early[page] &&
         origin.looked_at - origin.still[page] >= calm_of(origin, page);
}

// How long that page has to be left alone to be final.
uint64_t Presends::calm_of(const Origin& origin, uint64_t page) {
  return origin.calm_ns << origin.wary[page];
}

// When to look at the buffers that were asked for again, in microseconds.
uint32_t Presends::next_look_us() const {
  const uint64_t now = base::now_ns();
  uint64_t soonest = most_rest_ns;
  for (const Origin* origin = asked_.first(); origin; origin = origin->list_next) {
    const uint64_t at = origin->looked_at + origin->pace_ns;
    const uint64_t left = at > now ? at - now : 0;
    if (left < soonest) soonest = left;
  }
  if (now + soonest < nothing_until_) soonest = nothing_until_ - now;
  if ((presending_ || core_.links().is_busy()) && soonest < held_ns) soonest = held_ns;
  return uint32_t(soonest / 1000) + 50;
}

// Its pages look final for too short a time: some that had gone were written again.
void Presends::be_patient(Origin& origin) {
  origin.calm_ns = origin.calm_ns * 2 < longest_calm_ns ? origin.calm_ns * 2 : longest_calm_ns;
  origin.mistaken = origin.right = 0;
  origin.pauses = 0;
  origin.pauses_since = base::now_ns();
}

void Presends::learn_calm(Origin& origin, const Confirm& confirm, uint64_t again) {
  if (confirm.bytes == 0 && again == 0) ++core_.counters().presend_dropped;
  if (again > (confirm.bytes + again) / most_mistaken) {
    be_patient(origin);
    return;
  }
  if (++origin.right > few_right) origin.calm_ns = origin.calm_ns / 8 * 7;
  const bool long_enough = base::now_ns() - origin.pauses_since > 2 * origin.calm_ns;
  if (confirm.bytes && long_enough && origin.pauses * few_pauses <= origin.grid.pages()) {
    for (int i = 0; i < most_halvings; ++i) halve_calm(origin);
  }
}

void Presends::halve_calm(Origin& origin) {
  if (origin.calm_ns / 2 < calm_looks * origin.least_pace_ns) return;
  origin.calm_ns /= 2;
  // Those that were mistaken are waited for as long as before.
  for (uint64_t page = 0; page < origin.grid.pages(); ++page) {
    uint8_t& wary = origin.wary[page];
    wary += wary && wary < most_wary_of_all;
  }
}

}  // namespace headway::protocols
