// Port: where a process listens for processes of other jobs, and how one of those reaches it: plain
// sockets, and the addresses that are tried. Who has come, and whether he may, is the caller's
// business. Thread: one caller at a time. Owner: who opened it owns the descriptors. Invariant: all
// of them are non-blocking and close-on-exec; no call here waits; no name is looked up.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/text.h"

namespace headway::tcp {

inline constexpr size_t port_card_room = 640;

using PortStory = base::Text<400>;

// Listens at all addresses of this host. `card`: the text by which others reach it. Below zero:
// `story` is one sentence for the user.
int open_port(const char* interface, char (&card)[port_card_room], PortStory& story);
// The connection of the next one that has come; below zero: nobody has, or errno says that there is
// no descriptor for him (EMFILE, ENFILE).
int accept_at(int listener);
// Whether a connection is to be tried at the addresses of that card at all.
bool is_port_card(const char* card);

// The way to a port, address after address. `look` again and again until it is over.
class Dial {
 public:
  enum class State : uint8_t { under_way, connected, failed };

  Dial() = default;
  ~Dial();
  Dial(const Dial&) = delete;
  Dial& operator=(const Dial&) = delete;

  // `card`: see is_port_card(). `patience_us`: for one address.
  void start(const char* card, uint64_t patience_us);
  State look();
  // The connection, which is the caller's from now on.
  int take();
  // Failed, and for want of descriptors alone.
  bool is_starved() const { return starved_ && story_.size() > 0; }
  // Which addresses were tried, and what the system said.
  const PortStory& story() const { return story_; }

 private:
  struct Way;
  bool next();
  void note(int error);

  Way* way_ = nullptr;
  int fd_ = -1;
  uint64_t patience_ns_ = 0, until_ns_ = 0;
  bool starved_ = true;  // so far
  PortStory story_;
};

}  // namespace headway::tcp
