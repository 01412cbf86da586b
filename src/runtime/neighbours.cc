#include "runtime/neighbours.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/descriptors.h"
#include "base/text.h"

namespace headway::runtime {
namespace {

uint64_t mix(uint64_t hash, const void* bytes, size_t n) {
  const auto* at = static_cast<const unsigned char*>(bytes);
  for (size_t i = 0; i < n; ++i) hash = (hash ^ at[i]) * 0x100000001b3u;
  return hash;
}

// 0 where the system does not tell.
uint64_t machine_id() {
  char boot[64] = {};
  const int fd =
      base::with_room([] { return open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC); });
  if (fd < 0) return 0;
  const ssize_t n = read(fd, boot, sizeof boot - 1);
  close(fd);
  return n > 0 ? mix(0xcbf29ce484222325u, boot, strlen(boot)) | 1 : 0;
}

uint64_t namespace_id(const char* path) {
  struct stat info {};
  return stat(path, &info) == 0 ? uint64_t(info.st_ino) : 0;
}

// Ranks that can open each other's /proc/PID/fd, and that the user does not take for two hosts. 0
// for none: where /proc does not tell, two machines could look like one.
uint64_t node_id(bool shares_memory) {
  const uint64_t machine = machine_id();
  const uint64_t ids[] = {namespace_id("/proc/self/ns/pid"), namespace_id("/proc/self/ns/user"),
                          namespace_id("/proc/self/ns/uts"), uint64_t(geteuid())};
  if (!shares_memory || !machine || !ids[0] || !ids[1] || !ids[2] || memory_is_closed()) return 0;
  char host[256] = {};
  if (gethostname(host, sizeof host - 1) != 0) host[0] = '\0';
  return mix(mix(machine, host, strlen(host)), ids, sizeof ids) | 1;
}

void own_cores(uint64_t (&cores)[mask_words]) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return;
  for (size_t i = 0; i < mask_words * 64; ++i) {
    if (CPU_ISSET(i, &set)) cores[i / 64] |= uint64_t(1) << (i % 64);
  }
}

template <size_t N>
void append_hex(base::Text<N>& text, uint64_t value) {
  char digits[17];
  size_t at = 16;
  digits[16] = '\0';
  do {
    digits[--at] = "0123456789abcdef"[value % 16];
    value /= 16;
  } while (value);
  text << digits + at;
}

// Nothing of a name may look like another field, or end the card.
template <size_t N>
void append_host(base::Text<N>& text) {
  char host[256] = {};
  if (gethostname(host, sizeof host - 1) != 0) host[0] = '\0';
  for (size_t i = 0; host[i]; ++i) {
    const char c = host[i];
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       c == '-' || c == '.' || c == '_';
    if (!plain) host[i] = '_';
  }
  host[sizeof Card::host - 1] = '\0';
  text << host;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

}  // namespace

