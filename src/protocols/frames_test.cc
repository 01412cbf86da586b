#include "protocols/frames.h"

#include <gtest/gtest.h>

namespace headway::protocols {
namespace {

constexpr uint32_t in_place = 4;
constexpr uint8_t mine = 40;

struct Mechanism {
  int whole = 0;
  uint64_t landed_bytes = 0;
  uint32_t ended_by = 0;
  bool take(Peer&, const FrameHeader&, const char* body) {
    ++whole;
    return body[0] == 'y';
  }
  void landed(const FrameHeader&, const Landing&, uint64_t arrived) { landed_bytes = arrived; }
  void end(uint32_t peer, const FrameHeader&, const Landing&) { ended_by = peer; }
};

FrameHeader header_of(uint8_t kind, uint32_t length) {
  FrameHeader header;
  header.kind = kind;
  header.length = length;
  return header;
}

TEST(Frames, AFrameComesToItsOwner) {
  Mechanism mechanism;
  Frames frames;
  frames.add(mine, {.name = "mine", .owner = &mechanism, .whole = by<&Mechanism::take>, .most = 4});
  const FrameHeader header = header_of(mine, 1);
  const FrameKind* kind = frames.find(header, 0);
  ASSERT_NE(kind, nullptr);
  // A peer is nothing but handed on here.
  auto& peer = reinterpret_cast<Peer&>(mechanism);
  EXPECT_TRUE(kind->whole(kind->owner, peer, header, "y"));
  EXPECT_FALSE(kind->whole(kind->owner, peer, header, "n"));
  EXPECT_EQ(mechanism.whole, 2);
  EXPECT_EQ(frames.owner_of(mine), &mechanism);
}

TEST(Frames, NobodyTakesWhatAKindCannotBe) {
  Mechanism mechanism;
  Frames frames;
  frames.add(mine, {.name = "mine",
                    .owner = &mechanism,
                    .whole = by<&Mechanism::take>,
                    .needs = in_place,
                    .least = 2,
                    .most = 4});
  EXPECT_EQ(frames.find(header_of(mine, 1), in_place), nullptr);  // too short
  EXPECT_NE(frames.find(header_of(mine, 2), in_place), nullptr);
  EXPECT_NE(frames.find(header_of(mine, 4), in_place | 1), nullptr);
  EXPECT_EQ(frames.find(header_of(mine, 5), in_place), nullptr);  // too long
  EXPECT_EQ(frames.find(header_of(mine, 2), 3), nullptr);         // from one that cannot send it
  for (int kind = 0; kind < 256; ++kind) {
    if (kind == mine) continue;
    EXPECT_EQ(frames.find(header_of(uint8_t(kind), 2), in_place), nullptr) << kind;
  }
}

TEST(Frames, AKindWithoutALengthHasNoBody) {
  Mechanism mechanism;
  Frames frames;
  frames.add(mine, {.name = "mine", .owner = &mechanism, .whole = by<&Mechanism::take>});
  EXPECT_NE(frames.find(header_of(mine, 0), 0), nullptr);
  EXPECT_EQ(frames.find(header_of(mine, 1), 0), nullptr);
}

TEST(Frames, NamesAreForStories) {
  Mechanism mechanism;
  Frames frames;
  frames.add(mine, {.name = "mine", .owner = &mechanism, .whole = by<&Mechanism::take>});
  EXPECT_STREQ(frames.name_of(mine), "mine");
  EXPECT_EQ(frames.name_of(mine + 1), nullptr);
  EXPECT_EQ(frames.name_of(255), nullptr);
}

TEST(Frames, ALanderIsCalledOnItsOwner) {
  static constexpr Lander lander{.landed = by<&Mechanism::landed>, .end = by<&Mechanism::end>};
  Mechanism mechanism;
  const Landing landing{.length = 9, .lander = &lander};
  landing.lander->landed(&mechanism, {}, landing, 7);
  landing.lander->end(&mechanism, 3, {}, landing);
  EXPECT_EQ(mechanism.landed_bytes, 7u);
  EXPECT_EQ(mechanism.ended_by, 3u);
}

}  // namespace
}  // namespace headway::protocols
