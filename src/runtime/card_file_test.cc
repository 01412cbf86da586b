// Files of cards, between objects of one process and between processes.
#include "runtime/card_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>

namespace headway::runtime {
namespace {

std::string made(CardFile& file) {
  char place[128] = "";
  file.make(place, sizeof place);
  return place;
}

std::string next_of(CardFile& file) {
  char text[1024] = "";
  return file.next(text, sizeof text) ? text : "none";
}

TEST(CardFile, IsReadAsItWasWritten) {
  CardFile writer, reader;
  const std::string place = made(writer);
  ASSERT_NE(place, "-");
  EXPECT_FALSE(writer.reads());
  const std::string long_one(1000, 'x');
  for (const char* text : {"first", "", long_one.c_str(), "last"}) writer.add(text);
  writer.finish();
  ASSERT_TRUE(reader.open(place.c_str()));
  EXPECT_TRUE(reader.reads());
  for (const std::string& text :
       {std::string("first"), std::string(), long_one, std::string("last")}) {
    EXPECT_EQ(next_of(reader), text);
  }
  EXPECT_EQ(next_of(reader), "none");
}

TEST(CardFile, ATextThatDoesNotFitIsNotCut) {
  CardFile writer, reader;
  const std::string place = made(writer);
  writer.add("12345678");
  writer.finish();
  ASSERT_TRUE(reader.open(place.c_str()));
  char text[16] = "";
  EXPECT_FALSE(reader.next(text, 8));
  EXPECT_TRUE(reader.next(text, 9));
  EXPECT_STREQ(text, "12345678");
}

TEST(CardFile, ManyTexts) {
  CardFile writer, reader;
  const std::string place = made(writer);
  constexpr int ranks = 20'000;
  for (int rank = 0; rank < ranks; ++rank) writer.add(std::to_string(rank).c_str());
  writer.finish();
  ASSERT_TRUE(reader.open(place.c_str()));
  for (int rank = 0; rank < ranks; ++rank) ASSERT_EQ(next_of(reader), std::to_string(rank));
}

TEST(CardFile, AReaderWaitsUntilItIsWhole) {
  CardFile writer;
  const std::string place = made(writer);
  bool opened = false;
  std::string text;
  std::thread other([&] {
    CardFile reader;
    opened = reader.open(place.c_str());
    if (opened) text = next_of(reader);
  });
  usleep(20'000);
  writer.add("late");
  usleep(20'000);
  writer.finish();
  other.join();
  EXPECT_TRUE(opened);
  EXPECT_EQ(text, "late");
}

TEST(CardFile, WhatIsGivenUpIsNotWaitedFor) {
  bool opened = true;
  std::thread other;
  {
    CardFile writer;
    const std::string place = made(writer);
    other = std::thread([&opened, place] {
      CardFile reader;
      opened = reader.open(place.c_str());
    });
    usleep(20'000);
    writer.add("half");
  }
  other.join();
  EXPECT_FALSE(opened);
}

TEST(CardFile, AnotherProcessReadsIt) {
  CardFile writer;
  const std::string place = made(writer);
  const pid_t child = fork();
  if (child == 0) {
    CardFile reader;
    _exit(reader.open(place.c_str()) && next_of(reader) == "told" ? 0 : 1);
  }
  writer.add("told");
  writer.finish();
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(CardFile, AWriterThatDiesIsNotWaitedFor) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    CardFile writer;
    char place[128] = "";
    writer.make(place, sizeof place);
    if (write(ends[1], place, sizeof place) < 0) _exit(1);
    pause();
    _exit(0);
  }
  char place[128] = "";
  ASSERT_EQ(read(ends[0], place, sizeof place), ssize_t(sizeof place));
  bool opened = true;
  std::thread other([&] {
    CardFile reader;
    opened = reader.open(place);
  });
  usleep(20'000);
  kill(child, SIGKILL);
  other.join();  // also where nobody has waited for it yet
  waitpid(child, nullptr, 0);
  EXPECT_FALSE(opened);
  close(ends[0]);
  close(ends[1]);
}

TEST(CardFile, OtherFilesAreNotTakenForIt) {
  CardFile writer;
  const std::string place = made(writer);
  writer.add("mine");
  writer.finish();
  const size_t cookie = place.rfind(':') + 1;
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const std::string here = std::to_string(getpid()) + ":";
  for (const std::string& wrong :
       {std::string("-"), std::string(), std::string("x"), here, here + "999999:1",
        place.substr(0, cookie) + "1", here + std::to_string(ends[0]) + ":1", here + "0:1",
        std::string("999999999:3:1"), std::string("-1:3:1")}) {
    CardFile reader;
    EXPECT_FALSE(reader.open(wrong.c_str())) << wrong;
    EXPECT_FALSE(reader.reads());
  }
  close(ends[0]);
  close(ends[1]);
}

TEST(CardFile, IsGoneWithItsWriterUnlessItStays) {
  std::string closed, kept;
  {
    CardFile writer, stays;
    closed = made(writer);
    kept = made(stays);
    for (CardFile* each : {&writer, &stays}) {
      each->add("text");
      each->finish();
    }
    stays.leave_open();
  }
  CardFile reader, other;
  EXPECT_FALSE(reader.open(closed.c_str()));
  EXPECT_TRUE(other.open(kept.c_str()));
}

TEST(CardFile, WhoCannotMakeItSaysSo) {
  const pid_t child = fork();
  if (child == 0) {
    const rlimit none{0, 0};
    setrlimit(RLIMIT_FSIZE, &none);
    CardFile writer;
    const bool is_none = made(writer) == "-";
    writer.add("nothing");
    writer.finish();
    _exit(is_none ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << "the limit's signal has not ended it, either";
}

TEST(CardFile, WhoseTextsDoNotFitGivesItUp) {
  const pid_t child = fork();
  if (child == 0) {
    const rlimit small{8192, 8192};
    setrlimit(RLIMIT_FSIZE, &small);
    CardFile writer, reader;
    const std::string place = made(writer);
    for (int i = 0; i < 100; ++i) writer.add(std::string(500, 'x').c_str());
    writer.finish();
    _exit(place != "-" && !reader.open(place.c_str()) ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace headway::runtime
