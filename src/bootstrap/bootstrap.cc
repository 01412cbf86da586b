#include "bootstrap/bootstrap.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "bootstrap/environment.h"

extern "C" {
// From libc and the compiler: runs `function` at exit or when this library is unloaded.
int __cxa_atexit(void (*function)(void*), void* argument, void* library);
extern void* __dso_handle __attribute__((visibility("hidden")));
}

namespace headway::bootstrap {
namespace {

uint64_t hash_text(const char* text) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (; *text; ++text) hash = (hash ^ static_cast<unsigned char>(*text)) * 0x100000001b3;
  return hash;
}

}  // namespace

Outcome Bootstrap::open() {
  if (!joined_) {
    const Outcome outcome = join();
    if (outcome != Outcome::ok) return outcome;
    joined_ = true;
    owner_pid_ = getpid();
    if (job_.launcher != Launcher::none) {
      mark_environment_used();
      // Without room for the exit handler the launcher just sees the connection end.
      static_cast<void>(__cxa_atexit(at_exit, this, &__dso_handle));
    }
  } else if (opens_ == 0) {
    if (owner_pid_ != getpid()) {
      return explain(Outcome::refused, "a forked child of a rank cannot use MPI");
    }
    pmi_.come_back();
  }
  ++opens_;
  return Outcome::ok;
}

void Bootstrap::close() {
  if (opens_ == 0 || --opens_ != 0 || owner_pid_ != getpid()) return;
  pmi_.leave();
  if (pmix_.joined()) pmix_.finalize();
}

Outcome Bootstrap::join() {
  const Environment seen = read_environment();
  switch (seen.seen) {
    // In the shell of a batch job the variables may be those of a launcher that served the first
    // program only. Who is the only rank anyway goes on alone.
    case Seen::pmi_fd:
    case Seen::pmi_port: {
      const Outcome outcome = join_pmi(seen);
      if (outcome == Outcome::ok || seen.size != 1) return outcome;
      break;
    }
    case Seen::pmix: {
      const Outcome outcome = join_pmix(seen);
      if (outcome != Outcome::wrong_launcher || seen.size != 1) return outcome;
      break;
    }
    case Seen::unspeakable: {
      char text[sizeof explanation_];
      snprintf(text, sizeof text,
               "this process was started by %s, which Headway MPI cannot join: %s", seen.name,
               seen.remedy);
      return explain(Outcome::wrong_launcher, text);
    }
    case Seen::nothing: break;
  }
  job_ = Job();
  explanation_[0] = '\0';
  uint64_t number = 0;
  if (getrandom(&number, sizeof number, GRND_NONBLOCK) != ssize_t(sizeof number)) {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    number = static_cast<uint64_t>(now.tv_sec) << 30 ^ static_cast<uint64_t>(now.tv_nsec);
  }
  snprintf(job_.job_id, sizeof job_.job_id, "single-%d-%016llx", getpid(),
           static_cast<unsigned long long>(number));
  return Outcome::ok;
}

Outcome Bootstrap::join_pmi(const Environment& seen) {
  PmiHello hello;
  hello.rank = seen.rank;
  hello.size = seen.size;
  const Outcome outcome = seen.seen == Seen::pmi_fd ? pmi_.join(seen.fd, hello)
                                                    : pmi_.join_at(seen.port, seen.rank, hello);
  if (outcome != Outcome::ok) {
    char text[sizeof explanation_];
    snprintf(text, sizeof text,
             "the launcher that started this process does not answer PMI-1 at %s%s: %s",
             seen.seen == Seen::pmi_fd ? "the descriptor in PMI_FD" : "PMI_PORT ", seen.port,
             outcome == Outcome::bad_reply ? "what it says is not that protocol"
                                           : "the connection is closed");
    return explain(outcome, text);
  }
  job_.launcher = Launcher::pmi1;
  job_.rank = hello.rank;
  job_.size = hello.size;
  job_.appnum = hello.appnum;
  if (job_.appnum < 0) take_number_of_program();
  job_.universe_size = hello.universe_size;
  adopt_job_id(pmi_.kvs_name());
  char mapping[value_max];
  if (pmi_.get("PMI_process_mapping", mapping, sizeof mapping) != Outcome::ok ||
      !nodes_.parse(mapping)) {
    nodes_ = NodeMap();  // a hint only
  }
  return Outcome::ok;
}

// srun does not know it, over either protocol; our mpiexec before it does.
void Bootstrap::take_number_of_program() {
  const char* told = getenv("MPIEXEC_APPNUM");
  if (told) job_.appnum = atoi(told);
}

Outcome Bootstrap::join_pmix(const Environment& seen) {
  PmixIdentity identity;
  const Outcome outcome = pmix_.join(identity);
  if (outcome != Outcome::ok) {
    char text[sizeof explanation_];
    snprintf(text, sizeof text,
             "this process was started by %s, which Headway MPI cannot join (%s): %s", seen.name,
             pmix_.reason(), seen.remedy);
    return explain(Outcome::wrong_launcher, text);
  }
  job_.launcher = Launcher::pmix;
  job_.rank = identity.rank;
  job_.size = identity.size;
  job_.appnum = identity.appnum;
  take_number_of_program();
  job_.universe_size = identity.universe_size;
  adopt_job_id(pmix_.name_space());
  return Outcome::ok;
}

