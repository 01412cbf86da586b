#include "io/plan.h"

#include "base/check.h"

namespace headway::io {
namespace {

// Runs of this length are as well written by whoever has them (measured: two phases lost from
// here).
constexpr int64_t long_run = 64 << 10;
// Up to so many nodes all ranks gather; beyond, a few for each node fill its link to the disks.
constexpr int few_nodes = 4;
constexpr uint64_t owners_a_node = 2;
// A range that is mostly holes has rounds in which nobody has anything: then two phases are no
// help, and their tables are as long as the range. Up to so many stretches that does not matter.
constexpr uint64_t most_holes = 64;
constexpr uint64_t few_stretches = 1024;
// Rounds times ranks, whose amounts each owner keeps (8 bytes each).
constexpr uint64_t most_amounts = 4 << 20;

struct Range {
  int64_t low = 0, high = 0;
  int64_t bytes = 0, runs = 0;
  bool interleaved = false;
};

// Parts that follow each other in the order of the ranks are not interleaved.
Range range_of(const Part* parts, int ranks) {
  Range all;
  for (int rank = 0; rank < ranks; ++rank) {
    const Part& part = parts[rank];
    if (part.bytes == 0) continue;
    if (all.bytes == 0) {
      all.low = part.low;
    } else if (part.low < all.high) {
      all.interleaved = true;
    }
    if (part.low < all.low) all.low = part.low;
    if (part.high > all.high) all.high = part.high;
    all.bytes += part.bytes;
    all.runs += part.runs;
  }
  return all;
}

bool wants_two_phases(const Part* parts, int ranks, const Range& all) {
  bool always = true;
  for (int rank = 0; rank < ranks; ++rank) {
    if (parts[rank].alone || parts[rank].wish == int64_t(Hints::Wish::never)) return false;
    always = always && parts[rank].wish == int64_t(Hints::Wish::always);
  }
  if (all.bytes == 0) return false;
  if (always) return true;
  return ranks > 1 && all.interleaved && all.runs > 0 && all.bytes / all.runs < long_run;
}

bool is_mostly_holes(const Range& all, uint64_t stretches) {
  return stretches > few_stretches &&
         uint64_t(all.high - all.low) / most_holes > uint64_t(all.bytes);
}

}  // namespace

bool Plan::agree(const Part* parts, int ranks) {
  for (int rank = 1; rank < ranks; ++rank) {
    if (parts[rank].writes != parts[0].writes) return false;
  }
  return true;
}

void Plan::decide(const Part* parts, int ranks, int nodes) {
  owners_ = rounds_ = 0;
  const Range all = range_of(parts, ranks);
  if (!wants_two_phases(parts, ranks, all)) return;
  ranks_ = ranks;
  stretch_ = uint64_t(parts[0].stretch);
  HEADWAY_CHECK(stretch_ >= 1 && all.low < all.high);
  first_ = uint64_t(all.low) / stretch_;
  const uint64_t stretches = uint64_t(all.high - 1) / stretch_ - first_ + 1;
  if (is_mostly_holes(all, stretches)) return;
  uint64_t wanted = uint64_t(parts[0].owners);
  if (wanted == 0) wanted = nodes <= few_nodes ? uint64_t(ranks) : owners_a_node * uint64_t(nodes);
  if (wanted > uint64_t(ranks)) wanted = uint64_t(ranks);
  const uint64_t owners = wanted < stretches ? wanted : stretches;
  rounds_ = (stretches + owners - 1) / owners;
  if (rounds_ * uint64_t(ranks) <= most_amounts) owners_ = owners;
}

uint64_t Plan::owner_of(int rank) const {
  for (uint64_t owner = uint64_t(rank) * owners_ / uint64_t(ranks_); owner < owners_; ++owner) {
    const int found = rank_of(owner);
    if (found == rank) return owner;
    if (found > rank) break;
  }
  return owners_;
}

bool cut(const Plan& plan, const View& view, uint64_t at, uint64_t n, base::Vec<Slice>& slices) {
  slices.clear();
  if (n == 0) return true;
  uint64_t done = 0;
  const auto add = [&](int64_t place, uint64_t bytes) {
    while (bytes > 0) {
      const uint64_t stretch = plan.stretch_at(place);
      const auto room = uint64_t(plan.start_of(stretch + 1) - place);
      const uint64_t now = bytes < room ? bytes : room;
      if (slices.empty() || slices.back().stretch != stretch) {
        if (!slices.push({stretch, done, 0, 0})) return false;
      }
      slices.back().bytes += uint32_t(now);
      ++slices.back().runs;
      place += int64_t(now);
      bytes -= now;
      done += now;
    }
    return true;
  };
  return view.for_each_run(at, n, add);
}

Part part_of(const View& view, uint64_t at, uint64_t n, const Hints& hints, bool writes,
             bool alone) {
  Part part;
  part.writes = writes;
  part.alone = alone;
  part.wish = int64_t(hints.collective_buffering);
  part.stretch = int64_t(hints.buffer_bytes);
  part.owners = int64_t(hints.nodes);
  if (n == 0) return part;
  // What cannot be reached fails by itself, and says so.
  if (!view.reaches(at, n) || !view.is_monotone()) {
    part.alone = 1;
    return part;
  }
  view.bounds(at, n, part.low, part.high);
  // Stretches are counted beyond the last byte.
  if (part.high > INT64_MAX - 2 * int64_t(Hints::most_buffer)) {
    part.alone = 1;
    return part;
  }
  part.bytes = int64_t(n);
  part.runs = view.runs_of(n);
  return part;
}

}  // namespace headway::io
