// The table of events: names of their own, help, fields one after the other, and telling.
#include "settings/events.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>

#include "settings/counters.h"

namespace headway::settings {
namespace {

TEST(EventTable, RowsHaveNamesOfTheirOwnAndHelp) {
  std::set<std::string> names;
  for (const EventInfo& row : event_table) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_GT(strlen(row.help), 10u) << row.name;
    EXPECT_EQ(strpbrk(row.name, " \"\\-"), nullptr) << row.name;
    std::set<std::string> fields;
    const size_t count = field_count(size_t(row.kind));
    EXPECT_GT(count, 0u) << row.name;
    for (size_t i = 0; i < base::most_event_fields; ++i) {
      const EventField& field = row.fields[i];
      EXPECT_EQ(field.name != nullptr, i < count) << row.name << ": a gap between fields";
      if (!field.name) continue;
      EXPECT_TRUE(fields.insert(field.name).second) << row.name << " " << field.name;
      EXPECT_GT(strlen(field.help), 0u) << row.name << " " << field.name;
    }
  }
}

// The documentation's page has one section for each.
TEST(EventTable, CategoriesStandTogether) {
  std::set<Category> ended;
  for (size_t i = 1; i < event_count; ++i) {
    const Category before = event_table[i - 1].category;
    if (event_table[i].category != before) ended.insert(before);
    EXPECT_EQ(ended.count(event_table[i].category), 0u) << event_table[i].name;
  }
}

TEST(EventTable, TheCountersOfTheSameAreThere) {
  for (const EventInfo& row : event_table) {
    if (!*row.counter) continue;
    bool found = false;
    for (const CounterInfo& counter : counter_table) {
      found |= strcmp(counter.name, row.counter) == 0 && counter.kind == CounterKind::events;
    }
    EXPECT_TRUE(found) << row.name << " and " << row.counter;
  }
}

void listen(EventKind kind, bool on) {
  base::event_listeners[size_t(kind)].store(on, std::memory_order_relaxed);
}

void drop_all(base::EventSource source) {
  base::ToolEvent event;
  while (base::take_event(source, event)) {
  }
}

TEST(Tell, NothingWhereNobodyListens) {
  ASSERT_TRUE(base::begin_delivery());
  drop_all(base::EventSource::program);
  listen(EventKind::wait_began, true);
  tell<EventKind::wait_ended>("MPI_Wait", 3);
  EXPECT_EQ(base::events_of(base::EventSource::program), 0u);
  listen(EventKind::wait_began, false);
  base::end_delivery();
  EXPECT_FALSE(base::events_wait());
}

TEST(Tell, FieldsKeepTheirBits) {
  static constexpr char call[] = "MPI_Wait";
  listen(EventKind::wait_began, true);
  tell<EventKind::wait_began>(call, -1);
  listen(EventKind::wait_began, false);
  EXPECT_TRUE(base::events_wait());
  ASSERT_TRUE(base::begin_delivery());
  base::ToolEvent event;
  ASSERT_TRUE(base::take_event(base::EventSource::program, event));
  EXPECT_EQ(event.kind, uint8_t(EventKind::wait_began));
  EXPECT_EQ(event.fields[0], uint64_t(reinterpret_cast<uintptr_t>(call)));
  EXPECT_EQ(int64_t(event.fields[1]), -1);
  EXPECT_GT(event.at, 0u);
  EXPECT_FALSE(base::take_event(base::EventSource::program, event));
  base::end_delivery();
}

// Whoever sees it, what happens to closed pages has a source of its own.
TEST(Tell, PagesHaveASourceOfTheirOwn) {
  listen(EventKind::page_touched, true);
  tell<EventKind::page_touched>(uint64_t(4096), uint32_t(7));
  listen(EventKind::page_touched, false);
  ASSERT_TRUE(base::begin_delivery());
  base::ToolEvent event;
  EXPECT_FALSE(base::take_event(base::EventSource::program, event));
  ASSERT_TRUE(base::take_event(base::EventSource::pages, event));
  EXPECT_EQ(event.fields[0], 4096u);
  EXPECT_EQ(event.fields[1], 7u);
  base::end_delivery();
}

}  // namespace
}  // namespace headway::settings
