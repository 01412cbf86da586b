// Attributes: a list against a plain model, the order that deletion takes, keyvals that live as
// long as something is cached under them, and several threads.
#include "objects/attributes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "base/heap.h"
#include "objects/registry.h"

namespace headway::objects {
namespace {

void* as_value(uint64_t number) { return reinterpret_cast<void*>(number); }

// What a program's call does, without callbacks.
bool set(Attributes& list, Keyval& keyval, uint64_t value) {
  Attribute* made = make_attribute(keyval, as_value(value));
  while (Attribute* older = list.put(made)) list.end_leaving(older, true);
  return made != nullptr;
}
bool erase(Attributes& list, const Keyval& keyval) {
  Attribute* one = list.start_leaving(&keyval);
  if (one) list.end_leaving(one, true);
  return one != nullptr;
}

class AttributesTest : public testing::Test {
 protected:
  AttributesTest() : table_(std::make_unique<HandleTable>(HandleKind::keyval)) {}
  Keyval& make(KeyvalKind kind = KeyvalKind::comm) {
    Keyval* made = make_keyval(*table_, kind, nullptr, nullptr, nullptr);
    EXPECT_NE(made, nullptr);
    return *made;
  }
  std::unique_ptr<HandleTable> table_;
};

TEST_F(AttributesTest, AgainstAModel) {
  std::mt19937_64 random(29);
  std::vector<Keyval*> keyvals(12);
  for (Keyval*& one : keyvals) one = &make();
  Attributes list;
  std::vector<std::pair<Keyval*, uint64_t>> model;  // newest first
  const auto find = [&](Keyval* keyval) {
    return std::find_if(model.begin(), model.end(),
                        [&](const auto& one) { return one.first == keyval; });
  };
  for (int round = 0; round < 40'000; ++round) {
    Keyval* keyval = keyvals[random() % keyvals.size()];
    const auto at = find(keyval);
    switch (random() % 8) {
      case 0:
      case 1:
      case 2: {
        const uint64_t value = random();
        ASSERT_TRUE(set(list, *keyval, value));
        if (at != model.end()) model.erase(at);
        model.insert(model.begin(), {keyval, value});
        break;
      }
      case 3:
      case 4:
        ASSERT_EQ(erase(list, *keyval), at != model.end());
        if (at != model.end()) model.erase(at);
        break;
      case 5: {
        // A delete callback that fails: nothing changes.
        Attribute* one = list.start_leaving(&*keyval);
        ASSERT_EQ(one != nullptr, at != model.end());
        if (one) list.end_leaving(one, false);
        break;
      }
      case 6: {
        base::Vec<Attributes::Taken> all;
        ASSERT_TRUE(list.take_all(all));
        ASSERT_EQ(all.size(), model.size());
        for (size_t i = 0; i < all.size(); ++i) {
          const auto& expected = model[model.size() - 1 - i];
          ASSERT_EQ(all[i].keyval, expected.first);
          ASSERT_EQ(all[i].value, as_value(expected.second));
          release(all[i].keyval);
        }
        break;
      }
      default: {
        void* value = nullptr;
        ASSERT_EQ(list.find(*keyval, value), at != model.end());
        if (at != model.end()) {
          ASSERT_EQ(value, as_value(at->second));
        }
      }
    }
  }
  // All leave, the newest first.
  for (const auto& [keyval, value] : model) {
    Attribute* one = list.start_leaving();
    ASSERT_NE(one, nullptr);
    EXPECT_EQ(one->keyval, keyval);
    list.end_leaving(one, true);
  }
  EXPECT_EQ(list.start_leaving(), nullptr);
  for (Keyval* one : keyvals) {
    EXPECT_EQ(one->references.load(), 1u) << "the list kept a reference";
    release(one);
  }
  EXPECT_EQ(table_->count(), 0u);
}

TEST_F(AttributesTest, AKeyvalLivesAsLongAsSomethingIsCachedUnderIt) {
  const size_t before = base::heap_in_use();
  Keyval& keyval = make();
  const auto number = uintptr_t(keyval.number);
  Attributes first, second;
  ASSERT_TRUE(set(first, keyval, 1));
  ASSERT_TRUE(set(second, keyval, 2));
  release(&keyval);  // the program's
  EXPECT_EQ(table_->find(number), &keyval);
  EXPECT_TRUE(erase(first, keyval));
  EXPECT_EQ(table_->find(number), &keyval);
  second.drop();
  EXPECT_EQ(table_->find(number), nullptr);
  // The table keeps its memory.
  EXPECT_LE(base::heap_in_use(), before + 256 * 32);
}

// While its callback runs an attribute can be read, but is not deleted twice; what the callback
// stores meanwhile is the value from then on.
TEST_F(AttributesTest, WhatLeavesIsStillThere) {
  Keyval& keyval = make();
  Attributes list;
  ASSERT_TRUE(set(list, keyval, 1));
  Attribute* one = list.start_leaving(&keyval);
  ASSERT_NE(one, nullptr);
  void* value = nullptr;
  EXPECT_TRUE(list.find(keyval, value));
  EXPECT_EQ(value, as_value(1));
  EXPECT_EQ(list.start_leaving(&keyval), nullptr);
  EXPECT_EQ(list.start_leaving(), nullptr);
  base::Vec<Attributes::Taken> all;
  ASSERT_TRUE(list.take_all(all));
  EXPECT_TRUE(all.empty()) << "a copy of what leaves";
  EXPECT_EQ(list.put(make_attribute(keyval, as_value(2))), nullptr);
  EXPECT_TRUE(list.find(keyval, value));
  EXPECT_EQ(value, as_value(2));
  list.end_leaving(one, true);
  EXPECT_TRUE(list.find(keyval, value));
  EXPECT_EQ(value, as_value(2));
  list.drop();
  EXPECT_EQ(keyval.references.load(), 1u);
  release(&keyval);
}

// A delete callback that stores another value, and fails: that is the value, and the only one.
TEST_F(AttributesTest, OfTwoTheOneThatWasPutLastStays) {
  Keyval& keyval = make();
  Attributes list;
  ASSERT_TRUE(set(list, keyval, 1));
  Attribute* one = list.start_leaving(&keyval);
  ASSERT_NE(one, nullptr);
  EXPECT_EQ(list.put(make_attribute(keyval, as_value(2))), nullptr);
  list.end_leaving(one, false);
  void* value = nullptr;
  EXPECT_TRUE(list.find(keyval, value));
  EXPECT_EQ(value, as_value(2));
  EXPECT_TRUE(erase(list, keyval));
  EXPECT_FALSE(list.find(keyval, value)) << "the one before is back";
  EXPECT_EQ(keyval.references.load(), 1u);
  release(&keyval);
}

#if defined(HEADWAY_DEBUG)
using AttributesDeathTest = AttributesTest;

TEST_F(AttributesDeathTest, WhatIsTakenOutWasMarked) {
  Keyval& keyval = make();
  Attributes list;
  Attribute* one = make_attribute(keyval, nullptr);
  ASSERT_EQ(list.put(one), nullptr);
  EXPECT_DEATH(list.end_leaving(one, true), "does not hold");
  list.drop();
  release(&keyval);
}
#endif

TEST_F(AttributesTest, TakeAllHasRoomForMany) {
  Attributes list;
  std::vector<Keyval*> keyvals;
  for (uint64_t i = 0; i < 100; ++i) {
    keyvals.push_back(&make());
    ASSERT_TRUE(set(list, *keyvals.back(), i));
  }
  base::Vec<Attributes::Taken> all;
  ASSERT_TRUE(list.take_all(all));
  ASSERT_EQ(all.size(), 100u);
  for (uint64_t i = 0; i < 100; ++i) {
    EXPECT_EQ(all[i].value, as_value(i));
    release(all[i].keyval);
  }
  list.drop();
  for (Keyval* one : keyvals) release(one);
  EXPECT_EQ(table_->count(), 0u);
}

// Each attribute that is set leaves exactly once, whoever replaces or deletes it.
TEST_F(AttributesTest, ThreadsReplaceAndDelete) {
  Keyval& keyval = make();
  Attributes list;
  std::atomic<uint64_t> made{0}, left{0};
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < 4; ++seed) {
    threads.emplace_back([&, seed] {
      std::mt19937_64 random(seed);
      for (int round = 0; round < 20'000; ++round) {
        void* value = nullptr;
        if (random() % 3 == 0) {
          if (Attribute* one = list.start_leaving(&keyval)) {
            list.end_leaving(one, true);
            ++left;
          }
        } else if (random() % 2 == 0) {
          Attribute* one = make_attribute(keyval, as_value(made.fetch_add(1) + 1));
          while (Attribute* older = list.put(one)) {
            list.end_leaving(older, true);
            ++left;
          }
        } else if (list.find(keyval, value)) {
          EXPECT_GT(reinterpret_cast<uint64_t>(value), 0u);
        }
      }
    });
  }
  for (std::thread& one : threads) one.join();
  while (Attribute* one = list.start_leaving()) {
    list.end_leaving(one, true);
    ++left;
  }
  EXPECT_EQ(made.load(), left.load());
  EXPECT_EQ(keyval.references.load(), 1u);
  release(&keyval);
}

// Two handles of one datatype have lists of their own.
TEST(HandleAttributesTest, EachHandleHasItsOwn) {
  auto registry = std::make_unique<Registry>();
  datatypes::Type* type = nullptr;
  ASSERT_EQ(datatypes::make_contiguous(datatypes::Form::narrow, 3,
                                       datatypes::predefined(datatypes::BasicType::int32_t), type),
            Outcome::ok);
  Keyval* keyval = make_keyval(registry->keyvals, KeyvalKind::datatype, nullptr, nullptr, nullptr);
  ASSERT_NE(keyval, nullptr);
  EXPECT_EQ(registry->find_keyval(keyval->number), keyval);
  EXPECT_EQ(registry->find_keyval(0), nullptr);
  EXPECT_EQ(registry->find_keyval(-1), nullptr);
  EXPECT_EQ(registry->find_attributes(*type, 7), nullptr);
  registry->drop_attributes(*type, 7);
  for (const uintptr_t handle : {7, 8, 9}) {
    Attributes* list = registry->find_attributes(*type, handle, true);
    ASSERT_NE(list, nullptr);
    ASSERT_TRUE(set(*list, *keyval, handle));
  }
  registry->drop_attributes(*type, 8);
  registry->drop_attributes(*type, 8);
  EXPECT_EQ(registry->find_attributes(*type, 8), nullptr);
  for (const uintptr_t handle : {9, 7}) {
    void* value = nullptr;
    Attributes* list = registry->find_attributes(*type, handle);
    ASSERT_NE(list, nullptr);
    EXPECT_TRUE(list->find(*keyval, value));
    EXPECT_EQ(value, as_value(handle));
    registry->drop_attributes(*type, handle);
  }
  EXPECT_EQ(type->attached().load(), nullptr);
  EXPECT_EQ(keyval->references.load(), 1u);
  release(keyval);
  type->release();
}

}  // namespace
}  // namespace headway::objects
