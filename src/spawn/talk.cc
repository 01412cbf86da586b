#include "spawn/talk.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <new>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/heap.h"
#include "spawn/junction.h"
#include "waiting/waiter.h"

namespace headway::spawn {
namespace {

// Who waits is woken by the socket; the rest, such as patience, it looks for so often. And so often
// for the socket, where nobody wakes it.
constexpr int look_again_ms = 20, without_watch_ms = 1;
constexpr char port_head[] = "headway-port-1:";
constexpr size_t secret_digits = 2 * sizeof(Secret);

// In the machine's byte order, so that a machine of the other order reads as a stranger.
constexpr uint64_t greeting_magic = 0x48656164'77617931;
constexpr uint32_t talk_version = 1;

struct Greeting {
  uint64_t magic = greeting_magic;
  uint32_t version = talk_version;
  uint32_t unused = 0;
  unsigned char nonce[16] = {};
};
static_assert(sizeof(Greeting) == 32);

struct Answer {
  Greeting greeting;
  base::Digest seal;
};
static_assert(sizeof(Answer) == 64);

// What a seal is over. `who` tells the two ends apart, and the secret that comes of it.
struct Sealed {
  char who[8];
  Greeting connector, acceptor;
};
static_assert(sizeof(Sealed) == 72);

base::Digest seal(const base::HmacKey& key, const char (&who)[8], const Greeting& connector,
                  const Greeting& acceptor) {
  Sealed all = {"", connector, acceptor};
  memcpy(all.who, who, sizeof all.who);
  return key.of(&all, sizeof all);
}

// While one waits for a socket.
class Watched {
 public:
  Watched(int fd, uint32_t events) : fd_(junctions().watch(fd, events) ? fd : -1) {}
  ~Watched() {
    if (fd_ >= 0) junctions().unwatch(fd_);
  }
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;
  int sleep_ms() const { return fd_ >= 0 ? look_again_ms : without_watch_ms; }

