// What is counted as started and not completed, and that it lets go what it keeps, once.
#include "p2p/unfinished.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace headway::p2p {
namespace {

using protocols::Request;

constinit int let_go_calls = 0;
void let_go(Request*) { ++let_go_calls; }

// What the pool does when it gets one back.
void give(Request& request) {
  if (request.on_give) request.on_give(&request);
  request.on_give = nullptr;
}

TEST(Unfinished, IsCountedOnceWhetherItKeepsAnythingOrNot) {
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 draw(seed);
  std::vector<Request> requests(20);
  std::vector<int> states(requests.size());  // 0: with the pool, 1: counted, 2: completed
  std::vector<bool> keeps(requests.size());
  uint32_t counted = 0;
  int gone = 0;
  let_go_calls = 0;
  for (int step = 0; step < 4000; ++step) {
    const size_t i = draw() % requests.size();
    Request& request = requests[i];
    if (states[i] == 0) {
      keeps[i] = draw() % 2 != 0;
      begin_unfinished(&request, keeps[i] ? let_go : nullptr);
      states[i] = 1;
      ++counted;
    } else if (states[i] == 1 && draw() % 2 != 0) {
      end_unfinished(&request);
      states[i] = 2;
      --counted;
    } else {
      if (states[i] == 2) end_unfinished(&request);  // any may be passed, and it is no end
      give(request);                                 // one that is still counted, too
      counted -= states[i] == 1;
      gone += keeps[i];
      states[i] = 0;
    }
    ASSERT_EQ(unfinished(), counted);
    ASSERT_EQ(let_go_calls, gone);
  }
  for (size_t i = 0; i < requests.size(); ++i) {
    if (states[i]) give(requests[i]);
  }
  EXPECT_EQ(unfinished(), 0u);
}

}  // namespace
}  // namespace headway::p2p
