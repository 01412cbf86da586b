// Quotas of processor time, read from trees of files as real systems have them.
#include "base/machine.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace headway::base {
namespace {

class Quota : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/headway-machine-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    root_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void file(const std::string& path, const std::string& text) {
    const std::filesystem::path whole = root_ + path;
    std::filesystem::create_directories(whole.parent_path());
    std::ofstream(whole) << text << "\n";
  }
  double quota() { return cpu_quota(root_.c_str()); }

  // As on most systems of today: one hierarchy of version 2.
  void version_2(const std::string& group, const std::string& mount_root = "/") {
    file("/proc/self/cgroup", "0::" + group);
    file("/proc/self/mountinfo",
         "22 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw\n"
         "28 22 0:25 " +
             mount_root + " /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw");
  }

  std::string root_;
};

TEST_F(Quota, WithoutGroupsThereIsNone) {
  EXPECT_EQ(quota(), no_quota);
  version_2("/");
  EXPECT_EQ(quota(), no_quota) << "the root group has no cpu.max";
}

TEST_F(Quota, IsThatOfTheOwnGroup) {
  version_2("/user.slice/job");
  file("/sys/fs/cgroup/user.slice/job/cpu.max", "150000 100000");
  EXPECT_DOUBLE_EQ(quota(), 1.5);
  file("/sys/fs/cgroup/user.slice/job/cpu.max", "max 100000");
  EXPECT_EQ(quota(), no_quota);
}

TEST_F(Quota, IsTheLeastOfTheGroupsAbove) {
  version_2("/a/b/c");
  file("/sys/fs/cgroup/a/b/c/cpu.max", "400000 100000");
  file("/sys/fs/cgroup/a/b/cpu.max", "max 100000");
  file("/sys/fs/cgroup/a/cpu.max", "25000 50000");
  file("/sys/fs/cgroup/ab/cpu.max", "1000 100000");  // a neighbour with a similar name
  EXPECT_DOUBLE_EQ(quota(), 0.5);
}

TEST_F(Quota, InAContainerItsRootCounts) {
  version_2("/");  // a group namespace of its own
  file("/sys/fs/cgroup/cpu.max", "200000 100000");
  EXPECT_DOUBLE_EQ(quota(), 2);
  version_2("/kubepods/pod7/box", "/kubepods/pod7/box");  // the host's names
  EXPECT_DOUBLE_EQ(quota(), 2);
  version_2("/kubepods/pod7/box/inner", "/kubepods/pod7/box");
  file("/sys/fs/cgroup/inner/cpu.max", "100000 100000");
  EXPECT_DOUBLE_EQ(quota(), 1);
  version_2("/../other", "/");  // moved out of the namespace that we see
  EXPECT_DOUBLE_EQ(quota(), 2);
}

TEST_F(Quota, OfVersion1) {
  file("/proc/self/cgroup", "9:name=systemd:/x\n4:cpuset:/c\n3:cpuacct,cpu:/docker/1\n0::/");
  file("/proc/self/mountinfo",
       "30 22 0:26 /docker/1 /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpuacct,cpu\n"
       "31 22 0:27 / /sys/fs/cgroup/cpuset ro - cgroup cgroup rw,cpuset\n"
       "32 22 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup rw");
  EXPECT_EQ(quota(), no_quota);
  file("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1");
  file("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000");
  EXPECT_EQ(quota(), no_quota);
  file("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "70000");
  EXPECT_DOUBLE_EQ(quota(), 0.7);
}

TEST_F(Quota, NonsenseLimitsNothing) {
  version_2("/a");
  for (const char* text : {"", "x y", "100000", "100000 0", "-5 100000", "max"}) {
    file("/sys/fs/cgroup/a/cpu.max", text);
    EXPECT_EQ(quota(), no_quota) << text;
  }
  file("/proc/self/mountinfo", "- cgroup2\n1 2 3 - cgroup2 x\n\n - cgroup\n");
  EXPECT_EQ(quota(), no_quota);
  file("/proc/self/cgroup", "0\n::\n0:" + std::string(3000, 'x') + ":/\n");
  EXPECT_EQ(quota(), no_quota);
}

TEST_F(Quota, LongLinesAreLeftOut) {
  file("/proc/self/cgroup", "0::/a");
  const std::string layers(9000, 'x');
  file("/proc/self/mountinfo",
       "22 1 0:40 / / rw - overlay overlay rw,lowerdir=" + layers +
           "\n28 22 0:25 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n23 1 0:41 / /x rw - overlay "
           "overlay rw,lowerdir=" +
           layers + "\n");
  file("/sys/fs/cgroup/a/cpu.max", "300000 100000");
  EXPECT_DOUBLE_EQ(quota(), 3);
}

TEST(Valgrind, IsSeenByItsLibrary) {
  const char* before = getenv("LD_PRELOAD");
  const std::string kept = before ? before : "";
  unsetenv("LD_PRELOAD");
  EXPECT_FALSE(under_valgrind());
  setenv("LD_PRELOAD", "/usr/lib/libother.so:/usr/libexec/valgrind/vgpreload_core-amd64-linux.so",
         1);
  EXPECT_TRUE(under_valgrind());
  setenv("LD_PRELOAD", "/usr/lib/libother.so", 1);
  EXPECT_FALSE(under_valgrind());
  before ? setenv("LD_PRELOAD", kept.c_str(), 1) : unsetenv("LD_PRELOAD");
}

}  // namespace
}  // namespace headway::base
