// The ranks' output on its way to ours: whole lines, never mixed. Thread: the launcher's only one,
// which never blocks here: what a slow reader does not take waits in the Sink, and a full Sink
// makes the job stop reading from ranks. Owner: Job.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace headway::launcher {

// Where output goes: our stdout or stderr, or a file of --output-dir.
class Sink {
 public:
  Sink() = default;
  Sink(int fd, std::string name);
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;

  // Takes text of one writer. A line that another writer left open is closed first.
  void write(std::string_view text, const void* writer);
  // Writes what can be written without waiting.
  void flush();

  int fd() const { return fd_; }
  const std::string& name() const { return name_; }
  bool is_terminal() const { return terminal_; }
  bool pending() const { return start_ != pending_.size(); }
  bool full() const { return pending_.size() - start_ > full_mark; }
  bool reader_gone() const { return reader_gone_; }

  // Output that could not be written, and why (errno); the first failure counts.
  uint64_t lost_bytes() const { return lost_; }
  int error() const { return error_; }

 private:
  static constexpr size_t full_mark = 1 << 20;
  bool can_write() const;

  int fd_ = -1;
  std::string name_;
  bool terminal_ = false;
  bool waits_ = false;  // a pipe, socket or terminal, which can make a writer wait
  bool reader_gone_ = false;
  std::string pending_;
  size_t start_ = 0;
  const void* open_line_ = nullptr;  // who wrote the last, unfinished line
  uint64_t lost_ = 0;
  int error_ = 0;
};

// One output stream of one rank.
class Stream {
 public:
  Stream() = default;

  // `fd` is non-blocking and becomes ours. `tag` starts each line, behind the time if it is wanted.
  void open(int fd, Sink* sink, std::string tag, bool timestamp);

  enum class State { more_later, ended };
  // Reads what is there, up to a fair share.
  State read_some(int64_t now_ms);
  // On a terminal, a prompt without a newline is shown after a moment.
  void show_prompt(int64_t now_ms);
  // When to call show_prompt, or -1.
  int64_t prompt_due() const;
  // Writes the last line, which may lack its newline, and closes.
  void finish();

  int fd() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  Sink* sink() const { return sink_; }

 private:
  static constexpr size_t longest_line = 1 << 20;
  static constexpr int64_t prompt_delay_ms = 100;
  void take(std::string_view bytes, int64_t now_ms);
  void put(std::string_view text);

  int fd_ = -1;
  Sink* sink_ = nullptr;
  std::string tag_;
  bool timestamp_ = false;
  std::string partial_;  // the begun line
  int64_t partial_since_ = 0;
  bool line_begun_ = false;  // part of the line has been shown already, with its tag
};

}  // namespace headway::launcher
