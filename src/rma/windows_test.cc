// Frames about windows, given to an engine by hand: right ones are carried out and answered, all
// others are garbage, counted, and change nothing.
#include "rma/windows.h"

#include <gtest/gtest.h>

#include <cstring>
#include <new>
#include <vector>

#include "base/heap.h"
#include "protocols/engine.h"

namespace headway::rma {
namespace {

using datatypes::BasicType;
using datatypes::ReduceOp;

// Keeps what is sent.
class Keeper final : public transports::Transport {
 public:
  struct Frame {
    FrameHeader header;
    std::vector<char> body;
  };
  std::vector<Frame> sent;

  uint32_t caps() const override { return 0; }
  Outcome connect(uint32_t, uint32_t& frame_max) override {
    frame_max = 64 << 10;
    return Outcome::ok;
  }
  Push push(uint32_t, const FrameHeader& header, const void* head, uint32_t n, const Feed* feed,
            uint64_t, transports::Urgency) override {
    Frame frame{header, std::vector<char>(header.length)};
    if (n) memcpy(frame.body.data(), head, n);
    if (feed) feed->copy(0, frame.body.data() + n, feed->length);
    sent.push_back(frame);
    return Push::done;
  }
  bool writable(uint32_t) const override { return true; }
  bool reap(uint64_t) override { return false; }
  bool reap_peer(uint32_t, uint64_t) override { return false; }
};

// Rank 0 of two, with a window of 64 bytes; rank 1 is played.
class WindowFrames : public testing::Test {
 protected:
  void SetUp() override {
    settings::Settings settings;
    settings.early_release = settings.progress = settings.prefetch = 0;
    ASSERT_EQ(engine_.prepare(settings, 0, 2, [](Outcome, uint32_t, const char*) {}), Outcome::ok);
    start(engine_, false);
    ASSERT_EQ(engine_.use(transport_), Outcome::ok);
    objects::Group* group = objects::Group::make(2);
    group->members[0] = 0;
    group->members[1] = 1;
    group->find_self(0);
    comm_ = objects::make_comm(2, group, &fatal_);
    group->release();
    ASSERT_NE(comm_, nullptr);
    window_.comm = comm_;
    ASSERT_TRUE(window_.targets.resize(2) && window_.locks.prepare(2));
    for (uint32_t rank = 0; rank < 2; ++rank) {
      window_.targets[rank].window = &window_;
      window_.targets[rank].rank = rank;
    }
    window_.targets[1].id = 77;
    window_.own = {memory_, sizeof memory_, nullptr, nullptr};
    engine_.handoff().enter();
    ASSERT_TRUE(windows().add(window_));
  }
  void TearDown() override {
    windows().remove(window_);
    engine_.handoff().leave();
    engine_.handoff().stop();
    engine_.stop_guard();
    objects::release(comm_);
  }

  FrameHeader header_of(Kind kind) const {
    FrameHeader header;
    header.kind = uint8_t(kind);
    header.source = 1;
    header.word = window_.id;
    return header;
  }
  static std::vector<char> body_of(const Head& head, const std::vector<rma::Run>& runs,
                                   const std::vector<char>& data = {}) {
    std::vector<char> body(sizeof head + runs.size() * sizeof(rma::Run));
    memcpy(body.data(), &head, sizeof head);
    memcpy(body.data() + sizeof head, runs.data(), runs.size() * sizeof(rma::Run));
    body.insert(body.end(), data.begin(), data.end());
    return body;
  }
  bool give(FrameHeader header, const std::vector<char>& body = {}) {
    header.length = uint32_t(body.size());
    return engine_.frame(1, header, body.data());
  }
  // Garbage, and nothing has changed.
  void refuse(const FrameHeader& header, const std::vector<char>& body = {}) {
    const uint64_t before = engine_.counters().garbage;
    const size_t answers = transport_.sent.size();
    EXPECT_FALSE(give(header, body));
    EXPECT_EQ(uint64_t(engine_.counters().garbage), before + 1);
    EXPECT_EQ(transport_.sent.size(), answers);
    for (const char byte : memory_) EXPECT_EQ(byte, 0);
  }
  Keeper::Frame last() const {
    return transport_.sent.empty() ? Keeper::Frame{} : transport_.sent.back();
  }