 private:
  const int fd_;
};

bool fill_random(void* out, size_t n) { return getrandom(out, n, 0) == ssize_t(n); }

bool take_digit(char c, unsigned& value) {
  if (c >= '0' && c <= '9')
    value = unsigned(c - '0');
  else if (c >= 'a' && c <= 'f')
    value = unsigned(c - 'a') + 10;
  else
    return false;
  return true;
}

// Never torn down, as junctions().
alignas(Ports) char memory_of_ports[sizeof(Ports)];
bool made = false;

}  // namespace

bool make_secret(Secret& secret) { return fill_random(secret.bytes, sizeof secret.bytes); }

bool read_port_name(const char* text, PortName& name) {
  constexpr size_t head = sizeof port_head - 1;
  if (strnlen(text, port_name_room) == port_name_room || strncmp(text, port_head, head) != 0) {
    return false;
  }
  const char* at = text + head;
  for (size_t i = 0; i < secret_digits; i += 2) {
    unsigned high = 0, low = 0;
    if (!take_digit(at[i], high) || !take_digit(at[i + 1], low)) return false;
    name.secret.bytes[i / 2] = static_cast<unsigned char>(high << 4 | low);
  }
  if (at[secret_digits] != ':') return false;
  name.card = at + secret_digits + 1;
  return tcp::is_port_card(name.card);
}

// --- Talk ---

void Talk::close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

void Talk::take(int fd) {
  close();
  fd_ = fd;
}

// limit_ms: 0 for none.
bool Talk::move(void* data, size_t n, Way way, const Patience& patience, uint64_t limit_ms) {
  if (fd_ < 0) return false;
  if (move_all(data, n, way, patience, limit_ms)) return true;
  close();
  return false;
}

bool Talk::move_all(void* data, size_t n, Way way, const Patience& patience, uint64_t limit_ms) {
  size_t done = 0;
  bool failed = false;
  const uint64_t until = limit_ms ? base::now_ns() + limit_ms * 1'000'000 : UINT64_MAX;
  const Watched watched(fd_, way == Way::in ? EPOLLIN : EPOLLOUT);
  waiter_.until(
      [&] {
        while (done < n && !failed) {
          char* at = static_cast<char*>(data) + done;
          const ssize_t moved = way == Way::in
                                    ? recv(fd_, at, n - done, MSG_DONTWAIT)
                                    : ::send(fd_, at, n - done, MSG_DONTWAIT | MSG_NOSIGNAL);
          if (moved > 0) {
            done += size_t(moved);
          } else if (moved < 0 && errno == EINTR) {
            continue;
          } else if (moved < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            failed =
                base::now_ns() >= until || (patience.is_over && patience.is_over(patience.what));
            break;
          } else {
            failed = true;
          }
        }
        return done == n || failed;
      },
      nullptr, watched.sleep_ms());
  return done == n;
}

bool Talk::send(const void* data, size_t n) {
  return move(const_cast<void*>(data), n, Way::out, {}, 0);
}

bool Talk::receive(void* data, size_t n) { return move(data, n, Way::in, {}, 0); }

Trouble Talk::greet(int fd, const Secret& secret, const Patience& patience) {
  close();
  fd_ = fd;
  const base::HmacKey key(secret.bytes, sizeof secret.bytes);
  Greeting own;
  Answer theirs;
  if (!fill_random(own.nonce, sizeof own.nonce)) return Trouble::no_socket;
  if (!send(&own, sizeof own)) return Trouble::bad_port;
  // The port's owner may accept whenever it likes.
  if (!move(&theirs, sizeof theirs, Way::in, patience, 0)) return Trouble::bad_port;
  if (theirs.greeting.magic != greeting_magic) return Trouble::bad_port;
  if (theirs.greeting.version != talk_version) return Trouble::version;
  if (!base::same_digest(theirs.seal, seal(key, "acceptr", own, theirs.greeting))) {
    close();
    return Trouble::bad_port;
  }
  const base::Digest proof = seal(key, "connect", own, theirs.greeting);
  const base::Digest common = seal(key, "secrets", own, theirs.greeting);
  memcpy(shared_.bytes, common.bytes, sizeof shared_.bytes);
  return send(&proof, sizeof proof) ? Trouble::none : Trouble::gone;
}

Trouble Talk::answer(int fd, const Secret& secret, uint64_t patience_ms) {
  close();
  fd_ = fd;
  const base::HmacKey key(secret.bytes, sizeof secret.bytes);
  Greeting theirs;
  if (!move(&theirs, sizeof theirs, Way::in, {}, patience_ms)) return Trouble::gone;
  Answer own;
  if (theirs.magic != greeting_magic || theirs.version != talk_version ||
      !fill_random(own.greeting.nonce, sizeof own.greeting.nonce)) {
    // Who speaks another version hears ours.
    if (theirs.magic == greeting_magic) (void)send(&own, sizeof own);
    close();
    return Trouble::version;
  }
  own.seal = seal(key, "acceptr", theirs, own.greeting);
  base::Digest proof;
  if (!send(&own, sizeof own) || !move(&proof, sizeof proof, Way::in, {}, patience_ms)) {
    return Trouble::gone;
  }
  if (!base::same_digest(proof, seal(key, "connect", theirs, own.greeting))) {
    close();
    return Trouble::bad_port;
  }
  const base::Digest common = seal(key, "secrets", theirs, own.greeting);
  memcpy(shared_.bytes, common.bytes, sizeof shared_.bytes);
  return Trouble::none;
}

// --- Ports ---

Ports& ports() {
  if (!made) {
    new (memory_of_ports) Ports;
    made = true;
  }
  return *std::launder(reinterpret_cast<Ports*>(memory_of_ports));
}

const Ports::Port* Ports::find(const char* name) const {
  for (const Port* port : ports_) {
    if (strcmp(port->name, name) == 0) return port;
  }
  return nullptr;
}

Trouble Ports::open(const char* interface, char (&name)[port_name_room], tcp::PortStory& story) {
  void* memory = base::heap_allocate(sizeof(Port));
  if (!memory || !ports_.reserve(ports_.size() + 1)) {
    base::heap_free(memory, sizeof(Port));
    return Trouble::no_memory;
  }
  Port* port = new (memory) Port;
  char card[tcp::port_card_room] = "";
  port->listener = make_secret(port->secret) ? tcp::open_port(interface, card, story) : -1;
  if (port->listener < 0) {
    base::heap_free(port, sizeof(Port));
    return Trouble::no_socket;
  }
  base::Text<port_name_room> text;
  text << port_head;
  for (const unsigned char byte : port->secret.bytes) {
    const char digits[] = {"0123456789abcdef"[byte >> 4], "0123456789abcdef"[byte & 15]};
    text.append(digits, sizeof digits);
  }
  text << ":" << card;
  memcpy(port->name, text.c_str(), text.size() + 1);
  memcpy(name, text.c_str(), text.size() + 1);
  (void)ports_.push(port);
  return Trouble::none;
}

bool Ports::close(const char* name) {
  for (size_t i = 0; i < ports_.size(); ++i) {
    if (strcmp(ports_[i]->name, name) != 0) continue;
    ::close(ports_[i]->listener);
    base::heap_free(ports_[i], sizeof(Port));
    ports_.remove_unordered(i);
    return true;
  }
  return false;
}

void Ports::close_all() {
  while (!ports_.empty()) {
    ::close(ports_.back()->listener);
    base::heap_free(ports_.back(), sizeof(Port));
    ports_.pop();
  }
}

Trouble Ports::accept(const char* name, Talk& talk, waiting::Waiter& waiter,
                      const Patience& patience) {
  while (true) {
    int fd = -1;
    const Port* port = nullptr;
    bool over = false, starved = false;
    uint64_t starved_since = 0;  // 0: it is not
    const Port* const at_first = find(name);
    if (!at_first) return Trouble::bad_port;
    const int listener = at_first->listener;
    const bool woken = junctions().watch(listener, EPOLLIN);
    waiter.until(
        [&] {
          port = find(name);  // another thread may close it
          if (port) fd = tcp::accept_at(port->listener);
          if (port && fd < 0 && (errno == EMFILE || errno == ENFILE)) {
            const uint64_t now = base::now_ns();
            if (!starved_since) starved_since = now;
            starved = now - starved_since >= patience.room_us * 1000;
          } else {
            starved_since = 0;
          }
          over = patience.is_over && patience.is_over(patience.what);
          return !port || fd >= 0 || starved || over;
        },
        nullptr, woken ? look_again_ms : without_watch_ms);
    if (woken && port) junctions().unwatch(listener);  // one that was closed is out by itself
    if (!port) return Trouble::bad_port;
    if (starved) return Trouble::no_socket;  // somebody waits there who cannot be let in
    if (fd < 0) return Trouble::gone;
    const Secret secret = port->secret;
    const Trouble answered = talk.answer(fd, secret, stranger_ms);
    if (answered == Trouble::none) return answered;
    // A stranger, or one who has gone again: the next one.
  }
}

Trouble Ports::connect(const char* name, Talk& talk, waiting::Waiter& waiter, uint64_t patience_us,
                       tcp::PortStory& story) {
  PortName read;
  if (!read_port_name(name, read)) {
    story << "the name is not that of a port of this library";
    return Trouble::bad_port;
  }
  tcp::Dial dial;
  dial.start(read.card, patience_us);
  auto state = tcp::Dial::State::under_way;
  waiter.until(
      [&] {
        state = dial.look();
        return state != tcp::Dial::State::under_way;
      },
      nullptr, without_watch_ms);
  if (state == tcp::Dial::State::failed) {
    const bool starved = dial.is_starved();
    story << (starved ? "no descriptor is left (" : "nobody listens there (")
          << dial.story().c_str() << ")";
    return starved ? Trouble::no_socket : Trouble::bad_port;
  }
  const Trouble greeted = talk.greet(dial.take(), read.secret, {});
  if (greeted == Trouble::bad_port) {
    story << "the port was closed, or belongs to another program by now";
  }
  return greeted;
}

}  // namespace headway::spawn
