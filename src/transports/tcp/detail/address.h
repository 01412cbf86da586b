// Addresses of this host, the card that tells them to other ranks, and the order in which a peer's
// addresses are tried. Thread: list_own() at start only (it asks the system and allocates), the
// rest any. Owner: nothing is held. Invariant: no name is ever looked up, addresses are numbers.
#pragma once
#include <cstddef>
#include <cstdint>
#include <netinet/in.h>
#include <sys/socket.h>

#include "transports/tcp/detail/text.h"

namespace headway::tcp {

// In order of preference. The letters stand in the card.
enum class Reach : char {
  global = 'g',      // an ordinary interface
  bridge = 'b',      // docker0, virbr0 and the like: the same address on many hosts
  link_local = 'l',  // 169.254/16, fe80::/10
  loopback = 'o'     // only for ranks in the same network namespace
};

struct Address {
  uint8_t family = 0;  // AF_INET, AF_INET6, 0: none
  uint8_t prefix = 0;  // bits of the subnet
  Reach reach = Reach::global;
  unsigned char bytes[16] = {};
};

struct SocketAddress {
  sockaddr_storage storage = {};
  socklen_t length = 0;
  sockaddr* raw() { return reinterpret_cast<sockaddr*>(&storage); }
  const sockaddr* raw() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

inline constexpr size_t max_addresses = 8;

// What a card says.
struct Card {
  uint64_t host = 0;  // equal where 127.0.0.1 means the same thing; 0 where that is not known
  uint16_t port = 0;
  uint8_t count = 0;
  Address addresses[max_addresses];
};

// One address of a peer, on trial.
struct Candidate {
  Address address;
  Address local;       // the address of ours that the route to it leaves from; family 0 if no route
  int error = 0;       // errno of the last attempt
  uint8_t reject = 0;  // the answer of whoever listens there, if it was not Accept
  uint8_t score = 0;   // small is better
};

// Addresses of this host, best first. `only` names an interface or is empty. `scope` gets the
// index of an interface whose link-local addresses may be used. False: no usable address, and
// `why` says what there is.
bool list_own(const char* only, Card& card, uint32_t& scope, Line& why);

// Tells one network namespace of one running system from all others.
uint64_t host_identity();

bool write_card(const Card& card, char* out, size_t room, size_t& length);
bool read_card(const char* text, Card& card);

// The peer's addresses in the order in which to try them. Asks the kernel for each route.
size_t order_candidates(const Card& peer, uint64_t own_host, uint32_t scope, Candidate* out);

SocketAddress socket_address(const Address& address, uint16_t port, uint32_t scope);
// From what the kernel tells; a mapped IPv4 address becomes plain IPv4.
Address from_socket(const SocketAddress& from, uint16_t* port = nullptr);
bool same_address(const Address& a, const Address& b);
bool same_subnet(const Address& a, const Address& b, unsigned prefix);
void add_address(Line& line, const Address& address);

}  // namespace headway::tcp
