// Beside: what only some requests have, in tables beside their pool: a row for each request, behind
// the requests of its slab, so that it is found by a request's address and number. Thread: holder
// of the engine. Owner: whose state it is. Invariants: a row is its request's from begin() until
// its mark goes, at the latest with Core::complete(); no memory is taken for one, and those that
// no request had lie in pages that nobody has touched.
#pragma once
#include <cstdint>
#include <new>
#include <type_traits>

#include "base/check.h"
#include "base/pool.h"
#include "protocols/request.h"

namespace headway::protocols {

template <class Row, Mark mark>
class Beside {
  static_assert(std::is_trivially_destructible_v<Row>);

 public:
  // Before the first request is taken.
  explicit Beside(base::Pool<Request>& requests) : at_(requests.reserve(sizeof(Row))) {}

  // A row for that request, as new.
  Row& begin(Request& request, const Row& row = Row{}) const {
    HEADWAY_CHECK(request.taken && !request.has(mark));
    request.set(mark);
    return *new (place(request)) Row(row);
  }
  Row& operator[](const Request& request) const {
    HEADWAY_CHECK(request.has(mark));
    return *std::launder(static_cast<Row*>(place(request)));
  }
  // The one that it has, else a new one.
  Row& of(Request& request) const { return request.has(mark) ? (*this)[request] : begin(request); }
  // Null: it has none.
  Row* find(const Request& request) const {
    return request.has(mark) ? &(*this)[request] : nullptr;
  }

 private:
  void* place(const Request& request) const {
    return base::Pool<Request>::beside(request, at_, sizeof(Row));
  }

  const size_t at_;
};

}  // namespace headway::protocols
