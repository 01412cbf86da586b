// The table of counters: names of their own, help, and whole categories one after the other.
#include "settings/counters.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>

namespace headway::settings {
namespace {

TEST(CounterTable, RowsHaveNamesOfTheirOwnAndHelp) {
  std::set<std::string> names;
  for (const CounterInfo& row : counter_table) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_GT(strlen(row.help), 10u) << row.name;
    EXPECT_EQ(strpbrk(row.name, " \"\\-"), nullptr) << row.name << " is a key in JSON";
    const std::string name = row.name;
    const bool is_time = name.size() > 3 && name.substr(name.size() - 3) == "_ns";
    EXPECT_EQ(row.kind == CounterKind::nanoseconds, is_time) << row.name;
  }
}

// The documentation's page has one section for each.
TEST(CounterTable, CategoriesStandTogether) {
  std::set<Category> ended;
  for (size_t i = 1; i < counter_count; ++i) {
    const Category before = counter_table[i - 1].category;
    if (counter_table[i].category != before) ended.insert(before);
    EXPECT_EQ(ended.count(counter_table[i].category), 0u) << counter_table[i].name;
  }
}

}  // namespace
}  // namespace headway::settings
