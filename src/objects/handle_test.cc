// Handles: valid ones are found, all others are null, in one thread and in several. Infos beside.
#include "objects/handle.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <initializer_list>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "objects/comm.h"
#include "objects/errhandler.h"
#include "objects/group.h"
#include "objects/info.h"

namespace headway::objects {
namespace {

struct Object {
  uint64_t value = 0;
};

TEST(HandleTable, AgainstAMap) {
  auto table = std::make_unique<HandleTable>(HandleKind::datatype);
  std::mt19937_64 random(11);
  std::vector<Object> objects(6000);
  std::unordered_map<uintptr_t, Object*> valid;
  std::vector<uintptr_t> handles;
  std::vector<uintptr_t> stale;
  for (int i = 0; i < 60'000; ++i) {
    const bool grow = i < 10'000 || i > 50'000;
    if (handles.empty() || int(random() % 100) < (grow ? 70 : 45)) {
      Object* object = &objects[random() % objects.size()];
      const uintptr_t handle = table->add(object);
      ASSERT_NE(handle, 0u);
      ASSERT_LT(handle, uintptr_t(1) << 31) << "must fit an int";
      ASSERT_TRUE(valid.emplace(handle, object).second) << "given twice";
      handles.push_back(handle);
    } else {
      std::swap(handles[random() % handles.size()], handles.back());
      table->remove(handles.back());
      valid.erase(handles.back());
      stale.push_back(handles.back());
      handles.pop_back();
    }
    ASSERT_EQ(table->count(), valid.size());
    if (!handles.empty()) {
      const uintptr_t handle = handles[random() % handles.size()];
      ASSERT_EQ(table->find(handle), valid[handle]);
    }
    if (!stale.empty()) {
      const uintptr_t handle = stale[random() % stale.size()];
      const auto now = valid.find(handle);  // after 512 uses of a slot a handle comes again
      ASSERT_EQ(table->find(handle), now == valid.end() ? nullptr : now->second);
    }
  }
  for (const auto& [handle, object] : valid) EXPECT_EQ(table->find(handle), object);
  std::vector<void*> visited, all;
  table->each([&](void* object) {
    visited.push_back(object);
    return true;
  });
  for (const auto& [handle, object] : valid) all.push_back(object);
  std::sort(visited.begin(), visited.end());
  std::sort(all.begin(), all.end());
  EXPECT_EQ(visited, all);
  size_t seen = 0;
  table->each([&](void*) { return ++seen < 3; });
  EXPECT_EQ(seen, 3u) << "goes on after it was told to stop";
}

TEST(HandleTable, ForeignAndInventedHandlesAreNull) {
  auto table = std::make_unique<HandleTable>(HandleKind::comm);
  auto other = std::make_unique<HandleTable>(HandleKind::group);
  Object object;
  const uintptr_t handle = table->add(&object);
  const uintptr_t foreign = other->add(&object);
  EXPECT_EQ(table->find(handle), &object);
  EXPECT_EQ(table->find(foreign), nullptr);
  EXPECT_EQ(other->find(handle), nullptr);
  EXPECT_EQ(table->find(0), nullptr);
  EXPECT_EQ(table->find(~uintptr_t(0)), nullptr);
  EXPECT_EQ(table->find(reinterpret_cast<uintptr_t>(&object)), nullptr) << "a pointer";
  EXPECT_EQ(table->find(handle | uintptr_t(1) << 40), nullptr) << "bits above the handle";
  std::mt19937_64 random(1);
  for (int i = 0; i < 100'000; ++i) {
    const uintptr_t invented = random() >> (random() % 64);
    if (invented == handle) continue;
    ASSERT_EQ(table->find(invented), nullptr) << invented;
  }
  // Every other index of the same kind and generation.
  for (uint32_t index = 1; index < handle_limit; ++index) {
    ASSERT_EQ(table->find(handle + index), nullptr);
  }
  table->remove(foreign);
  table->remove(0);
  table->remove(handle + 1);
  EXPECT_EQ(table->count(), 1u) << "removing what is not there removes nothing";
  table->remove(handle);
  table->remove(handle);
  EXPECT_EQ(table->count(), 0u);
  EXPECT_EQ(table->find(handle), nullptr);
}

// A program that makes and frees one handle in a loop: the old ones stay recognisable for long.
TEST(HandleTable, SlotsAreReusedOldestFirst) {
  auto table = std::make_unique<HandleTable>(HandleKind::op);
  Object object;
  std::unordered_set<uintptr_t> seen;
  const uintptr_t first = table->add(&object);
  table->remove(first);
  uint64_t lives = 0;
  for (;; ++lives) {
    const uintptr_t handle = table->add(&object);
    ASSERT_TRUE(table->find(handle) == &object);
    table->remove(handle);
    if (handle == first) break;
    ASSERT_EQ(table->find(first), nullptr);
    ASSERT_TRUE(seen.insert(handle).second) << "came back before the first one";
    ASSERT_LT(lives, uint64_t(1) << 20) << "never came back: how does it end?";
  }
  EXPECT_GE(lives, uint64_t(64) << handle_generation_bits);
}

TEST(HandleTable, FullIsZero) {
  auto table = std::make_unique<HandleTable>(HandleKind::info);
  Object object;
  std::vector<uintptr_t> handles;
  for (;;) {
    const uintptr_t handle = table->add(&object);
    if (!handle) break;
    handles.push_back(handle);
    ASSERT_LE(handles.size(), size_t(handle_limit));
  }
  EXPECT_EQ(handles.size(), size_t(handle_limit));
  EXPECT_EQ(table->find(handles.back()), &object);
  table->remove(handles[1234]);
  const uintptr_t again = table->add(&object);
  EXPECT_NE(again, 0u);
  EXPECT_NE(again, handles[1234]);
  EXPECT_EQ(table->add(&object), 0u);
}

// Threads add, look up and remove their own, and look at others' handles meanwhile.
TEST(HandleTable, Threads) {
  auto table = std::make_unique<HandleTable>(HandleKind::errhandler);
  constexpr int threads = 4;
  std::atomic<uintptr_t> shown[threads] = {};
  std::atomic<int> wrong{0};
  static Object objects[threads];
  std::vector<std::thread> all;
  for (int me = 0; me < threads; ++me) {
    all.emplace_back([&, me] {
      std::mt19937_64 random(me);
      std::vector<uintptr_t> mine;
      for (int i = 0; i < 20'000; ++i) {
        if (mine.size() < 100 && random() % 2) {
          const uintptr_t handle = table->add(&objects[me]);
          if (!handle || table->find(handle) != &objects[me]) ++wrong;
          mine.push_back(handle);
        } else if (!mine.empty()) {
          std::swap(mine[random() % mine.size()], mine.back());
          table->remove(mine.back());
          mine.pop_back();
        }
        // The first one stays until the end: everybody must find it, or see null before it is.
        if (i == 0 || mine.empty()) continue;
        if (i == 100) {
          shown[me] = table->add(&objects[me]);
        }
        const int other = int(random() % threads);
        const uintptr_t handle = shown[other];
        if (handle && table->find(handle) != &objects[other]) ++wrong;
      }
      for (const uintptr_t handle : mine) table->remove(handle);
    });
  }
  for (std::thread& thread : all) thread.join();
  EXPECT_EQ(wrong.load(), 0);
  uint32_t kept = 0;
  for (auto& handle : shown) kept += handle != 0;
  EXPECT_EQ(table->count(), kept);
}

TEST(Info, KeepsTheOrderAgainstAVector) {
  const size_t before = base::heap_in_use();
  Info* info = Info::make();
  std::vector<std::pair<std::string, std::string>> model;
  std::mt19937_64 random(2);
  for (int i = 0; i < 3000; ++i) {
    const std::string key = "key" + std::to_string(random() % 30);
    const auto at = std::find_if(model.begin(), model.end(),
                                 [&](const auto& entry) { return entry.first == key; });
    if (random() % 3) {
      const std::string value(random() % 1100, char('a' + i % 26));
      ASSERT_TRUE(info->set(key.c_str(), value.c_str()));
      const std::string kept = value.substr(0, max_info_value);
      if (at == model.end()) {
        model.emplace_back(key, kept);
      } else {
        at->second = kept;
      }
    } else {
      ASSERT_EQ(info->remove(key.c_str()), at != model.end());
      if (at != model.end()) model.erase(at);
    }
    ASSERT_EQ(size_t(info->count), model.size());
  }
  ASSERT_FALSE(model.empty());
  Info* copy = info->duplicate();
  info->release();
  for (size_t i = 0; i < model.size(); ++i) {
    EXPECT_EQ(copy->at(int(i))->key, model[i].first);
    EXPECT_STREQ(copy->find(model[i].first.c_str()), model[i].second.c_str());
  }
  EXPECT_EQ(copy->at(int(model.size())), nullptr);
  EXPECT_EQ(copy->find("no such key"), nullptr);
  copy->release();
  EXPECT_EQ(base::heap_in_use(), before);
}

TEST(Group, FindsItsMembers) {
  const size_t before = base::heap_in_use();
  for (const int size : {0, 1, 2, 7, 100, 1000}) {
    Group* group = Group::make(size);
    ASSERT_NE(group, nullptr);
    // A permutation of every third rank of the job.
    for (int i = 0; i < size; ++i) group->members[i] = uint32_t((i * 7919) % size) * 3;
    group->find_self(3);
    for (int i = 0; i < size; ++i) ASSERT_EQ(group->find(group->members[i]), i);
    EXPECT_EQ(group->find(1), undefined_rank);
    EXPECT_EQ(group->find(uint32_t(size) * 3), undefined_rank);
    EXPECT_EQ(group->self, group->find(3));
    group->retain();
    group->release();
    group->release();
  }
  EXPECT_EQ(base::heap_in_use(), before);
}

Group* group_of(std::initializer_list<uint32_t> members, uint32_t own) {
  Group* group = Group::make(int(members.size()));
  if (!group) return nullptr;
  int rank = 0;
  for (const uint32_t member : members) group->members[rank++] = member;
  group->find_self(own);
  return group;
}

TEST(Group, SharedProcessesAreFound) {
  Group* const a = group_of({7, 3, 5}, 3);
  Group* const b = group_of({4, 9, 5, 7}, 3);
  Group* const c = group_of({4, 1000}, 3);
  Group* const none = group_of({}, 3);
  ASSERT_TRUE(a && b && c && none);
  int rank = 0;
  EXPECT_EQ(find_shared(*a, *b, rank), Outcome::ok);
  EXPECT_EQ(rank, 2);
  EXPECT_EQ(find_shared(*b, *a, rank), Outcome::ok);
  EXPECT_EQ(rank, 0);
  for (const Group* other : {c, none}) {
    EXPECT_EQ(find_shared(*a, *other, rank), Outcome::ok);
    EXPECT_EQ(rank, undefined_rank);
    EXPECT_EQ(find_shared(*other, *a, rank), Outcome::ok);
    EXPECT_EQ(rank, undefined_rank);
  }
  for (Group* one : {a, b, c, none}) one->release();
}

// The one thing that algorithms know of a communicator: who is where, and which of them is here.
TEST(Team, IsWhatACommunicatorsGroupsSay) {
  const size_t before = base::heap_in_use();
  Errhandler fatal;
  fatal.kind = ErrhandlerKind::abort;
  Group* const group = group_of({7, 3, 5}, 3);
  Group* const remote = group_of({4, 9}, 3);
  ASSERT_TRUE(group && remote);
  Comm* const comm = make_comm(64, group, &fatal);
  ASSERT_NE(comm, nullptr);
  EXPECT_EQ(comm->peers, group);
  for (const Team& team : {comm->own, comm->others}) {
    EXPECT_EQ(team.size, 3);
    EXPECT_EQ(team.self, 1);
    EXPECT_EQ(team.process(0), 7u);
    EXPECT_EQ(team.process(2), 5u);
  }
  EXPECT_FALSE(comm->is_inter());
  // A communicator of two groups keeps both, and is in one of them only.
  bridge(*comm, remote, true);
  remote->release();
  EXPECT_TRUE(comm->is_inter());
  EXPECT_TRUE(comm->leads);
  EXPECT_EQ(comm->group, group);
  EXPECT_EQ(comm_context(comm->own_side_context()), comm->context);
  EXPECT_EQ(comm->own.process(comm->own.self), 3u);
  EXPECT_EQ(comm->others.size, 2);
  EXPECT_EQ(comm->others.self, undefined_rank);
  EXPECT_EQ(comm->others.process(1), 9u);
  group->release();
  release(comm);
  EXPECT_EQ(base::heap_in_use(), before);
}

}  // namespace
}  // namespace headway::objects
