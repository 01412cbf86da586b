// Bootstrap: how a process learns who it is in its job, and swaps addresses with the others before
// it can send messages. Thread: one caller at a time (runtime holds its init lock). Owner: runtime
// holds the only one; it lives as long as the process and survives close and a new open.
// Invariant: after the first successful open the identity never changes. The connection to our own
// launcher stays until the process exits, that to others until the first close, after which they
// are of no more use than to see this process end. No exceptions; only the first open may allocate.
#pragma once
#include <cstddef>
#include <cstdint>

#include "bootstrap/node_map.h"
#include "bootstrap/outcome.h"
#include "bootstrap/pmi_client.h"
#include "bootstrap/pmix_client.h"

namespace headway::bootstrap {

enum class Launcher : uint8_t { none, pmi1, pmix };

struct Job {
  Launcher launcher = Launcher::none;  // none: the process is alone, a singleton
  int rank = 0;
  int size = 1;
  int appnum = 0;
  int universe_size = 1;
  char job_id[64] = "";  // unique among jobs that can meet; the same in all ranks
};

struct Death {
  int rank;
  int status;  // as waitpid tells it
};

class Bootstrap {
 public:
  Bootstrap() = default;
  Bootstrap(const Bootstrap&) = delete;
  Bootstrap& operator=(const Bootstrap&) = delete;

  // Finds the launcher in the environment and joins the job. Nothing found: a singleton, still
  // ok. Later calls only count. On failure, explanation() is one sentence for the user, here and
  // below.
  Outcome open();

  // One for each successful open. The last tells the launcher that this rank may now end.
  void close();

  // Text that other ranks can get after both sides have called fence. A key may be put once. No
  // spaces, no newline, no '=' in the key; no space and no newline in the value.
  Outcome put(const char* key, const char* value);

  // `owner` is the rank that put it, where known: some launchers ask only that rank's node, and
  // wait for a key that it has not put. Ask with an owner only for what is always put.
  Outcome get(const char* key, char* value, size_t capacity, int owner = any_rank);

  // Waits until every rank of the job has called it; what was put before is then visible.
  // Ends early with refused or launcher_lost where some rank can never come.
  Outcome fence();

  // Tells the launcher to end the whole job with this code (for 0 it ends with 1), prints nothing
  // itself. Returns; the caller then ends the process.
  void abort(int exit_code, const char* message);

  // Fills `out` and returns true if a rank of the job is newly known to have died.
  bool poll_death(Death& out);

  // Number of the node that a rank was started on, or -1 where the launcher does not tell. A hint:
  // whether two ranks share memory is found out by trying.
  int node_of(int rank) const;
  // The same of all ranks that were started beside this one.
  Beside beside() const;

  const Job& job() const { return job_; }
  int rank() const { return job_.rank; }
  int size() const { return job_.size; }
  const char* explanation() const { return explanation_; }

 private:
  Outcome join();
  Outcome join_pmi(const struct Environment& seen);
  void take_number_of_program();
  Outcome join_pmix(const struct Environment& seen);
  Outcome explain(Outcome outcome, const char* text);
  Outcome explain_no(Outcome outcome, const char* what);
  void adopt_job_id(const char* name);
  static void at_exit(void* self);

  Job job_;
  int opens_ = 0;
  bool joined_ = false;
  int owner_pid_ = 0;  // a forked child has the object but not the connection
  PmiClient pmi_;
  PmixClient pmix_;
  NodeMap nodes_;
  char explanation_[512] = "";
};

}  // namespace headway::bootstrap
