#include "runtime/counters.h"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>

#include "base/descriptors.h"
#include "base/text.h"
#include "base/tool_events.h"
#include "io/counters.h"
#include "protocols/engine.h"
#include "rma/windows.h"
#include "runtime/process.h"

namespace headway::runtime {
namespace {

using protocols::Engine;
using protocols::Profit;
using protocols::ReleaseCounters;

struct Reader {
  const char* name;
  uint64_t (*read)(const Engine& engine);
};

template <base::Counter tcp::Counters::*counter>
uint64_t tcp_counter(const Engine&) {
  const tcp::Tcp* network = process().network();
  return network ? (network->counters().*counter).get() : 0;
}
template <base::Counter protocols::EngineCounters::*counter>
uint64_t engine_counter(const Engine& engine) {
  return engine.counters().*counter;
}
template <base::Counter rma::Counters::*counter>
uint64_t window_counter(const Engine&) {
  return rma::windows().counters.*counter;
}
template <base::Counter ReleaseCounters::*counter>
uint64_t release_counter(const Engine& engine) {
  return engine.release().counters.*counter;
}
template <base::Counter guard::Counters::*counter>
uint64_t guard_counter(const Engine& engine) {
  return engine.release().closings().*counter;
}
template <base::Counter guard::Versions::Counters::*counter>
uint64_t tracked_counter(const Engine& engine) {
  return engine.presends().tracked().*counter;
}
template <std::atomic<uint64_t> guard::TrapCounters::*counter>
uint64_t trap_counter(const Engine& engine) {
  return (engine.release().traps().*counter).load(std::memory_order_relaxed);
}
template <base::Counter progress::Counters::*counter>
uint64_t progress_counter(const Engine& engine) {
  return engine.handoff().counters.*counter;
}
template <base::Counter shm::Counters::*counter>
uint64_t shm_counter(const Engine& engine) {
  return engine.node().counters.*counter;
}
template <base::Counter matching::Counters::*counter>
uint64_t posted_counter(const Engine& engine) {
  return engine.posted().counters.*counter;
}
template <base::Counter matching::Counters::*counter>
uint64_t unexpected_counter(const Engine& engine) {
  return engine.unexpected().queue().counters.*counter;
}
template <base::Counter matching::Counters::Kind::*counter>
uint64_t posted_collective(const Engine& engine) {
  return engine.posted().counters.of[1].*counter;
}
template <base::Counter matching::Counters::Kind::*counter>
uint64_t unexpected_collective(const Engine& engine) {
  return engine.unexpected().queue().counters.of[1].*counter;
}
template <std::atomic<uint64_t> io::Counters::*counter>
uint64_t file_counter(const Engine&) {
  return (io::counters.*counter).load(std::memory_order_relaxed);
}
template <Profit::Reason reason>
uint64_t given_up(const Engine& engine) {
  return engine.release().profit().given_up[reason];
}

uint64_t refused(const Engine& engine) {
  const guard::Counters& guard = engine.release().closings();
  const ReleaseCounters& of = engine.release().counters;
  return guard.no_memory + guard.overlaps + guard.refused + of.shared + of.untrapped;
}

using protocols::EngineCounters;

constexpr Reader readers[] = {
    {"thread_wakes", progress_counter<&progress::Counters::thread_wakes>},
    {"thread_useful", progress_counter<&progress::Counters::thread_useful>},
    {"thread_busy", progress_counter<&progress::Counters::thread_busy>},
    {"arms", progress_counter<&progress::Counters::arms>},
    {"patrols", progress_counter<&progress::Counters::patrols>},
    {"patrol_looks", progress_counter<&progress::Counters::patrol_looks>},
    {"self_rings", progress_counter<&progress::Counters::self_rings>},
    {"sleeps", progress_counter<&progress::Counters::sleeps>},
    {"late_wakes", progress_counter<&progress::Counters::late_wakes>},
    {"shm_rings", shm_counter<&shm::Counters::rings>},
    {"shm_bells", shm_counter<&shm::Counters::bells>},
    {"shm_pulled", shm_counter<&shm::Counters::pulled>},
    {"shm_pushed", shm_counter<&shm::Counters::pushed>},
    {"tcp_frames_out", tcp_counter<&tcp::Counters::frames_out>},
    {"tcp_frames_in", tcp_counter<&tcp::Counters::frames_in>},
    {"tcp_bytes_out", tcp_counter<&tcp::Counters::bytes_out>},
    {"tcp_bytes_in", tcp_counter<&tcp::Counters::bytes_in>},
    {"tcp_connections", tcp_counter<&tcp::Counters::connections>},
    {"tcp_rejected", tcp_counter<&tcp::Counters::rejected>},
    {"tcp_garbage", tcp_counter<&tcp::Counters::garbage>},
    {"tcp_reads", tcp_counter<&tcp::Counters::reads>},
    {"tcp_writes", tcp_counter<&tcp::Counters::writes>},
    {"messages_sent", engine_counter<&EngineCounters::messages_sent>},
    {"messages_received", engine_counter<&EngineCounters::messages_received>},
    {"bytes_sent", engine_counter<&EngineCounters::bytes_sent>},
    {"bytes_received", engine_counter<&EngineCounters::bytes_received>},
    {"eager_sent", engine_counter<&EngineCounters::eager_sent>},
    {"handshakes", engine_counter<&EngineCounters::handshakes>},
    {"streams", engine_counter<&EngineCounters::streams>},
    {"pulls", engine_counter<&EngineCounters::pulls>},
    {"pushes", engine_counter<&EngineCounters::pushes>},
    {"claims", engine_counter<&EngineCounters::claims>},
    {"helped", engine_counter<&EngineCounters::helped>},
    {"spared", engine_counter<&EngineCounters::spared>},
    {"sent_aside", [](const Engine& engine) { return engine.copies().sent_aside().get(); }},
    {"aside_bytes", [](const Engine& engine) { return engine.copies().aside_bytes(); }},
    {"garbage", engine_counter<&EngineCounters::garbage>},
    {"windows", [](const Engine&) -> uint64_t { return rma::windows().count(); }},
    {"window_operations", window_counter<&rma::Counters::begun>},
    {"window_direct", window_counter<&rma::Counters::direct>},
    {"window_served", window_counter<&rma::Counters::served>},
    {"window_refused", window_counter<&rma::Counters::refused>},
    {"posted_receives", [](const Engine& engine) -> uint64_t { return engine.posted().size(); }},
    {"unexpected_messages",
     [](const Engine& engine) -> uint64_t { return engine.unexpected().count(); }},
    {"unexpected_bytes", [](const Engine& engine) { return engine.unexpected().bytes(); }},
    {"unexpected_bytes_most", engine_counter<&EngineCounters::unexpected_bytes_most>},
    {"unexpected", engine_counter<&EngineCounters::unexpected>},
    {"unexpected_pressed", engine_counter<&EngineCounters::pressures>},
    {"posted_searches", [](const Engine& engine) { return engine.posted().counters.searches(); }},
    {"posted_traversed", [](const Engine& engine) { return engine.posted().counters.traversed(); }},
    {"posted_longest", posted_counter<&matching::Counters::longest>},
    {"posted_entries", [](const Engine& engine) { return engine.posted().counters.entries(); }},
    {"posted_entries_collective", posted_collective<&matching::Counters::Kind::entries>},
    {"posted_searches_collective", posted_collective<&matching::Counters::Kind::searches>},
    {"posted_traversed_collective", posted_collective<&matching::Counters::Kind::traversed>},
    {"posted_queues",
     [](const Engine& engine) -> uint64_t { return engine.posted().queues(false); }},
    {"posted_queues_collective",
     [](const Engine& engine) -> uint64_t { return engine.posted().queues(true); }},
    {"posted_overhead_ns", posted_counter<&matching::Counters::overhead_ns>},
    {"unexpected_searches",
     [](const Engine& engine) { return engine.unexpected().queue().counters.searches(); }},
    {"unexpected_traversed",
     [](const Engine& engine) { return engine.unexpected().queue().counters.traversed(); }},
    {"unexpected_longest", unexpected_counter<&matching::Counters::longest>},
    {"unexpected_entries",
     [](const Engine& engine) { return engine.unexpected().queue().counters.entries(); }},
    {"unexpected_entries_collective", unexpected_collective<&matching::Counters::Kind::entries>},
    {"unexpected_searches_collective", unexpected_collective<&matching::Counters::Kind::searches>},
    {"unexpected_traversed_collective",
     unexpected_collective<&matching::Counters::Kind::traversed>},
    {"unexpected_queues",
     [](const Engine& engine) -> uint64_t { return engine.unexpected().queue().queues(false); }},
    {"unexpected_queues_collective",
     [](const Engine& engine) -> uint64_t { return engine.unexpected().queue().queues(true); }},
    {"unexpected_overhead_ns", unexpected_counter<&matching::Counters::overhead_ns>},
    {"released", release_counter<&ReleaseCounters::released>},
    {"foreseen", release_counter<&ReleaseCounters::foreseen>},
    {"hidden_ns", guard_counter<&guard::Counters::hidden_ns>},
    {"page_faults", guard_counter<&guard::Counters::touched>},
    {"page_wait_ns", guard_counter<&guard::Counters::waited_ns>},
    {"call_wait_ns", guard_counter<&guard::Counters::inside_ns>},
    {"closed_ranges", guard_counter<&guard::Counters::closed>},
    {"closed_bytes", guard_counter<&guard::Counters::closed_bytes>},
    {"closed_ns", guard_counter<&guard::Counters::closed_ns>},
    {"untouched_ns", guard_counter<&guard::Counters::untouched_ns>},
    {"pages_opened", guard_counter<&guard::Counters::opened>},
    {"withheld", engine_counter<&EngineCounters::withheld>},
    {"demands", engine_counter<&EngineCounters::demands>},
    {"demands_heeded", engine_counter<&EngineCounters::heeded>},
    {"close_refused", refused},
    {"close_refused_memory", guard_counter<&guard::Counters::no_memory>},
    {"close_refused_overlap", guard_counter<&guard::Counters::overlaps>},
    {"close_refused_shared", release_counter<&ReleaseCounters::shared>},
    {"close_refused_system", guard_counter<&guard::Counters::refused>},
    {"close_refused_threads", release_counter<&ReleaseCounters::untrapped>},
    {"release_given_up",
     [](const Engine& engine) { return engine.release().profit().all_given_up(); }},
    {"release_given_up_touched_at_once", given_up<Profit::touched_at_once>},
    {"release_given_up_next_call", given_up<Profit::next_call>},
    {"release_given_up_traps", given_up<Profit::traps>},
    {"release_given_up_moving", given_up<Profit::moving>},
    {"release_given_up_closing", given_up<Profit::closing>},
    {"release_settled_sites",
     [](const Engine& engine) { return engine.release().profit().sites_settled.get(); }},
    {"traps", trap_counter<&guard::TrapCounters::traps>},
    {"traps_passed", trap_counter<&guard::TrapCounters::passed>},
    {"traps_waited", trap_counter<&guard::TrapCounters::waited>},
    {"traps_settled", trap_counter<&guard::TrapCounters::settled>},
    {"trap_ns", trap_counter<&guard::TrapCounters::nanoseconds>},
    {"prefetch_requests", engine_counter<&EngineCounters::prefetches>},
    {"prefetch_hits", engine_counter<&EngineCounters::prefetch_hits>},
    {"prefetch_late", engine_counter<&EngineCounters::prefetch_late>},
    {"prefetch_refused", engine_counter<&EngineCounters::prefetch_refused>},
    {"prefetch_no_room", engine_counter<&EngineCounters::prefetch_no_room>},
    {"prefetch_unexpected", engine_counter<&EngineCounters::fetched>},
    {"prefetch_received_bytes", engine_counter<&EngineCounters::presend_received_bytes>},
    {"prefetch_used_bytes", engine_counter<&EngineCounters::prefetch_used_bytes>},
    {"prefetch_saved_ns", engine_counter<&EngineCounters::prefetch_saved_ns>},
    {"presend_bytes", engine_counter<&EngineCounters::presend_bytes>},
    {"presend_again_bytes", engine_counter<&EngineCounters::presend_again_bytes>},
    {"presend_dropped", engine_counter<&EngineCounters::presend_dropped>},
    {"presend_refused", engine_counter<&EngineCounters::presend_refused>},
    {"tracked_looks", tracked_counter<&guard::Versions::Counters::looks>},
    {"tracked_pages", tracked_counter<&guard::Versions::Counters::written>},
    {"tracked_lost", tracked_counter<&guard::Versions::Counters::lost>},
    {"tracked_refused", tracked_counter<&guard::Versions::Counters::refused>},
    {"collectives", engine_counter<&EngineCounters::collectives>},
    {"files_opened", file_counter<&io::Counters::opens>},
    {"file_bytes_read", file_counter<&io::Counters::bytes_read>},
    {"file_bytes_written", file_counter<&io::Counters::bytes_written>},
    {"file_reads", file_counter<&io::Counters::reads>},
    {"file_writes", file_counter<&io::Counters::writes>},
    {"file_sieved_bytes", file_counter<&io::Counters::sieved_bytes>},
    {"file_collectives", file_counter<&io::Counters::collectives>},
    {"file_two_phase", file_counter<&io::Counters::two_phase>},
    {"file_stretches", file_counter<&io::Counters::stretches>},
    {"file_passed_bytes", file_counter<&io::Counters::passed_bytes>},
    {"file_jobs", file_counter<&io::Counters::jobs>},
    {"file_waits", file_counter<&io::Counters::waits>},
    {"file_wait_ns", file_counter<&io::Counters::wait_ns>},
    {"file_locks", file_counter<&io::Counters::locks>},
    {"file_shared_asks", file_counter<&io::Counters::shared_asks>},
    {"tool_events", [](const Engine&) { return base::events_put(); }},
    {"tool_events_dropped", [](const Engine&) { return base::events_dropped(); }},
};

constexpr size_t json_row = 64;  // room for quotes, a name and a number

consteval bool all_rows_have_their_reader() {
  if (sizeof readers / sizeof *readers != settings::counter_count) return false;
  for (size_t i = 0; i < settings::counter_count; ++i) {
    const std::string_view name = settings::counter_table[i].name;
    if (name != readers[i].name || name.size() + sizeof ", \"\": 18446744073709551615" > json_row) {
      return false;
    }
  }
  return true;
}
static_assert(all_rows_have_their_reader(),
              "each row of settings/counters.h needs its reader here, in the same order");

int open_to_write(const char* path, int more) {
  return base::with_room([&] { return open(path, O_WRONLY | O_CREAT | O_CLOEXEC | more, 0644); });
}

// All of it, and closed: a disk may be full, which some systems tell at the end.
template <typename Text>
bool put(const Text& text, int fd) {
  const bool taken = text.write_to(fd);
  return close(fd) == 0 && taken;
}

}  // namespace

uint64_t read_counter(const Engine& engine, size_t index) { return readers[index].read(engine); }

void write_counters_file(const Engine& engine, int rank, const char* name) {
  base::Text<1024> path;
  for (const char* at = name; *at; ++at) {
    if (at[0] == '%' && at[1] == 'r') {
      path << rank;
      ++at;
    } else {
      path.append(at, 1);
    }
  }
  constexpr size_t row_room = 64;  // quotes, the name, the number
  base::Text<row_room*(settings::counter_count + 1)> text;
  text << "{\"rank\": " << rank;
  for (size_t i = 0; i < settings::counter_count; ++i) {
    text << ", \"" << settings::counter_table[i].name << "\": " << read_counter(engine, i);
  }
  text << "}\n";
  // Who reads it while the program runs finds a whole one: the last, or this. Only a plain file can
  // be put into another's place; a terminal, a pipe or a link is written to, and so is a file in
  // whose place nothing may be put (one that is mounted by itself).
  const auto complain = [&] {
    base::Text<1200> line;
    line << "headway: rank " << rank << ": the counters could not be written to " << path.c_str()
         << "\n";
    line.write_to(2);
  };
  struct stat there;
  const bool is_there = lstat(path.c_str(), &there) == 0;
  if (is_there ? S_ISREG(there.st_mode) : errno == ENOENT) {
    static std::atomic<uint32_t> drafts = 0;  // a signal may come while one is written
    base::Text<1100> draft;
    draft << path.c_str() << "." << rank << "." << getpid() << "."
          << drafts.fetch_add(1, std::memory_order_relaxed) << ".part";
    const int fd = open_to_write(draft.c_str(), O_EXCL | O_NOFOLLOW);
    if (fd >= 0 && is_there) (void)fchmod(fd, there.st_mode & 0777);
    if (fd >= 0) {
      const bool whole = put(text, fd);
      if (whole && rename(draft.c_str(), path.c_str()) == 0) return;
      unlink(draft.c_str());
      if (!whole) return complain();  // what is there stays
    }
  }
  const int fd = open_to_write(path.c_str(), O_TRUNC);
  if (fd < 0 || !put(text, fd)) complain();
}

void write_summary(const Engine& engine, int rank) {
  if (!engine.release().may_release()) return;
  const guard::Counters& guard = engine.release().closings();
  const ReleaseCounters& counted = engine.release().counters;
  const Profit& profit = engine.release().profit();
  const auto us = [](uint64_t ns) { return ns / 1000; };
  base::Text<680> line;
  line << "headway: rank " << rank << ": early release: " << counted.released.get() << " receives, "
       << counted.foreseen.get() << " before their match, " << guard.closed_bytes / 1024
       << " KB closed; " << us(guard.hidden_ns) << " us hidden, " << us(guard.waited_ns)
       << " us waited in " << guard.touched.get() << " touches, " << us(guard.inside_ns)
       << " us in calls; " << engine.release().traps().traps.load(std::memory_order_relaxed)
       << " system calls trapped; given up: " << profit.given_up[Profit::touched_at_once].get()
       << " touched at once, " << profit.given_up[Profit::next_call].get()
       << " awaited by the next call, " << profit.given_up[Profit::traps].get() << " by traps, "
       << profit.given_up[Profit::moving].get() << " for the work on their pages, "
       << profit.given_up[Profit::closing].get() << " too short, " << profit.sites_settled.get()
       << " sites settle at a system call; not closed: " << guard.no_memory.get()
       << " no plain memory, " << guard.overlaps.get() << " closed already, "
       << counted.shared.get() << " shared with other operations, " << guard.refused.get()
       << " refused by the system, " << counted.untrapped.get()
       << " with threads that are not trapped\n";
  line.write_to(2);
}

}  // namespace headway::runtime
