// What srun tells of its tasks' ends.
#include "srun_codes.h"

#include <gtest/gtest.h>

namespace headway::launcher {
namespace {

int code_of(std::string_view text) {
  SrunCodes codes;
  codes.take(text);
  return codes.code();
}

TEST(SrunCodes, OfATaskAndOfSeveral) {
  EXPECT_EQ(code_of("srun: error: h1: task 7: Exited with exit code 5\n"), 5);
  EXPECT_EQ(code_of("srun: error: h1: tasks 1-3,5: Exited with exit code 9\n"), 9);
}

TEST(SrunCodes, OfSignals) {
  EXPECT_EQ(code_of("srun: error: h1: task 7: Segmentation fault\n"), 139);
  EXPECT_EQ(code_of("srun: error: h1: task 7: Segmentation fault (core dumped)\n"), 139);
  EXPECT_EQ(code_of("srun: error: h1: task 0: Aborted\n"), 134);
}

TEST(SrunCodes, TheFirstCountsThatSrunHasNotEndedItself) {
  EXPECT_EQ(code_of("srun: error: h0: task 1: Terminated\n"
                    "srun: error: h0: task 2: Killed\n"
                    "srun: error: h0: task 3: Exited with exit code 143\n"
                    "srun: error: h1: task 7: Exited with exit code 5\n"
                    "srun: error: h2: task 8: Exited with exit code 6\n"),
            5);
}

TEST(SrunCodes, OtherLinesSayNothing) {
  EXPECT_EQ(code_of(""), 0);
  EXPECT_EQ(code_of("srun: error: h0: task 1: Killed\n"), 0);
  EXPECT_EQ(code_of("a program: task 7: Exited with exit code 5\n"), 0);
  EXPECT_EQ(code_of("srun: Job step aborted: Waiting up to 32 seconds for job step to finish.\n"),
            0);
  EXPECT_EQ(code_of("srun: error: Unable to create step\n"), 0);
  EXPECT_EQ(code_of("srun: error: h1: task 7: Exited with exit code 5"), 0);  // not yet a line
}

TEST(SrunCodes, InPiecesOfAnySize) {
  const std::string_view text =
      "slurmstepd: error: *** STEP 1.0 ON h0 CANCELLED ***\n"
      "srun: error: h1: task 7: Exited with exit code 5\n";
  for (size_t size = 1; size < text.size(); ++size) {
    SrunCodes codes;
    for (size_t at = 0; at < text.size(); at += size) codes.take(text.substr(at, size));
    EXPECT_EQ(codes.code(), 5) << size;
  }
}

TEST(SrunCodes, AVeryLongLineIsForgotten) {
  SrunCodes codes;
  codes.take(std::string(1 << 20, 'x'));
  codes.take("\nsrun: error: h1: task 7: Exited with exit code 5\n");
  EXPECT_EQ(codes.code(), 5);
}

}  // namespace
}  // namespace headway::launcher
