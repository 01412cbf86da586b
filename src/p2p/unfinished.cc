#include "p2p/unfinished.h"

#include "base/check.h"

namespace headway::p2p {
namespace {

constexpr uint32_t latest_known = 8;

struct Unfinished {
  uint32_t count = 0;
  // By their numbers alone: with its generation, which has just been written by itself, a number
  // would be read as one word, and that would wait until both have left the processor.
  uint32_t latest[latest_known] = {};
  uint32_t next = 0;  // place in `latest`
  void (*let_go)(protocols::Request*) = nullptr;
};
constinit Unfinished all;  // changed with the engine held

// The marks by which a request is known to be counted: of one that keeps something alive, and of
// one that does not.
void let_go_counted(protocols::Request* request) {
  end_unfinished(request);
  request->on_give(request);
}
void end_counted(protocols::Request* request) { end_unfinished(request); }

bool is_counted(const protocols::Request& request) {
  return request.on_give == end_counted || request.on_give == let_go_counted;
}

}  // namespace

uint32_t unfinished() { return all.count; }

const protocols::Request* an_unfinished(protocols::Core& core) {
  for (uint32_t i = 0; i < latest_known; ++i) {
    const protocols::Request* request =
        core.requests().at(all.latest[(all.next + i) % latest_known]);
    if (request && is_counted(*request)) return request;
  }
  return nullptr;
}

void begin_unfinished(protocols::Request* request, void (*let_go)(protocols::Request*)) {
  HEADWAY_CHECK(!is_counted(*request) && let_go != let_go_counted && let_go != end_counted);
  if (let_go) all.let_go = let_go;
  request->on_give = let_go ? let_go_counted : end_counted;
  all.latest[all.next++ % latest_known] = request->pool_index;
  ++all.count;
}

void end_unfinished(protocols::Request* request) {
  if (!is_counted(*request)) return;
  HEADWAY_CHECK(all.count != 0);
  request->on_give = request->on_give == let_go_counted ? all.let_go : nullptr;
  --all.count;
}

}  // namespace headway::p2p
