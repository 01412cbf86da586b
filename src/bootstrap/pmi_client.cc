#include "bootstrap/pmi_client.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/descriptors.h"

namespace headway::bootstrap {
namespace {

// How long the launcher may take to answer a question that needs no other rank.
constexpr int answer_timeout_ms = 120'000;
constexpr int no_timeout = -1;
// Other launchers kill all when they hear of an abort, and drop what ranks have written last. Seen
// with Hydra, in one end of six.
constexpr timespec launcher_reads_first{0, 100'000'000};

int64_t now_ms() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<int64_t>(now.tv_sec) * 1000 + now.tv_nsec / 1'000'000;
}

// Waits until `fd` is ready. False after the time-out (from `since`) or on an error.
bool wait_ready(int fd, short events, int timeout_ms, int64_t since) {
  while (true) {
    int left = no_timeout;
    if (timeout_ms != no_timeout) {
      left = static_cast<int>(timeout_ms - (now_ms() - since));
      if (left <= 0) return false;
    }
    pollfd entry = {fd, events, 0};
    const int ready = poll(&entry, 1, left);
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
  }
}

bool copy_text(std::string_view text, char* out, size_t capacity) {
  if (text.size() >= capacity) return false;
  memcpy(out, text.data(), text.size());
  out[text.size()] = '\0';
  return true;
}

bool is_own_name(const char* host) {
  char own[256];
  return gethostname(own, sizeof own) == 0 && memchr(own, '\0', sizeof own) && !strcmp(host, own);
}

// The addresses behind a host and a port. A launcher may tell the name of this machine, which need
// not be known to any resolver; it is reached here all the same.
addrinfo* look_up_host(const char* host, const char* port) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  if (getaddrinfo(host, port, &hints, &list) == 0) return list;
  if (is_own_name(host) && getaddrinfo(nullptr, port, &hints, &list) == 0) return list;
  return nullptr;
}

// Connects a TCP socket to one of the addresses behind host:port or [address]:port; -1 if none
// answers.
int connect_to(const char* host_and_port) {
  char text[256];
  const char* const colon = strrchr(host_and_port, ':');
  if (!colon ||
      !copy_text({host_and_port, static_cast<size_t>(colon - host_and_port)}, text, sizeof text)) {
    return -1;
  }
  char* host = text;
  if (const size_t length = strlen(text); length > 2 && text[0] == '[' && text[length - 1] == ']') {
    text[length - 1] = '\0';
    ++host;
  }
  addrinfo* const list = look_up_host(host, colon + 1);
  int fd = -1;
  for (const addrinfo* a = list; a && fd < 0; a = a->ai_next) {
    fd = base::with_room(
        [&] { return socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol); });
    if (fd < 0) continue;
    if (connect(fd, a->ai_addr, a->ai_addrlen) == 0) continue;
    ::close(fd);
    fd = -1;
  }
  if (list) freeaddrinfo(list);
  return fd;
}

}  // namespace

Outcome PmiClient::join(int fd, PmiHello& hello) {
  fd_ = fd;
  fcntl(fd, F_SETFD, FD_CLOEXEC);
  return greet(hello);
}

Outcome PmiClient::join_at(const char* host_and_port, int id, PmiHello& hello) {
  fd_ = connect_to(host_and_port);
  if (fd_ < 0) return Outcome::launcher_lost;
  char text[64];
  pmi::LineWriter question(text, sizeof text);
  question.add("cmd", "initack").add("pmiid", id);
  pmi::Line answer;
  Outcome outcome = ask(question, "initack", answer);
  // Size, rank and a debug flag follow unasked, each in a line of its own.
  for (int settings = 0; settings < 3 && outcome == Outcome::ok; ++settings) {
    outcome = receive(answer);
    if (outcome != Outcome::ok) break;
    if (!answer.is_command("set")) return broken(Outcome::bad_reply);
    int number;
    if (answer.get_number("size", number)) hello.size = number;
    if (answer.get_number("rank", number)) hello.rank = number;
  }
  if (outcome != Outcome::ok) return outcome;
  if (hello.rank < 0 || hello.size <= hello.rank) return broken(Outcome::bad_reply);
  return greet(hello);
}

