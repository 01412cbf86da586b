// Neighbours: what a rank tells the others about its place at the start, and what they conclude:
// who shares memory with it, and how many ranks share the machine's cores. Thread: init.
// Owns nothing. Invariant: equal host names prove nothing; a node is one boot, one host name, one
// pid and user namespace. Simulated hosts share the machine but not the node, nor does a rank whose
// memory is closed to the others.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/text.h"
#include "base/vec.h"
#include "runtime/core_list.h"
#include "settings/options.h"
#include "transports/tcp/tcp.h"

namespace headway::runtime {

struct Card {
  uint64_t machine = 0;
  uint64_t node = 0;
  uint64_t cores[mask_words] = {};
  char host[65] = "";        // its name
  const char* network = "";  // into the card's text
};

// True if the system lets no other process of this user open what this one holds (its files and
// bell under /proc/PID/fd).
bool memory_is_closed();

// The text of this rank's card.
void write_card(char* out, size_t room, bool shares_memory, const char* network);
[[nodiscard]] bool read_card(char* text, Card& card);

// "ADDRESS:PORT" of the first address of a network card, for people.
struct Place {
  explicit Place(const char* network);
  base::Text<100> text;
};

class Neighbourhood {
 public:
  Neighbourhood();
  // Of every rank of the job, in order.
  [[nodiscard]] bool add(const Card& card);
  bool is_on_my_node(const Card& card) const { return card.node == own_.node && own_.node != 0; }
  uint32_t machine_ranks() const { return ranks_; }
  uint32_t machine_cores() const;
  // Of all ranks, in their order, until some_node_shares() is asked.
  const base::Vec<uint64_t>& nodes() const { return nodes_; }
  // Whether any node of the job has several ranks: the same answer in all of them.
  bool some_node_shares();
  // The first rank of this machine that shares memory with nobody; one that is not in the job if
  // there is none.
  uint32_t first_apart() const { return first_apart_; }

 private:
  Card own_;
  uint32_t ranks_ = 0;
  uint32_t first_apart_ = UINT32_MAX;
  uint64_t cores_[mask_words] = {};
  base::Vec<uint64_t> nodes_;  // of all cards
};

// 16 random bytes and their text in hex. False: the system has none.
[[nodiscard]] bool make_secret(unsigned char (&secret)[16], char (&text)[33]);
[[nodiscard]] bool read_secret(const char* text, unsigned char (&secret)[16]);

tcp::Config tcp_config(const settings::Settings& settings, uint32_t rank, uint32_t size);

}  // namespace headway::runtime
