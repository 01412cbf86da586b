// The wire format against well-formed lines, and against everything else.
#include "bootstrap/pmi_wire.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace headway::bootstrap::pmi {
namespace {

TEST(PmiLine, FieldsAreFound) {
  Line line;
  ASSERT_TRUE(line.parse("cmd=get_result rc=-1  msg=fine value=(vector,(0,1,4))=x"));
  std::string_view value;
  int number = 0;
  EXPECT_TRUE(line.is_command("get_result"));
  EXPECT_FALSE(line.is_command("get"));
  EXPECT_TRUE(line.get("value", value));
  EXPECT_EQ(value, "(vector,(0,1,4))=x");
  EXPECT_TRUE(line.get_number("rc", number));
  EXPECT_EQ(number, -1);
  EXPECT_FALSE(line.has("valu"));
  EXPECT_FALSE(line.get_number("msg", number));
}

TEST(PmiLine, TheMessageIsTheRest) {
  Line line;
  ASSERT_TRUE(line.parse("cmd=abort exitcode=3 message=it broke = badly  "));
  std::string_view value;
  ASSERT_TRUE(line.get("message", value));
  EXPECT_EQ(value, "it broke = badly  ");
}

TEST(PmiLine, EmptyValuesAreValues) {
  Line line;
  ASSERT_TRUE(line.parse("cmd=put key= value="));
  std::string_view value = "x";
  EXPECT_TRUE(line.get("key", value));
  EXPECT_EQ(value, "");
}

TEST(PmiLine, GarbageIsRefused) {
  Line line;
  using namespace std::literals;
  for (const std::string_view text :
       {""sv, " "sv, "cmd"sv, "=x"sv, "cmd=a b"sv, "cmd=a =b"sv, "key=value"sv, "hello world"sv,
        "cmd=a\tb=c"sv, "cmd=a\0b=c"sv, "cmd=\x7f"sv, "cmd=a\rb=c"sv, "\x01\x02\x03"sv}) {
    EXPECT_FALSE(line.parse(text)) << "text: " << text;
  }
}

TEST(PmiLine, TooManyFieldsAreRefused) {
  std::string text = "cmd=x";
  for (size_t i = 1; i < field_max; ++i) text += " k=v";
  Line line;
  EXPECT_TRUE(line.parse(text));
  EXPECT_FALSE(line.parse(text + " k=v"));
}

TEST(PmiLine, NumbersAreWholeAndFit) {
  int number = 7;
  for (const char* text : {"", "-", "1x", " 1", "1 ", "+1", "2147483648", "99999999999999999999",
                           "--1", "0x1", "1.0"}) {
    EXPECT_FALSE(Line::parse_number(text, number)) << text;
    EXPECT_EQ(number, 7) << text;
  }
  EXPECT_TRUE(Line::parse_number("2147483647", number));
  EXPECT_EQ(number, 2147483647);
  EXPECT_TRUE(Line::parse_number("-2147483647", number));
  EXPECT_EQ(number, -2147483647);
}

// Any bytes: no crash (the sanitizer builds watch), and what is accepted is well formed.
TEST(PmiLine, RandomBytes) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  const std::string letters = "cmd= \n\0ab=1\x7f\xff";
  for (int round = 0; round < 20'000; ++round) {
    std::string text;
    const size_t size = random() % 60;
    for (size_t i = 0; i < size; ++i) {
      text += random() % 4 == 0 ? static_cast<char>(random()) : letters[random() % letters.size()];
    }
    Line line;
    if (!line.parse(text)) continue;
    EXPECT_TRUE(line.has("cmd") || line.has("mcmd")) << text;
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
  }
}

TEST(PmiLineWriter, WritesWhatTheParserReads) {
  char buffer[200];
  LineWriter writer(buffer, sizeof buffer);
  writer.add("cmd", "put").add("value", "a=b").add("n", INT64_MIN).add("zero", 0);
  writer.add("message", "with spaces");
  ASSERT_TRUE(writer.finish());
  const std::string text(writer.text());
  ASSERT_EQ(text.back(), '\n');
  Line line;
  ASSERT_TRUE(line.parse(std::string_view(text).substr(0, text.size() - 1)));
  std::string_view value;
  EXPECT_TRUE(line.get("n", value));
  EXPECT_EQ(value, "-9223372036854775808");
  EXPECT_TRUE(line.get("zero", value));
  EXPECT_EQ(value, "0");
  EXPECT_TRUE(line.get("message", value));
  EXPECT_EQ(value, "with spaces");
}

TEST(PmiLineWriter, RefusesWhatWouldBreakTheLine) {
  for (const std::string& value :
       {std::string("a b"), std::string("a\nb"), std::string("a\0b", 3)}) {
    char buffer[64];
    LineWriter writer(buffer, sizeof buffer);
    writer.add("cmd", "put").add("value", value);
    EXPECT_FALSE(writer.finish()) << value;
  }
}

TEST(PmiLineWriter, RefusesWhatDoesNotFit) {
  const std::string value(100, 'v');
  for (size_t capacity = 0; capacity < 120; ++capacity) {
    std::vector<char> buffer(capacity + 1, '#');
    LineWriter writer(buffer.data(), capacity);
    writer.add("cmd", "a").add("value", value);
    EXPECT_EQ(writer.finish(), capacity >= 113) << capacity;
    EXPECT_EQ(buffer[capacity], '#') << "nothing is written behind the end";
  }
}

void feed(LineBuffer& buffer, std::string_view bytes) {
  char* const space = buffer.space();
  ASSERT_LE(bytes.size(), buffer.space_size());
  memcpy(space, bytes.data(), bytes.size());
  buffer.added(bytes.size());
}

TEST(PmiLineBuffer, CutsAStreamIntoLines) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  std::vector<std::string> lines;
  std::string stream;
  for (int i = 0; i < 2000; ++i) {
    lines.push_back(std::string(random() % 900, static_cast<char>('a' + i % 26)));
    stream += lines.back() + "\n";
  }
  LineBuffer buffer;
  size_t seen = 0;
  for (size_t at = 0; at < stream.size();) {
    static_cast<void>(buffer.space());
    const size_t size =
        std::min<size_t>({1 + random() % 3000, stream.size() - at, buffer.space_size()});
    feed(buffer, std::string_view(stream).substr(at, size));
    at += size;
    std::string_view line;
    while (buffer.next(line) == LineBuffer::Next::line) ASSERT_EQ(line, lines[seen++]);
  }
  EXPECT_EQ(seen, lines.size());
  EXPECT_EQ(buffer.held(), 0u);
}

TEST(PmiLineBuffer, ALineWithoutAnEndIsFound) {
  LineBuffer buffer;
  std::string_view line;
  feed(buffer, std::string(line_max - 1, 'x'));
  EXPECT_EQ(buffer.next(line), LineBuffer::Next::incomplete);
  feed(buffer, "x");
  EXPECT_EQ(buffer.next(line), LineBuffer::Next::too_long);
}

TEST(PmiLineBuffer, TheLongestLineFits) {
  LineBuffer buffer;
  std::string_view line;
  feed(buffer, std::string(line_max - 1, 'x') + "\n");
  ASSERT_EQ(buffer.next(line), LineBuffer::Next::line);
  EXPECT_EQ(line.size(), line_max - 1);
  EXPECT_EQ(buffer.next(line), LineBuffer::Next::incomplete);
}

}  // namespace
}  // namespace headway::bootstrap::pmi
