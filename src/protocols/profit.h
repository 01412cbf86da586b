// Profit: which buffers are worth an early release. What a release won is the time that its pages
// were closed without anybody waiting for one; what it cost is closing them. Thread: holder of the
// engine. Owner: the engine. Invariant: bounded; buffers that share a place forget each other.
// Source: rule 9 of the design's early release.
#pragma once
#include <cstdint>

namespace headway::protocols {

class Profit {
 public:
  // Where a buffer's record stands, never 0. `bytes`: of the message.
  static uint32_t place_of(const void* buffer, uint64_t bytes) {
    const uint64_t key =
        (reinterpret_cast<uint64_t>(buffer) >> 4) * 31 + 64 - __builtin_clzl(bytes | 1);
    return uint32_t(key * 0x9e3779b97f4a7c15ull >> 40) % places + 1;
  }

  // False: the last releases of that buffer won nothing. Now and then it is tried again.
  bool is_worth(uint32_t place) {
    Record& record = records_[place];
    if (record.in_vain < give_up_after) return true;
    if (++record.passed < record.try_after) return false;
    record.passed = 0;
    return true;
  }

  // A release of that buffer has ended.
  void learn(uint32_t place, uint64_t hidden_ns, uint64_t cost_ns) {
    Record& record = records_[place];
    if (hidden_ns > 2 * cost_ns) {
      record.in_vain = 0;
      record.try_after = first_try;
      return;
    }
    if (record.in_vain < give_up_after) {
      if (++record.in_vain == give_up_after) ++given_up;
    } else if (record.try_after < last_try) {
      record.try_after = uint16_t(2 * record.try_after);
    }
  }

  uint64_t given_up = 0;  // times that a buffer was found to be not worth it

 private:
  static constexpr uint32_t places = 1024;
  static constexpr uint8_t give_up_after = 3;
  static constexpr uint16_t first_try = 32, last_try = 1024;

  struct Record {
    uint16_t passed = 0;
    uint16_t try_after = first_try;
    uint8_t in_vain = 0;  // releases, one after the other
  };
  Record records_[places + 1];
};

}  // namespace headway::protocols
