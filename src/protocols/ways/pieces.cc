#include "protocols/ways/pieces.h"

#include "base/check.h"
#include "guard/guard.h"
#include "protocols/ways/order.h"

namespace headway::protocols {
using guard::page_bytes;

Stretch stretch(const Request& request, uint64_t at) {
  const uint64_t edges = edges_of(request);
  if (at < request.head) return {at, request.head - at};
  if (at < edges) return {request.total - (edges - at), edges - at};
  if (request.order) [[unlikely]] {
    const Order::Run run = request.order->next();
    return {request.head + run.first * page_bytes, run.pages * page_bytes};
  }
  return {at - request.tail, request.total - at};
}

bool begin_order(Request& request, uint64_t moved) {
  const uint64_t edges = edges_of(request);
  request.order = Order::make((request.total - edges) / page_bytes,
                              moved > edges ? (moved - edges) / page_bytes : 0);
  return request.order != nullptr;
}

void end_order(Request& request) {
  Order::drop(request.order);
  request.order = nullptr;
  request.covered = 0;
}

void note_moved(Request& request, uint64_t offset, uint64_t n) {
  HEADWAY_CHECK(stretch(request, streamed(request)).offset == offset &&
                stretch(request, streamed(request)).length >= n);
  if (request.order && streamed(request) >= edges_of(request)) {
    [[maybe_unused]] const bool taken =
        request.order->take((offset - request.head) / page_bytes, n / page_bytes);
    HEADWAY_CHECK(taken || n < page_bytes);  // less: the copy has failed
  }
  request.moved += n;
}

}  // namespace headway::protocols
