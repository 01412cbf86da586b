// Names of ports: what was published is found, goes with its publisher, and is published once.
#include "spawn/names.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fcntl.h>
#include <string>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace headway::spawn {
namespace {

class Names : public testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/names-test-XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    folder_ = folder;
    const char* before = getenv("XDG_RUNTIME_DIR");
    before_ = before ? before : "";
    setenv("XDG_RUNTIME_DIR", folder, 1);
  }
  void TearDown() override {
    before_.empty() ? unsetenv("XDG_RUNTIME_DIR") : setenv("XDG_RUNTIME_DIR", before_.c_str(), 1);
    EXPECT_EQ(system(("rm -r " + folder_).c_str()), 0);
  }

  std::string folder_, before_;
};

Named publish(const char* port) {
  NameStory story;
  return publish_name("service", port, story);
}

// A child that publishes, says with its code what came of it, and is there until it is let go.
pid_t start_publisher(int go, int stay) {
  const pid_t child = fork();
  if (child != 0) return child;
  char byte = 0;
  (void)!read(go, &byte, 1);
  const Named named = publish(std::to_string(getpid()).c_str());
  (void)!read(stay, &byte, 1);
  _exit(int(named));
}

TEST_F(Names, OfOneThatHasEndedAreTakenByOneOfMany) {
  for (int round = 0; round < 40; ++round) {
    if (const pid_t first = fork(); first == 0) {
      _exit(int(publish("left")));
    } else {
      int status = 0;
      ASSERT_EQ(waitpid(first, &status, 0), first);
      ASSERT_EQ(WEXITSTATUS(status), int(Named::done));
    }
    int go[2], stay[2];
    ASSERT_EQ(pipe(go), 0);
    ASSERT_EQ(pipe(stay), 0);
    std::vector<pid_t> some;
    for (int i = 0; i < 6; ++i) some.push_back(start_publisher(go[0], stay[0]));
    ASSERT_EQ(write(go[1], "123456", 6), 6);
    NameStory story;
    char found[port_name_room] = "";
    for (int tries = 0; tries < 500; ++tries) {
      usleep(1000);
      if (look_up_name("service", found, story) == Named::done && tries > 20) break;
    }
    ASSERT_EQ(write(stay[1], "123456", 6), 6);
    int done = 0;
    for (const pid_t one : some) {
      int status = 0;
      ASSERT_EQ(waitpid(one, &status, 0), one);
      ASSERT_TRUE(WIFEXITED(status));
      if (WEXITSTATUS(status) != int(Named::done)) continue;
      ++done;
      EXPECT_EQ(found, std::to_string(one)) << "whoever is told so is found";
    }
    ASSERT_EQ(done, 1) << "round " << round;
    for (const int fd : {go[0], go[1], stay[0], stay[1]}) close(fd);
  }
}

TEST_F(Names, ArePublishedInTurnsForWhichNobodyWaitsForEver) {
  ASSERT_EQ(publish("first"), Named::done);  // makes the folder
  NameStory story;
  ASSERT_EQ(unpublish_name("service", story), Named::done);
  const int turn = open((folder_ + "/headway-names").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  ASSERT_EQ(flock(turn, LOCK_EX), 0);
  int go[2], stay[2];
  ASSERT_EQ(pipe(go), 0);
  ASSERT_EQ(pipe(stay), 0);
  const pid_t other = start_publisher(go[0], stay[0]);
  ASSERT_EQ(write(go[1], "1", 1), 1);
  usleep(100'000);
  char found[port_name_room] = "";
  EXPECT_EQ(look_up_name("service", found, story), Named::unknown) << "it is not its turn";
  ASSERT_EQ(flock(turn, LOCK_UN), 0);
  for (int tries = 0; tries < 1000; ++tries) {
    if (look_up_name("service", found, story) == Named::done) break;
    usleep(1000);
  }
  EXPECT_EQ(found, std::to_string(other));
  ASSERT_EQ(write(stay[1], "1", 1), 1);
  int status = 0;
  ASSERT_EQ(waitpid(other, &status, 0), other);
  ASSERT_EQ(flock(turn, LOCK_EX), 0);
  EXPECT_EQ(publish("never"), Named::no_folder);
  close(turn);
  EXPECT_EQ(publish("then"), Named::done);
  for (const int fd : {go[0], go[1], stay[0], stay[1]}) close(fd);
}

TEST_F(Names, OfThisProcessAreThereUntilTheyAreTakenBack) {
  NameStory story;
  char found[port_name_room] = "";
  EXPECT_EQ(look_up_name("service", found, story), Named::unknown);
  EXPECT_EQ(publish("here"), Named::done);
  EXPECT_EQ(publish("again"), Named::taken);
  EXPECT_EQ(look_up_name("service", found, story), Named::done);
  EXPECT_STREQ(found, "here");
  EXPECT_EQ(unpublish_name("service", story), Named::done);
  EXPECT_EQ(unpublish_name("service", story), Named::unknown);
}

}  // namespace
}  // namespace headway::spawn