Outcome Bootstrap::put(const char* key, const char* value) {
  Outcome outcome = Outcome::ok;  // for who is alone: nobody else will ever ask
  if (job_.launcher == Launcher::pmi1) outcome = pmi_.put(key, value);
  if (job_.launcher == Launcher::pmix) outcome = pmix_.put(key, value);
  if (outcome == Outcome::ok) return outcome;
  char what[key_max + 80];
  snprintf(what, sizeof what, "the launcher did not take what this rank publishes (%.*s)",
           int(key_max), key);
  return explain_no(outcome, what);
}

Outcome Bootstrap::get(const char* key, char* value, size_t capacity, int owner) {
  Outcome outcome = Outcome::not_found;
  if (job_.launcher == Launcher::pmi1) outcome = pmi_.get(key, value, capacity);
  if (job_.launcher == Launcher::pmix) outcome = pmix_.get(key, value, capacity, owner);
  if (outcome == Outcome::ok) return outcome;
  char whose[40] = "another rank", what[key_max + 140];
  if (owner != any_rank) snprintf(whose, sizeof whose, "rank %d", owner);
  snprintf(what, sizeof what, "the launcher did not give what %s has published (%.*s)", whose,
           int(key_max), key);
  return explain_no(outcome, what);
}

Outcome Bootstrap::fence() {
  Outcome outcome = Outcome::ok;
  if (job_.launcher == Launcher::pmi1) outcome = pmi_.barrier();
  if (job_.launcher == Launcher::pmix) outcome = pmix_.fence();
  if (outcome == Outcome::ok) return outcome;
  return explain_no(outcome, "the launcher could not bring together what the ranks publish");
}

// `what` did not happen: with the launcher's own word for it, where it has one.
Outcome Bootstrap::explain_no(Outcome outcome, const char* what) {
  const char* why = job_.launcher == Launcher::pmix ? pmix_.reason() : "";
  if (!*why) {
    switch (outcome) {
      case Outcome::not_found: why = "it does not know it"; break;
      case Outcome::too_long: why = "the text is too long"; break;
      case Outcome::launcher_lost: why = "its connection is closed"; break;
      case Outcome::bad_reply: why = "what it answers is not its protocol"; break;
      case Outcome::refused: why = "it says no, and does not say why"; break;
      case Outcome::wrong_launcher:
      case Outcome::ok: break;
    }
  }
  char text[sizeof explanation_];
  snprintf(text, sizeof text, "%s: %s", what, why);
  return explain(outcome, text);
}

void Bootstrap::abort(int exit_code, const char* message) {
  if (owner_pid_ != getpid()) return;
  if (job_.launcher == Launcher::pmi1) pmi_.abort(exit_code, message ? message : "");
  if (job_.launcher == Launcher::pmix)
    pmix_.abort(exit_code ? exit_code : 1, message ? message : "");
}

// PMI-1 tells no deaths: our mpiexec ends the job instead, and other launchers do the same.
bool Bootstrap::poll_death(Death&) { return false; }

int Bootstrap::node_of(int rank) const {
  if (rank < 0 || rank >= job_.size) return -1;
  switch (job_.launcher) {
    case Launcher::pmi1: return nodes_.node_of(rank);
    case Launcher::pmix: return pmix_.node_of(rank);
    case Launcher::none: break;
  }
  return 0;
}

Beside Bootstrap::beside() const {
  switch (job_.launcher) {
    case Launcher::pmi1: return nodes_.beside(job_.rank, job_.size);
    case Launcher::pmix: return pmix_.beside();
    case Launcher::none: break;
  }
  return {0, 1};
}

// A rank that ends without MPI_Finalize says no goodbye, so that the launcher notices.
void Bootstrap::at_exit(void* self) {
  Bootstrap& bootstrap = *static_cast<Bootstrap*>(self);
  if (bootstrap.opens_ != 0 || bootstrap.owner_pid_ != getpid()) return;
  bootstrap.pmi_.finalize();
  if (bootstrap.pmix_.joined()) bootstrap.pmix_.finalize();
}

Outcome Bootstrap::explain(Outcome outcome, const char* text) {
  snprintf(explanation_, sizeof explanation_, "%s", text);
  return outcome;
}

// Long names keep their head, for people, and a hash of the whole, to stay unique.
void Bootstrap::adopt_job_id(const char* name) {
  constexpr size_t capacity = sizeof job_.job_id;
  if (strlen(name) < capacity) {
    memcpy(job_.job_id, name, strlen(name) + 1);
    return;
  }
  snprintf(job_.job_id, capacity, "%.40s-%016llx", name,
           static_cast<unsigned long long>(hash_text(name)));
}

}  // namespace headway::bootstrap
