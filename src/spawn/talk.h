// Talk: what the roots of two groups say to each other before their processes meet, over a socket
// of its own. Each proves that it knows the port's secret, which never crosses the wire; then
// records go both ways. Ports: those that this process has opened. Thread: any application thread
// that holds the engine; other work goes on while one waits here. Owner: who has the Talk on its
// stack; the room has the ports. Invariants: nothing that a stranger says is believed; a stranger
// who keeps silent holds nobody up for longer than `stranger_ms`; a Talk that failed says so for
// ever, and is closed.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/hmac.h"
#include "base/vec.h"
#include "spawn/trouble.h"
#include "transports/tcp/port.h"

namespace headway::waiting {
class Waiter;
}

namespace headway::spawn {

inline constexpr int stranger_ms = 5000;
inline constexpr size_t port_name_room = 1024;  // MPI_MAX_PORT_NAME; api/ asserts it

struct Secret {
  unsigned char bytes[16] = {};
};
// False: the system has no random bytes.
[[nodiscard]] bool make_secret(Secret& secret);

// What a port's name says: "headway-port-1:SECRET:CARD".
struct PortName {
  Secret secret;
  const char* card = "";  // into the name
};
[[nodiscard]] bool read_port_name(const char* text, PortName& name);

// Whether to go on waiting; asked now and then, with the engine held.
struct Patience {
  bool (*is_over)(void* what) = nullptr;
  void* what = nullptr;
  uint64_t room_us = 10'000'000;  // for a descriptor to become free, where somebody has come
};

class Talk {
 public:
  explicit Talk(waiting::Waiter& waiter) : waiter_(waiter) {}
  ~Talk() { close(); }
  Talk(const Talk&) = delete;
  Talk& operator=(const Talk&) = delete;

  // Takes over a connection, and finds out who is at its other end. bad_port: he does not know the
  // secret, or is no port. gone: he has left.
  Trouble greet(int fd, const Secret& secret, const Patience& patience);
  Trouble answer(int fd, const Secret& secret, uint64_t patience_ms);

  // Takes over a socket of any kind, whose other end has nothing to prove.
  void take(int fd);

  // False: the other end is gone.
  [[nodiscard]] bool send(const void* data, size_t n);
  [[nodiscard]] bool receive(void* data, size_t n);
  bool is_open() const { return fd_ >= 0; }
  // Both ends have the same, which nobody else knows. After greet() or answer().
  const Secret& shared() const { return shared_; }
  void close();

 private:
  enum class Way : uint8_t { in, out };
  bool move(void* data, size_t n, Way way, const Patience& patience, uint64_t limit_ms);
  bool move_all(void* data, size_t n, Way way, const Patience& patience, uint64_t limit_ms);
  void agree(const Secret& secret, const void* nonces, size_t n);

  waiting::Waiter& waiter_;
  int fd_ = -1;
  Secret shared_;
};

class Ports {
 public:
  // `name`: what others need. Else `story` tells why.
  Trouble open(const char* interface, char (&name)[port_name_room], tcp::PortStory& story);
  // False: no such port is open here.
  [[nodiscard]] bool close(const char* name);
  // Waits for who knows the port. bad_port: it is not open here, or was closed meanwhile.
  // no_socket: somebody has come, and there was no descriptor for him for as long as patience has.
  Trouble accept(const char* name, Talk& talk, waiting::Waiter& waiter, const Patience& patience);
  // Waits until the port's owner accepts. bad_port: nobody listens there, or not for this name.
  Trouble connect(const char* name, Talk& talk, waiting::Waiter& waiter, uint64_t patience_us,
                  tcp::PortStory& story);
  // In a forked child, and at the end.
  void close_all();

 private:
  struct Port {
    int listener;
    Secret secret;
    char name[port_name_room];
  };
  const Port* find(const char* name) const;

  base::Vec<Port*> ports_;
};

Ports& ports();

}  // namespace headway::spawn
