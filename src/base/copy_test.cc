// Copies of pieces: every length and alignment, and nothing beside the place.
#include "base/copy.h"

#include <gtest/gtest.h>

#include <vector>

namespace headway::base {
namespace {

char byte_at(size_t i) { return char(i * 7 + i / 256); }

TEST(Copy, EveryLengthAndNothingBeside) {
  find_string_copy();
  std::vector<char> source(3 * 4096), place(3 * 4096);
  for (size_t i = 0; i < source.size(); ++i) source[i] = byte_at(i);
  for (const size_t from : {0, 1, 15, 63, 64, 200}) {
    for (const size_t to : {64, 65, 79, 127, 128, 300, 4096 + 64}) {
      for (size_t n = 0; n < 4200; n += n < 1200 ? 1 : 97) {
        memset(place.data(), '.', place.size());
        copy_piece(place.data() + to, source.data() + from, n);
        ASSERT_EQ(0, memcmp(place.data() + to, source.data() + from, n)) << n;
        ASSERT_EQ(place[to - 1], '.');
        ASSERT_EQ(place[to + n], '.') << n << " bytes from " << from << " to " << to;
      }
    }
  }
}

// Where two addresses are close in the last twelve bits, it would be slow.
TEST(Copy, TheStringInstructionIsNotUsedWhereItIsSlow) {
  find_string_copy();
  alignas(4096) static char memory[4 * 4096];
  char* const from = memory;
  char* const to = memory + 2 * 4096;
  for (const size_t apart : {1, 16, 64, 255}) EXPECT_FALSE(string_copy(to + apart, from, 4096));
  for (const size_t apart : {0, 256, 2048, 4095}) {
    for (size_t i = 0; i < 4096; ++i) from[i] = byte_at(i + apart);
    memset(to, '.', 2 * 4096);
    if (string_copy(to + apart, from, 4096)) {
      EXPECT_EQ(0, memcmp(to + apart, from, 4096));
    }
  }
}

}  // namespace
}  // namespace headway::base
