// Options: the one table from which HEADWAY_* variables, `mpiexec --set`, MPI_T and the options
// page of the documentation are made. Thread: written once by parse_environment() at start, then
// plain reads. Owner: runtime holds the only Settings of a process. Invariant: every field of
// Settings has exactly one row in option_table, and holds its default until parsed.
#pragma once
#include <cstddef>
#include <cstdint>

#include "settings/category.h"

namespace headway::settings {

enum class OptionKind : uint8_t {
  boolean,       // 0 or 1; spelled 0/1, on/off, yes/no, true/false
  count,         // a plain number
  bytes,         // a number with an optional suffix K, M, G (powers of 1024)
  microseconds,  // a number with an optional suffix us, ms, s
  choice,        // index into `choices` (names separated by '|')
  text           // kept as a pointer into the environment
};

struct Settings {
  // progress
  uint64_t progress = 1;
  uint64_t spin_us = 50;
  uint64_t yield_us = 1000;
  uint64_t patrol_after = 100;
  // transports
  uint64_t shm = 1;
  uint64_t one_copy = 1;
  const char* tcp_interface = "";
  uint64_t connect_timeout_us = 10'000'000;
  uint64_t host_timeout_us = 8'000'000;
  // protocols
  uint64_t eager_max_shm = 32 << 10;
  uint64_t eager_max_tcp = 16384;
  uint64_t unexpected_max = 512ull << 20;
  uint64_t send_ahead = 16ull << 20;
  uint64_t spare = 1;           // protocols::Spare::Wish
  uint64_t windows_direct = 2;  // off, on, auto
  // early release
  uint64_t early_release = 3;
  uint64_t release_threshold_us = 150;
  uint64_t release_batch = 0;
  uint64_t guard = 0;
  // prefetching
  uint64_t prefetch = 1;
  uint64_t prefetch_writes = 0;  // guard::Versions::Wish
  uint64_t prefetch_threshold = 4096;
  uint64_t prefetch_max = 256ull << 20;
  uint64_t prefetch_unexpected = 0;
  // matching
  uint64_t matcher = 0;
  uint64_t matcher_kc = 8;
  uint64_t matcher_kp = 8;
  uint64_t matcher_threshold = 100;
  // collectives
  const char* collective_algorithms = "";
  // reporting
  uint64_t finalize_check = 1;
  uint64_t strict = 0;
  const char* counters_file = "";
  uint64_t verbose = 0;
};

struct OptionInfo {
  const char* name;  // without the HEADWAY_ prefix
  Category category;
  Audience audience;
  OptionKind kind;
  const char* default_text;
  const char* choices;  // for OptionKind::choice, else ""
  const char* help;
  uint64_t Settings::*number;     // null for text
  const char* Settings::*string;  // null unless text
  uint64_t most = ~uint64_t(0);   // larger numbers are refused
};

inline constexpr OptionInfo option_table[] = {
    {"PROGRESS", Category::progress, Audience::user, OptionKind::boolean, "on", "",
     "let the message thread move messages while the program computes; off is for comparison",
     &Settings::progress, nullptr},
    {"SPIN", Category::progress, Audience::tuner, OptionKind::microseconds, "50us", "",
     "how long a waiting rank spins before it yields its core, when every rank has a core",
     &Settings::spin_us, nullptr},
    {"YIELD", Category::progress, Audience::tuner, OptionKind::microseconds, "1ms", "",
     "how long a waiting rank yields its core to others before it sleeps until something comes; "
     "unless set, not at all where ranks share cores and every message comes over TCP. 0, with "
     "SPIN=0, for waits that take no time of a processor",
     &Settings::yield_us, nullptr},
    {"PATROL", Category::progress, Audience::tuner, OptionKind::count, "100", "",
     "after how many stays outside MPI of less than 20us each, with something pending, nobody "
     "rings "
     "for this rank any more: its message thread looks once a millisecond whether it is still away "
     "(at most 1000000); more are asked for each time that it soon stays away for long; 0: never",
     &Settings::patrol_after, nullptr, 1'000'000},
    {"SHM", Category::transports, Audience::user, OptionKind::boolean, "on", "",
     "use shared memory between ranks of one host; off sends everything over TCP", &Settings::shm,
     nullptr},
    {"ONE_COPY", Category::transports, Audience::tuner, OptionKind::boolean, "on", "",
     "let one rank copy straight from or into another's memory (process_vm_readv); off uses the "
     "shared segment only",
     &Settings::one_copy, nullptr},
    {"TCP_INTERFACE", Category::transports, Audience::user, OptionKind::text, "", "",
     "name of the network interface to use for TCP; empty chooses by the route to each peer",
     nullptr, &Settings::tcp_interface},
    {"CONNECT_TIMEOUT", Category::transports, Audience::tuner, OptionKind::microseconds, "10s", "",
     "how long a TCP connection may take to come up before the job stops with an error",
     &Settings::connect_timeout_us, nullptr},
    {"HOST_TIMEOUT", Category::transports, Audience::user, OptionKind::microseconds, "8s", "",
     "how long the system of another host may stay without any answer before it counts as vanished "
     "and the job ends (less than 3s counts as 3s, 0: for ever, at most 1 hour); whether ranks "
     "there compute, are stopped or sit in a debugger does not matter",
     &Settings::host_timeout_us, nullptr, 3'600'000'000},
    {"EAGER_MAX_SHM", Category::protocols, Audience::tuner, OptionKind::bytes, "32K", "",
     "largest message sent without a handshake to a rank on the same host (at most 32K, and 4K "
     "where more than 16 ranks share the host)",
     &Settings::eager_max_shm, nullptr},
    {"EAGER_MAX_TCP", Category::protocols, Audience::tuner, OptionKind::bytes, "16K", "",
     "largest message sent without a handshake over TCP (at most 64K)", &Settings::eager_max_tcp,
     nullptr},
    {"UNEXPECTED_MAX", Category::protocols, Audience::tuner, OptionKind::bytes, "512M", "",
     "memory for messages that arrived before their receive; beyond it their senders wait for "
     "receives, and one line names ranks and tags",
     &Settings::unexpected_max, nullptr},
    {"SEND_AHEAD", Category::protocols, Audience::tuner, OptionKind::bytes, "16M", "",
     "memory for messages that sends and their waits copy, to return before a slow wire "
     "has taken them; 0 lets them wait",
     &Settings::send_ahead, nullptr},
    {"SPARE", Category::protocols, Audience::tuner, OptionKind::choice, "auto", "off|auto|always",
     "give a link below 400 MB/s a long message in pieces that keep it busy, so that an answer "
     "does "
     "not stand behind all of it; always: any link over TCP, off: all that the system takes",
     &Settings::spare, nullptr},
    {"WINDOWS_DIRECT", Category::protocols, Audience::tuner, OptionKind::choice, "auto",
     "off|on|auto",
     "let one-sided operations work in the target's memory themselves on one host: in memory that "
     "both ranks map, else by the system's copies, unless ONE_COPY is off; auto sends small ones "
     "to a target that waits in MPI rather than copy; off sends all, as over a network",
     &Settings::windows_direct, nullptr},
    {"EARLY_RELEASE", Category::early_release, Audience::user, OptionKind::choice, "auto",
     "off|matched|always|auto",
     "let blocking receives return before their data is there; pages whose data has not come are "
     "closed until it has: once the message is matched; always, also before that; or auto, "
     "as always, but only for buffers where it wins time",
     &Settings::early_release, nullptr},
    {"RELEASE_THRESHOLD", Category::early_release, Audience::tuner, OptionKind::microseconds,
     "150us", "", "expected wait below which a receive is not released early (at most 10s)",
     &Settings::release_threshold_us, nullptr, 10'000'000},
    {"RELEASE_BATCH", Category::early_release, Audience::tuner, OptionKind::count, "0", "",
     "pages of a released receive that are opened together (at most 256); 0 chooses: 4 up to "
     "256 KB, 16 above, fewer on a slow link",
     &Settings::release_batch, nullptr, 256},
    {"GUARD", Category::early_release, Audience::developer, OptionKind::choice, "auto",
     "auto|missing|minor|trap|none",
     "how early release closes pages: auto takes missing (userfaultfd on missing pages) or "
     "nothing; "
     "minor (userfaultfd, pages moved aside) and trap (SIGSEGV) are for those who ask; mpiexec "
     "--info tells what works here",
     &Settings::guard, nullptr},
    {"PREFETCH", Category::prefetching, Audience::user, OptionKind::choice, "auto", "off|auto",
     "while a receive waits for a message over a network, let its sender send what is ready of it "
     "before the send: of messages that come from the same buffer again and again",
     &Settings::prefetch, nullptr},
    {"PREFETCH_WRITES", Category::prefetching, Audience::tuner, OptionKind::choice, "auto",
     "auto|userfaultfd|signal",
     "how a sender follows writes to buffers that are asked for: by userfaultfd (auto, too), or by "
     "mprotect and SIGSEGV (signal), for systems without it; then system calls of the program must "
     "not write into such buffers, they would fail with EFAULT",
     &Settings::prefetch_writes, nullptr},
    {"PREFETCH_THRESHOLD", Category::prefetching, Audience::tuner, OptionKind::bytes, "4K", "",
     "smallest message of which something is sent before its send", &Settings::prefetch_threshold,
     nullptr},
    {"PREFETCH_MAX", Category::prefetching, Audience::tuner, OptionKind::bytes, "256M", "",
     "memory of a rank for what came before its send, or was fetched before its receive; beyond it "
     "nothing more is asked for",
     &Settings::prefetch_max, nullptr},
    {"PREFETCH_UNEXPECTED", Category::prefetching, Audience::tuner, OptionKind::choice, "auto",
     "auto|always|off",
     "fetch a long message that comes before its receive is called, while the program computes: "
     "over slow networks (auto), over all",
     &Settings::prefetch_unexpected, nullptr},
    {"MATCHER", Category::matching, Audience::tuner, OptionKind::choice, "headway",
     "headway|list|source|pnp|col+list|list+pnp|col+pnp",
     "how receives and messages find each other: by a hash of source, tag and communicator; the "
     "others are for comparison: one list; a list for each source; partners and non-partners; "
     "lists for profiled collectives, with one list or partners for the rest",
     &Settings::matcher, nullptr},
    {"MATCHER_KC", Category::matching, Audience::developer, OptionKind::count, "8", "",
     "lists that profiled collectives may have, in square roots of the number of ranks; 0: none of "
     "their own (at most 1024)",
     &Settings::matcher_kc, nullptr, 1024},
    {"MATCHER_KP", Category::matching, Audience::developer, OptionKind::count, "8", "",
     "the same for partners", &Settings::matcher_kp, nullptr, 1024},
    {"MATCHER_THRESHOLD", Category::matching, Audience::developer, OptionKind::count, "100", "",
     "length of a shared list at which partners get lists of their own (0 counts as 1)",
     &Settings::matcher_threshold, nullptr, 1u << 30},
    {"COLL", Category::collectives, Audience::tuner, OptionKind::text, "", "",
     "force algorithms of collectives, as call=algorithm pairs separated by commas, for example "
     "allreduce=ring,bcast=binomial",
     nullptr, &Settings::collective_algorithms},
    {"FINALIZE_CHECK", Category::reporting, Audience::user, OptionKind::boolean, "on", "",
     "let MPI_Finalize tell of requests that were never completed and messages that nobody "
     "received",
     &Settings::finalize_check, nullptr},
    {"STRICT", Category::reporting, Audience::user, OptionKind::boolean, "off", "",
     "refuse what the MPI standard forbids although MPICH and Open MPI do it: so far predefined "
     "operations on MPI_CHAR, and logical ones on MPI_AINT, MPI_COUNT and MPI_OFFSET; and tell of "
     "the "
     "first message whose buffer another one under way has",
     &Settings::strict, nullptr},
    {"COUNTERS", Category::reporting, Audience::user, OptionKind::text, "", "",
     "file that each rank's counters are written to at the end and on SIGUSR1, as JSON; %r is the "
     "rank",
     nullptr, &Settings::counters_file},
    {"VERBOSE", Category::reporting, Audience::user, OptionKind::count, "0", "",
     "how much to tell on stderr: 0 errors only, 1 decisions at start, 2 connections and protocols",
     &Settings::verbose, nullptr},
};
inline constexpr size_t option_count = sizeof(option_table) / sizeof(option_table[0]);

// Why a value was refused; `option` names the row, `value` is what the user wrote.
struct OptionError {
  const OptionInfo* option;
  const char* value;
};

// Parses one value of one row into `out`. Returns false if the text does not fit the kind.
[[nodiscard]] bool parse_option(const OptionInfo& row, const char* text, Settings& out);

// Fills `out` from the HEADWAY_* variables of the environment. Returns the number of refused
// values (up to `max_errors` are written to `errors`); refused options keep their default.
[[nodiscard]] size_t parse_environment(Settings& out, OptionError* errors, size_t max_errors);

// What the environment gives for the option of that name (without the prefix), or null.
const char* given(const char* name);

// The row of that name (without the prefix, case ignored), or null.
const OptionInfo* find_option(const char* name);

}  // namespace headway::settings