Outcome PmiClient::greet(PmiHello& hello) {
  pmi::Line answer;
  std::string_view text;
  Outcome outcome =
      ask_plain("cmd=init pmi_version=1 pmi_subversion=1\n", "response_to_init", answer);
  if (outcome != Outcome::ok) return outcome;
  ours_ = answer.has("headway");

  outcome = ask_plain("cmd=get_maxes\n", "maxes", answer);
  if (outcome != Outcome::ok) return outcome;
  int limit;
  if (answer.get_number("keylen_max", limit) && limit > 0 && size_t(limit) < key_limit_) {
    key_limit_ = static_cast<size_t>(limit);
  }
  if (answer.get_number("vallen_max", limit) && limit > 0 && size_t(limit) < value_limit_) {
    value_limit_ = static_cast<size_t>(limit);
  }

  outcome = ask_plain("cmd=get_my_kvsname\n", "my_kvsname", answer);
  if (outcome != Outcome::ok) return outcome;
  if (!answer.get("kvsname", text) || text.empty() ||
      !copy_text(text, kvs_name_, sizeof kvs_name_)) {
    return broken(Outcome::bad_reply);
  }

  // The last two are conveniences: a launcher that does not know them is no reason to stop.
  outcome = ask_plain("cmd=get_appnum\n", "appnum", answer);
  if (outcome == Outcome::ok && !answer.get_number("appnum", hello.appnum)) hello.appnum = 0;
  if (outcome != Outcome::ok && outcome != Outcome::refused) return outcome;
  outcome = ask_plain("cmd=get_universe_size\n", "universe_size", answer);
  hello.universe_size = hello.size;  // also where the launcher says -1, "not known"
  if (outcome == Outcome::ok && answer.get_number("size", limit) && limit > 0) {
    hello.universe_size = limit;
  }
  return outcome == Outcome::refused ? Outcome::ok : outcome;
}

Outcome PmiClient::put(const char* key, const char* value) {
  const size_t value_size = strlen(value);
  if (strlen(key) >= key_limit_ || value_size >= value_limit_) return Outcome::too_long;
  char text[pmi::line_max];
  pmi::LineWriter question(text, sizeof text);
  question.add("cmd", "put").add("kvsname", kvs_name_).add("key", key);
  question.add("value", {value, value_size});
  pmi::Line answer;
  return ask(question, "put_result", answer);
}

Outcome PmiClient::get(const char* key, char* value, size_t capacity) {
  if (strlen(key) >= key_limit_) return Outcome::too_long;
  char text[pmi::line_max];
  pmi::LineWriter question(text, sizeof text);
  question.add("cmd", "get").add("kvsname", kvs_name_).add("key", key);
  return ask_for(question, "get_result", "value", value, capacity);
}

Outcome PmiClient::barrier() {
  pmi::Line answer;
  return ask_plain("cmd=barrier_in\n", "barrier_out", answer);
}

Outcome PmiClient::publish(const char* service, const char* port) {
  char text[pmi::line_max];
  pmi::LineWriter question(text, sizeof text);
  question.add("cmd", "publish_name").add("service", service).add("port", port);
  pmi::Line answer;
  return ask(question, "publish_result", answer);
}

Outcome PmiClient::look_up(const char* service, char* port, size_t capacity) {
  char text[pmi::line_max];
  pmi::LineWriter question(text, sizeof text);
  question.add("cmd", "lookup_name").add("service", service);
  return ask_for(question, "lookup_result", "port", port, capacity);
}

Outcome PmiClient::unpublish(const char* service) {
  char text[pmi::line_max];
  pmi::LineWriter question(text, sizeof text);
  question.add("cmd", "unpublish_name").add("service", service);
  pmi::Line answer;
  return ask(question, "unpublish_result", answer);
}

void PmiClient::leave() {
  constexpr std::string_view line = "cmd=headway_leave\n";
  if (!ours_) return finalize();
  static_cast<void>(send(line.data(), line.size()));
}

void PmiClient::come_back() {
  constexpr std::string_view line = "cmd=headway_return\n";
  if (ours_) static_cast<void>(send(line.data(), line.size()));
}

