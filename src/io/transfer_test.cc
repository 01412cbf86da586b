// Disk and transfer: a file in a temporary folder against an array of bytes; short files, gaps in
// memory and in the file, and conversion. Seeds as in view_test.cc.
#include "io/transfer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "datatypes/type.h"
#include "io/ahead.h"
#include "settings/abi_constants.h"

namespace headway::io {
namespace {

using datatypes::BasicType;
using datatypes::Form;
using datatypes::Integers;
using datatypes::Type;

const Type& byte() { return datatypes::predefined(BasicType::byte); }

class TemporaryFile : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/headway-io-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder_ = name;
    path_ = folder_ + "/file";
    ASSERT_FALSE(disk_.open(path_.c_str(), O_RDWR | O_CREAT, 0600));
  }
  void TearDown() override {
    EXPECT_FALSE(disk_.close());
    (void)unlink(path_.c_str());
    (void)rmdir(folder_.c_str());
  }
  std::vector<char> contents() const {
    std::vector<char> all;
    int64_t size = 0;
    EXPECT_FALSE(disk_.size(size));
    all.resize(size_t(size));
    uint64_t got = 0;
    EXPECT_FALSE(disk_.read(0, all.data(), all.size(), got));
    EXPECT_EQ(got, all.size());
    return all;
  }

  std::string folder_, path_;
  Disk disk_;
};

TEST_F(TemporaryFile, ReadsEndWhereTheFileEnds) {
  const char text[] = "0123456789";
  ASSERT_FALSE(disk_.write(5, text, 10));
  char found[20] = {};
  uint64_t got = 0;
  EXPECT_FALSE(disk_.read(10, found, sizeof found, got));
  EXPECT_EQ(got, 5u);
  EXPECT_EQ(std::string(found, 5), "56789");
  EXPECT_FALSE(disk_.read(1000, found, sizeof found, got));
  EXPECT_EQ(got, 0u);
}

TEST_F(TemporaryFile, PlacesThatNoFileHas) {
  uint64_t got = 7;
  char one = 0;
  EXPECT_EQ(disk_.read(-1, &one, 1, got).error, EOVERFLOW);
  EXPECT_EQ(got, 0u);
  EXPECT_EQ(disk_.read(INT64_MAX, &one, 1, got).error, EOVERFLOW);
  const Failure failed = disk_.write(INT64_MAX, &one, 1);
  EXPECT_EQ(failed.error, EFBIG);
  EXPECT_EQ(failed.offset, INT64_MAX);
}

TEST_F(TemporaryFile, ALimitIsToldWithItsPlace) {
  signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = 1000;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::vector<char> data(3000, 'x');
  const Failure failed = disk_.write(0, data.data(), data.size());
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(failed.error, EFBIG);
  EXPECT_EQ(failed.offset, 1000) << "what could be written is written";
  EXPECT_EQ(contents().size(), 1000u);
}

TEST_F(TemporaryFile, SizesAndSpace) {
  ASSERT_FALSE(disk_.set_size(12345));
  EXPECT_EQ(contents().size(), 12345u);
  ASSERT_FALSE(disk_.reserve(1000));
  EXPECT_EQ(contents().size(), 12345u) << "a file is not made shorter by it";
  ASSERT_FALSE(disk_.reserve(20000));
  EXPECT_EQ(contents().size(), 20000u);
  EXPECT_EQ(disk_.reserve(INT64_MAX).error, ENOSPC);
}

TEST_F(TemporaryFile, WhatIsNoFileIsRefused) {
  Disk other;
  EXPECT_EQ(other.open(folder_.c_str(), O_RDONLY, 0).error, EISDIR);
  const std::string pipe = folder_ + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(other.open(pipe.c_str(), O_RDONLY, 0).error, ESPIPE);
  EXPECT_FALSE(other.is_open());
  unlink(pipe.c_str());
  EXPECT_EQ(other.open((folder_ + "/none").c_str(), O_RDONLY, 0).error, ENOENT);
  EXPECT_EQ(other.open((path_ + "/below").c_str(), O_RDONLY, 0).error, ENOTDIR);
  EXPECT_EQ(other.open(std::string(5000, 'n').c_str(), O_RDONLY, 0).error, ENAMETOOLONG);
}

