#include "protocols/ways/pieces.h"

#include "base/check.h"
#include "guard/guard.h"
#include "protocols/ways/order.h"

namespace headway::protocols {
using guard::page_bytes;

Stretch stretch(const Transfer& transfer, uint64_t at) {
  const uint64_t edges = edges_of(transfer);
  if (at < transfer.head) return {at, transfer.head - at};
  if (at < edges) return {transfer.total - (edges - at), edges - at};
  if (transfer.order) [[unlikely]] {
    const Order::Run run = transfer.order->next();
    return {transfer.head + run.first * page_bytes, run.pages * page_bytes};
  }
  return {at - transfer.tail, transfer.total - at};
}

bool begin_order(Transfer& transfer, uint64_t moved) {
  const uint64_t edges = edges_of(transfer);
  transfer.order = Order::make((transfer.total - edges) / page_bytes,
                               moved > edges ? (moved - edges) / page_bytes : 0);
  return transfer.order != nullptr;
}

void end_order(Transfer& transfer) {
  Order::drop(transfer.order);
  transfer.order = nullptr;
  transfer.covered = 0;
}

void note_moved(Transfer& transfer, uint64_t offset, uint64_t n) {
  HEADWAY_CHECK(stretch(transfer, streamed(transfer)).offset == offset &&
                stretch(transfer, streamed(transfer)).length >= n);
  if (transfer.order && streamed(transfer) >= edges_of(transfer)) {
    [[maybe_unused]] const bool taken =
        transfer.order->take((offset - transfer.head) / page_bytes, n / page_bytes);
    HEADWAY_CHECK(taken || n < page_bytes);  // less: the copy has failed
  }
  transfer.moved += n;
}

}  // namespace headway::protocols