void PmiClient::abort(int exit_code, const char* message) {
  char clean[512];
  size_t size = 0;
  for (; message[size] && size < sizeof clean; ++size) {
    const unsigned char c = static_cast<unsigned char>(message[size]);
    clean[size] = c < 0x20 || c == 0x7f ? ' ' : message[size];
  }
  char text[pmi::line_max];
  pmi::LineWriter line(text, sizeof text);
  // Our mpiexec tells the code as it was given, and never ends with 0; others take it as it is.
  line.add("cmd", "abort").add("exitcode", exit_code == 0 && !ours_ ? 1 : exit_code);
  // Other launchers cut every value at the first space, so the story is for ours alone.
  if (ours_ && size != 0) line.add("message", {clean, size});
  if (!ours_) nanosleep(&launcher_reads_first, nullptr);
  if (line.finish()) static_cast<void>(send(line.text().data(), line.text().size()));
}

void PmiClient::finalize() {
  if (!connected()) return;
  pmi::Line answer;
  static_cast<void>(ask_plain("cmd=finalize\n", "finalize_ack", answer));
  disconnect();
}

void PmiClient::disconnect() {
  if (fd_ >= 0) ::close(fd_);
  forget();
}

void PmiClient::forget() {
  fd_ = -1;
  in_.clear();
}

Outcome PmiClient::ask_plain(const char* question, const char* answer_name, pmi::Line& answer) {
  const Outcome sent = send(question, strlen(question));
  if (sent != Outcome::ok) return sent;
  const Outcome received = receive(answer);
  HEADWAY_CHECK(received == Outcome::ok || !connected());
  if (received != Outcome::ok) return received;
  if (!answer.is_command(answer_name)) return broken(Outcome::bad_reply);
  int code;
  if (!answer.has("rc")) return Outcome::ok;
  if (!answer.get_number("rc", code)) return broken(Outcome::bad_reply);
  return code == 0 ? Outcome::ok : Outcome::refused;
}

Outcome PmiClient::ask(pmi::LineWriter& question, const char* answer_name, pmi::Line& answer) {
  if (!question.finish()) return Outcome::too_long;
  // ask_plain wants a C string, and finish() has checked that no zero is inside.
  const std::string_view text = question.text();
  const Outcome sent = send(text.data(), text.size());
  if (sent != Outcome::ok) return sent;
  return ask_plain("", answer_name, answer);
}

Outcome PmiClient::ask_for(pmi::LineWriter& question, const char* answer_name, const char* key,
                           char* value, size_t capacity) {
  pmi::Line answer;
  const Outcome outcome = ask(question, answer_name, answer);
  if (outcome == Outcome::refused) return Outcome::not_found;
  if (outcome != Outcome::ok) return outcome;
  std::string_view found;
  if (!answer.get(key, found)) return broken(Outcome::bad_reply);
  return copy_text(found, value, capacity) ? Outcome::ok : Outcome::too_long;
}

Outcome PmiClient::send(const char* data, size_t size) {
  if (fd_ < 0) return Outcome::launcher_lost;
  const int64_t since = now_ms();
  while (size != 0) {
    ssize_t sent = ::send(fd_, data, size, MSG_NOSIGNAL);
    if (sent < 0 && errno == ENOTSOCK) sent = write(fd_, data, size);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      if (wait_ready(fd_, POLLOUT, answer_timeout_ms, since)) continue;
    }
    if (sent <= 0) return broken(Outcome::launcher_lost);
    data += sent;
    size -= static_cast<size_t>(sent);
  }
  return Outcome::ok;
}

Outcome PmiClient::receive(pmi::Line& line) {
  while (true) {
    std::string_view text;
    switch (in_.next(text)) {
      case pmi::LineBuffer::Next::line:
        if (!line.parse(text)) return broken(Outcome::bad_reply);
        return Outcome::ok;
      case pmi::LineBuffer::Next::too_long: return broken(Outcome::bad_reply);
      case pmi::LineBuffer::Next::incomplete: break;
    }
    const Outcome filled = fill();
    if (filled != Outcome::ok) return filled;
  }
}

// Blocks without a limit: a barrier lasts as long as the slowest rank, and the end of the launcher
// or of the job closes the socket.
Outcome PmiClient::fill() {
  char* const space = in_.space();
  while (true) {
    const ssize_t got = read(fd_, space, in_.space_size());
    if (got > 0) {
      in_.added(static_cast<size_t>(got));
      return Outcome::ok;
    }
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      if (wait_ready(fd_, POLLIN, no_timeout, 0)) continue;
    }
    return broken(Outcome::launcher_lost);
  }
}

Outcome PmiClient::broken(Outcome why) {
  disconnect();
  return why;
}

}  // namespace headway::bootstrap
