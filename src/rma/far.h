// Far: a target's memory in another process of this host that no mapping shows here: the system
// copies between both (process_vm_readv, process_vm_writev), whatever the target does meanwhile.
// Thread: holder of the engine. Owns nothing. Invariant: whoever changes memory by an accumulate
// holds its stripes, which all processes of the host share.
#pragma once
#include <cstdint>

#include "base/outcome.h"
#include "protocols/user_memory.h"

namespace headway::shm {
class Node;
}

namespace headway::rma {

class Places;
struct Stripes;
struct Work;

struct Far {
  uint32_t process;  // by the number that the node knows it by
  uint64_t base;     // in its address space; 0: there is no such way
  uint64_t size;
  Stripes* stripes;

  bool is_usable() const { return base != 0; }
};

// Whether the system allows it at all.
bool may_reach(shm::Node& node, const Far& far);

// All of `here`, to (out) or from that place of the window. outside: there is no such memory, or
// the system has stopped to allow it; peer_lost: the process is gone.
Outcome move(shm::Node& node, const Far& far, int64_t at, const protocols::UserMemory& here,
             bool out);
// What carry_out.h does to memory that is here.
Outcome put(shm::Node& node, const Far& far, const Places& places);
Outcome get(shm::Node& node, const Far& far, const Places& places, char* out);
Outcome accumulate(shm::Node& node, const Far& far, const Places& places, const Work& work,
                   char* before);
Outcome swap(shm::Node& node, const Far& far, const Places& places, const Work& work, char* before);

}  // namespace headway::rma
