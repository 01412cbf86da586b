#include "transports/garbage.h"

#include <gtest/gtest.h>

namespace headway::transports {
namespace {

class Deaf final : public Receiver {
 public:
  bool frame(uint32_t, const FrameHeader&, const char*) override { return false; }
  bool begin(uint32_t, const FrameHeader&, Landing&) override { return false; }
  void landed(uint32_t, const FrameHeader&, const Landing&, uint64_t) override {}
  void end(uint32_t, const FrameHeader&, const Landing&) override {}
  bool make_writable(const char*, size_t) override { return false; }
  void sent(uint32_t, uint64_t) override {}
  void unsent(int) override {}
  bool needs(uint32_t) override { return false; }
  void left(uint32_t) override {}
  void lost(uint32_t, Outcome, const char*) override {}
  const char* kind_name(uint8_t kind) const override { return kind == 5 ? "grant" : nullptr; }
};

TEST(Garbage, TheStoryNamesKindAndLength) {
  FrameHeader header;
  header.kind = 5;
  header.length = 12;
  EXPECT_STREQ(garbage_story(Deaf(), header, "it sent nonsense", "; why?").c_str(),
               "it sent nonsense (grant, 12 bytes); why?");
  header.kind = 200;
  EXPECT_STREQ(garbage_story(Deaf(), header, "it sent nonsense", "").c_str(),
               "it sent nonsense (of kind 200, which there is not, 12 bytes)");
}

}  // namespace
}  // namespace headway::transports
