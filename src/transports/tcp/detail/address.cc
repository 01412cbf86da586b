#include "transports/tcp/detail/address.h"

#include <arpa/inet.h>
#include <cerrno>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/descriptors.h"

namespace headway::tcp {
namespace {

bool starts_with(const char* text, const char* head) { return !strncmp(text, head, strlen(head)); }

// Networks inside one host: they look usable and lead nowhere (the commonest report of users).
bool bridge_name(const char* name) {
  constexpr const char* heads[] = {"docker", "virbr", "br-",     "podman",  "cni",  "lxcbr",
                                   "lxdbr",  "vmnet", "vboxnet", "flannel", "cali", "veth"};
  for (const char* head : heads) {
    if (starts_with(name, head)) return true;
  }
  return false;
}

bool is_loopback(const Address& a) {
  if (a.family == AF_INET) return a.bytes[0] == 127;
  static constexpr unsigned char one[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  return !memcmp(a.bytes, one, sizeof one);
}

bool is_link_local(const Address& a) {
  if (a.family == AF_INET) return a.bytes[0] == 169 && a.bytes[1] == 254;
  return a.bytes[0] == 0xfe && (a.bytes[1] & 0xc0) == 0x80;
}

int rank_of(Reach reach) {
  switch (reach) {
    case Reach::global: return 0;
    case Reach::bridge: return 1;
    case Reach::link_local: return 2;
    case Reach::loopback: break;
  }
  return 3;
}

uint8_t prefix_of(const sockaddr* mask) {
  if (!mask) return 0;
  const unsigned char* bytes;
  size_t n;
  if (mask->sa_family == AF_INET) {
    bytes = reinterpret_cast<const unsigned char*>(
        &reinterpret_cast<const sockaddr_in*>(mask)->sin_addr);
    n = 4;
  } else {
    bytes = reinterpret_cast<const unsigned char*>(
        &reinterpret_cast<const sockaddr_in6*>(mask)->sin6_addr);
    n = 16;
  }
  unsigned bits = 0;
  for (size_t i = 0; i < n; ++i) bits += unsigned(__builtin_popcount(bytes[i]));
  return uint8_t(bits);
}

// Stable insertion in the order of (reach, IPv4 before IPv6); the worst falls off the end.
void insert(Card& card, const Address& address) {
  const int key = rank_of(address.reach) * 2 + (address.family == AF_INET6);
  size_t at = 0;
  while (at < card.count) {
    const Address& there = card.addresses[at];
    if (rank_of(there.reach) * 2 + (there.family == AF_INET6) > key) break;
    ++at;
  }
  if (at >= max_addresses) return;
  const size_t last = card.count < max_addresses ? card.count : max_addresses - 1;
  for (size_t i = last; i > at; --i) card.addresses[i] = card.addresses[i - 1];
  card.addresses[at] = address;
  card.count = uint8_t(last + 1);
}

uint64_t mix(uint64_t hash, const void* data, size_t n) {
  const auto* bytes = static_cast<const unsigned char*>(data);
  for (size_t i = 0; i < n; ++i) hash = (hash ^ bytes[i]) * 0x100000001b3ull;
  return hash;
}

bool take_hex(const char*& at, uint64_t& value) {
  value = 0;
  const char* start = at;
  for (;; ++at) {
    unsigned digit;
    if (*at >= '0' && *at <= '9') {
      digit = unsigned(*at - '0');
    } else if (*at >= 'a' && *at <= 'f') {
      digit = unsigned(*at - 'a' + 10);
    } else {
      break;
    }
    if (at - start == 16) return false;
    value = value * 16 + digit;
  }
  return at != start;
}

bool take_number(const char*& at, uint64_t limit, uint64_t& value) {
  value = 0;
  const char* start = at;
  for (; *at >= '0' && *at <= '9'; ++at) {
    value = value * 10 + uint64_t(*at - '0');
    if (value > limit) return false;
  }
  return at != start;
}

bool take_address(const char*& at, Address& address) {
  switch (*at) {
    case 'g': address.reach = Reach::global; break;
    case 'b': address.reach = Reach::bridge; break;
    case 'l': address.reach = Reach::link_local; break;
    case 'o': address.reach = Reach::loopback; break;
    default: return false;
  }
  ++at;
  char text[INET6_ADDRSTRLEN];
  size_t n = 0;
  while (*at && *at != '/' && *at != ',') {
    if (n + 1 >= sizeof text) return false;
    text[n++] = *at++;
  }
  text[n] = 0;
  address.family = memchr(text, ':', n) ? AF_INET6 : AF_INET;
  if (inet_pton(address.family, text, address.bytes) != 1) return false;
  uint64_t prefix;
  if (*at++ != '/' || !take_number(at, address.family == AF_INET ? 32 : 128, prefix)) return false;
  address.prefix = uint8_t(prefix);
  return true;
}

// The local address that a packet to `to` would leave from, by connecting a datagram socket,
// which sends nothing.
Address route_to(const SocketAddress& to, int& error) {
  Address local;
  const int fd = base::with_room(
      [&] { return socket(to.storage.ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); });
  if (fd < 0) {
    error = errno;
    return local;
  }
  SocketAddress own;
  own.length = sizeof own.storage;
  if (connect(fd, to.raw(), to.length) == 0 && getsockname(fd, own.raw(), &own.length) == 0) {
    local = from_socket(own);
  } else {
    error = errno;
  }
  close(fd);
  return local;
}

}  // namespace

const char* error_words(int error) {
  const char* words = strerrordesc_np(error);
  return words ? words : "unknown error";
}

bool list_own(const char* only, Card& card, uint32_t& scope, Line& why) {
  ifaddrs* list = nullptr;
  if (base::with_room([&] { return getifaddrs(&list); }) != 0) {
    why.add("the network interfaces cannot be listed: ").add(error_words(errno));
    return false;
  }
  card.count = 0;
  scope = 0;
  const bool forced = only && *only;
  bool seen = false;
  if (forced) why.add("HEADWAY_TCP_INTERFACE=").add(only).add(": no such interface in use here:");
  for (const ifaddrs* each = list; each; each = each->ifa_next) {
    if (!each->ifa_addr || !(each->ifa_flags & IFF_UP)) continue;
    const int family = each->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    SocketAddress from;
    from.length = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    memcpy(&from.storage, each->ifa_addr, from.length);
    Address address = from_socket(from);
    address.prefix = prefix_of(each->ifa_netmask);
    why.add(" ").add(each->ifa_name).add(" (");
    add_address(why, address);
    why.add(")");
    if (forced && strcmp(only, each->ifa_name) != 0) continue;
    seen = true;
    if (is_loopback(address)) {
      address.reach = Reach::loopback;
    } else if (is_link_local(address)) {
      address.reach = Reach::link_local;
      if (!bridge_name(each->ifa_name) && !scope) scope = if_nametoindex(each->ifa_name);
    } else if (!forced && bridge_name(each->ifa_name)) {
      address.reach = Reach::bridge;
    }
    insert(card, address);
  }
  freeifaddrs(list);
  if (!seen && !forced) why.add("no network interface is up, not even loopback");
  return card.count > 0;
}

uint64_t host_identity() {
  char boot[64];
  const int fd =
      base::with_room([] { return open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC); });
  if (fd < 0) return 0;
  const ssize_t n = read(fd, boot, sizeof boot);
  close(fd);
  struct stat space;
  if (n <= 0 || stat("/proc/self/ns/net", &space) != 0) return 0;
  uint64_t hash = mix(0xcbf29ce484222325ull, boot, size_t(n));
  const uint64_t inode = space.st_ino;
  hash = mix(hash, &inode, sizeof inode);
  return hash ? hash : 1;
}

bool write_card(const Card& card, char* out, size_t room, size_t& length) {
  Line line;
  line.add("1,").hex(card.host, 16).add(",").number(card.port);
  for (size_t i = 0; i < card.count; ++i) {
    const char reach[] = {',', char(card.addresses[i].reach), 0};
    line.add(reach);
    add_address(line, card.addresses[i]);
    line.add("/").number(card.addresses[i].prefix);
  }
  length = line.length;
  if (room <= line.length) return false;
  memcpy(out, line.text, line.length + 1);
  return true;
}

bool read_card(const char* text, Card& card) {
  const char* at = text;
  uint64_t port;
  if (*at++ != '1' || *at++ != ',' || !take_hex(at, card.host)) return false;
  if (*at++ != ',' || !take_number(at, 65535, port)) return false;
  card.port = uint16_t(port);
  card.count = 0;
  while (*at == ',') {
    ++at;
    Address address;
    if (card.count == max_addresses || !take_address(at, address)) return false;
    card.addresses[card.count++] = address;
  }
  return *at == 0 && card.count > 0 && port != 0;
}

size_t order_candidates(const Card& peer, uint64_t own_host, uint32_t scope, Candidate* out) {
  const bool same_host = peer.host && peer.host == own_host;
  const bool maybe_same = same_host || !peer.host || !own_host;
  size_t count = 0;
  for (size_t i = 0; i < peer.count; ++i) {
    Candidate each;
    each.address = peer.addresses[i];
    if (each.address.reach == Reach::loopback && !maybe_same) continue;
    each.local = route_to(socket_address(each.address, peer.port, scope), each.error);
    // Our own address in a foreign card is a private bridge that both hosts have: it leads back
    // to ourselves.
    if (!maybe_same && each.local.family && same_address(each.local, each.address)) continue;
    unsigned score = unsigned(rank_of(each.address.reach)) * 4 + 2;
    if (each.address.reach == Reach::loopback && same_host) score = 1;
    if (each.local.family && same_subnet(each.local, each.address, each.address.prefix)) --score;
    if (!each.local.family) score += 100;
    each.score = uint8_t(score);
    size_t at = count++;
    for (; at > 0 && out[at - 1].score > each.score; --at) out[at] = out[at - 1];
    out[at] = each;
  }
  return count;
}

SocketAddress socket_address(const Address& address, uint16_t port, uint32_t scope) {
  SocketAddress out;
  if (address.family == AF_INET) {
    auto* in = reinterpret_cast<sockaddr_in*>(&out.storage);
    in->sin_family = AF_INET;
    in->sin_port = htons(port);
    memcpy(&in->sin_addr, address.bytes, 4);
    out.length = sizeof *in;
  } else {
    auto* in = reinterpret_cast<sockaddr_in6*>(&out.storage);
    in->sin6_family = AF_INET6;
    in->sin6_port = htons(port);
    memcpy(&in->sin6_addr, address.bytes, 16);
    if (is_link_local(address)) in->sin6_scope_id = scope;
    out.length = sizeof *in;
  }
  return out;
}

Address from_socket(const SocketAddress& from, uint16_t* port) {
  Address out;
  if (from.storage.ss_family == AF_INET) {
    const auto* in = reinterpret_cast<const sockaddr_in*>(&from.storage);
    out.family = AF_INET;
    memcpy(out.bytes, &in->sin_addr, 4);
    if (port) *port = ntohs(in->sin_port);
  } else if (from.storage.ss_family == AF_INET6) {
    const auto* in = reinterpret_cast<const sockaddr_in6*>(&from.storage);
    const bool mapped = IN6_IS_ADDR_V4MAPPED(&in->sin6_addr);
    out.family = mapped ? AF_INET : AF_INET6;
    const auto* bytes = reinterpret_cast<const unsigned char*>(&in->sin6_addr);
    memcpy(out.bytes, mapped ? bytes + 12 : bytes, mapped ? 4 : 16);
    if (port) *port = ntohs(in->sin6_port);
  }
  return out;
}

bool same_address(const Address& a, const Address& b) {
  return a.family == b.family && !memcmp(a.bytes, b.bytes, a.family == AF_INET ? 4 : 16);
}

bool same_subnet(const Address& a, const Address& b, unsigned prefix) {
  if (a.family != b.family) return false;
  const unsigned whole = prefix / 8;
  const unsigned rest = prefix % 8;
  if (memcmp(a.bytes, b.bytes, whole) != 0) return false;
  if (!rest) return true;
  const auto mask = uint8_t(0xff00u >> rest);
  return ((a.bytes[whole] ^ b.bytes[whole]) & mask) == 0;
}

void add_address(Line& line, const Address& address) {
  if (address.family == AF_INET) {
    for (int i = 0; i < 4; ++i) {
      if (i) line.add(".");
      line.number(address.bytes[i]);
    }
    return;
  }
  if (address.family != AF_INET6) {
    line.add("no address");
    return;
  }
  // The longest run of zero groups (two or more) is written as "::".
  unsigned groups[8];
  for (int i = 0; i < 8; ++i) {
    groups[i] = unsigned(address.bytes[2 * i] << 8 | address.bytes[2 * i + 1]);
  }
  int best = -1, best_length = 1;
  for (int i = 0; i < 8; ++i) {
    int n = 0;
    while (i + n < 8 && !groups[i + n]) ++n;
    if (n > best_length) {
      best = i;
      best_length = n;
    }
    i += n;
  }
  for (int i = 0; i < 8; ++i) {
    if (i == best) {
      line.add("::");
      i += best_length - 1;
      continue;
    }
    if (i && i != best + best_length) line.add(":");
    int digits = 1;
    while (digits < 4 && groups[i] >> (4 * digits)) ++digits;
    line.hex(groups[i], digits);
  }
}

}  // namespace headway::tcp
