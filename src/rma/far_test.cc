// A target's memory in another process, which a child plays that does nothing but hold it.
#include "rma/far.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <memory>
#include <vector>

#include "protocols/links.h"
#include "rma/carry_out.h"

namespace headway::rma {
namespace {

using datatypes::BasicType;
using datatypes::ReduceOp;

// Its private copy of `numbers` is what is changed; `seen` is what it shows of that when asked.
class FarMemory : public testing::Test {
 protected:
  static constexpr int count = 2000;

  void SetUp() override {
    ASSERT_EQ(node_.create(2, key_, sizeof key_), Outcome::ok);
    bell_made_ = bell_.create() == Outcome::ok;
    ASSERT_TRUE(bell_made_);
    node_.join(0, bell_);
    shared_ = static_cast<Shared*>(
        mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(static_cast<void*>(shared_), MAP_FAILED);
    for (int i = 0; i < count; ++i) numbers_[i] = i;
    child_ = fork();
    ASSERT_GE(child_, 0);
    if (child_ == 0) hold();
    node_.page(1).pid.store(child_);
    while (shared_->is_ready.load() == 0) usleep(100);
    far_ = {1, reinterpret_cast<uintptr_t>(numbers_), sizeof numbers_, &shared_->stripes};
    if (!may_reach(node_, far_)) GTEST_SKIP() << "the system does not allow it here";
  }
  void TearDown() override {
    if (child_ > 0) {
      kill(child_, SIGKILL);
      waitpid(child_, nullptr, 0);
    }
    node_.detach();
    if (bell_made_) bell_.close();
    munmap(shared_, sizeof(Shared));
  }
  [[noreturn]] void hold() {
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    shared_->is_ready.store(1);
    for (uint32_t done = 0;; usleep(100)) {
      const uint32_t asked = shared_->asked.load();
      if (asked == done) continue;
      memcpy(shared_->seen, numbers_, sizeof numbers_);
      shared_->answered.store(done = asked);
    }
  }
  // As the other process sees it.
  const int* seen() {
    const uint32_t asked = ++shared_->asked;
    while (shared_->answered.load() != asked) usleep(100);
    return shared_->seen;
  }

  std::vector<char> body(const std::vector<rma::Run>& runs, const void* data, size_t n) {
    const Head head{0, uint32_t(runs.size()), 0};
    std::vector<char> out(sizeof head + runs.size() * sizeof(rma::Run) + n);
    memcpy(out.data(), &head, sizeof head);
    memcpy(out.data() + sizeof head, runs.data(), runs.size() * sizeof(rma::Run));
    if (n) memcpy(out.data() + out.size() - n, data, n);
    return out;
  }

  struct Shared {
    Stripes stripes;
    std::atomic<uint32_t> is_ready, asked, answered;
    int seen[count];
  };
  Shared* shared_ = nullptr;
  int numbers_[count];
  pid_t child_ = -1;
  char key_[128];
  bool bell_made_ = false;
  base::Doorbell bell_;
  shm::Node node_;
  Far far_{};
};

TEST_F(FarMemory, IsPutAndGot) {
  const int values[] = {-1, -2, -3};
  Places places;
  const std::vector<char> made = body({{8, 4}, {4000, 8}}, values, 12);
  ASSERT_TRUE(places.read(made.data(), uint32_t(made.size())));
  ASSERT_EQ(put(node_, far_, places), Outcome::ok);
  const int* there = seen();
  EXPECT_EQ(there[1], 1);
  EXPECT_EQ(there[2], -1);
  EXPECT_EQ(there[1000], -2);
  EXPECT_EQ(there[1001], -3);
  EXPECT_EQ(numbers_[2], 2);  // ours is another
  int back[3] = {};
  const std::vector<char> asked = body({{8, 4}, {4000, 8}}, nullptr, 0);
  ASSERT_TRUE(places.read(asked.data(), uint32_t(asked.size())));
  ASSERT_EQ(get(node_, far_, places, reinterpret_cast<char*>(back)), Outcome::ok);
  EXPECT_EQ(memcmp(back, values, sizeof back), 0);
}

TEST_F(FarMemory, IsMovedWhole) {
  std::vector<int> fresh(count, 7), back(count);
  ASSERT_EQ(move(node_, far_, 0, {fresh.data(), count * sizeof(int)}, true), Outcome::ok);
  EXPECT_EQ(std::count(seen(), seen() + count, 7), count);
  ASSERT_EQ(move(node_, far_, 0, {back.data(), count * sizeof(int)}, false), Outcome::ok);
  EXPECT_EQ(back, fresh);
}

TEST_F(FarMemory, IsAddedToOverSeveralBlocks) {
  Work sum;
  ASSERT_TRUE(find_work(ReduceOp::sum, BasicType::int_, sum));
  const std::vector<int> tens(900, 10);
  std::vector<int> before(tens.size());
  const std::vector<char> made = body({{2000, 3600}}, tens.data(), 3600);
  Places places;
  ASSERT_TRUE(places.read(made.data(), uint32_t(made.size())));
  ASSERT_EQ(accumulate(node_, far_, places, sum, reinterpret_cast<char*>(before.data())),
            Outcome::ok);
  const int* there = seen();
  for (int i = 0; i < count; ++i) {
    ASSERT_EQ(there[i], i >= 500 && i < 1400 ? i + 10 : i) << i;
  }
  for (int i = 0; i < 900; ++i) ASSERT_EQ(before[size_t(i)], 500 + i);
}

TEST_F(FarMemory, IsSwappedIfItIsAsExpected) {
  Work work;
  ASSERT_TRUE(find_work(ReduceOp::replace, BasicType::int_, work));
  int before = 0;
  for (const int expected : {41, 40}) {
    const int both[] = {expected, 99};
    const std::vector<char> made = body({{160, 4}}, both, 8);
    Places places;
    ASSERT_TRUE(places.read(made.data(), uint32_t(made.size())));
    ASSERT_EQ(swap(node_, far_, places, work, reinterpret_cast<char*>(&before)), Outcome::ok);
    EXPECT_EQ(before, 40);
    EXPECT_EQ(seen()[40], expected == 40 ? 99 : 40);
  }
}

TEST_F(FarMemory, IsMissedWhereThereIsNone) {
  far_.base = 4096;
  int value = 1;
  EXPECT_FALSE(may_reach(node_, far_));
  EXPECT_EQ(move(node_, far_, 0, {&value, sizeof value}, true), Outcome::refused);
}

}  // namespace
}  // namespace headway::rma
