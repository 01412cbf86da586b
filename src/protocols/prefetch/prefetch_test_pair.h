// For tests of prefetching: two engines of one process, connected by TCP, of which one sends from
// memory whose writes are followed. Thread: one, which holds both engines.
#pragma once
#include <sys/mman.h>

#include <cstring>
#include <string>
#include <vector>

#include "base/clock.h"
#include "protocols/engines_test_pair.h"

namespace headway::protocols {

inline constexpr size_t page = 4096;
inline constexpr size_t long_size = 200'000, short_size = 10'000;

// Memory with no other data in its pages, whose writes would count.
template <class T>
struct OwnPages {
  using value_type = T;
  static size_t bytes(size_t n) { return (n * sizeof(T) + page - 1) / page * page; }
  T* allocate(size_t n) {
    return static_cast<T*>(
        mmap(nullptr, bytes(n), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  }
  void deallocate(T* memory, size_t n) { munmap(memory, bytes(n)); }
  bool operator==(const OwnPages&) const { return true; }
};
using Buffer = std::vector<char, OwnPages<char>>;

class Prefetching : public TwoEngines {
 protected:
  void SetUp() override {
    settings::Settings settings[2];
    // The sender's shares its pages with what follows writes to them.
    settings[0].early_release = 1;
    settings[1].early_release = 0;
    settings[0].prefetch = settings[1].prefetch = 1;
    if (receivers_room()) settings[1].prefetch_max = receivers_room();
    change(settings[1]);
    start(settings);
    if (HasFatalFailure()) return;
    if (!sender().presends().is_on() || !sender().release().may_release()) {
      GTEST_SKIP() << "no writes can be followed here";
    }
  }

  // For what comes before its send; 0: the default.
  virtual uint64_t receivers_room() const { return 0; }
  virtual void change(settings::Settings&) {}

  Request* take_for(uint32_t rank, RequestKind kind, Buffer& buffer, int tag) {
    std::vector<char> nothing;
    Request* request = take(rank, kind, nothing, tag);
    request->memory = UserMemory(buffer.data(), buffer.size());
    return request;
  }
  // Writes it anew.
  void fill(Buffer& out) {
    for (size_t at = 0; at < out.size(); at += 7) out[at] = char(random_());
  }
  Request* post(Buffer& in, int tag = 1) {
    return post(take_for(1, RequestKind::receive, in, tag));
  }
  Request* post(Request* receive) {
    receiver().start_receive(receive);
    receiver().note_wait(receive);
    return receive;
  }
  Request* send(Buffer& out, int tag = 1, Mode mode = Mode::standard) {
    Request* request = take_for(0, RequestKind::send, out, tag);
    request->mode = mode;
    sender().start_send(request);
    return request;
  }
  void end(Request* send, Request* receive) {
    ASSERT_TRUE(run_until([&] { return send->done && receive->done; }))
        << "stages " << int(send->stage()) << " and " << int(receive->stage());
    EXPECT_EQ(receive->outcome, Outcome::ok);
    sender().give_request(send);
    receiver().give_request(receive);
  }
  // The message that the receive waits for.
  void complete(Request* receive, Buffer& out, Buffer& in, int tag = 1) {
    end(send(out, tag), receive);
    EXPECT_EQ(out, in);
  }
  // One message, written before its receive waits for it.
  void exchange(Buffer& out, Buffer& in, int tag = 1) {
    fill(out);
    Request* receive = post(in, tag);
    drive(5);  // the request does not come shortly before the send
    complete(receive, out, in, tag);
  }
  // Until the receiver asks, having seen three alike, and the sender follows its buffer, from the
  // first send on that was asked for.
  void learn(Buffer& out, Buffer& in, int tag = 1) {
    const uint64_t before = receiver().counters().prefetches;
    for (int i = 0; i < 6; ++i) exchange(out, in, tag);
    EXPECT_GE(receiver().counters().prefetches - before, 1u);
  }
  // The same of a receiver that comes after its messages, and asks when it has matched one.
  void learn_ahead(Buffer& out, Buffer& in) {
    for (int i = 0; i < 4; ++i) {
      fill(out);
      Request* request = send(out);
      drive(3);
      end(request, post(in));
    }
    EXPECT_EQ(receiver().counters().prefetches, 1u);
  }
  void drive(uint64_t ms) {
    const uint64_t end = base::now_ns() + ms * 1'000'000;
    while (base::now_ns() < end) both();
  }
  // Until so much has come before its send.
  bool comes_early(uint64_t bytes) {
    const uint64_t from = receiver().counters().presend_received_bytes;
    const uint64_t end = base::now_ns() + 5'000'000'000;
    while (receiver().counters().presend_received_bytes - from < bytes) {
      if (base::now_ns() > end) return false;
      both();
    }
    return true;
  }
  // Of what learn() taught: all of the next message before its send. Returns its receive; null:
  // it did not come.
  Request* come_early(Buffer& out, Buffer& in) {
    Request* receive = post(in);
    both();
    fill(out);
    return comes_early(out.size()) ? receive : nullptr;
  }
  // The same, but its receive is taken back: whatever is sent now finds none.
  bool come_early_for_nobody(Buffer& out, Buffer& in) {
    Request* receive = come_early(out, in);
    if (!receive) return false;
    receiver().cancel(receive);
    receiver().give_request(receive);
    return true;
  }
  // What was asked for at the last match: all of it comes before its send, and before its receive.
  void exchange_ahead(Buffer& out, Buffer& in, bool sent_first = false) {
    drive(2);
    fill(out);
    ASSERT_TRUE(comes_early(out.size()));
    const uint64_t before = used();
    Request* request = sent_first ? send(out) : nullptr;
    Request* receive = post(in);
    end(request ? request : send(out), receive);
    EXPECT_EQ(out, in);
    EXPECT_EQ(used() - before, out.size());
  }
  // The same of a block of an MPI_Alltoallv.
  Request* take_block(uint32_t rank, Buffer& buffer, size_t at, size_t size, int tag) {
    const RequestKind kind = rank == 0 ? RequestKind::send : RequestKind::receive;
    Request* request = take_for(rank, kind, buffer, tag);
    request->traffic = {9, 0};
    request->memory = UserMemory(buffer.data() + at, size);
    return request;
  }
  uint64_t used() { return receiver().counters().prefetch_used_bytes; }
  // Everything at random: a writer, receives before and after, other buffers, lengths and modes.
  void everything_at_random() {
    for (uint64_t seed = base_seed(); seed < base_seed() + 20; ++seed) {
      SCOPED_TRACE("HEADWAY_TEST_SEED=" + std::to_string(seed));
      random_.seed(seed);
      Buffer buffers[2] = {Buffer(short_size + random_() % long_size),
                           Buffer(short_size + random_() % long_size)};
      Buffer in(short_size + long_size);
      for (int round = 0; round < 60; ++round) {
        Buffer& out = buffers[random_() % 8 == 0];
        const size_t bytes = random_() % 8 ? out.size() : 1 + random_() % out.size();
        const bool before = random_() % 4;
        Request* receive = before ? post(in) : nullptr;
        const Buffer held = in;
        for (uint64_t n = random_() % 6; n-- > 0;) {
          const size_t from = random_() % out.size(), length = random_() % (out.size() - from) + 1;
          memset(out.data() + from, int(random_()), length);
          if (random_() % 2) drive(random_() % 4);
        }
        Request* request = take_for(0, RequestKind::send, out, 1);
        request->memory = UserMemory(out.data(), bytes);
        request->mode = random_() % 5 ? Mode::standard : Mode::synchronous;
        sender().start_send(request);
        for (uint64_t n = random_() % 50; n-- > 0;) both();
        if (!receive) receive = post(in);
        end(request, receive);
        if (HasFatalFailure()) return;
        ASSERT_EQ(receive->status_bytes(), bytes);
        ASSERT_EQ(0, memcmp(out.data(), in.data(), bytes)) << "round " << round;
        ASSERT_EQ(0, memcmp(held.data() + bytes, in.data() + bytes, in.size() - bytes))
            << "round " << round;
      }
    }
    EXPECT_GT(used(), 0u);
    EXPECT_GT(sender().counters().presend_again_bytes, 0u);
    EXPECT_EQ(sender().counters().garbage + receiver().counters().garbage, 0u);
  }
};

}  // namespace headway::protocols
