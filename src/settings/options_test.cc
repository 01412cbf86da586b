// The options: every row's default is what its text says, and values are taken or refused.
#include "settings/options.h"

#include <gtest/gtest.h>

#include <cctype>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <vector>

extern char** environ;

namespace headway::settings {
namespace {

// Takes HEADWAY_* out of the environment for the time of a test.
class CleanEnvironment : public testing::Test {
 protected:
  void SetUp() override {
    for (char** entry = environ; *entry; ++entry) {
      const std::string text = *entry;
      if (text.rfind("HEADWAY_", 0) == 0) before_.push_back(text);
    }
    for (const std::string& entry : before_) unsetenv(entry.substr(0, entry.find('=')).c_str());
  }
  void TearDown() override {
    for (const OptionInfo& row : option_table) {
      unsetenv((std::string("HEADWAY_") + row.name).c_str());
    }
    for (const std::string& entry : before_) {
      const size_t equals = entry.find('=');
      setenv(entry.substr(0, equals).c_str(), entry.c_str() + equals + 1, 1);
    }
  }
  std::vector<std::string> before_;
};
using Options = CleanEnvironment;

const OptionInfo& row_of(OptionKind kind) {
  for (const OptionInfo& row : option_table) {
    if (row.kind == kind) return row;
  }
  abort();
}

TEST_F(Options, EveryDefaultIsItsText) {
  const Settings defaults;
  for (const OptionInfo& row : option_table) {
    SCOPED_TRACE(row.name);
    Settings parsed;
    if (row.kind == OptionKind::text) {
      ASSERT_TRUE(row.string && !row.number);
      EXPECT_STREQ(defaults.*row.string, row.default_text);
      continue;
    }
    ASSERT_TRUE(row.number && !row.string);
    parsed.*row.number = 12345678901;
    ASSERT_TRUE(parse_option(row, row.default_text, parsed));
    EXPECT_EQ(parsed.*row.number, defaults.*row.number);
  }
}

TEST_F(Options, RowsHaveNamesOfTheirOwnAndHelp) {
  std::set<std::string> names;
  for (const OptionInfo& row : option_table) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_GT(strlen(row.help), 10u) << row.name;
    EXPECT_LT(strlen(row.name), 50u) << row.name;
    EXPECT_EQ(find_option(row.name), &row);
    std::string low = row.name;
    for (char& letter : low) letter = char(tolower(letter));
    EXPECT_EQ(find_option(low.c_str()), &row);
  }
  EXPECT_EQ(find_option("NO_SUCH_OPTION"), nullptr);
  EXPECT_EQ(find_option(""), nullptr);
}

struct Case {
  const char* text;
  bool taken;
  uint64_t value;
};

void check(const OptionInfo& row, const std::vector<Case>& cases) {
  for (const Case& one : cases) {
    SCOPED_TRACE(testing::Message() << row.name << "=" << one.text);
    Settings settings;
    settings.*row.number = 77;
    EXPECT_EQ(parse_option(row, one.text, settings), one.taken);
    EXPECT_EQ(settings.*row.number, one.taken ? one.value : 77);
  }
}

TEST_F(Options, Booleans) {
  check(row_of(OptionKind::boolean), {{"1", true, 1},
                                      {"on", true, 1},
                                      {"ON", true, 1},
                                      {"yes", true, 1},
                                      {"True", true, 1},
                                      {"0", true, 0},
                                      {"off", true, 0},
                                      {"No", true, 0},
                                      {"false", true, 0},
                                      {"", false, 0},
                                      {"2", false, 0},
                                      {"onn", false, 0},
                                      {" on", false, 0},
                                      {"-1", false, 0}});
}

TEST_F(Options, Bytes) {
  check(row_of(OptionKind::bytes), {{"0", true, 0},
                                    {"1", true, 1},
                                    {"4096", true, 4096},
                                    {"4K", true, 4096},
                                    {"4k", true, 4096},
                                    {"4KB", true, 4096},
                                    {"4KiB", true, 4096},
                                    {"3M", true, 3u << 20},
                                    {"2G", true, 2ull << 30},
                                    {"18446744073709551615", true, ~0ull},
                                    {"17179869183G", true, 17179869183ull << 30},
                                    {"17179869184G", false, 0},  // 2^64
                                    {"18446744073709551616", false, 0},
                                    {"99999999999999999999999", false, 0},
                                    {"", false, 0},
                                    {"K", false, 0},
                                    {"-1", false, 0},
                                    {"+1", false, 0},
                                    {" 1", false, 0},
                                    {"1 K", false, 0},
                                    {"4KK", false, 0},
                                    {"1.5M", false, 0},
                                    {"0x10", false, 0},
                                    {"4s", false, 0}});
}

TEST_F(Options, Times) {
  check(row_of(OptionKind::microseconds), {{"0", true, 0},
                                           {"50", true, 50},
                                           {"50us", true, 50},
                                           {"7ms", true, 7000},
                                           {"10s", true, 10'000'000},
                                           {"10S", true, 10'000'000},
                                           {"10m", false, 0},
                                           {"s", false, 0},
                                           {"-1s", false, 0},
                                           {"18446744073709551615s", false, 0}});
}

TEST_F(Options, Counts) {
  check(row_of(OptionKind::count),
        {{"0", true, 0}, {"2", true, 2}, {"2K", false, 0}, {"two", false, 0}, {"", false, 0}});
}

TEST_F(Options, NumbersOutOfRangeAreRefused) {
  const OptionInfo* batch = find_option("RELEASE_BATCH");
  const OptionInfo* threshold = find_option("RELEASE_THRESHOLD");
  ASSERT_TRUE(batch && threshold);
  check(*batch, {{"0", true, 0}, {"256", true, 256}, {"257", false, 0}, {"4K", false, 0}});
  check(*threshold, {{"10s", true, 10'000'000}, {"11s", false, 0}, {"-1", false, 0}});
}

TEST_F(Options, Choices) {
  const OptionInfo row{"TEST", Category::reporting, Audience::user,      OptionKind::choice,
                       "one",  "one|two|three|",    "a test of choices", &Settings::verbose,
                       nullptr};
  check(row, {{"one", true, 0},
              {"TWO", true, 1},
              {"three", true, 2},
              {"", true, 3},
              {"thre", false, 0},
              {"threee", false, 0},
              {"one|two", false, 0},
              {"|", false, 0}});
}

TEST_F(Options, TheEnvironmentIsReadAndRefusedValuesAreTold) {
  setenv("HEADWAY_PROGRESS", "off", 1);
  setenv("HEADWAY_EAGER_MAX_TCP", "8K", 1);
  setenv("HEADWAY_COLL", "allreduce=ring", 1);
  setenv("HEADWAY_VERBOSE", "", 1);  // empty counts as not set
  setenv("HEADWAY_SHM", "maybe", 1);
  setenv("HEADWAY_SPIN", "-5", 1);
  setenv("HEADWAY_UNEXPECTED_MAX", "many", 1);
  Settings settings;
  OptionError errors[2] = {};
  EXPECT_EQ(parse_environment(settings, errors, 2), 3u) << "counted beyond what the array holds";
  EXPECT_EQ(settings.progress, 0u);
  EXPECT_EQ(settings.eager_max_tcp, 8192u);
  EXPECT_STREQ(settings.collective_algorithms, "allreduce=ring");
  const Settings defaults;
  EXPECT_EQ(settings.verbose, defaults.verbose);
  EXPECT_EQ(settings.shm, defaults.shm);
  EXPECT_EQ(settings.spin_us, defaults.spin_us);
  EXPECT_EQ(settings.unexpected_max, defaults.unexpected_max);
  EXPECT_STREQ(errors[0].option->name, "SPIN") << "in the order of the table";
  EXPECT_STREQ(errors[0].value, "-5");
  EXPECT_STREQ(errors[1].option->name, "SHM");
  EXPECT_STREQ(errors[1].value, "maybe");
}

TEST_F(Options, NothingSetNothingChanged) {
  Settings settings;
  EXPECT_EQ(parse_environment(settings, nullptr, 0), 0u);
  const Settings defaults;
  for (const OptionInfo& row : option_table) {
    if (row.number) {
      EXPECT_EQ(settings.*row.number, defaults.*row.number) << row.name;
    }
  }
}

}  // namespace
}  // namespace headway::settings