TEST_F(TemporaryFile, LocksShutOutOtherDescriptors) {
  Disk other;
  ASSERT_FALSE(other.open(path_.c_str(), O_RDWR, 0));
  ASSERT_FALSE(disk_.lock(0, 10, true));
  // Beside it is free; it itself would wait for ever, and is free again afterwards.
  EXPECT_FALSE(other.lock(10, 20, true));
  EXPECT_FALSE(disk_.unlock(0, 10));
  EXPECT_FALSE(other.lock(0, 10, true));
  EXPECT_FALSE(other.close());
}

// A type of random runs, `forward`: as a file type, else in any order as memory may have them.
Type* random_type(std::mt19937_64& random, bool forward, int64_t& span) {
  std::vector<int64_t> lengths, places;
  int64_t at = int64_t(random() % 4);
  for (uint64_t runs = 1 + random() % 5; runs > 0; --runs) {
    lengths.push_back(int64_t(1 + random() % 40));
    places.push_back(at);
    at += lengths.back() + int64_t(random() % 30);
  }
  if (!forward && lengths.size() > 1 && random() % 2) {
    std::swap(lengths.front(), lengths.back());
    std::swap(places.front(), places.back());
    lengths.front() = lengths.back() = std::min(lengths.front(), lengths.back());
  }
  Type *inner = nullptr, *type = nullptr;
  EXPECT_EQ(datatypes::make_hindexed(Form::large, int64_t(lengths.size()), Integers(lengths.data()),
                                     Integers(places.data()), byte(), inner),
            Outcome::ok);
  span = at + 1;
  EXPECT_EQ(datatypes::make_resized(Form::large, *inner, 0, span, type), Outcome::ok);
  inner->release();
  return type;
}

TEST_F(TemporaryFile, RandomViewsAgainstAnArray) {
  const char* given = getenv("HEADWAY_TEST_SEED");
  const uint64_t first = given ? strtoull(given, nullptr, 0) : 1;
  std::vector<char> model;
  for (uint64_t seed = first; seed < first + 150; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    int64_t file_span = 0, span = 0;
    Type* file_type = random_type(random, true, file_span);
    Type* type = random_type(random, false, span);
    View* view = View::make(int64_t(random() % 300), byte(), *file_type, native, 1, *file_type);
    ASSERT_NE(view, nullptr);
    const uint64_t count = random() % 60, at = random() % 500;
    std::vector<char> memory(size_t(span) * (count + 1));
    for (char& one : memory) one = char(random());
    const Data data{memory.data(), count, type, 0};
    const uint64_t bytes = data.bytes();
    uint64_t moved = 0;
    if (random() % 2) {
      ASSERT_FALSE(write_data(disk_, *view, at, data, moved));
      EXPECT_EQ(moved, bytes);
      std::vector<char> packed(bytes);
      datatypes::pack(*type, memory.data(), count, 0, packed.data(), bytes);
      for (uint64_t i = 0; i < bytes; ++i) {
        const auto place = size_t(view->place_of(at + i));
        if (model.size() <= place) model.resize(place + 1, '\0');
        model[place] = packed[i];
      }
      EXPECT_EQ(contents(), model);
    } else {
      std::vector<char> wanted = memory, packed;
      for (uint64_t i = 0; i < bytes; ++i) {
        const auto place = size_t(view->place_of(at + i));
        if (place >= model.size()) break;
        packed.push_back(model[place]);
      }
      datatypes::unpack(*type, wanted.data(), count, 0, packed.data(), packed.size());
      ASSERT_FALSE(read_data(disk_, *view, at, data, moved));
      EXPECT_EQ(moved, packed.size());
      EXPECT_EQ(memory, wanted);
    }
    view->release();
    type->release();
    file_type->release();
  }
}

