// A thread that waits spares a slow link; before it does anything else, the link is given the rest.
#include "protocols/ways/spare_test_link.h"
#include "waiting/waiter.h"

namespace headway::waiting {
namespace {

struct Seen : progress::UserCall {
  protocols::SlowLink* link;
  uint64_t data = 0;
};

class WaiterOfASlowLink : public protocols::OneSlowLink {};

TEST_F(WaiterOfASlowLink, AUsersFunctionDoesNotHoldUpTheRest) {
  base::Whereabouts where;
  Waiter waiter(engine_, Policy{}, where);
  engine_.handoff().driver = progress::Driver::waiting;
  is_cleared();
  ASSERT_LT(link_.data, bytes);
  Seen call;
  call.link = &link_;
  call.run = [](progress::UserCall* made) {
    Seen& seen = *static_cast<Seen*>(made);
    seen.data = seen.link->data;
    seen.link->on_the_way = seen.link->bytes_a_us = 0;  // so that the wait ends, whatever was seen
  };
  call.finished = [](progress::UserCall*) {};
  engine_.handoff().user_calls.push_back(&call);
  waiter.request(send_);
  EXPECT_EQ(call.data, bytes);
}

}  // namespace
}  // namespace headway::waiting
