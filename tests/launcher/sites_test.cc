// Where a call stands: in this program's own file.
#include "sites.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <link.h>

namespace headway::launcher {
namespace {

bool has_reader() {
  return system(
             "command -v addr2line >/dev/null 2>&1 || command -v eu-addr2line >/dev/null 2>&1 || "
             "command -v llvm-addr2line >/dev/null 2>&1") == 0;
}

std::vector<Seen> at_address(const void* address) {
  std::vector<Seen> seen(1);
  seen[0].pid = getpid();
  seen[0].spot.site.address = uint64_t(reinterpret_cast<uintptr_t>(address));
  return seen;
}

[[gnu::noinline]] const void* here() { return __builtin_return_address(0); }

TEST(Sites, AreFoundInTheFileOfTheCode) {
  const int line = __LINE__ + 1;
  const void* const address = here();
  std::vector<Seen> seen = at_address(address);
  find_sites(seen);
  const Site& site = seen[0].spot.site;
  EXPECT_TRUE(site.module.ends_with("/launcher_unit_test")) << site.module;
  // As the file's own addresses: the first object of this process says where it lies.
  uint64_t base = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* out) {
        *static_cast<uint64_t*>(out) = info->dlpi_addr;
        return 1;
      },
      &base);
  EXPECT_EQ(site.offset, site.address - base);
  EXPECT_TRUE(text_of(site).starts_with("launcher_unit_test+0x"));
  if (!has_reader()) return;
  name_sites(seen, 10'000);
  EXPECT_EQ(text_of(site), "sites_test.cc:" + std::to_string(line));
}

TEST(Sites, WhatIsNoFileHasNone) {
  char on_stack = 0;
  for (const void* address :
       {static_cast<const void*>(&on_stack), static_cast<const void*>(nullptr),
        reinterpret_cast<const void*>(uintptr_t(8))}) {
    std::vector<Seen> seen = at_address(address);
    name_sites(seen, 1000);
    EXPECT_EQ(text_of(seen[0].spot.site), "");
  }
  std::vector<Seen> gone = at_address(reinterpret_cast<const void*>(&here));
  gone[0].pid = -1;
  name_sites(gone, 1000);
  EXPECT_EQ(text_of(gone[0].spot.site), "");
}

// A script in the place of the reader, the first on the path.
class Reader : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(mkdtemp(folder_), nullptr); }
  void TearDown() override {
    setenv("PATH", before_.c_str(), 1);
    unlink(path_.c_str());
    rmdir(folder_);
  }
  void use(const char* script) {
    path_ = std::string(folder_) + "/addr2line";
    FILE* file = fopen(path_.c_str(), "w");
    ASSERT_NE(file, nullptr);
    fprintf(file, "#!/bin/sh\n%s\n", script);
    fclose(file);
    chmod(path_.c_str(), 0755);
    setenv("PATH", (std::string(folder_) + ":" + before_).c_str(), 1);
  }
  std::string told() {
    std::vector<Seen> seen = at_address(here());
    const time_t began = time(nullptr);
    name_sites(seen, 200);
    EXPECT_LT(time(nullptr) - began, 5);
    return text_of(seen[0].spot.site);
  }

  char folder_[32] = "/tmp/headway-sites-XXXXXX";
  std::string path_, before_ = getenv("PATH");
};

// One that says nothing is not waited for, and one that is not there is not missed.
TEST_F(Reader, TakesNoLongerThanItsTime) {
  use("exec sleep 30");
  EXPECT_TRUE(told().starts_with("launcher_unit_test+0x"));
  setenv("PATH", folder_, 1);
  unlink(path_.c_str());
  EXPECT_TRUE(told().starts_with("launcher_unit_test+0x"));
}

TEST_F(Reader, IsNotWaitedForOnceItHasSaidAll) {
  use("exec >&-; exec sleep 30");
  EXPECT_TRUE(told().starts_with("launcher_unit_test+0x"));
}

TEST_F(Reader, MayNameAFolderWithSpaces) {
  use("echo main; echo '/home/me/my files/ring.c:14 (discriminator 2)'");
  EXPECT_EQ(told(), "ring.c:14");
}

}  // namespace
}  // namespace headway::launcher
