#include "transports/garbage.h"

#include <gtest/gtest.h>

#include "transports/sink_test.h"

namespace headway::transports {
namespace {

class Named final : public Sink {
 public:
  const char* kind_name(uint8_t kind) const override { return kind == 5 ? "grant" : nullptr; }
};

TEST(Garbage, TheStoryNamesKindAndLength) {
  FrameHeader header;
  header.kind = 5;
  header.length = 12;
  EXPECT_STREQ(garbage_story(Named(), header, "it sent nonsense", "; why?").c_str(),
               "it sent nonsense (grant, 12 bytes); why?");
  header.kind = 200;
  EXPECT_STREQ(garbage_story(Named(), header, "it sent nonsense", "").c_str(),
               "it sent nonsense (of kind 200, which there is not, 12 bytes)");
}

}  // namespace
}  // namespace headway::transports
