// matching_bench: the queues of one process that gets messages of many virtual ranks, in all
// designs of src/matching. Prints one JSON object a line; bench/matching/run.py drives it.
//
//   matching_bench pattern NAME   [--processes N] [--steps N] [--warmup N] [--bytes N] [--rounds N]
//   matching_bench length         one source, many tags, by the length of the queue
//   options: --designs a,b,..  --kc N  --kp N  --threshold N  --seed N  --lengths a,b,..
//            --most-ms N   a run that takes longer is the last one of its design
#include <x86intrin.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "patterns.h"

namespace {

using namespace headway::matching;
using headway::base::now_ns;

constexpr const char* names[designs] = {"headway",  "list",     "source", "pnp",
                                        "col+list", "list+pnp", "col+pnp"};

// As large as a request of the library, so that hooks lie as far apart as there.
struct alignas(64) Entry : Message {
  char rest[192 - sizeof(Message)];
};

struct Options {
  std::string what, pattern;
  patterns::Size size{1024, 8, 20, 4};
  std::vector<int> designs;
  std::vector<uint32_t> lengths;
  Config config;
  int rounds = 5;
  uint64_t seed = 1;
  uint64_t most_ms = 2000;
};

[[noreturn]] void usage(const std::string& story) {
  fprintf(stderr, "matching_bench: %s\n", story.c_str());
  exit(2);
}

// ---- time ----

double ticks_per_ns() {
  const uint64_t from = __rdtsc(), began = now_ns();
  while (now_ns() - began < 20'000'000) {
  }
  return double(__rdtsc() - from) / double(now_ns() - began);
}

inline uint64_t tick() {
  unsigned core;
  _mm_lfence();
  const uint64_t now = __rdtscp(&core);
  _mm_lfence();
  return now;
}

// Of two ticks with nothing between them: the median of many.
uint64_t cost_of_tick() {
  std::vector<uint64_t> costs(10'001);
  for (uint64_t& cost : costs) {
    const uint64_t from = tick();
    cost = tick() - from;
  }
  std::nth_element(costs.begin(), costs.begin() + 5000, costs.end());
  return costs[5000];
}

// ---- patterns ----

struct Cost {
  uint64_t searches = 0, ticks = 0;       // that passed at least one hook, or found one
  uint64_t additions = 0, add_ticks = 0;  // to the queue
};

struct Result {
  Cost of[2][2];  // posted, unexpected; point to point, collective
  Counters posted, unexpected;
  uint32_t queues[2][2] = {};
  size_t memory = 0;
  double total_ns = 0;  // of the whole run, without a clock between
};

struct Queues {
  PostedQueue posted;
  UnexpectedQueue unexpected;
  explicit Queues(const Config& config) {
    if (!posted.prepare(config) || !unexpected.prepare(config)) usage("no memory");
  }
};

// Entries are used again, the last one first, as the library's pools do.
class Entries {
 public:
  explicit Entries(size_t most) : all_(most) {
    for (Entry& entry : all_) free_.push_back(&entry);
    std::reverse(free_.begin(), free_.end());
  }
  Entry& take(const patterns::Operation& operation) {
    Entry& entry = *free_.back();
    free_.pop_back();
    entry.key = operation.key;
    entry.traffic = operation.traffic;
    return entry;
  }
  void give(Hook* hook) { free_.push_back(static_cast<Entry*>(hook)); }

 private:
  std::vector<Entry> all_;
  std::vector<Entry*> free_;
};

// How many receives and messages wait at most.
size_t most_waiting(const std::vector<patterns::Operation>& operations) {
  size_t received = 0, sent = 0, most = 0;
  for (const auto& operation : operations) {
    ++(operation.receives ? received : sent);
    most = std::max(most, received + sent - 2 * std::min(received, sent));
  }
  return 2 * most + 2;
}

template <bool timed>
void go(const std::vector<patterns::Operation>& operations, Entries& entries, Queues& queues,
        Result& result, size_t from, size_t to) {
  uint64_t a = 0, b = 0, c = 0;
  for (size_t i = from; i < to; ++i) {
    const patterns::Operation& operation = operations[i];
    Entry& entry = entries.take(operation);
    const int kind = operation.traffic.collective != 0;
    if (operation.receives) {
      const bool searches = queues.unexpected.size() != 0;
      if constexpr (timed) a = tick();
      Message* found = queues.unexpected.find(operation.key, operation.traffic);
      if (found) queues.unexpected.remove(found);
      if constexpr (timed) b = tick();
      if (!found) queues.posted.post(&entry);
      if constexpr (timed) c = tick();
      if (found) entries.give(found), entries.give(&entry);
      if (timed && operation.measured && searches) {
        Cost& cost = result.of[1][kind];
        ++cost.searches;
        cost.ticks += b - a;
      }
      if (timed && operation.measured && !found) {
        Cost& cost = result.of[0][kind];
        ++cost.additions;
        cost.add_ticks += c - b;
      }
    } else {
      const bool searches = queues.posted.size() != 0;
      if constexpr (timed) a = tick();
      Hook* found = queues.posted.match(operation.key, operation.traffic);
      if constexpr (timed) b = tick();
      if (!found) queues.unexpected.add(&entry);
      if constexpr (timed) c = tick();
      if (found) entries.give(found), entries.give(&entry);
      if (timed && operation.measured && searches) {
        Cost& cost = result.of[0][kind];
        ++cost.searches;
        cost.ticks += b - a;
      }
      if (timed && operation.measured && !found) {
        Cost& cost = result.of[1][kind];
        ++cost.additions;
        cost.add_ticks += c - b;
      }
    }
  }
}

Result run(const Options& options, int design, const std::vector<patterns::Operation>& operations,
           Entries& entries, bool timed) {
  Config config = options.config;
  config.design = Design(design);
  config.processes = options.size.processes;
  Queues queues(config);
  Result result;
  size_t first = 0;
  while (first < operations.size() && !operations[first].measured) ++first;
  if (timed) {
    go<true>(operations, entries, queues, result, 0, first);
    queues.posted.counters.of[0] = queues.posted.counters.of[1] = {};
    queues.unexpected.counters.of[0] = queues.unexpected.counters.of[1] = {};
    go<true>(operations, entries, queues, result, first, operations.size());
  } else {
    go<false>(operations, entries, queues, result, 0, first);
    const uint64_t began = now_ns();
    go<false>(operations, entries, queues, result, first, operations.size());
    result.total_ns = double(now_ns() - began);
  }
  if (queues.posted.size() || queues.unexpected.size()) usage("something was not matched");
  result.posted = queues.posted.counters;
  result.unexpected = queues.unexpected.counters;
  for (int kind = 0; kind < 2; ++kind) {
    result.queues[0][kind] = queues.posted.queues(kind);
    result.queues[1][kind] = queues.unexpected.queues(kind);
  }
  result.memory = queues.posted.memory() + queues.unexpected.memory();
  return result;
}

void print(const Options& options, int design, const Result& result, double per_ns, uint64_t empty,
           size_t messages) {
  printf("{\"pattern\": \"%s\", \"processes\": %u, \"bytes\": %" PRIu64
         ", \"kc\": %u, \"kp\": %u, \"threshold\": %u, \"steps\": %u, \"messages\": %zu, "
         "\"design\": \"%s\", \"memory\": %zu, \"total_ns\": %.1f",
         options.pattern.c_str(), options.size.processes, options.size.bytes,
         options.config.collective_cap, options.config.partner_cap, options.config.threshold,
         options.size.steps, messages, names[design], result.memory, result.total_ns);
  for (int queue = 0; queue < 2; ++queue) {
    const Counters& counters = queue ? result.unexpected : result.posted;
    printf(", \"%s\": {\"longest\": %" PRIu64 ", \"overhead_ns\": %" PRIu64,
           queue ? "unexpected" : "posted", counters.longest.get(), counters.overhead_ns.get());
    for (int kind = 0; kind < 2; ++kind) {
      const Cost& cost = result.of[queue][kind];
      const auto ns = [&](uint64_t ticks, uint64_t count) {
        return (double(ticks) - double(empty) * double(count)) / per_ns;
      };
      printf(", \"%s\": {\"entries\": %" PRIu64 ", \"searches\": %" PRIu64
             ", \"traversed\": %" PRIu64 ", \"search_ns\": %.1f, \"add_ns\": %.1f, \"queues\": %u}",
             kind ? "collective" : "point", counters.of[kind].entries.get(), cost.searches,
             counters.of[kind].traversed.get(), ns(cost.ticks, cost.searches),
             ns(cost.add_ticks, cost.additions), result.queues[queue][kind]);
    }
    printf("}");
  }
  printf("}\n");
  fflush(stdout);
}

void run_pattern(const Options& options) {
  patterns::Builder builder(options.size, options.seed);
  if (!patterns::build(options.pattern, options.size, builder)) {
    usage("there is no pattern " + options.pattern);
  }
  const std::vector<patterns::Operation>& operations = builder.operations;
  Entries entries(most_waiting(operations));
  const double per_ns = ticks_per_ns();
  const uint64_t empty = cost_of_tick();
  size_t messages = 0;
  for (const auto& operation : operations) messages += operation.measured && operation.receives;
  std::vector<bool> too_long(designs);
  for (int round = 0; round < options.rounds; ++round) {
    // Each time another one first.
    for (size_t i = 0; i < options.designs.size(); ++i) {
      const int design = options.designs[(i + size_t(round)) % options.designs.size()];
      if (too_long[size_t(design)]) continue;
      const uint64_t began = now_ns();
      Result result = run(options, design, operations, entries, true);
      too_long[size_t(design)] = now_ns() - began > options.most_ms * 1'000'000;
      if (!too_long[size_t(design)]) {
        result.total_ns = run(options, design, operations, entries, false).total_ns;
      }
      print(options, design, result, per_ns, empty, messages);
    }
  }
}

// ---- one source, many tags ----

// A queue of `length` hooks, which can be emptied and filled again.
struct Long {
  Queues queues;
  std::vector<Entry> entries;
  bool posts;

  Long(const Config& config, uint32_t length, bool posts_them)
      : queues(config), entries(length), posts(posts_them) {
    for (uint32_t i = 0; i < length; ++i) entries[i].key = {2, 1, int32_t(i)};
  }
  void fill() {
    for (Entry& entry : entries) {
      if (!entry.queued) posts ? queues.posted.post(&entry) : queues.unexpected.add(&entry);
    }
  }
  void empty() {
    for (Entry& entry : entries) {
      if (entry.queued) posts ? queues.posted.remove(&entry) : queues.unexpected.remove(&entry);
    }
  }
  void take(uint32_t i) {
    Hook* found;
    if (posts) {
      found = queues.posted.match(entries[i].key);
    } else {
      Message* message = queues.unexpected.find(entries[i].key);
      queues.unexpected.remove(message);
      found = message;
    }
    if (found != &entries[i]) usage("the wrong one");
  }
};

void run_length(const Options& options, int design, uint32_t length) {
  Config config = options.config;
  config.design = Design(design);
  config.processes = options.size.processes;
  // Linear designs would take minutes to empty a long queue.
  const bool is_flat = design == int(Design::headway);
  const uint32_t most = is_flat ? length : std::min(length, std::max(8u, 8'000'000 / length));
  for (const bool posts : {true, false}) {
    // So many that the clock costs nothing.
    std::vector<std::unique_ptr<Long>> all;
    for (uint32_t i = 0; i < std::max(1u, 512 / length); ++i) {
      all.push_back(std::make_unique<Long>(config, length, posts));
    }
    for (const char* order_name : {"worst", "random"}) {
      std::vector<uint32_t> order(length);
      for (uint32_t i = 0; i < length; ++i) order[i] = length - 1 - i;
      std::mt19937 random(length);
      if (*order_name == 'r') std::shuffle(order.begin(), order.end(), random);
      order.resize(most);
      std::vector<double> each;
      for (int round = 0; round < options.rounds; ++round) {
        for (auto& one : all) one->empty();
        for (auto& one : all) one->fill();
        const uint64_t began = now_ns();
        for (auto& one : all) {
          for (const uint32_t i : order) one->take(i);
        }
        each.push_back(double(now_ns() - began) / (double(most) * double(all.size())));
      }
      std::sort(each.begin(), each.end());
      printf(
          "{\"length\": %u, \"queue\": \"%s\", \"order\": \"%s\", \"design\": \"%s\", "
          "\"ns\": %.2f, \"least_ns\": %.2f, \"matches\": %u}\n",
          length, posts ? "posted" : "unexpected", order_name, names[design], each[each.size() / 2],
          each[0], most);
      fflush(stdout);
    }
  }
}

// ---- the command line ----

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  for (size_t from = 0; from <= text.size();) {
    const size_t comma = std::min(text.find(',', from), text.size());
    if (comma > from) parts.push_back(text.substr(from, comma - from));
    from = comma + 1;
  }
  return parts;
}

int design_of(const std::string& name) {
  for (int design = 0; design < designs; ++design) {
    if (name == names[design]) return design;
  }
  usage("there is no design " + name +
        "; there are headway, list, source, pnp, col+list, list+pnp, col+pnp");
}

uint64_t number_of(const char* text) {
  char* rest;
  const uint64_t number = strtoull(text, &rest, 10);
  if (*text < '0' || *text > '9' || *rest) usage(std::string("not a number: ") + text);
  return number;
}

Options read(int count, char** words) {
  Options options;
  int at = 1;
  if (at < count) options.what = words[at++];
  if (options.what == "pattern" && at < count) options.pattern = words[at++];
  if (options.what != "length" && options.pattern.empty()) usage("pattern NAME, or length");
  for (; at + 1 < count; at += 2) {
    const std::string name = words[at];
    const char* value = words[at + 1];
    if (name == "--designs") {
      for (const std::string& part : split(value)) options.designs.push_back(design_of(part));
    } else if (name == "--lengths") {
      for (const std::string& part : split(value))
        options.lengths.push_back(uint32_t(number_of(part.c_str())));
    } else if (name == "--processes") {
      options.size.processes = uint32_t(number_of(value));
    } else if (name == "--steps") {
      options.size.steps = uint32_t(number_of(value));
    } else if (name == "--warmup") {
      options.size.warmup = uint32_t(number_of(value));
    } else if (name == "--bytes") {
      options.size.bytes = number_of(value);
    } else if (name == "--rounds") {
      options.rounds = int(number_of(value));
    } else if (name == "--kc") {
      options.config.collective_cap = uint32_t(number_of(value));
    } else if (name == "--kp") {
      options.config.partner_cap = uint32_t(number_of(value));
    } else if (name == "--threshold") {
      options.config.threshold = uint32_t(number_of(value));
    } else if (name == "--seed") {
      options.seed = number_of(value);
    } else if (name == "--most-ms") {
      options.most_ms = number_of(value);
    } else {
      usage("there is no option " + name);
    }
  }
  if (at < count) usage(std::string("a value is missing after ") + words[at]);
  if (options.size.processes < 2) usage("at least two processes");
  if (options.size.steps == 0 || options.rounds == 0) usage("at least one step and one round");
  if (options.designs.empty()) {
    for (int design = 0; design < designs; ++design) options.designs.push_back(design);
  }
  if (options.lengths.empty())
    options.lengths = {1, 2, 4, 8, 16, 64, 256, 1024, 4096, 16384, 65536};
  return options;
}

}  // namespace

int main(int count, char** words) {
  const Options options = read(count, words);
  if (options.what == "pattern") {
    run_pattern(options);
  } else if (options.what == "length") {
    for (const uint32_t length : options.lengths) {
      if (length == 0) usage("a queue has at least one entry");
      for (const int design : options.designs) run_length(options, design, length);
    }
  } else {
    usage("there is no " + options.what);
  }
  return 0;
}
