// Sink: a Receiver of tests that swallows whatever it gets. Thread: that of its test. Owner: the
// test. Invariant: wants no byte, and is told of nothing.
#pragma once
#include "transports/transport.h"

namespace headway::transports {

class Sink : public Receiver {
 public:
  bool frame(uint32_t, const FrameHeader&, const char*) override { return true; }
  bool begin(uint32_t, const FrameHeader&, Landing&) override { return true; }
  void landed(uint32_t, const FrameHeader&, const Landing&, uint64_t) override {}
  void end(uint32_t, const FrameHeader&, const Landing&) override {}
  bool make_writable(const char*, size_t) override { return false; }
  void sent(uint32_t, uint64_t) override {}
  void unsent(int) override {}
  bool needs(uint32_t) override { return false; }
  void left(uint32_t) override {}
  void lost(uint32_t, Outcome, const char*) override {}
};

}  // namespace headway::transports
