// Handshake: the records that open a connection, and who wins when two ranks dial each other at
// once. Thread: any, everything is plain values. Owner: none. Invariant: a connection counts for
// the acceptor only after Confirm, so whoever dialled may give up at any moment before it without
// the other side ever having trusted that connection.
//
//   connector                acceptor
//   Hello          ------>   checks the secret, asks judge()
//                  <------   Answer (accept, or a reason)
//   Confirm        ------>   open; only now may the acceptor send frames
//   frames         ------>
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/frame.h"

namespace headway::tcp {

struct Hello {
  uint64_t magic = 0;
  uint32_t version = 0;
  uint32_t from = 0;
  uint32_t to = 0;
  uint32_t size = 0;  // ranks of the job
  unsigned char secret[16] = {};
};
static_assert(sizeof(Hello) == 40);

enum class Verdict : uint8_t {
  accept = 1,
  crossed,     // the acceptor's own connection to you is on its way: wait for it
  other_job,   // right protocol, wrong secret
  other_rank,  // this is not the rank that you look for
  other_version,
  gone  // the acceptor has given you up or already has a connection
};

struct Answer {
  uint64_t magic = 0;
  Verdict verdict = Verdict::accept;
  uint8_t unused[7] = {};
};
static_assert(sizeof(Answer) == 16);

// In the machine's byte order, so that a machine of the other order reads as garbage.
inline constexpr uint64_t hello_magic = 0x48656164'77617901;
inline constexpr uint64_t answer_magic = 0x48656164'77617902;
inline constexpr uint64_t confirm_magic = 0x48656164'77617903;
inline constexpr uint32_t protocol_version = 1;

// A frame of the transport's own: the last one before the end of a connection. Without it the end
// means that the peer died.
inline constexpr uint8_t goodbye_kind = 0xff;

// How far one rank has come with another.
enum class Pair : uint8_t {
  idle,       // no connection in either direction
  dialling,   // our connect() is under way, we have not said Hello
  committed,  // we have said Hello: the peer may be accepting it at this moment
  tentative,  // we have accepted the peer's Hello and wait for its Confirm
  open,
  gone
};

// What to answer to a Hello with the right secret. The lower rank's own Hello wins; before it has
// said Hello it takes whatever comes, which also serves firewalls that open one way only.
constexpr Verdict judge(Pair state, uint32_t self, uint32_t peer) {
  switch (state) {
    case Pair::idle:
    case Pair::dialling:
    case Pair::tentative: return Verdict::accept;  // a new Hello replaces what it gave up
    case Pair::committed: return peer < self ? Verdict::accept : Verdict::crossed;
    case Pair::open:
    case Pair::gone: break;
  }
  return Verdict::gone;
}

// Compares in a time that does not depend on where the two differ.
inline bool same_secret(const unsigned char* a, const unsigned char* b) {
  unsigned char difference = 0;
  for (size_t i = 0; i < 16; ++i) difference = (unsigned char)(difference | (a[i] ^ b[i]));
  return difference == 0;
}

// Words for a Verdict that is not accept.
const char* verdict_words(Verdict verdict);

}  // namespace headway::tcp
