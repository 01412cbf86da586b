// Who watches whom, with ranks played by children that end.
#include "runtime/deaths.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <vector>

namespace headway::runtime {
namespace {

constexpr int soon_ms = 10'000;

// A process that ends when told.
class Child {
 public:
  Child() : pid_(fork()) {
    if (pid_ != 0) return;
    alarm(60);  // should this process end before it
    for (;;) pause();
  }
  ~Child() { reap(); }
  int pid() const { return pid_; }
  // Afterwards the system knows no process of that number.
  void reap() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

 private:
  pid_t pid_;
};

// This process is rank 0 of the node, its children are the others.
struct House {
  explicit House(uint32_t ranks) : children(ranks - 1) {
    EXPECT_EQ(bell.create(), Outcome::ok);
    EXPECT_EQ(node.create(ranks, key, sizeof key), Outcome::ok);
    node.join(0, bell);
    for (uint32_t i = 1; i < ranks; ++i) {
      children[i - 1] = std::make_unique<Child>();
      node.page(i).pid.store(children[i - 1]->pid(), std::memory_order_relaxed);
    }
  }
  ~House() {
    deaths.stop();
    node.detach();
    bell.close();
  }
  void end(uint32_t rank, bool says_goodbye) {
    if (says_goodbye) node.page(rank).left.store(1, std::memory_order_relaxed);
    children[rank - 1]->reap();
  }
  bool is_told(int within_ms) {
    pollfd entry{deaths.descriptor(), POLLIN, 0};
    return poll(&entry, 1, within_ms) == 1;
  }
  char key[128];
  base::Doorbell bell;
  shm::Node node;
  std::vector<std::unique_ptr<Child>> children;
  Deaths deaths;
};

TEST(Deaths, NobodyHasEnded) {
  House house(3);
  ASSERT_TRUE(house.deaths.start(house.node));
  EXPECT_FALSE(house.is_told(0));
  EXPECT_EQ(house.deaths.next(house.node), Deaths::nobody);
}

TEST(Deaths, AnEndWithoutGoodbyeIsTold) {
  House house(3);
  ASSERT_TRUE(house.deaths.start(house.node));
  house.end(2, false);
  EXPECT_TRUE(house.is_told(soon_ms));
  EXPECT_EQ(house.deaths.next(house.node), 2u);
  EXPECT_EQ(house.deaths.next(house.node), 2u) << "until enough was told";
  house.deaths.forget(2);
  EXPECT_FALSE(house.is_told(0));
}

TEST(Deaths, AnEndAfterAGoodbyeIsNoDeath) {
  House house(3);
  ASSERT_TRUE(house.deaths.start(house.node));
  house.end(1, true);
  EXPECT_TRUE(house.is_told(soon_ms));
  EXPECT_EQ(house.deaths.next(house.node), Deaths::nobody);
  EXPECT_FALSE(house.is_told(0)) << "the descriptor stays readable";
}

// A rank that was slow to begin looks at neighbours that have done all their work meanwhile.
TEST(Deaths, WhoWasGoneBeforeTheFirstLookAndSaidGoodbyeIsNoDeath) {
  House house(3);
  house.end(1, true);
  ASSERT_TRUE(house.deaths.start(house.node));
  EXPECT_EQ(house.deaths.next(house.node), Deaths::nobody);
  house.end(2, true);
  EXPECT_TRUE(house.is_told(soon_ms));
  EXPECT_EQ(house.deaths.next(house.node), Deaths::nobody);
  EXPECT_FALSE(house.is_told(0));
}

TEST(Deaths, WhoWasGoneBeforeTheFirstLookWithoutGoodbyeIsTold) {
  House house(3);
  house.end(1, false);
  house.end(2, false);
  ASSERT_TRUE(house.deaths.start(house.node));
  ASSERT_TRUE(house.is_told(0)) << "nobody would ever ask";
  const uint32_t first = house.deaths.next(house.node);
  ASSERT_TRUE(first == 1 || first == 2) << first;
  house.deaths.forget(first);
  ASSERT_TRUE(house.is_told(0));
  EXPECT_EQ(house.deaths.next(house.node), 3 - first);
  house.deaths.forget(3 - first);
  EXPECT_EQ(house.deaths.next(house.node), Deaths::nobody);
}

}  // namespace
}  // namespace headway::runtime
