// Transfer: what a message needs that is more than one frame, or whose frame comes in parts, beside
// its request: on either side from the moment when it is known how its bytes go. Thread: holder of
// the engine. Owner: the request. Invariant: a request that lands, pulls, pushes or streams has
// one.
#pragma once
#include <cstdint>

namespace headway::protocols {

class Order;
struct Request;

// How much the user of a landing needs the rest, by which its turn is. Met: the rest comes; ending:
// it does, and keeps no other's from coming.
enum class Need : uint8_t { none, closed, awaited, met, ending };

// A landing's place among those of one need (ways/grants.cc).
struct Turn {
  Turn* list_next = nullptr;
  Turn* list_prev = nullptr;
  Request* receive = nullptr;
  Need need = Need::met;
};

struct Transfer {
  uint64_t total = 0;      // bytes that will move
  uint64_t moved = 0;      // bytes pushed out, or arrived
  uint64_t covered = 0;    // of those moved: what had come before the send
  uint64_t partial = 0;    // receive: bytes of the frame that is coming in
  uint64_t begun = 0;      // receive over TCP: bytes of frames that have come or are coming in
  uint64_t begun_at = 0;   // where the last of these frames lies in the message
  Order* order = nullptr;  // since a page was asked for out of turn, or if some came before
  uint64_t asked = 0;      // receive: the page between its edges that was asked for last, from 1
  uint64_t asked_at = 0;   // ns; of a stream over TCP that is long enough to tell the rate
  uint64_t remote_address = 0;
  uint32_t remote = 0;        // the other side's id
  uint32_t in_flight = 0;     // frames that the transport holds
  uint32_t head = 0;          // streamed first: bytes at the beginning
  uint32_t tail = 0;          // and at the end of the message
  uint8_t sharers = 1;        // send: that many sent to its receiver when it asked for this
  bool expected : 1 = false;  // receive: stands in the list of streams that come over TCP
  bool withheld : 1 = false;  // streaming, landing: all but its edges waits for a grant
  bool copied : 1 = false;    // send: some of it was copied straight into the receiver's buffer
  bool alone : 1 = false;     // pulling: nobody else copies it, and its edges come first
  bool stays : 1 = false;     // receive: it could not be released, so its user waits for all of it
  Turn turn;                  // of one that is expected
};

}  // namespace headway::protocols
