// A send or receive that its user takes back.
#include "protocols/engine.h"

namespace headway::protocols {

void Messages::cancel(Request* request) {
  if (request->done.load(std::memory_order_relaxed) || request->cancelling) return;
  switch (request->stage()) {
    case Stage::posted:
      if (!take_back(request)) return;  // too late
      posted_.remove(request);
      break;
    case Stage::held:
      request->peer->backlog.held.remove(request);
      engine().presends_.take_back(*request);
      break;
    case Stage::requested:
      if (!request->peer->transport) {
        const auto is_its = [&](const Arrived& message) { return message.own_send == request; };
        Arrived* message = unexpected_.find_where(is_its);
        if (!message) return;  // a matched probe holds it: it will be received
        unexpected_.remove(message);
        unexpected_.give(message);
        break;
      } else {
        request->cancelling = true;
        FrameHeader header;
        header.kind = uint8_t(Kind::cancel);
        header.word = id_of(request);
        header.context = request->key.context;
        links_.control(*request->peer, header, nullptr);
        return;
      }
    default: return;  // too late: it completes as if nothing had been asked
  }
  request->cancelled = true;
  complete(request, Outcome::ok);
}

bool Messages::deliver_cancel(Peer& peer, const FrameHeader& header, const char*) {
  FrameHeader answer;
  answer.kind = uint8_t(Kind::cancel_answer);
  answer.word = header.word;
  const auto is_meant = [&](const Arrived& message) {
    return message.peer == &peer && message.remote == header.word &&
           (message.handshake || message.synchronous) &&
           message.have == (message.handshake ? 0 : message.size);
  };
  if (Arrived* message = unexpected_.find_where(is_meant)) {
    unexpected_.remove(message);
    unexpected_.give(message);
    answer.flags = flag_yes;
  }
  links_.control(peer, answer, nullptr);
  return true;
}

bool Messages::deliver_cancel_answer(Peer& peer, const FrameHeader& header, const char*) {
  Request* request = requests_.by_wire_id(header.word);
  if (!request || !request->cancelling) return true;  // it completed in the meantime
  if (request->peer != &peer) return false;
  request->cancelling = false;
  if (!(header.flags & flag_yes) || request->stage() != Stage::requested) return true;
  request->cancelled = true;
  complete(request, Outcome::ok);
  return true;
}

}  // namespace headway::protocols