// Such a process can be looked into only by who may trace any: the others are the same user, and
// may what this one may.
bool memory_is_closed() {
  const int dumpable = prctl(PR_GET_DUMPABLE, 0, 0, 0, 0);
  if (dumpable == 1 || dumpable < 0) return false;
  __user_cap_header_struct head{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {};
  if (syscall(SYS_capget, &head, sets) != 0) return true;
  return !(sets[CAP_TO_INDEX(CAP_SYS_PTRACE)].effective & CAP_TO_MASK(CAP_SYS_PTRACE));
}

void write_card(char* out, size_t room, bool shares_memory, const char* network) {
  uint64_t cores[mask_words] = {};
  own_cores(cores);
  base::Text<1000> text;
  append_hex(text, machine_id());
  text << ",";
  append_hex(text, node_id(shares_memory));
  char list[core_list_max];
  write_cores(cores, list);
  text << "," << list << ",";
  append_host(text);
  text << "," << network;
  const size_t n = text.size() < room ? text.size() : room - 1;
  memcpy(out, text.c_str(), n);
  out[n] = '\0';
}

bool read_card(char* text, Card& card) {
  for (uint64_t* field : {&card.machine, &card.node}) {
    char* rest = nullptr;
    *field = strtoull(text, &rest, 16);
    if (rest == text || *rest != ',') return false;
    text = rest + 1;
  }
  const char* const behind = read_cores(text, card.cores);
  if (!behind || *behind != ',') return false;
  text += behind - text + 1;
  const size_t length = strcspn(text, ",");
  if (text[length] != ',' || length >= sizeof card.host) return false;
  memcpy(card.host, text, length);
  card.host[length] = '\0';
  card.network = text + length + 1;
  return true;
}

// A network card reads VERSION,HOST,PORT,<reach letter>ADDRESS/PREFIX,...
Place::Place(const char* network) {
  const char* fields[4] = {network};
  for (int i = 1; i < 4; ++i) {
    const char* comma = strchr(fields[i - 1], ',');
    if (!comma || !comma[1]) {
      text << network;
      return;
    }
    fields[i] = comma + 1;
  }
  const char* address = fields[3] + 1;
  const size_t length = strcspn(address, "/,");
  const bool is_v6 = memchr(address, ':', length) != nullptr;
  if (is_v6) text << "[";
  text.append(address, length);
  text << (is_v6 ? "]:" : ":");
  text.append(fields[2], strcspn(fields[2], ","));
}

Neighbourhood::Neighbourhood() {
  own_.machine = machine_id();
  own_.node = node_id(true);
}

bool Neighbourhood::add(const Card& card) {
  if (!nodes_.push(card.node)) return false;
  if (card.machine != own_.machine) return true;
  if (!card.node) first_apart_ = std::min(first_apart_, uint32_t(nodes_.size() - 1));
  ++ranks_;
  for (size_t i = 0; i < mask_words; ++i) cores_[i] |= card.cores[i];
  return true;
}

bool Neighbourhood::some_node_shares() {
  std::sort(nodes_.begin(), nodes_.end());
  for (size_t i = 1; i < nodes_.size(); ++i) {
    if (nodes_[i] && nodes_[i] == nodes_[i - 1]) return true;
  }
  return false;
}

uint32_t Neighbourhood::machine_cores() const {
  uint32_t cores = 0;
  for (const uint64_t word : cores_) cores += uint32_t(__builtin_popcountll(word));
  return cores ? cores : 1;
}

bool make_secret(unsigned char (&secret)[16], char (&text)[33]) {
  if (getrandom(secret, sizeof secret, 0) != ssize_t(sizeof secret)) {
    // Kernels and filters without the call have the file. One that can be guessed is no secret.
    const int fd = base::with_room([] { return open("/dev/urandom", O_RDONLY | O_CLOEXEC); });
    const ssize_t n = fd < 0 ? -1 : read(fd, secret, sizeof secret);
    if (fd >= 0) close(fd);
    if (n != ssize_t(sizeof secret)) return false;
  }
  for (size_t i = 0; i < 16; ++i) {
    text[2 * i] = "0123456789abcdef"[secret[i] >> 4];
    text[2 * i + 1] = "0123456789abcdef"[secret[i] & 15];
  }
  text[32] = '\0';
  return true;
}

bool read_secret(const char* text, unsigned char (&secret)[16]) {
  if (strlen(text) != 32) return false;
  for (size_t i = 0; i < 16; ++i) {
    const int high = hex_digit(text[2 * i]), low = hex_digit(text[2 * i + 1]);
    if (high < 0 || low < 0) return false;
    secret[i] = static_cast<unsigned char>(high << 4 | low);
  }
  return true;
}

tcp::Config tcp_config(const settings::Settings& settings, uint32_t rank, uint32_t size) {
  tcp::Config config;
  config.rank = rank;
  config.size = size;
  config.interface = settings.tcp_interface;
  config.connect_timeout_us = settings.connect_timeout_us;
  config.verbose = int(settings.verbose);
  return config;
}

}  // namespace headway::runtime
