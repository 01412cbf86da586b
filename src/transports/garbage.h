// What a user is told of a frame that makes no sense: its kind and the length of its body. Thread:
// any. Owner: whoever received it. Invariant: nothing of the frame is trusted.
#pragma once
#include "base/frame.h"
#include "base/text.h"
#include "transports/transport.h"

namespace headway::transports {

using GarbageStory = base::Text<160>;

// `before`, `after`: the sentence around it.
inline GarbageStory garbage_story(const Receiver& receiver, const FrameHeader& header,
                                  const char* before, const char* after) {
  const char* kind = receiver.kind_name(header.kind);
  GarbageStory story;
  story << before << " (";
  if (kind) {
    story << kind;
  } else {
    story << "of kind " << header.kind << ", which there is not";
  }
  story << ", " << header.length << " bytes)" << after;
  return story;
}

}  // namespace headway::transports
