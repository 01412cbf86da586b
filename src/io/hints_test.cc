// Hints: what is taken of an info object, what is ignored, and what is told of it.
#include "io/hints.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <utility>

namespace headway::io {
namespace {

Hints taken(std::initializer_list<std::pair<const char*, const char*>> keys) {
  objects::Info* info = objects::Info::make();
  for (const auto& [key, value] : keys) EXPECT_TRUE(info->set(key, value));
  Hints hints;
  hints.take(*info);
  info->release();
  return hints;
}

std::string told(const Hints& hints, const char* key, const char* file = "name") {
  objects::Info* info = objects::Info::make();
  EXPECT_TRUE(hints.tell(*info, file));
  const char* value = info->find(key);
  const std::string text = value ? value : "(none)";
  info->release();
  return text;
}

TEST(Hints, SensibleOnesAreTaken) {
  const Hints hints = taken({{"collective_buffering", "false"},
                             {"cb_buffer_size", "70000"},
                             {"cb_nodes", "3"},
                             {"file_perm", "600"}});
  EXPECT_EQ(hints.collective_buffering, Hints::Wish::never);
  EXPECT_EQ(hints.buffer_bytes, 69632u) << "whole pages";
  EXPECT_EQ(hints.nodes, 3u);
  EXPECT_EQ(hints.permissions, 0600u);
  EXPECT_EQ(told(hints, "collective_buffering"), "false");
  EXPECT_EQ(told(hints, "cb_buffer_size"), "69632");
  EXPECT_EQ(told(hints, "cb_nodes"), "3");
  EXPECT_EQ(told(hints, "file_perm"), "0600");
  EXPECT_EQ(told(hints, "filename"), "name");
}

TEST(Hints, OthersChangeNothing) {
  const char* const sizes[] = {"",       "-1", "12x", " 100000", "1000", "99999999999999999999",
                               "0x20000"};
  for (const char* size : sizes) {
    EXPECT_EQ(taken({{"cb_buffer_size", size}}).buffer_bytes, Hints{}.buffer_bytes) << size;
  }
  for (const char* nodes : {"0", "-3", "all", ""}) {
    EXPECT_EQ(taken({{"cb_nodes", nodes}}).nodes, 0u) << nodes;
  }
  for (const char* permissions : {"rwx", "888", "10000", ""}) {
    EXPECT_EQ(taken({{"file_perm", permissions}}).permissions, Hints{}.permissions);
  }
  const Hints hints = taken({{"collective_buffering", "TRUE"}, {"striping_unit", "1"}});
  EXPECT_EQ(hints.collective_buffering, Hints::Wish::automatic);
  EXPECT_EQ(told(hints, "striping_unit"), "(none)");
  EXPECT_EQ(told(hints, "collective_buffering"), "(none)");
  EXPECT_EQ(told(hints, "cb_nodes"), "(none)");
}

TEST(Hints, ANameThatIsTooLongIsNotTold) {
  const std::string longer(objects::max_info_value + 1, 'n');
  EXPECT_EQ(told(Hints{}, "filename", longer.c_str()), "(none)");
}

}  // namespace
}  // namespace headway::io