// Pages whose writes are told by a signal: the program may write there, the system may not.
char* followed_pages;
constexpr size_t followed_bytes = 8 * 4096;
void let_write(int) { (void)mprotect(followed_pages, followed_bytes, PROT_READ | PROT_WRITE); }

TEST_F(TemporaryFile, MemoryThatTheSystemCannotReach) {
  std::vector<char> wanted(3 * 4096 + 77);
  for (size_t i = 0; i < wanted.size(); ++i) wanted[i] = char(i * 7);
  ASSERT_FALSE(disk_.write(0, wanted.data(), wanted.size()));
  void* pages = mmap(nullptr, followed_bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(pages, MAP_FAILED);
  followed_pages = static_cast<char*>(pages);
  struct sigaction action {
  }, before{};
  action.sa_handler = let_write;
  ASSERT_EQ(sigaction(SIGSEGV, &action, &before), 0);
  View* view = View::make(0, byte(), byte(), native, 1, byte());
  uint64_t moved = 0;
  EXPECT_FALSE(read_data(disk_, *view, 0, {pages, followed_bytes, &byte(), 0}, moved));
  ASSERT_EQ(sigaction(SIGSEGV, &before, nullptr), 0);
  EXPECT_EQ(moved, wanted.size());
  EXPECT_EQ(memcmp(pages, wanted.data(), wanted.size()), 0);
  view->release();
  munmap(pages, followed_bytes);
}

TEST_F(TemporaryFile, External32IsBigEndianInTheFile) {
  const Type& type = datatypes::predefined(BasicType::int32_t);
  const Type* there = nullptr;
  ASSERT_EQ(make_file_type(type, external32, there), Outcome::ok);
  EXPECT_EQ(there->size(), 4u);
  View* view = View::make(0, type, type, external32, 4, *there);
  int32_t numbers[] = {1, 0x01020304, -2};
  uint64_t moved = 0;
  ASSERT_FALSE(write_data(disk_, *view, 0, {numbers, 3, &type, 0}, moved));
  EXPECT_EQ(moved, sizeof numbers);
  const std::vector<char> wanted = {0, 0, 0, 1, 1, 2, 3, 4, '\xff', '\xff', '\xff', '\xfe'};
  EXPECT_EQ(contents(), wanted);
  int32_t back[5] = {};
  ASSERT_FALSE(read_data(disk_, *view, 0, {back, 5, &type, 0}, moved));
  EXPECT_EQ(moved, sizeof numbers) << "only what is there";
  EXPECT_EQ(memcmp(back, numbers, sizeof numbers), 0);
  view->release();
  there->release();
}

TEST(Ahead, ThreeReadsOfOneDistanceForetellTheNext) {
  constexpr int64_t length = 100'000, step = 1'000'000;
  Ahead ahead;
  int64_t next = -1;
  EXPECT_FALSE(ahead.note(0, length, next));
  EXPECT_FALSE(ahead.note(step, step + length, next));
  EXPECT_TRUE(ahead.note(2 * step, 2 * step + length, next));
  EXPECT_EQ(next, 3 * step);
  EXPECT_FALSE(ahead.note(2 * step + 5, 2 * step + 5 + length, next)) << "another distance";
  EXPECT_FALSE(ahead.note(0, length, next));
  EXPECT_FALSE(ahead.note(0, length, next)) << "the same place";
}

TEST(Ahead, ShortReadsAndThoseThatTouchAreLeftToTheSystem) {
  Ahead ahead;
  int64_t next = -1;
  for (int64_t at = 0; at < 10; ++at) EXPECT_FALSE(ahead.note(at * 1000, at * 1000 + 10, next));
  Ahead touching;
  for (int64_t at = 0; at < 10; ++at) {
    EXPECT_FALSE(touching.note(at * 100'000, (at + 1) * 100'000, next));
  }
}

TEST(FileType, ElementsCountTheFilesSizes) {
  // MPI_LONG has 8 bytes here and 4 in external32: a vector's stride shrinks, an hvector's does
  // not.
  const Type& type = datatypes::predefined(BasicType::long_);
  Type *vector = nullptr, *hvector = nullptr;
  ASSERT_EQ(datatypes::make_vector(Form::narrow, 3, 2, 5, type, vector), Outcome::ok);
  ASSERT_EQ(datatypes::make_hvector(Form::narrow, 3, 2, 40, type, hvector), Outcome::ok);
  const Type *in_elements = nullptr, *in_bytes = nullptr;
  ASSERT_EQ(make_file_type(*vector, external32, in_elements), Outcome::ok);
  ASSERT_EQ(make_file_type(*hvector, external32, in_bytes), Outcome::ok);
  EXPECT_EQ(in_elements->size(), 24u);
  EXPECT_EQ(in_elements->extent(), 2 * 5 * 4 + 8);
  EXPECT_EQ(in_bytes->size(), 24u);
  EXPECT_EQ(in_bytes->extent(), 2 * 40 + 8);
  in_elements->release();
  in_bytes->release();
  vector->release();
  hvector->release();
}

TEST(FileType, EveryConstructorKeepsItsShape) {
  // Of MPI_INT, which is as long in external32: the file's type is laid out as the memory's.
  const Type& type = datatypes::predefined(BasicType::int32_t);
  const int64_t lengths[] = {2, 1, 3}, places[] = {0, 4, 7}, bytes[] = {0, 16, 28};
  const int64_t sizes[] = {4, 6}, parts[] = {2, 3}, starts[] = {1, 2};
  const int kinds[] = {abi::k_DISTRIBUTE_BLOCK, abi::k_DISTRIBUTE_CYCLIC};
  const int arguments[] = {abi::k_DISTRIBUTE_DFLT_DARG, 2}, processes[] = {2, 2};
  const Type* children[] = {&type, &type, &type};
  for (const Form form : {Form::narrow, Form::large}) {
    std::vector<Type*> made(11, nullptr);
    std::vector<Outcome> outcomes = {
        datatypes::make_contiguous(form, 5, type, made[0]),
        datatypes::make_vector(form, 3, 2, 4, type, made[1]),
        datatypes::make_indexed(form, 3, Integers(lengths), Integers(places), type, made[2]),
        datatypes::make_hindexed(form, 3, Integers(lengths), Integers(bytes), type, made[3]),
        datatypes::make_indexed_block(form, 3, 2, Integers(places), type, made[4]),
        datatypes::make_hindexed_block(form, 3, 2, Integers(bytes), type, made[5]),
        datatypes::make_struct(form, 3, Integers(lengths), Integers(bytes), children, made[6]),
        datatypes::make_resized(form, type, 0, 12, made[7]),
        datatypes::make_subarray(form, 2, Integers(sizes), Integers(parts), Integers(starts),
                                 abi::k_ORDER_FORTRAN, type, made[8]),
        datatypes::make_darray(form, 4, 1, 2, Integers(sizes), kinds, arguments, processes,
                               abi::k_ORDER_C, type, made[9])};
    outcomes.push_back(datatypes::make_dup(*made[1], made[10]));
    for (const Outcome outcome : outcomes) ASSERT_EQ(outcome, Outcome::ok);
    for (Type* one : made) {
      const Type* there = nullptr;
      ASSERT_EQ(make_file_type(*one, external32, there), Outcome::ok);
      EXPECT_EQ(there->size(), one->size());
      EXPECT_EQ(there->extent(), one->extent());
      EXPECT_EQ(there->true_lb(), one->true_lb());
      EXPECT_EQ(there->true_extent(), one->true_extent());
      there->release();
      one->release();
    }
  }
}

}  // namespace
}  // namespace headway::io
