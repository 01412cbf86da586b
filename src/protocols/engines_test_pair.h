// For tests: two engines of one process, connected by TCP over the loopback device; engine 0 sends,
// engine 1 receives. Thread: one, which holds both engines. A fatal error fails the test.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/clock.h"
#include "protocols/engine.h"
#include "transports/tcp/tcp.h"

namespace headway::protocols {

class TwoEngines : public ::testing::Test {
 protected:
  void start(const settings::Settings (&settings)[2]) {
    story().clear();
    for (uint32_t i = 0; i < 2; ++i) {
      engines_[i] = std::make_unique<Engine>();
      Engine& engine = *engines_[i];
      ASSERT_EQ(engine.prepare(settings[i], i, 2, on_fatal), Outcome::ok);
      tcp::Config config;
      config.rank = i;
      config.size = 2;
      config.interface = "lo";
      ASSERT_EQ(links_[i].start(config, &engine), Outcome::ok) << links_[i].explanation();
    }
    for (uint32_t i = 0; i < 2; ++i) {
      char card[1024];
      ASSERT_NE(links_[1 - i].card(card, sizeof card), 0u);
      ASSERT_EQ(links_[i].set_card(1 - i, card), Outcome::ok);
      ASSERT_EQ(engines_[i]->use(links_[i]), Outcome::ok);
      engines_[i]->handoff().enter();
    }
    entered_ = true;
  }
  void TearDown() override {
    for (uint32_t i = 0; i < 2; ++i) {
      if (!entered_) continue;
      const auto& engine = engines_[i];
      links_[i].abandon();
      engine->handoff().leave();
      engine->handoff().stop();
      engine->stop_guard();
    }
    EXPECT_EQ(story(), "");
  }

  Engine& sender() const { return *engines_[0]; }
  Engine& receiver() const { return *engines_[1]; }

  Request* take(uint32_t rank, RequestKind kind, std::vector<char>& buffer, int tag) {
    Request* request = engines_[rank]->take_request();
    request->kind = kind;
    request->mode = Mode::standard;
    request->held_by_user = true;
    request->memory = UserMemory(buffer.data(), buffer.size());
    request->key = {2, 0, tag};
    request->peer = engines_[rank]->peer(1 - rank);
    return request;
  }
  void both() {
    const uint64_t now = base::now_ns();
    if (served_at_) longest_gap_ = std::max(longest_gap_, now - served_at_);
    served_at_ = now;
    receiver().advance();
    sender().advance();
  }
  // Between two looks, ns: somebody else had the core for so long, or the test did other things.
  uint64_t longest_gap() const { return longest_gap_; }
  // False if it does not become true in a million rounds.
  template <typename Is>
  bool run_until(Is is) {
    for (int round = 0; round < 1'000'000; ++round) {
      if (is()) return true;
      both();
    }
    return false;
  }

  static uint64_t base_seed() {
    const char* given = getenv("HEADWAY_TEST_SEED");
    return given ? strtoull(given, nullptr, 0) : 1;
  }

  std::mt19937_64 random_{base_seed()};
  std::unique_ptr<Engine> engines_[2];
  tcp::Tcp links_[2];

 private:
  static std::string& story() {
    static std::string text;
    return text;
  }
  static void on_fatal(Outcome, uint32_t, const char* what) { story() += what; }

  bool entered_ = false;
  uint64_t served_at_ = 0, longest_gap_ = 0;
};

}  // namespace headway::protocols
