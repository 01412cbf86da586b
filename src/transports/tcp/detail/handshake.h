// Handshake: the records that open a connection, and who wins when two ranks dial each other at
// once. Thread: any, everything is plain values. Owner: none. Invariant: a connection counts for
// the acceptor only after Confirm, so whoever dialled may give up at any moment before it without
// the other side ever having trusted that connection. The job's secret never crosses the wire: each
// record carries a seal that only who has it can make, over all that was said before.
//
//   connector                acceptor
//   Hello          ------>   checks the seal and that the attempt is new, asks judge()
//                  <------   Answer (accept, or a reason), sealed over both nonces
//   Confirm        ------>   sealed over both, too: open; only now may the acceptor send frames
//   frames         ------>
//
// Who has read it all and says it again is turned away at the Hello, whose attempt is an old one,
// and could not seal the Confirm, which answers a nonce that is new each time.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/frame.h"
#include "base/hmac.h"

namespace headway::tcp {

struct Nonce {
  unsigned char bytes[16] = {};
};

// What a connection is for.
enum class Purpose : uint32_t { frames, watch };
inline constexpr uint32_t purposes = 2;

struct Hello {
  uint64_t magic = 0;
  uint32_t version = 0;
  uint32_t from = 0;
  uint32_t to = 0;
  uint32_t size = 0;     // ranks of the job
  uint64_t attempt = 0;  // grows with each Hello of this rank, for each purpose
  Purpose purpose = Purpose::frames;
  uint32_t unused = 0;
  Nonce nonce;
  base::Digest seal;
};
static_assert(sizeof(Hello) == 88);
// Magic and version lie where they lay in version 1, whose Hello ended here.
inline constexpr size_t oldest_hello = 40;

enum class Verdict : uint8_t {
  accept = 1,
  crossed,     // the acceptor's own connection to you is on its way: wait for it
  other_job,   // right protocol, wrong secret
  other_rank,  // this is not the rank that you look for
  other_version,
  gone,      // the acceptor has given you up or already has a connection
  stranger,  // never said: the connector's own word for an Answer without the right seal
  starved    // the acceptor has no descriptor left for a connection
};

struct Answer {
  uint64_t magic = 0;
  Verdict verdict = Verdict::accept;
  uint8_t unused[7] = {};
  // Of one that was made before the Hello's seal was found right: zeros.
  Nonce nonce;
  base::Digest seal;
};
static_assert(sizeof(Answer) == 64);
// Version 1's Answer, which is all that such a rank says.
inline constexpr size_t oldest_answer = 16;

struct Confirm {
  uint64_t magic = 0;
  base::Digest seal;
};
static_assert(sizeof(Confirm) == 40);

// In the machine's byte order, so that a machine of the other order reads as garbage.
inline constexpr uint64_t hello_magic = 0x48656164'77617901;
inline constexpr uint64_t answer_magic = 0x48656164'77617902;
inline constexpr uint64_t confirm_magic = 0x48656164'77617903;
inline constexpr uint32_t protocol_version = 3;

// Frames of the transport's own. After the first one the end of the connection is orderly: the peer
// has nothing left to do in MPI, though it may come back with the second. Without it the end means
// that the peer died.
inline constexpr uint8_t rest_kind = 0xff;
inline constexpr uint8_t return_kind = 0xfe;

// How far one rank has come with another.
enum class Pair : uint8_t {
  idle,       // no connection in either direction
  dialling,   // our connect() is under way, we have not said Hello
  committed,  // we have said Hello: the peer may be accepting it at this moment
  tentative,  // we have accepted the peer's Hello and wait for its Confirm
  open,
  gone
};

// What to answer to a Hello with the right seal. The lower rank's own Hello wins; before it has
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

// What all seals of a job are made with.
base::HmacKey key_of(const unsigned char (&secret)[16], const char* job);
// Never the same twice in a job, and not to be foreseen by who lacks the key.
Nonce make_nonce(const base::HmacKey& key, uint32_t rank, uint64_t number);

base::Digest seal_hello(const base::HmacKey& key, const Hello& hello);
base::Digest seal_answer(const base::HmacKey& key, const Hello& hello, const Answer& answer);
base::Digest seal_confirm(const base::HmacKey& key, const Hello& hello, const Nonce& answered);

// Words for a Verdict that is not accept.
const char* verdict_words(Verdict verdict);

}  // namespace headway::tcp