  char memory_[64] = {};
  objects::Errhandler fatal_;
  protocols::Engine engine_;
  Keeper transport_;
  objects::Comm* comm_ = nullptr;
  Window window_;
};

TEST_F(WindowFrames, ArePutAndAnsweredForByAFlush) {
  const std::vector<char> body = body_of({0, 1, 0}, {{8, 4}}, {'a', 'b', 'c', 'd'});
  ASSERT_TRUE(give(header_of(Kind::put), body));
  ASSERT_TRUE(give(header_of(Kind::put), body));
  EXPECT_EQ(memcmp(memory_ + 8, "abcd", 4), 0);
  EXPECT_TRUE(transport_.sent.empty());
  FrameHeader flush = header_of(Kind::flush);
  flush.context = 2;
  ASSERT_TRUE(give(flush));
  ASSERT_EQ(transport_.sent.size(), 1u);
  EXPECT_EQ(Kind(last().header.kind), Kind::flushed);
  EXPECT_EQ(last().header.context, 2u);
  EXPECT_EQ(last().header.word, 77u);
  EXPECT_EQ(last().header.flags & flag_refused, 0);
}

TEST_F(WindowFrames, AreGotWithAnAnswer) {
  memcpy(memory_ + 20, "wxyz", 4);
  FrameHeader header = header_of(Kind::get);
  header.flags = flag_answer;
  ASSERT_TRUE(give(header, body_of({55, 2, 16}, {{22, 2}, {20, 2}})));
  ASSERT_EQ(transport_.sent.size(), 1u);
  EXPECT_EQ(Kind(last().header.kind), Kind::answer);
  EXPECT_EQ(last().header.word, 55u);
  EXPECT_EQ(last().header.context, 16u);
  EXPECT_EQ(last().body, std::vector<char>({'y', 'z', 'w', 'x'}));
  memset(memory_, 0, sizeof memory_);
}

TEST_F(WindowFrames, OfNoWindowOrNoRankOfItAreGarbage) {
  const std::vector<char> body = body_of({0, 1, 0}, {{8, 4}}, {'a', 'b', 'c', 'd'});
  FrameHeader header = header_of(Kind::put);
  for (const uint32_t word : {0u, window_.id + 1, window_.id + (1u << 16), ~0u}) {
    header.word = word;
    refuse(header, body);
  }
  header = header_of(Kind::put);
  for (const int32_t source : {0, -1, 2, INT32_MAX, INT32_MIN}) {
    header.source = source;
    refuse(header, body);
  }
}

TEST_F(WindowFrames, OfPlacesThatNobodyNamesAreGarbage) {
  const std::vector<char> four = {'a', 'b', 'c', 'd'};
  const FrameHeader header = header_of(Kind::put);
  for (const int64_t at : {int64_t(61), int64_t(64), int64_t(-1), INT64_MAX, INT64_MIN}) {
    refuse(header, body_of({0, 1, 0}, {{at, 4}}, four));
  }
  refuse(header, body_of({0, 1, 0}, {{0, 5}}, four));  // less data
  refuse(header, body_of({0, 1, 0}, {{0, 3}}, four));  // more data
  refuse(header, body_of({0, 0, 0}, {{0, 4}}, four));  // no runs
  refuse(header, body_of({0, 2, 0}, {{0, 4}}, four));  // more runs
  refuse(header, body_of({0, ~0u, 0}, {{0, 4}}, four));
  refuse(header, body_of({0, 1, 0}, {{0, uint64_t(1) << 63}}, four));
  refuse(header_of(Kind::get), body_of({0, 1, 0}, {{0, 4}}, four));  // data for a get
}

TEST_F(WindowFrames, OfUnknownWorkAreGarbage) {
  FrameHeader header = header_of(Kind::accumulate);
  const std::vector<char> body = body_of({0, 1, 0}, {{0, 4}}, {1, 0, 0, 0});
  for (const int32_t tag : {0, -1, int32_t(ReduceOp::sum), 15 | int32_t(BasicType::int_) << 8,
                            int32_t(ReduceOp::band) | int32_t(BasicType::float_) << 8,
                            int32_t(ReduceOp::sum) | 1000 << 8}) {
    header.tag = tag;
    refuse(header, body);
  }
  // Elements are whole.
  header.tag = int32_t(ReduceOp::sum) | int32_t(BasicType::int64_t) << 8;
  refuse(header, body);
  header.tag = int32_t(ReduceOp::sum) | int32_t(BasicType::int_) << 8;
  ASSERT_TRUE(give(header, body));
  EXPECT_EQ(memory_[0], 1);
}

TEST_F(WindowFrames, ThatWereNotAskedForAreGarbage) {
  FrameHeader header = header_of(Kind::answer);
  header.sequence = 4;
  refuse(header, {1, 2, 3, 4});
  header = header_of(Kind::flushed);
  header.context = 1;  // nothing was sent
  refuse(header);
  refuse(header_of(Kind::locked));
  refuse(header_of(Kind::unlock));
  header = header_of(Kind::flush);
  header.context = 1;  // nothing came
  refuse(header);
}

TEST_F(WindowFrames, NamesAreNeverNobodysAlsoAfterMany) {
  uint32_t before = 0;
  for (int turn = 0; turn < 140'000; ++turn) {
    windows().remove(window_);  // it had the first place
    ASSERT_TRUE(windows().add(window_));
    ASSERT_NE(window_.id, 0u);
    ASSERT_NE(window_.id, before);
    before = window_.id;
  }
  EXPECT_EQ(windows().count(), 1u);
}

TEST_F(WindowFrames, LockInTurn) {
  FrameHeader header = header_of(Kind::lock);
  header.flags = flag_exclusive;
  ASSERT_TRUE(give(header));
  EXPECT_EQ(Kind(last().header.kind), Kind::locked);
  refuse(header);  // twice
  ASSERT_TRUE(give(header_of(Kind::unlock)));
  refuse(header_of(Kind::unlock));
}

}  // namespace
}  // namespace headway::rma
