// Requests: all requests of an engine, with their transfers. Thread: holder of the engine. Owner:
// the engine. Invariant: a name that the other side has for one finds it as long as it lives, and
// no other one after it.
#pragma once
#include <cstdint>

#include "base/pool.h"
#include "protocols/beside.h"
#include "protocols/request.h"
#include "protocols/transfer.h"

namespace headway::protocols {

class Requests : public base::Pool<Request> {
 public:
  // By what the other side calls it (id_of); null: none has that name now.
  Request* by_wire_id(uint32_t id) const {
    Request* request = at(id & ((1u << id_index_bits) - 1));
    return request && request->taken && id_of(request) == id ? request : nullptr;
  }
  // The same, if it is of this kind, with that peer and in that stage.
  Request* by_wire_id(uint32_t id, RequestKind kind, const Peer& peer, Stage stage) const {
    Request* request = by_wire_id(id);
    const bool is_meant = request && request->kind == kind && request->peer == &peer;
    return is_meant && request->stage() == stage ? request : nullptr;
  }
  Beside<Transfer, Mark::transfer> transfers{*this};
};

}  // namespace headway::protocols
