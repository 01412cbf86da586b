// Transport: how frames reach peers, whatever carries them. Thread: holder of the engine, except
// where it says otherwise. Owner: whoever made it; the engine only uses it. Invariants: frames to
// one peer leave in the order of push(); a frame is never torn; of one that was `full` nothing has
// left. A peer is the number that the transport knows it by; a Receiver is told the number that the
// engine knows it by. What a transport cannot do it does not announce (Cap), and nobody calls it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <sys/uio.h>

#include "base/check.h"
#include "base/feed.h"
#include "base/frame.h"
#include "base/outcome.h"

namespace headway::transports {

// What the engine may do with a transport's peers. It asks these, and never which transport it is.
enum Cap : uint32_t {
  same_host = 1,  // they see our pressure, and wake us, without a frame
  copies = 2,     // one side may copy straight out of the other's memory, and into it
  in_place = 4,   // bodies go where begin() says while they come, and can be asked for in pieces
  early = 8,      // what is ready of a message may come before it is sent
};

// What a frame is for: how much room is left for others, and who is woken for it.
enum class Urgency : uint8_t {
  envelope,    // an eager message
  rendezvous,  // a request to send
  data,        // a piece of a message
  control,     // what others wait for
  done         // an operation is over, and this starts nothing
};

// A body of at most this many bytes always comes whole, by Receiver::frame().
inline constexpr uint32_t always_whole = 4096;

// Where frames go. The engine implements it; calls come from inside reap() and push().
class Receiver {
 public:
  // A whole frame: the body lies in the transport's buffer until the call returns.
  // False: the frame is garbage, after which the transport hears nothing more from that peer.
  virtual bool frame(uint32_t peer, const FrameHeader& header, const char* body) = 0;
  // The head of a frame whose body has not wholly arrived: says where the body goes.
  virtual bool begin(uint32_t peer, const FrameHeader& header, Landing& landing) = 0;
  // Some bytes of it are in place (arrived = bytes of the body so far).
  virtual void landed(uint32_t peer, const FrameHeader& header, const Landing& landing,
                      uint64_t arrived) = 0;
  // The body is complete.
  virtual void end(uint32_t peer, const FrameHeader& header, const Landing& landing) = 0;
  // A read into [from, from + n) failed with EFAULT. True: it may succeed now.
  virtual bool make_writable(const char* from, size_t n) = 0;
  // A frame whose push() returned `started` has left; `cookie` is what push() was given.
  virtual void sent(uint32_t peer, uint64_t cookie) = 0;
  // One connection more (1) or less (-1) has something half written, which goes on only if somebody
  // reaps: frames whose push() returned `done` may be among it.
  virtual void unsent(int by) = 0;
  // The peer rests and its end of the connection is gone, while frames to it were on their way.
  // True: an operation with it is not complete, so that they matter.
  virtual bool needs(uint32_t peer) = 0;
  // A peer that rests has ended, and that is no loss.
  virtual void left(uint32_t peer) = 0;
  // The connection broke or could not be made (no_route, peer_lost, bad_data, no_memory). `story`
  // is one line for the user: both addresses, what was tried, errno in words.
  virtual void lost(uint32_t peer, Outcome why, const char* story) = 0;
  // What it calls a kind of frame, for the story of one that was garbage; null: there is none.
  virtual const char* kind_name(uint8_t) const { return nullptr; }

 protected:
  ~Receiver() = default;
};

class Transport {
 public:
  // --- every transport ---
  virtual uint32_t caps() const = 0;
  // Before the first frame to a peer. `frame_max`: the longest body that one frame may have.
  virtual Outcome connect(uint32_t peer, uint32_t& frame_max) = 0;
  // Sends a frame: header, then header.length bytes of body: first `n` bytes at `head`, then the
  // Feed's (feed may be null; n + feed->length == header.length). `full`: later, after a reap().
  // `started`: it still reads the Feed's memory, until Receiver::sent() with `cookie`, which may
  // come after the peer's answer. With cookie 0 nobody is told: what is flat or at most 32 KB is
  // copied.
  virtual Push push(uint32_t peer, const FrameHeader& header, const void* head, uint32_t n,
                    const Feed* feed, uint64_t cookie, Urgency urgency) = 0;
  // True if push() to that peer may succeed now.
  virtual bool writable(uint32_t peer) const = 0;
  // Takes in what has arrived (at most `budget` bytes) and hands it on; goes on with what is half
  // written. True if anything moved.
  virtual bool reap(uint64_t budget) = 0;
  // The same, first of all for one peer that somebody waits for.
  virtual bool reap_peer(uint32_t peer, uint64_t budget) = 0;
  // Readable while reap() has something to do; -1: memory has to be looked at, by every turn.
  virtual int descriptor() const { return -1; }
  // Bytes a second that come from, or go to, this peer, as far as is known; 0: it is not.
  virtual uint64_t rate(uint32_t) const { return 0; }

  // This rank has nothing left to say or to hear, and says so; wake(): it has again. After rest()
  // and is_delivered() nothing of what it has sent is lost when it ends.
  virtual void rest() {}
  virtual void wake() {}
  virtual bool is_delivered() const { return true; }
  // What watches for hosts that vanish has something to look at. On one thread, without the engine.
  virtual void look_at_hosts() {}

  // --- same_host ---
  // Unexpected messages fill this rank's memory: handshakes, please; or no longer.
  virtual void press(bool) { HEADWAY_CHECK(caps() & same_host); }
  virtual bool is_pressed(uint32_t) const {
    HEADWAY_CHECK(caps() & same_host);
    return false;
  }

  // --- in_place ---
  // What still comes of the body that lands for `token` goes `by` bytes further on.
  virtual void redirect(uint32_t, const void*, ptrdiff_t) { HEADWAY_CHECK(caps() & in_place); }
  // Before a long sleep: the peer's next `rest` bytes are all awaited. Reset by the next read.
  virtual void expect(uint32_t, uint64_t) { HEADWAY_CHECK(caps() & in_place); }
  // Frames to that peer shall wait for little that is on its way already, at the price of more
  // wake-ups; false: for what its rate makes good.
  virtual void hurry(uint32_t, bool) { HEADWAY_CHECK(caps() & in_place); }
  // So many bytes on their way keep the link to that peer busy for `us` microseconds; more would
  // only stand before whatever is said next. 0: it is faster than so many bytes a second, or its
  // rate is not known yet.
  virtual uint64_t enough(uint32_t, uint64_t /*us*/, uint64_t /*fastest*/) const {
    HEADWAY_CHECK(caps() & in_place);
    return 0;
  }
  // Bytes of pushed frames that have not reached the peer's system.
  virtual uint64_t in_flight(uint32_t) const {
    HEADWAY_CHECK(caps() & in_place);
    return 0;
  }

 protected:
  ~Transport() = default;
};

}  // namespace headway::transports
