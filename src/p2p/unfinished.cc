#include "p2p/unfinished.h"

#include "base/check.h"

namespace headway::p2p {
namespace {

constexpr uint32_t latest_known = 8;

struct Id {
  uint32_t index;
  uint32_t generation;
};

struct Unfinished {
  uint32_t count = 0;
  // Between two that are changed apart: read as one, each would wait for both.
  Id latest[latest_known] = {};
  uint32_t next = 0;  // place in `latest`
  void (*let_go)(protocols::Request*) = nullptr;
};
constinit Unfinished all;  // changed with the engine held

// The mark by which a request is known to be counted.
void let_go_counted(protocols::Request* request) {
  end_unfinished(request);
  request->on_give(request);
}

}  // namespace

uint32_t unfinished() { return all.count; }

const protocols::Request* an_unfinished(protocols::Core& core) {
  for (uint32_t i = 0; i < latest_known; ++i) {
    const Id& id = all.latest[(all.next + i) % latest_known];
    const protocols::Request* request = core.find_request(id.index, id.generation);
    if (id.generation != 0 && request && request->on_give == let_go_counted) return request;
  }
  return nullptr;
}

void begin_unfinished(protocols::Request* request, void (*let_go)(protocols::Request*)) {
  HEADWAY_CHECK(request->on_give != let_go_counted && let_go != let_go_counted);
  all.let_go = let_go;
  request->on_give = let_go_counted;
  all.latest[all.next++ % latest_known] = {request->pool_index, request->generation};
  ++all.count;
}

void end_unfinished(protocols::Request* request) {
  if (request->on_give != let_go_counted) return;
  HEADWAY_CHECK(all.count != 0);
  request->on_give = all.let_go;
  --all.count;
}

}  // namespace headway::p2p
