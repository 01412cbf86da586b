#include "output.h"

#include <algorithm>
#include <cerrno>
#include <poll.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "say.h"

namespace headway::launcher {
namespace {

// A writable pipe takes this much without waiting.
constexpr size_t safe_chunk = 4096;
constexpr size_t read_size = 64 * 1024;

// Of the moment in which we write the line, in milliseconds.
std::string time_of_day() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  tm parts;
  localtime_r(&now.tv_sec, &parts);
  char text[64];
  const size_t size = strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &parts);
  return std::string(text, size) + format(".%03d ", static_cast<int>(now.tv_nsec / 1'000'000));
}

}  // namespace

Sink::Sink(int fd, std::string name) : fd_(fd), name_(std::move(name)) {
  terminal_ = isatty(fd) == 1;
  struct stat status;
  waits_ = fstat(fd, &status) == 0 && !S_ISREG(status.st_mode);
}

bool Sink::can_write() const {
  if (!waits_) return true;
  pollfd entry = {fd_, POLLOUT, 0};
  return poll(&entry, 1, 0) > 0;
}

void Sink::write(std::string_view text, const void* writer) {
  if (text.empty()) return;
  if (reader_gone_ || error_ != 0) {
    lost_ += text.size();
    return;
  }
  if (open_line_ && open_line_ != writer) pending_ += '\n';
  pending_ += text;
  open_line_ = text.back() == '\n' ? nullptr : writer;
  flush();
}

void Sink::flush() {
  while (pending() && can_write()) {
    const size_t rest = pending_.size() - start_;
    const size_t size = waits_ ? std::min(rest, safe_chunk) : rest;
    const ssize_t written = ::write(fd_, pending_.data() + start_, size);
    if (written > 0) {
      start_ += static_cast<size_t>(written);
      continue;
    }
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EAGAIN) break;
    if (written < 0 && errno == EPIPE) {
      reader_gone_ = true;
    } else {
      error_ = written < 0 ? errno : EIO;
    }
    lost_ += rest;
    start_ = pending_.size();
  }
  if (!pending()) {
    pending_.clear();
    start_ = 0;
  } else if (start_ > full_mark) {
    pending_.erase(0, start_);
    start_ = 0;
  }
}

void Stream::open(int fd, Sink* sink, std::string tag, bool timestamp) {
  fd_ = fd;
  sink_ = sink;
  tag_ = std::move(tag);
  timestamp_ = timestamp;
}

Stream::State Stream::read_some(int64_t now_ms) {
  static char buffer[read_size];
  const ssize_t got = read(fd_, buffer, sizeof buffer);
  if (got > 0) {
    take({buffer, static_cast<size_t>(got)}, now_ms);
    return State::more_later;
  }
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return State::more_later;
  return State::ended;  // a terminal whose other side is closed gives EIO
}

void Stream::take(std::string_view bytes, int64_t now_ms) {
  const size_t newline = bytes.rfind('\n');
  if (newline == std::string_view::npos) {
    if (partial_.empty()) partial_since_ = now_ms;
    partial_ += bytes;
    // A line of this size is no line; holding it back would only fill the memory.
    if (partial_.size() > longest_line) {
      put(partial_);
      partial_.clear();
    }
    return;
  }
  std::string_view whole = bytes.substr(0, newline + 1);
  if (!partial_.empty()) {
    const size_t end = whole.find('\n') + 1;
    partial_ += whole.substr(0, end);
    put(partial_);
    partial_.clear();
    whole.remove_prefix(end);
  }
  put(whole);
  partial_ = bytes.substr(newline + 1);
  partial_since_ = now_ms;
}

// Writes text that ends a line or is known to be shown unfinished, in one piece.
void Stream::put(std::string_view text) {
  if (text.empty()) return;
  if (tag_.empty() && !timestamp_) {
    sink_->write(text, this);
    return;
  }
  const std::string head = (timestamp_ ? time_of_day() : "") + tag_;
  std::string tagged;
  tagged.reserve(text.size() + head.size() * 8);
  while (!text.empty()) {
    const size_t newline = text.find('\n');
    const size_t size = newline == std::string_view::npos ? text.size() : newline + 1;
    if (!line_begun_) tagged += head;
    tagged += text.substr(0, size);
    line_begun_ = newline == std::string_view::npos;
    text.remove_prefix(size);
  }
  sink_->write(tagged, this);
}

int64_t Stream::prompt_due() const {
  return sink_ && sink_->is_terminal() && !partial_.empty() ? partial_since_ + prompt_delay_ms : -1;
}

void Stream::show_prompt(int64_t now_ms) {
  const int64_t due = prompt_due();
  if (due < 0 || now_ms < due) return;
  put(partial_);
  partial_.clear();
}

void Stream::finish() {
  if (!is_open()) return;
  put(partial_);
  partial_.clear();
  close(fd_);
  fd_ = -1;
}

}  // namespace headway::launcher
