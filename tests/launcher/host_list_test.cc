// Host lists as users and batch systems write them.
#include "host_list.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace headway::launcher {
namespace {

using Hosts = std::vector<Host>;

Hosts in_list(const char* text) {
  HostList list;
  EXPECT_TRUE(list.add_list(text)) << list.error();
  return list.hosts();
}

// A file with that text, for as long as it stands.
class File {
 public:
  explicit File(const char* text) {
    const int fd = mkstemp(path_);
    EXPECT_GE(fd, 0);
    FILE* file = fdopen(fd, "w");
    fputs(text, file);
    fclose(file);
  }
  ~File() { unlink(path_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  const char* path() const { return path_; }

 private:
  char path_[32] = "/tmp/headway-hosts-XXXXXX";
};

TEST(HostList, NamesWithAndWithoutNumbers) {
  EXPECT_EQ(in_list("a,b"), (Hosts{{"a", 0}, {"b", 0}}));
  EXPECT_EQ(in_list("a:2,b:3"), (Hosts{{"a", 2}, {"b", 3}}));
  EXPECT_EQ(in_list(",a,,b,"), (Hosts{{"a", 0}, {"b", 0}}));
  EXPECT_EQ(in_list("a:*,b"), (Hosts{{"a", 0}, {"b", 0}}));
}

TEST(HostList, WhoHasNoNumberBesideOthersTakesOne) {
  EXPECT_EQ(in_list("a:2,b"), (Hosts{{"a", 2}, {"b", 1}}));
}

TEST(HostList, NamedTwiceIsTwo) {
  EXPECT_EQ(in_list("a,b,a"), (Hosts{{"a", 2}, {"b", 1}}));
  EXPECT_EQ(in_list("a:3,b,a"), (Hosts{{"a", 4}, {"b", 1}}));
}

TEST(HostList, Addresses) {
  EXPECT_EQ(in_list("10.0.0.1:4,::1,[fe80::2]:3,[::3]"),
            (Hosts{{"10.0.0.1", 4}, {"::1", 1}, {"fe80::2", 3}, {"::3", 1}}));
}

TEST(HostList, WhatIsNoHostIsToldByItsName) {
  for (const char* bad :
       {"a:x", "a:0", "a:-1", "a:", ":4", "node[1-3]", "[::1", "[::1]4", "a:99999999"}) {
    HostList list;
    EXPECT_FALSE(list.add_list(bad)) << bad;
    EXPECT_NE(list.error().find("host "), std::string::npos) << list.error();
  }
}

TEST(HostList, Files) {
  const File file(
      "# all of them\n\nnode1 slots=4 max_slots=8\n  node2:2  # the small one\nnode3\n");
  HostList list;
  ASSERT_TRUE(list.add_file(file.path())) << list.error();
  EXPECT_EQ(list.hosts(), (Hosts{{"node1", 4}, {"node2", 2}, {"node3", 1}}));
  EXPECT_EQ(list.unknown(), "");
}

TEST(HostList, FilesOfBatchSystemsHaveALineForEachRank) {
  const File file("node1\nnode1\nnode2\nnode2\n");
  HostList list;
  ASSERT_TRUE(list.add_file(file.path()));
  EXPECT_EQ(list.hosts(), (Hosts{{"node1", 2}, {"node2", 2}}));
}

TEST(HostList, FilesOfGridEngine) {
  const File file("node1 4 all.q@node1 UNDEFINED\nnode2 2 all.q@node2 UNDEFINED\n");
  HostList list;
  ASSERT_TRUE(list.add_file(file.path(), true));
  EXPECT_EQ(list.hosts(), (Hosts{{"node1", 4}, {"node2", 2}}));
  EXPECT_EQ(list.unknown(), "");
}

TEST(HostList, WhatElseAFileSaysIsKept) {
  const File file("node1 slots=4\nnode2 slots=4 user=me\n");
  HostList list;
  ASSERT_TRUE(list.add_file(file.path()));
  EXPECT_EQ(list.unknown(), "user=me (node2)");
}

TEST(HostList, FilesThatCannotBeRead) {
  HostList list;
  EXPECT_FALSE(list.add_file("/nowhere/hosts"));
  EXPECT_NE(list.error().find("/nowhere/hosts: No such file"), std::string::npos) << list.error();
  HostList folder;
  EXPECT_FALSE(folder.add_file("/tmp"));
  const File file("node1 slots=many\n");
  HostList wrong;
  EXPECT_FALSE(wrong.add_file(file.path()));
  EXPECT_NE(wrong.error().find("slots=many of node1"), std::string::npos) << wrong.error();
}

}  // namespace
}  // namespace headway::launcher
