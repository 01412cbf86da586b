// The hints of windows: what an info says, and what MPI_Win_get_info tells.
#include "objects/window.h"

#include <gtest/gtest.h>

#include <string>

#include "objects/info.h"

namespace headway::objects {
namespace {

class Hints : public testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(info_ = Info::make(), nullptr); }
  void TearDown() override { info_->release(); }

  void take(const char* key, const char* value) {
    ASSERT_TRUE(info_->set(key, value));
    take_hints(hints_, *info_);
  }
  std::string told(const char* key) {
    Info* out = Info::make();
    EXPECT_TRUE(tell_hints(hints_, *out));
    const char* value = out->find(key);
    const std::string text = value ? value : "(none)";
    out->release();
    return text;
  }

  Info* info_ = nullptr;
  WindowHints hints_;
};

TEST_F(Hints, AreTheDefaultsOfTheStandard) {
  EXPECT_EQ(told("no_locks"), "false");
  EXPECT_EQ(told("accumulate_ordering"), "rar,raw,war,waw");
  EXPECT_EQ(told("accumulate_ops"), "same_op_no_op");
  EXPECT_EQ(told("same_size"), "false");
  EXPECT_EQ(told("same_disp_unit"), "false");
  EXPECT_EQ(told("alloc_shared_noncontig"), "false");
  EXPECT_EQ(told("mpi_accumulate_granularity"), "0");
}

TEST_F(Hints, AreTakenOver) {
  take("no_locks", "true");
  take("accumulate_ordering", "waw,rar");
  take("accumulate_ops", "same_op");
  take("mpi_accumulate_granularity", "64");
  EXPECT_EQ(told("no_locks"), "true");
  EXPECT_EQ(told("accumulate_ordering"), "rar,waw");
  EXPECT_EQ(told("accumulate_ops"), "same_op");
  EXPECT_EQ(told("mpi_accumulate_granularity"), "64");
  take("accumulate_ordering", "none");
  EXPECT_EQ(told("accumulate_ordering"), "none");
  take("no_locks", "false");
  EXPECT_EQ(told("no_locks"), "false");
}

TEST_F(Hints, WithOtherValuesAreIgnored) {
  take("no_locks", "yes");
  take("accumulate_ordering", "rar,");
  take("accumulate_ordering", "rar;raw");
  take("accumulate_ops", "any");
  take("mpi_accumulate_granularity", "4K");
  take("mpi_accumulate_granularity", "99999999999999999999");
  take("an_unknown_key", "true");
  EXPECT_EQ(told("no_locks"), "false");
  EXPECT_EQ(told("accumulate_ordering"), "rar,raw,war,waw");
  EXPECT_EQ(told("accumulate_ops"), "same_op_no_op");
  EXPECT_EQ(told("mpi_accumulate_granularity"), "0");
  EXPECT_EQ(told("an_unknown_key"), "(none)");
}

}  // namespace
}  // namespace headway::objects
