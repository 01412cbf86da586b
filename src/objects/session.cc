#include "objects/session.h"

#include "base/heap.h"

namespace headway::objects {

void release(Session* session) {
  if (session->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  release(session->errhandler);
  base::heap_free(session, sizeof(Session));
}

}  // namespace headway::objects
