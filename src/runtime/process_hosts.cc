// Hosts that vanish: who is watched, and what is said at the end of a job for their sake.
#include <cstring>
#include <unistd.h>

#include "base/text.h"
#include "protocols/engine.h"
#include "runtime/host_ring.h"
#include "runtime/neighbours.h"
#include "runtime/process.h"

namespace headway::runtime {
namespace {

constexpr uint64_t shortest_us = 3'000'000;
constexpr unsigned launcher_first_us = 300'000;

}  // namespace

// A rank that cannot watch goes on: others do, and nothing else depends on it.
Outcome Process::watch_hosts() {
  const uint32_t target = next_host_;
  if (target == HostRing::nobody || !settings.host_timeout_us) return Outcome::ok;
  tcp::HostPlan plan;
  plan.target = target;
  plan.silence_us = settings.host_timeout_us < shortest_us ? shortest_us : settings.host_timeout_us;
  plan.silent = on_silent_host;
  name_host(target, plan.next_name, sizeof plan.next_name);
  name_host(previous_host_, plan.previous_name, sizeof plan.previous_name);
  const bool in_reap = !engine_->handoff().has_thread();
  if (tcp_.watch_hosts(plan, in_reap) != Outcome::ok) return Outcome::ok;
  if (!in_reap) (void)engine_->handoff().watch_hosts(tcp_.hosts_fd());
  return Outcome::ok;
}

void Process::name_host(uint32_t rank, char* out, size_t room) {
  base::Text<bootstrap::key_max> key;
  key << "headway-card-" << int(rank);
  char text[bootstrap::value_max];
  Card card;
  if (bootstrap.get(key.c_str(), text, sizeof text, int(rank)) != bootstrap::Outcome::ok ||
      !read_card(text, card)) {
    return;
  }
  memcpy(out, card.host, room < sizeof card.host ? room : sizeof card.host);
}

// On the message thread, without the engine. Nothing is said of why: nobody here can know.
void Process::on_silent_host(uint32_t peer, const char* story) {
  usleep(launcher_first_us);  // a launcher that has noticed, too, ends this rank, and knows better
  Process& self = process();
  if (self.state.load(std::memory_order_acquire) == State::resting) {
    self.lost_at_rest_.store(true, std::memory_order_release);  // pairs with wake
    return;
  }
  base::Text<900> text;
  text << "lost contact with another host: " << story << ". Under way here: ";
  const char* call = self.whereabouts.call.load(std::memory_order_relaxed);
  const int with = self.whereabouts.peer.load(std::memory_order_relaxed);
  const int tag = self.whereabouts.tag.load(std::memory_order_relaxed);
  text << (call ? call : "no call of MPI, the program computes");
  if (call && with != base::nobody) text << " (peer " << with << ", tag " << tag << ")";
  text << ". Either that host has stopped, or the network between it and " << self.host_
       << " is interrupted. Likely remedy: look whether the host is up and can be reached from "
          "here; "
          "where it may stay silent for longer, set HEADWAY_HOST_TIMEOUT. The job ends.";
  base::Text<80> reason;
  reason << "headway: lost contact with the host of rank " << peer;
  self.abort(1, text.c_str(), reason.c_str());
}

}  // namespace headway::runtime
