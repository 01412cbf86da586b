// Handles of tools: each sort for itself, bounded, and nothing is left when the last user goes.
#include "objects/tool.h"

#include <gtest/gtest.h>

namespace headway::objects {
namespace {

TEST(ToolHandles, OpenAsOftenAsClosed) {
  ToolHandles tools;
  EXPECT_EQ(tools.close(), ToolOutcome::closed);
  tools.open();
  tools.open();
  EXPECT_EQ(tools.close(), ToolOutcome::ok);
  EXPECT_TRUE(tools.is_open());
  EXPECT_EQ(tools.close(), ToolOutcome::ok);
  EXPECT_FALSE(tools.is_open());
  uintptr_t handle = 0;
  EXPECT_EQ(tools.add_session(handle), ToolOutcome::closed);
  EXPECT_EQ(tools.add_option(0, handle), ToolOutcome::closed);
  EXPECT_EQ(handle, 0u);
}

TEST(ToolHandles, NothingIsLeftWhenTheLastUserGoes) {
  ToolHandles tools;
  tools.open();
  uintptr_t session = 0, handle = 0;
  // What the tables take once stays theirs.
  ASSERT_EQ(tools.add_session(session), ToolOutcome::ok);
  ASSERT_EQ(tools.add_counter(session, 1, handle), ToolOutcome::ok);
  ASSERT_EQ(tools.add_option(1, handle), ToolOutcome::ok);
  ASSERT_EQ(tools.close(), ToolOutcome::ok);
  const size_t before = base::heap_in_use();
  for (int round = 0; round < 50; ++round) {
    tools.open();
    for (size_t i = 0; i < 5; ++i) {
      ASSERT_EQ(tools.add_session(session), ToolOutcome::ok);
      ASSERT_EQ(tools.add_counter(session, i, handle), ToolOutcome::ok);
      size_t found = 99;
      EXPECT_EQ(tools.find_counter(session, handle, found), ToolOutcome::ok);
      EXPECT_EQ(found, i);
      ASSERT_EQ(tools.add_option(i, handle), ToolOutcome::ok);
      EXPECT_EQ(tools.find_option(handle, found), ToolOutcome::ok);
      EXPECT_EQ(found, i);
    }
    ASSERT_EQ(tools.remove_session(session), ToolOutcome::ok);
    ASSERT_EQ(tools.remove_option(handle), ToolOutcome::ok);
    ASSERT_EQ(tools.close(), ToolOutcome::ok);
  }
  EXPECT_EQ(base::heap_in_use(), before);
  tools.open();
  size_t found = 0;
  EXPECT_EQ(tools.find_counter(session, handle, found), ToolOutcome::bad_session);
  EXPECT_EQ(tools.find_option(handle, found), ToolOutcome::bad_handle);
}

TEST(ToolHandles, ThereIsAnEndToThem) {
  ToolHandles tools;
  tools.open();
  uintptr_t session = 0, handle = 0, last = 0;
  ASSERT_EQ(tools.add_session(session), ToolOutcome::ok);
  ToolOutcome outcome = ToolOutcome::ok;
  size_t made = 0;
  for (; made <= handle_limit && outcome == ToolOutcome::ok; ++made) {
    last = handle;
    outcome = tools.add_counter(session, 7, handle);
  }
  EXPECT_EQ(outcome, ToolOutcome::full);
  EXPECT_EQ(made, handle_limit + 1);
  ASSERT_EQ(tools.remove_counter(session, last), ToolOutcome::ok);
  EXPECT_EQ(tools.add_counter(session, 7, handle), ToolOutcome::ok);
  EXPECT_EQ(tools.close(), ToolOutcome::ok);
}

}  // namespace
}  // namespace headway::objects
