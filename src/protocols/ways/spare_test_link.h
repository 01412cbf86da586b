// For tests of sparing: one engine whose only peer lies behind a slow link, which takes all that it
// is given. Both have a message of 1 MB for the other. Thread: one, which holds the engine.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <vector>

#include "protocols/engine.h"

namespace headway::protocols {

inline constexpr uint64_t bytes_a_us = 100;
inline constexpr uint64_t short_bytes = 16 << 10, frame_bytes = 64 << 10;

// Takes all that it is given.
class SlowLink final : public transports::Transport {
 public:
  Kind last = Kind::data;
  std::atomic<uint64_t> data{0}, on_the_way{0};
  uint64_t bytes_a_us = protocols::bytes_a_us;

  uint32_t caps() const override { return transports::in_place; }
  Outcome connect(uint32_t, uint32_t& frame_max) override {
    frame_max = frame_bytes;
    return Outcome::ok;
  }
  Push push(uint32_t, const FrameHeader& header, const void*, uint32_t, const Feed*, uint64_t,
            transports::Urgency) override {
    last = Kind(header.kind);
    if (last == Kind::data) data += header.length;
    on_the_way += header.length;
    return Push::done;
  }
  bool writable(uint32_t) const override { return true; }
  bool reap(uint64_t) override { return false; }
  bool reap_peer(uint32_t, uint64_t) override { return false; }
  uint64_t rate(uint32_t) const override { return bytes_a_us * 1'000'000; }
  uint64_t enough(uint32_t, uint64_t us, uint64_t fastest) const override {
    return bytes_a_us * 1'000'000 > fastest ? 0 : us * bytes_a_us;
  }
  uint64_t in_flight(uint32_t) const override { return on_the_way; }
};

class OneSlowLink : public testing::Test {
 protected:
  using Wish = protocols::Spare::Wish;
  explicit OneSlowLink(bool with_thread = false, Wish wish = Wish::automatic)
      : with_thread_(with_thread), wish_(wish) {}
  static constexpr uint64_t bytes = 1 << 20;

  void SetUp() override {
    settings::Settings settings;
    settings.early_release = settings.prefetch = 0;
    settings.progress = with_thread_;
    settings.spare = uint64_t(wish_);
    ASSERT_EQ(engine_.prepare(settings, 0, 2, [](Outcome, uint32_t, const char*) {}), Outcome::ok);
    ASSERT_EQ(engine_.use(link_), Outcome::ok);
    engine_.handoff().enter();
    in_.assign(bytes, 'i');
    out_.assign(bytes, 'o');
    receive_ = start(RequestKind::receive, in_);
    send_ = start(RequestKind::send, out_);
  }
  void TearDown() override {
    EXPECT_EQ(link_.data, bytes);
    EXPECT_TRUE(send_->done.load());
    engine_.give_request(send_);
    engine_.handoff().leave();
    engine_.handoff().stop();
  }

  Request* start(RequestKind kind, std::vector<char>& buffer) {
    Request* request = engine_.take_request();
    request->kind = kind;
    request->mode = Mode::standard;
    request->held_by_user = true;
    request->memory = UserMemory(buffer.data(), buffer.size());
    request->key = {2, kind == RequestKind::send ? 0 : 1, 7};
    request->peer = engine_.peer(1);
    kind == RequestKind::send ? void(engine_.start_send(request)) : engine_.start_receive(request);
    return request;
  }
  // Another message for it; the last one is over.
  void start_next() {
    ASSERT_TRUE(send_->done.load());
    engine_.give_request(send_);
    link_.data = link_.on_the_way = 0;
    // It may have had no core for a while.
    engine_.peer(1)->flow.spared_at = engine_.peer(1)->flow.dry_until = 0;
    send_ = start(RequestKind::send, out_);
  }
  // The other rank asks for the message; and it has one, too.
  void is_cleared() { is_cleared(send_); }
  void is_cleared(const Request* send) {
    FrameHeader header;
    header.kind = uint8_t(Kind::clear_send);
    header.word = id_of(send);
    ClearSend clear{};
    clear.length = bytes;
    clear.way = Way::stream;
    header.length = sizeof clear;
    ASSERT_TRUE(engine_.frame(1, header, reinterpret_cast<const char*>(&clear)));
    ASSERT_EQ(engine_.counters().garbage, 0u);
  }
  void is_announced() {
    FrameHeader header;
    header.kind = uint8_t(Kind::request_send);
    header.context = 2;
    header.source = 1;
    header.tag = 7;
    const RequestSend announced{bytes, 0, 0, 0, 0, 0};
    header.length = sizeof announced;
    ASSERT_TRUE(engine_.frame(1, header, reinterpret_cast<const char*>(&announced)));
    ASSERT_EQ(int(link_.last), int(Kind::clear_send));
  }
  // And all of it comes.
  void has_come() {
    FrameHeader header;
    header.kind = uint8_t(Kind::data);
    header.word = id_of(receive_);
    header.length = frame_bytes;
    for (header.context = 0; header.context < bytes; header.context += frame_bytes) {
      ASSERT_TRUE(engine_.frame(1, header, out_.data()));
    }
    ASSERT_TRUE(receive_->done.load());
  }
  void look(progress::Driver as) {
    engine_.handoff().driver = as;
    for (int i = 0; i < 10; ++i) engine_.advance();
  }

  static constexpr uint64_t watched = 250 * bytes_a_us, alone = 3000 * bytes_a_us;

  const bool with_thread_;
  const Wish wish_;
  Engine engine_;
  SlowLink link_;
  std::vector<char> in_, out_;
  Request *send_ = nullptr, *receive_ = nullptr;
};

}  // namespace headway::protocols
