// PMI-1 wire format: one line a message, `cmd=name key=value ...`, as the launcher and the ranks
// exchange it. Shared by launcher/ and the client here. Thread: none of its own. Owner: whoever
// holds the buffers; views point into them. Invariant: nothing here trusts the other side; a line
// that is too long, has no '=', or holds control bytes is refused, never cut or guessed at.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace headway::bootstrap::pmi {

inline constexpr size_t line_max = 4096;  // with its newline; values are at most 1,024
inline constexpr size_t field_max = 32;

struct Field {
  std::string_view key;
  std::string_view value;
};

inline bool same_text(std::string_view a, std::string_view b) {
  return a.size() == b.size() && memcmp(a.data(), b.data(), a.size()) == 0;
}

// A parsed line; views into the text that was parsed.
class Line {
 public:
  // `text` has no newline. Returns false if it is not a message.
  [[nodiscard]] bool parse(std::string_view text) {
    count_ = 0;
    const char* at = text.data();
    const char* const end = at + text.size();
    for (const char* c = at; c != end; ++c) {
      if (static_cast<unsigned char>(*c) < 0x20 || *c == 0x7f) return false;
    }
    while (true) {
      while (at != end && *at == ' ') ++at;
      if (at == end) return count_ != 0 && (has("cmd") || has("mcmd"));
      const char* equals = at;
      while (equals != end && *equals != '=' && *equals != ' ') ++equals;
      if (equals == end || *equals == ' ' || equals == at) return false;
      if (count_ == field_max) return false;
      const std::string_view key(at, static_cast<size_t>(equals - at));
      const char* const value = equals + 1;
      const char* stop = value;
      while (stop != end && (*stop != ' ' || runs_to_end(key))) ++stop;
      fields_[count_++] = {key, std::string_view(value, static_cast<size_t>(stop - value))};
      at = stop;
    }
  }

  // The value of a key; false if the line has no such key.
  [[nodiscard]] bool get(std::string_view key, std::string_view& value) const {
    for (size_t i = 0; i < count_; ++i) {
      if (!same_text(fields_[i].key, key)) continue;
      value = fields_[i].value;
      return true;
    }
    return false;
  }

  // A decimal number that fills the whole value and fits.
  [[nodiscard]] bool get_number(std::string_view key, int& number) const {
    std::string_view text;
    return get(key, text) && parse_number(text, number);
  }

  bool has(std::string_view key) const {
    std::string_view ignored;
    return get(key, ignored);
  }

  bool is_command(std::string_view name) const {
    std::string_view value;
    return get("cmd", value) && same_text(value, name);
  }

  [[nodiscard]] static bool parse_number(std::string_view text, int& number) {
    const bool negative = !text.empty() && text[0] == '-';
    size_t i = negative ? 1 : 0;
    if (i == text.size()) return false;
    int64_t value = 0;
    for (; i < text.size(); ++i) {
      if (text[i] < '0' || text[i] > '9') return false;
      value = value * 10 + (text[i] - '0');
      if (value > INT32_MAX) return false;
    }
    number = static_cast<int>(negative ? -value : value);
    return true;
  }

 private:
  // Free text for people may hold spaces, so it is always the last field. (`msg` is not: launchers
  // put it in the middle and write underscores.)
  static bool runs_to_end(std::string_view key) {
    return same_text(key, "message") || same_text(key, "error_msg");
  }

  Field fields_[field_max];
  size_t count_ = 0;
};

// Builds a line in a caller's buffer. finish() says whether all of it fitted and is well formed.
class LineWriter {
 public:
  LineWriter(char* buffer, size_t capacity) : buffer_(buffer), capacity_(capacity) {}

  LineWriter& add(std::string_view key, std::string_view value) {
    if (used_ != 0) append(" ");
    append(key);
    append("=");
    for (const char c : value) {
      if (c == '\n' || c == '\0' || (c == ' ' && !free_text(key))) good_ = false;
    }
    append(value);
    return *this;
  }

  LineWriter& add(std::string_view key, int64_t number) {
    char digits[24];
    size_t first = sizeof digits;
    uint64_t rest = number < 0 ? 0 - static_cast<uint64_t>(number) : static_cast<uint64_t>(number);
    do {
      digits[--first] = static_cast<char>('0' + rest % 10);
      rest /= 10;
    } while (rest != 0);
    if (number < 0) digits[--first] = '-';
    return add(key, std::string_view(digits + first, sizeof digits - first));
  }

  // Adds the newline. False: the line did not fit, or a value would have broken it.
  [[nodiscard]] bool finish() {
    append("\n");
    return good_;
  }

  std::string_view text() const { return {buffer_, used_}; }

 private:
  static bool free_text(std::string_view key) {
    return same_text(key, "message") || same_text(key, "error_msg");
  }

  void append(std::string_view text) {
    if (text.size() > capacity_ - used_) {
      good_ = false;
      return;
    }
    memcpy(buffer_ + used_, text.data(), text.size());
    used_ += text.size();
  }

  char* buffer_;
  size_t capacity_;
  size_t used_ = 0;
  bool good_ = true;
};

// Cuts a stream of bytes into lines. Fill space() from the socket, tell added(), take lines.
class LineBuffer {
 public:
  enum class Next : uint8_t { line, incomplete, too_long };

  char* space() {
    if (start_ != 0) {
      memmove(data_, data_ + start_, end_ - start_);
      end_ -= start_;
      start_ = 0;
    }
    return data_ + end_;
  }
  size_t space_size() const { return sizeof data_ - end_; }  // after space()
  void added(size_t bytes) { end_ += bytes; }
  size_t held() const { return end_ - start_; }
  void clear() { start_ = end_ = 0; }

  // `line` excludes the newline and stays valid until space() or the next call.
  Next next(std::string_view& line) {
    const char* const first = data_ + start_;
    const void* const newline = memchr(first, '\n', end_ - start_);
    if (!newline) return held() == sizeof data_ ? Next::too_long : Next::incomplete;
    const size_t size = static_cast<size_t>(static_cast<const char*>(newline) - first);
    line = std::string_view(first, size);
    start_ += size + 1;
    return Next::line;
  }

 private:
  char data_[line_max] = {};
  size_t start_ = 0;
  size_t end_ = 0;
};

}  // namespace headway::bootstrap::pmi
